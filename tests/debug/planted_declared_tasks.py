"""Declared graphs with one bug planted in a line each: cells, data sets, functions of the program, losses, states."""

from __future__ import annotations

import functools
from typing import Any

import numpy

import twofold.static as tf


def rows() -> Any:
    return tf.placeholder(tf.float32, [None, 3])


X = numpy.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")


class Cell(tf.nn.rnn_cell.RNNCell):
    @property
    def state_size(self) -> Any:
        return 4

    @property
    def output_size(self) -> Any:
        return 4

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        w = tf.get_variable("w", [4, 4])
        fresh = tf.tanh(tf.matmul(state, w) + inputs)  # bug of bug_cell_of_a_network
        return fresh, fresh


def bug_cell_of_a_network() -> Any:
    x = tf.placeholder(tf.float32, [2, 5, 3])
    out, _ = tf.nn.dynamic_rnn(Cell(), x, dtype=tf.float32)
    return out, {x: numpy.ones((2, 5, 3))}


def bug_stacked_cells() -> Any:
    x = tf.placeholder(tf.float32, [2, 5, 3])
    cells = [tf.nn.rnn_cell.GRUCell(4) for _ in range(2)]
    stacked = tf.nn.rnn_cell.MultiRNNCell(cells)
    state = (tf.zeros([2, 4]), tf.zeros([2, 3]))
    out, _ = tf.nn.dynamic_rnn(stacked, x, initial_state=state)  # bug
    return out, {x: numpy.ones((2, 5, 3))}


def bug_attention_over_a_source() -> Any:
    source = tf.placeholder(tf.float32, [None, None, 4])
    query = tf.placeholder(tf.float32, [None, 3])
    scores = tf.reduce_sum(source * query[:, None, :], 2)  # bug
    return tf.nn.softmax(scores), {source: numpy.ones((2, 5, 4)), query: X}


def bug_attention_fed() -> Any:
    source = tf.placeholder(tf.float32, [None, None, None])
    query = tf.placeholder(tf.float32, [None, None])
    scores = tf.einsum("bld,bd->bl", source, query)  # bug
    return tf.nn.softmax(scores), {source: numpy.ones((2, 5, 4)), query: X}


def bug_decoder_loop() -> Any:
    table = tf.get_variable("table", [5, 3])
    steps = tf.placeholder(tf.int32, [])

    def decode(k: Any, token: Any, logits: Any) -> Any:
        embedded = tf.nn.embedding_lookup(table, token)  # bug
        scores = tf.matmul(embedded, table, transpose_b=True)
        return k + 1, token + 3, logits.write(k, scores)

    start = (tf.constant(0), tf.constant([0, 1]), tf.TensorArray(tf.float32, size=4))

    def is_open(k: Any, token: Any, logits: Any) -> Any:
        return k < steps

    return tf.while_loop(is_open, decode, start)[2].stack(), {steps: 4}


def bug_loop_in_a_helper_of_a_helper() -> Any:
    x = rows()

    def smooth(v: Any) -> Any:
        kernel = tf.ones([2, 2])
        return tf.matmul(v, kernel)  # bug

    def repeat(function: Any, v: Any, times: int) -> Any:
        return tf.while_loop(lambda i, h: i < times, lambda i, h: (i + 1, function(h)), [tf.constant(0), v])[
            1
        ]

    return repeat(smooth, x, 3), {x: X}


def bug_carry_that_grows() -> Any:
    x = tf.placeholder(tf.float32, [None])

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.concat([h, x], 0)  # bug

    return tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), tf.zeros([2])])[1], {x: [1.0]}


def bug_carry_of_a_dictionary() -> Any:
    x = tf.constant(X)

    def body(state: Any) -> Any:
        return {"k": state["k"] + 1, "h": tf.cast(state["h"], tf.float64)}  # bug

    return tf.while_loop(lambda state: state["k"] < 3, body, [{"k": tf.constant(0), "h": x}]), {}


def bug_scan_with_two_inputs() -> Any:
    x, w = rows(), tf.placeholder(tf.float32, [None])

    def step(carry: Any, item: Any) -> Any:
        row, weight = item
        return carry + row[:2] * weight  # bug

    return tf.scan(step, (x, w), initializer=tf.zeros([3])), {x: X, w: [1.0, 2.0]}


def bug_map_of_branches() -> Any:
    x = rows()
    k = tf.placeholder(tf.int32, [None])

    def one(pair: Any) -> Any:
        row, number = pair
        return tf.cond(row[0] > 2.0, lambda: tf.gather(row, number), lambda: row[1])  # bug

    return tf.map_fn(one, (x, k), dtype=tf.float32), {x: X, k: [0, 4]}


def bug_switch_of_experts() -> Any:
    x, choice = rows(), tf.placeholder(tf.int32, [])
    experts = [
        lambda: tf.matmul(x, tf.ones([3, 2])),
        lambda: tf.matmul(x, tf.ones([4, 2])),  # bug
    ]
    return tf.switch_case(choice, experts), {x: X, choice: 1}


def bug_host_function_with_state() -> Any:
    seen: list[Any] = []

    def remember(v: Any) -> Any:
        seen.append(v)
        return numpy.stack(seen) / seen[2]  # bug

    x = rows()
    return tf.py_func(remember, [x], tf.float32), {x: X}


def bug_host_function_of_other_rank() -> Any:
    x = rows()
    y = tf.py_func(lambda v: v.sum(1), [x], tf.float32)  # bug
    y.set_shape([None, 3])
    return tf.matmul(y, tf.ones([3, 2])), {x: X}


def bug_host_function_in_a_data_set() -> Any:
    def load(k: Any) -> Any:
        return numpy.float32([1.0, 2.0])[k]  # bug

    data = tf.data.Dataset.range(4).map(lambda k: tf.py_func(load, [k], tf.float32))
    return tf.reduce_sum(data.batch(4).make_one_shot_iterator().get_next()), {}


def bug_data_set_map_of_a_map() -> Any:
    table = tf.constant([10.0, 20.0, 30.0])
    data = tf.data.Dataset.range(5).map(lambda k: k + 1).map(lambda k: tf.gather(table, k))  # bug
    return data.batch(5).make_one_shot_iterator().get_next(), {}


def bug_data_set_zip_of_shapes() -> Any:
    left = tf.data.Dataset.from_tensors(tf.ones([2, 3]))
    right = tf.data.Dataset.from_tensors(tf.ones([4, 3]))

    def joined(a: Any, b: Any) -> Any:
        return a * b  # bug

    return tf.data.Dataset.zip((left, right)).map(joined).make_one_shot_iterator().get_next(), {}


def bug_data_set_reduce() -> Any:
    data = tf.data.Dataset.from_tensor_slices(tf.ones([4, 3]))

    def add(total: Any, row: Any) -> Any:
        return tf.cast(total + row, tf.float64)  # bug

    return data.reduce(tf.zeros([3]), add), {}


def bug_custom_gradient_of_clipping() -> Any:
    @tf.custom_gradient
    def clipped(v: Any) -> Any:
        def gradient(dy: Any) -> Any:
            return dy * tf.ones([4])  # bug

        return tf.clip_by_value(v, 0.0, 1.0), gradient

    w = tf.Variable(tf.ones([3]))
    return tf.gradients(tf.reduce_sum(clipped(w)), w)[0], {}


def bug_gradient_function_late() -> Any:
    k = tf.placeholder(tf.int32, [])

    @tf.custom_gradient
    def weighted(v: Any) -> Any:
        def gradient(dy: Any) -> Any:
            weights = tf.gather(tf.constant([0.5, 2.0]), k)  # bug
            return dy * weights

        return v * 2.0, gradient

    w = tf.Variable(tf.ones([3]))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(weighted(w)))
    return step, {k: 2}


def bug_nan_of_a_normaliser() -> Any:
    x = rows()
    total = tf.reduce_sum(x, 1, keepdims=True)
    share = x / total  # bug
    with tf.control_dependencies([tf.add_check_numerics_ops()]):
        return tf.identity(share), {x: numpy.zeros((2, 3))}


def bug_nan_in_a_loop_body() -> Any:
    x = tf.placeholder(tf.float32, [])

    def body(k: Any, v: Any) -> Any:
        return k + 1, tf.sqrt(v - 1.0)  # bug

    found = tf.while_loop(lambda k, v: k < 4, body, [tf.constant(0), x])[1]
    with tf.control_dependencies([tf.add_check_numerics_ops()]):
        return tf.identity(found), {x: 2.0}


def bug_nan_backward_of_a_norm() -> Any:
    w = tf.Variable(tf.zeros([3]))
    loss = tf.sqrt(tf.reduce_sum(tf.square(w)))  # bug
    slope = tf.gradients(loss, w)[0]
    with tf.control_dependencies([tf.add_check_numerics_ops()]):
        return tf.identity(slope), {}


def bug_nan_of_check_numerics() -> Any:
    x = rows()
    logs = tf.log(x - 1.0)
    return tf.check_numerics(logs, "logs"), {x: X}  # bug


def bug_assert_of_lengths() -> Any:
    lengths = tf.placeholder(tf.int32, [None])
    check = tf.assert_less_equal(lengths, 3)  # bug
    with tf.control_dependencies([check]):
        return tf.sequence_mask(lengths, 3), {lengths: [2, 4]}


def bug_labels_of_one_hot() -> Any:
    scores, labels = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int64, [None])
    wanted = tf.one_hot(labels, 3)
    loss = tf.losses.softmax_cross_entropy(wanted, scores)  # bug
    return loss, {scores: numpy.ones((2, 4)), labels: [0, 1]}


def bug_variable_of_another_scope() -> Any:
    x = rows()
    with tf.variable_scope("encoder"):
        tf.get_variable("w", [3, 4])
    with tf.variable_scope("encoder", reuse=True):
        w = tf.get_variable("w", [4, 3])  # bug
    return tf.matmul(x, w), {x: X}


def bug_accumulator_of_gradients() -> Any:
    w = tf.Variable(tf.ones([3, 2]))
    held = tf.Variable(tf.zeros([2, 3]), trainable=False)
    slope = tf.gradients(tf.reduce_sum(w * w), w)[0]
    return held.assign_add(slope), {}  # bug


def bug_moving_average_fed() -> Any:
    x = tf.placeholder(tf.float32, [None])
    mean = tf.Variable(tf.zeros([3]))
    fresh = mean * 0.9 + x * 0.1  # bug
    return mean.assign(fresh), {x: [1.0, 2.0]}


def bug_partial_of_a_layer() -> Any:
    layer = functools.partial(tf.layers.dense, units=4, activation=tf.nn.relu)
    x = tf.placeholder(tf.float32, [None, None])
    return layer(x), {x: X}  # bug


def bug_images_in_another_order() -> Any:
    image = tf.placeholder(tf.float32, [None, 3, 8, 8])
    kernel = tf.get_variable("kernel", [3, 3, 3, 6])
    return tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME"), {image: numpy.ones((1, 3, 8, 8))}  # bug


def bug_skip_of_a_network() -> Any:
    image = tf.placeholder(tf.float32, [None, None, None, 1])
    low = tf.layers.max_pooling2d(image, 2, 2)
    up = tf.image.resize_nearest_neighbor(low, tf.shape(low)[1:3] * 2)
    both = tf.concat([image, up], 3)  # bug
    return both, {image: numpy.ones((1, 5, 5, 1))}


def bug_generator_of_losses() -> Any:
    outputs = [tf.placeholder(tf.float32, [None]) for _ in range(3)]
    target = tf.placeholder(tf.float32, [None])
    total = tf.add_n([tf.reduce_mean(tf.square(one - target)) for one in outputs])  # bug
    feeds = {one: [1.0] * size for one, size in zip(outputs, (3, 3, 2))}
    return total, {**feeds, target: [0.0, 0.0, 0.0]}


def bug_string_of_a_number() -> Any:
    text = tf.placeholder(tf.string, [None])
    numbers = tf.string_to_number(text)  # bug
    return tf.reduce_sum(numbers), {text: ["1.5", "two"]}


def bug_split_of_a_feed() -> Any:
    x = tf.placeholder(tf.float32, [None, None])
    left, right = tf.split(x, 2, axis=1)  # bug
    return left + right, {x: X}


def bug_singular_in_a_branch() -> Any:
    x = tf.placeholder(tf.float32, [2, 2])
    flag = tf.placeholder(tf.bool, [])

    def solved() -> Any:
        return tf.matrix_inverse(x)  # bug

    return tf.cond(flag, solved, lambda: x), {x: numpy.ones((2, 2)), flag: True}


def bug_sequence_of_updates() -> Any:
    table = tf.Variable(tf.zeros([4, 2]))
    where = tf.placeholder(tf.int32, [None])
    first = tf.scatter_add(table, [0], [[1.0, 1.0]])
    with tf.control_dependencies([first]):
        second = tf.scatter_sub(table, where, tf.ones([2, 2]))  # bug
    return second, {where: [1, 4]}


def bug_missing_feed_of_a_branch() -> Any:
    x, flag = rows(), tf.placeholder(tf.bool, [])
    offset = tf.placeholder(tf.float32, [3])
    return tf.cond(flag, lambda: x + offset, lambda: x), {x: X, flag: False}


def bug_kept_tensor_of_a_loop() -> Any:
    kept: list[Any] = []

    def body(i: Any, h: Any) -> Any:
        kept.append(h * 2.0)
        return i + 1, kept[-1]

    tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), tf.constant(1.0)])
    return kept[0] + 1.0, {}  # bug


def bug_tensor_as_a_condition() -> Any:
    x = rows()
    return (x if tf.reduce_sum(x) > 0 else -x), {x: X}  # bug


DECLARED: list[Any] = [found for name, found in dict(globals()).items() if name.startswith("bug_")]
