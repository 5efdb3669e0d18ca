"""Recurrent networks and their cells, as in ``tf.nn``."""

from twofold.static import rnn as rnn
from twofold.static import rnn_cell as rnn_cell
