"""Modules of ``tf.contrib.learn`` by their files."""

from twofold.static.contrib.learn.python import learn as learn
