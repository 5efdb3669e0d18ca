"""The version of TensorFlow whose names these are: ``tf.version``."""

from __future__ import annotations

GIT_VERSION = "v1.15.0"
VERSION = "1.15.0"
COMPILER_VERSION = "none"
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
