"""Penalties of variables: ``tf.keras.regularizers``."""

from twofold.static.keras.named import REGULARIZERS as _REGULARIZERS
from twofold.static.keras.named import getter as _getter
from twofold.static.keras.named import l1 as l1
from twofold.static.keras.named import l1_l2 as l1_l2
from twofold.static.keras.named import l2 as l2
from twofold.static.keras.named import serialize as serialize

get = deserialize = _getter(_REGULARIZERS, "regularizer")
