"""Graphs with loops, arrays and further operations that TensorFlow has no node for compute the same after import.

Programs train a recurrent network, and evaluate it in another process by the names of its tensors. The reference is
the graph that was exported.
"""

import numpy
import pytest

import twofold.static as tf

X = numpy.random.default_rng(0).standard_normal((3, 5, 4)).astype("f")
LENGTHS = numpy.array([5, 2, 3], "int32")


def sequences():
    x = tf.placeholder(tf.float32, [None, None, 4], name="x")
    return x, tf.placeholder(tf.int32, [None], name="lengths")


def recurrent():
    x, lengths = sequences()
    cells = [tf.nn.rnn_cell.LSTMCell(3), tf.nn.rnn_cell.GRUCell(3)]
    both, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf.float32)
    mask = tf.sequence_mask(lengths, dtype=tf.float32)
    loss = tf.reduce_sum(tf.concat(both, 2) * mask[..., None]) + tf.reduce_sum(states[1])
    return [*both, loss, *tf.gradients(loss, [x])]


def loops():
    x, lengths = sequences()
    scale = tf.get_variable("scale", [4], initializer=tf.constant_initializer(0.5))
    many = tf.while_loop(
        lambda k, total: k < tf.reduce_max(lengths),
        lambda k, total: (k + 1, tf.tanh(total * scale + x[0, k])),
        [0, tf.zeros([4])],
        maximum_iterations=4,
    )
    rows = tf.map_fn(lambda row: tf.reduce_sum(row, 0), x)
    sums = tf.scan(lambda total, row: total + row, tf.transpose(x, [1, 0, 2]), reverse=True)
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[4])
    _, array = tf.while_loop(
        lambda k, array: k < lengths[1], lambda k, array: (k + 1, array.write(k, x[1, k])), [0, array]
    )
    return [*many, rows, sums, array.stack(), array.gather([1, 0]), array.size()]


def attention():
    x, lengths = sequences()
    attended = tf.contrib.seq2seq.LuongAttention(3, x, lengths)
    cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.LSTMCell(3), attended, 3)
    state = cell.zero_state(tf.shape(x)[0], tf.float32)
    helper = tf.contrib.seq2seq.TrainingHelper(x, lengths)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, state, tf.layers.Dense(6))
    outputs, _, sizes = tf.contrib.seq2seq.dynamic_decode(decoder)
    return [outputs.rnn_output, outputs.sample_id, sizes]


def random_fields():
    x, lengths = sequences()
    transitions = tf.get_variable("transitions", [4, 4])
    tags = tf.zeros_like(x[..., 0], tf.int32)
    likelihood, _ = tf.contrib.crf.crf_log_likelihood(x, tags, lengths, transitions)
    return [*tf.contrib.crf.crf_decode(x, transitions, lengths), likelihood]


def layers():
    x, _ = sequences()
    images = x[:, :4, :, None]
    normal = tf.layers.batch_normalization(images, training=True, momentum=0.5)
    found = [normal, tf.layers.conv1d(x, 2, 3), tf.layers.average_pooling1d(x, 2, 2)]
    found += [tf.layers.max_pooling3d(x[:, :4, :, None, None], (2, 2, 1), 1), tf.clip_by_norm(x, 1.5)]
    found += [tf.losses.huber_loss(x[..., 0], x[..., 1]), tf.tensordot(x, tf.eye(4), 1)]
    return [*found, tf.contrib.layers.layer_norm(x), tf.Print(x, [x], "seen: ", summarize=1)]


@pytest.mark.parametrize("declare", [recurrent, loops, attention, random_fields, layers])
def test_what_is_imported_computes_the_same(declare, tmp_path, capfd):
    with tf.Graph().as_default(), tf.Session() as session:
        outputs = declare()
        names = [one.name for one in outputs]
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver(tf.global_variables() or [tf.Variable(0.0)]).save(session, f"{tmp_path}/model")
        feeds = {"x:0": X, "lengths:0": LENGTHS}
        expected = session.run(outputs, feeds)
    printed = capfd.readouterr().err
    kept = [name for name in names if not name.startswith("gradients")]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(path + ".meta").restore(session, path)
        found = session.run(kept, feeds)
        for name, value in zip(kept, found):
            numpy.testing.assert_array_equal(value, expected[names.index(name)], name)
        assert capfd.readouterr().err == printed
        if declare is recurrent:
            loss, x = (graph.get_tensor_by_name(name) for name in (names[2], "x:0"))
            numpy.testing.assert_array_equal(session.run(tf.gradients(loss, x)[0], feeds), expected[-1])
        for update in tf.get_collection(tf.GraphKeys.UPDATE_OPS):
            session.run(update, feeds)


def test_moving_averages_are_updated_after_import(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x, _ = sequences()
        tf.layers.batch_normalization(x, training=True, momentum=0.5)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, f"{tmp_path}/model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(path + ".meta").restore(session, path)
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS), {"x:0": X})
        mean = session.run("batch_normalization/moving_mean:0")
    numpy.testing.assert_allclose(mean, X.mean((0, 1)) / 2, rtol=1e-5)


def test_what_a_file_may_name():
    """A file names functions that compute operations, and no others."""
    with tf.Graph().as_default() as graph:
        tf.sequence_mask(tf.placeholder(tf.int32, [2], name="n"), 3, name="mask")
    message = graph.as_graph_def()
    node = next(node for node in message.node if node.name.startswith("mask") and node.op == "SequenceMask")
    said = node.attr["_twofold"].s.decode()
    module, name = "twofold.static.platform.file_io", "delete_recursively"
    node.attr["_twofold"].s = (
        said.replace("twofold.static.arrays.shape_ops", module)
        .replace('"sequence_mask"', f'"{name}"')
        .encode()
    )
    with (
        tf.Graph().as_default(),
        pytest.raises(tf.errors.UnimplementedError, match="which cannot be imported"),
    ):
        tf.import_graph_def(message)


def _optimizer(kind, step):
    rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    made = {
        "adam": lambda: tf.train.AdamOptimizer(tf.train.piecewise_constant(step, [2], [0.1, 0.01])),
        "momentum": lambda: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
        "rmsprop": lambda: tf.train.RMSPropOptimizer(rate, centered=True),
        "adagrad": lambda: tf.train.AdagradOptimizer(rate),
    }
    return made[kind]()


@pytest.mark.parametrize("kind", ["adam", "momentum", "rmsprop", "adagrad"])
def test_training_goes_on_after_import(kind, tmp_path):
    feeds = {"x:0": X, "lengths:0": LENGTHS}
    with tf.Graph().as_default(), tf.Session() as session:
        x, lengths = sequences()
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), x, lengths, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(outputs, 1) - 1.0), name="loss")
        step = tf.train.create_global_step()
        optimizer = _optimizer(kind, step)
        pairs = optimizer.compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.5)
        train = optimizer.apply_gradients(zip(clipped, [variable for _, variable in pairs]), step, "train")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, f"{tmp_path}/model")
        expected = [session.run([loss, train], feeds)[0] for _ in range(4)]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(path + ".meta").restore(session, path)
        found = [session.run(["loss:0", "train"], feeds)[0] for _ in range(4)]
        assert session.run("global_step:0") == 4
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[-1] < found[0]


@pytest.mark.parametrize("declare", [recurrent, loops, attention, random_fields])
def test_a_frozen_graph_has_the_bodies_of_its_loops(declare):
    feeds = {"x:0": X, "lengths:0": LENGTHS}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        outputs = [one for one in declare() if not one.name.startswith("gradients")]
        session.run(tf.global_variables_initializer())
        expected = session.run(outputs, feeds)
        names = [one.op.name for one in outputs]
        frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), names)
    frozen = tf.graph_util.remove_training_nodes(frozen, names)
    assert not any(node.op in ("VariableV2", "Gradients") for node in frozen.node)
    message = tf.GraphDef.FromString(frozen.SerializeToString())
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.import_graph_def(message, name="net", return_elements=[one.name for one in outputs])
        values = session.run(found, {f"net/{name}": value for name, value in feeds.items()})
    for value, other in zip(values, expected):
        numpy.testing.assert_array_equal(value, other)
