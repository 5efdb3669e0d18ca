"""Sequence to sequence: losses, decoders and attention, under the names of ``tf.contrib.seq2seq``."""

from twofold.static.contrib.attention import AttentionWrapper as AttentionWrapper
from twofold.static.contrib.attention import AttentionWrapperState as AttentionWrapperState
from twofold.static.contrib.attention_mechanisms import AttentionMechanism as AttentionMechanism
from twofold.static.contrib.attention_mechanisms import BahdanauAttention as BahdanauAttention
from twofold.static.contrib.attention_mechanisms import (
    BahdanauMonotonicAttention as BahdanauMonotonicAttention,
)
from twofold.static.contrib.attention_mechanisms import LuongAttention as LuongAttention
from twofold.static.contrib.attention_mechanisms import LuongMonotonicAttention as LuongMonotonicAttention
from twofold.static.contrib.attention_mechanisms import hardmax as hardmax
from twofold.static.contrib.attention_mechanisms import monotonic_attention as monotonic_attention
from twofold.static.contrib.attention_mechanisms import safe_cumprod as safe_cumprod
from twofold.static.contrib.attention_mechanisms import tile_batch as tile_batch
from twofold.static.contrib.beam_search import BeamSearchDecoder as BeamSearchDecoder
from twofold.static.contrib.beam_search import BeamSearchDecoderOutput as BeamSearchDecoderOutput
from twofold.static.contrib.beam_search import BeamSearchDecoderState as BeamSearchDecoderState
from twofold.static.contrib.beam_search import FinalBeamSearchDecoderOutput as FinalBeamSearchDecoderOutput
from twofold.static.contrib.beam_search import gather_tree as gather_tree
from twofold.static.contrib.decoding import BasicDecoder as BasicDecoder
from twofold.static.contrib.decoding import BasicDecoderOutput as BasicDecoderOutput
from twofold.static.contrib.decoding import CustomHelper as CustomHelper
from twofold.static.contrib.decoding import Decoder as Decoder
from twofold.static.contrib.decoding import GreedyEmbeddingHelper as GreedyEmbeddingHelper
from twofold.static.contrib.decoding import Helper as Helper
from twofold.static.contrib.decoding import InferenceHelper as InferenceHelper
from twofold.static.contrib.decoding import SampleEmbeddingHelper as SampleEmbeddingHelper
from twofold.static.contrib.decoding import (
    ScheduledEmbeddingTrainingHelper as ScheduledEmbeddingTrainingHelper,
)
from twofold.static.contrib.decoding import ScheduledOutputTrainingHelper as ScheduledOutputTrainingHelper
from twofold.static.contrib.decoding import TrainingHelper as TrainingHelper
from twofold.static.contrib.decoding import dynamic_decode as dynamic_decode
from twofold.static.contrib.seq2seq_losses import sequence_loss as sequence_loss
from twofold.static.python.positions import enter

enter(
    __name__,
    {
        "python.ops.attention_wrapper": "contrib.seq2seq contrib.attention_mechanisms contrib.attention",
        "python.ops.basic_decoder python.ops.beam_search_decoder": "contrib.seq2seq",
        "python.ops.decoder python.ops.helper python.ops.loss": "contrib.seq2seq",
    },
)
