"""Metrics of each element: ``tf.keras.metrics``."""

from twofold.static.keras.losses import FUNCTIONS as _FUNCTIONS
from twofold.static.keras.named import look_up as _look_up

__getattr__, __dir__ = _look_up(_FUNCTIONS, __name__)
