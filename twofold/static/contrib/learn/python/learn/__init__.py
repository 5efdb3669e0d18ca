"""Modules of ``tf.contrib.learn`` by their files."""
