"""Sessions: they hold the values of variables and run parts of a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any

from twofold import _core
from twofold.errors import ArgumentError, FailedPreconditionError, GraphError, InvalidArgumentError
from twofold.frontend.breakpoints import stopping
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, refuse
from twofold.static.graph.context import leave, local, stepping
from twofold.static.graph.devices import show_placement
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import (
    Graph,
    Operation,
    describe,
    get_default_graph,
    need_session,
    owner_of,
)
from twofold.static.graph.inference import Source
from twofold.static.session.cached_run import Executable
from twofold.static.session.config import ConfigProto, traces_run
from twofold.static.session.conversions import apart, conversion_of
from twofold.static.session.execution import PartialRun, Parts, Run
from twofold.static.session.partition import Step
from twofold.static.session.run_arguments import (
    NESTED,
    Fetches,
    feed_type,
    kept_feeds,
    leaves,
    nested_key,
    repaired,
)
from twofold.static.session.subgraph import Needed, Position, StepRequest, Subgraph

Tensor = _core.Tensor
_MOST_EXECUTABLES = 4096  # of a session


class BaseSession:
    """What both kinds of session do."""

    stepped = False  # whether a debugger steps through all runs
    most_kept = (
        -1
    )  # bytes of the largest array that is copied where it is fed, so that a look back finds what it held

    belongs_to_run = (
        False  # whether its runs are part of the run of another session, as those of functions of datasets
    )

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        self._graph = graph or get_default_graph()
        self._state: dict[Any, Tensor] = {}
        self._resources: dict[Any, Any] = {}
        """What operations keep between runs, see ``graph.resources``."""
        self._quick: dict[Any, tuple[Any, Any, Any]] = {}
        self._steps: dict[Any, Step] = {}
        self._executable_count = 0
        self._closed = False
        self._runs = 0
        self._partial: dict[str, PartialRun] = {}
        self._soft = self._shown = False
        self._last: Parts = {}  # of the last run
        self._step_through: Callable[[Executable, tuple[Any, ...]], list[Any]] | None = None
        if config is not None:
            self._configure(config)
        self._tasks: set[tuple[str, int]] = set()
        if target:
            server = import_module("twofold.static.train.server")
            self._state, self._resources, self._tasks = server.state_and_tasks(target, self._graph)

    def _configure(self, config: Any) -> None:
        if not isinstance(config, ConfigProto):
            raise TypeError(
                f"Session: config must be a tf.ConfigProto, but got {type(config).__name__}, at {here()}."
            )
        config.enter()
        self._soft = bool(config.allow_soft_placement)
        self._shown = bool(config.log_device_placement)

    @property
    def graph(self) -> Graph:
        """The graph that this session runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a message."""
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> str:
        """The empty string: there is no remote session."""
        return ""

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._state)} variables have values"
        return f"<tf.{type(self).__name__} of {self._graph!r}, {state}>"

    def _repr_html_(self) -> str:
        held = [(variable.name, value) for variable, value in self._state.items()]
        return str(import_module("twofold.frontend.html").session_html(self, held, self._closed))

    def close(self) -> None:
        """Forget all variables; running anything afterwards raises GraphError."""
        self._closed = True
        self._state = {}
        self._quick, self._steps, self._partial, self._last = {}, {}, {}, {}

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
        debug: bool = False,
        verify: bool = False,
    ) -> Any:
        """The values of ``fetches``: tensors, variables, operations (None), names; lists, tuples and dicts of them.

        Computations see variables as before the run or, under ``tf.control_dependencies``, as the updates among those
        left them. Updates, ``py_func`` and queues run in the order of their declaration, each once and after all that
        it waits for. A fetched variable (also ``value()``, ``read_value()``, ``tf.identity``) or update is the variable
        after the run, as TensorFlow's reference variables are; with ``use_resource=True`` as it was read or written.
        For ``debug`` see ``twofold.debug.run``, for ``verify``, which compares bits, ``twofold.debug.verify``.
        Raises GraphError for a feed that does not fit, a variable without a value, a fetch from another graph, a closed
        session; InvalidArgumentError for a placeholder without a feed and a failed ``tf.Assert``.

        >>> import twofold.static as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None])
        ...     print(session.run(x * 2.0, feed_dict={x: [1.0, 2.0]}))
        [2. 4.]
        """
        feed_dict = axes.fed(feed_dict) if feed_dict and (axes := self._graph.sequence_axes) else feed_dict
        if BaseSession.most_kept >= 0 and feed_dict:
            feed_dict = kept_feeds(feed_dict, BaseSession.most_kept)
        if (options is not None or run_metadata is not None) and traces_run(options, run_metadata):
            return self._traced(fetches, feed_dict, run_metadata)
        if debug or verify or BaseSession.stepped or (self._graph.stops and stopping()):
            return self._looked_into(fetches, feed_dict, debug, verify)
        if type(fetches) is list:
            key: Any = (tuple(map(id, fetches)), *map(id, feed_dict or ()))
        else:
            key = (id(fetches), *map(id, feed_dict)) if feed_dict else id(fetches)
        if (found := self._quick.get(key) or self._quick_nested(fetches, feed_dict)) is None:
            return self._prepare(fetches, feed_dict)
        executable, rebuild, _ = found
        if type(executable) is Step:
            return rebuild(self._begin(executable.position, feed_dict or {}).take(executable))
        state = self._state
        try:
            self._last = {executable: (feeds := tuple(feed_dict.values()) if feed_dict else ())}
            if rebuild is None:
                return executable.fetch(feeds, executable.arrays)
            feeds += tuple([state[v] for v in executable.reads])
            if executable.numbers:
                feeds += tuple([operation.number_of(state) for operation in executable.numbers])
            if executable.is_random:
                feeds += (self._next_run(),)
            self._last, arrays = {executable: feeds}, executable.fetch(feeds, executable.arrays)
        except (TypeError, ValueError, KeyError, Needed):
            return self._prepare(fetches, feed_dict)  # with converted feeds, or an error that says why
        if executable.observers:
            executable.observe(arrays)
        if executable.written:
            state.update(zip(executable.written, arrays[executable.arrays :]))
        return rebuild(arrays)

    def _begin(self, position: Position, feeds: Mapping[Any, Any]) -> Run:
        """A new run, at the position where ``feeds`` are fed."""
        return Run(self, position, repaired(position.feeds, tuple(feeds.values())), self._next_run())

    def _quick_nested(self, fetches: Any, feed_dict: Any) -> Any:
        if type(fetches) not in NESTED:
            return None
        return self._quick.get((nested_key(fetches), *map(id, feed_dict or ())))

    def _traced(self, fetches: Any, feed_dict: Any, metadata: Any) -> Any:
        traced = import_module("twofold.static.session.run_metadata").traced
        return traced(lambda: self.run(fetches, feed_dict), metadata)

    def _looked_into(self, fetches: Any, feed_dict: Any, debug: bool, verify: bool) -> Any:
        if debug and verify:
            raise ArgumentError(f"run: both debug and verify, at {here()}", "Choose one of them.")
        if not verify:
            return _core.call_untraced(self._stepped, self._prepare, fetches, feed_dict)
        self._step_through = import_module("twofold.debug.sessions").verified_fetch
        try:
            return self._prepare(fetches, feed_dict)
        finally:
            self._step_through = None

    def _stepped(self, run: Callable[..., Any], *arguments: Any) -> Any:
        fetch = import_module("twofold.debug.sessions").fetch
        self._step_through = lambda executable, feeds: fetch(
            executable, feeds, self._graph.stops if stopping() else ()
        )
        try:
            with stepping():
                return run(*arguments)
        finally:
            self._step_through = None

    def _prepare(self, fetches: Any, feed_dict: Any) -> Any:
        """The first run of its kind."""
        if self._closed:
            raise GraphError(
                f"run: the session is closed, at {here()}",
                "Make a new one, or move the run into its 'with' block.",
            )
        feeds = apart(feed_dict or {})
        position = Position(tuple([self._feed_source(item) for item in feeds]))
        parsed = Fetches(self, fetches)
        run = self._begin(position, feeds)
        step = self._first_step(position, parsed.sources, parsed.operations, False)
        arrays = run.take(step)
        if len(feeds) == len(feed_dict or ()) and all(map(operator.is_, feeds, feed_dict or ())):
            self._remember(fetches, feeds, step, parsed.rebuild)
        return parsed.rebuild(arrays)

    def compile(self, fetches: Any, shapes: Mapping[Any, Any] | None = None) -> None:
        """Compile now what ``run(fetches, feed_dict)`` will need, without any data.

        ``shapes`` has the shape of each tensor that will be fed, or None for the one it was declared with; variables
        are taken as they are, and as they were declared before they have a value. Runs with other shapes are compiled
        when they come.

        Raises GraphError for a shape that does not fit or leaves sizes open, and for what is computed in parts, as
        ``py_func`` or a number that only a run tells divides it.

        >>> import twofold.static as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None, 2])
        ...     y = tf.reduce_sum(x * x, 1)
        ...     session.compile(y, {x: [3, 2]})
        ...     print(session.run(y, {x: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}))
        [ 5. 25. 61.]
        """
        if self._closed:
            raise GraphError(f"compile: the session is closed, at {here()}", "Make a new one.")
        if shapes and self._graph.sequence_axes:
            self._graph.sequence_axes.refuse("compile", shapes)
        feeds = [(self._feed_source(item), shape) for item, shape in (shapes or {}).items()]
        parsed = Fetches(self, fetches)
        position = Position(tuple([source for source, _ in feeds]))
        step = self._first_step(position, parsed.sources, parsed.operations, False)
        if step.first is None:
            executable = step.executable
            types = [feed_type(owner.outputs[index], shape) for (owner, index), shape in feeds]
            try:
                executable.function.prepare(executable.input_types(types, self._type_of))
            except Needed as needed:
                step.meet(needed)
        if step.first is not None:
            waits = step.first.request.consumer
            assert waits is not None
            raise GraphError(
                f"compile: {waits.name} ({waits.where}) needs numbers that only a run tells, at {here()}",
                "Compile what stands before and after it, or leave this out: runs compile what they need.",
            )
        self._remember(fetches, shapes or {}, step, parsed.rebuild)

    def _type_of(self, variable: Any, what: str = "compile") -> Any:
        held = self._state.get(variable)
        found = variable.type_ if held is None else held.type_
        if any(size < 0 for size in found.shape):
            raise GraphError(
                f"{what}: variable {variable.describe()} has no value yet, at {here()}",
                "Run its initialiser first, or declare its shape.",
            )
        return found

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Prepare one run in which tensors are fed and fetched bit by bit; returns the handle for ``partial_run``.

        Operations among ``fetches`` run as soon as everything that they need is fed.
        """
        parsed = Fetches(self, fetches)
        if not parsed.sources and not parsed.operations:
            raise InvalidArgumentError(f"partial_run_setup: nothing is fetched, at {here()}", "Name tensors.")
        if feeds and self._graph.sequence_axes:
            self._graph.sequence_axes.refuse("partial_run_setup", feeds)
        given = [self._feed_source(item) for item in apart(dict.fromkeys(feeds or ()))]
        number = self._next_run()
        handle = f"partial_run_{number}"
        run = Run(self, Position(()), (), number)
        self._partial[handle] = PartialRun(run, parsed.sources, parsed.operations, given)
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Go on with a run: feed more, and fetch what can be computed now. Nothing is computed or sampled anew.

        Raises InvalidArgumentError for what the setup did not name, what was fed or fetched before, what needs a feed
        that is missing, and a run that is over; RuntimeError for an operation among ``fetches``.

        >>> import twofold.static as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        ...     x, y = a + 1.0, (a + 1.0) * b
        ...     handle = session.partial_run_setup([x, y], [a, b])
        ...     first = session.partial_run(handle, x, {a: 2.0})
        ...     print(first, session.partial_run(handle, y, {b: first}))
        3.0 9.0
        """
        if self._step_through is None and (BaseSession.stepped or (self._graph.stops and stopping())):
            return _core.call_untraced(self._stepped, self.partial_run, handle, fetches, feed_dict)
        partial = self._partial.get(handle)
        if partial is None:
            raise InvalidArgumentError(
                f"Must run 'setup' before performing partial runs: {handle!r} is no run that goes on, at {here()}",
                "Call partial_run_setup.",
            )
        parsed = Fetches(self, fetches)
        if parsed.operations:
            raise RuntimeError(
                f"partial_run: {parsed.operations[0].name} is an operation, at {here()}. Name it in the setup alone."
            )
        feeds = apart(feed_dict or {})
        sources = [self._feed_source(item) for item in feeds]
        arrays = partial.go_on(sources, tuple(feeds.values()), parsed.sources)
        if partial.is_done:
            del self._partial[handle]
        return parsed.rebuild(arrays)

    def _remember(self, fetches: Any, feeds: Mapping[Any, Any], step: Step, rebuild: Any) -> None:
        items = list(leaves(fetches))
        if any(hasattr(item, "parts") or conversion_of(item) for item in items) or not all(
            isinstance(item, (Tensor, Operation)) or hasattr(item, "_as_graph_element") for item in items
        ):
            return
        flat = type(fetches) is list and not any(type(item) in NESTED for item in fetches)
        if flat:
            key: Any = (tuple(map(id, fetches)), *map(id, feeds))
        elif type(fetches) in NESTED:
            key = (nested_key(fetches), *map(id, feeds))
        else:
            key = (id(fetches), *map(id, feeds)) if feeds else id(fetches)
        if len(self._quick) >= _MOST_EXECUTABLES:
            self._quick.clear()
        keep = (items, list(feeds))  # the key is made of addresses, so what has them must stay alive
        if step.first is not None:
            self._quick[key] = (step, rebuild, keep)
            return
        executable = step.executable
        plain = flat and executable.needs_nothing and len(executable.subgraph.request.fetches) == len(fetches)
        self._quick[key] = (executable, None if plain else rebuild, keep)

    def _first_step(
        self, position: Position, fetches: Sequence[Source], operations: Sequence[Operation], keeps: bool
    ) -> Step:
        """The first step of a run to these results, from a position."""
        key = (position.key, tuple(fetches), tuple(operations), keeps)
        step = self._steps.get(key)
        if step is None:
            request = StepRequest(tuple(fetches), tuple(operations), keeps=keeps)
            step = self._steps[key] = Step(self, position, (request,))
        return step

    def _executable(self, subgraph: Subgraph, kept: Sequence[Source]) -> Executable:
        """What a step computes. Where there are too many executables, all are forgotten."""
        self._executable_count += 1
        if self._executable_count > _MOST_EXECUTABLES:
            self._quick, self._steps, self._executable_count = {}, {}, 1
        if self._shown:
            show_placement(subgraph.operations)
        return Executable(self._graph, subgraph, kept)

    def _next_run(self) -> int:
        """A number that no run had, nor an iteration of a loop in one."""
        self._runs += 1
        return self._runs

    def _execute(
        self,
        executable: Executable,
        values: tuple[Any, ...],
        number: int,
        parts: Parts,
        before: dict[Any, Tensor] | None = None,
        after: dict[Any, Tensor] | None = None,
    ) -> list[Any]:
        """Arrays, then new values of variables; ``before`` holds the variables from before the run, if they changed.

        ``parts`` are those of the run. ``after`` holds the variables as the part that is run once more left them.
        """
        old = self._state if before is None else {**self._state, **before}
        reads = [self._value_of(variable, old) for variable in executable.reads]
        reads += [self._value_of(variable, after or self._state) for variable in executable.states]
        tail = (*reads, *[operation.number_of(self._state) for operation in executable.numbers])
        if executable.is_random:
            tail += (number,)
        feeds = (*values, *tail)
        parts.pop(executable, None)  # of the iteration before
        parts[executable] = feeds
        self._last = parts
        if self._step_through is not None:
            return self._step_through(executable, feeds)
        return list(executable.fetch(feeds, executable.arrays))

    def _value_of(self, variable: Any, state: dict[Any, Tensor] | None = None) -> Tensor:
        found = (self._state if state is None else state).get(variable)
        if found is None:
            raise FailedPreconditionError(
                f"variable {variable.describe()} has no value in this session, at {here()}",
                "Run tf.global_variables_initializer() first, or restore it with a Saver.",
            )
        return found

    def _element(self, item: Any, what: str) -> Any:
        try:
            element = self._graph.as_graph_element(item)
        except (KeyError, ValueError) as error:
            raise GraphError(
                f"{what}: {error.args[0]} At {here()}", "Use a name that the graph has."
            ) from None
        except TypeError as error:
            raise TypeError(f"{what}: {error.args[0]} At {here()}.") from None
        owner = element if isinstance(element, Operation) else owner_of(element)
        operation = owner if isinstance(owner, Operation) or owner is None else owner[0]
        if operation is None or operation.graph is not self._graph:
            name = operation.name if operation is not None else repr(item)
            where = f" ({operation.where})" if operation is not None and operation.where else ""
            raise GraphError(
                f"{what}: '{name}'{where} is not in the graph of this session, at {here()}",
                "Make the session with tf.Session(graph=...) of its graph, or inside that graph's as_default().",
            )
        return element

    def _feed_source(self, item: Any) -> Source:
        element = self._element(as_tensor(item), "feed")
        if isinstance(element, Operation):
            raise GraphError(
                f"feed: '{element.name}' is an operation, at {here()}",
                f"Feed a tensor, such as '{element.name}:0'.",
            )
        if not self.graph.is_feedable(element):
            raise GraphError(
                f"feed: {describe(element)} may not be fed, at {here()}", "Leave it out of feed_dict."
            )
        found = owner_of(element)
        assert found is not None
        return found

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the values in ``feed_list`` that returns ``fetches``.

        With ``accept_options`` it takes ``options`` and ``run_metadata`` of ``run`` by name, too.
        """
        keys = list(feed_list or [])
        if accept_options:
            return lambda *values, **options: self.run(fetches, dict(zip(keys, values)), **options)
        return lambda *values: self.run(fetches, dict(zip(keys, values)))

    def as_default(self) -> Any:
        """A block in which this is the default session (not closed at its end)."""
        return _Default(self)

    def list_devices(self) -> list[str]:
        """The CPU."""
        return ["/device:CPU:0"]


class _Default:
    def __init__(self, session: BaseSession) -> None:
        self.session = session

    def __enter__(self) -> BaseSession:
        self._stack = local.sessions
        self._stack.append(self.session)
        return self.session

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        leave(self._stack, self.session)


@example("tf.constant(2.0) * 3.0", "6.0")
class Session(BaseSession):
    """Runs a graph (the default graph unless another is given) and holds the values of its variables.

    As a ``with`` block it is the default session, its graph the default graph, and it is closed at the end.
    """

    _stacks: tuple[list[Any], list[Any]] | None = None  # of the thread that has entered the session

    def __enter__(self) -> Session:
        if self._stacks is not None:
            raise RuntimeError(
                "A Session is entered inside of itself. Write `with session.as_default():` for the inner block."
            )
        self._stacks = local.graphs, local.sessions
        local.graphs.append(self._graph)
        local.sessions.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stacks, self._stacks = self._stacks, None
        if stacks is not None:
            leave(stacks[0], self._graph)
            leave(stacks[1], self)
        self.close()

    @staticmethod
    def reset(target: str, containers: Any = None, config: Any = None) -> None:
        """Does nothing: there are no remote containers; raises ArgumentError for a ``target``."""
        refuse("Session.reset", target=target or None)


class InteractiveSession(BaseSession):
    """A session that is the default one from the moment it is made, until ``close()``."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        local.sessions.append(self)
        if graph is not None:
            local.graphs.append(graph)
        self._explicit = graph is not None

    def close(self) -> None:
        """Forget all variables and stop being the default session."""
        if self in local.sessions:
            leave(local.sessions, self)
            if self._explicit:
                leave(local.graphs, self._graph)
        super().close()


def evaluate(self: Tensor, feed_dict: Any = None, session: Any = None) -> Any:
    """The value of a tensor in ``session`` or the default session."""
    return (session or need_session("eval()")).run(self, feed_dict)
