"""Data sets: ``tf.keras.datasets``, from files that are never downloaded."""

from twofold.static.keras.datasets import mnist as mnist
