"""What a model function is asked for and returns, and how an estimator runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.layer_options import refuse


class ModeKeys:
    """What a model is declared for.

    >>> import twofold.static as tf
    >>> tf.estimator.ModeKeys.PREDICT
    'infer'
    """

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class RunConfig:
    """How an estimator runs.

    Args:
        model_dir: Directory of checkpoints.
        tf_random_seed: Seed of the graphs.
        save_checkpoints_steps: After how many steps a checkpoint is written; at the end of training one always is.
        session_config: A ``ConfigProto``.
        keep_checkpoint_max: How many checkpoints stay.
    """

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int = 1,
        save_checkpoints_steps: int | None = None,
        session_config: Any = None,
        keep_checkpoint_max: int = 5,
    ) -> None:
        self.model_dir, self.tf_random_seed = model_dir, tf_random_seed
        self.save_checkpoints_steps, self.session_config = save_checkpoints_steps, session_config
        self.keep_checkpoint_max = keep_checkpoint_max


class _Parts(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]


_NEEDED = {ModeKeys.TRAIN: ("loss", "train_op"), ModeKeys.EVAL: ("loss",), ModeKeys.PREDICT: ("predictions",)}


class EstimatorSpec(_Parts):
    """What a model function returns: for training ``loss`` and ``train_op``, else ``loss`` or ``predictions``.

    Args:
        mode: One of ``ModeKeys``.
        predictions: A tensor, or a dict of tensors, whose first axis is that of the examples.
        loss: A scalar.
        train_op: An operation that changes the variables and counts the global step up.
        eval_metric_ops: Pairs of a value and its update, as ``tf.metrics`` gives them, by name.
        export_outputs: Not offered, like the following ones; raises unless None.

    Raises:
        ValueError: Where the mode is another one, or what it needs is missing.

    >>> import twofold.static as tf
    >>> tf.estimator.EstimatorSpec("infer", predictions={"x": 1}).predictions
    {'x': 1}
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> EstimatorSpec:
        refuse(
            "EstimatorSpec",
            export_outputs=export_outputs,
            training_chief_hooks=training_chief_hooks,
            training_hooks=training_hooks,
            scaffold=scaffold,
            evaluation_hooks=evaluation_hooks,
            prediction_hooks=prediction_hooks,
        )
        if mode not in _NEEDED:
            raise ArgumentError(f"EstimatorSpec: mode is {mode!r}, at {here()}", "Give one of ModeKeys.")
        made = super().__new__(cls, mode, predictions, loss, train_op, dict(eval_metric_ops or {}))
        for name in _NEEDED[mode]:
            if getattr(made, name) is None:
                what = f"EstimatorSpec: {name} is missing in mode {mode!r}, at {here()}"
                raise ArgumentError(what, f"Give {name}.")
        return made
