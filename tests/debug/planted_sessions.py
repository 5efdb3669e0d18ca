"""Sessions with one bug planted in a line each: in loops, cells, losses, data sets, queues, checkpoints."""

from __future__ import annotations

from typing import Any

import numpy

import twofold
import twofold.static as tf

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def wrong_broadcast_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None])
    y = x + tf.ones([4])  # bug
    return tf.nn.relu(y), {x: X}


def wrong_missing_feed() -> Any:
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    return tf.reduce_sum(x * y), {x: [1.0, 2.0]}


def wrong_uninitialised() -> Any:
    v = tf.get_variable("late", [2], collections=["others"])
    return tf.reduce_sum(v * 2.0), {}


def wrong_gather_nd() -> Any:
    i = tf.placeholder(tf.int32, [None, 2])
    y = tf.gather_nd(tf.constant(X), i)  # bug
    return y * 2.0, {i: [[0, 1], [1, 3]]}


def wrong_scatter_update() -> Any:
    v = tf.Variable(tf.ones([3]))
    i = tf.placeholder(tf.int32, [1])
    changed = tf.scatter_update(v, i, [2.0])  # bug
    return changed + 1.0, {i: [5]}


def wrong_segment() -> Any:
    ids = tf.placeholder(tf.int32, [2])
    s = tf.unsorted_segment_sum(tf.constant(X), ids, 2)
    y = tf.gather(s, ids + 1)  # bug
    return y, {ids: [0, 1]}


def wrong_tensor_array() -> Any:
    k = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.float32, size=3).unstack(tf.constant([1.0, 2.0, 3.0]))
    y = ta.read(k)  # bug
    return y + 1.0, {k: 4}


def wrong_tensor_array_shape() -> Any:
    ta = tf.TensorArray(tf.float32, size=2)
    ta = ta.write(0, tf.ones([2]))
    ta = ta.write(1, tf.ones([3]))  # bug
    return ta.stack(), {}


def wrong_foldl() -> Any:
    table = tf.ones([2])

    def step(a: Any, k: Any) -> Any:
        return a + tf.gather(table, k)  # bug

    return tf.foldl(step, tf.constant([0, 1, 2]), tf.constant(0.0)), {}


def wrong_case() -> Any:
    k = tf.placeholder(tf.int32, [])

    def far() -> Any:
        return tf.gather(tf.ones([2]), k)  # bug

    return tf.case([(k > 3, far)], default=lambda: tf.constant(0.0)), {k: 9}


def wrong_cond_in_loop() -> Any:
    t = tf.constant([1.0, 2.0])

    def yes(i: Any, s: Any) -> Any:
        return s + tf.gather(t, i)  # bug

    def body(i: Any, s: Any) -> Any:
        return i + 1, tf.cond(i > 1, lambda: yes(i, s), lambda: s)

    return tf.while_loop(lambda i, s: i < 4, body, [tf.constant(0), tf.constant(0.0)])[1], {}


def wrong_loop_backward() -> Any:
    x = tf.Variable(1.0)

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.sqrt(h - 1.0)

    h = tf.while_loop(lambda i, h: i < 1, body, [tf.constant(0), x])[1]
    (g,) = tf.gradients(h, [x])
    return tf.check_numerics(g, "gradient"), {}  # bug


def wrong_loop_carry_shape() -> Any:
    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.concat([h, h], 0)  # bug

    return tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), tf.ones([2])])[1], {}


def wrong_loop_carry_dtype() -> Any:
    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.cast(h, tf.int32)  # bug

    return tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), tf.ones([2])])[1], {}


def wrong_py_func_in_loop() -> Any:
    def host(v: Any) -> Any:
        return numpy.float32([1.0, 2.0][int(v)])  # bug

    def body(i: Any, h: Any) -> Any:
        y = tf.py_func(host, [h], tf.float32)
        y.set_shape([])
        return i + 1, y + 1.0

    return tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), tf.constant(0.0)])[1], {}


def wrong_py_func_type() -> Any:
    y = tf.py_func(lambda v: v.astype("float64"), [tf.ones([2])], tf.float32)  # bug
    return y + 1.0, {}


def wrong_py_func_raises() -> Any:
    def host(v: Any) -> Any:
        raise ValueError("no")  # bug

    return tf.reduce_sum(tf.py_func(host, [tf.ones([2])], tf.float32)), {}


def wrong_dynamic_rnn_length() -> Any:
    n = tf.placeholder(tf.int32, [None])
    cell = tf.nn.rnn_cell.GRUCell(4)
    out, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 5]), sequence_length=n, dtype=tf.float32)  # bug
    return out, {n: [1, 2, 3]}


def wrong_rnn_cell_input() -> Any:
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    state = cell.zero_state(2, tf.float32)
    out, state = cell(tf.ones([2, 3]), state)
    out, state = cell(tf.ones([2, 5]), state)  # bug
    return out, {}


def wrong_rnn_state() -> Any:
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    out, _ = cell(tf.ones([2, 3]), tf.ones([2, 6]))  # bug
    return out, {}


def wrong_loss_shapes() -> Any:
    return tf.losses.mean_squared_error(tf.ones([2, 3]), tf.ones([3, 2])), {}  # bug


def wrong_loss_weights() -> Any:
    loss = tf.losses.absolute_difference(tf.ones([2, 3]), tf.ones([2, 3]), weights=tf.ones([5]))  # bug
    return loss, {}


def wrong_sigmoid_shapes() -> Any:
    y = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones([2]), logits=tf.ones([3]))  # bug
    return y, {}


def wrong_xent_in_layer() -> Any:
    labels = tf.placeholder(tf.int64, [None])

    def network(x: Any) -> Any:
        h = tf.layers.dense(x, 8, activation=tf.nn.relu)
        return tf.layers.dense(h, 3)

    logits = network(tf.constant(X))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)  # bug
    return tf.train.AdamOptimizer().minimize(loss), {labels: [0, 3]}


def wrong_layer_reuse() -> Any:
    tf.layers.dense(tf.ones([2, 3]), 4, name="d")
    return tf.layers.dense(tf.ones([2, 5]), 4, name="d", reuse=True), {}  # bug


def wrong_batch_norm_axis() -> Any:
    return tf.layers.batch_normalization(tf.ones([2, 3]), axis=5), {}  # bug


def wrong_pool_size() -> Any:
    return tf.layers.max_pooling2d(tf.ones([1, 4, 4, 1]), 7, 1), {}  # bug


def wrong_conv_transpose() -> Any:
    return tf.nn.conv2d_transpose(
        tf.ones([1, 2, 2, 3]), tf.ones([3, 3, 1, 4]), [1, 4, 4, 1], [1, 2, 2, 1]
    ), {}  # bug


def wrong_dataset_map() -> Any:
    def parse(k: Any) -> Any:
        return tf.gather(tf.ones([2]), k)  # bug

    data = tf.data.Dataset.from_tensor_slices([0, 1, 5]).map(parse).batch(3)
    return data.make_one_shot_iterator().get_next(), {}


def wrong_dataset_generator() -> Any:
    def rows() -> Any:
        yield 1.0
        yield [2.0][3]  # bug

    data = tf.data.Dataset.from_generator(rows, tf.float32).batch(2)
    return data.make_one_shot_iterator().get_next(), {}


def wrong_dataset_slices() -> Any:
    return tf.data.Dataset.from_tensor_slices(([1, 2], [1, 2, 3])), {}  # bug


def wrong_dataset_batch() -> Any:
    data = tf.data.Dataset.from_generator(lambda: iter([[1.0], [1.0, 2.0]]), tf.float32)
    data = data.batch(2)  # bug
    n = data.make_one_shot_iterator().get_next()
    return n, {}


def wrong_iterator_state() -> Any:
    it = tf.data.Dataset.range(3).make_initializable_iterator()
    n = it.get_next()  # bug
    return n + 1, {}


def wrong_optimizer_lr() -> Any:
    v = tf.Variable(tf.ones([2]))
    return tf.train.GradientDescentOptimizer("fast").minimize(tf.reduce_sum(v)), {}  # bug


def wrong_apply_gradients() -> Any:
    v = tf.Variable(tf.ones([2]))
    return tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.ones([3]), v)]), {}  # bug


def wrong_no_gradients() -> Any:
    v = tf.Variable(1)
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.cast(v, tf.float32)), {}  # bug


def wrong_clip_norm() -> Any:
    return tf.clip_by_global_norm(tf.ones([2]) * 2.0, "a"), {}  # bug


def wrong_nan_log() -> Any:
    x = tf.placeholder(tf.float32, [2])

    def entropy(p: Any) -> Any:
        return -tf.reduce_sum(p * tf.log(p))  # bug

    y = entropy(x)
    return [y, tf.add_check_numerics_ops()], {x: [0.0, 1.0]}


def wrong_nan_gradient() -> Any:
    v = tf.Variable([0.0, 1.0])
    y = tf.reduce_sum(tf.sqrt(v))  # bug
    step = tf.train.GradientDescentOptimizer(0.1).minimize(y)
    with twofold.detect_anomaly(), tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)


def wrong_nan_loop() -> Any:
    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.log(h - 1.0)  # bug

    y = tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), tf.constant(3.0)])[1]
    with twofold.detect_anomaly(), tf.Session() as session:
        session.run(y)


def wrong_nan_step() -> Any:
    v = tf.Variable([0.0, 1.0])
    loss = tf.reduce_sum(tf.sqrt(v))  # bug
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [step, tf.add_check_numerics_ops()], {}


def wrong_assert_data() -> Any:
    x = tf.placeholder(tf.float32, [2])
    a = tf.Assert(tf.reduce_all(x > 0), [x])  # bug
    with tf.control_dependencies([a]):
        return tf.identity(x), {x: [0.0, 1.0]}


def wrong_assert_shape() -> Any:
    x = tf.placeholder(tf.float32, [None, None])
    with tf.control_dependencies([tf.assert_rank(x, 3)]):  # bug
        return tf.identity(x), {x: X}


def wrong_cholesky() -> Any:
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.cholesky(x)  # bug
    return tf.reduce_sum(y), {x: [[-1.0, 0.0], [0.0, 1.0]]}


def wrong_reshape_unknown() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.reshape(x, [-1, 4])  # bug
    return tf.reduce_sum(y, 1), {x: X}


def wrong_squeeze_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.squeeze(x, [0])  # bug
    return y, {x: X}


def wrong_split_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, 2])
    a, b = tf.split(x, 2, 0)  # bug
    return a + b, {x: [[1.0, 2.0]] * 3}


def wrong_unstack() -> Any:
    x = tf.placeholder(tf.float32, [None, 2])
    a, b = tf.unstack(x)  # bug
    return a + b, {x: [[1.0, 2.0]] * 3}


def wrong_tile() -> Any:
    return tf.tile(tf.ones([2, 3]), [2]), {}  # bug


def wrong_transpose() -> Any:
    return tf.transpose(tf.ones([2, 3]), [0, 2]), {}  # bug


def wrong_pad() -> Any:
    return tf.pad(tf.ones([2, 3]), [[1, 1]]), {}  # bug


def wrong_one_hot() -> Any:
    return tf.one_hot([0, 1], "three"), {}  # bug


def wrong_where_fed() -> Any:
    c = tf.placeholder(tf.bool, [None])
    y = tf.where(c, tf.ones([2]), tf.zeros([2]))  # bug
    return y, {c: [True, False, True]}


def wrong_einsum() -> Any:
    return tf.einsum("ij,jk->ik", tf.ones([2, 3]), tf.ones([2, 3])), {}  # bug


def wrong_top_k() -> Any:
    k = tf.nn.top_k(tf.ones([2, 3]), 5)  # bug
    return k.values, {}


def wrong_set_shape() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    x.set_shape([2, 4])  # bug
    return x, {}


def wrong_variable_scope() -> Any:
    with tf.variable_scope("a"):
        tf.get_variable("w", [2])
    with tf.variable_scope("a", reuse=True):
        return tf.get_variable("w", [3]), {}  # bug


def wrong_custom_gradient() -> Any:
    @tf.custom_gradient
    def twice(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return tf.matmul(dy, tf.ones([7, 2]))  # bug

        return x * 2.0, grad

    v = tf.Variable(tf.ones([2, 3]))
    return tf.gradients(twice(v), v), {}


def wrong_saver_shape() -> Any:
    v = tf.get_variable("w", [2])
    with tf.Session() as s:
        s.run(v.initializer)
        path = tf.train.Saver().save(s, "./model.ckpt")
    with tf.Graph().as_default(), tf.Session() as s:
        tf.get_variable("w", [3])
        tf.train.Saver().restore(s, path)  # bug


def wrong_saver_name() -> Any:
    v = tf.get_variable("w", [2])
    with tf.Session() as s:
        s.run(v.initializer)
        path = tf.train.Saver().save(s, "./model.ckpt")
    with tf.Graph().as_default(), tf.Session() as s:
        tf.get_variable("other", [2])
        tf.train.Saver().restore(s, path)  # bug


def wrong_closed() -> Any:
    s = tf.Session()
    y = tf.ones([2]) * 2.0
    s.close()
    s.run(y)  # bug


def wrong_fetch_name() -> Any:
    tf.ones([2], name="a")
    return "b:0", {}


def wrong_graph_name() -> Any:
    return tf.get_default_graph().get_tensor_by_name("nothing:0"), {}  # bug


def wrong_tensor_bool() -> Any:
    x = tf.placeholder(tf.float32, [])
    while x < 3.0:  # bug
        pass


def wrong_len() -> Any:
    return len(tf.placeholder(tf.float32, [None])), {}  # bug


def wrong_numpy_of_placeholder() -> Any:
    return numpy.asarray(tf.placeholder(tf.float32, [2])) + 1, {}  # bug


def wrong_compiled_function() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])

    def block(h: Any) -> Any:
        w = tf.ones([3, 3])
        return tf.nn.relu(tf.matmul(h, w) + tf.ones([5]))  # bug

    return block(x), {x: X}


def wrong_queue() -> Any:
    q = tf.FIFOQueue(3, [tf.float32], shapes=[[2]])
    return q.enqueue([tf.ones([3])]), {}  # bug


def wrong_summary() -> Any:
    x = tf.placeholder(tf.float32, [None])
    s = tf.summary.scalar("loss", x)  # bug
    return s, {x: [1.0, 2.0]}


def wrong_sequence_mask() -> Any:
    n = tf.placeholder(tf.int32, [None])
    m = tf.sequence_mask(n, 3, dtype=tf.float32)
    y = tf.ones([2, 4]) * m  # bug
    return y, {n: [1, 2]}


def wrong_metric() -> Any:
    return tf.metrics.accuracy(tf.ones([2, 3]), tf.ones([4])), {}  # bug


def wrong_distribution() -> Any:
    return tf.distributions.Normal(tf.ones([2]), tf.ones([3])).sample(), {}  # bug


def wrong_embedding_in_loop() -> Any:
    table = tf.Variable(tf.ones([3, 2]))

    def body(k: Any, h: Any) -> Any:
        row = tf.nn.embedding_lookup(table, k + 1)  # bug
        return k + 1, h + row

    y = tf.while_loop(lambda k, h: k < 5, body, [tf.constant(0), tf.zeros([2])])[1]
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y)), {}


SESSIONS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
