"""The tutorials' readers of data."""

from twofold.static.examples.tutorials import mnist as mnist
