"""Directories of ``tf.saved_model``: what is saved comes back, by tags, with signatures; wrong use raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError
from twofold.static import saved_model
from twofold.static.graph_def.importer import Importer
from twofold.static.protobuf.graph_def import GraphDef, NodeDef

X = numpy.array([[1.0, 2.0, 3.0]], numpy.float32)


def saved(folder: Path, **options: Any) -> Any:
    """Save a layer, and return what it computes."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        y = tf.identity(tf.layers.dense(x, 2), name="y")
        count = tf.Variable(0, trainable=False, name="count")
        session.run(tf.global_variables_initializer())
        builder = saved_model.builder.SavedModelBuilder(folder / "model")
        signature = {"serving_default": saved_model.predict_signature_def({"in": x}, {"out": y})}
        builder.add_meta_graph_and_variables(
            session, ["serve"], signature, main_op=tf.assign(count, 5).op, **options
        )
        builder.add_meta_graph(["train"])
        assert builder.save() == str(folder / "model" / "saved_model.pb").encode()
        return session.run(y, {x: X})


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    wanted = saved(tmp_path)
    assert saved_model.loader.maybe_saved_model_directory(tmp_path / "model")
    with tf.Session(graph=tf.Graph()) as session:
        message = saved_model.loader.load(session, [saved_model.tag_constants.SERVING], tmp_path / "model")
        key = saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        signature = message.signature_def[key]
        assert signature.method_name == saved_model.signature_constants.PREDICT_METHOD_NAME
        out = saved_model.utils.get_tensor_from_tensor_info(signature.outputs["out"], session.graph)
        numpy.testing.assert_array_equal(session.run(out, {signature.inputs["in"].name: X}), wanted)
        assert session.run("count:0") == 5  # the main operation has run


def test_in_a_scope_and_by_other_tags(tmp_path: Path) -> None:
    wanted = saved(tmp_path)
    with tf.Session(graph=tf.Graph()) as session:
        saved_model.load(session, ["train"], tmp_path / "model", import_scope="part")
        numpy.testing.assert_array_equal(session.run("part/y:0", {"part/x:0": X}), wanted)
        assert session.run("part/count:0") == 0
        with pytest.raises(RuntimeError, match=r"tags \['gpu'\].*\['serve'\], \['train'\]"):
            saved_model.load(session, ["gpu"], tmp_path / "model")


def test_wrong_use(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(AssertionError, match="not empty"):
        saved_model.Builder(tmp_path / "model")
    with pytest.raises(OSError, match="saved_model.pb"), tf.Session() as session:
        saved_model.load(session, ["serve"], tmp_path)
    builder = saved_model.Builder(tmp_path / "other")
    with pytest.raises(AssertionError, match="needs its variables"):
        builder.add_meta_graph(["train"])
    with pytest.raises(ArgumentError, match="as_text"):
        builder.save(as_text=True)
    with pytest.raises(ArgumentError, match="assets_collection"):
        saved(tmp_path / "third", assets_collection=["file"])
    with pytest.raises(ValueError, match="tf.string"):
        saved_model.regression_signature_def(tf.constant(1.0), tf.constant(1.0))


def test_what_reads_a_node_that_cannot_be_imported_stands_by_name() -> None:
    """As the operations with which TensorFlow's saver finds the names of files."""
    nodes = [
        NodeDef(name="match", op="StaticRegexFullMatch"),
        NodeDef(name="a", op="Const", attr={}),
        NodeDef(name="chosen", op="Select", input=["match", "match", "match"]),
    ]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        importer = Importer(graph, GraphDef(node=[nodes[0], nodes[2]]), "", {}, stands=True)
        importer.declare_all()
        with pytest.raises(tf.errors.UnimplementedError, match="StaticRegexFullMatch"):
            session.run("chosen:0")
