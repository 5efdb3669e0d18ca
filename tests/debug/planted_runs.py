"""Declared graphs with one bug planted in a line each, most of which only a run shows."""

from __future__ import annotations

from typing import Any

import numpy

import twofold.static as tf

ph = tf.placeholder


def wrong_residual() -> Any:
    x = ph(tf.float32, [None, None])
    h = tf.nn.relu(tf.matmul(x, tf.ones([3, 4])))
    y = x + h  # bug
    return y, {x: numpy.ones((2, 3))}


def wrong_residual_fed() -> Any:
    x, r = ph(tf.float32, [None, None]), ph(tf.float32, [None, None])
    h = tf.tanh(x)
    y = h + r  # bug
    z = tf.reduce_sum(y)
    return z, {x: numpy.ones((2, 3)), r: numpy.ones((2, 4))}


def wrong_train_vocab() -> Any:
    words = ph(tf.int32, [None, None])
    emb = tf.get_variable("emb", [10, 4])
    e = tf.nn.embedding_lookup(emb, words)  # bug
    logits = tf.layers.dense(tf.reduce_mean(e, 1), 2)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros([2], tf.int32), logits=logits)
    )
    train = tf.train.AdamOptimizer().minimize(loss)
    return [train, loss], {words: [[1, 2], [3, 10]]}


def wrong_labels() -> Any:
    y = ph(tf.int64, [None])
    x = ph(tf.float32, [None, 3])
    logits = tf.layers.dense(x, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)  # bug
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return train, {x: numpy.ones((2, 3)), y: [0, 2]}


def wrong_nan_forward() -> Any:
    x = ph(tf.float32, [None])
    p = x / tf.reduce_sum(x)  # bug
    ent = -tf.reduce_sum(p * tf.log(p))
    chk = tf.add_check_numerics_ops()
    return [ent, chk], {x: [0.0, 0.0]}


def wrong_nan_gradient() -> Any:
    x = ph(tf.float32, [2])
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    d = tf.sqrt(tf.reduce_sum(tf.square(w)))  # bug
    loss = d + tf.reduce_sum(x)
    g = tf.gradients(loss, w)
    chk = tf.add_check_numerics_ops()
    return [g, chk], {x: [1.0, 2.0]}


def wrong_nan_loop() -> Any:
    x = ph(tf.float32, [])

    def body(i: Any, v: Any) -> Any:
        u = v - 1.0
        return i + 1, tf.log(u)  # bug

    _, r = tf.while_loop(lambda i, v: i < 4, body, [0, x])
    chk = tf.add_check_numerics_ops()
    return [r, chk], {x: 2.5}


def wrong_nan_cond() -> Any:
    x = ph(tf.float32, [])
    r = tf.cond(x > 0, lambda: tf.sqrt(x), lambda: tf.sqrt(x) * 2.0)  # bug
    y = r + 1.0
    chk = tf.add_check_numerics_ops()
    return [y, chk], {x: -1.0}


def wrong_loop_carry_shape() -> Any:
    x = ph(tf.float32, [None, 2])

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.concat([h, h], 1)  # bug

    _, h = tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), x])
    return h, {x: numpy.ones((1, 2))}


def wrong_loop_carry_dtype() -> Any:
    def body(i: Any, s) -> Any:
        return i + 1, tf.cast(s, tf.float32) * 0.5  # bug

    return tf.while_loop(lambda i, s: i < 3, body, [tf.constant(0), tf.constant(4)]), {}


def wrong_loop_carry_that_goes_on() -> Any:
    def body(i: Any, h: Any) -> Any:
        wide = tf.concat([h, h], 1)  # bug
        bent = tf.tanh(wide)
        return i + 1, bent * 2.0

    start = [tf.constant(0), tf.ones([1, 2])]
    return tf.while_loop(lambda i, h: i < 3, body, start)[1], {}


def wrong_loop_carry_dtype_that_goes_on() -> Any:
    weight = tf.cast(tf.ones([2]) * 3.0, tf.float64)

    def body(i: Any, h: Any) -> Any:
        exact = tf.cast(h, tf.float64)  # bug
        return i + 1, tf.tanh(exact) * weight

    return tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), tf.ones([2])])[1], {}


def wrong_loop_carry_count() -> Any:
    def body(i: Any, s) -> Any:
        return i + 1  # bug

    return tf.while_loop(lambda i, s: i < 3, body, [tf.constant(0), tf.constant(4)]), {}


def wrong_loop_matmul_fed() -> Any:
    w, h0 = ph(tf.float32, [None, None]), ph(tf.float32, [1, 2])

    def body(i: Any, h: Any) -> Any:
        a = tf.matmul(h, w)  # bug
        return i + 1, tf.tanh(a)

    _, h = tf.while_loop(
        lambda i, h: i < 3, body, [0, h0], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])]
    )
    return h, {w: numpy.ones((2, 3)), h0: [[1.0, 2.0]]}


def wrong_ta_oob() -> Any:
    x = ph(tf.float32, [None])
    ta = tf.TensorArray(tf.float32, size=2)

    def body(i: Any, ta: Any) -> Any:
        return i + 1, ta.write(i, x[i])  # bug

    _, ta = tf.while_loop(lambda i, ta: i < 3, body, [0, ta])
    return ta.stack(), {x: [1.0, 2.0, 3.0]}


def wrong_pyfunc_raise() -> Any:
    def f(a: Any) -> Any:
        return a[5]  # bug

    x = ph(tf.float32, [None])
    return tf.py_func(f, [x], tf.float32), {x: [1.0]}


def wrong_pyfunc_type() -> Any:
    x = ph(tf.float32, [None])
    y = tf.py_func(lambda a: a.astype("int64"), [x], tf.float32)  # bug
    return y * 2, {x: [1.0]}


def wrong_scope_reuse() -> Any:
    with tf.variable_scope("a"):
        tf.get_variable("w", [2])
    with tf.variable_scope("a", reuse=True):
        tf.get_variable("v", [2])  # bug


def wrong_dense_twice() -> Any:
    x = ph(tf.float32, [None, 3])
    tf.layers.dense(x, 4, name="d")
    tf.layers.dense(x, 5, name="d")  # bug


def wrong_conv_nhwc() -> Any:
    x = ph(tf.float32, [None, 8, 8, 3])
    w = tf.get_variable("w", [3, 3, 4, 8])
    return tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")  # bug


def wrong_conv_fed() -> Any:
    x = ph(tf.float32, [None, None, None, None])
    w = tf.get_variable("w", [3, 3, 4, 8])
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID")  # bug
    return tf.reduce_sum(y), {x: numpy.ones((1, 8, 8, 3))}


def wrong_gather_axis_fed() -> Any:
    x, i = ph(tf.float32, [None, None]), ph(tf.int32, [None])
    y = tf.gather(x, i, axis=1)  # bug
    return tf.reduce_sum(y), {x: numpy.ones((2, 3)), i: [0, 3]}


def wrong_split_fed() -> Any:
    x = ph(tf.float32, [None, None])
    a, b = tf.split(x, 2, 1)  # bug
    return a + b, {x: numpy.ones((2, 3))}


def wrong_reshape_fed() -> Any:
    x = ph(tf.float32, [None])
    y = tf.reshape(x, [-1, 2])  # bug
    return tf.matmul(y, tf.ones([2, 2])), {x: [1.0, 2.0, 3.0]}


def wrong_map_fn_late() -> Any:
    x = ph(tf.float32, [None, None])
    w = ph(tf.float32, [None])

    def one(row: Any) -> Any:
        return row * w  # bug

    return tf.map_fn(one, x), {x: numpy.ones((2, 3)), w: [1.0, 2.0]}


def wrong_scan_late() -> Any:
    x = ph(tf.int32, [None])
    t = tf.constant([1.0, 2.0])

    def one(acc: Any, k: Any) -> Any:
        return acc + tf.gather(t, k)  # bug

    return tf.scan(one, x, 0.0), {x: [0, 1, 2]}


def wrong_cond_late() -> Any:
    x = ph(tf.float32, [None])
    k = ph(tf.int32, [])

    def yes() -> Any:
        return tf.gather(x, k)  # bug

    return tf.cond(k > 0, yes, lambda: 0.0), {x: [1.0], k: 4}


def wrong_cond_dtype() -> Any:
    k = ph(tf.int32, [])
    return tf.cond(k > 0, lambda: tf.constant(1), lambda: tf.constant(1.0))  # bug


def wrong_bool() -> Any:
    x = ph(tf.float32, [])
    if x > 0:  # bug
        return x, {}


def wrong_assert() -> Any:
    x = ph(tf.float32, [None])
    a = tf.Assert(tf.reduce_all(x > 0), [x])  # bug
    with tf.control_dependencies([a]):
        y = tf.identity(x)
    return y, {x: [-1.0]}


def wrong_assert_pos_module() -> Any:
    x = ph(tf.float32, [None])

    class Layer:
        def __call__(self, v: Any) -> Any:
            with tf.control_dependencies([tf.assert_positive(v)]):  # bug
                return tf.log(v)

    return Layer()(x), {x: [-1.0]}


def wrong_check_numerics() -> Any:
    x = ph(tf.float32, [None])
    y = tf.check_numerics(tf.log(x), "bad")  # bug
    return y, {x: [0.0]}


def wrong_int_div() -> Any:
    a, b = ph(tf.int32, []), ph(tf.int32, [])
    q = a // b  # bug
    return q + 1, {a: 1, b: 0}


def wrong_string_num() -> Any:
    x = ph(tf.string, [None])
    y = tf.string_to_number(x)  # bug
    return y, {x: ["1.5", "abc"]}


def wrong_custom_grad() -> Any:
    @tf.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return tf.matmul(dy, tf.ones([5, 5]))  # bug

        return tf.square(x), grad

    x = ph(tf.float32, [2, 3])
    return tf.gradients(f(x), x), {x: numpy.ones((2, 3))}


def wrong_custom_grad_fed() -> Any:
    k = ph(tf.int32, [None])

    @tf.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy * tf.gather(x, k)  # bug

        return tf.square(x), grad

    x = ph(tf.float32, [3])
    return tf.gradients(f(x), x), {x: numpy.ones(3), k: [0, 1, 3]}


def wrong_gradient_late() -> Any:
    x = ph(tf.float32, [None])
    w = ph(tf.float32, [None])
    y = x * w  # bug
    return tf.gradients(tf.reduce_sum(y), x), {x: [1.0, 2.0], w: [1.0, 2.0, 3.0]}


def wrong_dyn_rnn() -> Any:
    x = ph(tf.float32, [None, None, 4])
    n = ph(tf.int32, [None])
    cell = tf.nn.rnn_cell.LSTMCell(3)
    out, _st = tf.nn.dynamic_rnn(cell, x, sequence_length=n, dtype=tf.float32)  # bug
    return tf.reduce_sum(out), {x: numpy.ones((2, 5, 4)), n: [5, 5, 2]}


def wrong_cell_custom() -> Any:
    class Cell(tf.nn.rnn_cell.RNNCell):
        state_size = 3
        output_size = 3

        def call(self, x: Any, state: Any) -> Any:
            h = tf.matmul(x, tf.ones([5, 3])) + state  # bug
            return h, h

    x = ph(tf.float32, [None, 2, 4])
    return tf.nn.dynamic_rnn(Cell(), x, dtype=tf.float32)[0], {x: numpy.ones((2, 2, 4))}


def wrong_dataset_map() -> Any:
    d = tf.data.Dataset.from_tensor_slices(numpy.arange(4.0)).map(lambda v: tf.reshape(v, [2]))  # bug
    return d.make_one_shot_iterator().get_next(), {}


def wrong_dataset_end() -> Any:
    d = tf.data.Dataset.range(0)
    n = d.make_one_shot_iterator().get_next()  # bug
    return n + 1, {}


def wrong_assign() -> Any:
    v = tf.get_variable("v", [2, 3])
    return tf.assign(v, tf.ones([3, 2])), {}  # bug


def wrong_scatter() -> Any:
    v = tf.get_variable("v", [3], initializer=tf.zeros_initializer())
    i = ph(tf.int32, [None])
    u = tf.scatter_add(v, i, tf.ones_like(i, tf.float32))  # bug
    return u, {i: [0, 3]}


def wrong_boolean_mask() -> Any:
    x, m = ph(tf.float32, [None, None]), ph(tf.bool, [None])
    y = tf.boolean_mask(x, m)  # bug
    return tf.reduce_sum(y), {x: numpy.ones((3, 2)), m: [True, False]}


def wrong_slice() -> Any:
    x = ph(tf.float32, [None])
    n = ph(tf.int32, [])
    y = tf.slice(x, [1], [n])  # bug
    return y, {x: [1.0, 2.0], n: 3}


def wrong_onehot_mat() -> Any:
    k = ph(tf.int32, [None])
    y = tf.matmul(tf.one_hot(k, 5), tf.ones([4, 2]))  # bug
    return y, {k: [0]}


def wrong_sum_list() -> Any:
    losses = [tf.reduce_sum(tf.ones([k + 1])) for k in range(2)] + [tf.ones([2, 2])]
    total = tf.stack(losses)  # bug
    return total, {}


RUNS: list[Any] = [
    wrong_residual,
    wrong_residual_fed,
    wrong_train_vocab,
    wrong_labels,
    wrong_nan_forward,
    wrong_nan_gradient,
    wrong_nan_loop,
    wrong_nan_cond,
    wrong_loop_carry_shape,
    wrong_loop_carry_dtype,
    wrong_loop_carry_that_goes_on,
    wrong_loop_carry_dtype_that_goes_on,
    wrong_loop_carry_count,
    wrong_loop_matmul_fed,
    wrong_ta_oob,
    wrong_pyfunc_raise,
    wrong_pyfunc_type,
    wrong_scope_reuse,
    wrong_dense_twice,
    wrong_conv_nhwc,
    wrong_conv_fed,
    wrong_gather_axis_fed,
    wrong_split_fed,
    wrong_reshape_fed,
    wrong_map_fn_late,
    wrong_scan_late,
    wrong_cond_late,
    wrong_cond_dtype,
    wrong_bool,
    wrong_assert,
    wrong_assert_pos_module,
    wrong_check_numerics,
    wrong_int_div,
    wrong_string_num,
    wrong_custom_grad,
    wrong_custom_grad_fed,
    wrong_gradient_late,
    wrong_dyn_rnn,
    wrong_cell_custom,
    wrong_dataset_map,
    wrong_dataset_end,
    wrong_assign,
    wrong_scatter,
    wrong_boolean_mask,
    wrong_slice,
    wrong_onehot_mat,
    wrong_sum_list,
]
