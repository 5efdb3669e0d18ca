"""Sequence to sequence: losses, decoders and attention, under the names of ``tf.contrib.seq2seq``."""

from twofold.static.api.namespaces import look_up
from twofold.static.python.positions import enter

__getattr__, __dir__ = look_up(
    __name__,
    {
        "contrib.attention": "AttentionWrapper AttentionWrapperState",
        "contrib.attention_mechanisms": """AttentionMechanism BahdanauAttention BahdanauMonotonicAttention
            LuongAttention LuongMonotonicAttention hardmax monotonic_attention safe_cumprod tile_batch""",
        "contrib.beam_search": """BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState
            FinalBeamSearchDecoderOutput gather_tree""",
        "contrib.decoding": """BasicDecoder BasicDecoderOutput CustomHelper Decoder GreedyEmbeddingHelper Helper
            InferenceHelper SampleEmbeddingHelper ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper
            TrainingHelper dynamic_decode""",
        "contrib.seq2seq_losses": "sequence_loss",
    },
)
enter(
    __name__,
    {
        "python.ops.attention_wrapper": "contrib.seq2seq contrib.attention_mechanisms contrib.attention",
        "python.ops.basic_decoder python.ops.beam_search_decoder": "contrib.seq2seq",
        "python.ops.decoder python.ops.helper python.ops.loss": "contrib.seq2seq",
    },
)
