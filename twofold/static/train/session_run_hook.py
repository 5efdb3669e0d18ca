"""What takes part in the runs of a monitored session: ``tf.train.SessionRunHook`` and what it is given."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.graph.docstrings import example


@example("print(tf.train.SessionRunArgs([1]).fetches)", "[1]")
class SessionRunArgs(NamedTuple):
    """What is asked of a run: fetches, what is fed for it, and ``RunOptions``."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


@example("print(tf.train.SessionRunValues([1]).results)", "[1]")
class SessionRunValues(NamedTuple):
    """What a run gave: the values of a hook's fetches."""

    results: Any
    options: Any = None
    run_metadata: Any = None


@example(
    "context = tf.train.SessionRunContext(tf.train.SessionRunArgs([]), session)",
    "context.request_stop()",
    "print(context.stop_requested)",
    "True",
)
class SessionRunContext:
    """The run that a hook takes part in.

    Args:
        original_args: What the caller of ``run`` asked for.
        session: The session that runs.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self.original_args, self.session = original_args, session
        self._stop_requested = False

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked for an end."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Have ``should_stop`` of the session be true after this run."""
        self._stop_requested = True


class SessionRunHook:
    """Does nothing; subclasses do something at the points of time that they override.

    >>> import twofold.static as tf
    >>> class Counting(tf.train.SessionRunHook):
    ...     runs = 0
    ...     def after_run(self, run_context, run_values):
    ...         self.runs += 1
    >>> counting = Counting()
    >>> with tf.Graph().as_default():
    ...     x = tf.constant(1.0)
    ...     with tf.train.MonitoredSession(hooks=[counting]) as session:
    ...         print(session.run(x), counting.runs)
    1.0 1
    """

    def begin(self) -> None:
        """Called once before the session is made; the graph may still be added to."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when the session is made; the graph is finalised."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; what it returns is run beside what the caller asked for."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that raised nothing."""

    def end(self, session: Any) -> None:
        """Called at the end, unless that is an error other than OutOfRangeError and StopIteration."""


@example(
    "timer = tf.train.SecondOrStepTimer(every_steps=2)",
    "found = timer.update_last_triggered_step(4)",
    "print(timer.should_trigger_for_step(5), timer.should_trigger_for_step(6))",
    "False True",
)
class SecondOrStepTimer:
    """Says when so many seconds or steps have passed since the last time.

    Args:
        every_secs: How many seconds.
        every_steps: How many steps; not together with ``every_secs``.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        check_intervals("SecondOrStepTimer", every_secs=every_secs, every_steps=every_steps)
        self._seconds, self._steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        """Forget the last time."""
        self._step: int | None = None
        self._time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is time at a step: at the first one asked for, and then once for each interval."""
        if self._step is None or self._time is None:
            return True
        if self._step == step:
            return False
        if self._seconds is not None:
            return time.monotonic() >= self._time + self._seconds
        assert self._steps is not None
        return step >= self._step + self._steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that this step was the last time; the seconds and steps since the one before, None at the first."""
        now = time.monotonic()
        passed = (
            (None, None)
            if self._step is None or self._time is None
            else (now - self._time, step - self._step)
        )
        self._time, self._step = now, step
        return passed

    def last_triggered_step(self) -> int | None:
        """The step of the last time."""
        return self._step


class NeverTriggerTimer(SecondOrStepTimer):
    """A timer that never says that it is time."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False


def check_intervals(what: str, **intervals: Any) -> None:
    """Raise ArgumentError unless exactly one interval is given."""
    if sum(value is not None for value in intervals.values()) != 1:
        names = " and ".join(intervals)
        raise ArgumentError(f"{what}: exactly one of {names} should be given, at {here()}", "Give one.")
