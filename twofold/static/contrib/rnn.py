"""Recurrent cells and networks under their older names."""

from twofold.static.contrib.cells import AttentionCellWrapper as AttentionCellWrapper
from twofold.static.contrib.cells import Conv1DLSTMCell as Conv1DLSTMCell
from twofold.static.contrib.cells import Conv2DLSTMCell as Conv2DLSTMCell
from twofold.static.contrib.cells import Conv3DLSTMCell as Conv3DLSTMCell
from twofold.static.contrib.cells import ConvLSTMCell as ConvLSTMCell
from twofold.static.contrib.cells import GRUBlockCell as GRUBlockCell
from twofold.static.contrib.cells import GRUBlockCellV2 as GRUBlockCellV2
from twofold.static.contrib.cells import HighwayWrapper as HighwayWrapper
from twofold.static.contrib.cells import LSTMBlockCell as LSTMBlockCell
from twofold.static.contrib.cells import LSTMBlockFusedCell as LSTMBlockFusedCell
from twofold.static.contrib.cells import NASCell as NASCell
from twofold.static.contrib.cells import TimeReversedFusedRNN as TimeReversedFusedRNN
from twofold.static.contrib.cells import UGRNNCell as UGRNNCell
from twofold.static.contrib.gated_cells import (
    CoupledInputForgetGateLSTMCell as CoupledInputForgetGateLSTMCell,
)
from twofold.static.contrib.gated_cells import GLSTMCell as GLSTMCell
from twofold.static.contrib.gated_cells import IndRNNCell as IndRNNCell
from twofold.static.contrib.gated_cells import PhasedLSTMCell as PhasedLSTMCell
from twofold.static.contrib.gated_cells import SRUCell as SRUCell
from twofold.static.python.positions import enter
from twofold.static.recurrent.projected_cells import EmbeddingWrapper as EmbeddingWrapper
from twofold.static.recurrent.projected_cells import InputProjectionWrapper as InputProjectionWrapper
from twofold.static.recurrent.projected_cells import LayerNormBasicLSTMCell as LayerNormBasicLSTMCell
from twofold.static.recurrent.projected_cells import LayerNormLSTMCell as LayerNormLSTMCell
from twofold.static.recurrent.projected_cells import OutputProjectionWrapper as OutputProjectionWrapper
from twofold.static.recurrent.projected_cells import linear as _linear  # noqa: F401
from twofold.static.recurrent.rnn import stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn
from twofold.static.recurrent.rnn import static_bidirectional_rnn as static_bidirectional_rnn
from twofold.static.recurrent.rnn import static_rnn as static_rnn
from twofold.static.recurrent.rnn_cell import BasicLSTMCell as BasicLSTMCell
from twofold.static.recurrent.rnn_cell import BasicRNNCell as BasicRNNCell
from twofold.static.recurrent.rnn_cell import DeviceWrapper as DeviceWrapper
from twofold.static.recurrent.rnn_cell import DropoutWrapper as DropoutWrapper
from twofold.static.recurrent.rnn_cell import GRUCell as GRUCell
from twofold.static.recurrent.rnn_cell import LSTMCell as LSTMCell
from twofold.static.recurrent.rnn_cell import LSTMStateTuple as LSTMStateTuple
from twofold.static.recurrent.rnn_cell import MultiRNNCell as MultiRNNCell
from twofold.static.recurrent.rnn_cell import ResidualWrapper as ResidualWrapper
from twofold.static.recurrent.rnn_cell import RNNCell as RNNCell

enter(
    __name__,
    {
        "python.ops.rnn python.ops.core_rnn python.ops.rnn_cell python.ops.core_rnn_cell": "contrib.rnn",
        "python.ops.lstm_ops python.ops.gru_ops python.ops.core_rnn_cell_impl": "contrib.rnn",
    },
)
