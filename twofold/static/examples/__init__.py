"""What TensorFlow 1 shipped for its tutorials."""

from twofold.static.examples import tutorials as tutorials
