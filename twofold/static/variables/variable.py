"""Variables: tensors that keep their value between the runs of a session."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType
from twofold.errors import GraphError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import (
    Arguments,
    as_dtype,
    as_tensor,
    constant,
    convert_to_tensor,
    define,
    install_operators,
    is_tensor_like,
    refuse,
)
from twofold.static.arrays.indexing import written_at
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once, local
from twofold.static.graph.devices import check_device
from twofold.static.graph.docstrings import example
from twofold.static.graph.eager_execution import compute, leaf
from twofold.static.graph.graph import (
    Graph,
    Operation,
    Tensor,
    describe,
    get_default_graph,
    get_default_session,
    need_session,
    owner_of,
)
from twofold.static.graph.tensor_shape import (
    TensorShape,
    fits,
    narrowed_sizes,
    shape_of_sizes,
    shape_text,
    sizes_of_shape,
)
from twofold.static.session.config import warn_once
from twofold.static.variables.resources import resources


@example(
    'count = tf.Variable(1.0, name="count")',
    "session.run(tf.global_variables_initializer())",
    "print(count.name, session.run(count.assign_add(2.0)))",
    "count:0 3.0",
)
class _Created(type):
    """Makes variables through the functions of ``variable_creator_scope``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        make: Callable[..., Any] = super().__call__
        creators = get_default_graph().variable_creators
        if not creators:
            return make(*args, **kwargs)
        initialize: Any = cls.__init__  # type: ignore[misc]
        given = inspect.signature(initialize).bind(None, *args, **kwargs)
        given.apply_defaults()
        for creator in creators:
            make = functools.partial(creator, make)
        return make(**dict(list(given.arguments.items())[1:]))


class Variable(metaclass=_Created):
    """A tensor whose value a session keeps; made by ``initializer`` and changed by ``assign`` and its kin.

    ``initial_value`` is anything that becomes a tensor, or a function without arguments that returns it. Raises
    ValueError without one, and GraphError where the sizes of the initial value are unknown; with
    ``validate_shape=False`` they may be, and values of any shape be assigned. ``shape`` says less of the sizes than the
    initial value does. ``use_resource`` fixes what a fetch sees (see ``Session.run``). ``caching_device``,
    ``synchronization`` and ``aggregation`` are about several machines and change nothing on one.
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Any = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        refuse("Variable", variable_def=variable_def, import_scope=import_scope)
        check_device("Variable", caching_device)
        if expected_shape is not None:
            warn_once("expected_shape", "TensorFlow has dropped it, too")
        if initial_value is None:
            raise ValueError(
                f"a variable needs an initial value, at {here()}. Give an array, a number, a tensor or a function."
            )
        graph = get_default_graph()
        self.now: Tensor | None = None  # the value of a variable that is computed with at once
        self.use_resource = resources.default if use_resource is None else bool(use_resource)
        wanted = None if dtype is None else as_dtype(dtype)
        full = graph.unique_name(name or "Variable")
        with graph.control_dependencies(None), graph.name_scope(full + "/"):
            value = initial_value() if callable(initial_value) else initial_value
            value = _converted(as_tensor(value), wanted)
            initial = convert_to_tensor(value, wanted, name="initial_value")
            self.type_: TensorType = _type(full, initial, validate_shape, shape)
            made = graph.add("VariableV2", full + "/", [self.type_], ())
            made.variable = self
            self.op = made
            self.initial_value = initial
            self._handle = made.outputs[0]
            self.trainable = trainable is not False
            if at_once():
                self.now = leaf(initial, self.trainable)
            self._initializer = update("Assign", [self], _assigned, [initial], {}, full + "/Assign/", False)
        self.synchronization, self.aggregation = synchronization, aggregation
        self.constraint = constraint
        self.powers: dict[
            str, float
        ] = {}  # of a count of steps: by what names TensorFlow keeps powers of which numbers
        keys = list(collections) if collections is not None else [GraphKeys.GLOBAL_VARIABLES]
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        if collections is not None or not at_once():
            graph.add_to_collections(keys, self)

    def _ref(self) -> Tensor:
        """The tensor of the variable, by the name that programs for TensorFlow 1 call it by."""
        return self._handle if self.now is None else self.current()

    def current(self) -> Tensor:
        """The value, where operations are computed at once; raises RuntimeError where they are not, or it was not."""
        if self.now is None or not (at_once() or local.in_body):
            raise RuntimeError(
                f"variable {self.describe()} was made {'in a graph' if self.now is None else 'outside of graphs'}, and "
                f"is used elsewhere, at {here()}. Make it where it is used."
            )
        watching = [read for read in local.tapes if self.trainable or self in read]
        if watching and self.dtype.kind == "f" and not self.now.requires_grad:
            self.now = leaf(self.now, True)
        for read in watching:
            values = read.setdefault(self, [])
            if not values or values[-1] is not self.now:
                values.append(self.now)
        return self.now

    def _as_graph_element(self) -> Tensor:
        return self._ref()

    def numpy(self) -> Any:
        """The value as an array, where operations are computed at once."""
        return self.current().detach().numpy()

    def __bool__(self) -> bool:
        return self.now is None or bool(self.current())

    def __int__(self) -> int:
        return int(self._ref())

    def __float__(self) -> float:
        return float(self._ref())

    @property
    def name(self) -> str:
        """``operation:0``."""
        return f"{self.op.name}:0"

    @property
    def graph(self) -> Any:
        """The graph that it was declared in."""
        return self.op.graph

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type_.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return shape_of_sizes(self.type_.shape)

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self.shape

    @property
    def initializer(self) -> Operation:
        """The operation that gives it its initial value."""
        return self._initializer

    def initialized_value(self) -> Tensor:
        """The initial value, for the initial values of other variables."""
        return self.initial_value

    def value(self) -> Tensor:
        """The value before the run (under ``control_dependencies``: after those), as a tensor."""
        return self.read_value()

    def read_value(self) -> Tensor:
        """As ``value``."""
        with self.graph.name_scope(self.op.name + "/"):
            return _identity(self._ref())

    def eval(self, session: Any = None) -> Any:
        """The value in ``session`` or the default session."""
        return (session or need_session(f"{self.name} eval()")).run(self._ref())

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value in ``session`` or the default session; raises GraphError where the shape differs."""
        found = session or need_session(f"{self.name} load()")
        found._state[self] = self.checked(value)

    def checked(self, value: Any) -> Tensor:
        """``value`` as a tensor of this variable's type; raises GraphError where the shape differs."""
        array = numpy.array(value, dtype=self.dtype.numpy)
        if not fits(array.shape, self.type_.shape):
            raise GraphError(
                f"a value {array.dtype}{shape_text(array.shape)} does not fit variable {self.describe()}, at {here()}",
                "Give a value of the variable's shape.",
            )
        return _core.from_array(array, False)

    def describe(self) -> str:
        """Name, type and line, for messages."""
        return f"'{self.op.name}' {self.dtype.name}{shape_text(self.type_.shape)} ({self.op.where})"

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Write ``value``; the result is the new value, or with ``read_value=False`` the operation."""
        return _read_or_not(assign(self, value, name=name), read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add ``delta``; the result is the new value, or with ``read_value=False`` the operation."""
        return _read_or_not(assign_add(self, delta, name=name), read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract ``delta``; the result is the new value, or with ``read_value=False`` the operation."""
        return _read_or_not(assign_sub(self, delta, name=name), read_value)

    def set_shape(self, shape: Any) -> None:
        """Let what is declared from now on take the sizes of ``shape`` for unknown ones; ValueError if it cannot."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"set_shape: {shape} is not compatible with {self.describe()}")
        self.type_ = tensor_type(self.dtype, narrowed_sizes(self.type_.shape, shape))
        _core.set_type(self._handle, self.type_)

    @property
    def device(self) -> str:
        """The device that the variable is placed on, '' if that is left open."""
        return self.op.device or ""

    def __getitem__(self, key: Any) -> Tensor:
        """A part of the value, whose ``assign`` writes that part alone."""
        found = self._ref()[key]

        def assign_part(value: Any, name: str | None = None) -> Tensor:
            given = [convert_to_tensor(value, None if is_tensor_like(value) else self.dtype)]
            return update("StridedSliceAssign", [self], written_at(key), given, {}, name).outputs[0]

        found.assign = assign_part  # type: ignore[attr-defined]
        return found

    def __iter__(self) -> Any:
        raise TypeError("a variable is not iterable. Use tf.unstack().")

    def __getattr__(self, name: str) -> Any:
        """A method that changes rows, such as ``scatter_add``; their module is imported with the first of them."""
        if name.startswith("scatter_") and import_module("twofold.static.variables.scatter_updates"):
            return object.__getattribute__(self, name)
        raise AttributeError(f"a variable has no attribute {name!r}, at {here()}", name=name, obj=self)

    def __repr__(self) -> str:
        kind = self.dtype.name + ("" if self.use_resource else "_ref")
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={kind}>"

    def _repr_html_(self) -> str:
        session = get_default_session()
        value = session._state.get(self) if self.now is None and session is not None else self.now
        return str(import_module("twofold.frontend.html").variable_html(self, value))


def imported_variable(name: str, dtype: DType, shape: Any, use_resource: bool) -> Variable:
    """A variable of a graph that is imported, in no collection, whose initialiser comes later or not at all."""
    made = Variable.__new__(Variable)
    made.type_ = tensor_type(dtype, sizes_of_shape(shape))
    made.use_resource, made.trainable, made.constraint, made.powers = use_resource, False, None, {}
    made.synchronization = made.aggregation = made.initial_value = None
    made._initializer = None  # until it is imported, too
    made.op = get_default_graph().add("VariableV2", name, [made.type_], ())
    made.op.variable = made
    made._handle, made.now = made.op.outputs[0], None
    return made


def _read_or_not(value: Tensor, read: bool) -> Any:
    return value if read or at_once() else owner_of(value)[0]  # type: ignore[index]


install_operators(Variable)


def _type(name: str, initial: Tensor, validated: bool, shape: Any) -> TensorType:
    """The type of a variable, as far as it is fixed."""
    sizes = initial.type_.shape
    if not validated:
        return tensor_type(initial.dtype, UNKNOWN_RANK)
    if sizes == UNKNOWN_RANK or any(size < 0 for size in sizes):
        raise GraphError(
            f"the initial value {describe(initial)} of variable '{name}' has unknown sizes, at {here()}",
            "Give it a value whose sizes are known, or validate_shape=False.",
        )
    if shape is None:
        return tensor_type(initial.dtype, sizes)
    wanted = TensorShape(shape)
    if not wanted.is_compatible_with(list(sizes)):
        raise ValueError(
            f"Variable: the initial value {describe(initial)} is not of the shape {wanted}, at {here()}. "
            "Make them compatible."
        )
    return tensor_type(initial.dtype, sizes_of_shape(wanted))


def _converted(value: Any, dtype: DType | None) -> Any:
    if isinstance(value, Tensor) and dtype is not None and value.dtype is not dtype:
        raise ValueError(
            f"Variable: the initial value {describe(value)} is not of {dtype.name}, at {here()}. Use tf.cast for it."
        )
    return value


def _identity(tensor: Tensor) -> Tensor:
    return define("Identity", _same, (tensor,), {}, "read").outputs[0]


def _same(value: Any) -> Any:
    return ops.copied(value)


def update(
    type: str,
    variables: Sequence[Variable],
    body: Callable[..., Any],
    inputs: Sequence[Any],
    keywords: dict[str, Any],
    name: str | None,
    reads_state: bool = True,
    types: Sequence[TensorType] | None = None,
) -> Any:
    """An operation that writes ``variables``: ``body(*their values, *inputs, **keywords)`` gives the new ones.

    These must be of ``types``, those of the variables unless given.
    """
    if at_once():
        return _updated(type, variables, body, inputs, keywords, name, reads_state)
    collected = Arguments()
    positional = tuple(collected.template(item, False) for item in inputs)
    named = {key: collected.template(item, False) for key, item in keywords.items()}
    outputs = [variable.type_ for variable in variables] if types is None else types
    parts = {"body": body, "arguments": positional, "keywords": named}
    parts |= {"updates": tuple(variables), "reads_state": reads_state}
    made = variables[0].graph.add(type, name, outputs, collected.sources, **parts)
    return made


def _updated(
    type: str,
    variables: Sequence[Variable],
    body: Callable[..., Any],
    inputs: Sequence[Any],
    keywords: dict[str, Any],
    name: str | None,
    reads_state: bool,
) -> Any:
    """What ``update`` declares, done."""
    states = [variable.current() for variable in variables] if reads_state else []
    with _core.GradientMode(False):
        done = compute(type, body, [*states, *inputs], keywords, name)
        for variable, value in zip(variables, done.outputs):
            if not fits(value.type_.shape, variable.type_.shape):
                what = f"{type}: a value {value.type_} does not fit variable {variable.describe()}"
                raise GraphError(f"{what}, at {here()}", "Assign a value of its shape.")
            variable.now = leaf(value, variable.trainable)
    return done


def _update(
    type: str,
    variable: Any,
    body: Callable[..., Any],
    value: Any,
    name: str | None,
    reads_state: bool,
    validated: bool = True,
) -> Operation:
    value = as_tensor(value)
    if not isinstance(value, (Tensor, bool, int, float)):
        value = convert_to_tensor(value) if is_nested(value) else constant(value, variable.dtype)
    elif not isinstance(value, Tensor) and not reads_state:
        value = constant(value, variable.dtype)
    if isinstance(value, Tensor):
        found = value.type_
        wanted = variable.type_
        scalar = reads_state and found.shape == ()
        fitting = scalar or not validated or may_fit(found.shape, wanted.shape)
        if found.dtype is not wanted.dtype or not fitting:
            raise GraphError(
                f"{type}: {describe(value)} does not fit variable {variable.describe()}, at {here()}",
                "Make dtype and shape equal; tf.cast and tf.reshape convert.",
            )
    types = None if validated else [value.type_]
    return update(type, [variable], body, [value], {}, name, reads_state, types)


def is_nested(value: Any) -> bool:
    """Whether a list holds tensors."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(as_tensor(item), Tensor) or is_nested(item) for item in value
    )


def may_fit(sizes: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether sizes, of which some may be unknown, can turn out as the wanted ones."""
    if UNKNOWN_RANK in (tuple(sizes), tuple(wanted)):
        return True
    return len(sizes) == len(wanted) and all(a < 0 or b < 0 or a == b for a, b in zip(sizes, wanted))


def _assigned(value: Any) -> Any:
    return apply("copied", value)


def _added(state: Any, delta: Any) -> Any:
    _check_delta(state, delta)
    return apply("add", state, delta)


def _check_delta(state: Any, delta: Any) -> None:
    sizes = getattr(delta, "shape", ())
    if tuple(sizes) not in ((), tuple(state.shape)):
        what = f"a change of shape {tuple(sizes)} for a variable of shape {tuple(state.shape)}"
        raise ShapeError(what, "Make them equal.")


def _subtracted(state: Any, delta: Any) -> Any:
    _check_delta(state, delta)
    return apply("subtract", state, delta)


@example("v = tf.Variable(1)", "session.run(tf.global_variables_initializer())", "tf.assign(v, 5)", "5")
def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Write ``value`` to a variable; the result is the new value.

    Raises GraphError where the types differ, in a run InvalidArgumentError where the shapes turn out to. With
    ``validate_shape=False`` the value may have any shape, and the variable has it from then on.
    """
    validated = True if validate_shape is None else validate_shape
    return _update("Assign", variable_of(ref), _assigned, value, name, False, validated).outputs[0]


@example("v = tf.Variable(1)", "session.run(tf.global_variables_initializer())", "tf.assign_add(v, 5)", "6")
def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Tensor:
    """Add ``value`` to a variable; several such in one run add up. The result is the new value."""
    return _update("AssignAdd", variable_of(ref), _added, value, name, True).outputs[0]


@example("v = tf.Variable(1)", "session.run(tf.global_variables_initializer())", "tf.assign_sub(v, 5)", "-4")
def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Tensor:
    """Subtract ``value`` from a variable; the result is the new value."""
    return _update("AssignSub", variable_of(ref), _subtracted, value, name, True).outputs[0]


def variable_of(ref: Any) -> Variable:
    """The variable that ``ref`` is, or whose reference or update it is; raises TypeError."""
    if isinstance(ref, Variable):
        return ref
    if isinstance(ref, Tensor):
        operation, index = owner_of(ref) or (None, 0)
        if operation is not None and operation.updates:
            return operation.updates[index]
        if operation is not None and operation.variable is not None:
            return operation.variable
    raise TypeError(
        f"assign: a value of type {type(ref).__name__} is not a variable, at {here()}. Give a tf.Variable."
    )


@example("v = tf.Variable(7)", "session.run(tf.variables_initializer([v]))", "v", "7")
def variables_initializer(var_list: Iterable[Variable], name: str = "init") -> Operation:
    """An operation that initialises the variables given."""
    var_list = list(var_list)
    graph = var_list[0].graph if var_list else get_default_graph()
    made = graph.add("NoOp", name, (), ())
    made.control_inputs = tuple(variable.initializer for variable in var_list)
    return made


@example(
    'v = tf.Variable(7, name="v")', "print([variable.name for variable in tf.global_variables()])", "['v:0']"
)
def global_variables(scope: str | None = None) -> list[Variable]:
    """All variables of the default graph that are not local, or those whose names match ``scope``."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


@example("print(tf.local_variables())", "[]")
def local_variables(scope: str | None = None) -> list[Variable]:
    """The local variables of the default graph, such as counters of metrics."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


@example(
    'v, w = tf.Variable(7.0, name="v"), tf.Variable(1.0, trainable=False)',
    "print([variable.name for variable in tf.trainable_variables()])",
    "['v:0']",
)
def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The variables that optimisers change."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@example("print(tf.model_variables())", "[]")
def model_variables(scope: str | None = None) -> list[Variable]:
    """The variables in the collection of those that a model consists of."""
    return get_default_graph().get_collection("model_variables", scope)


@example("print(tf.moving_average_variables())", "[]")
def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """The variables in the collection of those whose averages are kept."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


@example("v = tf.Variable(7)", "session.run(tf.global_variables_initializer())", "v", "7")
def global_variables_initializer() -> Operation:
    """An operation that initialises all global variables declared so far."""
    return variables_initializer(global_variables())


@example(
    "accuracy, update = tf.metrics.accuracy([1, 2], [1, 3])",
    "session.run(tf.local_variables_initializer())",
    "update",
    "0.5",
)
def local_variables_initializer() -> Operation:
    """An operation that initialises all local variables declared so far."""
    return variables_initializer(local_variables())


all_variables = global_variables
initialize_all_variables = global_variables_initializer
initialize_variables = variables_initializer
initialize_local_variables = local_variables_initializer


def in_variable_scope(graph: Graph, name: str) -> str:
    """The name that a variable kept beside another one has: TensorFlow puts the scope of the call before that name."""
    scope = graph.variable_scopes[-1].name if graph.variable_scopes else ""
    return f"{scope}/{name}" if scope else name
