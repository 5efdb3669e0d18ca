"""The variable that counts training steps."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

from twofold.dtypes import int64
from twofold.runtime.tracing import here
from twofold.static.graph import context
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor, get_default_graph
from twofold.static.initializers import zeros_initializer
from twofold.static.variables.variable import Variable
from twofold.static.variables.variable_scope import get_variable


@example("print(tf.train.create_global_step().name)", "global_step:0")
def create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps; raises ValueError if there is one."""
    found = graph or get_default_graph()
    if get_global_step(found) is not None:
        raise ValueError('"global_step" already exists.')
    with nullcontext() if context.at_once() else found.as_default(), found.name_scope(None):
        keys = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
        zero = zeros_initializer()
        return cast(Variable, get_variable("global_step", [], int64, zero, trainable=False, collections=keys))


@example("print(tf.train.get_global_step())", "None")
def get_global_step(graph: Any = None) -> Variable | Tensor | None:
    """The variable that counts steps, else the tensor ``global_step:0``, or None.

    Raises TypeError for a tensor that is no scalar of integers.
    """
    graph = graph or get_default_graph()
    if found := graph.get_collection(GraphKeys.GLOBAL_STEP):
        return cast(Variable, found[0])
    try:
        tensor: Any = graph.get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if not tensor.dtype.is_integer or tensor.shape.ndims not in (None, 0):
        raise TypeError(f"'global_step' is {tensor}, no scalar of integers, at {here()}. Rename it.")
    return cast(Tensor, tensor)


@example(
    "tf.train.assert_global_step(tf.train.create_global_step())",
    "print(tf.train.get_global_step().name)",
    "global_step:0",
)
def assert_global_step(global_step_tensor: Any) -> None:
    """Raise TypeError unless a tensor or variable is a scalar of integers."""
    dtype, shape = global_step_tensor.dtype, global_step_tensor.get_shape()
    if not dtype.is_integer or shape.ndims not in (None, 0):
        raise TypeError(f"'global_step' is {global_step_tensor}, no scalar of integers, at {here()}.")


@example("print(tf.train.get_or_create_global_step() is tf.train.get_or_create_global_step())", "True")
def get_or_create_global_step(graph: Any = None) -> Variable | Tensor:
    """The variable that counts steps."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


@example(
    "step = tf.train.create_global_step()",
    "session.run(tf.global_variables_initializer())",
    "print(tf.train.global_step(session, step))",
    "0",
)
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far."""
    return int(sess.run(global_step_tensor))
