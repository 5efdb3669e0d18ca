"""Data sets as NumPy arrays: the digits that ship with the package, and MNIST from its original files."""

from twofold.data.digits import load_digits, split_digits
from twofold.data.mnist import load_mnist

__all__ = ["load_digits", "load_mnist", "split_digits"]
