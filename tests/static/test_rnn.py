"""Recurrent cells and networks against NumPy, and each other."""

import copy

import numpy
import pytest

import twofold.static as tf
from twofold.static.python.ops import rnn, rnn_cell

cells = tf.nn.rnn_cell


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def ready(session):
    """Run the initializers; biases are drawn, too, so that they matter."""
    session.run(tf.global_variables_initializer())
    random = numpy.random.default_rng(7)
    for variable in tf.global_variables():
        variable.load(random.standard_normal(variable.shape.as_list()) * 0.3, session)
    return [session.run(variable) for variable in tf.global_variables()]


def lstm(x, state, kernel, bias, peepholes=(0, 0, 0), forget_bias=1.0):
    c, h = state
    i, j, f, o = numpy.split(numpy.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    c = sigmoid(f + forget_bias + peepholes[0] * c) * c + sigmoid(i + peepholes[1] * c) * numpy.tanh(j)
    h = sigmoid(o + peepholes[2] * c) * numpy.tanh(c)
    return h, (c, h)


def gru(x, h, gate_kernel, gate_bias, kernel, bias):
    r, u = numpy.split(sigmoid(numpy.concatenate([x, h], 1) @ gate_kernel + gate_bias), 2, 1)
    candidate = numpy.tanh(numpy.concatenate([x, r * h], 1) @ kernel + bias)
    h = u * h + (1 - u) * candidate
    return h, h


def basic(x, h, kernel, bias):
    h = numpy.tanh(numpy.concatenate([x, h], 1) @ kernel + bias)
    return h, h


CELLS = {
    "basic_rnn_cell": (lambda: cells.BasicRNNCell(4), basic, False),
    "gru_cell": (lambda: cells.GRUCell(4), gru, False),
    "basic_lstm_cell": (lambda: cells.BasicLSTMCell(4), lstm, True),
    "lstm_cell": (
        lambda: cells.LSTMCell(4, use_peepholes=True, forget_bias=0.5),
        lambda x, s, k, b, f, i, o: lstm(x, s, k, b, (f, i, o), 0.5),
        True,
    ),
}


def unrolled(step, x, weights, state, lengths):
    outputs = numpy.zeros((*x.shape[:2], 4))
    for t in range(x.shape[1]):
        out, new = step(x[:, t], state, *weights)
        active = (t < lengths)[:, None]
        outputs[:, t] = numpy.where(active, out, 0)
        if isinstance(state, tuple):
            state = tuple(numpy.where(active, a, b) for a, b in zip(new, state))
        else:
            state = numpy.where(active, new, state)
    return outputs, state


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("time_major", [False, True])
def test_dynamic_networks(session, name, time_major):
    make, step, double = CELLS[name]
    x = tf.placeholder(tf.float32, [None, None, 3])
    lengths = tf.placeholder(tf.int32, [None])
    given = tf.transpose(x, [1, 0, 2]) if time_major else x
    outputs, state = tf.nn.dynamic_rnn(make(), given, lengths, dtype=tf.float32, time_major=time_major)
    weights = ready(session)
    assert all(v.name.startswith(f"rnn/{name}/") for v in tf.trainable_variables())
    assert outputs.get_shape().as_list() == [None, None, 4]
    random = numpy.random.default_rng(1)
    for batch, steps in ((2, 5), (3, 2)):
        values = random.standard_normal((batch, steps, 3)).astype("f")
        some = random.integers(0, steps + 1, batch)
        first = numpy.zeros((batch, 4))
        expected, last = unrolled(step, values, weights, (first, first) if double else first, some)
        found, end = session.run([outputs, state], {x: values, lengths: some})
        expected = expected.swapaxes(0, 1) if time_major else expected
        numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        numpy.testing.assert_allclose(numpy.array(end), numpy.array(last), rtol=1e-4, atol=1e-6)


def test_static_and_dynamic_networks_have_the_same_gradients(session):
    x = tf.placeholder(tf.float32, [2, 4, 3])
    lengths = tf.constant([4, 2])
    with tf.variable_scope("net"):
        one, last = tf.nn.dynamic_rnn(cells.GRUCell(5), x, lengths, dtype=tf.float32)
    with tf.variable_scope("net", reuse=True):
        two, other = tf.nn.static_rnn(cells.GRUCell(5), tf.unstack(x, axis=1), None, tf.float32, lengths)
    ready(session)
    weights = tf.trainable_variables()
    assert len(weights) == 4
    losses = [
        tf.reduce_sum(one * one) + tf.reduce_sum(last),
        tf.reduce_sum(tf.stack(two) ** 2) + tf.reduce_sum(other),
    ]
    slopes = [tf.gradients(loss, [x, *weights]) for loss in losses]
    found = session.run(slopes, {x: numpy.random.default_rng(0).standard_normal((2, 4, 3))})
    for a, b in zip(*found, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_deep_networks_and_older_names(session):
    x = tf.placeholder(tf.float32, [None, 6, 3])
    deep = tf.contrib.rnn.MultiRNNCell([cells.LSTMCell(4, num_proj=2), cells.GRUCell(5)])
    outputs, state = rnn.dynamic_rnn(deep, x, dtype=tf.float32)
    assert [v.name for v in tf.global_variables()] == [
        "rnn/multi_rnn_cell/cell_0/lstm_cell/kernel:0",
        "rnn/multi_rnn_cell/cell_0/lstm_cell/bias:0",
        "rnn/multi_rnn_cell/cell_0/lstm_cell/projection/kernel:0",
        "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel:0",
        "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias:0",
        "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel:0",
        "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias:0",
    ]
    assert deep.state_size == (cells.LSTMStateTuple(4, 2), 5)
    ready(session)
    found, ((c, h), g) = session.run([outputs, state], {x: numpy.ones((2, 6, 3))})
    assert (found[:, -1] == g).all()
    assert (c.shape, h.shape, g.shape) == ((2, 4), (2, 2), (2, 5))
    assert rnn_cell.BasicLSTMCell is tf.contrib.rnn.BasicLSTMCell


def test_networks_in_both_directions(session):
    x = tf.placeholder(tf.float32, [2, 4, 3])
    lengths = [4, 3]
    pair = [cells.BasicRNNCell(2), cells.BasicRNNCell(2)]
    (ahead, back), states = tf.nn.bidirectional_dynamic_rnn(*pair, x, lengths, dtype=tf.float32)
    assert sorted({v.name.rsplit("/", 2)[0] for v in tf.global_variables()}) == [
        "bidirectional_rnn/bw",
        "bidirectional_rnn/fw",
    ]
    with tf.variable_scope("", reuse=True):
        again = [cells.BasicRNNCell(2), cells.BasicRNNCell(2)]
        steps = tf.unstack(x, axis=1)
        both, *ends = tf.nn.static_bidirectional_rnn(*again, steps, dtype=tf.float32, sequence_length=lengths)
    weights = ready(session)
    values = numpy.random.default_rng(3).standard_normal((2, 4, 3)).astype("f")
    one, two, last, other, ends = session.run([ahead, back, states, both, ends], {x: values})
    expected, _ = unrolled(
        lambda *a: [numpy.pad(v, ((0, 0), (0, 2))) for v in basic(a[0], a[1][:, :2], *a[2:])],
        values,
        weights[:2],
        numpy.zeros((2, 4)),
        numpy.array(lengths),
    )
    numpy.testing.assert_allclose(one, expected[..., :2], rtol=1e-4, atol=1e-6)
    assert (one[1, 3] == 0).all() and (two[1, 3] == 0).all()
    numpy.testing.assert_allclose(two[0, 0], last[1][0], rtol=1e-6)
    numpy.testing.assert_allclose(
        numpy.stack(other, 1), numpy.concatenate([one, two], 2), rtol=1e-5, atol=1e-7
    )
    numpy.testing.assert_allclose(numpy.array(ends), numpy.array(last), rtol=1e-5, atol=1e-7)


def test_dropped_values_differ_from_step_to_step(session):
    class Same(cells.RNNCell):
        state_size = output_size = 50

        def call(self, inputs, state):
            return inputs, state

    x = tf.ones([2, 3, 50])
    outputs, _ = tf.nn.dynamic_rnn(cells.DropoutWrapper(Same(), output_keep_prob=0.5), x, dtype=tf.float32)
    found = session.run(outputs)
    assert set(found.ravel().tolist()) == {0.0, 2.0}
    assert len({row.tobytes() for row in found.reshape(6, 50)}) == 6
    residual, _ = tf.nn.dynamic_rnn(cells.ResidualWrapper(Same()), x, dtype=tf.float32)
    assert (session.run(residual) == 2).all()
    with pytest.raises(ValueError, match="input_keep_prob is 3"):
        cells.DropoutWrapper(Same(), 3)


MISTAKES = {
    "no first state": (
        lambda x: tf.nn.dynamic_rnn(cells.GRUCell(2), x),
        ValueError,
        "dynamic_rnn: neither initial_state nor dtype is given",
    ),
    "a matrix": (
        lambda x: tf.nn.dynamic_rnn(cells.GRUCell(2), x[0], dtype=tf.float32),
        ValueError,
        "at least three axes",
    ),
    "no cell": (lambda x: tf.nn.dynamic_rnn(3, x, dtype=tf.float32), ValueError, "cell is 3"),
    "no list": (lambda x: tf.nn.static_rnn(cells.GRUCell(2), x, dtype=tf.float32), ValueError, "list"),
    "a state of another size": (
        lambda x: tf.nn.dynamic_rnn(cells.GRUCell(2), x, initial_state=tf.zeros([2, 3])),
        ValueError,
        r"MatMul: inner sizes differ, 6 against 5: .*gru_cell/gates/kernel",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(session, name):
    declare, error, text = MISTAKES[name]
    with pytest.raises(error, match=text):
        declare(tf.zeros([2, 4, 3]))


def test_a_copied_cell_does_not_copy_its_graph() -> None:
    with tf.Graph().as_default() as graph:
        cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(3) for _ in range(2)])
        early = copy.deepcopy(cells)
        cells(tf.ones([2, 4]), cells.zero_state(2, tf.float32))
        late = copy.deepcopy(cells)
        for one, count in ((late, 8), (early, 16)):
            with tf.variable_scope("other"):
                one(tf.ones([2, 4]), one.zero_state(2, tf.float32))
            assert len(graph.get_collection("variables")) == count
        assert late.variables[0] is cells.variables[0] and early.variables[0] is not cells.variables[0]


def test_raw_rnn_does_what_dynamic_rnn_does():
    x = numpy.random.default_rng(0).standard_normal((3, 5, 2)).astype("f")
    lengths = numpy.array([2, 5, 3], "int32")
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))
        cell = tf.nn.rnn_cell.LSTMCell(4)

        def step(time, cell_output, cell_state, loop_state):
            state = cell.zero_state(3, tf.float32) if cell_output is None else cell_state
            count = tf.constant(0) if cell_output is None else loop_state + 1
            ends = time >= lengths
            every = tf.reduce_all(ends)
            row = tf.cond(every, lambda: tf.zeros([3, 2]), lambda: rows.read(time))
            return ends, row, state, cell_output, count

        with tf.variable_scope("net"):
            emitted, state, count = tf.nn.raw_rnn(cell, step)
        with tf.variable_scope("net", reuse=True):
            outputs, last = tf.nn.dynamic_rnn(
                tf.nn.rnn_cell.LSTMCell(4), x, sequence_length=lengths, dtype=tf.float32
            )
        variables = tf.trainable_variables()
        pairs = [
            (tf.transpose(emitted.stack(), [1, 0, 2]), outputs),
            *zip(state, last),
            *zip(tf.gradients(state.h, variables), tf.gradients(last.h, variables)),
        ]
        session.run(tf.global_variables_initializer())
        assert session.run(count) == 5
        for one, other in session.run(pairs):
            numpy.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_subclasses_read_the_options_of_a_cell():
    class Doubled(tf.nn.rnn_cell.BasicLSTMCell):
        def call(self, inputs, state):
            output, new = super().call(inputs, state)
            return output * 2.0, new

    cell = Doubled(3, forget_bias=0.5, activation=tf.nn.relu)
    assert (cell._num_units, cell._forget_bias, cell._activation) == (3, 0.5, tf.nn.relu)
    with pytest.raises(AttributeError, match="no attribute '_peephole'"):
        cell._peephole  # noqa: B018


def test_what_a_subclass_sets_anew_has_an_effect():
    class Doubling(tf.nn.rnn_cell.BasicRNNCell):
        def __init__(self, num_units):
            super().__init__(num_units)
            self._activation = lambda x: x * 2.0
            self._width = 2 * self._num_units

    with tf.Graph().as_default(), tf.Session() as session:
        cell = Doubling(3)
        output, _ = cell(tf.ones([1, 2]), tf.zeros([1, 3]))
        session.run(tf.global_variables_initializer())
        found, kernel = session.run([output, cell.weights[0]])
    assert cell._width == 6
    numpy.testing.assert_allclose(found[0], 2 * kernel[:2].sum(0), rtol=1e-6)


def test_a_cell_that_declares_its_own_variables_has_them_once():
    class Cell(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 2

        def __call__(self, inputs, state, scope=None):
            with tf.variable_scope(scope or "cell", reuse=False):
                kernel = tf.get_variable("kernel", [3, 2])
            state = tf.matmul(tf.concat([inputs, state], 1), kernel)
            return state, state

    with tf.Graph().as_default():
        inputs = [tf.ones([1, 1]), tf.ones([1, 1]), tf.ones([1, 1])]
        outputs, _ = tf.nn.static_rnn(Cell(), inputs, dtype=tf.float32, scope="own")
        assert len(outputs) == 3 and [one.name for one in tf.global_variables()] == ["own/cell/kernel:0"]


@pytest.mark.parametrize("lengths", [None, [3, 5]])
def test_cells_of_keras(lengths):
    x = numpy.random.default_rng(0).standard_normal((2, 5, 3)).astype("f")
    kernel, recurrent = numpy.linspace(-1, 1, 12).reshape(3, 4), numpy.linspace(1, -1, 16).reshape(4, 4)
    h, expected = numpy.zeros((2, 4)), []
    for time in range(5):
        new = numpy.tanh(x[:, time] @ kernel + h @ recurrent + 0.5)
        goes_on = (time < numpy.array(lengths or [5, 5]))[:, None]
        expected.append(numpy.where(goes_on, new, 0))
        h = numpy.where(goes_on, new, h)
    with tf.Graph().as_default(), tf.Session() as session:

        def cell():
            return tf.keras.layers.SimpleRNNCell(4)

        steps = tf.unstack(tf.constant(x), axis=1)
        found = [
            tf.nn.dynamic_rnn(cell(), x, sequence_length=lengths, dtype=tf.float32),
            tf.nn.static_rnn(cell(), steps, sequence_length=lengths, initial_state=tf.zeros([2, 4])),
        ]
        session.run(tf.global_variables_initializer())
        for variable in tf.global_variables():
            of_inputs, of_bias = variable.shape[0] == 3, variable.shape.ndims == 1
            variable.load(numpy.full(4, 0.5) if of_bias else kernel if of_inputs else recurrent, session)
        (outputs, state), (listed, last) = session.run(found)
        numpy.testing.assert_allclose(outputs, numpy.stack(expected, 1), rtol=2e-5, atol=1e-6)
        numpy.testing.assert_allclose(listed, expected, rtol=2e-5, atol=1e-6)
        numpy.testing.assert_allclose([state, last], [h, h], rtol=2e-5)


def test_states_of_a_keras_cell_are_a_list_if_it_has_several():
    with tf.Graph().as_default():
        _, states = tf.nn.dynamic_rnn(tf.keras.layers.LSTMCell(4), tf.zeros([2, 5, 3]), dtype=tf.float32)
        assert [state.shape.as_list() for state in states] == [[2, 4], [2, 4]]


class Plain(tf.nn.rnn_cell.RNNCell):
    state_size = output_size = 3

    def call(self, inputs, state):
        return state, state + tf.get_variable("v", [3])


def _two_calls(make):
    with tf.Graph().as_default():
        for reuse in (False, True):
            cell = make(reuse)
            state = cell.zero_state(2, tf.float32)
            for _ in range(2):
                _, state = cell(tf.ones([2, 4]), state)
        return [variable.op.name for variable in tf.global_variables()]


def test_cells_called_in_one_scope_have_the_names_of_tensorflow():
    """What tensorflow.python.keras.layers.legacy_rnn of TensorFlow 2.21, the cells of 1.15, names them."""

    def stack(reuse):
        return tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(3, reuse=reuse) for _ in range(2)])

    parts = [
        f"multi_rnn_cell/cell_{k}/basic_lstm_cell/{name}" for k in range(2) for name in ("kernel", "bias")
    ]
    assert _two_calls(stack) == parts
    layers = _two_calls(lambda reuse: tf.nn.rnn_cell.BasicRNNCell(3))
    assert layers == [
        f"basic_rnn_cell{number}/{name}" for number in ("", "_1") for name in ("kernel", "bias")
    ]
    with pytest.raises(ValueError, match="already exists"):
        _two_calls(lambda reuse: Plain())
