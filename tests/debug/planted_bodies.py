"""Declared graphs and expressions with one bug planted in a line each: in bodies, branches, gradients and feeds."""

from __future__ import annotations

from typing import Any

import numpy

import twofold as torch
import twofold.static as tf
from tests.debug.planted_expressions import vector
from twofold import dynet

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def wrong_loop_backward_gather() -> Any:
    # gradient declared inside a loop body
    w = tf.Variable(tf.ones([3]))
    k = tf.placeholder(tf.int32, [])

    def body(i: Any, h: Any) -> Any:
        g = tf.gather(w, i + k)  # bug
        return i + 1, h + g * g

    y = tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), tf.constant(0.0)])[1]
    return tf.gradients(y, w)[0], {k: 2}


def wrong_custom_gradient_loop() -> Any:
    @tf.custom_gradient
    def twice(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy * tf.gather(tf.ones([2]), tf.cast(dy, tf.int32) + 5)  # bug

        return x * 2.0, grad

    v = tf.Variable(1.0)

    def body(i: Any, h: Any) -> Any:
        return i + 1, twice(h)

    y = tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), v])[1]
    return tf.gradients(y, v)[0], {}


def wrong_custom_gradient_late() -> Any:
    k = tf.placeholder(tf.int32, [])

    @tf.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy * tf.gather(tf.ones([2]), k)  # bug

        return x * 2.0, grad

    v = tf.Variable(1.0)
    return tf.gradients(f(v), v)[0], {k: 4}


def wrong_custom_gradient_countensor() -> Any:
    @tf.custom_gradient
    def f(x: Any, y: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy  # bug

        return x * y, grad

    v = tf.Variable(1.0)
    return tf.gradients(f(v, v), v)[0], {}


def wrong_scan_shape() -> Any:
    def step(a: Any, x: Any) -> Any:
        return tf.concat([a, x], 0)  # bug

    return tf.scan(step, tf.constant(X), tf.zeros([3])), {}


def wrong_scan_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None])
    w = tf.ones([3])

    def step(a: Any, row: Any) -> Any:
        return a + row * w  # bug

    return tf.scan(step, x, tf.zeros([3])), {x: [[1.0, 2.0]]}


def wrong_map_fn_late() -> Any:
    ids = tf.placeholder(tf.int32, [None])

    def look(k: Any) -> Any:
        row = tf.gather(tf.constant(X), k)  # bug
        return tf.reduce_sum(row)

    return tf.map_fn(look, ids, dtype=tf.float32), {ids: [0, 1, 2]}


def wrong_map_fn_py() -> Any:
    def look(k: Any) -> Any:
        return [1.0][1]  # bug

    return tf.map_fn(look, tf.constant([0, 1]), dtype=tf.float32), {}


def wrong_dataset_map_shape() -> Any:
    def pair(x: Any) -> Any:
        return tf.reshape(x, [2, 2])  # bug

    return tf.data.Dataset.from_tensor_slices(X).map(pair).make_one_shot_iterator().get_next(), {}


def wrong_dataset_map_py_func() -> Any:
    def host(v: Any) -> Any:
        return numpy.float32(v["x"])  # bug

    d = tf.data.Dataset.from_tensor_slices(X).map(lambda v: tf.py_func(host, [v], tf.float32))
    return d.make_one_shot_iterator().get_next(), {}


def wrong_dataset_filter() -> Any:
    d = tf.data.Dataset.from_tensor_slices([1, 2]).filter(lambda v: v + 1)  # bug
    return d.make_one_shot_iterator().get_next(), {}


def wrong_dataset_padded() -> Any:
    d = tf.data.Dataset.from_generator(lambda: iter([[1.0], [1.0, 2.0, 3.0]]), tf.float32, [None])
    d = d.padded_batch(2, [2])  # bug
    return d.make_one_shot_iterator().get_next(), {}


def wrong_cond_fed_branch() -> Any:
    x = tf.placeholder(tf.float32, [None])
    p = tf.placeholder(tf.bool, [])

    def yes() -> Any:
        return x + tf.ones([3])  # bug

    y = tf.cond(p, yes, lambda: tf.zeros([3]))
    return y * 2.0, {x: [1.0, 2.0], p: True}


def wrong_cond_gradientensor() -> Any:
    v = tf.Variable([1.0, 4.0])
    k = tf.placeholder(tf.int32, [])

    def yes() -> Any:
        return tf.reduce_sum(tf.gather(v, [k]))  # bug

    y = tf.cond(k > 0, yes, lambda: tf.reduce_sum(v))
    return tf.gradients(y, v)[0], {k: 3}


def wrong_cond_uninitialised() -> Any:
    return tf.cond(tf.ones([2]) > 0.0, lambda: tf.constant(1.0), lambda: tf.constant(2.0)), {}  # bug


def wrong_feed_dtype() -> Any:
    i = tf.placeholder(tf.int32, [None])
    return i + 1, {i: [1.5, 2.0]}


def wrong_feed_rank() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    return x * 2.0, {x: [[[1.0]]]}


def wrong_feed_none() -> Any:
    x = tf.placeholder(tf.float32, [None])
    return x * 2.0, {x: None}


def wrong_feed_tensor() -> Any:
    x = tf.placeholder(tf.float32, [None])
    return x * 2.0, {x: tf.ones([2])}


def wrong_missing_in_loop() -> Any:
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0)])
    return y, {}


def wrong_missing_in_cond() -> Any:
    n = tf.placeholder(tf.float32, [], name="needed")
    y = tf.cond(tf.constant(True), lambda: n * 2.0, lambda: n)
    return y, {}


def wrong_loop_invariantensor() -> Any:
    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.concat([h, [1.0]], 0)  # bug

    y = tf.while_loop(
        lambda i, h: i < 2,
        body,
        [tf.constant(0), tf.ones([2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([2])],
    )
    return y, {}


def wrong_loop_reshape() -> Any:
    x = tf.placeholder(tf.float32, [None, None])

    def body(i: Any, h: Any) -> Any:
        r = tf.reshape(x, [-1, 4])  # bug
        return i + 1, h + tf.reduce_sum(r)

    return tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), tf.constant(0.0)])[1], {x: X}


def wrong_loop_div() -> Any:
    d = tf.placeholder(tf.int32, [])

    def body(i: Any, h: Any) -> Any:
        q = 10 // (d - i)  # bug
        return i + 1, h + q

    return tf.while_loop(lambda i, h: i < 5, body, [tf.constant(0), tf.constant(0)])[1], {d: 3}


def wrong_loop_assertensor() -> Any:
    x = tf.placeholder(tf.float32, [])

    def body(i: Any, h: Any) -> Any:
        with tf.control_dependencies([tf.Assert(h < 4.0, [h])]):  # bug
            h = h * x
        return i + 1, h

    return tf.while_loop(lambda i, h: i < 5, body, [tf.constant(0), tf.constant(1.0)])[1], {x: 2.0}


def wrong_tensorarray_loop() -> Any:
    n = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.float32, size=2)

    def body(i: Any, ta: Any) -> Any:
        ta = ta.write(i, tf.cast(i, tf.float32))  # bug
        return i + 1, ta

    _, ta = tf.while_loop(lambda i, ta: i < n, body, [tf.constant(0), ta])
    return ta.stack(), {n: 4}


def wrong_loop_singular() -> Any:
    m = tf.placeholder(tf.float32, [2, 2])

    def body(i: Any, h: Any) -> Any:
        inv = tf.matrix_inverse(h)  # bug
        return i + 1, inv * 0.0

    return tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), m])[1], {m: [[1.0, 0.0], [0.0, 1.0]]}


def wrong_py_func_nested_call() -> Any:
    def inner(v: Any) -> Any:
        return v.reshape(7)  # bug

    def host(x: Any) -> Any:
        return inner(x)

    return tf.py_func(host, [tf.ones([2])], tf.float32) * 2.0, {}


def wrong_wrong_device() -> Any:
    with tf.device("/gpu:x"):  # bug
        return tf.ones([2]) * 2.0, {}


def wrong_attention_mask() -> Any:
    q = tf.placeholder(tf.float32, [None, None, 4])
    mask = tf.placeholder(tf.float32, [None, None])
    s = tf.matmul(q, q, transpose_b=True)
    s = s + tf.expand_dims(mask, 1)  # bug
    return tf.nn.softmax(s), {q: numpy.ones((1, 3, 4)), mask: numpy.ones((1, 5))}


def wrong_xent_range_weighted() -> Any:
    l = tf.placeholder(tf.int32, [None])
    w = tf.get_variable("w", [3, 4])
    h = tf.matmul(tf.constant(X), w)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=l, logits=h)  # bug
    op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_mean(loss))
    return op, {l: [-1, 2]}


def wrong_momentum_args() -> Any:
    return tf.train.MomentumOptimizer(0.1).minimize(tf.Variable(1.0) * 1.0), {}  # bug


def wrong_double_gradientensor() -> Any:
    v = tf.Variable([1.0, 2.0])
    k = tf.placeholder(tf.int32, [])
    y = tf.reduce_sum(v**3)
    (g,) = tf.gradients(y, v)
    (h,) = tf.gradients(tf.gather(g, [k]), v)  # bug
    return h, {k: 5}


def wrong_assign_loop() -> Any:
    v = tf.Variable(0.0)
    x = tf.placeholder(tf.float32, [None])
    a = tf.assign(v, x, validate_shape=False)
    with tf.control_dependencies([a]):
        y = v.read_value() + tf.ones([2])  # bug
    return y, {x: [1.0, 2.0, 3.0]}


def wrong_conv_channels_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None, None, None])
    y = tf.nn.conv2d(x, tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "VALID")  # bug
    return tf.reduce_sum(y), {x: numpy.ones((1, 4, 4, 2))}


def wrong_conv_small_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None, None, 1])
    y = tf.nn.conv2d(x, tf.ones([3, 3, 1, 2]), [1, 1, 1, 1], "VALID")  # bug
    return tf.reduce_sum(y), {x: numpy.ones((1, 2, 2, 1))}


def wrong_rnn_fed() -> Any:
    x = tf.placeholder(tf.float32, [None, None, 4])
    cell = tf.nn.rnn_cell.LSTMCell(3)
    _, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    logits = tf.matmul(state.h, tf.ones([5, 2]))  # bug
    return logits, {}


BODIES = [one for name, one in list(globals().items()) if name.startswith("wrong_")]


def dynet_logits() -> Any:
    m = dynet.ParameterCollection()
    w = m.add_parameters((3, 2))
    s = w * vector(2)
    l = dynet.pickneglogsoftmax(s, -4)  # bug
    l.value()


def dynet_attention() -> Any:
    h = dynet.concatenate_cols([vector(3), vector(3)])
    a = dynet.softmax(dynet.transpose(h) * vector(3))
    c = h * dynet.concatenate([a, a])  # bug
    c.value()


def dynet_backward_late() -> Any:
    m = dynet.ParameterCollection()
    t = m.add_lookup_parameters((3, 2))
    e = dynet.lookup(t, 3)  # bug
    l = dynet.squared_norm(e)
    l.backward()


def dynet_log_nan() -> Any:
    x = dynet.inputVector([0.0, 1.0])
    with torch.detect_anomaly():
        y = dynet.log(x)  # bug
        dynet.sum_elems(y).value()


def dynet_sqrt_nan_backward() -> Any:
    m = dynet.ParameterCollection()
    p = m.add_parameters((2,), init=0.0)
    with torch.detect_anomaly():
        y = dynet.sqrt(dynet.cmult(p, p))  # bug
        dynet.sum_elems(y).backward()


def dynet_lstm_layers() -> Any:
    m = dynet.ParameterCollection()
    b = dynet.LSTMBuilder(2, 3, 4, m)
    s = b.initial_state([vector(4)])  # bug
    s.add_input(vector(3)).outputensor().value()


def dynet_lstm_reuse() -> Any:
    m = dynet.ParameterCollection()
    b = dynet.LSTMBuilder(1, 3, 4, m)
    s = b.initial_state()
    for k in (3, 3, 2):
        s = s.add_input(vector(k))  # bug
    s.outputensor().value()


def dynet_trainer_lr() -> Any:
    dynet.SimpleSGDTrainer(dynet.ParameterCollection(), learning_rate="fast")  # bug


def dynet_max_dim() -> Any:
    dynet.max_dim(dynet.inputTensor(X), 3).value()  # bug


def dynet_sum_dim() -> Any:
    dynet.sum_dim(dynet.inputTensor(X), [4]).value()  # bug


OF_DYNET = [one for name, one in list(globals().items()) if name.startswith("dynet_")]
