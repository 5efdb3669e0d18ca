"""Variable scopes: shared variables by name, as ``get_variable`` makes and finds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twofold.dtypes import float32
from twofold.errors import GraphError
from twofold.runtime.tracing import here
from twofold.static import initializers
from twofold.static.define import as_dtype
from twofold.static.graph import Graph, get_default_graph
from twofold.static.shapes import TensorShape
from twofold.static.variables import Variable


class _AutoReuse:
    def __repr__(self) -> str:
        return "AUTO_REUSE"


AUTO_REUSE = _AutoReuse()
"""``reuse`` of a scope that takes a variable if there is one, and makes it otherwise."""


class VariableScope:
    """A prefix of variable names, whether variables must exist, and their default initializer."""

    def __init__(self, name: str, reuse: Any, initializer: Any, dtype: Any, regularizer: Any = None) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.dtype = dtype
        self.regularizer = regularizer
        self.original_name_scope = name + "/" if name else ""

    def reuse_variables(self) -> None:
        """From here on, variables must exist."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set the default initializer."""
        self.initializer = initializer

    def global_variables(self) -> list[Variable]:
        """Variables whose names start with this scope."""
        return get_default_graph().get_collection("variables", self.name)

    def trainable_variables(self) -> list[Variable]:
        """Trainable variables whose names start with this scope."""
        return get_default_graph().get_collection("trainable_variables", self.name)


def get_variable_scope() -> VariableScope:
    """The present scope of the default graph.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     with tf.variable_scope("layer"):
    ...         scope = tf.get_variable_scope()
    ...     print(scope.name)
    layer
    """
    scopes = get_default_graph().variable_scopes
    if not scopes:
        scopes.append(VariableScope("", False, None, float32))
    return scopes[-1]


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

    ``tf.AUTO_REUSE`` takes what is there and makes what is not.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     with tf.variable_scope("layer"):
    ...         first = tf.get_variable("w", [2, 3])
    ...     with tf.variable_scope("layer", reuse=True):
    ...         print(tf.get_variable("w", [2, 3]) is first, first.name)
    True layer/w:0
    """
    graph = get_default_graph()
    outer = get_variable_scope()
    if isinstance(name_or_scope, VariableScope):
        name, part = name_or_scope.name, name_or_scope.name.split("/")[-1]
        inherited = name_or_scope
    else:
        part = name_or_scope if name_or_scope is not None else _unique_part(graph, outer, default_name)
        name = f"{outer.name}/{part}" if outer.name else part
        inherited = outer
    if reuse is None or (reuse is False and outer.reuse is True):
        reuse = inherited.reuse or outer.reuse
    made = VariableScope(
        name,
        reuse,
        inherited.initializer if initializer is None else initializer,
        dtype or inherited.dtype,
        regularizer or inherited.regularizer,
    )
    graph.variable_scopes.append(made)
    counts = graph.variable_scope_counts
    counts[name] = counts.get(name, 0) + 1
    before = dict(counts) if inherited is name_or_scope else None
    try:
        with graph.name_scope(part or graph.get_name_scope() + "/") as scope:
            made.original_name_scope = scope
            yield made
    finally:
        graph.variable_scopes.remove(made)
        _count_anew(graph, name, before)


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


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
    **options: Any,
) -> Variable:
    """The variable ``name`` of the present variable scope, made on first use.

    ``initializer`` is an initializer, a function, or a value (default: Glorot's, uniform). Raises ValueError for
    a variable that exists (unless the scope reuses), is missing though it must not, or has another shape.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.variable_scope("layer"):
    ...     print(tf.get_variable("w", [2, 3]).name)
    layer/w:0
    """
    graph = get_default_graph()
    scope = get_variable_scope()
    full = f"{scope.name}/{name}" if scope.name else name
    found = graph.variable_store.get(full)
    if found is not None and scope.reuse:
        if shape is not None and not found.shape.is_compatible_with(shape):
            raise ValueError(
                f"get_variable: variable {found.describe()} is shared with another shape, "
                f"{TensorShape(shape)}, at {here()}. Use its shape."
            )
        return found
    if found is not None:
        raise ValueError(
            f"get_variable: variable {found.describe()} already exists, at {here()}. "
            "Set reuse=True or reuse=tf.AUTO_REUSE in variable_scope to share it, or choose another name."
        )
    if scope.reuse is True:
        raise ValueError(
            f"get_variable: variable '{full}' does not exist, at {here()}. Drop reuse=True, or use reuse=tf.AUTO_REUSE."
        )
    graph.variable_store[full] = made = _new_variable(
        graph,
        full,
        shape,
        as_dtype(dtype or scope.dtype or float32),
        scope.initializer if initializer is None else initializer,
        trainable is not False,
        collections,
        constraint,
    )
    penalty = regularizer or scope.regularizer
    if penalty is not None and (loss := penalty(made)) is not None:
        graph.add_to_collection("regularization_losses", loss)
    return made


def _new_variable(
    graph: Graph,
    full: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    trainable: bool,
    collections: Any,
    constraint: Any,
) -> Variable:
    value: Any = initializer
    if initializer is None:
        initializer = (
            initializers.glorot_uniform_initializer()
            if dtype.kind == "f"
            else initializers.zeros_initializer()
        )
    if isinstance(initializer, type):
        initializer = initializer()
    if callable(initializer):
        if shape is None:
            raise ValueError(
                f"get_variable: the shape of variable '{full}' is not given, at {here()}. Give shape=[...]."
            )
        value = _initial(initializer, TensorShape(shape), dtype, full)
    with graph.name_scope(None):
        return Variable(
            value,
            trainable,
            collections,
            name=full,
            dtype=dtype if callable(initializer) else None,
            constraint=constraint,
        )


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
