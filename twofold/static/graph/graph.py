"""The graph of a define-then-run program: named operations in the order of their declaration.

An operation keeps a *body*: a function of concrete values that computes its outputs with the operations of
define-by-run. Its output tensors are handles of declared values; they show dtype, shape and line, and are
declared to the core, see ``session.lowered_graphs``, and computed when a session needs them.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any

from twofold import _core
from twofold.dtypes import string
from twofold.errors import ArgumentError, DTypeError, GraphError, at_operation, described
from twofold.ir.bind import bind
from twofold.ir.types import TensorType
from twofold.runtime.failures import describe_line
from twofold.runtime.scopes import declaring
from twofold.runtime.tracing import here
from twofold.static.graph.context import at_once, keep_recent, leave, local, note_declared
from twofold.static.graph.devices import check_device, placed
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph_elements import Slot, check_kind, check_same_dtype, on_strings, operator_type
from twofold.static.graph.tensor_shape import shape_text

if TYPE_CHECKING:
    from twofold.static.protobuf.graph_def import GraphDef, NodeDef

Tensor = _core.Tensor

_VALID_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


DERIVATIVES = frozenset({"Gradients", "Hessians"})
"""Types of operations whose inputs are values to differentiate by."""


@example('x = tf.constant([1.0, 2.0], name="x")', "print(x.op.name, x.op.type)", "x Const")
class Operation:
    """One declared operation: ``name``, ``type``, ``inputs``, ``outputs``, and what it does when run.

    ``updates`` are the variables that running it writes; with ``reads_state`` the body is given their current
    values first. ``flow`` is what a choice or loop is made of.
    ``observe`` is called with the arrays of the inputs after a run.
    """

    __slots__ = (
        "__weakref__",
        "arguments",
        "body",
        "branches",
        "constant",
        "control_inputs",
        "device",
        "flow",
        "gradient",
        "graph",
        "host",
        "hosted",
        "is_pure",
        "is_random",
        "keywords",
        "location",
        "looks",
        "name",
        "number",
        "number_of",
        "observe",
        "observer",
        "outputs",
        "pullback",
        "python",
        "reads_state",
        "sources",
        "type",
        "updates",
        "variable",
        "wished",
    )

    def __init__(self, graph: Graph, type: str, name: str) -> None:
        self.graph = graph
        self.type = type
        self.name = name
        self.number = 0
        self.location = 0  # which no other operation has
        self.body: Callable[..., Any] | None = None
        self.arguments: tuple[Any, ...] = ()
        self.keywords: dict[str, Any] = {}
        self.sources: tuple[tuple[Operation, int], ...] = ()
        self.outputs: list[Tensor] = []
        self.control_inputs: tuple[Operation, ...] = ()
        self.device = ""
        self.updates: tuple[Any, ...] = ()
        self.reads_state = False
        self.is_random = False
        self.host: frozenset[int] = frozenset()  # inputs whose numbers the body must know, such as a shape
        self.wished: frozenset[int] = frozenset()  # those that it must know outside of compiled loops
        self.looks: str | None = None  # at an array that grows: at its "elements" or at its "size"
        self.constant: Any = None
        self.variable: Any = None
        self.observe: Callable[..., None] | None = None
        self.observer: Any = None  # ``observe`` in bodies of loops and choices
        self.python: Callable[..., Any] | None = None
        self.is_pure = False  # whether ``python`` does nothing but make its results of its arguments
        self.hosted: Any = None  # what ``python`` belongs to where it is given the run first
        self.number_of: Any = None  # from the variables: a number that each run is given
        self.branches: tuple[Any, ...] = ()
        self.flow: Any = None  # of a choice or loop: what computes it from closed bodies
        self.gradient: Any = None  # the user's: a registered name or a function, see ``custom_gradients``
        self.pullback: Any = None  # what that function declared

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run this operation in ``session`` or the default session."""
        (session or need_session(f"{self.name}.run()")).run(self, feed_dict)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs."""
        return tuple(self.outputs)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The variables that it writes, then the tensors that it reads."""
        written = [variable.op.outputs[0] for variable in self.updates]
        return (*written, *[owner.outputs[index] for owner, index in self.sources])

    @property
    def where(self) -> str:
        """``file:line`` of the declaration."""
        return self.outputs[0]._where if self.outputs else ""

    def get_attr(self, name: str) -> Any:
        """The argument of this name."""
        if name == "_gradient_op_type" and isinstance(self.gradient, str):
            return self.gradient.encode()
        if name in self.keywords:
            return self.keywords[name]
        attr = self.node_def.attr
        if name not in attr:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return _writer().value_of_attribute(attr[name])

    @property
    def node_def(self) -> NodeDef:
        """The message of the operation."""
        return next(node for node in _writer().graph_def_of([self]).node if node.name == self.name)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"


def _writer() -> Any:
    """The module that writes messages, which a program that writes none does without."""
    return import_module("twofold.static.graph_def.node_writer")


_OWNERS: weakref.WeakValueDictionary[int, Operation] = weakref.WeakValueDictionary()
_INDEX_OF: dict[int, int] = {}


class Graph:
    """A graph to declare operations in.

    Adding to it raises GraphError after ``finalize()``, and in a function that ``py_func`` calls while it runs.
    Between runs, and in other threads at any time, it may grow, as in TensorFlow.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     a = tf.constant(1.0) + tf.constant(2.0)
    >>> [operation.name for operation in graph.get_operations()]
    ['Const', 'Const_1', 'add']
    """

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._scope = ""
        self._controls: list[tuple[Operation, ...]] = []
        self._devices: list[Any] = []
        self._unfeedable: set[Any] = set()
        self.gradient_overrides: dict[str, str] = {}
        self._collections: dict[str, list[Any]] = {}
        self._finalized = False
        self.calling: set[int] = set()  # threads in which a run calls a function of the host
        self.seed: int | None = None
        self.variable_store: dict[str, Any] = {}
        self.variable_scopes: list[Any] = []
        self.variable_creators: tuple[Callable[..., Any], ...] = ()
        self.variable_scope_counts: dict[str, int] = {}
        self.random_op_count = 0
        self.stops: list[int] = []  # locations of breakpoints
        self.notes: list[Any] = []  # see ``debug.declarations``
        self.declared: Any = None  # what the core has of the operations, see ``session.lowered_graphs``
        self.sequence_axes: Any = None  # see ``sequence.axes``
        self.keras: Any = None  # what models keep beside it, see ``keras.state``
        self.constant_bytes = 0
        keep_recent(self)

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Inside, operations without inputs are declared in this graph."""
        stack = local.graphs  # of this thread, also where a generator is closed in another one
        stack.append(self)
        try:
            yield self
        finally:
            leave(stack, self)

    def finalize(self) -> None:
        """Let no operation be added any more."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        """Let operations be added again."""
        self._finalized = False

    @property
    def finalized(self) -> bool:
        """Whether operations cannot be added."""
        return self._finalized or get_ident() in self.calling

    @property
    def version(self) -> int:
        """Number of operations."""
        return len(self._operations)

    def __repr__(self) -> str:
        return f"<tf.Graph of {len(self._operations)} operations>"

    def _repr_html_(self) -> str:
        return str(import_module("twofold.frontend.html").graph_html(self))

    def get_operations(self) -> list[Operation]:
        """All operations in the order of their declaration."""
        return list(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of this name; raises KeyError."""
        if name not in self._by_name:
            raise KeyError(f"The name {name!r} refers to an operation that is not in the graph.")
        return self._by_name[name]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called ``operation:index``; raises ValueError for another form, KeyError if there is none."""
        operation, colon, index = name.rpartition(":")
        if not colon or not index.isdigit():
            raise ValueError(f"A tensor is named 'operation:index', such as '{name}:0', not {name!r}.")
        found = self.get_operation_by_name(operation).outputs
        if int(index) >= len(found):
            raise KeyError(f"The name {name!r} refers to output {index} of an operation with {len(found)}.")
        return found[int(index)]

    def as_graph_element(self, item: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation that ``item`` is or names; raises TypeError, ValueError or KeyError."""
        item = getattr(item, "_as_graph_element", lambda: item)()
        is_tensor = ":" in item if isinstance(item, str) else isinstance(item, Tensor)
        check_kind(item, isinstance(item, (str, Tensor, Operation)), is_tensor, allow_tensor, allow_operation)
        if not isinstance(item, str):
            return item
        return self.get_tensor_by_name(item) if is_tensor else self.get_operation_by_name(item)

    # Names

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """``name`` in the present scope, with ``_1``, ``_2``, ... if it is taken."""
        full = f"{self._scope}/{name}" if self._scope else name
        return self._unused(full, mark_as_used)

    def _unused(self, full: str, mark_as_used: bool = True) -> str:
        key = full.lower()
        count = self._names.get(key, 0)
        mark_as_used = mark_as_used and not at_once()  # where variables that live may have one name
        if mark_as_used:
            self._names[key] = count + 1
        found = full
        while count > 0 and found.lower() in self._names:
            found = f"{full}_{count}"
            count += 1
        if found != full and mark_as_used:
            self._names[key] = count
            self._names[found.lower()] = 1
        return found

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Inside, names start with ``name/``, made unique; a name that ends in ``/`` is used as it is."""
        before = self._scope
        if not name:
            self._scope = ""
        elif name.endswith("/"):
            self._scope = name[:-1]
        else:
            if not _VALID_NAME.match(name):
                raise ValueError(f"'{name}' is not a valid scope name")
            self._scope = self.unique_name(name)
        try:
            yield self._scope + "/" if self._scope else ""
        finally:
            self._scope = before

    def get_name_scope(self) -> str:
        """The present scope."""
        return self._scope

    # Collections

    def add_to_collection(self, name: str, value: Any) -> None:
        """Put ``value`` at the end of a collection."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Put ``value`` in several collections."""
        for name in (names,) if isinstance(names, str) else names:
            self.add_to_collection(name, value)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """What a collection holds; with ``scope`` only what has a name that matches it from its start."""
        found = self._collections.get(name, [])
        if scope is None:
            return list(found)
        pattern = re.compile(scope)
        return [item for item in found if hasattr(item, "name") and pattern.match(item.name)]

    def get_collection_ref(self, name: str) -> list[Any]:
        """The list itself that holds a collection."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """Names of the collections that hold something."""
        return [name for name, items in self._collections.items() if items]

    def clear_collection(self, name: str) -> None:
        """Empty a collection."""
        self._collections.pop(name, None)

    # Declaring

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Inside, operations of the types given have the gradients that were registered under other names."""
        if not isinstance(op_type_map, dict) or not all(
            isinstance(name, str) for pair in op_type_map.items() for name in pair
        ):
            raise TypeError(f"gradient_override_map: not a dict of strings, at {here()}. Map type to name.")
        before = self.gradient_overrides
        self.gradient_overrides = {**before, **op_type_map}
        try:
            yield
        finally:
            self.gradient_overrides = before

    @contextmanager
    def control_dependencies(self, controls: Sequence[Any] | None) -> Iterator[None]:
        """Inside, operations run after ``controls`` and see the variables as those leave them."""
        before = self._controls
        if controls is None or at_once():
            self._controls = []
        else:
            found = [self.as_graph_element(item) for item in controls]
            operations = tuple(item if isinstance(item, Operation) else operation_of(item) for item in found)
            self._controls = [*before, operations]
        try:
            yield
        finally:
            self._controls = before

    def check_open(self, type: str) -> None:
        """Raise GraphError if an operation cannot be added now."""
        if not self.finalized:
            return
        why, fix = "a session is running it", "Declare it before the run, not inside py_func"
        if self._finalized:
            why, fix = "it was finalised", "Declare it before finalize()"
        raise GraphError(f"{type} cannot be added to the graph, as {why}, at {here()}", f"{fix}.")

    def add(
        self,
        type: str,
        name: str | None,
        types: Sequence[TensorType],
        sources: Sequence[tuple[Operation, int]],
        **parts: Any,
    ) -> Operation:
        """A new operation with outputs of ``types``; functions that choose its device see it with its ``parts``."""
        self.check_open(type)
        if at_once() and type not in ("NoOp", "VariableV2"):
            what = f"{type} is not offered where operations are computed at once, at {here()}"
            raise GraphError(what, "Use it inside Graph.as_default().")
        if name is not None and not _VALID_NAME.match(name):
            raise ArgumentError(f"'{name}' is not a valid operation name", "Start with a letter or digit.")
        own = name[:-1] if name and name.endswith("/") else self.unique_name(name or type)
        made = Operation(self, type, own)
        for part, value in parts.items():
            setattr(made, part, value)
        if made.constant is not None:
            self.constant_bytes += made.constant.type_.nbytes
        with declaring(made.name):  # so locations tell operations on one line apart
            outputs = [_core.placeholder(type_) for type_ in types]
            made.location = _core.location_of(outputs[0]) if outputs else 0
        self._enter(made, outputs, sources)
        return made

    def _enter(
        self, made: Operation, outputs: list[Tensor], sources: Sequence[tuple[Operation, int]]
    ) -> None:
        for owner, _ in sources:
            if owner.graph is not self:
                raise GraphError(
                    f"{made.type}: an input, {owner.name} ({owner.where}), belongs to another graph, at {here()}",
                    "Declare both in one graph.",
                )
        made.sources = tuple(sources)
        made.outputs = outputs
        seen = {id(operation): operation for group in self._controls for operation in group}
        made.control_inputs = tuple(seen.values())
        if self._devices:
            made.device = placed(self._devices, made)
        for index, tensor in enumerate(outputs):
            key = _core.value_key(tensor)
            _OWNERS[key] = made
            _INDEX_OF[key] = index
        if made.type in self.gradient_overrides:
            made.gradient = self.gradient_overrides[made.type]
        made.number = len(self._operations)
        if not at_once():  # where a variable lives no longer than the program keeps it
            self._operations.append(made)
            self._by_name[made.name] = made
        note_declared(made)

    def captured(self, source: tuple[Operation, int]) -> tuple[Operation, int]:
        """What stands in this graph for an output, maybe of another graph; here nothing does but itself."""
        return source

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Make feeding a value for ``tensor`` an error."""
        self._unfeedable.add(_core.value_key(tensor))

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether a value may be fed for ``tensor``: unless ``prevent_feeding`` says otherwise."""
        return _core.value_key(tensor) not in self._unfeedable

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """The operations as a message; with ``from_version`` those declared since, see ``version``."""
        return _writer().graph_def_of(self._operations[from_version or 0 :], add_shapes)

    def device(self, name: Any) -> Any:
        """Inside, operations are for this device; see ``tf.device``."""
        check_device("device", name)
        return self._on(name)

    def container(self, container_name: str) -> Any:
        """A block that changes nothing, see ``tf.container``."""
        return nullcontext()

    @contextmanager
    def _on(self, name: Any) -> Iterator[None]:
        self._devices.append(name)
        try:
            yield
        finally:
            self._devices.pop()


_default: list[Graph] = [Graph()]


@example("print([operation.name for operation in tf.get_default_graph().get_operations()])", "[]")
def get_default_graph() -> Graph:
    """The graph that operations are declared in now."""
    return local.graphs[-1] if local.graphs else _default[0]


def reset_default_graph() -> None:
    """Start over with a new, empty default graph; raises AssertionError inside ``Graph.as_default()``.

    >>> import twofold.static as tf
    >>> tf.reset_default_graph()
    >>> tf.get_default_graph().get_operations()
    []
    """
    if local.graphs:
        raise AssertionError(
            "reset_default_graph inside a graph's as_default() block. Leave the block first."
        )
    _default[0] = Graph()


@example("print(tf.get_default_session() is session)", "True")
def get_default_session() -> Any:
    """The session entered last, or None."""
    return local.sessions[-1] if local.sessions else None


def need_session(what: str) -> Any:
    """The default session; raises ValueError if there is none."""
    session = get_default_session()
    if session is None:
        raise ValueError(
            f"{what} needs a session, at {here()}. Use it inside 'with tf.Session():' or pass session=."
        )
    return session


def owner_of(tensor: Tensor) -> tuple[Operation, int] | None:
    """The operation whose output a handle is, and which; None for a tensor that is not declared in a graph."""
    key = _core.value_key(tensor)
    found = _OWNERS.get(key)
    return None if found is None else (found, _INDEX_OF[key])


def operation_of(tensor: Tensor) -> Operation:
    """The operation whose output a handle is; raises GraphError."""
    found = owner_of(tensor)
    if found is None:
        raise GraphError(
            f"{described(tensor)} is not in a graph", "Use tensors that twofold.static declared."
        )
    return found[0]


def name_of(tensor: Tensor) -> str:
    """``operation:index``."""
    found = owner_of(tensor)
    if found is None:
        raise AttributeError("the tensor has no name, as it is not in a graph")
    return f"{found[0].name}:{found[1]}"


def describe(tensor: Tensor) -> str:
    """A declared tensor for a message: ``'x:0' float32[?,3] (train.py:12)``."""
    type_ = tensor.type_
    if owner_of(tensor) is None:
        return f"{type_.dtype.name}{shape_text(type_.shape)} ({tensor._where})"
    return f"'{name_of(tensor)}' {type_.dtype.name}{shape_text(type_.shape)} ({tensor._where})"


def _is_declared_by_call(tensor: Tensor) -> None:
    """Enter what an operator or method declared on a graph's tensors, as an operation of its own."""
    if local.in_body:
        return
    op, attrs, inputs, _ = _core.inputs_of(tensor)
    owners = [owner_of(item) if isinstance(item, Tensor) and item._is_symbolic else None for item in inputs]
    capture = get_default_graph().captured
    owners = [None if found is None else capture(found) for found in owners]
    graph = next((found[0].graph for found in owners if found is not None), None)
    if graph is None:
        return
    operators = getattr(op, "operators", ())
    type_ = operators[0].strip("_") if operators else "".join(part.title() for part in op.name.split("_"))
    graph.check_open(type_)
    if operators:
        _check_operands(type_, op, inputs, owners)
    made = Operation(graph, operator_type(op.name, tensor) if operators else type_, graph.unique_name(type_))
    with declaring(made.name):
        made.location = _core.capture_location()
    slots: list[Any] = []
    sources: list[tuple[Operation, int]] = []
    for item, found in zip(inputs, owners):
        slots.append(item if found is None else Slot(len(sources)))
        if found is not None:
            sources.append(found)
    if tensor.type_.dtype is string:
        made.python, made.is_pure = on_strings(op.on_strings, slots), True
    else:
        made.body = lambda *values: bind(op, values, attrs)
        made.arguments = tuple(slots)
    graph._enter(made, [tensor], sources)


def _check_operands(type: str, op: Any, inputs: Sequence[Any], owners: Sequence[Any]) -> None:
    """Raise DTypeError where an operator would have to choose between the dtypes of two tensors."""
    if len(inputs) != 2 or op.kind not in ("elementwise", "contraction"):
        return
    shown = [
        describe(item) if owner is not None else str(getattr(item, "type_", item))
        for item, owner in zip(inputs, owners)
    ]
    try:
        check_same_dtype(*inputs)
    except DTypeError as error:
        raise describe_line(at_operation(error, type, shown, here())) from None


_core.on_declaration(_is_declared_by_call)
