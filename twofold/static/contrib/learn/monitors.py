"""What looks at a model while it is trained: ``tf.contrib.learn.monitors``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.platform import logs
from twofold.static.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook
from twofold.static.train.step_counter import get_global_step


class ValidationMonitor(SessionRunHook):
    """Evaluates new checkpoints every ``every_n_steps``, and may end training.

    Args:
        x: An array of features.
        y: An array of labels.
        input_fn: Instead of arrays, a function that declares both.
        batch_size: How many rows of arrays a batch has.
        eval_steps: At most so many batches.
        every_n_steps: After how many steps there is an evaluation, if there is a new checkpoint.
        metrics: Instances of ``MetricSpec`` by name.
        hooks: Instances of ``SessionRunHook`` for evaluating.
        early_stopping_rounds: After how many steps without a better metric training ends; never for None.
        early_stopping_metric: Which metric.
        early_stopping_metric_minimize: Whether less is better.
        name: Of the evaluation.

    Raises:
        ArgumentError: There are neither arrays nor an input function.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Mapping[str, Any] | None = None,
        hooks: Sequence[Any] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
    ) -> None:
        if x is None and input_fn is None:
            raise ArgumentError(f"ValidationMonitor: neither x nor input_fn, at {here()}", "Give one.")
        self._given = {"x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size, "steps": eval_steps}
        self._given |= {"metrics": metrics, "hooks": hooks, "name": name}
        self._every, self._patience = every_n_steps, early_stopping_rounds
        self._metric, self._sign = early_stopping_metric, 1 if early_stopping_metric_minimize else -1
        self._estimator: Any = None
        self._checkpoint: str | None = None
        self._last = 0
        self.best_step, self.best_value, self.best_metrics = 0, None, None
        self.early_stopped = False

    def set_estimator(self, estimator: Any) -> None:
        """Say whose checkpoints are evaluated."""
        self._estimator = estimator

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the step."""
        return SessionRunArgs(get_global_step())

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        """Evaluate, if it is time and there is a new checkpoint."""
        step = int(run_values.results) + 1
        if step - self._last < self._every and self._last:
            return
        path = self._estimator.latest_checkpoint()
        if path is None or path == self._checkpoint:
            return
        self._checkpoint, self._last = path, step
        found = self._estimator.evaluate(**self._given, checkpoint_path=path)
        logs.info("Validation (step %d): %s", step, ", ".join(f"{k} = {v}" for k, v in sorted(found.items())))
        if self._patience is None:
            return
        if self._metric not in found:
            what = f"ValidationMonitor: there is no metric {self._metric!r}, at {here()}"
            raise ArgumentError(what, f"There are {', '.join(sorted(found))}.")
        value = found[self._metric]
        if self.best_value is None or self._sign * value < self._sign * self.best_value:
            self.best_step, self.best_value, self.best_metrics = step, value, found
        elif step - self.best_step >= self._patience:
            logs.info("Stopping. Best step: %d with %s = %s.", self.best_step, self._metric, self.best_value)
            self.early_stopped = True
            run_context.request_stop()

    @property
    def best_step_metrics(self) -> Any:
        """The metrics of the best step."""
        return self.best_metrics
