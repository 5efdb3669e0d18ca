"""Hooks that end the training of estimators by what was evaluated: ``tf.contrib.estimator``."""

from __future__ import annotations

import operator
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from twofold.static.platform import logs
from twofold.static.protobuf.summary import summary_iterator
from twofold.static.train.session_run_hook import SecondOrStepTimer, SessionRunArgs, SessionRunHook
from twofold.static.train.step_counter import get_global_step


def read_eval_metrics(eval_dir: Any) -> OrderedDict[int, dict[str, Any]]:
    """The metrics that evaluations wrote to a directory, by the global steps."""
    folder = os.fspath(eval_dir)
    found: dict[int, dict[str, Any]] = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        for event in summary_iterator(os.path.join(folder, name)) if "tfevents" in name else ():
            values = {
                one.tag: one.simple_value for one in event.summary.value if one.HasField("simple_value")
            }
            if values:
                found.setdefault(event.step, {}).update(values)
    return OrderedDict(sorted(found.items()))


class _Stopping(SessionRunHook):
    def __init__(
        self, should_stop: Callable[[], bool], every_secs: float | None, every_steps: int | None
    ) -> None:
        self._should_stop = should_stop
        self._timer = SecondOrStepTimer(every_secs=every_secs, every_steps=every_steps)

    def begin(self) -> None:
        """Find the step."""
        self._step = get_global_step()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Ask for the step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stop, if it is time to ask and time to stop."""
        if self._timer.should_trigger_for_step(run_values.results):
            self._timer.update_last_triggered_step(run_values.results)
            if self._should_stop():
                logs.info("Requesting early stopping at global step %d", run_values.results)
                run_context.request_stop()


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that ends training when a function says so, asked after so many seconds or steps.

    Args:
        estimator: The estimator, whose training it is for.
        should_stop_fn: A function without arguments.
        run_every_secs, run_every_steps: How often it is asked; one of them must be None.
    """
    return _Stopping(should_stop_fn, run_every_secs, run_every_steps)


def _by_threshold(name: str, words: str, better: Callable[[Any, Any], bool]) -> Callable[..., SessionRunHook]:
    def hook(
        estimator: Any,
        metric_name: str,
        threshold: float,
        eval_dir: Any = None,
        min_steps: int = 0,
        run_every_secs: float | None = 60,
        run_every_steps: int | None = None,
    ) -> SessionRunHook:
        def should_stop() -> bool:
            found = read_eval_metrics(eval_dir or estimator.eval_dir()).items()
            return any(better(one[metric_name], threshold) for step, one in found if step >= min_steps)

        return _Stopping(should_stop, run_every_secs, run_every_steps)

    hook.__name__ = hook.__qualname__ = name
    hook.__doc__ = f"A hook that ends training when a metric was evaluated {words} than ``threshold``."
    return hook


stop_if_higher_hook = _by_threshold("stop_if_higher_hook", "higher", operator.gt)
stop_if_lower_hook = _by_threshold("stop_if_lower_hook", "lower", operator.lt)


def _stalled(
    folder: Any, name: str, most: int, min_steps: int, better: Callable[[Any, Any], bool]
) -> Callable[[], bool]:
    """Whether the last ``most`` steps have not made a metric better."""

    def should_stop() -> bool:
        best: tuple[Any, int] | None = None
        for step, metrics in read_eval_metrics(folder).items():
            if step < min_steps:
                continue
            if best is None or better(metrics[name], best[0]):
                best = metrics[name], step
            if step - best[1] >= most:
                return True
        return False

    return should_stop


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that ends training when a metric has not increased for so many steps.

    Args:
        estimator: The estimator.
        metric_name: The metric.
        max_steps_without_increase: How many steps.
        eval_dir: Where evaluations are written; that of the estimator unless given.
        min_steps: Evaluations of earlier steps do not count.
        run_every_secs, run_every_steps: How often it is asked; one of them must be None.
    """
    folder = eval_dir or estimator.eval_dir()
    stop = _stalled(folder, metric_name, max_steps_without_increase, min_steps, operator.gt)
    return _Stopping(stop, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """``stop_if_no_increase_hook`` for a metric that is to become small."""
    folder = eval_dir or estimator.eval_dir()
    stop = _stalled(folder, metric_name, max_steps_without_decrease, min_steps, operator.lt)
    return _Stopping(stop, run_every_secs, run_every_steps)
