"""Data sets."""

from twofold.static.contrib.learn.python.learn.datasets import mnist as mnist
from twofold.static.python.positions import enter

enter(__name__, {"base": "contrib.learn.datasets.base"})
