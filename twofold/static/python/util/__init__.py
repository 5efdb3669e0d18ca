"""TensorFlow's tools for nested values, where its programs import them from."""

from twofold.static import compat as compat
from twofold.static import nest as nest
