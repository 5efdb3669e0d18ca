"""Penalties of variables: ``tf.keras.regularizers``."""

from twofold.static.keras.named import l1 as l1
from twofold.static.keras.named import l1_l2 as l1_l2
from twofold.static.keras.named import l2 as l2
