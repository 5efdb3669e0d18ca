"""The parts of ``tf.contrib`` that programs use most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.static.python.positions import enter as _enter

if TYPE_CHECKING:
    from twofold.static import keras, lookup, saved_model, signal
    from twofold.static.contrib import (
        cluster_resolver,
        compiler,
        crf,
        cudnn_rnn,
        data,
        distributions,
        eager,
        estimator,
        factorization,
        framework,
        image,
        layers,
        learn,
        legacy_seq2seq,
        losses,
        metrics,
        opt,
        predictor,
        rnn,
        seq2seq,
        slim,
        staging,
        stateless,
        tensorboard,
        tpu,
        training,
        util,
    )

__getattr__, __dir__ = _attach(__name__)

_KERAS = (
    "activations backend callbacks constraints datasets initializers layers losses metrics models optimizers "
)

_enter(
    __name__,
    {
        **{name: name for name in ("keras", "lookup", "saved_model", "signal")},
        **{
            f"keras.{name}": f"keras.{name}" for name in (_KERAS + "preprocessing regularizers utils").split()
        },
    },
)
