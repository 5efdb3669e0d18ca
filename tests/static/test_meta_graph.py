"""Graphs that a saver wrote beside a checkpoint, imported again."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.python.framework import ops

X = numpy.random.default_rng(0).standard_normal((6, 8, 8, 1)).astype("f")
Y = numpy.array([0, 1, 2, 0, 1, 2], "int32")
FEEDS = {"x:0": X, "y:0": Y}


def declare():
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    training = tf.placeholder_with_default(False, [], name="training")
    h = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu, padding="same", name="conv")
    h = tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2))
    h = tf.layers.dropout(tf.layers.batch_normalization(h, training=training), 0.3, training=training)
    logits = tf.layers.dense(h, 3, name="out")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    step = tf.train.create_global_step()
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(
        tf.reduce_mean(losses, name="loss"), step, name="train"
    )
    right = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, y, 1), tf.float32), name="right")
    for value in (right, train, step):
        tf.add_to_collection("mine", value)
    tf.add_to_collection("numbers", 3)
    tf.add_to_collection("words", "three")
    return train


@pytest.fixture
def saved(tmp_path):
    """The path of a checkpoint, and what its graph computes."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        train = declare()
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train, FEEDS)
        found = session.run(["loss:0", "right:0", "out/BiasAdd:0"], FEEDS)
        return tf.train.Saver().save(session, f"{tmp_path}/model"), found, graph


def test_a_graph_computes_the_same_after_import(saved):
    path, expected, graph = saved
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(path + ".meta")
        saver.restore(session, path)
        for value, other in zip(session.run(["loss:0", "right:0", "out/BiasAdd:0"], FEEDS), expected):
            numpy.testing.assert_array_equal(value, other)
        made = {operation.name for operation in tf.get_default_graph().get_operations()}
        assert {operation.name for operation in graph.get_operations()} <= made
        session.run("train", FEEDS)
        assert session.run("loss:0", FEEDS) < expected[0]


def test_collections_come_back(saved):
    path, _, graph = saved
    with tf.Graph().as_default() as imported:
        tf.train.import_meta_graph(path + ".meta", clear_devices=True)
        for key in ("variables", "trainable_variables", "mine"):
            found = [value.name for value in tf.get_collection(key)]
            assert found == [value.name for value in graph.get_collection(key)]
        assert tf.get_collection("mine")[0] is imported.get_tensor_by_name("right:0")
        assert tf.get_collection("mine")[1] is imported.get_operation_by_name("train")
        assert tf.train.get_global_step() in tf.global_variables()
        assert tf.get_collection("numbers") == [3] and tf.get_collection("words") == [b"three"]


def test_variables_are_initialised_and_saved_again(saved, tmp_path):
    path, _, _ = saved
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(path + ".meta")
        session.run(tf.global_variables_initializer())
        kernel = tf.trainable_variables()[0]
        session.run(kernel.assign(tf.ones_like(kernel)))
        again = tf.train.Saver().save(session, f"{tmp_path}/again")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(again + ".meta").restore(session, again)
        assert (session.run("conv/kernel:0") == 1).all()


def test_a_graph_in_a_scope(saved):
    path, expected, _ = saved
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant(X)
        saver = tf.train.import_meta_graph(path + ".meta", import_scope="old", input_map={"x:0": given})
        saver.restore(session, path)
        found = session.run("old/loss:0", {"old/y:0": Y})
        numpy.testing.assert_array_equal(found, expected[0])


def test_a_message_of_chosen_collections(tmp_path):
    with tf.Graph().as_default():
        tf.get_variable("v", [2])
        tf.add_to_collection("a", 1.5)
        message = tf.train.export_meta_graph(f"{tmp_path}/graph.meta", collection_list=["a"])
        assert list(message.collection_def) == ["a"]
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(f"{tmp_path}/graph.meta") is None
        assert tf.get_collection("a") == [1.5]
        assert tf.MetaGraphDef.FromString(message.SerializeToString()).collection_def[
            "a"
        ].float_list.value == [1.5]
    with tf.Graph().as_default(), pytest.raises(OSError, match="none.meta"):
        tf.train.import_meta_graph(f"{tmp_path}/none.meta")


@pytest.mark.parametrize("value", [True, False])
def test_choices_are_exported(value):
    feeds = {"flag:0": value, "x:0": [1.0, 2.0]}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        flag = tf.placeholder(tf.bool, [], name="flag")
        x = tf.placeholder(tf.float32, [2], name="x")
        a, b = tf.cond(flag, lambda: (x * 2, x), lambda: (x + 1.0, tf.exp(x)))
        tf.add(a, b, name="sum")
        expected = session.run("sum:0", feeds)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph.as_graph_def(), name="")
        numpy.testing.assert_array_equal(session.run("sum:0", feeds), expected)


@pytest.mark.parametrize("scope", [None, "old"])
def test_the_saver_comes_back(tmp_path, scope):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=3.0)
        tf.get_variable("beside", initializer=4.0)
        tf.Variable(5.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="local")
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        savers = {"all": tf.train.Saver(), "one": tf.train.Saver([v]), "named": tf.train.Saver({"other": v})}
        paths = {name: saver.save(session, f"{tmp_path}/{name}") for name, saver in savers.items()}
        few = tf.train.Saver({"other": v}, max_to_keep=1, keep_checkpoint_every_n_hours=2.0)
        few.export_meta_graph(f"{tmp_path}/few.meta")
        without = tf.train.export_meta_graph()
    for name, path in paths.items():
        with tf.Graph().as_default(), tf.Session() as session:
            tf.train.import_meta_graph(path + ".meta", import_scope=scope).restore(session, path)
            assert session.run(tf.global_variables()[0]) == 3.0
            uninitialised = session.run(tf.report_uninitialized_variables()).tolist()
            assert len(uninitialised) == (1 if name == "all" else 2)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{tmp_path}/few.meta", import_scope=scope)
        saver.restore(session, paths["named"])
        for step in range(3):
            last = saver.save(session, f"{tmp_path}/again", global_step=step)
        assert saver.last_checkpoints == [last] and not tf.train.checkpoint_exists(f"{tmp_path}/again-1")
        assert [name for name, _ in tf.train.list_variables(last)] == ["other"]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(without, import_scope=scope).restore(session, paths["all"])


def test_a_saver_of_operations(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=3.0)
        tf.get_variable("beside", initializer=4.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver({"other": v}).save(session, f"{tmp_path}/model")
        message = tf.train.export_meta_graph()
        for name, text in (("names", b"other"), ("slices", b"")):
            node = message.graph_def.node.add(name=f"save/{name}", op="Const")
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([text]))
            node.attr["dtype"].type = 7
        inputs = ["save/names", "save/names", "save/slices", "v"]
        message.graph_def.node.add(name="save/SaveV2", op="SaveV2", input=inputs)
        message.graph_def.node.add(name="save/done", op="Identity", input=["save/names", "^save/SaveV2"])
        message.saver_def.save_tensor_name, message.saver_def.max_to_keep = "save/done:0", 2
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(message).restore(session, path)
        assert session.run("v:0") == 3.0


def test_inputs_that_no_node_has():
    with tf.Graph().as_default():
        tf.square(tf.placeholder(tf.float32, name="x"), name="y")
        message = tf.train.export_meta_graph()
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=r"not found in graph_def: \['zz'\].*test_meta"),
    ):
        tf.train.import_meta_graph(message, input_map={"x": tf.constant(1.0), "zz": tf.constant(2.0)})


def test_values_of_a_registered_collection_are_written_and_read_by_its_functions():
    ops.register_proto_function(
        "pairs",
        tf.train.Int64List,
        lambda pair, export_scope=None: tf.train.Int64List(value=pair) if pair[0] else None,
        lambda held, import_scope=None: (tuple(held.value), import_scope),
    )
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="x")
        for pair in ((1, 2), (0, 5), (3, 4)):
            graph.add_to_collection("pairs", pair)
        message = tf.train.export_meta_graph()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(message, import_scope="inner")
        assert graph.get_collection("pairs") == [((1, 2), "inner"), ((3, 4), "inner")]
    with pytest.raises(KeyError, match="registered already"):
        ops.register_proto_function("pairs")
