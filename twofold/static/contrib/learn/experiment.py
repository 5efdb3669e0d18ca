"""Training and evaluating an estimator by one call: ``tf.contrib.learn.Experiment`` and ``learn_runner``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.contrib.learn.estimators import Estimator
from twofold.static.contrib.learn.monitors import ValidationMonitor


class Experiment:
    """An estimator with its input functions.

    Args:
        estimator: One of ``tf.estimator`` or ``tf.contrib.learn``.
        train_input_fn: A function that declares what it is trained with.
        eval_input_fn: A function that declares what it is evaluated with.
        eval_metrics: Instances of ``MetricSpec`` by name; for estimators of ``tf.contrib.learn``.
        train_steps: How many steps it is trained in all; until the data end for None.
        eval_steps: How many batches an evaluation takes; all for None.
        train_monitors: Instances of ``SessionRunHook`` for training.
        eval_hooks: Those for evaluating.
        min_eval_frequency: After how many steps ``train_and_evaluate`` evaluates a new checkpoint, too; for
            estimators of ``tf.contrib.learn``.
        **options: Others of TensorFlow's: not offered; they raise unless None.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Mapping[str, Any] | None = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Sequence[Any] | None = None,
        eval_hooks: Sequence[Any] | None = None,
        min_eval_frequency: int | None = None,
        **options: Any,
    ) -> None:
        refuse("Experiment", **options)
        if eval_metrics is not None and not isinstance(estimator, Estimator):
            what = f"Experiment: eval_metrics for a {type(estimator).__name__}, at {here()}"
            raise ArgumentError(what, "Let its model_fn return eval_metric_ops.")
        self.estimator, self._train_input, self._eval_input = estimator, train_input_fn, eval_input_fn
        self._metrics, self._train_steps, self._eval_steps = eval_metrics, train_steps, eval_steps
        self._monitors, self._eval_hooks = list(train_monitors or ()), list(eval_hooks or ())
        self._frequency = min_eval_frequency

    def extend_train_hooks(self, additional_hooks: Sequence[Any]) -> None:
        """Add hooks for training."""
        self._monitors += additional_hooks

    def train(self, delay_secs: float | None = None) -> Any:
        """Train the estimator; there is no other worker to wait ``delay_secs`` for."""
        return self._train(self._monitors)

    def _train(self, hooks: list[Any]) -> Any:
        for one in hooks:
            if hasattr(one, "set_estimator"):
                one.set_estimator(self.estimator)
        return self.estimator.train(self._train_input, hooks, max_steps=self._train_steps)

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """The metrics of the latest checkpoint."""
        given: dict[str, Any] = {"input_fn": self._eval_input, "steps": self._eval_steps, "name": name}
        if isinstance(self.estimator, Estimator):
            given["metrics"] = self._metrics
        return self.estimator.evaluate(hooks=self._eval_hooks, **given)

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Train, then evaluate: the metrics, and the paths of exports, of which there are none."""
        hooks = list(self._monitors)
        if self._frequency and isinstance(self.estimator, Estimator):
            options: Any = {
                "eval_steps": self._eval_steps,
                "metrics": self._metrics,
                "hooks": self._eval_hooks,
            }
            monitor = ValidationMonitor(
                input_fn=self._eval_input, every_n_steps=self._frequency, name="validation", **options
            )
            hooks.append(monitor)
        self._train(hooks)
        return self.evaluate(), []

    def test(self) -> Any:
        """One step, and one batch evaluated."""
        self.estimator.train(self._train_input, self._monitors, steps=1)
        steps, self._eval_steps = self._eval_steps, 1
        try:
            return self.evaluate()
        finally:
            self._eval_steps = steps


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: Any = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Do what ``schedule`` says with an experiment.

    Args:
        experiment_fn: A function of ``run_config`` and ``hparams``, or of ``output_dir``, that makes it.
        output_dir: Directory of the checkpoints, instead of a ``run_config``.
        schedule: A method of the experiment: "train_and_evaluate" unless given.
        run_config: A ``RunConfig`` with a ``model_dir``.
        hparams: Settings of the model.

    Raises:
        ValueError: There is no directory, or no such method.
    """
    if run_config is None and output_dir is None:
        raise ArgumentError(f"run: neither output_dir nor run_config, at {here()}", "Give one of them.")
    if run_config is not None and run_config.model_dir is None:
        raise ArgumentError(f"run: run_config has no model_dir, at {here()}", "Give it one.")
    if run_config is None:
        made = experiment_fn(output_dir)
    else:
        known = inspect.signature(experiment_fn).parameters
        made = experiment_fn(run_config, hparams) if len(known) > 1 else experiment_fn(run_config)
    if not isinstance(made, Experiment):
        what = f"run: experiment_fn returned a {type(made).__name__}, at {here()}"
        raise ArgumentError(what, "Return a tf.contrib.learn.Experiment.")
    schedule = schedule or "train_and_evaluate"
    if schedule not in ("train", "evaluate", "train_and_evaluate", "test"):
        what = f"run: there is no schedule {schedule!r}, at {here()}"
        raise ArgumentError(what, "Give 'train', 'evaluate', 'train_and_evaluate' or 'test'.")
    return getattr(made, schedule)()
