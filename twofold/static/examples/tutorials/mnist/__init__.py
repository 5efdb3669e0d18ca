"""Handwritten digits."""

from twofold.static.examples.tutorials.mnist import input_data as input_data
