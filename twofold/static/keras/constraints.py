"""What variables are held to: ``tf.keras.constraints``."""

from twofold.static.keras.named import CONSTRAINTS as _CONSTRAINTS
from twofold.static.keras.named import getter as _getter
from twofold.static.keras.named import max_norm as max_norm
from twofold.static.keras.named import min_max_norm as min_max_norm
from twofold.static.keras.named import non_neg as non_neg
from twofold.static.keras.named import serialize as serialize
from twofold.static.keras.named import unit_norm as unit_norm

MaxNorm, MinMaxNorm, NonNeg, UnitNorm = max_norm, min_max_norm, non_neg, unit_norm
get = deserialize = _getter(_CONSTRAINTS, "constraint")
