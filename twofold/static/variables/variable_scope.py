"""Variable scopes: shared variables by name, as ``get_variable`` makes and finds them."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twofold.dtypes import DType, float32
from twofold.errors import GraphError
from twofold.runtime.tracing import here
from twofold.static import initializers
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.api.signatures import takes
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.devices import check_device
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, get_default_graph
from twofold.static.graph.one_graph import check_one_graph
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.variables.partitioned import PartitionedVariable, PartitionInfo, parts_of, piece_of
from twofold.static.variables.variable import Variable


class _AutoReuse:
    def __repr__(self) -> str:
        return "AUTO_REUSE"


AUTO_REUSE = _AutoReuse()
"""``reuse`` of a scope that takes a variable if there is one, and makes it otherwise."""


class VariableScope:
    """A prefix of variable names, whether variables must exist, and their default initializer."""

    def __init__(
        self,
        name: str,
        reuse: Any,
        initializer: Any,
        dtype: Any,
        regularizer: Any = None,
        use_resource: bool | None = None,
        custom_getter: Any = None,
        constraint: Any = None,
        partitioner: Any = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.dtype = dtype
        self.regularizer = regularizer
        self.use_resource = use_resource
        self.custom_getter = custom_getter
        self.constraint = constraint
        self.partitioner = partitioner
        self.original_name_scope = name + "/" if name else ""

    def reuse_variables(self) -> None:
        """From here on, variables must exist."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set the default initializer."""
        self.initializer = initializer

    def set_partitioner(self, partitioner: Any) -> None:
        """Set what divides variables into parts."""
        self.partitioner = partitioner

    def set_regularizer(self, regularizer: Any) -> None:
        """Set the default regularizer."""
        self.regularizer = regularizer

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Set what is called to get variables."""
        self.custom_getter = custom_getter

    def set_use_resource(self, use_resource: bool) -> None:
        """Set whether variables are resources unless they say so."""
        self.use_resource = use_resource

    def set_dtype(self, dtype: Any) -> None:
        """Set the default dtype."""
        self.dtype = as_dtype(dtype)

    def get_collection(self, name: str) -> list[Any]:
        """The values of a collection whose names start with this scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else None)

    def global_variables(self) -> list[Variable]:
        """Variables whose names start with this scope."""
        return self.get_collection("variables")

    def local_variables(self) -> list[Variable]:
        """Local variables whose names start with this scope."""
        return self.get_collection("local_variables")

    def trainable_variables(self) -> list[Variable]:
        """Trainable variables whose names start with this scope."""
        return self.get_collection("trainable_variables")


@example(
    'with tf.variable_scope("layer"):', "    scope = tf.get_variable_scope()", "print(scope.name)", "layer"
)
def get_variable_scope() -> VariableScope:
    """The present scope of the default graph."""
    scopes = get_default_graph().variable_scopes
    if not scopes:
        scopes.append(VariableScope("", False, None, float32))
    return scopes[-1]


@example(
    'with tf.variable_scope("layer"):',
    '    first = tf.get_variable("w", [2, 3])',
    'with tf.variable_scope("layer", reuse=True):',
    '    print(tf.get_variable("w", [2, 3]) is first, first.name)',
    "True layer/w:0",
)
@contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: Any = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Inside, ``get_variable`` puts ``name/`` before names; with ``reuse=True`` variables must exist.

    ``tf.AUTO_REUSE`` takes what is there and makes what is not. The other arguments are defaults of the variables;
    ``custom_getter`` is called first, with that of the scope around it. Without ``auxiliary_name_scope`` operations
    keep the name scope from outside.
    """
    graph = get_default_graph()
    check_device("variable_scope", caching_device)
    check_one_graph("variable_scope", values)
    outer = get_variable_scope()
    name, part, inherited = _named(graph, outer, name_or_scope, default_name)
    reuse = reuse or inherited.reuse
    made = VariableScope(
        name,
        reuse,
        inherited.initializer if initializer is None else initializer,
        dtype or inherited.dtype,
        regularizer or inherited.regularizer,
        inherited.use_resource if use_resource is None else use_resource,
        _around(custom_getter, inherited.custom_getter),
        inherited.constraint if constraint is None else constraint,
        inherited.partitioner if partitioner is None else partitioner,
    )
    graph.variable_scopes.append(made)
    counts = graph.variable_scope_counts
    counts[name] = counts.get(name, 0) + 1
    before = dict(counts) if inherited is name_or_scope else None
    try:
        with graph.name_scope(
            part if part and auxiliary_name_scope else graph.get_name_scope() + "/"
        ) as scope:
            made.original_name_scope = inherited.original_name_scope if inherited is name_or_scope else scope
            yield made
    finally:
        graph.variable_scopes.remove(made)
        _count_anew(graph, name, before)


@contextmanager
def layer_scope(name_or_scope: Any, default_name: str, reuse: Any = None) -> Iterator[VariableScope]:
    """``variable_scope`` of a layer, whose operations stay in the name scope that its object has from the beginning."""
    entered = isinstance(name_or_scope, VariableScope)
    with variable_scope(name_or_scope, default_name, reuse=reuse, auxiliary_name_scope=not entered) as scope:
        if entered and scope.original_name_scope:
            with get_default_graph().name_scope(scope.original_name_scope):
                yield scope
        else:
            yield scope


def _named(
    graph: Graph, outer: VariableScope, name_or_scope: Any, default_name: str | None
) -> tuple[str, str, VariableScope]:
    """The name of a scope, its part of the name, and the scope that it has defaults from."""
    if isinstance(name_or_scope, VariableScope):
        return name_or_scope.name, name_or_scope.name.split("/")[-1], name_or_scope
    part = name_or_scope if name_or_scope is not None else _unique_part(graph, outer, default_name)
    return f"{outer.name}/{part}" if outer.name else part, part, outer


def _around(getter: Any, outer: Any) -> Any:
    """A scope's own getter, given that of the scope around it to call."""
    if getter is None or outer is None:
        return outer if getter is None else getter

    def both(made: Callable[..., Any], *args: Any, **arguments: Any) -> Any:
        return getter(functools.partial(outer, made), *args, **arguments)

    return both


def _count_anew(graph: Graph, name: str, before: dict[str, int] | None) -> None:
    """After a scope, names inside it begin anew: who enters it again, to reuse its variables, finds the same ones."""
    counts = graph.variable_scope_counts
    anew = {key: 0 for key in counts if key.startswith(f"{name}/")} if before is None else before
    if before is not None:
        counts.clear()
    counts.update(anew)


def _unique_part(graph: Graph, outer: VariableScope, default_name: str | None) -> str:
    if default_name is None:
        raise ValueError(f"variable_scope: give a name or a default_name, at {here()}.")
    full = f"{outer.name}/{default_name}" if outer.name else default_name
    counts = graph.variable_scope_counts
    if not counts.get(full):
        return default_name
    number = next(k for k in itertools.count(1) if not counts.get(f"{full}_{k}"))
    return f"{default_name}_{number}"


@contextmanager
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **options: Any
) -> Iterator[VariableScope]:
    """``variable_scope`` with its older order of arguments."""
    with variable_scope(name_or_scope, default_name, values, **options) as scope:
        yield scope


@takes(
    "shape=None, dtype=None, initializer=None, regularizer=None, trainable=None, collections=None, "
    "caching_device=None, partitioner=None, validate_shape=True, use_resource=None, custom_getter=None, "
    "constraint=None, synchronization=None, aggregation=None"
)
def get_variable(name: str, **given: Any) -> Any:
    """The variable ``name`` of the present variable scope, made on first use.

    ``initializer`` is an initializer, a function, or a value (default: Glorot's, uniform), and gives the shape if it
    is a value. ``custom_getter(getter, name, **arguments)`` is called instead of what makes or finds the variable.
    A ``partitioner``, such as ``tf.fixed_size_partitioner`` returns, divides it: the result is a
    ``PartitionedVariable``. Raises ValueError for a variable that exists (unless the scope reuses), is missing though
    it must not, or has another shape or other parts.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.variable_scope("layer"):
    ...     print(tf.get_variable("w", [2, 3]).name)
    layer/w:0
    """
    scope = get_variable_scope()
    check_device("get_variable", given["caching_device"])
    for key in ("initializer", "regularizer", "partitioner", "use_resource", "custom_getter", "constraint"):
        given[key] = getattr(scope, key) if given[key] is None else given[key]
    given |= {"dtype": given["dtype"] or scope.dtype or float32, "reuse": scope.reuse}
    full = f"{scope.name}/{name}" if scope.name else name
    getter = given.pop("custom_getter")
    return _found_or_made(full, **given) if getter is None else getter(_found_or_made, full, **given)


@example(
    'v = tf.get_local_variable("v", [])',
    "print(tf.local_variables() == [v], tf.global_variables())",
    "True []",
)
def get_local_variable(*args: Any, **kwargs: Any) -> Any:
    """``get_variable`` for a variable that is local: it is not trained, and not saved unless a saver is given it."""
    kwargs["trainable"] = False
    kwargs["collections"] = [*(kwargs.get("collections") or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(*args, **kwargs)


def _found_or_made(name: str, shape: Any = None, dtype: Any = float32, **given: Any) -> Any:
    """The variable ``name``, in parts where a partitioner divides it."""
    graph = get_default_graph()
    partitioner = given.pop("partitioner", None)
    reuse = given.get("reuse")
    found = graph.variable_store.get(name)
    if found is not None:
        _check_found(found, reuse, shape, dtype)
        if isinstance(found, PartitionedVariable) and partitioner is not None:
            _check_parts(found, partitioner)
        return found
    if reuse is True:
        raise ValueError(
            f"get_variable: variable '{name}' does not exist, at {here()}. Drop reuse=True, or use reuse=tf.AUTO_REUSE."
        )
    made: Any = None if partitioner is None else _divided(name, shape, as_dtype(dtype), partitioner, given)
    if made is None:
        made = _made(graph, name, shape, as_dtype(dtype), **given)
    graph.variable_store[name] = made
    return made


def _made(
    graph: Graph,
    name: str,
    shape: Any,
    dtype: DType,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: bool | None = None,
    **options: Any,
) -> Variable:
    made = _new_variable(graph, name, shape, dtype, initializer, trainable=trainable is not False, **options)
    if regularizer:
        with graph.name_scope(f"{name}/Regularizer/"):
            loss = regularizer(made)
        if loss is not None:
            graph.add_to_collection("regularization_losses", loss)
    return made


def _divided(
    name: str, shape: Any, dtype: DType, partitioner: Any, given: dict[str, Any]
) -> PartitionedVariable | None:
    """A new variable in parts; None for a scalar, which has none."""
    initializer = given.pop("initializer", None)
    first = _initializer_of(initializer, dtype)
    whole = TensorShape(shape) if callable(first) else convert_to_tensor(first).get_shape()
    if not whole.is_compatible_with(shape):
        raise ValueError(
            f"get_variable: a value of shape {whole} for variable '{name}' of shape {shape}, at {here()}. "
            "Make them equal."
        )
    if whole.dims == []:
        given["initializer"] = initializer
        return None
    sizes = [int(size) for size in whole]
    partitions = partitioner(shape=whole, dtype=dtype)
    parts = []
    for k, (offset, own) in enumerate(parts_of(sizes, partitions, name)):
        if callable(first):
            info = PartitionInfo(sizes, offset)
            options = {"shape": own, "initializer": _told(first, info)}
        else:
            options = {"initializer": piece_of(first, offset, own)}
        parts.append(_found_or_made(f"{name}/part_{k}", dtype=dtype, **options, **given))
    return PartitionedVariable(name, whole, dtype, parts, partitions)


def _told(initializer: Callable[..., Any], info: PartitionInfo) -> Callable[..., Any]:
    """An initializer that is told of the part that it initialises, if it wants to know."""
    asks = "partition_info" in inspect.signature(initializer).parameters
    return functools.partial(initializer, partition_info=info) if asks else initializer


def _check_parts(found: PartitionedVariable, partitioner: Any) -> None:
    wanted = partitioner(shape=found.shape, dtype=found.dtype)
    if list(wanted) != found.partitions:
        raise ValueError(
            f"get_variable: variable {found.describe()} is in {found.partitions} parts, at {here()}. "
            f"Use its partitioner, not one that gives {list(wanted)}."
        )


def _check_found(found: Any, reuse: Any, shape: Any, dtype: Any) -> None:
    if not reuse:
        raise ValueError(
            f"get_variable: variable {found.describe()} already exists, at {here()}. "
            "Set reuse=True or reuse=tf.AUTO_REUSE in variable_scope to share it, or choose another name."
        )
    if shape is not None and not found.shape.is_compatible_with(shape):
        raise ValueError(
            f"get_variable: variable {found.describe()} is shared with another shape, "
            f"{TensorShape(shape)}, at {here()}. Use its shape."
        )
    if found.dtype is not as_dtype(dtype):
        raise ValueError(
            f"get_variable: variable {found.describe()} is shared with another dtype, "
            f"{as_dtype(dtype).name}, at {here()}. Use its dtype."
        )


def _new_variable(
    graph: Graph, full: str, shape: Any, dtype: Any, initializer: Any, **options: Any
) -> Variable:
    initializer = value = _initializer_of(initializer, dtype)
    if callable(initializer):
        if shape is None:
            raise ValueError(
                f"get_variable: the shape of variable '{full}' is not given, at {here()}. Give shape=[...]."
            )
        value = _initial(initializer, TensorShape(shape), dtype, full)
    elif shape is not None:
        raise ValueError(
            f"get_variable: shape {TensorShape(shape)} beside a value for variable '{full}', at {here()}. "
            "The value has a shape; leave out the other."
        )
    if at_once() and options.get("collections") is None:
        # the graph keeps it for those that ask for its name
        options["collections"] = [GraphKeys.GLOBAL_VARIABLES]
    with graph.name_scope(None):
        return Variable(value, name=full, dtype=dtype if callable(initializer) else None, **options)


def _initializer_of(given: Any, dtype: DType) -> Any:
    """What gives the first value, or that value."""
    if given is None:
        whole = initializers.zeros_initializer()
        return initializers.glorot_uniform_initializer() if dtype.kind == "f" else whole
    return given() if isinstance(given, type) else given


def _initial(initializer: Callable[..., Any], shape: TensorShape, dtype: Any, full: str) -> Callable[[], Any]:
    if not shape.is_fully_defined():
        raise GraphError(
            f"get_variable: the shape {shape} of variable '{full}' has unknown sizes, at {here()}",
            "Give all sizes.",
        )
    sizes = [int(size) for size in shape]
    try:
        takes = initializer.__code__.co_argcount > 0 if hasattr(initializer, "__code__") else True
    except AttributeError:
        takes = True
    return (lambda: initializer(sizes, dtype=dtype)) if takes else (lambda: initializer())


@example(
    'w = tf.get_variable("w", [2], regularizer=tf.no_regularizer)',
    "print(tf.losses.get_regularization_losses())",
    "[]",
)
def no_regularizer(_: Any) -> None:
    """No penalty, where that of the scope would be used otherwise."""


@example(
    "def doubled(make, **options):",
    "    return make(**{**options, 'initial_value': 2 * options['initial_value']})",
    "with tf.variable_creator_scope(doubled):",
    "    v = tf.Variable(3.0)",
    "session.run(tf.global_variables_initializer())",
    "v",
    "6.0",
)
@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Inside, ``variable_creator`` makes variables: a function of the next such function and of arguments by name.

    That of the innermost block is called first; the last one is ``tf.Variable``.
    """
    graph = get_default_graph()
    before, graph.variable_creators = graph.variable_creators, (*graph.variable_creators, variable_creator)
    try:
        yield
    finally:
        graph.variable_creators = before


@example(
    'scaled = tf.make_template("scaled", lambda x: x * tf.get_variable("w", initializer=2.0))',
    "y = scaled(1.0) + scaled(3.0)",
    "session.run(tf.global_variables_initializer())",
    "y",
    "8.0",
)
def make_template(
    name_: str,
    func_: Any,
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Any:
    """``func_`` in a variable scope of its own: it makes its variables when first called, and shares them then.

    The scope gets its name, ``name_`` made unique or exactly ``unique_name_``, at the first call; with
    ``create_scope_now_`` at once. ``custom_getter_`` is called as that of ``variable_scope``.
    """
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_, kwargs)


class Template:
    """What ``make_template`` returns: a function with variables of its own."""

    def __init__(
        self, name: str, func: Any, now: bool, unique_name: str | None, getter: Any, options: dict[str, Any]
    ) -> None:
        self._given = (unique_name, name, getter)
        self._func, self._options, self._called = func, options, False
        self._scope: VariableScope | None = None
        if now:
            with self._new_scope() as made:
                self._scope = made

    def _new_scope(self) -> Any:
        unique_name, name, getter = self._given
        return variable_scope(unique_name, name, custom_getter=getter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function, whose variables the first call makes."""
        with variable_scope(self._scope, reuse=self._called) if self._scope else self._new_scope() as made:
            found = self._func(*args, **{**self._options, **kwargs})
        if self._scope is None:
            self._scope = made
        self._called = True
        return found

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._given[1]

    @property
    def func(self) -> Any:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """Its scope; None before the first call unless it was created with the template."""
        return self._scope

    var_scope = variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the scope, if there is one."""
        return None if self._scope is None else self._scope.name

    def _collected(self, key: str) -> list[Variable]:
        return [] if self._scope is None else self._scope.get_collection(key)

    @property
    def trainable_variables(self) -> list[Variable]:
        """Its trainable variables."""
        return self._collected("trainable_variables")

    @property
    def global_variables(self) -> list[Variable]:
        """Its global variables."""
        return self._collected("variables")

    @property
    def local_variables(self) -> list[Variable]:
        """Its local variables."""
        return self._collected("local_variables")

    @property
    def variables(self) -> list[Variable]:
        """Its global and its local variables."""
        return self.global_variables + self.local_variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Its variables that are not trained."""
        trained = self.trainable_variables
        return [variable for variable in self.variables if not any(variable is one for one in trained)]

    weights, trainable_weights, non_trainable_weights = (
        variables,
        trainable_variables,
        non_trainable_variables,
    )
