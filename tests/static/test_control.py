"""Choices and loops of declared graphs: values as in plain Python, gradients, unknown sizes, effects."""

import numpy
import pytest

import twofold.static as tf

X = numpy.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], numpy.float32)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_while_loop_with_unknown_sizes(session):
    x = tf.placeholder(tf.float32, [None, 3])
    i, y = tf.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tf.tanh(y) + x], [0, x])
    assert y.get_shape().as_list() == [None, 3]
    for value in (X, X[:1]):
        expected = value
        for _ in range(4):
            expected = numpy.tanh(expected) + value
        count, found = session.run([i, y], {x: value})
        assert count == 4
        numpy.testing.assert_allclose(found, expected, rtol=1e-5)


def test_gradients_of_gradients_through_a_loop(session):
    x, w = tf.placeholder(tf.float64, [3]), tf.placeholder(tf.float64, [3])
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tf.sin(y * w) + x], [0, x])
    loss = tf.reduce_sum(y * y)
    first = tf.gradients(loss, [x, w])
    second = tf.gradients(tf.reduce_sum(first[0] * first[1]), [x, w])
    values = {x: numpy.array([0.3, -0.2, 0.9]), w: numpy.array([1.1, 0.4, -0.8])}
    for value, gradients in ((loss, first), (tf.reduce_sum(first[0] * first[1]), second)):
        for target, gradient in zip((x, w), gradients):
            found, step = session.run(gradient, values), 1e-6
            for k in range(3):
                ends = []
                for side in (step, -step):
                    moved = dict(values)
                    moved[target] = values[target] + side * (numpy.arange(3) == k)
                    ends.append(session.run(value, moved))
                assert abs((ends[0] - ends[1]) / (2 * step) - found[k]) < 1e-6


def test_only_the_branch_taken_is_computed(session):
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [3])
    safe = tf.constant([0, 1])
    wrong = tf.constant([0, 9])
    y = tf.cond(p, lambda: tf.gather(x, safe), lambda: tf.gather(x, wrong))
    assert session.run(y, {x: X[0], p: True}).tolist() == [0.5, -1.0]
    with pytest.raises(IndexError):
        session.run(y, {x: X[0], p: False})
    gradient = tf.gradients(tf.reduce_sum(y), x)[0]
    assert session.run(gradient, {x: X[0], p: True}).tolist() == [1.0, 1.0, 0.0]


def test_branches_that_write_variables(session):
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(1.0)
    session.run(v.initializer)
    update = tf.cond(p, lambda: tf.assign_add(v, 2.0), lambda: v * 1.0)
    assert [session.run(update, {p: flag}) for flag in (True, False)] == [3.0, 3.0]
    assert session.run(v) == 3.0


def test_case_and_switch_case(session):
    x = tf.placeholder(tf.float32, [])
    pairs = [(x < 0, lambda: -x), (x < 10, lambda: x * 10)]
    y = tf.case(pairs, default=lambda: tf.constant(-1.0))
    assert [session.run(y, {x: value}) for value in (-2.0, 3.0, 50.0)] == [2.0, 30.0, -1.0]
    both = tf.case([(x < 5, lambda: x), (x < 10, lambda: x + 1)], default=lambda: x, exclusive=True)
    assert session.run(both, {x: 7.0}) == 8.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than one"):
        session.run(both, {x: 1.0})
    index = tf.placeholder(tf.int32, [])
    chosen = tf.switch_case(index, {3: lambda: x, 5: lambda: x * 2}, default=lambda: x * 0)
    assert [session.run(chosen, {x: 4.0, index: k}) for k in (3, 5, 4)] == [4.0, 8.0, 0.0]


def test_maps_and_folds(session):
    x = tf.placeholder(tf.float32, [None, 3])
    total = tf.foldl(lambda a, r: a + r, x)
    weighted = tf.foldr(lambda a, r: a * 2.0 + r, x, tf.zeros([3]))
    running = tf.scan(lambda a, r: a + r, x)
    backwards = tf.scan(lambda a, r: a + r, x, reverse=True)
    squares, counts = tf.map_fn(
        lambda pair: (tf.reduce_sum(pair[0] * pair[0]), pair[1] + 1),
        (x, tf.range(tf.shape(x)[0])),
        dtype=(tf.float32, tf.int32),
    )
    found = session.run([total, weighted, running, backwards, squares, counts], {x: X})
    expected = [
        X.sum(0),
        X[1] * 2 + X[0],
        X.cumsum(0),
        X[::-1].cumsum(0)[::-1],
        (X * X).sum(1),
        numpy.array([1, 2]),
    ]
    for mine, theirs in zip(found, expected):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_nested_loops_and_captured_variables(session):
    w = tf.Variable([2.0, 0.5])
    session.run(w.initializer)

    def outer(i, x):
        return i + 1, tf.scan(lambda a, r: a * w + r, tf.stack([x, x]), x)[-1]

    _, y = tf.while_loop(lambda i, x: i < 2, outer, [0, tf.ones([2])])
    gradient = tf.gradients(y, w)[0]
    x, weight = numpy.ones(2), numpy.array([2.0, 0.5])
    for _ in range(2):
        start = x
        for _ in range(2):
            x = x * weight + start
    factor = 1 + weight + weight**2
    found, slope = session.run([y, gradient])
    numpy.testing.assert_allclose(found, x, rtol=1e-6)
    numpy.testing.assert_allclose(slope, 2 * factor * (1 + 2 * weight), rtol=1e-6)


def test_checks_and_prints_inside_a_body(session, capfd):
    def body(i, x):
        with tf.control_dependencies([tf.Assert(x < 100.0, [x])]):
            return i + 1, tf.Print(x, [i], "round ") * 3.0

    limit = tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, x: i < limit, body, [0, 1.0])
    assert session.run(y, {limit: 3}) == 27.0
    assert capfd.readouterr().err.split() == ["round", "[0]", "round", "[1]", "round", "[2]"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="243"):
        session.run(y, {limit: 9})


def test_each_round_draws_its_own_numbers(session):
    drawn = tf.map_fn(lambda e: tf.random_uniform([2]) + e, tf.zeros([3]))
    first, second = session.run(drawn), session.run(drawn)
    assert len(set(first.ravel()) | set(second.ravel())) == 12


def test_most_rounds(session):
    most = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, y * x), (0, x), maximum_iterations=most)
    slope = tf.gradients(y, x)[0]
    assert session.run([y, slope], {x: 2.0, most: 3}) == [16.0, 32.0]
    assert session.run([y, slope], {x: 2.0, most: 0}) == [2.0, 1.0]
    assert session.run(y, {x: 2.0, most: 99}) == 2.0**11


MISTAKES = {
    "a dtype that changes": (
        lambda: tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0]),
        TypeError,
        r"while_loop: i \(loop_vars\[0\]\) enters as 'Const:0' int32\[\] \(test_control\.py:\d+\) and leaves the "
        r"body as 'while/Cast:0' float32\[\] \(test_control\.py:\d+\), at test_control\.py:\d+\. "
        r"Make the body return the dtype that it was given, with tf\.cast\(\.\.\., tf\.int32\)\.",
    ),
    "a shape that changes": (
        lambda: tf.while_loop(lambda i: True, lambda x: tf.concat([x, x], 0), [tf.zeros([2])]),
        ValueError,
        r"while_loop: x \(loop_vars\[0\]\) enters as 'zeros:0' float32\[2\] \(test_control\.py:\d+\) and leaves "
        r"the body as 'while/concat:0' float32\[4\] \(test_control\.py:\d+\); its invariant is \[2\], at "
        r"test_control\.py:\d+\. Make the body return the shape that it was given, or leave its unknown sizes open\.",
    ),
    "an accumulator of another dtype": (
        lambda: tf.scan(lambda total, x: tf.cast(total + x, tf.float64), tf.zeros([3]), tf.zeros([])),
        TypeError,
        r"scan: initializer enters as 'zeros_1:0' float32\[\] .* and leaves the body as '.*Cast:0' float64\[\] .*"
        r"Make the body return the dtype that it was given, with tf\.cast\(\.\.\., tf\.float32\)\.",
    ),
    "an accumulator that grows": (
        lambda: tf.foldl(lambda total, x: tf.concat([total, [x]], 0), tf.zeros([3]), tf.zeros([1])),
        ValueError,
        r"foldl: initializer enters as 'zeros_1:0' float32\[1\] .* leaves the body as .* float32\[2\] .*"
        r"Make the body return the shape that it was given",
    ),
    "too few values": (
        lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: [i], [0, 1.0]),
        ValueError,
        "the body returns 1 values for 2 loop variables",
    ),
    "branches of different dtypes": (
        lambda: tf.cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(1.0)),
        TypeError,
        r"result 0 is .* float32\[\] .* from false_fn and .* int32\[\] .* from true_fn",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_when_declared(session, name):
    declare, error, text = MISTAKES[name]
    with pytest.raises(error, match=text):
        declare()


def test_nothing_to_go_along(session):
    x, w = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [2])
    nothing = {x: numpy.zeros((0, 2)), w: [2.0, 3.0]}
    ys, last = tf.scan(lambda h, row: h * row, x, w), tf.foldr(lambda h, row: h * row, x, w)
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * w, x)
    found = session.run([ys, last, mapped, *tf.gradients([last, ys, mapped], [x, w])], nothing)
    assert [value.shape for value in found] == [(0, 2), (2,), (0, 2), (0, 2), (2,)]
    assert found[1].tolist() == [2.0, 3.0]
    assert found[4].tolist() == [1.0, 1.0]
    limit = tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, y: i < limit, lambda i, y: (i + 1, y * w), (0, w))
    second = tf.gradients(tf.reduce_sum(tf.gradients(y, w)[0] * w), w)[0]
    assert session.run(second, {w: [2.0, 3.0], limit: 0}).tolist() == [1.0, 1.0]
    assert session.run(second, {w: [2.0, 3.0], limit: 1}).tolist() == [8.0, 12.0]


def test_a_value_inside_a_body_cannot_be_fetched(session):
    inside = []
    tf.while_loop(lambda i: i < 3, lambda i: inside.append(i + 1) or inside[0], [0])
    with pytest.raises(RuntimeError, match="inside the body of a loop"):
        session.run(inside[0])


def test_tensor_arrays_carry_a_recurrent_network(session):
    x, w = tf.placeholder(tf.float32, [None, None, 3]), tf.placeholder(tf.float32, [3, 3])
    steps = tf.shape(x)[0]
    source = tf.TensorArray(tf.float32, size=steps).unstack(x)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(h, w) + source.read(i))
        return i + 1, h, out.write(i, h)

    empty = tf.TensorArray(tf.float32, size=steps)
    _, _, out = tf.while_loop(lambda i, h, out: i < steps, body, (0, tf.zeros_like(x[0]), empty))
    y = out.stack()
    assert y.get_shape().as_list() == [None, None, 3]
    other = tf.scan(lambda h, row: tf.tanh(tf.matmul(h, w) + row), x, tf.zeros_like(x[0]))
    fetches = [[v, *tf.gradients(tf.reduce_sum(v * v), [x, w])] for v in (y, other)]
    random = numpy.random.default_rng(0)
    for steps_fed in (5, 2):
        values = {x: random.standard_normal((steps_fed, 2, 3)), w: random.standard_normal((3, 3))}
        one, two = session.run(fetches, values)
        for mine, theirs in zip(one, two):
            assert mine.tobytes() == theirs.tobytes()
    with pytest.raises(IndexError, match="9"):
        session.run(out.read(9), values)


def test_tensor_arrays_outside_loops(session):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for k in range(3):
        array = array.write(k, tf.ones([2]) * k)
    found = session.run([array.stack(), array.read(1), array.gather([2, 0]), array.concat(), array.size()])
    assert found[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert found[1].tolist() == [1, 1]
    assert found[2].tolist() == [[2, 2], [0, 0]]
    assert found[3].tolist() == [0, 0, 1, 1, 2, 2]
    assert found[4] == 3
    scattered = tf.TensorArray(tf.float32, size=3).scatter([2, 0], [[5.0], [7.0]])
    assert session.run(scattered.stack()).tolist() == [[7.0], [0.0], [5.0]]


def test_a_python_function_runs_once_in_a_run(session):
    calls = []

    def count(*given):
        calls.append(len(calls))
        return numpy.int32(len(calls))

    first = tf.py_func(count, [], tf.int32)
    second, third = (tf.py_func(lambda a: a * 10, [first + k], tf.int32) for k in (0, 1))
    sizes = tf.zeros(tf.stack([second // 10, 2]))
    assert session.run([second, third, first, tf.shape(sizes)[0]]) == [10, 20, 1, 1]
    assert session.run([second.op, first]) == [None, 2]
    assert len(calls) == 2


def test_a_branch_that_is_not_taken_may_read_beyond_an_array(session):
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(tf.constant([1.0, 2.0, 3.0]))
    outside = tf.gather(tf.constant([1.0, 2.0]), 5)

    def read(k):
        return tf.cond(tf.constant(k) < 3, lambda: array.read(k), lambda: tf.constant(-1.0))

    assert session.run([read(0), read(5)]) == [1.0, -1.0]
    take = tf.placeholder(tf.bool)
    chosen = tf.cond(take, lambda: tf.gather(tf.constant([1.0, 2.0]), 5), lambda: tf.constant(0.0))
    assert session.run(chosen, {take: False}) == 0.0
    for tensor in (chosen, outside):
        with pytest.raises(IndexError, match="index 5 is outside an axis of size 2"):
            session.run(tensor, {take: True})


def test_the_function_for_true_is_declared_first(session):
    called = []
    tf.cond(
        tf.constant(False),
        lambda: called.append("true") or tf.constant(1),
        lambda: called.append("false") or tf.constant(2),
    )
    tf.switch_case(tf.constant(0), [lambda k=k: called.append(k) or tf.constant(k) for k in range(3)])
    assert called == ["true", "false", 0, 1, 2]


@pytest.mark.parametrize("index, wanted", [(0, 1.0), (1, 2.0), (5, 3.0)])
def test_a_list_of_one_result_is_the_result_unless_strict(session, index, wanted):
    number = tf.placeholder(tf.int32, [])
    pairs = [(tf.equal(number, k), lambda k=k: [tf.constant(k + 1.0)]) for k in range(2)]
    plain = tf.case(pairs, lambda: [tf.constant(3.0)])
    kept = tf.case(pairs, lambda: [tf.constant(3.0)], strict=True)
    assert isinstance(kept, list) and not isinstance(plain, list)
    assert session.run([plain, kept[0]], {number: index}) == [wanted, wanted]
    assert not isinstance(tf.case(pairs[:1]), list) and isinstance(tf.case(pairs[:1], strict=True), list)


def test_names_inside_of_loops_are_those_of_tensorflow(session):
    inside = []

    def add(total, x):
        inside.extend([total.name, x.name])
        return total + x

    tf.scan(add, tf.ones([3]))
    tf.map_fn(lambda x: inside.append(x.name) or x, tf.ones([3]))
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    cell.call = lambda inputs, state: inside.extend([inputs.name, state.name]) or (state, state)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([1, 3, 2]), dtype=tf.float32)
    assert inside == [
        "scan/while/Identity_2:0", "scan/while/TensorArrayReadV3:0", "map/while/TensorArrayReadV3:0",
        "rnn/while/TensorArrayReadV3:0", "rnn/while/Identity_3:0",
    ]  # fmt: skip
    assert outputs.name == "rnn/transpose_1:0"


def test_switches_send_a_value_to_one_branch():
    from twofold.static.python.ops import control_flow_ops

    with tf.Graph().as_default(), tf.Session() as session:
        x, chosen = tf.constant([1.0, -2.0]), tf.placeholder(tf.int32, [])
        cases = [lambda v: v * 2, tf.abs, lambda v: tf.concat([v, v], 0)]
        branches = [
            case(control_flow_ops.switch(x, tf.equal(chosen, number))[1]) for number, case in enumerate(cases)
        ]
        made, number = control_flow_ops.merge(branches)
        gradient = tf.gradients(tf.reduce_sum(made), x)[0]
        for k, (wanted, slope) in enumerate([([2, -4], [2, 2]), ([1, 2], [1, -1]), ([1, -2, 1, -2], [2, 2])]):
            found = session.run([made, number, gradient], {chosen: k})
            assert [one.tolist() for one in found] == [wanted, k, slope]
        with pytest.raises(ValueError, match="comes from no switch"):
            control_flow_ops.merge([x])


def test_functions_of_tensors_with_values():
    def scaled(x, y):
        return tf.reduce_sum(x) * y, x.numpy().max()

    with tf.Graph().as_default(), tf.Session() as session:
        total, most = tf.py_function(scaled, [[1.0, 2.0], 3.0], [tf.float32, tf.float32])
        assert total.graph is session.graph and session.run([total, most]) == [9.0, 2.0]
        assert session.run(tf.numpy_function(lambda x: x[::-1], [[1, 2]], tf.int32)).tolist() == [2, 1]


def test_results_of_a_map_have_the_dtypes_and_structure_that_are_told(session):
    x = tf.constant([1.5, 2.5])
    with pytest.raises(TypeError, match=r"fn returns int32, and elems are float32"):
        tf.map_fn(lambda value: tf.cast(value, tf.int32), x)
    with pytest.raises(TypeError, match=r"fn returns float32, and dtype says int32"):
        tf.map_fn(lambda value: value, x, dtype=tf.int32)
    assert session.run(tf.map_fn(lambda value: tf.cast(value, tf.int32), x, dtype=tf.int32)).tolist() == [
        1,
        2,
    ]
    with pytest.raises(ValueError, match="2 values for 1 results"):
        tf.map_fn(lambda value: (value, value), x)
    dtypes = {"b": tf.float32, "a": tf.int32}
    made = tf.map_fn(lambda value: {"a": tf.cast(value, tf.int32), "b": value * 2}, x, dtype=dtypes)
    assert {key: value.tolist() for key, value in session.run(made).items()} == {"a": [1, 2], "b": [3.0, 5.0]}


def test_a_body_may_return_a_dict_in_another_order(session):
    end = tf.while_loop(
        lambda state: state["k"] < 3,
        lambda state: [{"x": state["x"] * 2, "k": state["k"] + 1}],
        [{"k": 0, "x": 1.0}],
    )
    assert session.run(end) == {"k": 3, "x": 8.0}
