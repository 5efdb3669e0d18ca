"""Declared graphs with one bug planted in a line each: in lambdas, templates, data sets, sessions, nested bodies."""

from __future__ import annotations

import functools
from typing import Any

import numpy

import twofold as torch
import twofold.dynet as dy
import twofold.static as tf


def placeholder(*s: Any, t: Any = tf.float32) -> Any:
    return tf.placeholder(t, list(s))


def wrong_two_sessions_vars() -> Any:
    session = tf.get_default_session()
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    y = w + 1.0
    session.run(tf.global_variables_initializer())
    with tf.Session() as other:
        other.run(y)  # bug


def wrong_two_graphs() -> Any:
    tf.get_default_session()
    x = tf.constant([1.0])
    with tf.Graph().as_default():
        z = tf.constant([2.0])
        x + z  # bug


def wrong_fetch_other_graph() -> Any:
    session = tf.get_default_session()
    with tf.Graph().as_default():
        z = tf.constant([2.0])
    session.run(z)  # bug


def wrong_feed_rank_too() -> Any:
    session = tf.get_default_session()
    x = placeholder(None, 3)
    y = tf.reduce_sum(x)
    session.run(y, {x: [1.0, 2.0, 3.0]})  # bug


def wrong_feed_dtype_str() -> Any:
    session = tf.get_default_session()
    x = placeholder(2)
    session.run(x * 2.0, {x: ["a", "b"]})  # bug


def wrong_feed_float_to_int() -> Any:
    session = tf.get_default_session()
    i = placeholder(2, t=tf.int32)
    session.run(i + 1, {i: [0.5, 1.0]})  # bug


def wrong_lambda_cond() -> Any:
    x = placeholder(None)
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reshape(x, [2, 2]), lambda: tf.zeros([2, 2]))  # bug
    return y, {x: [1.0, 2.0, 3.0]}


def wrong_while_lambda() -> Any:
    x = placeholder(None, None)
    r = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.matmul(h, h)), [0, x])  # bug
    return r[1], {x: numpy.ones((2, 3))}


def wrong_scan_lambda() -> Any:
    x = placeholder(None, 2)
    y = tf.scan(lambda a, v: a + tf.gather(v, tf.cast(a, tf.int32)), x, 1.0)  # bug
    return y, {x: numpy.ones((3, 2))}


def wrong_map_fn() -> Any:
    x = placeholder(None, 2)
    y = tf.map_fn(lambda r: tf.reshape(r, [tf.cast(r[0], tf.int32)]), x)  # bug
    return y, {x: [[2.0, 1.0], [3.0, 1.0]]}


def wrong_py_func_inner() -> Any:
    def helper(a: Any) -> Any:
        return a[5]  # bug

    def f(a: Any) -> Any:
        return helper(a)

    x = placeholder(2)
    return tf.py_func(f, [x], tf.float32), {x: [1.0, 2.0]}


def wrong_uninit_slot() -> Any:
    session = tf.get_default_session()
    v = tf.Variable([1.0, 2.0])
    o = tf.train.AdamOptimizer()
    step = o.minimize(tf.reduce_sum(v * v))
    session.run(v.initializer)
    session.run(step)  # bug


def wrong_restore_other_shape() -> Any:
    session = tf.get_default_session()
    with tf.variable_scope("a"):
        tf.get_variable("v", [2])
    session.run(tf.global_variables_initializer())
    p = tf.train.Saver().save(session, "./m.ckpt")
    with tf.Graph().as_default(), tf.Session() as s2:
        with tf.variable_scope("a"):
            tf.get_variable("v", [3])
        tf.train.Saver().restore(s2, p)  # bug


def wrong_second_derivative() -> Any:
    x = placeholder(None)
    y = tf.sqrt(x)
    (g,) = tf.gradients(y, [x])
    (h,) = tf.gradients(g, [x])
    return tf.check_numerics(h, "h"), {x: [0.0]}  # bug


def wrong_gradients_none() -> Any:
    x = placeholder(2)
    z = placeholder(2)
    (g,) = tf.gradients(x * 2.0, [z])
    g + 1.0  # bug


def wrong_decorated_layer() -> Any:
    def scoped(f: Any) -> Any:
        @functools.wraps(f)
        def inner(*a: Any) -> Any:
            with tf.variable_scope(f.__name__, reuse=tf.AUTO_REUSE):
                return f(*a)

        return inner

    @scoped
    def layer(x: Any) -> Any:
        w = tf.get_variable("w", [4, 2])
        return tf.matmul(x, w)  # bug

    x = placeholder(None, 3)
    return layer(x), {x: numpy.ones((2, 3))}


def wrong_shared_scope_shape() -> Any:
    def layer(x: Any, n: Any) -> Any:
        with tf.variable_scope("l", reuse=tf.AUTO_REUSE):
            return tf.matmul(x, tf.get_variable("w", [3, n]))  # bug

    x = placeholder(None, 3)
    layer(layer(x, 3), 4)


def wrong_optimizer_no_vars() -> Any:
    x = placeholder(2)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(x))  # bug


def wrong_assign_shape() -> Any:
    v = tf.get_variable("v", [2])
    v.assign([1.0, 2.0, 3.0])  # bug


def wrong_assign_fed_shape() -> Any:
    v = tf.get_variable("v", [2])
    x = placeholder(None)
    return tf.assign(v, x), {x: [1.0, 2.0, 3.0]}  # bug


def wrong_dynamic_rnn_input() -> Any:
    x = placeholder(None, 4, 3)
    cell = tf.nn.rnn_cell.LSTMCell(5)
    o, _ = tf.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(3, tf.float32))  # bug
    return o, {x: numpy.ones((2, 4, 3))}


def wrong_nested_cond() -> Any:
    x = placeholder(None)

    def inner() -> Any:
        return tf.cond(tf.size(x) > 2, lambda: tf.reshape(x, [2]), lambda: tf.zeros([2]))  # bug

    y = tf.cond(tf.size(x) > 1, inner, lambda: tf.zeros([2]))
    return y, {x: [1.0, 2.0, 3.0]}


def wrong_sparse_labels() -> Any:
    x = placeholder(None, 3)
    l = placeholder(None, t=tf.int32)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=l, logits=x))  # bug
    return loss, {x: numpy.ones((2, 3)), l: [0, 3]}


def wrong_control_dep_assert() -> Any:
    x = placeholder(None)
    with tf.control_dependencies([tf.assert_positive(x, message="must be positive")]):  # bug
        y = tf.log(x)
    return y, {x: [1.0, -1.0]}


def wrong_dataset_map_late() -> Any:
    session = tf.get_default_session()
    d = tf.data.Dataset.from_tensor_slices(numpy.arange(4))
    d = d.map(lambda k: tf.gather(tf.constant([1.0, 2.0]), k))  # bug
    n = d.make_one_shot_iterator().get_next()
    for _ in range(4):
        session.run(n)


def wrong_tensor_array_index() -> Any:
    ta = tf.TensorArray(tf.float32, 2)

    def body(i: Any, t: Any) -> Any:
        return i + 1, t.write(i, 1.0)  # bug

    _, t = tf.while_loop(lambda i, t: i < 3, body, [0, ta])
    return t.stack(), None


def wrong_make_template() -> Any:
    def f(x: Any) -> Any:
        return tf.layers.dense(x, 3) + tf.ones([4])  # bug

    t = tf.make_template("t", f)
    t(placeholder(None, 2))


def wrong_partial_run_feed() -> Any:
    session = tf.get_default_session()
    a, b = placeholder(2), placeholder(2)
    r1, r2 = a + 1.0, a * b
    session.partial_run_setup([r1, r2], [a, b])
    session.run(r2, {a: [1.0, 2.0]})  # bug


def wrong_feed_key_str() -> Any:
    session = tf.get_default_session()
    x = placeholder(2)
    session.run(x + 1.0, {"x": [1.0, 2.0]})  # bug


def wrong_clip_none() -> Any:
    v = tf.get_variable("v", [2])
    u = tf.get_variable("u", [2])
    g = tf.gradients(tf.reduce_sum(v), [v, u])
    tf.stack(g)  # bug


def wrong_matrix_solve_grad() -> Any:
    a = placeholder(2, 2)
    y = tf.reduce_sum(tf.matrix_inverse(a))  # bug
    return tf.gradients(y, [a]), {a: numpy.zeros((2, 2))}


def wrong_class_method() -> Any:
    class Net:
        def __init__(self) -> None:
            self.w = tf.get_variable("w", [3, 2])

        def __call__(self, x: Any) -> Any:
            return tf.nn.xw_plus_b(x, self.w, tf.zeros([3]))  # bug

    x = placeholder(None, 3)
    return Net()(x), {x: numpy.ones((1, 3))}


def wrong_comprehension_layers() -> Any:
    x = placeholder(None, 4)
    [tf.layers.dense(p, 2) for p in tf.split(x, 3, axis=1)]  # bug


def wrong_reduce_axis_fed() -> Any:
    x = placeholder(None, 2)
    ax = placeholder(t=tf.int32)
    return tf.reduce_sum(x, axis=ax), {x: numpy.ones((2, 2)), ax: 3}  # bug


def wrong_strided_slice_fed() -> Any:
    x = placeholder(None)
    k = placeholder(t=tf.int32)
    y = x[k]  # bug
    return y * 2.0, {x: [1.0, 2.0], k: 7}


def wrong_cond_structures() -> Any:
    x = placeholder()
    tf.cond(x > 0, lambda: (x, x), lambda: x)  # bug


def wrong_mean_of_strings() -> Any:
    tf.reduce_mean(tf.constant(["a", "b"]))  # bug


def wrong_batch_to_space() -> Any:
    x = placeholder(None, 4, 4, 1)
    return tf.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 0]]), {x: numpy.ones((3, 4, 4, 1))}  # bug


def wrong_conv_strides() -> Any:
    x = placeholder(None, 8, 8, 3)
    tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]), strides=[1, 2], padding="SAMEE")  # bug


def wrong_global_step_type() -> Any:
    tf.train.exponential_decay(0.1, tf.constant("a"), 10, 0.9)  # bug


def wrong_import_graph() -> Any:
    tf.get_default_session()
    tf.constant(1.0, name="c")
    gd = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        tf.import_graph_def(gd, return_elements=["d:0"])  # bug


def wrong_nested_map_scan() -> Any:
    x = placeholder(None, None)

    def row(r: Any) -> Any:
        return tf.scan(lambda a, v: a + tf.gather(r, tf.cast(v, tf.int32)), r)[-1]  # bug

    return tf.map_fn(row, x), {x: [[0.0, 1.0], [0.0, 2.0]]}


# dynet


def vec(*v: Any) -> Any:
    return dy.inputVector(list(v))


def ph(*s: Any, t: Any = tf.float32) -> Any:
    return tf.placeholder(t, list(s))


def vector(*v: Any) -> Any:
    return dy.inputVector(list(v))


def dynet_tree_builder() -> Any:
    class T:
        def __init__(self, *kids: Any) -> None:
            self.kids = kids

    pc = dy.ParameterCollection()
    W = pc.add_parameters((2, 4))

    def encode(t: Any) -> Any:
        if not t.kids:
            return vector(1.0, 2.0)
        hs = [encode(k) for k in t.kids]
        return dy.tanh(W * dy.concatenate(hs))  # bug

    encode(T(T(), T(T(), T(), T()))).value()


def dynet_lstm_input() -> Any:
    pc = dy.ParameterCollection()
    b = dy.LSTMBuilder(1, 3, 4, pc)
    s = b.initial_state()
    for x in [vector(1, 2, 3), vector(1, 2)]:
        s = s.add_input(x)  # bug
    s.output().value()


def dynet_bilstm_late() -> Any:
    pc = dy.ParameterCollection()
    E = pc.add_lookup_parameters((3, 2))
    b = dy.BiRNNBuilder(1, 2, 4, pc, dy.LSTMBuilder)
    b.transduce([E[i] for i in (0, 1, 3)])  # bug


def dynet_loss_sum() -> Any:
    losses = [dy.pickneglogsoftmax(vector(1, 2, 3), k) for k in (0, 1, 3)]  # bug
    dy.esum(losses).value()


def dynet_nan_backward() -> Any:
    pc = dy.ParameterCollection()
    p = pc.add_parameters(2, init=dy.ConstInitializer(0))
    with torch.detect_anomaly():
        e = dy.sqrt(dy.squared_norm(p))  # bug
        e.backward()
        p.grad_as_array()


def dynet_attention_too() -> Any:
    pc = dy.ParameterCollection()
    W = pc.add_parameters((3, 3))
    hs = dy.concatenate_cols([vector(1, 2, 3), vector(1, 2, 3)])
    q = vector(1, 2)
    a = dy.softmax(dy.transpose(hs) * W * q)  # bug
    a.value()


def dynet_closure() -> Any:
    f = lambda e: dy.cmult(e, vector(1, 2, 3))  # bug
    f(vector(1, 2)).value()


def dynet_batch_mismatch() -> Any:
    a = dy.inputTensor(numpy.ones((2, 3)), batched=True)
    b = dy.inputTensor(numpy.ones((2, 4)), batched=True)
    (a + b).value()  # bug


def dynet_populate() -> Any:
    pc = dy.ParameterCollection()
    pc.add_parameters((2, 3))
    pc.save("./m.dy")
    qc = dy.ParameterCollection()
    qc.add_parameters((3, 3))
    qc.populate("./m.dy")  # bug


def dynet_set_input() -> Any:
    x = dy.vecInput(3)
    x.set([1, 2])  # bug
    (x * 2).value()


def dynet_generator() -> Any:
    def states(n: Any) -> Any:
        h = vector(1, 2)
        for k in range(n):
            h = h + dy.inputVector([0.0] * (2 + k))  # bug
            yield h

    [s.value() for s in states(3)]


def dynet_param_other_shape() -> Any:
    pc = dy.ParameterCollection()
    p = pc.add_parameters(3)
    p.set_value([1, 2])  # bug


def dynet_pick_batch() -> Any:
    a = dy.inputTensor(numpy.ones((3, 2)), batched=True)
    dy.pickneglogsoftmax_batch(a, [0, 1, 2]).value()  # bug


def dynet_hinge_too() -> Any:
    dy.hinge(vector(1, 2, 3), 4).value()  # bug


def dynet_trainer_clip() -> Any:
    pc = dy.ParameterCollection()
    pc.add_parameters(2)
    dy.SimpleSGDTrainer(pc, "fast")  # bug


def dynet_scalar_value_too() -> Any:
    vector(1, 2).scalar_value()  # bug


DECLARATIONS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
BUILDERS_OF_DYNET = [one for name, one in list(globals().items()) if name.startswith("dynet_")]
