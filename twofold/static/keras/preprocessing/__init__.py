"""Preparing data: ``tf.keras.preprocessing``."""

from twofold.static.keras.preprocessing import sequence as sequence
from twofold.static.keras.preprocessing import text as text
