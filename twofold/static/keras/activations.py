"""Functions of each element: ``tf.keras.activations``."""

from twofold.static.keras.named import ACTIVATIONS as _ACTIVATIONS
from twofold.static.keras.named import look_up as _look_up

__getattr__, __dir__ = _look_up(_ACTIVATIONS, __name__)
