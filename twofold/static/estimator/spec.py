"""What a model function is asked for and returns, and how an estimator runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.train.monitored_session import Scaffold

_DEFAULT: Any = object()


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
        save_summary_steps: After how many steps summaries are written.
        save_checkpoints_steps: After how many steps a checkpoint is written, as at the end of training.
        save_checkpoints_secs: The same in seconds; 600 unless steps are given. None for both writes none.
        session_config: A ``ConfigProto``.
        keep_checkpoint_max: How many checkpoints stay.
        keep_checkpoint_every_n_hours: Of the others, one for each such time stays.
        log_step_count_steps: After how many steps the loss is shown.

    Raises:
        ValueError: For checkpoints after steps and after seconds.
    """

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int = 1,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = _DEFAULT,
        save_checkpoints_secs: float | None = _DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        log_step_count_steps: int | None = 100,
    ) -> None:
        if save_checkpoints_secs is _DEFAULT:
            save_checkpoints_secs = 600 if save_checkpoints_steps is _DEFAULT else None
        if save_checkpoints_steps is _DEFAULT:
            save_checkpoints_steps = None
        if save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            what = f"RunConfig: both save_checkpoints_steps and save_checkpoints_secs, at {here()}"
            raise ArgumentError(what, "Give one of them.")
        self.model_dir, self.tf_random_seed = model_dir, tf_random_seed
        self.save_summary_steps, self.log_step_count_steps = save_summary_steps, log_step_count_steps
        self.save_checkpoints_steps, self.session_config = save_checkpoints_steps, session_config
        self.save_checkpoints_secs = save_checkpoints_secs
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values for some; checkpoints after steps replace those after seconds."""
        names = inspect.signature(RunConfig).parameters
        steps, seconds = "save_checkpoints_steps", "save_checkpoints_secs"
        for given, other in ((steps, seconds), (seconds, steps)):
            if kwargs.get(given) is not None:
                kwargs.setdefault(other, None)
        return RunConfig(**{**{name: getattr(self, name) for name in names}, **kwargs})


class _Parts(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]
    export_outputs: Mapping[str, Any] | None


_NEEDED = {ModeKeys.TRAIN: ("loss", "train_op"), ModeKeys.EVAL: ("loss",), ModeKeys.PREDICT: ("predictions",)}


class EstimatorSpec(_Parts):
    """What a model function returns: for training ``loss`` and ``train_op``, else ``loss`` or ``predictions``.

    Args:
        mode: One of ``ModeKeys``.
        predictions: A tensor, or a dict of tensors, whose first axis is that of the examples.
        loss: A scalar.
        train_op: An operation that changes the variables and counts the global step up.
        eval_metric_ops: Pairs of a value and its update, as ``tf.metrics`` gives them, by name.
        export_outputs: Instances of ``export.PredictOutput`` and its kin by the names of their signatures; all
            predictions as the default signature unless given.
        training_chief_hooks: Instances of ``SessionRunHook`` for training.
        training_hooks: More of them.
        scaffold: A ``Scaffold``.
        evaluation_hooks: Instances of ``SessionRunHook`` for evaluating.
        prediction_hooks: Those for predicting.

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
        if mode not in _NEEDED:
            raise ArgumentError(f"EstimatorSpec: mode is {mode!r}, at {here()}", "Give one of ModeKeys.")
        made = super().__new__(
            cls,
            mode,
            predictions,
            loss,
            train_op,
            dict(eval_metric_ops or {}),
            tuple(training_chief_hooks or ()),
            tuple(training_hooks or ()),
            scaffold or Scaffold(),
            tuple(evaluation_hooks or ()),
            tuple(prediction_hooks or ()),
            export_outputs,
        )
        for name in _NEEDED[mode]:
            if getattr(made, name) is None:
                what = f"EstimatorSpec: {name} is missing in mode {mode!r}, at {here()}"
                raise ArgumentError(what, f"Give {name}.")
        return made
