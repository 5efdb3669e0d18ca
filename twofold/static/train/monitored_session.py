"""Sessions that prepare themselves and tell hooks of their runs: ``tf.train.MonitoredTrainingSession`` and its kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.api.signatures import takes
from twofold.static.control_flow.dependencies import group
from twofold.static.data.coordinator import Coordinator
from twofold.static.data.queues import start_queue_runners
from twofold.static.errors import OutOfRangeError
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.saving.saver import Saver, get_checkpoint_state
from twofold.static.session.config import RunMetadata, merged_options
from twofold.static.session.session import Session
from twofold.static.summary import merge_all
from twofold.static.train.session_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from twofold.static.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunValues
from twofold.static.variables.initialization import report_uninitialized_variables
from twofold.static.variables.variable import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
)

_DEFAULT: Any = object()
_NONE: Any = None


@example(
    'v = tf.get_variable("v", initializer=2.0)',
    "scaffold = tf.train.Scaffold().finalize()",
    "print(scaffold.init_op.type, tf.get_default_graph().finalized)",
    "NoOp True",
)
class Scaffold:
    """What a session needs before the first run; what is not given is found or made in the default graph.

    Args:
        init_op: Gives variables their values where no checkpoint does.
        init_feed_dict: Fed for it.
        init_fn: A function of the scaffold and the session, called after ``init_op``.
        ready_op: The names of the variables that have no value.
        ready_for_local_init_op: The same before ``local_init_op``.
        local_init_op: Run in every new session.
        summary_op: The summary of all.
        saver: What reads and writes checkpoints.
        copy_from_scaffold: Another scaffold, whose parts stand in for those that are not given.
    """

    init_op = init_feed_dict = init_fn = ready_op = ready_for_local_init_op = local_init_op = _NONE
    summary_op = saver = _NONE

    @takes(
        "init_op=None, init_feed_dict=None, init_fn=None, ready_op=None, ready_for_local_init_op=None, "
        "local_init_op=None, summary_op=None, saver=None, copy_from_scaffold=None"
    )
    def __init__(self, **given: Any) -> None:
        other = given.pop("copy_from_scaffold")
        for name, value in given.items():
            setattr(self, name, getattr(other, name, None) if value is None else value)

    def finalize(self) -> Scaffold:
        """Make what is missing, and let the graph not be added to any more; returns itself."""

        def made(name: str, key: str, make: Callable[[], Any]) -> None:
            if getattr(self, name) is None:
                setattr(self, name, self.get_or_default(name, key, make))

        made("init_op", GraphKeys.INIT_OP, lambda: group(global_variables_initializer()))
        made("ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        made(
            "ready_for_local_init_op",
            GraphKeys.READY_FOR_LOCAL_INIT_OP,
            lambda: report_uninitialized_variables(global_variables()),
        )
        made("local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op)
        made("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        made("saver", GraphKeys.SAVERS, lambda: Saver(allow_empty=True, defer_build=True))
        self.saver.build()
        get_default_graph().finalize()
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """What a collection of the default graph holds, else what is made and put there.

        Raises RuntimeError where the collection holds several.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f"More than one item in the collection {collection_key!r}, at {here()}. Give {arg_name} of Scaffold."
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """Gives local variables and tables their first values."""
        tables = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
        return group(local_variables_initializer(), *tables)


@example(
    'v = tf.get_variable("v", initializer=2.0)',
    "manager, start = tf.train.SessionManager(), tf.global_variables_initializer()",
    'ready = manager.prepare_session("", start)',
    "print(ready.run(v))",
    "2.0",
)
class SessionManager:
    """Makes sessions whose variables have values: those of a checkpoint, or their first ones.

    Args:
        local_init_op: Run in every new session.
        ready_op: The names of the variables that have no value.
        ready_for_local_init_op: The same before ``local_init_op``.
        graph: The graph of the sessions; the default one unless given.
        recovery_wait_secs: For several processes; changes nothing.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Any = None,
        recovery_wait_secs: float = 30,
    ) -> None:
        self._local, self._graph = local_init_op, graph or get_default_graph()
        self._ready, self._ready_for_local = ready_op, ready_for_local_init_op

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """A session that is ready; ``wait_for_checkpoint`` is refused.

        Raises RuntimeError where a variable has no value after all.
        """
        refuse("prepare_session", wait_for_checkpoint=wait_for_checkpoint)
        session, restored = self.recover_session(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, config=config
        )
        if not restored:
            if init_op is None and init_fn is None and self._local is None:
                raise RuntimeError(
                    f"Model is not initialized and no init_op or init_fn or local_init_op was given, at {here()}."
                )
            if init_op is not None:
                session.run(init_op, init_feed_dict)
            if init_fn is not None:
                init_fn(session)
        self._finish(session)
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """A session, and whether it has the values of a checkpoint; ``wait_for_checkpoint`` is refused.

        Raises ValueError where the checkpoint that the directory names as its newest is missing.
        """
        refuse("recover_session", wait_for_checkpoint=wait_for_checkpoint)
        session = Session(master, self._graph, config)
        if saver is None:
            return session, False
        if checkpoint_filename_with_path is not None:
            saver.restore(session, checkpoint_filename_with_path)
            return session, True
        state = None if checkpoint_dir is None else get_checkpoint_state(checkpoint_dir)
        if state is None:
            return session, False
        saver.restore(session, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True

    def _finish(self, session: Session) -> None:
        if self._local is not None:
            self._check(session, self._ready_for_local, "ready for local_init_op")
            session.run(self._local)
        self._check(session, self._ready, "ready")

    @staticmethod
    def _check(session: Session, asked: Any, what: str) -> None:
        if asked is not None and len(missing := session.run(asked)):
            names = ", ".join(name.decode() for name in missing)
            raise RuntimeError(
                f"Init operations did not make model {what}: {names} have no value, at {here()}."
            )


@example(
    "class Creator(tf.train.SessionCreator):",
    "    def create_session(self):",
    "        return tf.Session()",
    "with tf.train.MonitoredSession(Creator()) as monitored:",
    "    found = monitored.run(tf.get_default_graph().get_operations())",
    "print(found)",
    "[]",
)
class SessionCreator:
    """Makes the session of a ``MonitoredSession``."""

    def create_session(self) -> Any:
        """The session."""
        raise NotImplementedError("create_session is not implemented for SessionCreator.")


@example(
    'v = tf.get_variable("v", initializer=2.0)',
    "creator = tf.train.ChiefSessionCreator()",
    "print(creator.create_session().run(v))",
    "2.0",
)
class ChiefSessionCreator(SessionCreator):
    """Makes sessions from a checkpoint, else from the first values of the variables.

    Args:
        scaffold: A ``Scaffold``.
        master: The target of the session.
        config: A ``ConfigProto``.
        checkpoint_dir: Where the newest checkpoint is looked for.
        checkpoint_filename_with_path: A certain checkpoint.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._folder, self._path = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        manager = SessionManager(scaffold.local_init_op, scaffold.ready_op, scaffold.ready_for_local_init_op)
        start = scaffold.init_fn
        return manager.prepare_session(
            self._master,
            scaffold.init_op,
            scaffold.saver,
            self._folder,
            self._path,
            config=self._config,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=None if start is None else lambda session: start(scaffold, session),
        )


class MonitoredSession:
    """A session that is ready, starts queue runners, and tells hooks of its runs.

    At the end of a ``with`` block hooks are told of the end, and OutOfRangeError ends the block as if nothing had been
    raised.

    Args:
        session_creator: Makes the session; ``ChiefSessionCreator()`` unless given.
        hooks: Instances of ``SessionRunHook``.
        stop_grace_period_secs: How long threads may take to end.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     step = tf.train.create_global_step()
    ...     count = tf.assign_add(step, 1)
    ...     with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=3)]) as session:
    ...         while not session.should_stop():
    ...             found = session.run(count)
    >>> int(found)
    3
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[Any] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._hooks, self._grace = list(hooks or []), stop_grace_period_secs
        self._graph = get_default_graph()
        self._was_finalized = self._graph.finalized
        for hook in self._hooks:
            hook.begin()
        self._coordinator = Coordinator()
        self._session: Any = (session_creator or ChiefSessionCreator()).create_session()
        self._stopped = False
        start_queue_runners(self._session, self._coordinator)
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coordinator)

    @property
    def graph(self) -> Any:
        """The graph; None after the end."""
        return None if self._session is None else self._session.graph

    @property
    def _resources(self) -> dict[Any, Any]:
        """What operations keep between runs, see ``graph.resources``."""
        found: dict[Any, Any] = self._session._resources
        return found

    def should_stop(self) -> bool:
        """Whether a hook or a thread asked for an end, or the session is closed."""
        return self._session is None or self._stopped or self._coordinator.should_stop()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of ``fetches``, as ``Session.run`` gives them.

        Raises RuntimeError after an end that was asked for.
        """
        if self._session is None:
            raise RuntimeError(f"Attempted to use a closed session, at {here()}.")
        if self._stopped:
            raise RuntimeError(f"Run called even after should_stop requested, at {here()}.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._session)
        wanted: dict[Any, Any] = {"caller": fetches}
        all_options = [] if options is None else [options]
        feeds = self._asked(context, wanted, feed_dict, all_options)
        options = merged_options(all_options)
        run_metadata = RunMetadata() if run_metadata is None else run_metadata
        try:
            found = self._session.run(wanted, feeds, options, run_metadata)
        except Exception:
            self._coordinator.raise_requested_exception()
            raise
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(found.get(hook), options, run_metadata))
        self._stopped = self._stopped or context.stop_requested
        return found["caller"]

    def _asked(
        self, context: SessionRunContext, wanted: dict[Any, Any], feed_dict: Any, all_options: list[Any]
    ) -> dict[Any, Any]:
        """Put the fetches of hooks in ``wanted`` and their options in ``all_options``; the feeds of all."""
        feeds: dict[Any, Any] = {}
        for hook in self._hooks:
            asked = hook.before_run(context)
            if asked is None:
                continue
            if asked.fetches is not None:
                wanted[hook] = asked.fetches
            if asked.options is not None:
                all_options.append(asked.options)
            for key, value in (asked.feed_dict or {}).items():
                if key in feeds:
                    raise RuntimeError(f"Same tensor is fed by two hooks, at {here()}.")
                feeds[key] = value
        given = dict(feed_dict or {})
        if given.keys() & feeds.keys():
            raise RuntimeError(f"Same tensor is fed by a SessionRunHook and user, at {here()}.")
        return {**feeds, **given}

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """What ``step_fn`` returns, a function of a ``StepContext``."""
        return step_fn(StepContext(self._session, self))

    def close(self) -> None:
        """Tell hooks of the end, and close the session; the graph may be added to again if it could be before.

        Raises RuntimeError if the session is closed.
        """
        self._close(None)

    def _close(self, kind: type[BaseException] | None) -> None:
        if self._session is None:
            raise RuntimeError(f"Session is already closed, at {here()}.")
        try:
            if kind is None:
                for hook in self._hooks:
                    hook.end(self._session)
        finally:
            session, self._session = self._session, None
            try:
                self._coordinator.request_stop()
                self._coordinator.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
            finally:
                session.close()
                if not self._was_finalized:
                    self._graph._unsafe_unfinalize()

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        ends = kind is not None and issubclass(kind, (OutOfRangeError, StopIteration))
        self._close(None if ends else kind)
        return ends


class StepContext:
    """What ``run_step_fn`` gives to its function."""

    def __init__(self, session: Any, monitored: MonitoredSession) -> None:
        self.session, self.run_with_hooks = session, monitored.run

    def request_stop(self) -> None:
        """End the training by StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


@example(
    'v = tf.get_variable("v", initializer=2.0)',
    "with tf.train.SingularMonitoredSession() as monitored:",
    "    found = monitored.raw_session().run(v)",
    "print(found)",
    "2.0",
)
class SingularMonitoredSession(MonitoredSession):
    """A ``MonitoredSession`` of one process, whose session is at hand.

    Args:
        hooks: Instances of ``SessionRunHook``.
        scaffold: A ``Scaffold``.
        master: The target of the session.
        config: A ``ConfigProto``.
        checkpoint_dir: Where the newest checkpoint is looked for.
        stop_grace_period_secs: How long threads may take to end.
        checkpoint_filename_with_path: A certain checkpoint.
    """

    def __init__(
        self,
        hooks: Sequence[Any] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: Any = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session itself."""
        return self._session


@example(
    'v = tf.get_variable("v", initializer=2.0)',
    "with tf.train.MonitoredTrainingSession() as monitored:",
    "    found = monitored.run(v)",
    "print(found)",
    "2.0",
)
def MonitoredTrainingSession(  # the name of a class of sessions in TensorFlow, too
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Sequence[Any] | None = None,
    save_checkpoint_secs: Any = _DEFAULT,
    save_summaries_steps: Any = _DEFAULT,
    save_summaries_secs: Any = _DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = _DEFAULT,
    summary_dir: Any = None,
) -> MonitoredSession:
    """A ``MonitoredSession`` for training, with the usual hooks where there is a directory for what they write.

    ``max_wait_secs`` is for several processes and changes nothing.

    Args:
        master: The target of the session.
        is_chief: Must be true: there is one process.
        checkpoint_dir: The directory of the checkpoints, of which the newest is restored.
        scaffold: A ``Scaffold``.
        hooks: Instances of ``SessionRunHook``.
        chief_only_hooks: More of them.
        save_checkpoint_secs: The interval of checkpoints; 600 unless that in steps is given; None for none.
        save_summaries_steps: The interval of summaries; 100 unless that in seconds is given; None for none.
        save_summaries_secs: The same in seconds.
        config: A ``ConfigProto``.
        stop_grace_period_secs: How long threads may take to end.
        log_step_count_steps: The interval of messages of how many steps a second there are.
        max_wait_secs: See above.
        save_checkpoint_steps: The interval of checkpoints in steps.
        summary_dir: The directory of the summaries; that of the checkpoints unless given.
    """
    if not is_chief:
        raise ArgumentError(f"MonitoredTrainingSession: is_chief is false, at {here()}", "Use one process.")
    steps, seconds = _interval(save_summaries_steps, save_summaries_secs, (100, None))
    checkpoint_steps, checkpoint_seconds = _interval(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    scaffold = scaffold or Scaffold()
    chosen = list(chief_only_hooks or [])
    if folder := summary_dir or checkpoint_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            chosen.append(StepCounterHook(log_step_count_steps, output_dir=folder))
        if steps or seconds:
            chosen.append(SummarySaverHook(steps, seconds, folder, scaffold=scaffold))
    if checkpoint_dir and (checkpoint_steps or checkpoint_seconds):
        chosen.append(
            CheckpointSaverHook(checkpoint_dir, checkpoint_seconds, checkpoint_steps, scaffold=scaffold)
        )
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, [*chosen, *(hooks or [])], stop_grace_period_secs)


def _interval(steps: Any, seconds: Any, usual: tuple[Any, Any]) -> tuple[Any, Any]:
    """An interval in steps and seconds, None for what is not given or not above 0; the usual one without either."""
    if steps is _DEFAULT and seconds is _DEFAULT:
        return usual

    def given(value: Any) -> Any:
        return None if value is _DEFAULT or value is None or value <= 0 else value

    return given(steps), given(seconds)
