"""Plugins of TensorBoard."""

from twofold.static.contrib.tensorboard.plugins import projector as projector
