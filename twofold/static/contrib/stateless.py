"""Random tensors that two integers decide: ``tf.contrib.stateless``."""

from twofold.static.random import stateless_multinomial, stateless_truncated_normal
from twofold.static.random import stateless_normal as stateless_random_normal
from twofold.static.random import stateless_uniform as stateless_random_uniform

__all__ = [
    "stateless_multinomial",
    "stateless_random_normal",
    "stateless_random_uniform",
    "stateless_truncated_normal",
]
