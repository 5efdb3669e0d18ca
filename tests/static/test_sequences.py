"""Sequence axes: lists of different lengths against each sequence alone, NumPy, and define-by-run."""

import heapq

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold.errors import ArgumentError, GraphError, InvalidArgumentError, ShapeError
from twofold.runtime.pytree import flatten
from twofold.static.sequence.axes import WASTE, lanes_of

sequence = tf.sequence
LENGTHS = (3, 1, 5, 2, 2, 7)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


@pytest.fixture
def random():
    return numpy.random.default_rng(7)


def drawn(random, lengths=LENGTHS, *shape):
    return [random.standard_normal((length, *shape)).astype(numpy.float32) for length in lengths]


def same(found, expected):
    assert isinstance(found, list) and len(found) == len(expected)
    for one, other in zip(found, expected):
        numpy.testing.assert_array_equal(one, other)


def shifted(x, steps, first):
    before = numpy.full_like(x[:1].repeat(min(abs(steps), len(x)), 0), first)
    return numpy.concatenate([before, x[:-steps]] if steps > 0 else [x[-steps:], before])[: len(x)]


OF_EACH = {  # a function of sequences, and the same of one sequence
    "first": (sequence.first, lambda x: x[0]),
    "last": (sequence.last, lambda x: x[-1]),
    "reduce_max": (sequence.reduce_max, lambda x: x.max(0)),
    "reduce_min": (sequence.reduce_min, lambda x: x.min(0)),
    "lengths": (sequence.lengths, len),
    "unpacked sizes": (lambda x: sequence.unpack(x)[1], lambda x: numpy.arange(max(LENGTHS)) < len(x)),
    "fold": (sequence.Fold(lambda a, b: tf.maximum(a, b), initial_state=-9.0), lambda x: x.max(0)),
    "fold back": (sequence.Fold(lambda a, b: b, go_backwards=True), lambda x: x[0]),
}


@pytest.mark.parametrize("name", OF_EACH)
def test_one_value_of_each_sequence(session, random, name):
    function, expected = OF_EACH[name]
    x = sequence.placeholder(tf.float32, [4])
    values = drawn(random, LENGTHS, 4)
    found = session.run(function(x), {x: values})
    assert not isinstance(found, list)
    numpy.testing.assert_array_equal(found, [expected(value) for value in values])


STEPWISE = {
    "element-wise": (lambda x: tf.tanh(x) * 2.0, None),
    "a part": (lambda x: x[:, 1:3], lambda x: x[:, 1:3]),
    "is_first": (sequence.is_first, lambda x: numpy.arange(len(x)) == 0),
    "is_last": (sequence.is_last, lambda x: numpy.arange(len(x)) == len(x) - 1),
    "reverse": (sequence.reverse, lambda x: x[::-1]),
    "past_value": (sequence.past_value, lambda x: shifted(x, 1, 0)),
    "two before": (lambda x: sequence.past_value(x, 5.0, 2), lambda x: shifted(x, 2, 5)),
    "future_value": (sequence.future_value, lambda x: shifted(x, -1, 0)),
    "three after": (lambda x: sequence.delay(x, -1.0, -3), lambda x: shifted(x, -3, -1)),
    "no delay": (lambda x: sequence.delay(x, time_step=0), lambda x: x),
    "of each before": (lambda x: sequence.delay(x, sequence.last(x)), lambda x: shifted(x, 1, x[-1])),
    "broadcast_as": (
        lambda x: sequence.broadcast_as(sequence.last(x), x),
        lambda x: x[-1:].repeat(len(x), 0),
    ),
    "softmax": (sequence.softmax, None),
    "reduce_sum": (lambda x: sequence.broadcast_as(sequence.reduce_sum(x), x), None),
    "reduce_mean": (lambda x: sequence.broadcast_as(sequence.reduce_mean(x), x), None),
    "gather": (lambda x: sequence.gather(x, x[:, 0] > 0), lambda x: x[x[:, 0] > 0]),
    "where": (lambda x: sequence.where(x[:, 0] > 0), lambda x: numpy.flatnonzero(x[:, 0] > 0)),
    "scatter": (
        lambda x: sequence.scatter(sequence.gather(x, x[:, 0] > 0), x[:, 0] > 0),
        lambda x: x * (x[:, :1] > 0),
    ),
    "slice": (lambda x: sequence.slice(x, 1, 3), lambda x: x[1:3]),
    "slice of ends": (lambda x: sequence.slice(x, -2, -1), lambda x: x[-2:-1]),
    "slice to ends": (lambda x: sequence.slice(x, -2, 0), lambda x: x[-2:]),
    "through padding": (
        lambda x: sequence.to_sequence(sequence.unpack(x, 9.0)[0], sequence.lengths(x)),
        lambda x: x,
    ),
    "recurrence": (
        sequence.Recurrence(lambda a, b: tf.maximum(a, b), initial_state=-9.0),
        lambda x: numpy.maximum.accumulate(x),
    ),
    "recurrence of a part": (
        lambda x: sequence.Recurrence(lambda a, b: tf.maximum(a, b), initial_state=-9.0)(
            sequence.slice(x, 0, -1)
        ),
        lambda x: numpy.maximum.accumulate(x[:-1]),
    ),
    "recurrence of pairs": (
        lambda x: sequence.Recurrence(
            lambda a, b, both: (b, a + both[0] - both[1]), initial_state=(0, tf.ones([4]))
        )((x, -x)),
        None,
    ),
    "recurrence from states of each": (
        lambda x: sequence.Recurrence(
            lambda a, b: tf.tanh(a + b), initial_state=sequence.last(x), go_backwards=True
        )(x),
        None,
    ),
    "cell": (sequence.Recurrence(tf.nn.rnn_cell.BasicRNNCell(5), return_full_state=True), None),
}


@pytest.mark.parametrize("name", STEPWISE)
def test_sequences_against_numpy_and_each_alone(session, random, name):
    function, expected = STEPWISE[name]
    x = sequence.placeholder(tf.float32, [4])
    result = function(x)
    session.run(tf.global_variables_initializer())
    gradient = tf.gradients(result, x)[0] if result.dtype is tf.float32 else tf.zeros_like(x)
    values = drawn(random, LENGTHS, 4)
    found, slopes = session.run([result, gradient], {x: values})
    alone = [session.run([result, gradient], {x: [value]}) for value in values]
    same(found, [one[0][0] for one in alone])
    same(slopes, [one[1][0] for one in alone])
    if expected is not None:
        same(found, [expected(value) for value in values])


def test_softmax_and_sums(session, random):
    x = sequence.placeholder(tf.float64, [2])
    values = drawn(random, LENGTHS, 2)
    weights, total = session.run([sequence.softmax(x), sequence.reduce_sum(x)], {x: values})
    for one, value in zip(weights, values):
        powers = numpy.exp(value.astype(numpy.float64))
        numpy.testing.assert_allclose(one, powers / powers.sum(0), rtol=1e-6)
    numpy.testing.assert_allclose(total, [value.sum(0) for value in values], rtol=1e-6)


def tagger():
    """A bidirectional tagger: a table, cells of two kinds, a dense layer, losses at each step."""
    words, tags = (sequence.placeholder(tf.int32, name=name) for name in ("words", "tags"))
    x = tf.nn.embedding_lookup(tf.get_variable("table", [11, 6]), words)
    cells = tf.nn.rnn_cell.LSTMCell(5), tf.nn.rnn_cell.GRUCell(5)
    outputs, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    scores = tf.layers.dense(tf.concat(outputs, 1), 4)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags, logits=scores)
    return words, tags, scores, losses, states


def test_bidirectional_cells_as_with_padding(session, random):
    words, tags, scores, losses, states = tagger()
    slopes = [tf.convert_to_tensor(g) for g in tf.gradients(tf.reduce_sum(losses), tf.trainable_variables())]
    with tf.variable_scope("", reuse=True):
        padded, lengths = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
        x = tf.nn.embedding_lookup(tf.get_variable("table", [11, 6]), padded)
        cells = tf.nn.rnn_cell.LSTMCell(5), tf.nn.rnn_cell.GRUCell(5)
        outputs, ends = tf.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf.float32)
        dense = tf.layers.dense(tf.concat(outputs, 2), 4, name="dense")
    targets = tf.placeholder(tf.int32, [None, None])
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=dense)
    kept = each * tf.sequence_mask(lengths, tf.shape(padded)[1], tf.float32)
    others = [
        tf.convert_to_tensor(g) for g in tf.gradients(tf.reduce_sum(kept), tf.trainable_variables()[:9])
    ]
    assert len(tf.trainable_variables()) == len(slopes) == 9
    session.run(tf.global_variables_initializer())
    given = [random.integers(0, 11, n) for n in LENGTHS]
    labels = [random.integers(0, 4, n) for n in LENGTHS]
    wide = numpy.zeros((2, len(LENGTHS), max(LENGTHS)), numpy.int32)
    for k, pair in enumerate(zip(given, labels)):
        wide[:, k, : LENGTHS[k]] = pair
    feed = {words: given, tags: labels, padded: wide[0], targets: wide[1], lengths: LENGTHS}
    found, expected, own, beside, last, end = session.run([scores, dense, slopes, others, states, ends], feed)
    same(found, [row[:length] for row, length in zip(expected, LENGTHS)])
    for one, other in zip(flatten(last, "")[0], flatten(end, "")[0]):
        numpy.testing.assert_array_equal(one, other)
    for one, other in zip(own, beside):
        numpy.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_training_takes_lists_of_ever_new_lengths(session, random):
    words, tags, _, losses, _ = tagger()
    loss = tf.reduce_mean(losses)
    update = tf.train.AdamOptimizer(0.05).minimize(loss)
    session.run(tf.global_variables_initializer())
    first = declared = None
    for step in range(60):
        given = [random.integers(0, 11, random.integers(2, 12)) for _ in range(random.integers(3, 9))]
        found, _ = session.run([loss, update], {words: given, tags: [one % 4 for one in given]})
        first = found if first is None else first
        if step == 4:
            declared = torch.stats().declared_graphs
    assert found < 0.2 * first
    assert torch.stats().declared_graphs == declared


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 64, 257])
def test_at_most_a_twentieth_of_the_rows_is_wasted(session, random, count):
    x = sequence.placeholder(tf.float32, [3])
    rows = []

    def step(state, steps):
        shape = tf.shape(steps)[:1]
        return tf.tanh(state + steps) + 0.0 * tf.reduce_sum(tf.cast(shape, tf.float32))

    result = sequence.Recurrence(step)(x)
    product = next(op for op in session.graph.get_operations() if op.type == "Scan")
    multiplied = tf.shape(product.outputs[-1])
    for longest in (1, 2, 5, 40, 300):
        lengths = random.integers(1, longest + 1, count)
        values = drawn(random, lengths, 3)
        found, shape = session.run([result, multiplied], {x: values})
        rows.append(int(shape[0]) * int(shape[1]))
        assert lengths.sum() <= rows[-1] <= (1 + WASTE) * lengths.sum()
        assert [len(one) for one in found] == lengths.tolist()


def test_lanes_hold_each_row_once_and_in_order(random):
    for _ in range(50):
        lengths = random.integers(0, 30, random.integers(1, 40))
        lanes = lanes_of(lengths)
        assert lanes.rows.shape == lanes.begins.shape
        numpy.testing.assert_array_equal(lanes.rows.reshape(-1)[lanes.inverse], numpy.arange(lengths.sum()))
        assert len(set(lanes.inverse.tolist())) == lengths.sum()
        count = lanes.rows.shape[1]
        steps, lane = lanes.inverse // count, lanes.inverse % count
        for begin, length in zip(numpy.cumsum(lengths) - lengths, lengths):
            own = slice(begin, begin + length)
            assert len(set(lane[own].tolist())) <= 1
            assert (numpy.diff(steps[own]) == 1).all()
            assert (
                lanes.begins.reshape(-1)[lanes.inverse[own]].tolist()
                == [True, *[False] * (length - 1)][:length]
            )


def test_lanes_of_many_sequences_take_few_tries(random, monkeypatch):
    tries = []
    monkeypatch.setattr(
        "heapq.heapreplace", lambda heap, item, own=heapq.heapreplace: tries.append(own(heap, item))
    )
    lengths = random.integers(20, 60, 2000)
    assert lanes_of(lengths).rows.size <= (1 + WASTE) * lengths.sum()
    assert len(tries) <= 32 * len(lengths)


def test_what_is_known_of_an_axis_waits_for_nothing(session):
    x = sequence.placeholder(tf.float32)
    count = tf.Variable(0.0)
    functions = [sequence.reverse, sequence.past_value, lambda x: sequence.slice(x, 1, 2)]
    with tf.control_dependencies([tf.assign_add(count, 1.0)]):
        later = [function(x) for function in functions]
    session.run(count.initializer)
    session.run([function(x) for function in functions], {x: [[1.0, 2.0], [3.0]]})
    assert session.run(count) == 0.0
    session.run(later, {x: [[1.0, 2.0], [3.0]]})
    assert session.run(count) == 1.0


def test_steps_of_no_features(session):
    x = sequence.placeholder(tf.float32, [0])
    same(
        session.run(x + 1.0, {x: [numpy.ones((2, 0)), numpy.ones((1, 0))]}),
        [numpy.ones((2, 0)), numpy.ones((1, 0))],
    )


# Errors


def test_different_axes_do_not_go_together(session):
    x = sequence.placeholder(tf.float32, [2], sequence_axis=sequence.Axis("words"))
    y = sequence.placeholder(tf.float32, [2], sequence_axis="sentences")
    wrong = [
        lambda: x + y,
        lambda: x * y[:, :1],
        lambda: tf.add_n([x, y]),
        lambda: tf.where(x > 0.0, x, y),
        lambda: tf.concat([x, y], 1),
        lambda: tf.stack([x, y]),
        lambda: tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=y),
        lambda: sequence.gather(x, y[:, 0]),
        lambda: sequence.Recurrence(lambda a, b: a)((x, y)),
        lambda: tf.nn.relu(x) - sequence.reverse(y),
        lambda: sequence.gather(x, x[:, 0] > 0.0) + x,
    ]
    for function in wrong:
        with pytest.raises(ShapeError, match="words") as caught:
            function()
        assert "sentences" in str(caught.value) or "words_where" in str(caught.value)


def test_axes_of_one_name_and_of_other_sizes(session, random):
    x = sequence.placeholder(tf.float32, [2], sequence_axis="words")
    y = sequence.placeholder(tf.float32, [2], sequence_axis=sequence.Axis("words"))
    z = tf.placeholder(tf.float32, [None, 2])
    values = drawn(random, LENGTHS, 2)
    flat = numpy.concatenate(values)
    same(session.run(x + y, {x: values, y: values}), [2 * value for value in values])
    same(session.run(z - x, {x: values, z: flat}), [0 * value for value in values])
    with pytest.raises(ShapeError, match="words"):
        x + tf.ones([4, 2])


def test_errors_of_feeds(session, random):
    x, y = sequence.placeholder(tf.float32, [2], "x"), sequence.placeholder(tf.float32, name="y")
    part = sequence.slice(x, 0, 1)
    wrong = [
        (
            {x: drawn(random, (2, 3), 2), y: drawn(random, (3, 2))},
            r"'sequence'.*'x:0'.*\[2, 3\].*'y:0'.*\[3, 2\]",
        ),
        ({x: drawn(random, (2, 3), 3)}, r"sequence 0 of shape \[2,3\] does not fit"),
        ({x: [numpy.ones((1, 2)), numpy.ones((0, 2))]}, "sequence 1 of shape"),
        ({x: 1.0}, "Feed a list"),
        ({x: []}, "Feed a list"),
        ({part: drawn(random, (2,), 2)}, "computed axis"),
    ]
    for feed, text in wrong:
        with pytest.raises(GraphError, match=text):
            session.run(tf.reduce_sum(x), feed)
    with pytest.raises(GraphError, match="sequence axis"):
        session.compile(x, {x: [3, 2]})
    with pytest.raises(GraphError, match="sequence axis"):
        session.partial_run_setup(x, [x])


def test_sequences_have_steps_of_one_shape(session):
    x = sequence.placeholder(tf.float32, [None], "x")
    with pytest.raises(GraphError, match=r"sequence 1 of shape \[2,4\].*\[1,3\] for 'x:0'"):
        session.run(x + 1.0, {x: [numpy.ones((1, 3)), numpy.ones((2, 4))]})


OF_ROWS = {
    "past_value": sequence.past_value,
    "future_value": sequence.future_value,
    "broadcast_as": lambda x, rows: sequence.broadcast_as(rows, x),
    "Recurrence": lambda x, rows: sequence.Recurrence(tf.add, initial_state=rows)(x),
    "Fold": lambda x, rows: sequence.Fold(tf.add, initial_state=rows)(x),
    "dynamic_rnn": lambda x, rows: tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, initial_state=rows)[0],
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_each_sequence_has_one_row(session, random, name):
    x, rows = sequence.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [None, 2], "rows")
    result = OF_ROWS[name](x, rows)
    session.run(tf.global_variables_initializer())
    values = drawn(random, LENGTHS, 2)
    session.run(result, {x: values, rows: numpy.ones((6, 2))})
    with pytest.raises(InvalidArgumentError, match=r"'rows:0'.*one row for each sequence.*\[7\] \[6\]"):
        session.run(result, {x: values, rows: numpy.ones((7, 2))})
    with pytest.raises(IndexError):
        session.run(result, {x: values, rows: numpy.ones((5, 2))})


@pytest.mark.parametrize("given", [[4, 1], [-1, 2], [1], [1, 2, 3]])
def test_lengths_fit_what_is_padded(session, given):
    x, lengths = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, [None])
    part = sequence.to_sequence(x, lengths)
    for result in (part, sequence.last(part), sequence.Recurrence(tf.add)(part)):
        with pytest.raises(InvalidArgumentError, match="sequence_lens does not fit"):
            session.run(result, {x: numpy.ones((2, 3)), lengths: given})
    same(session.run(part, {x: [[1.0, 2.0], [3.0, 4.0]], lengths: [0, 2]}), [[], [3.0, 4.0]])


def test_errors_of_calls(session):
    x, plain = sequence.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [None, 2])
    for function in (sequence.last, sequence.softmax, sequence.reverse, sequence.delay, sequence.unpack):
        with pytest.raises(ShapeError, match="no sequence axis"):
            function(plain)
    with pytest.raises(ShapeError, match="operand"):
        sequence.broadcast_as(x, x)
    with pytest.raises(ShapeError, match=r"Give \(sequences, steps"):
        sequence.to_sequence(x)
    for lengths in ([1.5, 2.0], [[1, 2]], 1):
        with pytest.raises(ShapeError, match="Give an integer for each sequence"):
            sequence.to_sequence(tf.ones([2, 3]), lengths)
    for function in (sequence.past_value, sequence.future_value, sequence.delay):
        with pytest.raises(TypeError, match="integer"):
            function(x, time_step=1.7)
    with pytest.raises(TypeError, match="integer"):
        sequence.slice(x, 0.9, 1.9)
    for function in (tf.stack, lambda both: tf.concat(both, 1)):
        with pytest.raises(ShapeError, match=r"shape \(words, 2\) beside \(sequence, 2\)"):
            function([x, sequence.placeholder(tf.float32, [2], sequence_axis="words")])
    with pytest.raises(ArgumentError, match="time_step"):
        sequence.past_value(x, time_step=0)
    with pytest.raises(ArgumentError, match="sequence_axis"):
        sequence.placeholder(tf.float32, sequence_axis=3)
    with pytest.raises(ArgumentError, match="lengths of their own"):
        tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, [1, 2], dtype=tf.float32)
    with pytest.raises(ArgumentError, match="the step returns the state"):
        sequence.Recurrence(lambda a, b: (a, b))(x)


def test_an_empty_sequence_has_no_last_step(session):
    x = sequence.placeholder(tf.float32)
    last = sequence.last(sequence.gather(x, x > 1.0))
    assert session.run(last, {x: [[2.0, 3.0], [4.0]]}).tolist() == [3.0, 4.0]
    with pytest.raises(IndexError):
        session.run(last, {x: [[2.0, 3.0], [1.0]]})
    total = sequence.reduce_sum(sequence.gather(x, x > 1.0))
    assert session.run(total, {x: [[2.0, 3.0], [1.0]]}).tolist() == [5.0, 0.0]


def test_scatter_takes_as_many_steps_as_are_true(session):
    x = sequence.placeholder(tf.float32)
    result = sequence.scatter(sequence.gather(x, x > 1.0), x < 2.0)
    same(session.run(result, {x: [[1.0, 3.0], [4.0, 1.0]]}), [[3.0, 0.0], [0.0, 4.0]])
    with pytest.raises(IndexError):
        session.run(result, {x: [[1.0, 1.0], [4.0, 4.0]]})


def test_the_bits_of_plain_code_for_each_sequence(session, random):
    """The twin runs one sequence after another in define-by-run, step by step."""
    x = sequence.placeholder(tf.float32, [4])
    arrays = [
        random.standard_normal(shape).astype(numpy.float32) * 0.5 for shape in ((4, 6), (6,), (6, 6), (6, 3))
    ]
    w, b, u, v = (tf.Variable(array) for array in arrays)
    inner = tf.nn.relu(tf.matmul(x, w) + b)
    step = lambda state, row: tf.tanh(tf.matmul(state, u) + row)
    states = sequence.Recurrence(step, initial_state=tf.zeros([6]))(inner)
    losses = tf.reduce_sum(tf.square(tf.matmul(states, v)), 1)
    session.run(tf.global_variables_initializer())
    values = drawn(random, LENGTHS, 4)
    wanted = [losses, tf.gradients(losses, x)[0], *tf.gradients(losses, [w, b, v, u])]
    found = session.run(wanted, {x: values})

    own = [torch.tensor(value, requires_grad=True) for value in values]
    w, b, u, v = (torch.tensor(array, requires_grad=True) for array in arrays)
    each = []
    for value in own:
        state, rows = torch.zeros(1, 6), []
        for row in torch.relu(value @ w + b):
            state = torch.tanh(state @ u + row)
            rows.append(state)
        each.append(((torch.cat(rows) @ v) ** 2).sum(1))
    sum(one.sum() for one in each).backward()
    same(found[0], [one.detach().numpy() for one in each])
    same(found[1], [value.grad.numpy() for value in own])
    same(found[2:5], [w.grad.numpy(), b.grad.numpy(), v.grad.numpy()])
    # the loop adds its steps in the order of lanes
    numpy.testing.assert_allclose(found[5], u.grad.numpy(), rtol=1e-5, atol=1e-5)
