"""Recurrent cells and networks under their older names."""

from twofold.static.projected_cells import EmbeddingWrapper as EmbeddingWrapper
from twofold.static.projected_cells import InputProjectionWrapper as InputProjectionWrapper
from twofold.static.projected_cells import LayerNormBasicLSTMCell as LayerNormBasicLSTMCell
from twofold.static.projected_cells import OutputProjectionWrapper as OutputProjectionWrapper
from twofold.static.rnn import stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn
from twofold.static.rnn import static_bidirectional_rnn as static_bidirectional_rnn
from twofold.static.rnn import static_rnn as static_rnn
from twofold.static.rnn_cell import BasicLSTMCell as BasicLSTMCell
from twofold.static.rnn_cell import BasicRNNCell as BasicRNNCell
from twofold.static.rnn_cell import DeviceWrapper as DeviceWrapper
from twofold.static.rnn_cell import DropoutWrapper as DropoutWrapper
from twofold.static.rnn_cell import GRUCell as GRUCell
from twofold.static.rnn_cell import LSTMCell as LSTMCell
from twofold.static.rnn_cell import LSTMStateTuple as LSTMStateTuple
from twofold.static.rnn_cell import MultiRNNCell as MultiRNNCell
from twofold.static.rnn_cell import ResidualWrapper as ResidualWrapper
from twofold.static.rnn_cell import RNNCell as RNNCell
