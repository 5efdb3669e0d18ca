"""Graphs as messages: TensorFlow's wire format and text, its frozen graphs, and ours through a round trip.

``frozen_graphs.json`` holds graphs that TensorFlow 2.21 (``tf.compat.v1``) froze, with feeds and the values that it
computes. That TensorFlow takes ours is tested where it is installed.
"""

import base64
import json
import sys
from pathlib import Path

import numpy
import pytest

import twofold.static as tf
from twofold.static.graph import inference
from twofold.static.protobuf.graph_def import GraphDef, NodeDef, TensorProto, array_of_message
from twofold.static.python.framework import graph_util

FROZEN = json.loads((Path(__file__).parent / "frozen_graphs.json").read_text(encoding="utf-8"))


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def values(names):
    random = numpy.random.default_rng(0)
    every = {
        "x": random.standard_normal((2, 8, 8, 3)).astype("f"),
        "m": random.random((4, 6)).astype("f") + numpy.float32(0.1),
        "n": numpy.array([1, 0, 3, 2], numpy.int32),
    }
    return {f"{name}:0": every[name] for name in names}


def network(x, m, n, w):
    filters = tf.Variable(tf.random_normal([3, 3, 3, 4], seed=1), name="filters")
    h = tf.nn.bias_add(tf.nn.conv2d(x, filters, [1, 2, 2, 1], "SAME"), tf.Variable(tf.ones([4])))
    h = tf.nn.max_pool(tf.nn.relu(h), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return [tf.nn.softmax(tf.layers.dense(tf.layers.flatten(h), 3))]


def shapes(x, m, n, w):
    found = [tf.reshape(x, tf.stack([tf.shape(x)[0], -1])), tf.squeeze(tf.expand_dims(m, 1), [1])]
    found += [
        tf.transpose(m),
        tf.concat([m, m], 1),
        tf.stack([m, m], 1),
        *tf.split(m, 2, 1),
        *tf.split(m, [2, 4], 1),
    ]
    found += [
        tf.strided_slice(m, [0, 1], [4, 5], [2, 1]),
        tf.strided_slice(m, tf.shape(m) // 2, tf.shape(m), begin_mask=1),
        tf.strided_slice(m, [1, 0], [0, 3], end_mask=2, shrink_axis_mask=1),
        m[:, 1:3],
        m[0],
        m[..., tf.newaxis],
        m[:, -1],
        m[::-1],
        m[tf.shape(m)[0] - 1],
        m[..., tf.shape(m)[0] - 1],
        x[tf.shape(m)[0] - 3, ..., None, n[0]],
        tf.tile(m, [1, 2]),
    ]
    found += [
        tf.pad(m, [[1, 1], [0, 0]]),
        tf.pad(m, [[1, 1], [0, 0]], "REFLECT"),
        tf.slice(m, [0, 1], [-1, 2]),
    ]
    return [
        *found,
        tf.gather(w, n),
        tf.gather_nd(m, [[0, 1]]),
        tf.size(m),
        tf.rank(m),
        *tf.unstack(m, axis=1),
    ]


def reductions(x, m, n, w):
    found = [tf.reduce_sum(m), tf.reduce_mean(m, 1), tf.reduce_max(m, [0, 1], keepdims=True), tf.argmax(m, 1)]
    found += [
        tf.reduce_all(m > 0),
        tf.reduce_any(m > 0.9, 1),
        tf.reduce_logsumexp(m, 1),
        tf.nn.l2_normalize(m, 1),
    ]
    return [
        *found,
        *tf.nn.moments(x, [0, 1, 2]),
        tf.nn.softmax(m, axis=0),
        tf.cumsum(m, 1),
        tf.reverse(m, [1]),
    ]


def elements(x, m, n, w):
    unary = (
        tf.nn.relu6,
        tf.nn.elu,
        tf.nn.leaky_relu,
        tf.nn.selu,
        tf.sigmoid,
        tf.tanh,
        tf.sqrt,
        tf.log,
        tf.reciprocal,
    )
    found = [function(m) for function in unary]
    found += [
        m + 1.0,
        2 * m,
        m / 3.0,
        m**2,
        -m,
        n // 2,
        n % 2,
        tf.truediv(n, 2),
        tf.maximum(m, 0.5),
        tf.cast(m, tf.int32),
    ]
    found += [
        tf.where(m > 0.5, m, -m),
        tf.logical_and(m > 0.2, m < 0.8),
        tf.clip_by_value(m, 0.3, 0.7),
        tf.one_hot(n, 5),
    ]
    found += [tf.zeros(tf.shape(m)), tf.fill([2, 3], 1.0), tf.range(5), *tf.nn.top_k(m, 2), tf.identity(m)]
    return [
        *found,
        tf.image.resize_bilinear(x, [4, 4]),
        tf.constant(["a", "bc"]),
        tf.constant(numpy.float16([1.5])),
    ]


def losses(x, m, n, w):
    found = [
        tf.nn.l2_loss(m),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=n, logits=m),
        tf.add_n([m, m]),
    ]
    found += [tf.nn.softmax_cross_entropy_with_logits(labels=m, logits=m)]
    return [
        *found,
        tf.nn.sigmoid_cross_entropy_with_logits(labels=m, logits=m),
        tf.matmul(m, m, transpose_b=True),
    ]


def layers(x, m, n, w):
    found = [
        tf.nn.lrn(x),
        tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"),
        tf.layers.batch_normalization(x),
    ]
    found += [tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "SAME"), tf.nn.dropout(m, 1.0)]
    return [*found, tf.nn.conv2d_transpose(x, tf.ones([3, 3, 2, 3]), [2, 16, 16, 2], [1, 2, 2, 1], "SAME")]


def frozen(build):
    """A frozen graph of what a function declares: (message, feeds, fetches, values)."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
        m, n = tf.placeholder(tf.float32, [None, 6], name="m"), tf.placeholder(tf.int32, [None], name="n")
        w = tf.constant(numpy.random.default_rng(1).standard_normal((6, 5)).astype("f"))
        fetches = build(x, m, n, w)
        session.run(tf.global_variables_initializer())
        found = session.run(fetches, values("xmn"))
        names = [tensor.op.name for tensor in fetches]
        message = graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [*dict.fromkeys(names), "x", "m", "n"]
        )
        return message, values("xmn"), [tensor.name for tensor in fetches], found


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        mine, theirs = numpy.asarray(one), numpy.asarray(other)
        assert mine.shape == theirs.shape
        if mine.dtype.kind in "OS":
            assert mine.tolist() == theirs.tolist()
        else:
            numpy.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


BUILDERS = [network, shapes, reductions, elements, losses, layers]


@pytest.mark.parametrize("build", BUILDERS)
def test_a_round_trip(session, build):
    message, feeds, names, expected = frozen(build)
    assert not {"VariableV2", "Assign"} & {node.op for node in message.node}
    again = GraphDef.FromString(message.SerializeToString())
    assert again == message
    assert str(again) == str(message)
    found = tf.import_graph_def(again, name="", return_elements=names)
    assert [tensor.name for tensor in found] == names
    same(session.run(names, feeds), expected)


@pytest.mark.parametrize("build", BUILDERS)
def test_tensorflow_imports_ours(build):
    if "tensorflow" not in sys.modules:
        pytest.importorskip("tensorflow", reason="compares with TensorFlow")
    theirs = sys.modules["tensorflow"].compat.v1
    message, feeds, names, expected = frozen(build)
    with theirs.Graph().as_default(), theirs.Session() as session:
        theirs.import_graph_def(theirs.GraphDef.FromString(message.SerializeToString()), name="")
        same(session.run(names, feeds), expected)


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_graph_of_tensorflow(session, name):
    given = FROZEN[name]
    message = base64.b64decode(given["graph"])
    (found,) = tf.import_graph_def(message, return_elements=[given["fetch"]])
    assert found.name == f"import/{given['fetch']}"
    feeds = {f"import/{key}": value for key, value in given["feeds"].items()}
    numpy.testing.assert_allclose(session.run(found, feeds), given["value"], rtol=2e-4, atol=1e-5)


def test_variables_are_imported_with_their_initialisers(session):
    with tf.Graph().as_default() as other:
        v = tf.Variable([1.0, 2.0], name="v")
        tf.assign_add(v, [1.0, 1.0], name="more")
        tf.multiply(v, 2.0, name="y")
    tf.import_graph_def(other.as_graph_def(), name="")
    session.run("v/Assign")
    assert session.run("y:0").tolist() == [2, 4]
    session.run("more")
    assert session.run("y:0").tolist() == [4, 6]


def test_attributes(session):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    y = tf.nn.conv2d(x, tf.zeros([3, 3, 3, 4]), strides=[1, 2, 2, 1], padding="SAME", name="y")
    nodes = {node.name: node for node in session.graph.as_graph_def().node}
    attr = nodes["y"].attr
    assert (attr["T"].type, attr["strides"].list.i, attr["padding"].s) == (1, [1, 2, 2, 1], b"SAME")
    assert [dim.size for dim in nodes["x"].attr["shape"].shape.dim] == [-1, 8, 8, 3]
    assert y.op.get_attr("T") is tf.float32
    assert y.op.node_def.attr["strides"].WhichOneof("value") == "list"
    assert y.op.node_def.input == ["x", "zeros"]
    shown = session.graph.as_graph_def(add_shapes=True).node[-1].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shown[0].dim] == [-1, 4, 4, 4]
    with pytest.raises(ValueError, match="has no attr named 'nothing'"):
        y.op.get_attr("nothing")
    version = session.graph.version
    tf.exp(x, name="z")
    assert [node.name for node in session.graph.as_graph_def(from_version=version).node] == ["z"]


def test_the_text_and_the_bytes():
    node = NodeDef(name="x", op="Placeholder")
    node.attr["dtype"].type = 1
    node.attr["f"].f = 0.5
    node.attr["s"].s = b'a"\n\xff'
    node.input.append("^y")
    message = GraphDef(node=[node])
    # written with google.protobuf
    expected = (
        "0a3a0a0178120b506c616365686f6c6465721a025e792a0b0a05647479706512"
        "0230012a0a0a01661205250000003f2a0b0a01731206120461220aff"
    )
    assert message.SerializeToString().hex() == expected
    assert str(message) == (
        'node {\n  name: "x"\n  op: "Placeholder"\n  input: "^y"\n'
        '  attr {\n    key: "dtype"\n    value {\n      type: DT_FLOAT\n    }\n  }\n'
        '  attr {\n    key: "f"\n    value {\n      f: 0.5\n    }\n  }\n'
        '  attr {\n    key: "s"\n    value {\n      s: "a\\"\\n\\377"\n    }\n  }\n}\n'
    )
    other = GraphDef()
    other.ParseFromString(message.SerializeToString())
    assert other == message
    other.node[0].attr["f"].i = -3
    assert other.node[0].attr["f"].WhichOneof("value") == "i"
    assert GraphDef.FromString(other.SerializeToString()).node[0].attr["f"].i == -3
    with pytest.raises(ValueError, match="does not end"):
        GraphDef.FromString(b"\x0a\x05ab")
    with pytest.raises(AttributeError, match="no field"):
        node.nothing = 3
    with pytest.raises(TypeError, match="is not str"):
        node.name = 3


def test_arrays():
    for value in (
        [[1.5, -2.0]],
        [1, 2],
        [True, False],
        ["a", "bc"],
        numpy.float16([1.5]),
        numpy.complex64([1 + 2j]),
    ):
        assert tf.make_ndarray(tf.make_tensor_proto(value)).tolist() in (
            numpy.asarray(value).tolist(),
            [b"a", b"bc"],
        )
    repeated = TensorProto(dtype=3, int_val=[7, 8])
    for size in (2, 3):
        repeated.tensor_shape.dim.add(size=size)
    assert array_of_message(repeated)[0].tolist() == [[7, 8, 8], [8, 8, 8]]
    assert array_of_message(TensorProto(dtype=1))[0].tolist() == 0.0


def test_input_maps_and_mistakes(session):
    with tf.Graph().as_default() as other:
        a = tf.placeholder(tf.float32, [], name="a")
        with tf.control_dependencies([tf.no_op(name="before")]):
            tf.add(tf.square(a, name="b"), a, name="c")
    message = other.as_graph_def()
    c, b = tf.import_graph_def(message, {"a:0": tf.constant(2.0)}, ["c:0", "b"], name="one")
    assert (session.run(c), b.name, c.op.control_inputs[0].name) == (6.0, "one/b", "one/before")
    (c,) = tf.import_graph_def(message, {"b": tf.constant(10.0)}, ["c:0"], name="one")
    assert (c.name, session.run(c, {"one_1/a:0": 1.0})) == ("one_1/c:0", 11.0)
    assert tf.import_graph_def(message) is None
    for given, text in (
        ({"input_map": {"nothing": c}}, "not found in graph_def"),
        ({"return_elements": ["nothing"]}, "Requested return_element 'nothing' not found"),
    ):
        with pytest.raises(ValueError, match=text):
            tf.import_graph_def(message, **given)
    broken = GraphDef(node=[NodeDef(name="x", op="Exp", input=["y"])])
    with pytest.raises(ValueError, match="Input tensor 'y' not found"):
        tf.import_graph_def(broken)
    with pytest.raises(tf.errors.UnimplementedError, match="'x' is a Enter, which cannot be imported"):
        tf.import_graph_def(GraphDef(node=[NodeDef(name="x", op="Enter")]))
    with pytest.raises(TypeError, match="no GraphDef"):
        tf.import_graph_def(3)


def test_parts_and_files(session, tmp_path):
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.Variable(3.0, name="v")
    tf.multiply(tf.identity(x, name="i"), v, name="y")
    tf.exp(x, name="z")
    session.run(tf.global_variables_initializer())
    message = session.graph.as_graph_def()
    part = tf.graph_util.extract_sub_graph(message, ["y"])
    assert [node.name for node in part.node] == ["x", "v", "i", "y"]
    assert [node.name for node in tf.graph_util.remove_training_nodes(part).node] == ["x", "v", "y"]
    kept = tf.graph_util.convert_variables_to_constants(
        session, message, ["y"], variable_names_blacklist=["v"]
    )
    assert {node.op for node in kept.node} == {"Placeholder", "VariableV2", "Identity", "Mul"}
    with pytest.raises(AssertionError, match="nothing is not in graph"):
        tf.graph_util.extract_sub_graph(message, ["nothing"])
    text = tf.train.write_graph(session.graph, str(tmp_path / "logs"), "g.pbtxt")
    assert Path(text).read_text(encoding="utf-8") == str(message)
    binary = tf.train.write_graph(message, str(tmp_path), "g.pb", as_text=False)
    assert GraphDef.FromString(Path(binary).read_bytes()) == message


@pytest.mark.parametrize("type, function", [("Igamma", "igamma"), ("Zeta", "zeta"), ("FloorMod", "floormod")])
def test_every_function_under_another_name_is_a_node(session, type, function):
    tf.maximum(tf.constant([2.5, 3.0]), tf.constant([1.5, 2.0]), name="y")
    message = tf.get_default_graph().as_graph_def()
    next(node for node in message.node if node.name == "y").op = type
    (found,) = tf.import_graph_def(message, return_elements=["y:0"], name="imported")
    expected = getattr(tf, function)([2.5, 3.0], [1.5, 2.0])
    numpy.testing.assert_array_equal(*session.run([found, expected]))


def test_a_tensor_of_unknown_rank_is_reversed_by_the_rank_that_it_has(session):
    tf.transpose(tf.placeholder(tf.float32, name="x"), name="y")
    (found,) = tf.import_graph_def(tf.get_default_graph().as_graph_def(), return_elements=["y:0"], name="in")
    for shape in ((2, 3, 4), (5,), (2, 3)):
        value = numpy.arange(numpy.prod(shape), dtype="f").reshape(shape)
        numpy.testing.assert_array_equal(session.run(found, {"in/x:0": value}), value.T)


def test_numbers_whose_count_a_run_tells_are_not_made_up(monkeypatch):
    """The axes of a transpose of unknown rank: with an example of the rank, each way through would take a thousand."""
    counts = []
    evaluated = inference.evaluated

    def counted(operation, values):
        made = evaluated(operation, values)
        counts.extend(one.array.size for one in made if isinstance(one, inference.Numbers))
        return made

    monkeypatch.setattr(inference, "evaluated", counted)
    with tf.Graph().as_default():
        tf.transpose(tf.placeholder(tf.float32, name="x"), name="y")
        message = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        (found,) = tf.import_graph_def(message, return_elements=["y:0"], name="in")
        assert found.shape.ndims is None
    assert len(counts) < 100


def test_numbers_of_messages_are_rounded_as_they_are_set():
    value = tf.Summary.Value(tag="loss", simple_value=0.2)
    assert value.simple_value == float(numpy.float32(0.2)) and "simple_value: 0.2\n" in str(value)
    value.simple_value = 1e300
    assert value.simple_value == float("inf")
    value.simple_value = 1 / 3
    assert "simple_value: 0.333333343\n" in str(value)
    other = tf.Summary.Value()
    other.CopyFrom(value)
    value.tag = "changed"
    assert other.tag == "loss" and other.simple_value == value.simple_value
    with pytest.raises(TypeError, match="CopyFrom: Summary is no"):
        other.CopyFrom(tf.Summary())
