"""The parts of ``tf.contrib`` that programs use most: recurrent cells, and layers with their initializers."""

from twofold.static.contrib import layers as layers
from twofold.static.contrib import rnn as rnn
