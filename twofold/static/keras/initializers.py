"""First values of variables: ``tf.keras.initializers``."""

from twofold.static.keras.named import INITIALIZERS as _INITIALIZERS
from twofold.static.keras.named import getter as _getter
from twofold.static.keras.named import look_up as _look_up
from twofold.static.keras.named import serialize as serialize

__getattr__, __dir__ = _look_up(_INITIALIZERS, __name__)
get = deserialize = _getter(_INITIALIZERS, "initializer")
