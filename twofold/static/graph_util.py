"""Graphs as messages made smaller: parts of them, and variables as constants (``tf.graph_util``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from twofold.files import atomic_write
from twofold.runtime.tracing import here
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import constant
from twofold.static.graph.graph import Graph
from twofold.static.protobuf.graph_def import (
    CODES,
    GraphDef,
    NodeDef,
    TensorProto,
    array_of_message,
    message_of,
    nodes_named,
    tensor_message,
)

__getattr__, __dir__ = look_up(__name__)

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})


def _node_of(text: str) -> str:
    return text.lstrip("^").split(":")[0]


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> GraphDef:
    """The nodes that ``dest_nodes`` need, in their order; raises AssertionError for a name that is not there.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.placeholder(tf.float32, name="x")
    ...     y, z = tf.square(x, name="y"), tf.exp(x, name="z")
    >>> part = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["y"])
    >>> [node.name for node in part.node]
    ['x', 'y']
    """
    if isinstance(dest_nodes, str):
        raise TypeError(f"extract_sub_graph: dest_nodes must be an iterable of strings, at {here()}.")
    message = message_of(graph_def)
    nodes = {node.name: node for node in message.node}
    needed: set[str] = set()
    stack = list(dest_nodes)
    for name in stack:
        if name not in nodes:
            raise AssertionError(f"{name} is not in graph")
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += [_node_of(text) for text in nodes[name].input] + nodes_named(nodes[name])
    found = GraphDef(versions=message.versions)
    if message.library:
        found.library = message.library
    found.node.extend(node for node in message.node if node.name in needed)
    return found


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> GraphDef:
    """What ``output_node_names`` need, with the variables as constants of their values in a session.

    ``variable_names_whitelist`` names the variables that become constants (all unless given),
    ``variable_names_blacklist`` those that do not. Raises GraphError for a variable without a value.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph, tf.Session() as session:
    ...     y = tf.multiply(tf.Variable(3.0, name="v"), 2.0, name="y")
    ...     session.run(tf.global_variables_initializer())
    ...     frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    >>> [(node.name, node.op) for node in frozen.node]
    [('v', 'Const'), ('y/y', 'Const'), ('y', 'Mul')]
    """
    found = extract_sub_graph(input_graph_def, output_node_names)
    wanted = None if variable_names_whitelist is None else set(variable_names_whitelist)
    kept = set(variable_names_blacklist or ())
    frozen: set[str] = set()
    for node in found.node:
        if node.op in _VARIABLES and (wanted is None or node.name in wanted) and node.name not in kept:
            _freeze(sess, node)
            frozen.add(node.name)
    for node in found.node:
        if node.op == "ReadVariableOp" and _node_of(node.input[0]) in frozen:
            code = node.attr["dtype"].type
            node.op = "Identity"
            node.attr.clear()
            node.attr["T"].type = code
    return found


def _freeze(sess: Any, node: NodeDef) -> None:
    variable = sess.graph.get_operation_by_name(node.name).variable
    array = sess._value_of(variable).detach().numpy()
    dtype = variable.dtype
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].type = CODES[dtype]
    node.attr["value"].tensor.CopyFrom(tensor_message(array, dtype))


def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> GraphDef:
    """The graph without checks, and without identities unless they are protected or others wait for them.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.square(tf.identity(tf.placeholder(tf.float32, name="x")), name="y")
    >>> [node.name for node in tf.graph_util.remove_training_nodes(graph.as_graph_def()).node]
    ['x', 'y']
    """
    message = message_of(input_graph)
    kept = set(protected_nodes or ())
    awaited = {_node_of(text) for node in message.node for text in node.input if text.startswith("^")}
    awaited.update(name for node in message.node for name in nodes_named(node))
    through = {
        node.name: node.input[0]
        for node in message.node
        if node.op in ("Identity", "CheckNumerics")
        and (node.name not in kept and node.name not in awaited)
        and not any(text.startswith("^") for text in node.input)
    }

    def followed(text: str) -> str:
        while text in through:
            text = through[text]
        return text

    found = GraphDef(versions=message.versions)
    for node in message.node:
        if node.name not in through:
            made = found.node.add()
            made.CopyFrom(node)
            made.input[:] = [followed(text) for text in node.input]
    return found


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Write a graph to ``logdir/name``, as text or in the wire format; returns the path.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.constant(1.0, name="x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tf.train.write_graph(graph, folder, "graph.pb", as_text=False)
    ...     with open(path, "rb") as file:
    ...         print(tf.GraphDef.FromString(file.read()).node[0].name)
    x
    """
    message = (
        graph_or_graph_def.as_graph_def()
        if hasattr(graph_or_graph_def, "as_graph_def")
        else graph_or_graph_def
    )
    path = os.path.join(str(logdir), name)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    content = str(message).encode() if as_text else message.SerializeToString()
    with atomic_write(path) as file:
        file.write(content)
    return path


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False
) -> TensorProto:
    """The message of an array, or of numbers or strings; with ``shape`` a single value is repeated.

    >>> import twofold.static as tf
    >>> tf.make_ndarray(tf.make_tensor_proto([1, 2]))
    array([1, 2], dtype=int32)
    """
    with Graph().as_default():
        made = constant(values, dtype, shape, verify_shape=verify_shape)
        found: TensorProto = made.op.node_def.attr["value"].tensor
    return found


def make_ndarray(tensor: Any) -> Any:
    """The array that a message says.

    >>> import twofold.static as tf
    >>> tf.make_ndarray(tf.make_tensor_proto([1.5]))
    array([1.5], dtype=float32)
    """
    return array_of_message(TensorProto.FromString(tensor.SerializeToString()))[0]
