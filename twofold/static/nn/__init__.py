"""Neural-network functions: ``tf.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.arrays.creation import top_k
    from twofold.static.arrays.reordering import (
        batch_to_space,
        depth_to_space,
        space_to_batch,
        space_to_depth,
    )
    from twofold.static.contrib import legacy_seq2seq as seq2seq
    from twofold.static.layers.normalization import fused_batch_norm
    from twofold.static.math import log_sigmoid, sigmoid, softplus, tanh
    from twofold.static.nn.activations import *  # noqa: F403
    from twofold.static.nn.activations import swish as silu
    from twofold.static.nn.convolutions import *  # noqa: F403
    from twofold.static.nn.cross_entropy import *  # noqa: F403
    from twofold.static.nn.ctc import ctc_greedy_decoder, ctc_loss
    from twofold.static.nn.ctc_beam_search import ctc_beam_search_decoder, ctc_beam_search_decoder_v2
    from twofold.static.nn.embeddings import *  # noqa: F403
    from twofold.static.nn.filter_gradients import *  # noqa: F403
    from twofold.static.nn.linear import *  # noqa: F403
    from twofold.static.nn.morphology import dilation2d, erosion2d
    from twofold.static.nn.normalization import *  # noqa: F403
    from twofold.static.nn.pooling import (
        avg_pool,
        avg_pool1d,
        avg_pool2d,
        avg_pool3d,
        local_response_normalization,
        lrn,
        max_pool,
        max_pool1d,
        max_pool2d,
        max_pool3d,
        max_pool_with_argmax,
        pool,
    )
    from twofold.static.nn.pooling import avg_pool as avg_pool_v2
    from twofold.static.nn.pooling import max_pool as max_pool_v2
    from twofold.static.nn.sampled_losses import (
        log_uniform_candidate_sampler,
        nce_loss,
        sampled_softmax_loss,
        uniform_candidate_sampler,
    )
    from twofold.static.nn.unigram_samplers import (
        all_candidate_sampler,
        compute_accidental_hits,
        fixed_unigram_candidate_sampler,
        learned_unigram_candidate_sampler,
    )
    from twofold.static.random import multinomial
    from twofold.static.recurrent import rnn_cell
    from twofold.static.recurrent.raw_rnn import raw_rnn
    from twofold.static.recurrent.rnn import (
        bidirectional_dynamic_rnn,
        dynamic_rnn,
        static_bidirectional_rnn,
        static_rnn,
    )

__getattr__, __dir__ = _attach(__name__, _prepared)
