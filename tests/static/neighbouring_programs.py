"""Short whole programs for TensorFlow 1, each a function of the module ``tf`` that returns numbers.

They start from given values and draw nothing, so TensorFlow's numbers are the reference; what it returned is recorded
in ``neighbouring_programs.json`` by running this file where TensorFlow is installed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_suffix(".json")


def _data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def linear_regression(tf: Any) -> Any:
    x, y = tf.placeholder("float"), tf.placeholder("float")
    w, b = tf.Variable(0.3, name="weight"), tf.Variable(-0.2, name="bias")
    cost = tf.reduce_sum(tf.pow(tf.add(tf.multiply(x, w), b) - y, 2)) / 20
    step = tf.train.GradientDescentOptimizer(0.05).minimize(cost)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            for one, two in zip(_data(10), _data(10, seed=1)):
                session.run(step, feed_dict={x: one, y: two})
        return session.run([w, b, cost], {x: _data(10), y: _data(10, seed=1)})


def softmax_classifier(tf: Any) -> Any:
    x, labels = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int64, [None])
    w = tf.get_variable("w", initializer=tf.constant(_data(5, 3)))
    b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(x, w, b)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    loss += 0.01 * tf.nn.l2_loss(w)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    step = tf.train.AdagradOptimizer(0.5).minimize(loss)
    feed = {x: _data(20, 5, seed=1), labels: np.arange(20) % 3}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], feed)[0] for _ in range(8)]
        return [*losses, session.run(accuracy, feed)]


def convolution_both_layouts(tf: Any) -> Any:
    image, kernel = tf.constant(_data(2, 8, 8, 3)), tf.Variable(_data(3, 3, 3, 4, seed=1))
    made = tf.nn.bias_add(tf.nn.conv2d(image, kernel, [1, 2, 2, 1], "SAME"), tf.constant(_data(4, seed=2)))
    pooled = tf.nn.max_pool(tf.nn.relu(made), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    loss = tf.reduce_sum(tf.square(pooled))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run([pooled, *tf.gradients(loss, [kernel])])


def autoencoder_with_scopes(tf: Any) -> Any:
    def dense(value: Any, size: int, name: str, seed: int) -> Any:
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            given = tf.constant_initializer(_data(value.shape[1].value, size, seed=seed) * 0.3)
            w = tf.get_variable("w", [value.shape[1].value, size], initializer=given)
            return tf.nn.tanh(
                tf.matmul(value, w) + tf.get_variable("b", [size], initializer=tf.zeros_initializer)
            )

    x = tf.placeholder(tf.float32, [None, 6])
    code = dense(x, 2, "encoder", 1)
    loss = tf.losses.mean_squared_error(x, dense(code, 6, "decoder", 2))
    again = tf.losses.mean_squared_error(x, dense(dense(x * 2, 2, "encoder", 1), 6, "decoder", 2))
    encoder = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="encoder")
    step = tf.train.MomentumOptimizer(0.2, 0.9, use_nesterov=True).minimize(loss, var_list=encoder)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(step, {x: _data(10, 6)})
        names = sorted(v.name for v in tf.trainable_variables())
        return [len(names), *session.run([loss, again, tf.losses.get_total_loss()], {x: _data(10, 6)})]


def recurrence_by_scan(tf: Any) -> Any:
    w = tf.Variable(_data(3, 3) * 0.4)
    states = tf.scan(
        lambda h, v: tf.tanh(tf.matmul(h, w) + v), tf.constant(_data(5, 2, 3, seed=1)), tf.zeros([2, 3])
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run([states, *tf.gradients(tf.reduce_mean(states[-1]), [w])])


def while_loop_with_gradient(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [])
    _, power = tf.while_loop(
        lambda i, p: i < 5, lambda i, p: [i + 1, p * x], [tf.constant(0), tf.constant(1.0)]
    )
    with tf.Session() as session:
        return [session.run([power, *tf.gradients(power, [x])], {x: value}) for value in (0.5, 2.0)]


def collatz_lengths(tf: Any) -> Any:
    n = tf.placeholder(tf.int32, [])

    def step(k: Any, count: Any) -> Any:
        return tf.cond(tf.equal(k % 2, 0), lambda: k // 2, lambda: 3 * k + 1), count + 1

    _, length = tf.while_loop(lambda k, count: k > 1, step, [n, tf.constant(0)])
    with tf.Session() as session:
        return [session.run(length, {n: k}) for k in (1, 6, 27)]


def growing_array(tf: Any) -> Any:
    def body(i: Any, a: Any, b: Any, found: Any) -> Any:
        return i + 1, b, a + b, found.write(i, a)

    start = [
        tf.constant(0),
        tf.constant(0),
        tf.constant(1),
        tf.TensorArray(tf.int32, size=0, dynamic_size=True),
    ]
    *_, found = tf.while_loop(lambda i, a, b, found: a < 100, body, start)
    with tf.Session() as session:
        return session.run(found.stack())


def embeddings_and_sampled_rows(tf: Any) -> Any:
    table = tf.Variable(_data(10, 4))
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(tf.square(rows - 1.0))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    normed = tf.nn.l2_normalize(table, 1)
    similar = tf.nn.top_k(tf.matmul(tf.nn.embedding_lookup(normed, ids), normed, transpose_b=True), 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step, {ids: [1, 1, 7]})
        return [session.run(table), *session.run(similar, {ids: [1, 2]})]


def target_network(tf: Any) -> Any:
    def network(scope: str, seed: int) -> Any:
        with tf.variable_scope(scope):
            return tf.matmul(state, tf.get_variable("w", initializer=tf.constant(_data(4, 2, seed=seed))))

    state, action = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
    now, target = network("now", 1), network("target", 2)
    chosen = tf.reduce_sum(now * tf.one_hot(action, 2), axis=1)
    aim = tf.stop_gradient(1.0 + 0.9 * tf.reduce_max(target, axis=1))
    step = tf.train.RMSPropOptimizer(0.01).minimize(tf.reduce_mean(tf.squared_difference(aim, chosen)))
    pairs = zip(
        *[tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope=s + "/w:0") for s in ("target", "now")]
    )
    copy = tf.group(*[tf.assign(old, 0.5 * old + 0.5 * new) for old, new in pairs])
    feed = {state: _data(6, 4), action: [0, 1, 0, 1, 1, 0]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step, feed)
            session.run(copy)
        return session.run([now, target], feed)


def clipped_decaying_steps(tf: Any) -> Any:
    w = tf.Variable([3.0, -4.0])
    count = tf.Variable(0, trainable=False)
    rate = tf.train.exponential_decay(0.5, count, 2, 0.5, staircase=True)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    grads, variables = zip(*optimizer.compute_gradients(tf.reduce_sum(w**4)))
    clipped, norm = tf.clip_by_global_norm(grads, 5.0)
    step = optimizer.apply_gradients(zip(clipped, variables), global_step=count)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows = []
        for _ in range(5):
            rows.append([*session.run([norm, rate]), *session.run([w, step])[0]])
        return [rows, session.run(count)]


def pipeline(tf: Any) -> Any:
    data = tf.data.Dataset.from_tensor_slices((np.arange(10), _data(10)))
    data = (
        data.filter(lambda k, v: tf.not_equal(k % 3, 0)).map(lambda k, v: (k * 2, v + 1.0)).batch(4).repeat(2)
    )
    item = data.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(item))
        except tf.errors.OutOfRangeError:
            return found


def saved_and_restored(tf: Any) -> Any:
    v = tf.Variable(_data(3), name="v")
    saver = tf.train.Saver()
    with tempfile.TemporaryDirectory() as folder, tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.save(session, os.path.join(folder, "model"), global_step=7)
        session.run(v.assign(tf.zeros(3)))
        saver.restore(session, tf.train.latest_checkpoint(folder))
        return [session.run(v), len([f for f in os.listdir(folder) if f.startswith("model-7.")])]


def control_dependencies_in_order(tf: Any) -> Any:
    v = tf.Variable(1.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0)]):
        first = v.read_value()
        with tf.control_dependencies([first]), tf.control_dependencies([v.assign(first * 10.0)]):
            second = v.read_value()
    seen: list[float] = []
    with tf.control_dependencies([second]):
        third = tf.py_func(lambda x: (seen.append(float(x)), np.float32(x + 1))[1], [first], tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run([first, second, third]), seen, session.run(v)]


def moving_average_of_weights(tf: Any) -> Any:
    w = tf.Variable(_data(4))
    average = tf.train.ExponentialMovingAverage(0.9)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.abs(w)))
    with tf.control_dependencies([step]):
        train = average.apply([w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        return session.run([w, average.average(w)])


def k_means(tf: Any) -> Any:
    points = tf.constant(_data(30, 2))
    centres = tf.Variable(_data(30, 2)[:3])
    nearest = tf.argmin(tf.reduce_sum(tf.square(tf.expand_dims(points, 1) - centres), 2), 1)
    means = tf.unsorted_segment_sum(points, nearest, 3) / tf.unsorted_segment_sum(
        tf.ones([30, 1]), nearest, 3
    )
    update = tf.assign(centres, means)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(update)
        return session.run([centres, nearest])


def words_and_lines(tf: Any) -> Any:
    lines = tf.placeholder(tf.string, [None])
    parts = tf.string_split(lines, ",")
    numbers = tf.string_to_number(tf.sparse_tensor_to_dense(parts, "0"))
    first = tf.decode_csv(lines[:1], [[0.0], [0.0]])
    joined = tf.string_join(["<", lines, ">"])
    with tf.Session() as session:
        feed = {lines: ["1,2", "3.5", "4,5"]}
        found = session.run([numbers, first, tf.equal(lines, "3.5")], feed)
        return [*found, [item.decode() for item in session.run(joined, feed)]]


def sparse_and_masks(tf: Any) -> Any:
    sparse = tf.SparseTensor([[0, 1], [1, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 3])
    dense = tf.sparse_tensor_dense_matmul(sparse, tf.constant(_data(3, 2)))
    mask = tf.sequence_mask([1, 3, 2], 4)
    kept = tf.boolean_mask(tf.constant(_data(3, 4)), mask)
    held, where = tf.unique(tf.constant([4, 5, 4, 6]))
    with tf.Session() as session:
        return session.run([dense, kept, tf.where(mask), held, where, tf.sparse_reduce_sum(sparse, 1)])


def second_derivatives(tf: Any) -> Any:
    x = tf.Variable(_data(3))
    y = tf.reduce_sum(tf.sin(x) * tf.exp(x * 0.1))
    (first,) = tf.gradients(y, x)
    penalty = tf.reduce_sum(tf.square(first))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run([first, *tf.gradients(penalty, x), *tf.hessians(y, x)])


def two_graphs_and_names(tf: Any) -> Any:
    one, two = tf.Graph(), tf.Graph()
    found = []
    for graph, value in ((one, 2.0), (two, 3.0)):
        with graph.as_default():
            with tf.name_scope("model"):
                x = tf.placeholder(tf.float32, [], name="x")
                tf.multiply(x, tf.constant(value, name="c"), name="y")
            with tf.Session(graph=graph) as session:
                found.append(session.run("model/y:0", {"model/x:0": 5.0}))
                found.append(len(graph.get_operations()))
                found.append([node.name for node in graph.as_graph_def().node])
    return found


def shapes_set_later(tf: Any) -> Any:
    x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32)
    x.set_shape([None, 4])
    y.set_shape([2, None])
    z = tf.py_func(lambda: np.ones([3, 5], np.float32), [], tf.float32)
    z.set_shape([3, 5])
    flat = tf.reshape(y, [-1])
    flat.set_shape([6])
    w = tf.Variable(tf.placeholder_with_default(_data(2, 3), [None, 3]), validate_shape=False)
    w.set_shape([2, 3])
    made = [
        tf.matmul(x, tf.zeros([4, 3])),
        tf.reduce_sum(y, 1),
        tf.transpose(z),
        tf.reshape(flat, [2, -1]),
        w * 2.0,
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(made, {x: _data(2, 4), y: _data(2, 3)})
    return [[str(one.shape.as_list()), value] for one, value in zip([*made, x, y], [*values, 0, 0])]


def results_by_name(tf: Any) -> Any:
    x = tf.constant(_data(3, 3))
    top, seen, left = tf.nn.top_k(x, 2), tf.unique_with_counts([3, 1, 3]), tf.setdiff1d([1, 2, 3], [2])
    split, size = tf.qr(tf.matmul(x, x, transpose_b=True)), tf.linalg.slogdet(x)
    pooled = tf.nn.max_pool_with_argmax(tf.reshape(x, [1, 3, 3, 1]), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    found = [
        top.values,
        top.indices,
        seen.y,
        seen.idx,
        seen.count,
        left.out,
        left.idx,
        pooled.output,
        pooled.argmax,
    ]
    found += [tf.matmul(split.q, split.r), size.sign, size.log_abs_determinant, tf.unique([5, 5]).idx]
    with tf.Session() as session:
        return [*session.run(found), *session.run(top)._fields, type(session.run(top)).__name__]


def dual_averaging(tf: Any) -> Any:
    steps, found = tf.train.get_or_create_global_step(), []
    w, table = tf.Variable(_data(4)), tf.Variable(_data(4, 2))
    rows = tf.gather(table, [1, 3, 1])
    loss = tf.reduce_sum(tf.square(w) + w) + tf.reduce_sum(tf.square(rows))
    with tf.Session() as session:
        for l1, l2 in ((0.0, 0.0), (0.1, 0.2)):
            rate = tf.train.noisy_linear_cosine_decay(0.5, steps, 9, initial_variance=0.0, num_periods=1.5)
            optimizer = tf.train.AdagradDAOptimizer(
                rate, steps, l1_regularization_strength=l1, l2_regularization_strength=l2
            )
            step = optimizer.minimize(loss, global_step=steps)
            session.run(tf.global_variables_initializer())
            for _ in range(4):
                session.run(step)
            found += [*session.run([w, table, rate]), *optimizer.get_slot_names()]
    return found


def array_of_parts(tf: Any) -> Any:
    x = tf.constant(_data(6, 2))
    parts = tf.TensorArray(tf.float32, 3, clear_after_read=False).split(x, [2, 2, 2])
    _, total = tf.while_loop(
        lambda i, _: i < 3, lambda i, total: (i + 1, total * 0.5 + parts.read(i)), [0, tf.zeros([2, 2])]
    )
    with tf.Session() as session:
        return session.run([parts.stack(), parts.concat(), total, tf.gradients(total, x)[0]])


def variables_in_parts(tf: Any) -> Any:
    data, given = _data(7, 2), [[4, 2], [100, 7], [3000, 40]]
    divided = [
        tf.fixed_size_partitioner(3),
        tf.variable_axis_size_partitioner(32, max_shards=9),
        tf.min_max_variable_partitioner(8, 1, 2000),
    ]
    found = [f(shape=tf.TensorShape(s), dtype=tf.float64) for f in divided for s in given]
    with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(3)):
        w = tf.get_variable("w", initializer=tf.constant(data), regularizer=tf.nn.l2_loss)
        u = tf.get_variable("u", [5, 4], initializer=tf.initializers.identity(2.0))
    tables = [tf.Variable(data[:3]), tf.Variable(data[3:5]), tf.Variable(data[5:])]
    ids = tf.placeholder(tf.int64, [None, 2])
    rows = tf.nn.embedding_lookup(tables, ids, partition_strategy="div")
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 6, 3], [2, 2])
    both = [tf.nn.embedding_lookup(w, ids), tf.nn.embedding_lookup_sparse(w, sparse, None, combiner="sum")]
    slices = tf.gradients(tf.square(both[0]), list(w))
    losses = [tf.reduce_sum(tf.square(rows)), tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, ids)))]
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(sum(losses))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {ids: [[4, 0], [5, 4]]}
        found += [session.run([rows, *both, u.as_tensor(), tf.matmul(tf.ones([1, 7]), w)], feed)]
        found += [[session.run([one.indices, one.values], feed) for one in slices]]
        for pair in ([0, 4], [6, 6], [1, 0]):
            session.run(step, {ids: [pair]})
        found += [session.run([*tables, *w, *tf.losses.get_regularization_losses()])]
        found += [session.run(w.assign(data)), w.name, [v.name for v in w], tf.convert_to_tensor(w).name]
    return found


PROGRAMS = [
    variables_in_parts,
    shapes_set_later,
    results_by_name,
    dual_averaging,
    array_of_parts,
    linear_regression,
    softmax_classifier,
    convolution_both_layouts,
    autoencoder_with_scopes,
    recurrence_by_scan,
    while_loop_with_gradient,
    collatz_lengths,
    growing_array,
    embeddings_and_sampled_rows,
    target_network,
    clipped_decaying_steps,
    pipeline,
    saved_and_restored,
    control_dependencies_in_order,
    moving_average_of_weights,
    k_means,
    words_and_lines,
    sparse_and_masks,
    second_derivatives,
    two_graphs_and_names,
]


def plain(value: Any) -> Any:
    """Nested lists of numbers and strings."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return np.asarray(value).tolist() if not isinstance(value, str) else value


def run(tf: Any, program: Any) -> Any:
    """The numbers of a program, in a graph of its own."""
    with tf.Graph().as_default():
        return plain(program(tf))


if __name__ == "__main__":
    sys.path.pop(0)  # this folder
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    found = {program.__name__: run(tensorflow, program) for program in PROGRAMS}
    RECORDED.write_text(json.dumps(found, indent=None, separators=(",", ":")).replace('],"', '],\n"') + "\n")
