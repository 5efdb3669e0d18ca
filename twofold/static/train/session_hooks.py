"""Hooks for training loops: checkpoints, summaries, messages and ends (``tf.train.LoggingTensorHook`` and its kin)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.event_files import scalar_summary
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph_util import write_graph
from twofold.static.platform import logs
from twofold.static.summary import FileWriterCache
from twofold.static.train.session_run_hook import (
    NeverTriggerTimer,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    check_intervals,
)
from twofold.static.train.step_counter import get_global_step

STEP_RATE = "global_step/sec"
_STEP_READ = "global_step_read_op_cache"  # the collection that TensorFlow has for it


@example("print(tf.train.NanLossDuringTrainingError())", "NaN loss during training.")
class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


def _shown(tensor: str, hook: str, result: str, shown: str = "found") -> Callable[[Any], Any]:
    """An example: what a session with a hook makes of a tensor."""
    block = ("with tf.train.MonitoredSession(hooks=[hook]) as monitored:", "    found = monitored.run(x)")
    return example(f"x = {tensor}", f"hook = tf.train.{hook}", *block, f"print({shown})", result)


_STEP = "tf.assign_add(tf.train.create_global_step(), 1)"


def _needed_step(what: str) -> Any:
    """What reads the step: in a run that counts it up, the value from before."""
    step: Any = get_global_step()
    graph = get_default_graph()
    if step is None:
        raise RuntimeError(
            f"Global step should be created to use {what}, at {here()}. Call tf.train.create_global_step()."
        )
    if not graph.get_collection(_STEP_READ):
        with graph.name_scope(f"{step.op.name}/"):
            graph.add_to_collection(_STEP_READ, step + 0)  # a fetch of the variable would see the update
    return graph.get_collection(_STEP_READ)[0]


class _StepHook(SessionRunHook):
    """A hook that is told the step in each run: that from before its update."""

    def begin(self) -> None:
        """Find the step."""
        self._step = _needed_step(type(self).__name__)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Ask for the step."""
        return SessionRunArgs(self._step)


class _WritingHook(_StepHook):
    """A hook that writes for TensorBoard, if it is given a writer or a directory."""

    _writer: Any
    _folder: Any

    def begin(self) -> None:
        """Find the step and the writer."""
        super().begin()
        if self._writer is None and self._folder:
            self._writer = FileWriterCache.get(self._folder)


def _found_tensor(item: Any) -> Any:
    """The tensor that ``item`` is or names: an operation's name stands for its only output."""
    graph = get_default_graph()
    if isinstance(item, str) and ":" not in item:
        outputs = len(graph.get_operation_by_name(item).outputs)
        if outputs > 1:
            raise ArgumentError(
                f"LoggingTensorHook: {item!r} is ambiguous, the operation has {outputs} outputs, at {here()}",
                f"Give '{item}:0' or another one.",
            )
        item = f"{item}:0"
    return graph.as_graph_element(as_tensor(item))


@_shown("tf.constant(1.0)", 'LoggingTensorHook({"x": x}, every_n_iter=10)', "1.0")
class LoggingTensorHook(SessionRunHook):
    """Shows the values of tensors (``tf.logging.info``).

    Args:
        tensors: Tensors or their names, without ":0" those of operations with one output, or a dictionary of them by
            what they are called.
        every_n_iter: How many runs lie between messages.
        every_n_secs: How many seconds; not together with ``every_n_iter``.
        at_end: Whether there is a message at the end, too; then neither of the others is needed.
        formatter: A function of the values by name that returns the message.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self._only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not self._only_at_end:
            check_intervals("LoggingTensorHook", every_n_iter=every_n_iter, every_n_secs=every_n_secs)
        if every_n_iter is not None and every_n_iter <= 0:
            raise ArgumentError(
                f"LoggingTensorHook: invalid every_n_iter={every_n_iter}, at {here()}", "Above 0."
            )
        self._tensors = dict(tensors) if isinstance(tensors, Mapping) else {item: item for item in tensors}
        self._formatter, self._at_end = formatter, at_end
        self._timer = (
            NeverTriggerTimer() if self._only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        )

    def begin(self) -> None:
        """Find the tensors."""
        self._timer.reset()
        self._count = 0
        self._found = {tag: _found_tensor(item) for tag, item in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Ask for the values where it is time."""
        self._due = self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._found) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Show them."""
        if self._due:
            self._show(run_values.results)
        self._count += 1

    def end(self, session: Any) -> None:
        """Show them once more with ``at_end``."""
        if self._at_end:
            self._show(session.run(self._found))

    def _show(self, values: dict[Any, Any]) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._count)
        if self._formatter is not None:
            logs.info("%s", self._formatter(values))
            return
        with numpy.printoptions(suppress=True):
            text = ", ".join(f"{getattr(tag, 'name', tag)} = {value}" for tag, value in values.items())
        logs.info("%s", text if seconds is None else f"{text} ({seconds:.3f} sec)")


@example(
    "x = tf.assign_add(tf.train.create_global_step(), 1)",
    "hook = tf.train.StopAtStepHook(last_step=1)",
    "with tf.train.MonitoredSession(hooks=[hook]) as monitored:",
    "    found = int(monitored.run(x)), monitored.should_stop()",
    "print(found)",
    "(1, True)",
)
class StopAtStepHook(_StepHook):
    """Ends after a number of steps.

    Args:
        num_steps: How many steps from the first one of the session on.
        last_step: How many steps in all; not together with ``num_steps``.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        check_intervals("StopAtStepHook", num_steps=num_steps, last_step=last_step)
        self._num_steps, self._last_step = num_steps, last_step

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Count from the step that the session begins with."""
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._step)) + self._num_steps

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ask for an end where it is reached; the step of the run is that from before its update."""
        assert self._last_step is not None
        if run_values.results + 1 >= self._last_step and (
            run_context.session.run(self._step) >= self._last_step
        ):
            run_context.request_stop()


@example(
    "class Counting(tf.train.CheckpointSaverListener):",
    "    saved = 0",
    "    def after_save(self, session, global_step_value):",
    "        self.saved += 1",
    "print(Counting().saved)",
    "0",
)
class CheckpointSaverListener:
    """Told when a ``CheckpointSaverHook`` writes; does nothing unless overridden."""

    def begin(self) -> None:
        """Called once before the session is made."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Called after a checkpoint was written; True ends the training."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end."""


@example(
    "import os, tempfile",
    "x = tf.assign_add(tf.train.create_global_step(), 1)",
    "with tempfile.TemporaryDirectory() as folder:",
    "    hook = tf.train.CheckpointSaverHook(folder, save_steps=10, saver=tf.train.Saver())",
    "    with tf.train.MonitoredSession(hooks=[hook]) as monitored:",
    "        found = monitored.run(x)",
    "    path = tf.train.latest_checkpoint(folder)",
    "print(os.path.basename(path))",
    "model.ckpt-1",
)
class CheckpointSaverHook(_StepHook):
    """Writes checkpoints: at the beginning, after each interval, and at the end.

    Args:
        checkpoint_dir: The directory.
        save_secs: How many seconds lie between them.
        save_steps: How many steps; not together with ``save_secs``.
        saver: What writes them; that of ``scaffold``, or the only one in the graph's collection, unless given.
        checkpoint_basename: The name of the files.
        scaffold: What has the saver, where ``saver`` is not given.
        listeners: Instances of ``CheckpointSaverListener``.
    """

    def __init__(
        self,
        checkpoint_dir: Any,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[Any] | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ArgumentError(
                f"CheckpointSaverHook: both saver and scaffold, at {here()}", "Give one of them."
            )
        self._folder = os.fsdecode(checkpoint_dir)
        self._path = os.path.join(self._folder, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._given, self._scaffold, self._listeners = saver, scaffold, list(listeners or [])

    def begin(self) -> None:
        """Find the step."""
        super().begin()
        for listener in self._listeners:
            listener.begin()

    @property
    def _saver(self) -> Any:
        saver = self._given if self._scaffold is None else self._scaffold.saver
        if saver is not None:
            return saver
        found = get_default_graph().get_collection(GraphKeys.SAVERS)
        if len(found) != 1:
            raise RuntimeError(
                f"CheckpointSaverHook: the graph has {len(found)} savers, at {here()}. Give saver or scaffold."
            )
        return found[0]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Write the graph and the first checkpoint."""
        write_graph(session.graph, self._folder, "graph.pbtxt")
        step = session.run(self._step)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write a checkpoint where it is time."""
        if self._timer.should_trigger_for_step(run_values.results + 1):
            step = run_context.session.run(self._step)
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def end(self, session: Any) -> None:
        """Write the last checkpoint, unless that step has one."""
        step = session.run(self._step)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: Any) -> bool:
        """Whether a listener wants an end."""
        logs.info("Saving checkpoints for %d into %s.", step, self._path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._saver.save(session, self._path, step)
        answers = [listener.after_save(session, step) for listener in self._listeners]  # all are told
        return any(answers)


@_shown(_STEP, 'SummarySaverHook(save_steps=1, summary_op=tf.summary.scalar("x", x))', "1")
class SummarySaverHook(_WritingHook):
    """Writes summaries after each interval.

    Args:
        save_steps: How many steps lie between them.
        save_secs: How many seconds; not together with ``save_steps``.
        output_dir: The directory, where ``summary_writer`` is not given.
        summary_writer: What writes them.
        scaffold: What has the summary, where ``summary_op`` is not given.
        summary_op: A summary, or several of them.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ArgumentError(
                f"SummarySaverHook: exactly one of scaffold or summary_op must be provided, at {here()}",
                "Give one.",
            )
        self._given, self._scaffold = summary_op, scaffold
        self._writer, self._folder = summary_writer, output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._next: int | None = None

    def begin(self) -> None:
        """Find the step and the writer."""
        super().begin()
        self._next = None

    def _summaries(self) -> list[Any]:
        given = self._given if self._scaffold is None else self._scaffold.summary_op
        return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the step, and for the summaries where it is time."""
        self._due = self._next is None or self._timer.should_trigger_for_step(self._next)
        return SessionRunArgs({"step": self._step, "summary": self._summaries() if self._due else []})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write them."""
        if self._writer is None:
            return
        step = run_values.results["step"] + 1
        if self._due:
            step = run_context.session.run(self._step)
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results["summary"]:
                self._writer.add_summary(summary, step)
        self._next = step + 1

    def end(self, session: Any) -> None:
        """Let all be seen."""
        if self._writer is not None:
            self._writer.flush()


@_shown(_STEP, "StepCounterHook(every_n_steps=10)", "1")
class StepCounterHook(_WritingHook):
    """Shows and writes how many steps a second there are.

    Args:
        every_n_steps: How many steps lie between the measurements.
        every_n_secs: How many seconds; then ``every_n_steps`` is None.
        output_dir: The directory of the event file, where ``summary_writer`` is not given.
        summary_writer: What writes events.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        check_intervals("StepCounterHook", every_n_steps=every_n_steps, every_n_secs=every_n_secs)
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._writer, self._folder = summary_writer, output_dir

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Show the rate where it is time."""
        if not self._timer.should_trigger_for_step(run_values.results + 1):
            return
        step = run_context.session.run(self._step)
        if not self._timer.should_trigger_for_step(step):
            return
        seconds, steps = self._timer.update_last_triggered_step(step)
        if seconds and steps is not None:
            rate = steps / seconds
            if self._writer is not None:
                self._writer.add_summary(scalar_summary(STEP_RATE, rate), step)
            logs.info("%s: %g", STEP_RATE, rate)


@_shown("tf.constant(1.0)", "NanTensorHook(x)", "1.0")
class NanTensorHook(SessionRunHook):
    """Ends the training where the loss is not a number: with NanLossDuringTrainingError or, if asked for, quietly."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Look at it."""
        if numpy.isnan(run_values.results).any():
            message = "Model diverged with loss = NaN."
            if self._fails:
                logs.error(message)
                raise NanLossDuringTrainingError
            logs.warning(message)
            run_context.request_stop()


@_shown(_STEP, "GlobalStepWaiterHook(0)", "1")
class GlobalStepWaiterHook(_StepHook):
    """Delays the first run until other sessions' training has reached a step."""

    def __init__(self, wait_until_step: int) -> None:
        self._until = wait_until_step

    def begin(self) -> None:
        """Find the step."""
        super().begin()
        self._reached = self._until <= 0

    def before_run(self, run_context: SessionRunContext) -> None:
        """Wait."""
        while not self._reached:
            self._reached = bool(run_context.session.run(self._step) >= self._until)
            if not self._reached:
                time.sleep(0.5)


@_shown("tf.constant(1.0)", "FinalOpsHook(x * 2.0)", "1.0 2.0", "found, hook.final_ops_values")
class FinalOpsHook(SessionRunHook):
    """Runs something at the end; its values are ``final_ops_values``."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._ops, self._feeds = final_ops, final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Any) -> None:
        """Run it."""
        if self._ops is not None:
            self.final_ops_values = session.run(self._ops, self._feeds)


@_shown("tf.constant(1.0)", "FeedFnHook(lambda: {x: 3.0})", "3.0")
class FeedFnHook(SessionRunHook):
    """Feeds what a function returns, which is called before each run."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask the function."""
        return SessionRunArgs(None, self.feed_fn())
