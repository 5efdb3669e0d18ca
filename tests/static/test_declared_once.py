"""Sets of fetches share what is declared to the core: the body of an operation runs once for all of them."""

import numpy
import pytest

import twofold
import twofold.static as tf

RANDOM = numpy.random.default_rng(11)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype("f")


def network():
    """A network of a few layers: its inputs, layers, loss, accuracy and training step."""
    x, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [None])
    layers = [x]
    for _ in range(3):
        hidden = tf.layers.dense(layers[-1], 8, tf.nn.relu)
        layers.append(tf.layers.dropout(hidden, 0.2, training=True) + layers[-1])
    logits = tf.layers.dense(layers[-1], 4)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)))
    loss = tf.reduce_mean(losses)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return x, labels, layers[1:], loss, accuracy, train


def test_each_body_runs_once_for_all_sets_of_fetches(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x, labels, layers, loss, accuracy, train = network()
        session.run(tf.global_variables_initializer())
        feeds = {x: floats(16, 8), labels: RANDOM.integers(0, 4, 16)}
        bodies.clear()
        before = twofold.stats()
        session.run(layers[0], {x: feeds[x]})
        for fetches in (loss, [loss, accuracy], [train, loss], *layers, [train, *layers], accuracy):
            session.run(fetches, feeds)
        session.run(layers, {x: feeds[x]})
    assert len(bodies) > 30 and len(bodies) == len(set(bodies))
    assert twofold.stats().declared_bodies - before.declared_bodies == len(bodies)
    assert twofold.stats().declared_graphs - before.declared_graphs == 10


def test_a_new_set_of_fetches_declares_only_what_is_new(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.tanh(x, name="y")
        z = tf.square(y, name="z")
        session.run(y, {x: floats(4, 3)})
        assert bodies == ["y"]
        session.run(z, {x: floats(4, 3)})
        assert bodies == ["y", "z"]
        by_x = tf.gradients(tf.reduce_sum(z, name="sum"), x)[0]
        session.run(by_x, {x: floats(4, 3)})
        session.run([by_x, z], {x: floats(7, 3)})
    assert bodies == ["y", "z", "sum"]


def test_sessions_of_one_graph_share_what_is_declared(bodies):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        v = tf.get_variable("v", [3])
        y = tf.multiply(x, v, name="y")
        found = []
        for n in (4, 5):
            with tf.Session() as session:
                session.run(v.assign(numpy.full(3, n)))
                bodies.clear()
                found.append((session.run(y, {x: numpy.ones((n, 3))}).tolist(), list(bodies)))
    assert found == [([[4.0] * 3] * 4, ["y"]), ([[5.0] * 3] * 5, [])]


def test_other_fetches_at_another_size_share_what_is_declared(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
        double = tf.multiply(x, 2.0, name="double")
        both = tf.add(double, y, name="both")
        assert session.run(double, {x: numpy.ones((4, 3))}).shape == (4, 3)
        for n in (7, 4, 5):
            assert (
                session.run(both, {x: numpy.ones((n, 3)), y: numpy.ones((n, 3))}).tolist() == [[3.0] * 3] * n
            )
        with pytest.raises(tf.errors.OpError, match="both.*7 against 5"):
            session.run(both, {x: numpy.ones((7, 3)), y: numpy.ones((5, 3))})
        bodies.clear()
        assert session.run([both, double], {x: numpy.ones((6, 3)), y: numpy.ones((6, 3))})[0].sum() == 54
        assert session.run(tf.square(y, name="new"), {y: numpy.ones((9, 3))}).shape == (9, 3)
    assert bodies == ["new"]


def test_what_is_fed_in_the_middle_is_not_mistaken_for_what_is_computed(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = tf.add(x, 1.0, name="y")
        z = tf.multiply(y, 3.0, name="z")
        assert session.run(z, {x: [1, 2]}).tolist() == [6, 9]
        assert session.run(z, {y: [1, 2]}).tolist() == [3, 6]
        assert bodies == ["y", "z", "z"]
        assert session.run([y, z], {x: [0, 0], y: [5, 5]})[1].tolist() == [15, 15]
        assert session.run([z, y], {x: [0, 1]})[0].tolist() == [3, 6]
    assert bodies == ["y", "z", "z"]


def test_reads_of_variables_see_the_updates_that_they_wait_for():
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0)
        plain = v * 10.0
        up = tf.assign_add(v, 1.0)
        with tf.control_dependencies([up]):
            after = tf.multiply(v, 10.0)
        again = tf.assign_add(v, 5.0)
        with tf.control_dependencies([again]):
            last = tf.multiply(v, 10.0)
        session.run(v.initializer)
        assert session.run(plain) == 10
        assert session.run([plain, after]) == [10, 20]
        assert session.run(last) == 70  # 2 + 5
        assert session.run([after, plain, last]) == [80, 70, 130]
        assert session.run([plain, last]) == [130, 180]


def test_gradients_are_taken_by_constants_that_other_fetches_compute_at_once():
    with tf.Graph().as_default(), tf.Session() as session:
        c = tf.constant([1.0, 2.0])
        y = c * c
        assert session.run(y).tolist() == [1, 4]
        by_c = tf.gradients(y, c)[0]
        stopped = tf.gradients(y * c, c, stop_gradients=[y])[0]
        assert session.run([y, by_c])[1].tolist() == [2, 4]
        assert session.run([stopped, by_c])[0].tolist() == [1, 4]
        assert session.run(y).tolist() == [1, 4]


def branched():
    """A graph whose gradient adds up several terms, and its parts in order."""
    x = tf.placeholder(tf.float32, [None, 5])
    parts = [tf.tanh(x * scale) for scale in (0.3, 1.7, 2.9, 0.01, 5.3)]
    loops = [tf.scan(lambda a, row: tf.tanh(a * 0.7 + row), part, tf.zeros([5])) for part in parts]
    total = tf.add_n([tf.reduce_sum(one * k) for k, one in enumerate([*parts, *loops])])
    return x, [*parts, *loops], [total, tf.gradients(total, x)[0]]


@pytest.mark.parametrize("order", (1, -1))
def test_the_bits_do_not_depend_on_what_was_fetched_before(order):
    fed = floats(6, 5) * 3
    with tf.Graph().as_default(), tf.Session() as session:
        x, _, fetches = branched()
        wanted = session.run(fetches, {x: fed})
    with tf.Graph().as_default(), tf.Session() as session:
        x, parts, fetches = branched()
        for part in parts[::order]:
            session.run(part, {x: fed[:4]})
        found = session.run(fetches, {x: fed})
    assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]


def test_errors_of_bodies_come_again_for_every_set_of_fetches():
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        total = tf.add(x, y, name="total")
        for fetches in (total, [total, x], total * 2.0):
            with pytest.raises(tf.errors.OpError, match="total.*4 against 5"):
                session.run(fetches, {x: numpy.ones(4), y: numpy.ones(5)})
        assert session.run(total, {x: [1.0], y: [1.0, 2.0]}).tolist() == [2, 3]


def masked_means(x, masks):
    """The mean of what each mask leaves of ``x``, an operation of an unknown size for each."""
    return tf.stack([tf.reduce_mean(tf.boolean_mask(x, mask)) for mask in masks])


def test_sizes_that_are_equal_by_chance_are_declared_once_for_all(bodies):
    """Which of the sizes are equal is another in each run."""
    x, counts = floats(40), []
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [40])
        masks = [tf.placeholder(tf.bool, [40]) for _ in range(8)]
        means = masked_means(fed, masks)
        for _ in range(12):
            given = [RANDOM.permutation(40) < RANDOM.integers(5, 9) for _ in masks]
            bodies.clear()
            found = session.run(means, {fed: x, **dict(zip(masks, given))})
            numpy.testing.assert_allclose(found, [x[one].mean() for one in given], rtol=1e-5)
            counts.append(len(bodies))
    assert sum(counts[6:]) == 0


def test_pure_functions_of_the_host_that_wait_for_none_are_called_in_one_step(monkeypatch):
    made = []
    step = tf.Session._executable
    monkeypatch.setattr(tf.Session, "_executable", lambda *args: made.append(args) or step(*args))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([3.0, -1.0, 2.0, 5.0])
        kept = [tf.boolean_mask(x, x > limit) for limit in (0.0, 2.5, 4.0)]
        twice = tf.boolean_mask(kept[0], kept[0] > 2.0)
        found = session.run([*kept, twice])
    assert [one.tolist() for one in found] == [[3, 2, 5], [3, 5], [5], [3, 5]]
    assert len(made) == 3  # three masks, the one of what these leave, the results


def test_effects_stay_before_the_function_of_the_host_that_waits_for_them():
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [3], initializer=tf.zeros_initializer(), use_resource=True)
        before = tf.where(tf.equal(v, 0.0))
        with tf.control_dependencies([before, v.assign([1.0, 0.0, 2.0])]):
            after = tf.where(tf.equal(v.read_value(), 0.0))
        other = tf.where(tf.constant([False, True]))
        session.run(tf.global_variables_initializer())
        found = session.run([before, after, other])
    assert [one.ravel().tolist() for one in found] == [[0, 1, 2], [1], [1]]
