"""Blocks around declarations: name scopes, devices, control dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from twofold.runtime.tracing import here
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor, get_default_graph, owner_of
from twofold.static.graph.one_graph import check_one_graph


@example(
    "v = tf.Variable(0)",
    "session.run(tf.global_variables_initializer())",
    "with tf.control_dependencies([tf.assign(v, 5)]):",
    "    read = tf.identity(v)",
    "read",
    "5",
)
def control_dependencies(control_inputs: Any) -> Any:
    """Inside, operations of the default graph run after these, and read the variables as these left them."""
    return get_default_graph().control_dependencies(control_inputs)


@example('with tf.name_scope("layer"):', '    x = tf.constant(1.0, name="x")', "print(x.name)", "layer/x:0")
@contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Iterator[str]:
    """Inside, names of operations start with ``name/``; the graph is that of ``values`` if any are given."""
    if name is None and default_name is None and values is not None:
        raise ValueError(f"name_scope: values without a name, at {here()}. Give name or default_name.")
    if at_once():
        with get_default_graph().name_scope(default_name if name is None else name) as scope:
            yield scope
        return
    graph = _graph_of("name_scope", values)
    with graph.as_default(), graph.name_scope(default_name if name is None else name) as scope:
        yield scope


def _graph_of(what: str, values: Any) -> Any:
    """The graph of the tensors among ``values``, else the default one."""
    check_one_graph(what, values)
    given = [getattr(value, "_as_graph_element", lambda value=value: value)() for value in values or ()]
    owners = [owner_of(value) for value in given if isinstance(value, Tensor)]
    return next((owner[0].graph for owner in owners if owner is not None), get_default_graph())


@example('with tf.op_scope([], "layer"):', '    x = tf.constant(1.0, name="x")', "print(x.name)", "layer/x:0")
@contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """``name_scope`` with its older order of arguments."""
    with name_scope(name, default_name, values) as scope:
        yield scope


@example('with tf.device("/cpu:0"):', "    x = tf.constant(1.0)", "x", "1.0")
def device(device_name_or_function: Any) -> Any:
    """Inside, operations are for a device: a string such as ``"/cpu:0"``, or a function of an operation.

    The processor is the only device. A run of an operation for another one raises InvalidArgumentError, unless
    ``tf.ConfigProto(allow_soft_placement=True)`` lets the processor stand for it; ValueError for what is no device.
    """
    return get_default_graph().device(device_name_or_function)


@example('with tf.container("mine"):', "    x = tf.constant(1.0)", "x", "1.0")
def container(container_name: str) -> AbstractContextManager[None]:
    """A block that changes nothing: what variables, tables and queues hold is kept apart by sessions and graphs."""
    return nullcontext()


@example("x = tf.constant(1.0)", "with tf.colocate_with(x):", "    y = x + 1.0", "y", "2.0")
def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """A block that changes nothing: there is one device, so all operations share it already."""
    return nullcontext()


@example("with tf.init_scope():", "    y = tf.constant(2.0)", "y", "2.0")
@contextmanager
def init_scope() -> Iterator[None]:
    """A block whose operations depend on none of the surrounding ``control_dependencies``."""
    with control_dependencies(None):
        yield
