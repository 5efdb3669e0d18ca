"""Functions of each element: ``tf.keras.activations``."""

from twofold.static.keras.named import ACTIVATIONS as _ACTIVATIONS
from twofold.static.keras.named import getter as _getter
from twofold.static.keras.named import look_up as _look_up
from twofold.static.keras.named import serialize as serialize

__getattr__, __dir__ = _look_up(_ACTIVATIONS, __name__)
get = deserialize = _getter(_ACTIVATIONS, "activation function")
