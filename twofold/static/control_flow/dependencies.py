"""Operations that order others: groups, tuples, what runs after dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.static.api.op_functions import as_tensor
from twofold.static.arrays.shape_ops import identity
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, get_default_graph, operation_of
from twofold.static.graph.scopes import control_dependencies, name_scope


@example("tf.no_op()", "None")
def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing but run what it depends on."""
    return get_default_graph().add("NoOp", name, (), ())


@example(
    "v, w = tf.Variable(0), tf.Variable(0)",
    "session.run(tf.global_variables_initializer())",
    "session.run(tf.group(tf.assign(v, 1), tf.assign(w, 2)))",
    "[v, w]",
    "[np.int32(1), np.int32(2)]",
)
def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs all of ``inputs``."""
    if at_once():
        return no_op(name)
    flat: list[Any] = []
    for item in inputs:
        flat += item if isinstance(item, (list, tuple)) else [item]
    graph = get_default_graph()
    controls = [graph.as_graph_element(item) for item in flat if item is not None]
    operations = [item if isinstance(item, Operation) else operation_of(item) for item in controls]
    made = graph.add("NoOp", name or "group_deps", (), ())
    made.control_inputs = tuple(dict.fromkeys((*made.control_inputs, *operations)))
    return made


@example("tf.tuple([tf.constant(1), tf.constant(2)])", "[np.int32(1), np.int32(2)]")
def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, each available only once all are computed; the operations are in the scope ``name``."""
    controls = [operation_of(as_tensor(tensor)) for tensor in tensors if tensor is not None] + list(
        control_inputs or []
    )
    with name_scope(name, "tuple"), control_dependencies(controls):
        return [None if tensor is None else identity(tensor) for tensor in tensors]


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """``output_tensor`` after ``dependencies`` have run.

    >>> import twofold.static as tf
    >>> from twofold.static.python.ops import control_flow_ops
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     v = tf.Variable(0)
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(control_flow_ops.with_dependencies([tf.assign(v, 5)], tf.constant(1)))
    ...     print(session.run(v))
    np.int32(1)
    5
    """
    with control_dependencies(dependencies):
        return identity(output_tensor, name=name)
