"""Graphs of sessions and of dynet with one bug planted in a line each."""

from __future__ import annotations

from typing import Any

import numpy

import twofold.static as tf
from twofold import dynet

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def vector(size: int) -> Any:
    return dynet.inputVector([1.0] * size)


def wrong_matmul() -> Any:
    return tf.matmul(tf.ones([2, 3]), tf.ones([4, 2])), {}  # bug


def wrong_matmul_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.matmul(x, tf.ones([4, 2]))  # bug
    return tf.reduce_sum(y), {x: [[1.0, 2.0]]}


def wrong_dtype() -> Any:
    return tf.ones([2]) + tf.constant([1, 2]), {}  # bug


def wrong_reshape_fed() -> Any:
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(x, [3, -1])  # bug
    return y * 2.0, {x: [1.0, 2.0, 3.0, 4.0]}


def wrong_concat_fed() -> Any:
    x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
    z = tf.concat([x, y], 0)  # bug
    return z, {x: [[1.0]], y: [[1.0, 2.0]]}


def wrong_gather() -> Any:
    i = tf.placeholder(tf.int32, [None])
    y = tf.gather(tf.ones([3, 2]), i)  # bug
    return tf.reduce_sum(y), {i: [5]}


def wrong_xent() -> Any:
    l = tf.placeholder(tf.int32, [None])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=l, logits=tf.ones([2, 3]))  # bug
    return tf.reduce_mean(loss), {l: [0, 7]}


def wrong_xent_positional() -> Any:
    return tf.nn.softmax_cross_entropy_with_logits(tf.ones([2, 3]), tf.ones([2, 3])), {}  # bug


def wrong_embed() -> Any:
    i = tf.placeholder(tf.int64, [2])
    e = tf.nn.embedding_lookup(tf.Variable(tf.ones([3, 2])), i)  # bug
    return e + 1.0, {i: [0, 3]}


def wrong_train_grad() -> Any:
    w = tf.Variable(tf.ones([3, 2]))
    i = tf.placeholder(tf.int64, [2])
    e = tf.gather(w, i)  # bug
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(e * e)), {i: [0, 3]}


def wrong_cond_body() -> Any:
    i = tf.placeholder(tf.int32, [])

    def yes() -> Any:
        return tf.gather(tf.ones([3]), i)  # bug

    return tf.cond(i > 0, yes, lambda: tf.constant(0.0)), {i: 9}


def wrong_cond_types() -> Any:
    return tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(1)), {}  # bug


def wrong_cond_pred() -> Any:
    return tf.cond(tf.constant(1.0), lambda: tf.constant(1.0), lambda: tf.constant(2.0)), {}  # bug


def wrong_while_cond() -> Any:
    return tf.while_loop(lambda i: i + 1, lambda i: i + 1, [tf.constant(0)]), {}  # bug


def wrong_while_count() -> Any:
    return tf.while_loop(
        lambda i, j: i < 3,
        lambda i, j: [i + 1],  # bug
        [tf.constant(0), tf.constant(0)],
    ), {}


def wrong_while_matmul() -> Any:
    x = tf.placeholder(tf.float32, [None, None])

    def body(i: Any, h: Any) -> Any:
        g = tf.matmul(h, x)  # bug
        return i + 1, g

    start = [tf.constant(0), tf.ones([2, 2])]
    found = tf.while_loop(lambda i, h: i < 3, body, start, [tf.TensorShape([]), tf.TensorShape([2, None])])
    return found[1], {x: [[1.0, 2.0]] * 3}


def wrong_nested_while() -> Any:
    t = tf.constant([1.0, 2.0, 3.0])

    def inner(j: Any, s: Any) -> Any:
        v = tf.gather(t, j * 2)  # bug
        return j + 1, s + v

    def outer(i: Any, s: Any) -> Any:
        _, q = tf.while_loop(lambda j, s: j < 3, inner, [tf.constant(0), s])
        return i + 1, q

    return tf.while_loop(lambda i, s: i < 2, outer, [tf.constant(0), tf.constant(0.0)])[1], {}


def wrong_scan() -> Any:
    t = tf.constant([1.0, 2.0, 3.0])

    def step(a: Any, x: Any) -> Any:
        return a + tf.gather(t, x)  # bug

    return tf.scan(step, tf.constant([0, 1, 9]), tf.constant(0.0)), {}


def wrong_map() -> Any:
    return tf.map_fn(lambda k: tf.gather(tf.ones([2]), k), tf.constant([0, 5]), dtype=tf.float32), {}  # bug


def wrong_pyfunc() -> Any:
    def host(x: Any) -> Any:
        return x["a"]  # bug

    return tf.py_func(host, [tf.ones([2])], tf.float32), {}


def wrong_pyfunc_np() -> Any:
    def host(x: Any) -> Any:
        return numpy.dot(x, numpy.ones((5, 5)))  # bug

    return tf.py_func(host, [tf.ones([2, 2])], tf.float32) + 1.0, {}


def wrong_pyfunc_count() -> Any:
    y = tf.py_func(lambda x: (x, x), [tf.ones([2])], [tf.float32])  # bug
    return y[0], {}


def wrong_pyfunc_shape() -> Any:
    y = tf.py_func(lambda x: "text", [tf.ones([2])], tf.float32)  # bug
    return y, {}


def wrong_feed_shape() -> Any:
    x = tf.placeholder(tf.float32, [2, 3])
    return x * 2.0, {x: [1.0, 2.0]}


def wrong_feed_str() -> Any:
    x = tf.placeholder(tf.float32, [2])
    return x * 2.0, {x: ["a", "b"]}


def wrong_feed_key() -> Any:
    return tf.ones([2]), {"x": 1}


def wrong_fetch() -> Any:
    return "nonsense", {}


def wrong_fetch_none() -> Any:
    return None, {}


def wrong_fetch_obj() -> Any:
    return [3], {}


def wrong_var_shape() -> Any:
    v = tf.Variable(tf.ones([2]))
    return tf.assign(v, tf.ones([3])), {}  # bug


def wrong_var_dup() -> Any:
    tf.get_variable("a", [2])
    return tf.get_variable("a", [2]), {}  # bug


def wrong_var_reuse() -> Any:
    with tf.variable_scope("s", reuse=True):
        return tf.get_variable("zz", [2]), {}  # bug


def wrong_optimizer_none() -> Any:
    return tf.train.AdamOptimizer(0.1).minimize(tf.constant(1.0)), {}  # bug


def wrong_gradients() -> Any:
    return tf.gradients(tf.constant(1.0), 3), {}  # bug


def wrong_bool() -> Any:
    x = tf.placeholder(tf.float32, [])
    if x > 0:  # bug
        return x, {x: 1.0}


def wrong_iter() -> Any:
    x = tf.placeholder(tf.float32, [None])
    for _ in x:  # bug
        pass


def wrong_int() -> Any:
    x = tf.placeholder(tf.float32, [])
    return tf.ones([int(x)]), {}  # bug


def wrong_axis() -> Any:
    return tf.reduce_sum(tf.ones([2, 3]), axis=2), {}  # bug


def wrong_conv() -> Any:
    return tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([3, 3, 4, 2]), [1, 1, 1, 1], "SAME"), {}  # bug


def wrong_conv_pad() -> Any:
    return tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "same-ish"), {}  # bug


def wrong_numerics() -> Any:
    x = tf.placeholder(tf.float32, [2])
    y = tf.log(x)
    z = tf.check_numerics(y, "bad")  # bug
    return z + 1.0, {x: [0.0, 1.0]}


def wrong_assert_op() -> Any:
    x = tf.placeholder(tf.float32, [2])
    a = tf.assert_positive(x)  # bug
    with tf.control_dependencies([a]):
        return x * 2.0, {x: [0.0, 1.0]}


def wrong_assert_equal() -> Any:
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([tf.assert_equal(x, 1.0)]):  # bug
        return x * 2.0, {x: [0.0, 1.0]}


def wrong_cast() -> Any:
    return tf.cast(tf.ones([2]), "floaty"), {}  # bug


def wrong_constant() -> Any:
    return tf.constant([[1, 2], [3]]), {}  # bug


def wrong_constant_none() -> Any:
    return tf.constant(None), {}  # bug


def wrong_add_none() -> Any:
    return tf.ones([2]) + None, {}  # bug


def wrong_layers() -> Any:
    return tf.layers.dense(tf.ones([2, 3]), "a"), {}  # bug


def wrong_layers_rank() -> Any:
    return tf.layers.conv2d(tf.ones([2, 3]), 4, 3), {}  # bug


def wrong_rnn() -> Any:
    c = tf.nn.rnn_cell.BasicLSTMCell(4)
    return tf.nn.dynamic_rnn(c, tf.ones([2, 3, 5])), {}  # bug


def wrong_strided() -> Any:
    x = tf.ones([2, 3])
    return x[5], {}  # bug


def wrong_slice_fed() -> Any:
    i = tf.placeholder(tf.int32, [])
    x = tf.ones([4, 3])
    y = x[i]  # bug
    return y + 1.0, {i: 7}


def wrong_div() -> Any:
    x = tf.placeholder(tf.int32, [2])
    y = tf.constant([4, 4]) // x  # bug
    return y + 1, {x: [1, 0]}


def wrong_anomaly() -> Any:
    x = tf.placeholder(tf.float32, [2])
    y = tf.log(x)  # bug
    tf.add_check_numerics_ops()
    return [tf.reduce_sum(y), tf.add_check_numerics_ops()], {x: [0.0, 1.0]}


def wrong_singular() -> Any:
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.matrix_inverse(x)  # bug
    return y + 1.0, {x: [[0.0, 0.0], [0.0, 0.0]]}


def wrong_other_graph() -> Any:
    g = tf.Graph()
    with g.as_default():
        a = tf.ones([2])
    return a + 1.0, {}


def wrong_dataset() -> Any:
    it = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).batch(2).make_one_shot_iterator()
    n = it.get_next()

    def host(v: Any) -> Any:
        return v["k"]  # bug

    return tf.py_func(host, [n], tf.float32), {}


def wrong_saver() -> Any:
    tf.Variable(1.0)
    with tf.Session() as s:
        tf.train.Saver().restore(s, "/nonexistent/ckpt")  # bug


GRAPHS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]


def dynet_mul() -> Any:
    return (dynet.inputTensor([[1.0, 2.0]]) * vector(3)).npvalue()  # bug


def dynet_add() -> Any:
    return (vector(2) + vector(3)).value()  # bug


def dynet_concat() -> Any:
    return dynet.concatenate_cols([vector(2), vector(3)]).value()  # bug


def dynet_pick() -> Any:
    return dynet.pick(vector(2), 5).value()  # bug


def dynet_pickneg() -> Any:
    return dynet.pickneglogsoftmax(vector(3), 7).value()  # bug


def dynet_pickrange() -> Any:
    return dynet.pickrange(vector(3), 1, 9).value()  # bug


def dynet_lookup() -> Any:
    m = dynet.ParameterCollection()
    t = m.add_lookup_parameters((3, 2))
    return dynet.lookup(t, 7).value()  # bug


def dynet_lookup2() -> Any:
    m = dynet.ParameterCollection()
    t = m.add_lookup_parameters((3, 2))
    return t[7].value()  # bug


def dynet_lstm() -> Any:
    m = dynet.ParameterCollection()
    b = dynet.LSTMBuilder(1, 3, 2, m)
    s = b.initial_state()
    s = s.add_input(vector(4))  # bug
    return s.output().value()


def dynet_affine() -> Any:
    return dynet.affine_transform(
        [vector(2), dynet.inputTensor([[1.0, 2.0, 3.0]] * 2), vector(2)]
    ).value()  # bug


def dynet_reshape() -> Any:
    return dynet.reshape(vector(4), (3, 2)).value()  # bug


def dynet_none() -> Any:
    return dynet.tanh(None).value()  # bug


def dynet_str() -> Any:
    return (vector(2) + "a").value()  # bug


def dynet_backward() -> Any:
    (vector(2) * 2).backward()  # bug


def dynet_param() -> Any:
    dynet.ParameterCollection().add_parameters("a")  # bug


def dynet_esum() -> Any:
    dynet.esum([]).value()  # bug


def dynet_esum2() -> Any:
    dynet.esum([vector(2), vector(3)]).value()  # bug


def dynet_loss() -> Any:
    dynet.squared_distance(vector(2), vector(3)).value()  # bug


def dynet_bce() -> Any:
    dynet.binary_log_loss(vector(2), vector(3)).value()  # bug


def dynet_load() -> Any:
    m = dynet.ParameterCollection()
    m.populate("/nonexistent")  # bug


def dynet_batch() -> Any:
    dynet.pick_batch(dynet.inputTensor([[1.0, 2.0], [3.0, 4.0]], batched=True), [0, 9]).value()  # bug


def dynet_helper() -> Any:
    def cell(a: Any, b: Any) -> Any:
        h = dynet.tanh(a)
        return dynet.dot_product(h, b)  # bug

    cell(vector(2), vector(5)).value()


def dynet_vecinput() -> Any:
    x = dynet.vecInput(3)
    x.set([1.0, 2.0])  # bug
    dynet.tanh(x).value()


def dynet_select() -> Any:
    dynet.select_rows(dynet.inputTensor([[1.0], [2.0]]), [5]).value()  # bug


def dynet_getitem() -> Any:
    (vector(3)[9]).value()  # bug


EXPRESSIONS = [one for name, one in list(globals().items()) if name.startswith("dynet_")]
