"""First values of variables: ``tf.keras.initializers``."""

from twofold.static.keras.named import INITIALIZERS as _INITIALIZERS
from twofold.static.keras.named import look_up as _look_up

__getattr__, __dir__ = _look_up(_INITIALIZERS, __name__)
