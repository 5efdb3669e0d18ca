"""Training and evaluating in turn: ``tf.estimator.train_and_evaluate``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold.static.estimator.estimator import Estimator
from twofold.static.platform import logs
from twofold.static.train.session_hooks import CheckpointSaverListener
from twofold.static.train.session_run_hook import SecondOrStepTimer


class TrainSpec(NamedTuple):
    """How to train: the arguments of ``Estimator.train``."""

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    hooks: Sequence[Any] | None = None
    saving_listeners: Sequence[Any] | None = None


class EvalSpec(NamedTuple):
    """How to evaluate: the arguments of ``Estimator.evaluate``, and at least how many seconds lie between evaluations.

    ``exporters``, one or a list, are given each checkpoint that is evaluated. ``start_delay_secs`` changes nothing, as
    there is one process.
    """

    input_fn: Callable[..., Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Sequence[Any] | None = None
    exporters: Any = None
    start_delay_secs: float = 120
    throttle_secs: float = 600


class _Evaluating(CheckpointSaverListener):
    """Evaluates new checkpoints."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator, self._spec, self._max_steps = estimator, spec, max_steps
        self._timer = SecondOrStepTimer(every_secs=spec.throttle_secs)
        self.found: dict[str, Any] | None = None
        self.exports: list[Any] = []
        self._first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Evaluate, if it is time; the checkpoint from before the training is not."""
        if self._first:
            self._first = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            words = "Skip the current checkpoint eval due to throttle secs (%s secs)."
            logs.info(words, self._spec.throttle_secs)

    def end(self, session: Any, global_step_value: int) -> None:
        """Evaluate the last one."""
        if self._timer.last_triggered_step() != global_step_value:
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        spec, estimator = self._spec, self._estimator
        self.found = estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, name=spec.name)
        given = spec.exporters
        exporters = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
        is_last = self._max_steps is not None and step >= self._max_steps
        path, self.exports = estimator.latest_checkpoint(), []
        for one in exporters:
            folder = os.path.join(estimator.model_dir, "export", one.name)
            self.exports.append(one.export(estimator, folder, path, self.found, is_last))


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[Any]]:
    """Train, and evaluate new checkpoints and the last one; the last evaluation, and its exports.

    Args:
        estimator: The estimator.
        train_spec: How to train.
        eval_spec: How to evaluate.

    >>> import numpy
    >>> import twofold.static as tf
    >>> def line(features, labels, mode):
    ...     loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    ...     step = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    ...     return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)
    >>> x = numpy.ones((8, 2), "float32")
    >>> rows = tf.estimator.inputs.numpy_input_fn(x, x[:, :1], batch_size=4, num_epochs=None, shuffle=False)
    >>> train, evaluate = tf.estimator.TrainSpec(rows, max_steps=3), tf.estimator.EvalSpec(rows, steps=2)
    >>> found, _ = tf.estimator.train_and_evaluate(tf.estimator.Estimator(line), train, evaluate)
    >>> int(found["global_step"])
    3
    """
    evaluating = _Evaluating(estimator, eval_spec, train_spec.max_steps)
    listeners = [*(train_spec.saving_listeners or []), evaluating]
    estimator.train(
        train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=listeners
    )
    return evaluating.found, evaluating.exports
