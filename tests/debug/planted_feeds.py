"""Declared graphs and expressions with one bug planted in a line each, in the places where Python has code run."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy

import twofold.dynet as dy
import twofold.static as tf

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def fed(*sizes: Any, dtype: Any = tf.float32) -> Any:
    return tf.placeholder(dtype, sizes)


def bug_generator_of_layers() -> Any:
    def layers(h: Any) -> Iterator[Any]:
        for size in (3, 4):
            h = tf.matmul(h, tf.ones([3, size]))  # bug
            yield h

    x = fed(None, 3)
    return list(layers(x))[-1] + list(layers(tf.concat([x, x], 1)))[-1], {x: X}


def bug_reduce_of_products() -> Any:
    x = fed(None, None)
    return functools.reduce(tf.matmul, [x, tf.ones([3, 2]), tf.ones([3, 2])]), {x: X}  # bug


def bug_sorted_by_a_tensor() -> Any:
    x = fed(2, 3)
    return sorted([x, x + 1.0], key=lambda one: tf.reduce_sum(one))[0], {x: X}  # bug


def bug_einsum_fed() -> Any:
    x, w = fed(None, None), fed(None, None)
    mixed = tf.einsum("bi,io->bo", x, w)  # bug
    return tf.nn.relu(mixed), {x: X, w: X}


def bug_second_call_of_a_helper() -> Any:
    def dense(h: Any, w: Any) -> Any:
        return tf.tanh(tf.matmul(h, w))  # bug

    x, w, v = fed(None, 3), fed(3, None), fed(None, 2)
    return dense(dense(x, w), v), {x: X, w: numpy.ones((3, 4)), v: numpy.ones((3, 2))}


def bug_dictionary_of_losses() -> Any:
    x, y = fed(None, 3), fed(None, dtype=tf.int64)
    losses = {
        name: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y + shift, logits=x)  # bug
        for name, shift in (("now", 0), ("next", 1))
    }
    return tf.add_n(list(losses.values())), {x: X, y: [0, 2]}


class Encoder:
    def __init__(self) -> None:
        self.table = tf.get_variable("table", [5, 2], initializer=tf.ones_initializer())

    def __call__(self, words: Any) -> Any:
        return tf.nn.embedding_lookup(self.table, words)  # bug of bug_callable_object

    @property
    def norms(self) -> Any:
        return self.table / tf.reduce_sum(self.table, 1)  # bug of bug_property_of_a_table


def bug_callable_object() -> Any:
    words = fed(None, dtype=tf.int32)
    return tf.reduce_mean(Encoder()(words), 0), {words: [1, 4, 5]}


def bug_property_of_a_table() -> Any:
    return Encoder().norms, {}


def bug_context_of_a_scope() -> Any:
    @contextlib.contextmanager
    def widened(x: Any) -> Iterator[Any]:
        with tf.name_scope("wide"):
            yield tf.concat([x, tf.ones([3, 1])], 1)  # bug

    x = fed(None, 3)
    with widened(x) as wide:
        return wide * 2.0, {x: X}


def bug_carried_size() -> Any:
    x = fed(3)

    def body(k: Any, h: Any) -> Any:
        return k + 1, h[1:] + h[:-1]  # bug

    return tf.while_loop(lambda k, h: k < 2, body, [tf.constant(0), x])[1], {x: [1.0, 2.0, 3.0]}


def bug_condition_of_a_loop() -> Any:
    x = fed(2)
    return tf.while_loop(lambda h: h < 9.0, lambda h: (h * 2.0,), [x]), {x: [1.0, 2.0]}  # bug


def bug_branches_of_sizes() -> Any:
    x = fed(2, 3)
    picked = tf.cond(x[0, 0] > 0.0, lambda: x[0], lambda: x[:, 0])
    y = picked + tf.ones([4])  # bug
    return y, {x: X}


def bug_loop_reads_past_the_end() -> Any:
    x = fed(None)

    def following(k: Any, total: Any) -> Any:
        pair = x[k] * tf.gather(x, k + 1)  # bug
        return k + 1, total + pair

    start = [tf.constant(0), tf.constant(0.0)]
    return tf.while_loop(lambda k, total: k < tf.size(x), following, start)[1], {x: [1.0, 2.0]}


def bug_host_function_of_shapes() -> Any:
    def product(a: Any, b: Any) -> Any:
        return numpy.dot(a, b)  # bug

    x = fed(2, 3)
    return tf.py_func(product, [x, tf.ones([2, 3])], tf.float32), {x: X}


def bug_host_function_called_twice() -> Any:
    seen: list[Any] = []

    def ranked(a: Any) -> Any:
        seen.append(int(a.sum()))
        return numpy.float32(sorted(seen, key=lambda total: 1 / (total - 27))[0])  # bug

    x = fed(2, 3)
    first = tf.py_func(ranked, [x], tf.float32)
    return first + tf.py_func(ranked, [x + 1.0], tf.float32), {x: X}


def bug_gradient_of_a_norm() -> Any:
    x = fed(2)
    length = tf.sqrt(tf.reduce_sum(tf.square(x)))
    (g,) = tf.gradients(length, [x])
    return tf.check_numerics(g, "gradient of the length"), {x: [0.0, 0.0]}  # bug


def bug_schedule_fed() -> Any:
    step = fed(dtype=tf.int32)
    rates = tf.constant([0.1, 0.01])
    rate = tf.gather(rates, step // 10)  # bug
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    return tf.train.GradientDescentOptimizer(rate).minimize(w * w), {step: 25}


def bug_gradients_of_others() -> Any:
    first = tf.get_variable("first", [2, 3], initializer=tf.ones_initializer())
    second = tf.get_variable("second", [3], initializer=tf.ones_initializer())
    optimizer = tf.train.AdamOptimizer(0.1)
    pairs = optimizer.compute_gradients(tf.reduce_sum(first * second))
    swapped = [(g, v) for (g, _), (_, v) in zip(pairs, pairs[::-1])]
    return optimizer.apply_gradients(swapped), {}  # bug


def bug_assigned_in_a_thread() -> Any:
    caught: list[Exception] = []
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    graph = tf.get_default_graph()

    def work() -> None:
        try:
            with graph.as_default():
                tf.assign(v, tf.ones([3]))  # bug
        except ValueError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise caught[0]


def bug_channels_of_a_list() -> Any:
    x = fed(None, 4, 4, 2)
    h = x
    for weight in (tf.ones([1, 1, 2, 3]), tf.ones([3, 3, 3, 5]), tf.ones([1, 1, 4, 2])):
        h = tf.nn.conv2d(h, weight, [1, 1, 1, 1], "SAME")  # bug
    return h, {x: numpy.ones((1, 4, 4, 2))}


def bug_accumulated_states() -> Any:
    x = fed(None, 2)
    parts = itertools.accumulate([x, x, tf.ones([2, 3])], lambda a, b: tf.concat([a, b], 0))  # bug
    return list(parts)[-1], {x: numpy.ones((1, 2))}


def bug_recursive_pyramid() -> Any:
    def halved(h: Any, depth: int) -> Any:
        if depth == 0:
            return h
        a, b = tf.split(h, 2)  # bug
        return halved(a + b, depth - 1)

    x = fed(None)
    return halved(x, 3), {x: [1.0, 2.0, 3.0, 4.0]}


def dynet_shared_weights() -> Any:
    def encoded(w: Any, x: Any) -> Any:
        return dy.tanh(w * x)  # bug

    model = dy.ParameterCollection()
    w = model.add_parameters((4, 2))
    encoded(w, encoded(w, dy.inputVector([1.0, 2.0]))).value()


def dynet_recursive_tree() -> Any:
    model = dy.ParameterCollection()
    w = model.add_parameters((2, 4))

    def composed(node: Any) -> Any:
        if isinstance(node, float):
            return dy.inputVector([node] * 2)
        return dy.tanh(w * dy.concatenate([composed(one) for one in node]))  # bug

    composed(((1.0, 2.0), (3.0, (4.0, 5.0, 6.0)))).value()


def dynet_sorted_candidates() -> Any:
    scores = dy.inputVector([0.1, 0.7, 0.2])
    sorted(range(4), key=lambda k: scores[k].scalar_value())  # bug


def dynet_mapped_words() -> Any:
    table = dy.ParameterCollection().add_lookup_parameters((4, 2))
    vectors = list(map(functools.partial(dy.lookup, table), [0, 3, 4]))  # bug
    dy.esum(vectors).value()


def dynet_generated_states() -> Any:
    model = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, 2, 3, model)

    def states(words: Any) -> Iterator[Any]:
        state = builder.initial_state()
        for word in words:
            state = state.add_input(dy.inputVector(word))  # bug
            yield state.output()

    dy.concatenate(list(states([[1.0, 2.0], [1.0, 2.0, 3.0]]))).value()


def dynet_logarithm_of_zero() -> Any:
    import twofold

    with twofold.detect_anomaly():
        p = dy.softmax(dy.inputVector([0.0, 200.0]))
        loss = -dy.log(dy.pick(p, 0))  # bug
        loss.value()


def dynet_property_of_a_model() -> Any:
    class Scorer:
        weight = dy.ParameterCollection().add_parameters((1, 3))

        @property
        def score(self) -> Any:
            return self.weight * dy.inputVector([1.0, 2.0])  # bug

    Scorer().score.value()


def dynet_batches_of_two() -> Any:
    table = dy.ParameterCollection().add_lookup_parameters((4, 2))
    pairs = zip([[0, 1], [2, 3]], [[0], [1, 2, 3]])
    total = [dy.lookup_batch(table, a) + dy.lookup_batch(table, b) for a, b in pairs]  # bug
    dy.esum([dy.sum_batches(one) for one in total]).value()


def dynet_attention_of_columns() -> Any:
    def context(states: Any, scores: Any) -> Any:
        return dy.concatenate_cols(states) * dy.softmax(scores)  # bug

    context([dy.inputVector([1.0, 2.0])] * 3, dy.inputVector([0.5, 0.5])).value()


FEEDS = [one for name, one in list(globals().items()) if name.startswith("bug_")]
OF_STATES = [one for name, one in list(globals().items()) if name.startswith("dynet_")]
