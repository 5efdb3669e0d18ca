"""Training that writes checkpoints and summaries at times of its own: ``tf.train.Supervisor``."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from twofold.errors import ArgumentError
from twofold.event_files import scalar_summary
from twofold.runtime.tracing import here
from twofold.static.data.coordinator import Coordinator
from twofold.static.data.queues import start_queue_runners
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.platform import logs
from twofold.static.saving.saver import Saver
from twofold.static.summary import FileWriter, merge_all
from twofold.static.train.monitored_session import Scaffold, SessionManager
from twofold.static.train.session_hooks import STEP_RATE
from twofold.static.train.step_counter import get_global_step
from twofold.static.variables.initialization import report_uninitialized_variables
from twofold.static.variables.variable import global_variables, global_variables_initializer


class LooperThread(threading.Thread):
    """Calls a function at once and then after each interval, until the coordinator asks for an end.

    Args:
        coord: The coordinator, which learns of errors.
        timer_interval_secs: The interval; None for no pause.
        target: The function; ``run_loop`` of a subclass unless given.
        args: Its arguments.
        kwargs: Its arguments by name.

    >>> import twofold.static as tf
    >>> coordinator = tf.train.Coordinator()
    >>> thread = tf.train.LooperThread(coordinator, None, coordinator.request_stop)
    >>> thread.start()
    >>> coordinator.join()
    >>> coordinator.should_stop()
    True
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Any = None,
    ) -> None:
        super().__init__(daemon=True)
        self._coordinator, self._interval = coord, timer_interval_secs
        self._function, self._arguments, self._named = target, tuple(args or ()), dict(kwargs or {})
        coord.register_thread(self)

    def run(self) -> None:
        """Call it until the end."""
        with self._coordinator.stop_on_exception():
            due = time.monotonic()
            while not self._stops(due):
                due += self._interval or 0.0
                self.run_loop()

    def _stops(self, due: float) -> bool:
        """Wait until it is time; whether there is an end first."""
        if self._interval is None:
            return self._coordinator.should_stop()
        return self._coordinator.wait_for_stop(max(due - time.monotonic(), 0.0))

    def run_loop(self) -> None:
        """One call."""
        if self._function is not None:
            self._function(*self._arguments, **self._named)


_DEFAULT: Any = object()


@example(
    "v = tf.Variable(2.0)",
    "supervisor = tf.train.Supervisor()",
    "with supervisor.managed_session() as session:",
    "    print(session.run(v), supervisor.should_stop())",
    "2.0 False",
)
class Supervisor:
    """Prepares sessions, and writes checkpoints and summaries beside the training.

    The graph is finalised. What is not given is made in it; None stands for none. ``recovery_wait_secs`` and
    ``local_init_run_options`` change nothing.

    Args:
        graph: The graph; the default one unless given.
        ready_op: The names of the variables that have no value.
        ready_for_local_init_op: The same before ``local_init_op``.
        is_chief: Must be true: there is one process.
        init_op: Gives variables their first values.
        init_feed_dict: Fed for it.
        local_init_op: Run in every new session.
        logdir: The directory of checkpoints and events; nothing is written without one.
        summary_op: The summary of all.
        saver: What reads and writes checkpoints.
        global_step: The variable that counts steps.
        save_summaries_secs: The interval of summaries; 0 for none.
        save_model_secs: The interval of checkpoints; 0 for none.
        recovery_wait_secs: See above.
        stop_grace_secs: How long threads may take to end.
        checkpoint_basename: The name of the checkpoints.
        session_manager: What makes sessions.
        summary_writer: What writes events.
        init_fn: A function of the session, called after ``init_op``.
        local_init_run_options: See above.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = _DEFAULT,
        ready_for_local_init_op: Any = _DEFAULT,
        is_chief: bool = True,
        init_op: Any = _DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = _DEFAULT,
        logdir: Any = None,
        summary_op: Any = _DEFAULT,
        saver: Any = _DEFAULT,
        global_step: Any = _DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = _DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        if not is_chief:
            raise ArgumentError(f"Supervisor: is_chief is false, at {here()}", "Use one process.")
        self.graph, self.is_chief = graph or get_default_graph(), is_chief
        self.init_feed_dict, self.init_fn = init_feed_dict, init_fn
        self.save_summaries_secs, self.save_model_secs = save_summaries_secs, save_model_secs
        self._grace, self._folder = stop_grace_secs, None if logdir is None else os.fsdecode(logdir)
        self.save_path = None if self._folder is None else os.path.join(self._folder, checkpoint_basename)
        self.coord = Coordinator()
        with self.graph.as_default():
            self._declare(ready_op, init_op, local_init_op, summary_op, saver, global_step)
            early = None if ready_for_local_init_op is _DEFAULT else ready_for_local_init_op
            if summary_writer is not _DEFAULT:
                self.summary_writer = summary_writer
            else:
                self.summary_writer = None if self._folder is None else FileWriter(self._folder)
            self.session_manager = session_manager or SessionManager(
                self.local_init_op, self.ready_op, early, self.graph
            )
            self.graph.finalize()

    def _declare(
        self, ready_op: Any, init_op: Any, local_init_op: Any, summary_op: Any, saver: Any, global_step: Any
    ) -> None:
        """Make what is not given."""

        def chosen(given: Any, name: str, key: str, make: Callable[[], Any]) -> Any:
            return given if given is not _DEFAULT else Scaffold.get_or_default(name, key, make)

        self.ready_op = chosen(ready_op, "ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        self.init_op = chosen(init_op, "init_op", GraphKeys.INIT_OP, global_variables_initializer)
        self.local_init_op = chosen(
            local_init_op, "local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
        )
        self.summary_op = chosen(summary_op, "summary_op", GraphKeys.SUMMARY_OP, merge_all)
        self.saver = chosen(saver, "saver", GraphKeys.SAVERS, lambda: Saver() if global_variables() else None)
        self.global_step = get_global_step() if global_step is _DEFAULT else global_step

    # Sessions

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session that is ready, with its queue runners and, unless refused, services started."""
        self.coord.clear_stop()
        session = self.session_manager.prepare_session(
            master,
            self.init_op,
            self.saver,
            self._folder,
            None,
            wait_for_checkpoint,
            max_wait_secs,
            config,
            self.init_feed_dict,
            self.init_fn,
        )
        if self.summary_writer is not None:
            self.summary_writer.add_graph(self.graph)
        if start_standard_services:
            self.start_standard_services(session)
        self.start_queue_runners(session)
        return session

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A block with a session that is ready, at the end of which all threads are stopped.

        OutOfRangeError ends the block as if nothing had been raised.
        """
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def start_standard_services(self, sess: Any) -> list[LooperThread]:
        """Start the threads that write summaries, the rate of steps and checkpoints; those threads."""
        if self._folder is None:
            logs.warning("Standard services need a 'logdir' passed to the SessionManager")
            return []
        threads = []

        def start(seconds: float, function: Callable[[], Any]) -> None:
            threads.append(LooperThread(self.coord, seconds, function))

        if self.save_summaries_secs and self.summary_writer is not None:
            if self.summary_op is not None:
                start(
                    self.save_summaries_secs, lambda: self.summary_computed(sess, sess.run(self.summary_op))
                )
            if self.global_step is not None:
                start(self.save_summaries_secs, self._rate(sess))
        if self.saver is not None and self.save_model_secs:
            start(
                self.save_model_secs,
                lambda: self.saver.save(sess, self.save_path, global_step=self.global_step),
            )
        for thread in threads:
            thread.start()
        return threads

    def _rate(self, session: Any) -> Callable[[], None]:
        """Writes how many steps a second there were since the last call."""
        last: list[tuple[float, int]] = []

        def write() -> None:
            now, step = time.monotonic(), int(session.run(self.global_step))
            if last and now > last[-1][0]:
                rate = (step - last[-1][1]) / (now - last[-1][0])
                self.summary_writer.add_summary(scalar_summary(STEP_RATE, rate), step)
            last[:] = [(now, step)]

        return write

    def start_queue_runners(
        self, sess: Any, queue_runners: Sequence[Any] | None = None
    ) -> list[threading.Thread]:
        """Start queue runners, those of the graph unless given; their threads."""
        if queue_runners is None:
            return start_queue_runners(sess, self.coord)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, self.coord, True, True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Any = None,
    ) -> LooperThread:
        """Call a function in a thread, again after each interval; the thread."""
        thread = LooperThread(self.coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Write a summary; at the present step unless one is given."""
        if self.summary_writer is None:
            raise RuntimeError(f"Writing a summary requires a summary writer, at {here()}. Give a logdir.")
        if global_step is None and self.global_step is not None:
            global_step = sess.run(self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    # Ends

    def stop(
        self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False
    ) -> None:
        """Stop all threads and wait for them; an error of one is raised."""
        self.coord.request_stop()
        try:
            self.coord.join(threads, self._grace, ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                self.summary_writer.close()

    def request_stop(self, ex: Any = None) -> None:
        """Have all threads stop, because of an error perhaps."""
        self.coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Whether all should stop."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A block in which an error makes all threads stop."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until all should stop."""
        self.coord.wait_for_stop()

    PrepareSession, StartQueueRunners = prepare_or_wait_for_session, start_queue_runners
    StartStandardServices, Stop, RequestStop = start_standard_services, stop, request_stop
    Loop, ShouldStop, StopOnException = loop, should_stop, stop_on_exception
    WaitForStop, SummaryComputed = wait_for_stop, summary_computed


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Any = None,
    master: str = "",
) -> None:
    """Call ``train_step_fn(session, *args, **kwargs)`` until the supervisor says to stop.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     supervisor = tf.train.Supervisor(logdir=None)
    ...     tf.train.basic_train_loop(supervisor, lambda session: supervisor.request_stop())
    """
    with supervisor.managed_session(master) as session:
        while not supervisor.should_stop():
            train_step_fn(session, *(args or ()), **dict(kwargs or {}))
