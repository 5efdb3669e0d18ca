"""Programs as TensorFlow 1 programs are written."""

import collections
import threading

import numpy
import pytest

import twofold
import twofold.static as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_the_product_program_runs_unchanged():
    tf.disable_v2_behavior()
    a = tf.placeholder(tf.float32)
    b = tf.placeholder(tf.float32)
    c = tf.multiply(a, b)
    with tf.Session() as sess:
        out = sess.run([c], feed_dict={a: [15.0], b: [20.0]})[0][0]
        da = sess.run(tf.gradients(c, a), feed_dict={a: [15.0], b: [20.0]})[0][0]
        db = sess.run(tf.gradients(c, b), feed_dict={a: [15.0], b: [20.0]})[0][0]
    assert (out, da, db) == (300.0, 20.0, 15.0)


def test_unknown_rank_takes_any_shape():
    x = tf.placeholder(tf.float32)
    y = tf.reduce_sum(x * 2.0)
    assert x.get_shape().ndims is None and (x * 2.0).get_shape().ndims is None
    assert y.get_shape().as_list() == []
    with tf.Session() as session:
        for value in (1.0, [1.0, 2.0], numpy.ones((2, 3)), numpy.ones((2, 1, 2, 2))):
            assert session.run(y, {x: value}) == 2 * numpy.sum(value)


def test_unknown_rank_may_have_many_axes():
    x = tf.placeholder(tf.float32)
    image = tf.nn.conv2d(x, tf.ones([2, 2, 3, 4]), [1] * 4, "SAME")
    volume = tf.nn.conv3d(x, tf.ones([1, 1, 1, 3, 4]), [1] * 5, "SAME")
    turned = tf.transpose(x, [5, 4, 3, 2, 1, 0])
    assert [y.shape.as_list() for y in (image, volume, turned)] == [
        [None, None, None, 4],
        [None] * 4 + [4],
        [None] * 6,
    ]
    many = numpy.arange(64.0, dtype=numpy.float32).reshape((2,) * 6)
    with tf.Session() as session:
        assert (session.run(turned, {x: many}) == many.T).all()
        assert (session.run(tf.reduce_sum(x, 5), {x: many}) == many.sum(5)).all()
        assert (session.run(x[0, 0, 0, 0, 0], {x: many}) == many[0, 0, 0, 0, 0]).all()
        assert (session.run(tf.squeeze(x, [5]), {x: many[..., :1]}) == many[..., 0]).all()
        assert (session.run(tf.unstack(x, 2, axis=5), {x: many}) == numpy.moveaxis(many, 5, 0)).all()
        assert session.run(volume, {x: numpy.ones((1, 2, 2, 2, 3))}).shape == (1, 2, 2, 2, 4)


def test_nested_fetches_keep_their_structure():
    Pair = collections.namedtuple("Pair", "one two")
    a, b = tf.constant(1.0), tf.constant(2.0)
    nothing = tf.no_op()
    with tf.Session() as session:
        found = session.run({"list": [a, (b, nothing)], "pair": Pair(a, b), "name": "Const_1:0"})
        assert found == {"list": [1.0, (2.0, None)], "pair": Pair(1.0, 2.0), "name": 2.0}
        assert isinstance(found["pair"], Pair) and session.run([]) == [] and session.run(nothing) is None


def test_a_list_without_feeds_is_not_taken_for_a_fetch_with_a_feed():
    a = tf.placeholder_with_default(1.0, [])
    b = a + 1.0
    with tf.Session() as session:
        assert session.run([b, a]) == [2.0, 1.0]
        assert session.run(b, {a: 5.0}) == 6.0
        assert session.run([b], {a: 7.0}) == [8.0]
        assert session.run([b, a]) == [2.0, 1.0]


def test_any_tensor_may_be_fed():
    x = tf.constant(3.0)
    y = x * x
    with tf.Session() as session:
        assert session.run(y + 1.0, {y: 2.0}) == 3.0
        assert session.run(y, {x: 4.0}) == 16.0
        assert session.run(y, {"Const:0": 5.0}) == 25.0


@pytest.mark.parametrize(
    ("optimizer", "limit"),
    [
        (lambda: tf.train.GradientDescentOptimizer(0.1), 1e-6),
        (lambda: tf.train.MomentumOptimizer(0.05, 0.9), 1e-3),
        (lambda: tf.train.AdamOptimizer(0.05), 1e-3),
        (lambda: tf.train.AdamOptimizer(0.05, formulation="pytorch"), 1e-3),
        (lambda: tf.train.AdagradOptimizer(0.5), 1e-3),
        (lambda: tf.train.RMSPropOptimizer(0.02), 1e-2),
    ],
)
def test_linear_regression_finds_the_line(optimizer, limit):
    random = numpy.random.default_rng(0)
    xs = random.standard_normal((64, 3)).astype(numpy.float32)
    ys = xs @ numpy.array([[1.0], [2.0], [-1.0]], numpy.float32) + 0.5
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder("float", [None, 1])
    w, b = tf.Variable(tf.zeros([3, 1])), tf.Variable(tf.zeros([1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    step = tf.train.get_or_create_global_step()
    train = optimizer().minimize(loss, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            session.run(train, feed_dict={x: xs, y: ys})
        assert session.run(loss, {x: xs, y: ys}) < limit
        assert session.run(step) == 150


def test_adam_is_tensorflows_formula():
    w = tf.Variable([1.0, -2.0])
    train = tf.train.AdamOptimizer(0.1, 0.8, 0.9, 0.01).minimize(tf.reduce_sum(w * w * w))
    value, m, v = numpy.array([1.0, -2.0]), numpy.zeros(2), numpy.zeros(2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in (1, 2, 3):
            session.run(train)
            g = 3 * value**2
            m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
            rate = 0.1 * numpy.sqrt(1 - 0.9**step) / (1 - 0.8**step)
            value = value - rate * m / (numpy.sqrt(v) + 0.01)
            numpy.testing.assert_allclose(session.run(w), value, rtol=1e-5)


def test_adam_in_pytorchs_form_has_the_bits_of_define_by_run():
    random = numpy.random.default_rng(1)
    weights, xs = random.standard_normal((4, 3)).astype("f"), random.standard_normal((8, 3)).astype("f")
    labels = random.integers(0, 4, 8)
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int64, [None])
    w = tf.Variable(weights)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.matmul(x, w, transpose_b=True))
    train = tf.train.AdamOptimizer(0.1, formulation="pytorch").minimize(loss)
    p = twofold.tensor(weights, requires_grad=True)
    optimizer = twofold.optim.Adam([p], lr=0.1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            mine, _ = session.run([loss, train], {x: xs, y: labels})
            optimizer.zero_grad()
            theirs = twofold.nn.functional.cross_entropy(twofold.tensor(xs) @ p.t(), twofold.tensor(labels))
            theirs.backward()
            optimizer.step()
            assert mine.tobytes() == theirs.detach().numpy().tobytes()
        assert session.run(w).tobytes() == p.detach().numpy().tobytes()


def test_seeds_repeat_a_session_and_runs_differ():
    tf.set_random_seed(3)
    x = tf.random_normal([4])
    with tf.Session() as first, tf.Session() as second:
        a, b = first.run(x), first.run(x)
        assert not numpy.array_equal(a, b)
        numpy.testing.assert_array_equal(a, second.run(x))
        assert numpy.abs(first.run(tf.truncated_normal([1000]))).max() <= 2.0


def test_dropout_keeps_its_mask_in_the_gradient():
    x = tf.ones([50, 40])
    y = tf.nn.dropout(x, keep_prob=0.25)
    (g,) = tf.gradients(y, x)
    with tf.Session() as session:
        value, gradient = session.run([y, g])
        numpy.testing.assert_array_equal(value, gradient)
        assert set(numpy.unique(value)) == {0.0, 4.0} and 0.2 < (value > 0).mean() < 0.3


def test_cond_computes_only_the_branch_taken():
    calls = []
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(2.0)
    c = tf.cond(p, lambda: tf.py_func(lambda a: calls.append(1) or a, [v], tf.float32) * 2.0, lambda: v * 3.0)
    d = tf.cond(p, lambda: v * v, lambda: v * 3.0)
    (g,) = tf.gradients(d, v)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(c, {p: False}) == 6.0 and not calls
        assert session.run(c, {p: True}) == 4.0 and len(calls) == 1
        assert session.run([d, g], {p: True}) == [4.0, 4.0] and session.run([d, g], {p: False}) == [6.0, 3.0]


def test_py_func_print_and_assert(capfd):
    x = tf.placeholder(tf.float32, [None])
    doubled = tf.py_func(lambda a: a * 2, [x], tf.float32)
    shown = tf.Print(x, [x, doubled], "values: ")
    with tf.Session() as session:
        numpy.testing.assert_array_equal(session.run(doubled + 1.0, {x: [1.0, 2.0]}), [3.0, 5.0])
        session.run(shown, {x: [1.0, 2.0]})
        assert capfd.readouterr().err == "values: [1.0 2.0][2.0 4.0]\n"
        check = tf.Assert(tf.reduce_all(x > 0), [x])
        v = tf.Variable(1.0)
        session.run(v.initializer)
        with tf.control_dependencies([check]):
            changed = v.assign(5.0)
        session.run(changed, {x: [1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
            session.run(v.assign(9.0).op.graph.get_operation_by_name(changed.op.name), {x: [-1.0]})
        assert session.run(v) == 5.0


def test_a_graph_that_runs_is_closed_to_its_functions_alone_and_open_again_afterwards(graph):
    declared, refused = [], []

    def declare():
        with graph.as_default():
            declared.append(tf.constant(3.0) * 2.0)

    def called(a):
        thread = threading.Thread(target=declare)
        thread.start()
        thread.join()
        try:
            declare()
        except RuntimeError as error:
            refused.append(str(error))
        return a

    y = tf.py_func(called, [tf.constant(1.0)], tf.float32)
    with tf.Session() as session:
        session.run(y)
        assert len(refused) == 1 and refused[0].startswith(
            "Const cannot be added to the graph, as a session is running it"
        )
        assert session.run([tf.constant(2.0), *declared]) == [2.0, 6.0]


def test_steps_written_with_operators_rebind_names():
    x = tf.constant(1.0)
    total = x
    total += 2.0
    total *= x + 1.0
    with tf.Session() as session:
        assert session.run([x, total]) == [1.0, 6.0]


def test_interactive_session_and_eval():
    session = tf.InteractiveSession()
    v = tf.Variable(4.0)
    v.initializer.run()
    assert tf.get_default_session() is session and (v + 1.0).eval() == 5.0 and v.eval() == 4.0
    session.close()
    assert tf.get_default_session() is None


def test_the_graph_of_an_interactive_session_is_the_default_one_until_it_is_closed():
    outer, given = tf.get_default_graph(), tf.Graph()
    session = tf.InteractiveSession(graph=given)
    assert tf.get_default_graph() is given
    assert (tf.constant(2.0) + 1.0).eval() == 3.0
    with tf.Graph().as_default() as inner:
        assert tf.get_default_graph() is inner
    assert tf.get_default_graph() is given
    session.close()
    assert tf.get_default_graph() is outer
    plain = tf.InteractiveSession()
    assert plain.graph is outer and tf.get_default_graph() is outer
    plain.close()
