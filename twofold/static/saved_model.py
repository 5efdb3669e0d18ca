"""Graphs with their variables and signatures in a directory: ``tf.saved_model``.

Sources: ``saved_model.proto`` and ``meta_graph.proto`` of tensorflow/core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from twofold.dtypes import string
from twofold.errors import ArgumentError
from twofold.files import atomic_write
from twofold.lazy import submodules
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.api.signatures import takes
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph, name_of
from twofold.static.graph_def.meta_graph import SignatureDef, TensorInfo, enter_meta_graph, meta_graph_of
from twofold.static.protobuf.graph_def import CODES, shape_message
from twofold.static.protobuf.messages import Message, fields
from twofold.static.saving.saver import Saver
from twofold.static.sparse import SparseTensor

_TAG_CONSTANTS = {"SERVING": "serve", "TRAINING": "train", "GPU": "gpu", "TPU": "tpu", "EVAL": "eval"}
_SIGNATURE_CONSTANTS = {
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY": "serving_default",
    "PREDICT_METHOD_NAME": "tensorflow/serving/predict",
    "PREDICT_INPUTS": "inputs",
    "PREDICT_OUTPUTS": "outputs",
    "CLASSIFY_METHOD_NAME": "tensorflow/serving/classify",
    "CLASSIFY_INPUTS": "inputs",
    "CLASSIFY_OUTPUT_CLASSES": "classes",
    "CLASSIFY_OUTPUT_SCORES": "scores",
    "REGRESS_METHOD_NAME": "tensorflow/serving/regress",
    "REGRESS_INPUTS": "inputs",
    "REGRESS_OUTPUTS": "outputs",
}
_CONSTANTS = {
    "SAVED_MODEL_FILENAME_PB": "saved_model.pb",
    "SAVED_MODEL_SCHEMA_VERSION": 1,
    "VARIABLES_DIRECTORY": "variables",
    "VARIABLES_FILENAME": "variables",
    "ASSETS_DIRECTORY": "assets",
    "LEGACY_INIT_OP_KEY": "legacy_init_op",
    "MAIN_OP_KEY": "saved_model_main_op",
}
_FILE = "saved_model.pb"
_GRAPH = (
    "signature_def_map=None, assets_collection=None, legacy_init_op=None, clear_devices=False, main_op=None, "
    "strip_default_attrs=False, saver=None"
)
_INITIALISERS = ("saved_model_main_op", "legacy_init_op")


class SavedModel(Message):
    """The graphs of a directory."""

    FIELDS = fields("int saved_model_schema_version = 1; repeated MetaGraphDef meta_graphs = 2")


@example('x = tf.constant(1.0, name="x")', "print(tf.saved_model.build_tensor_info(x).name)", "x:0")
def build_tensor_info(tensor: Any) -> TensorInfo:
    """The message of a tensor: its name, dtype and shape."""
    if isinstance(tensor, SparseTensor):
        raise ArgumentError(f"build_tensor_info: a SparseTensor, at {here()}", "Give its parts.")
    value = convert_to_tensor(tensor)
    sizes = value.get_shape().dims
    shape = None if sizes is None else [-1 if size.value is None else size.value for size in sizes]
    return TensorInfo(name=name_of(value), dtype=CODES[value.dtype], tensor_shape=shape_message(shape))


@example(
    'info = tf.saved_model.build_tensor_info(tf.constant(1.0, name="x"))',
    "tf.saved_model.get_tensor_from_tensor_info(info)",
    "1.0",
)
def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Any = None, import_scope: str | None = None
) -> Any:
    """The tensor that a message names."""
    name = f"{import_scope}/{tensor_info.name}" if import_scope else tensor_info.name
    return (graph or get_default_graph()).get_tensor_by_name(name)


@example("print(tf.saved_model.build_signature_def(method_name='m').method_name)", "m")
def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """The message of a function of the graph: tensors by the names of inputs and outputs."""
    found = SignatureDef()
    for held, given in ((found.inputs, inputs), (found.outputs, outputs)):
        for key, info in (given or {}).items():
            held[key].CopyFrom(info)
    if method_name is not None:
        found.method_name = method_name
    return found


def _signature(kind: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    if not inputs or not outputs:
        raise ValueError(f"{kind} signature: there are no inputs or no outputs, at {here()}. Give both.")
    given, made = (
        {key: build_tensor_info(value) for key, value in held.items()} for held in (inputs, outputs)
    )
    return build_signature_def(given, made, _SIGNATURE_CONSTANTS[f"{kind.upper()}_METHOD_NAME"])


@example(
    "x = tf.constant(1.0)",
    'print(tf.saved_model.predict_signature_def({"x": x}, {"y": x + 1}).method_name)',
    "tensorflow/serving/predict",
)
def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """The signature of tensors by names."""
    return _signature("predict", inputs, outputs)


def classification_signature_def(examples: Any, classes: Any = None, scores: Any = None) -> SignatureDef:
    """The signature of a classifier of serialised examples."""
    _check_strings("classification_signature_def", examples)
    found = {"classes": classes, "scores": scores}
    return _signature(
        "classify", {"inputs": examples}, {key: value for key, value in found.items() if value is not None}
    )


def regression_signature_def(examples: Any, predictions: Any) -> SignatureDef:
    """The signature of a regression on serialised examples."""
    _check_strings("regression_signature_def", examples)
    return _signature("regress", {"inputs": examples}, {"outputs": predictions})


def _check_strings(what: str, examples: Any) -> None:
    if examples is None or convert_to_tensor(examples).dtype is not string:
        raise ValueError(f"{what}: examples are no tf.string tensor, at {here()}. Give serialised examples.")


class SavedModelBuilder:
    """Collects graphs for a new directory.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     y = tf.multiply(tf.Variable(3.0), 2.0, name="y")
    ...     session.run(tf.global_variables_initializer())
    ...     builder = tf.saved_model.builder.SavedModelBuilder(folder)
    ...     builder.add_meta_graph_and_variables(session, [tf.saved_model.tag_constants.SERVING])
    ...     path = builder.save()
    >>> with tf.Session(graph=tf.Graph()) as session:
    ...     message = tf.saved_model.loader.load(session, ["serve"], folder)
    ...     print(session.run("y:0"))
    6.0
    """

    def __init__(self, export_dir: Any) -> None:
        self._folder = os.fsdecode(export_dir)
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise AssertionError(
                f"SavedModelBuilder: {self._folder} exists and is not empty, at {here()}. Give a new directory."
            )
        self._model = SavedModel(saved_model_schema_version=1)
        self._has_variables = False

    @takes(_GRAPH)
    def add_meta_graph(self, tags: Iterable[str], **options: Any) -> None:
        """Add the default graph under ``tags``; its variables are those that were saved with the first graph.

        ``main_op`` or ``legacy_init_op`` runs after a graph is loaded. ``strip_default_attrs`` changes nothing: there
        are no default attributes. Raises ArgumentError for assets.
        """
        if not self._has_variables:
            raise AssertionError(
                f"add_meta_graph: the first graph needs its variables, at {here()}. Call add_meta_graph_and_variables."
            )
        self._add(tags, **options)

    @takes(_GRAPH)
    def add_meta_graph_and_variables(self, sess: Any, tags: Iterable[str], **options: Any) -> None:
        """Add the session's graph under ``tags`` and write its variables; see ``add_meta_graph``."""
        if self._has_variables:
            raise AssertionError(
                f"add_meta_graph_and_variables: variables are saved already, at {here()}. Call add_meta_graph."
            )
        with sess.graph.as_default():
            chosen = options["saver"] = options["saver"] or Saver(sharded=True, allow_empty=True)
            os.makedirs(os.path.join(self._folder, "variables"), exist_ok=True)
            if chosen._variables:
                path = os.path.join(self._folder, "variables", "variables")
                chosen.save(sess, path, write_meta_graph=False, write_state=False)
            self._has_variables = True
            self._add(tags, **options)

    def _add(
        self, tags: Any, signature_def_map: Any, assets_collection: Any, saver: Saver | None, **options: Any
    ) -> None:
        refuse("SavedModelBuilder", assets_collection=assets_collection or None)
        found = meta_graph_of(get_default_graph())
        (saver or Saver(allow_empty=True))._described(found)
        found.meta_info_def.tags.extend(tags)
        first = options["legacy_init_op"] if options["main_op"] is None else options["main_op"]
        if first is not None:
            found.collection_def[_INITIALISERS[0]].node_list.value.append(first.name)
        if options["clear_devices"]:
            for node in found.graph_def.node:
                node.device = ""
        for key, signature in (signature_def_map or {}).items():
            found.signature_def[key].CopyFrom(signature)
        self._model.meta_graphs.add().CopyFrom(found)

    def save(self, as_text: bool = False) -> bytes:
        """Write the graphs; the path of their file. Raises ArgumentError for ``as_text``."""
        refuse("SavedModelBuilder.save", as_text=as_text)
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, _FILE)
        with atomic_write(path) as file:
            file.write(self._model.SerializeToString())
        return path.encode()


Builder = SavedModelBuilder


def simple_save(
    session: Any,
    export_dir: Any,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Save a session's graph for serving, with one signature of tensors by names.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [], name="x")
    ...     tf.saved_model.simple_save(session, folder, {"x": x}, {"y": x + 1})
    >>> with tf.Session(graph=tf.Graph()) as session:
    ...     signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
    ...     print(session.run(signature.outputs["y"].name, {"x:0": 2.0}))
    3.0
    """
    signature = {"serving_default": predict_signature_def(inputs, outputs)}
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session, ["serve"], signature, legacy_init_op=legacy_init_op, clear_devices=True
    )
    builder.save()


@example('print(tf.saved_model.contains_saved_model("."))', "False")
def contains_saved_model(export_dir: Any) -> bool:
    """Whether a directory holds a saved model."""
    return os.path.isfile(os.path.join(os.fsdecode(export_dir), _FILE))


maybe_saved_model_directory = contains_saved_model


def load(
    sess: Any, tags: Iterable[str], export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Declare the graph that was saved under exactly ``tags`` in the session's graph, with its variables' values.

    Args:
        sess: The session.
        tags: The tags.
        export_dir: The directory.
        import_scope: Stands before all names.
        **saver_kwargs: ``clear_devices`` and ``input_map``, as for ``tf.train.import_meta_graph``.

    Returns:
        The message of the graph, with its signatures.

    Raises:
        OSError: There is no saved model.
        RuntimeError: No graph has these tags.
    """
    folder, wanted = os.fsdecode(export_dir), set(tags)
    if not contains_saved_model(folder):
        raise OSError(
            f"load: {folder} holds no saved_model.pb, at {here()}. Give a directory of a saved model."
        )
    with open(os.path.join(folder, _FILE), "rb") as file:
        model = SavedModel.FromString(file.read())
    chosen = [one for one in model.meta_graphs if set(one.meta_info_def.tags) == wanted]
    if not chosen:
        have = ", ".join(str(sorted(one.meta_info_def.tags)) for one in model.meta_graphs)
        raise RuntimeError(
            f"load: no graph of {folder} has the tags {sorted(wanted)}, at {here()}. There are {have}."
        )
    options = {"clear_devices": False, "input_map": None, **saver_kwargs}
    with sess.graph.as_default():
        variables, _ = enter_meta_graph(chosen[0], import_scope=import_scope, **options)
        if variables:
            Saver(variables).restore(sess, os.path.join(folder, "variables", "variables"))
        for key in _INITIALISERS:
            if key in chosen[0].collection_def:
                name = chosen[0].collection_def[key].node_list.value[0]
                sess.run(sess.graph.get_operation_by_name(f"{import_scope}/{name}" if import_scope else name))
    return chosen[0]


submodules(
    __name__,
    {
        "builder": {"SavedModelBuilder": SavedModelBuilder},
        "loader": {"load": load, "maybe_saved_model_directory": contains_saved_model},
        "utils": {
            "build_tensor_info": build_tensor_info,
            "get_tensor_from_tensor_info": get_tensor_from_tensor_info,
        },
        "signature_def_utils": {
            "build_signature_def": build_signature_def,
            "predict_signature_def": predict_signature_def,
            "classification_signature_def": classification_signature_def,
            "regression_signature_def": regression_signature_def,
        },
        "signature_constants": _SIGNATURE_CONSTANTS,
        "tag_constants": _TAG_CONSTANTS,
        "constants": _CONSTANTS,
    },
)

globals().update(_TAG_CONSTANTS | _SIGNATURE_CONSTANTS | _CONSTANTS)
