"""Recurrent cells and networks under their older names."""

from twofold.static.api.namespaces import look_up
from twofold.static.python.positions import enter
from twofold.static.recurrent.projected_cells import linear as _linear  # noqa: F401

__getattr__, __dir__ = look_up(
    __name__,
    {
        "contrib.cells": """AttentionCellWrapper Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell
            GRUBlockCell GRUBlockCellV2 HighwayWrapper LSTMBlockCell LSTMBlockFusedCell NASCell TimeReversedFusedRNN
            UGRNNCell""",
        "contrib.gated_cells": "CoupledInputForgetGateLSTMCell GLSTMCell IndRNNCell PhasedLSTMCell SRUCell",
        "recurrent.projected_cells": """EmbeddingWrapper InputProjectionWrapper LayerNormBasicLSTMCell
            LayerNormLSTMCell OutputProjectionWrapper""",
        "recurrent.rnn": "stack_bidirectional_dynamic_rnn static_bidirectional_rnn static_rnn",
        "recurrent.rnn_cell": """BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell
            LSTMStateTuple MultiRNNCell ResidualWrapper RNNCell""",
    },
)
enter(
    __name__,
    {
        "python.ops.rnn python.ops.core_rnn python.ops.rnn_cell python.ops.core_rnn_cell": "contrib.rnn",
        "python.ops.lstm_ops python.ops.gru_ops python.ops.core_rnn_cell_impl": "contrib.rnn",
    },
)
