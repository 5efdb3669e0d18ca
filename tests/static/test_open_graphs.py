"""Graphs that are declared once for all sizes: no body runs again, and results are those of a graph for each size."""

import numpy
import pytest

import twofold
import twofold.static as tf
from twofold import _core
from twofold.compiler import families
from twofold.static.session import lowered_graphs

RANDOM = numpy.random.default_rng(5)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype("f")


def results(build, feeds):
    """What runs of one session give for the feeds, one after the other."""
    tf.set_random_seed(3)
    given, found = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(found, dict(zip(given, feed))) for feed in feeds]


def training():
    x, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [None])
    hidden = tf.layers.dropout(tf.layers.dense(x, 16, tf.nn.relu), 0.3, training=True)
    logits = tf.layers.dense(hidden, 4)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_sum(losses) / tf.cast(tf.shape(x)[0], tf.float32)
    return [x, labels], [tf.train.AdamOptimizer(0.1).minimize(loss), loss, tf.gradients(loss, x)[0]]


def shapes():
    x = tf.placeholder(tf.float32, [None, None, 4])
    n, m = tf.shape(x)[0], tf.shape(x)[1]
    flat = tf.reshape(x, [-1, 4])
    position = tf.cast(tf.range(n * m), tf.float32)
    mask = tf.matrix_band_part(tf.ones([m, m]), -1, 0)
    return [x], [
        tf.reshape(flat * tf.expand_dims(position, 1), [n, m * 2, 2]),
        tf.stack([n, m + 1, tf.size(x)]),
        tf.fill([m, n], 2.5) + tf.zeros_like(x)[0, :, :1],
        tf.einsum("bij,bjk->bik", tf.tile(mask[None], [n, 1, 1]), x),
        tf.one_hot(tf.argmax(flat, 1), 4)[1:],
        tf.concat([flat, flat[::-1]], 0)[: n + 1],
        tf.random_uniform(tf.shape(x)),
        tf.eye(m),
        tf.to_float(n) * x,
    ]


def pictures():
    x = tf.placeholder(tf.float32, [None, 12, None, 1])
    found = tf.layers.conv2d(x, 3, 3, padding="same")
    found = tf.layers.max_pooling2d(tf.layers.batch_normalization(found, training=True), 2, 2, "same")
    loss = tf.reduce_mean(tf.square(found))
    return [x], [tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss, tf.shape(found)]


def words():
    x, lengths = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
    table = tf.get_variable("table", [20, 6])
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)
    mean = (
        tf.reduce_sum(tf.nn.embedding_lookup(table, x) * mask[:, :, None], 1)
        / tf.reduce_sum(mask, 1)[:, None]
    )
    loss = tf.reduce_mean(mean * mean)
    return [x, lengths], [tf.train.AdagradOptimizer(0.1).minimize(loss), loss]


def sequences():
    x, lengths = tf.placeholder(tf.float32, [None, None, 5]), tf.placeholder(tf.int32, [None])
    found, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(7), x, lengths, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(found))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    return [x, lengths], [train, loss, found, state, tf.gradients(loss, x)[0]]


def both_ways():
    x, lengths = tf.placeholder(tf.float32, [4, None, 5]), tf.placeholder(tf.int32, [None])
    cells = tf.nn.rnn_cell.BasicLSTMCell(3), tf.nn.rnn_cell.BasicLSTMCell(2)
    found, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf.float32)
    loss = tf.reduce_sum(tf.concat(found, 2))
    return [x, lengths], [tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss]


def choices():
    x, which = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [])
    w, n = tf.get_variable("w", [3, 3]), tf.to_float(tf.shape(x)[0])
    y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.matmul(x, w) * n, lambda: x - tf.reduce_mean(x))
    rows = {0: lambda: y[::-1], 1: lambda: tf.nn.softmax(y, 0)}
    z = tf.switch_case(which, rows, lambda: tf.cumsum(y))
    return [x, which], [y, z, *tf.gradients(z, [x, w])]


def loops_in_loops():
    x = tf.placeholder(tf.float32, [None, None])
    count = tf.to_float(tf.shape(x)[1])
    y = tf.map_fn(lambda row: tf.foldl(lambda a, b: a * 0.5 + b * count, row), x)
    z = tf.scan(lambda a, row: a * 0.9 + tf.reduce_mean(row), x, tf.constant(0.0))
    return [x], [y, z, tf.gradients(y, x)[0]]


def counted_loops():
    x, most = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [])
    n = tf.shape(x)[0]

    def add(i, total):
        row = tf.gather(x, i) * tf.gather(tf.to_float(tf.range(n)), i)
        return i + 1, total * 1.5 + row

    def change(i, rows):
        return i + 1, tf.tanh(rows) + tf.random_uniform(tf.shape(rows)) * tf.eye(tf.shape(rows)[0])[:, :1]

    _, total = tf.while_loop(lambda i, _: i < n, add, [0, tf.zeros([4])])
    _, rows = tf.while_loop(lambda i, _: i < most, change, [0, x], maximum_iterations=5)
    return [x, most], [total, rows, *tf.gradients([total, rows], [x])]


def arrays():
    x = tf.placeholder(tf.float32, [None, 4])
    n = tf.shape(x)[0]
    made = tf.TensorArray(tf.float32, n)
    made = tf.while_loop(
        lambda i, _: i < n, lambda i, own: (i + 1, own.write(i, tf.gather(x, i) * 2.0)), [0, made]
    )[1]
    y = made.stack()
    return [x], [y, tf.gradients(tf.reduce_sum(y * y), x)[0]]


def own_gradients():
    x = tf.placeholder(tf.float32, [None, 4])

    @tf.custom_gradient
    def clipped(value):
        def grad(cotangent):
            return tf.clip_by_value(cotangent, -0.5, 0.5) * tf.to_float(tf.shape(value)[0])

        return value * value, grad

    y = tf.map_fn(lambda row: tf.reduce_sum(clipped(tf.expand_dims(row, 0))), x) + tf.reduce_sum(clipped(x))
    return [x], [y, tf.gradients(y, x)[0]]


def given_numbers():
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None, 6])
    sizes = tf.placeholder(tf.int32, [2])
    rows = tf.reshape(x, [n, -1, 6])
    start = tf.zeros([n, 6])
    total = tf.scan(lambda a, row: a * 0.5 + row, tf.transpose(rows, [1, 0, 2]), start)
    return [n, x, sizes], [
        total,
        tf.gradients(total, x)[0],
        tf.fill(sizes, 1.5),
        tf.random_uniform([n, 3]),
        tf.concat([x, x], 0)[: sizes[0], : sizes[1]],
        tf.one_hot(tf.range(n), n + 1),
    ]


def sentence(n, m):
    return RANDOM.integers(0, 20, (n, m)).astype("i"), RANDOM.integers(1, m + 1, n).astype("i")


PROGRAMS = {
    training: [(floats(n, 8), RANDOM.integers(0, 4, n).astype("i")) for n in (5, 9, 6, 1, 12, 8, 16, 7)],
    shapes: [(floats(n, m, 4),) for n, m in ((3, 5), (4, 6), (6, 6), (1, 7), (5, 2), (2, 4))],
    pictures: [(floats(n, 12, m, 1),) for n, m in ((4, 9), (5, 7), (2, 10), (3, 12), (1, 9), (6, 11))],
    words: [sentence(n, m) for n, m in ((3, 7), (4, 5), (5, 5), (1, 4), (6, 2))],
    sequences: [
        (floats(n, m, 5), RANDOM.integers(1, m + 1, n).astype("i"))
        for n, m in ((3, 4), (5, 6), (2, 9), (4, 4), (1, 3), (7, 1), (8, 20))
    ],
    both_ways: [(floats(4, m, 5), RANDOM.integers(1, m + 1, 4).astype("i")) for m in (3, 5, 9, 2, 17)],
    choices: [
        (floats(n, 3) + side, which)
        for n, side, which in ((4, 1, 0), (5, -1, 1), (2, 1, 2), (9, -1, 0), (1, 1, 1), (3, -2, 2), (6, 0, 1))
    ],
    loops_in_loops: [(floats(n, m),) for n, m in ((3, 4), (5, 2), (6, 6), (2, 7), (1, 3), (4, 9))],
    counted_loops: [(floats(n, 4), most) for n, most in ((3, 2), (5, 1), (2, 0), (7, 9), (1, 2), (6, 3))],
    arrays: [(floats(n, 4),) for n in (3, 5, 2, 7, 1, 6)],
    own_gradients: [(floats(n, 4),) for n in (3, 5, 2, 7, 1, 6)],
    given_numbers: [
        (n, floats(n * m, 6), sizes)
        for n, m, sizes in (
            (7, 4, (11, 2)),
            (5, 2, (4, 3)),
            (2, 9, (8, 1)),
            (8, 5, (2, 6)),
            (1, 2, (0, 2)),
            (9, 12, (10, 4)),
        )
    ],
}


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_the_bits_are_those_of_a_graph_for_each_size(build, monkeypatch):
    feeds = PROGRAMS[build]
    before = twofold.stats()
    with tf.Graph().as_default():
        found = results(build, feeds)
    assert twofold.stats().open_graph_uses - before.open_graph_uses >= 2
    monkeypatch.setattr(lowered_graphs.DeclaredGraphs, "for_all_sizes", lambda *arguments: None)
    with tf.Graph().as_default():
        wanted = results(build, feeds)
    for own, other in zip(found, wanted, strict=True):
        for a, b in zip(own, other, strict=True):
            assert (a is None and b is None) or (a.dtype == b.dtype and a.tobytes() == b.tobytes())


def test_further_numbers_that_a_run_computes_run_no_bodies(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        given, found = given_numbers()
        counts = []
        for feed in PROGRAMS[given_numbers][:3] + PROGRAMS[given_numbers][-1:]:
            bodies.clear()
            session.run(found, dict(zip(given, feed)))
            counts.append(len(bodies))
    assert counts[0] > 3 and counts[1:] == [0, 0, 0]


IN_ONE_STEP = [build for build in PROGRAMS if build is not given_numbers]


@pytest.mark.parametrize("build", IN_ONE_STEP, ids=lambda build: build.__name__)
def test_a_second_and_a_third_size_run_no_bodies(build, bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        given, found = build()
        session.run(tf.global_variables_initializer())
        before, counts = twofold.stats(), []
        for feed in PROGRAMS[build][:2] + PROGRAMS[build][-1:]:
            bodies.clear()
            session.run(found, dict(zip(given, feed)))
            counts.append(len(bodies))
    after = twofold.stats()
    assert counts[0] > 3 and counts[1:] == [0, 0]
    assert after.declared_graphs - before.declared_graphs == after.open_graphs - before.open_graphs == 1
    assert after.open_graph_uses - before.open_graph_uses == 2


def test_sizes_that_a_guard_excludes_have_a_graph_of_their_own(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        y = x[:2] * 2.0
        for n, wanted in ((4, 2), (7, 2), (1, 1), (0, 0), (9, 2)):
            bodies.clear()
            assert session.run(y, {x: numpy.ones((n, 3))}).tolist() == [[2.0] * 3] * wanted
        assert not bodies


def test_a_batch_as_large_as_a_layer_is_wide_has_no_graph_of_its_own(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 8])
        loss = tf.reduce_sum(tf.layers.dense(tf.layers.dense(x, 16, tf.nn.relu), 4))
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        counts = []
        for n in (16, 5, 4, 9):
            bodies.clear()
            session.run([train, loss], {x: floats(n, 8)})
            counts.append(bool(bodies))
        assert counts == [True, False, False, False]


def test_a_rank_that_is_not_known_is_that_of_the_feed(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        y = tf.reshape(x, [-1]) * tf.cast(tf.rank(x), tf.float32)
        counts = []
        for shape in ((2, 3), (4, 2), (3,), (5,), (6, 5)):
            bodies.clear()
            assert session.run(y, {x: numpy.ones(shape)}).tolist() == [len(shape)] * int(numpy.prod(shape))
            counts.append(bool(bodies))
        assert counts == [True, False, True, False, False]


def test_errors_of_further_sizes_are_those_of_the_first():
    def failed(*pairs):
        with tf.Graph().as_default(), tf.Session() as session:
            x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
            total = tf.add(x, y, name="total")
            for a, b in pairs:
                session.run(total, {x: numpy.ones((a, 2)), y: numpy.ones((b, 2))})

    with pytest.raises(tf.errors.OpError, match="total.*4 against 5") as first:
        failed((4, 5))
    with pytest.raises(tf.errors.OpError, match="total.*4 against 5") as third:
        failed((3, 3), (6, 6), (4, 5))
    assert type(first.value) is type(third.value)


def test_feeds_that_do_not_fit_are_refused_after_others():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        y = x + 1.0
        for n in (3, 4):
            session.run(y, {x: numpy.ones((n, 2))})
        with pytest.raises(tf.errors.OpError, match=r"does not fit 'Placeholder:0' float32\[\?,2\]"):
            session.run(y, {x: numpy.ones((4, 3))})
        with pytest.raises(tf.errors.OpError, match="does not fit"):
            session.run(y, {x: numpy.ones(4)})


def test_lengths_of_loops_are_planned_once(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.scan(lambda a, row: tf.tanh(a + row), x, tf.zeros([2]))
        grad = tf.gradients(y, x)[0]
        for n in (5, 9, 12, 20):  # the second is planned for all sizes, and may run in parts
            session.run([y, grad], {x: floats(n, 2)})
        bodies.clear()
        before = twofold.stats()
        for n in (30, 14, 7, 26, 41):
            assert session.run([y, grad], {x: floats(n, 2)})[1].shape == (n, 2)
        assert not bodies
        assert twofold.stats().open_graph_uses - before.open_graph_uses == 5


def counted_gradient():
    x, most = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [])
    w = tf.get_variable("w", [4, 4])
    step = lambda i, rows: (i + 1, tf.tanh(tf.matmul(rows, w)) + rows * 0.5)
    _, rows = tf.while_loop(lambda i, _: i < most, step, [0, x])
    return [x, most], [rows, *tf.gradients(rows, [x, w])]


def conditional_gradient():
    x, scale = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [])
    rows = tf.while_loop(lambda rows: tf.reduce_max(rows) < 90.0, lambda rows: rows * scale + 0.1, [x])
    return [x, scale], [rows, *tf.gradients(tf.square(rows), [x, scale])]


def sorted_rows():
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.map_fn(lambda row: tf.sort(row) * row, x)
    return [x], [y, tf.gradients(y, x)[0], tf.linalg.svd(tf.matmul(x, x, transpose_a=True))[0]]


PLANNED_ONCE = {
    counted_gradient: [
        (floats(n, 4), most)
        for n, most in ((3, 5), (4, 2), (6, 9), (8, 11), (5, 13), (7, 3), (9, 30), (12, 1), (10, 21), (11, 9))
    ],
    conditional_gradient: [
        (abs(floats(n, m)) + 1.0, scale)
        for n, m, scale in (
            *((3, 4, 1.5), (5, 2, 1.2), (6, 7, 2.0), (4, 9, 1.1), (7, 3, 1.05)),
            *((9, 5, 1.3), (8, 6, 1.01), (11, 12, 3.0), (2, 10, 1.02), (13, 2, 1.4)),
        )
    ],
    sorted_rows: [
        (floats(n, m),)
        for n, m in ((3, 4), (5, 2), (6, 7), (4, 9), (7, 3), (9, 5), (8, 6), (11, 12), (2, 10), (13, 8))
    ],
}


@pytest.fixture
def unfused():
    """Traces run op by op: one that is planned whole plans its loops once more."""
    _core.set_tier("unfused")
    yield
    _core.set_tier("auto")


@pytest.mark.parametrize("build", PLANNED_ONCE, ids=lambda build: build.__name__)
def test_functions_of_the_host_and_gradients_of_loops_have_plans_for_all_sizes(build, monkeypatch, unfused):
    planned = []
    compile_graph = families.compile_graph

    def counted(graph):
        planned.append(graph)
        return compile_graph(graph)

    monkeypatch.setattr(families, "compile_graph", counted)
    _core.clear_caches()
    feeds = PLANNED_ONCE[build]
    before = twofold.stats()
    with tf.Graph().as_default():
        found = results(build, feeds)
    assert len(planned) <= 6
    after = twofold.stats()
    assert after.templates_refused == before.templates_refused
    assert after.template_programs > before.template_programs
    for feed, own in zip(feeds, found):
        _core.clear_caches()
        with tf.Graph().as_default():
            (wanted,) = results(build, [feed])
        assert [a.tobytes() for a in own] == [a.tobytes() for a in wanted]


def test_a_number_that_decides_is_part_of_what_is_declared(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
        v = tf.Variable(0)
        up = tf.cond(tf.equal(n, 3), lambda: tf.assign_add(v, n), lambda: tf.assign_sub(v, 1))
        parts = tf.reshape(x, [n, -1])
        session.run(tf.global_variables_initializer())
        values = [
            session.run([up, parts], {n: count, x: numpy.ones(6 * count)})[0] for count in (3, 2, 3, 5, 3)
        ]
        assert values == [3, 2, 5, 4, 7]


def test_a_size_that_a_number_of_the_run_divides_may_be_compared_with_others():
    with tf.Graph().as_default(), tf.Session() as session:
        n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None, 8])
        y = tf.reshape(x, [n, -1, 8]) - tf.ones([n, 1, 8])
        for rows, count in ((2, 6), (3, 12), (5, 5)):
            assert session.run(y, {n: rows, x: numpy.ones((count, 8))}).shape == (rows, count // rows, 8)


def test_negative_and_positive_numbers_of_one_tensor():
    with tf.Graph().as_default(), tf.Session() as session:
        shape = tf.placeholder(tf.int32, [2])
        y = tf.reshape(tf.range(12), shape)
        for given, wanted in (
            ((3, 4), (3, 4)),
            ((-1, 6), (2, 6)),
            ((2, 6), (2, 6)),
            ((4, -1), (4, 3)),
            ((12, 1), (12, 1)),
        ):
            assert session.run(y, {shape: given}).shape == wanted


def test_branches_of_different_sizes_are_chosen_for_each_size():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        chosen = tf.cond(tf.reduce_sum(x) > 3.5, lambda: x[:2], lambda: x)
        for n in (2, 3, 5, 4):
            assert session.run(chosen, {x: numpy.ones(n)}).tolist() == [1.0] * (2 if n > 3 else n)


def test_errors_in_bodies_name_their_lines_for_all_sizes():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [None, None])
        table = tf.constant([1.0, 2.0, 3.0])

        def looked_up(row):
            return tf.gather(table, row) * 2.0

        y = tf.map_fn(looked_up, x, tf.float32)
        for shape in ((4, 2), (3, 3), (5, 2), (6, 4)):
            assert session.run(y, {x: numpy.ones(shape)}).tolist() == [[4.0] * shape[1]] * shape[0]
        line = looked_up.__code__.co_firstlineno + 1
        for shape in ((7, 3), (6, 4)):
            with pytest.raises(tf.errors.OpError, match=f"test_open_graphs.py:{line} in looked_up"):
                session.run(y, {x: numpy.full(shape, 3)})


def test_compiling_for_one_shape_declares_for_all(bodies):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.reshape(x, [tf.shape(x)[0] * 3])
        session.compile(y, {x: [4, 3]})
        assert bodies
        bodies.clear()
        assert session.run(y, {x: numpy.ones((5, 3))}).shape == (15,)
        assert not bodies
