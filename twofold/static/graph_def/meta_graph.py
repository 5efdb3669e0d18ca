"""Graphs with their collections as messages: ``tf.train.export_meta_graph`` and ``import_meta_graph``.

Sources: ``meta_graph.proto`` and ``variable.proto`` of tensorflow/core.
"""

from __future__ import annotations

import os
from typing import Any

from twofold import _core
from twofold.errors import ArgumentError
from twofold.files import atomic_write
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.graph.collection_messages import (
    get_collection_proto_type,
    get_from_proto_function,
    get_to_proto_function,
)
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, Operation, get_default_graph, name_of, owner_of
from twofold.static.graph_def.importer import Importer
from twofold.static.protobuf.example import BytesList, FloatList, Int64List
from twofold.static.protobuf.graph_def import message_of
from twofold.static.protobuf.messages import Message, fields, message
from twofold.static.variables.variable import Variable


class VariableDef(Message):
    """A variable by the names of what belongs to it."""

    FIELDS = fields(
        "string variable_name = 1; string initializer_name = 2; string snapshot_name = 3; "
        "bool is_resource = 5; string initial_value_name = 6; bool trainable = 7"
    )


NodeList = message("NodeList", "Names of operations and tensors.", "repeated string value = 1")


class CollectionDef(Message):
    """What a collection holds: values of one kind."""

    NodeList, BytesList, Int64List, FloatList = NodeList, BytesList, Int64List, FloatList
    FIELDS = fields(
        "oneof NodeList node_list = 1; oneof BytesList bytes_list = 2; oneof Int64List int64_list = 3; "
        "oneof FloatList float_list = 4"
    )


MetaInfoDef = message(
    "MetaInfoDef",
    "What wrote a graph.",
    "string meta_graph_version = 1; repeated string tags = 4; string tensorflow_version = 5",
)
SavedVariable = message(
    "SavedVariable",
    "The name that a variable has in checkpoints, and its own.",
    "string name = 1; string variable = 2",
)


class SaverDef(Message):
    """What a saver saves: by names of operations in files of TensorFlow, else by ``variables``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     v = tf.get_variable("v", [])
    ...     saver = tf.train.Saver(write_version=tf.train.SaverDef.V2)
    """

    LEGACY, V1, V2 = range(3)
    FIELDS = fields(
        "string filename_tensor_name = 1; string save_tensor_name = 2; string restore_op_name = 3; "
        "int max_to_keep = 4; bool sharded = 5; float keep_checkpoint_every_n_hours = 6; int version = 7; "
        "repeated SavedVariable variables = 1000"
    )


class TensorInfo(Message):
    """A tensor of a graph: its name, dtype and shape."""

    FIELDS = fields("string name = 1; DataType dtype = 2; TensorShapeProto tensor_shape = 3")


class SignatureDef(Message):
    """A function of a graph: tensors by the names of its inputs and outputs."""

    FIELDS = fields("map TensorInfo inputs = 1; map TensorInfo outputs = 2; string method_name = 3")


class MetaGraphDef(Message):
    """A graph and its collections; ``saver`` has no operations, which readers of ``saver_def`` would look for.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     v = tf.get_variable("v", [])
    ...     message = tf.train.export_meta_graph()
    >>> type(message).__name__, sorted(message.collection_def)
    ('MetaGraphDef', ['trainable_variables', 'variables'])
    """

    MetaInfoDef = MetaInfoDef
    FIELDS = fields(
        "MetaInfoDef meta_info_def = 1; GraphDef graph_def = 2; SaverDef saver_def = 3; "
        "map CollectionDef collection_def = 4; map SignatureDef signature_def = 5; SaverDef saver = 1000"
    )


def meta_graph_of(graph: Graph) -> MetaGraphDef:
    """The message of a graph; values of collections that no message can hold are left out."""
    found = MetaGraphDef(graph_def=graph.as_graph_def())
    for key in graph.get_all_collection_keys():
        if isinstance(key, str):
            for value in graph.get_collection(key):
                _enter(found, key, value)
    return found


def _enter(message: MetaGraphDef, key: str, value: Any) -> None:
    """Put a value of a collection in the message, if there is a kind of message for it."""
    kind: str
    content: Any
    written = get_to_proto_function(key)
    if written is not None:
        described = written(value, export_scope=None)
        if described is None:
            return
        kind, content = "bytes_list", described.SerializeToString()
    elif isinstance(value, Variable):
        kind, content = "bytes_list", _described(value).SerializeToString()
    elif isinstance(value, Operation):
        kind, content = "node_list", value.name
    elif isinstance(value, _core.Tensor) and owner_of(value) is not None:
        kind, content = "node_list", name_of(value)
    elif isinstance(value, (str, bytes)):
        kind, content = "bytes_list", value.encode() if isinstance(value, str) else value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        kind, content = ("int64_list" if isinstance(value, int) else "float_list"), value
    else:
        return
    held = message.collection_def[key]
    if held.WhichOneof("kind") == "node_list" and isinstance(value, Variable):
        kind, content = "node_list", value.name  # the first value says the kind
    if held.WhichOneof("kind") in (None, kind):
        getattr(held, kind).value.append(content)


def _described(variable: Variable) -> VariableDef:
    found = VariableDef(variable_name=variable.name, is_resource=bool(variable.use_resource))
    found.snapshot_name, found.trainable = variable.name, bool(variable.trainable)
    if variable._initializer is not None:
        found.initializer_name = variable._initializer.name
    return found


@example('x = tf.constant(1.0, name="x")', "print(tf.train.export_meta_graph().graph_def.node[0].name)", "x")
def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
) -> MetaGraphDef:
    """The message of a graph and its collections, which is written to a file, too, if one is given.

    ``clear_extraneous_savers`` and ``strip_default_attrs`` change nothing: there are no operations of savers, and no
    default attributes. Raises ArgumentError for ``meta_info_def``, ``graph_def``, ``saver_def``, ``export_scope`` and
    ``save_debug_info``.

    Args:
        filename: The path of the file.
        meta_info_def: See above.
        graph_def: See above.
        saver_def: See above.
        collection_list: The names of the collections; all unless given.
        as_text: Whether the file holds text.
        graph: The graph; the default one unless given.
        export_scope: See above.
        clear_devices: Whether nodes name no devices.
        clear_extraneous_savers: See above.
        strip_default_attrs: See above.
        save_debug_info: See above.
    """
    refuse(
        "export_meta_graph",
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        export_scope=export_scope,
        save_debug_info=save_debug_info,
    )
    found = meta_graph_of(graph or get_default_graph())
    if collection_list is not None:
        for key in set(found.collection_def) - set(collection_list):
            del found.collection_def[key]
    if clear_devices:
        for node in found.graph_def.node:
            node.device = ""
    if filename is not None:
        write_meta_graph(found, filename, as_text)
    return found


def write_meta_graph(message: MetaGraphDef, filename: Any, as_text: bool) -> None:
    """Write a message to a file, whose directory is made if it is missing."""
    path = os.fspath(filename)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with atomic_write(path) as file:
        file.write(str(message).encode() if as_text else message.SerializeToString())


def read_meta_graph(path: Any) -> MetaGraphDef:
    """The message in a file; raises OSError where there is none."""
    with open(path, "rb") as file:
        return MetaGraphDef.FromString(file.read())


def enter_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool, import_scope: str | None, input_map: Any
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Declare a message's graph in the default graph and fill its collections; what its saver saves, and its options.

    Without a saver these are all global variables. Operations that cannot be imported stand for themselves by name,
    and raise when something needs their values.
    """
    given = meta_graph_or_file
    if isinstance(given, (str, os.PathLike)):
        message = read_meta_graph(given)
    else:
        message = (
            given if isinstance(given, MetaGraphDef) else MetaGraphDef.FromString(given.SerializeToString())
        )
    nodes = message_of(message.graph_def)
    if clear_devices:
        for node in nodes.node:
            node.device = ""
    graph, scope = get_default_graph(), import_scope or None
    with graph.name_scope(scope):
        prefix = graph.get_name_scope() if scope else ""
        importer = Importer(graph, nodes, prefix, dict(input_map or {}), stands=True)
        importer.declare_all()
    found: dict[str, Variable] = {}
    for key, held in message.collection_def.items():
        kind = held.WhichOneof("kind")
        read = get_from_proto_function(key) if kind == "bytes_list" else None
        for value in getattr(held, kind).value if kind else ():
            if read is None:
                made = _value_of(importer, kind, value, found)
            else:
                made = read(get_collection_proto_type(key).FromString(value), import_scope=prefix or None)
            if made is not None:
                graph.add_to_collection(key, made)
    saver = message.saver if message.HasField("saver") else message.saver_def
    names = {one.name: one.variable for one in saver.variables} or _names_of_nodes(importer, saver)
    if not names and not message.HasField("saver"):
        values = message.collection_def["variables"].bytes_list.value
        everywhere = [_value_of(importer, "bytes_list", value, found) for value in values]
        return {name: variable for name, variable in found.items() if variable in everywhere}, {}
    options = {
        "max_to_keep": saver.max_to_keep,
        "keep_checkpoint_every_n_hours": saver.keep_checkpoint_every_n_hours,
    }
    return {name: _variable_of(importer, variable) for name, variable in names.items()}, options


def _names_of_nodes(importer: Importer, saver: SaverDef) -> dict[str, str]:
    """The variables that nodes of TensorFlow save, by their names in checkpoints; none if parts of some are saved."""
    found: dict[str, str] = {}
    above = [saver.save_tensor_name]
    seen: set[str] = set()
    while above:
        name = above.pop().lstrip("^").partition(":")[0]
        if name in seen or name not in importer.nodes:
            continue
        seen.add(name)
        node = importer.nodes[name]
        if node.op != "SaveV2":
            above.extend(node.input)
            continue
        names, slices = (_strings(importer, text) for text in node.input[1:3])
        if any(slices):
            return {}
        found.update(zip(names, node.input[3:]))
    return found


def _strings(importer: Importer, text: str) -> list[str]:
    """The strings of a constant."""
    return [value.decode() for value in importer.nodes[text].attr["value"].tensor.string_val]


def _variable_of(importer: Importer, text: str) -> Variable:
    """The variable of a name, or the one that an operation of this name reads."""
    name = text.partition(":")[0]
    while importer.operations[name].variable is None and importer.nodes[name].input:
        name = importer.nodes[name].input[0].partition(":")[0]
    return _checked_variable(importer, name)


def _value_of(importer: Importer, kind: str, value: Any, variables: dict[str, Variable]) -> Any:
    """What a value of a collection means."""
    if kind == "node_list":
        return importer.element(value)
    if kind != "bytes_list":
        return value
    try:
        described = VariableDef.FromString(value)
        name = described.variable_name.partition(":")[0]
    except (ValueError, UnicodeDecodeError, IndexError):
        return value
    if name not in importer.operations:
        return value
    if name not in variables:
        variables[name] = _variable(importer, name, described)
    return variables[name]


def _variable(importer: Importer, name: str, described: VariableDef) -> Variable:
    found = _checked_variable(importer, name)
    found.trainable = described.trainable
    starts = described.initializer_name
    if found._initializer is None and starts in importer.operations:
        found._initializer = importer.operations[starts]
    return found


def _checked_variable(importer: Importer, name: str) -> Variable:
    found: Variable | None = importer.operations[name].variable
    if found is None:
        raise ArgumentError(
            f"import_meta_graph: '{name}' is no variable, at {here()}", "Export the graph anew."
        )
    return found
