"""Unknown sizes: one program for all of them, the numbers of known ones, and no new machine code."""

import numpy
import pytest

import twofold
import twofold.static as tf
from twofold.compiler import jit


def network(batch):
    x, y = tf.placeholder(tf.float32, [batch, 8]), tf.placeholder(tf.int64, [batch])
    random = numpy.random.default_rng(0)
    w = tf.Variable(random.standard_normal((8, 5)).astype("f"))
    flat = tf.reshape(tf.reshape(x, [-1, 2, 4]), [tf.shape(x)[0], 8])
    logits = tf.matmul(tf.nn.relu(flat), w)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return x, y, loss, tf.gradients(loss, w)[0], tf.train.GradientDescentOptimizer(0.1).minimize(loss)


@pytest.mark.parametrize("batch", [1, 2, 7, 33])
def test_unknown_sizes_give_the_bits_of_known_ones(batch):
    random = numpy.random.default_rng(batch)
    xs, ys = random.standard_normal((batch, 8)).astype("f"), random.integers(0, 5, batch)
    found = []
    for size in (None, batch):
        with tf.Graph().as_default(), tf.Session() as session:
            x, y, loss, gradient, train = network(size)
            session.run(tf.global_variables_initializer())
            found.append(
                [value.tobytes() for value in session.run([loss, gradient, train], {x: xs, y: ys})[:2]]
            )
    assert found[0] == found[1]


def test_a_new_batch_size_compiles_no_machine_code(monkeypatch):
    random = numpy.random.default_rng(0)

    def feed(batch):
        return {x: random.standard_normal((batch, 8)).astype("f"), y: random.integers(0, 5, batch)}

    with tf.Graph().as_default(), tf.Session() as session:
        x, y, loss, _, train = network(None)
        session.run(tf.global_variables_initializer())
        for batch in (20, 33, 47):
            for _ in range(3):
                session.run([loss, train], feed(batch))
            twofold.wait_for_compiler()

        def compiled(self, texts):
            raise AssertionError(f"machine code for a new size: {list(texts)}")

        monkeypatch.setattr(jit.Jit, "_compile", compiled)
        for batch in (21, 50, 64):
            for _ in range(3):
                session.run([loss, train], feed(batch))
            twofold.wait_for_compiler()


def test_shapes_that_are_computed():
    with tf.Graph().as_default(), tf.Session() as session:
        x, n = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [])
        rows = tf.shape(x)[0]
        fetches = [
            tf.zeros([rows, 2]),
            tf.random_normal(tf.shape(x)),
            tf.fill([rows * 2], 7.0),
            tf.one_hot(tf.range(rows), 4),
            tf.tile(x, [1, rows]),
            tf.reshape(x, tf.stack([3, rows])),
            tf.slice(x, [0, 1], [rows, 2]),
            tf.shape(x),
            tf.size(x),
        ]
        for count in (2, 5):
            shapes = [numpy.shape(value) for value in session.run(fetches, {x: numpy.ones((count, 3))})]
            assert shapes == [
                (count, 2),
                (count, 3),
                (2 * count,),
                (count, 4),
                (count, 3 * count),
                (3, count),
                (count, 2),
                (2,),
                (),
            ]
        for count in (3, 4):
            assert session.run(tf.range(n) * 2, {n: count}).tolist() == [2 * k for k in range(count)]
            assert session.run(tf.reshape(x, [n, -1]), {n: count, x: numpy.ones((4, 3))}).shape == (
                count,
                12 // count,
            )


def test_losses_of_tensors_of_unknown_rank():
    with tf.Graph().as_default(), tf.Session() as session:
        labels, logits = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        feeds = {labels: [[0.0, 1.0]], logits: [[2.0, 2.0]]}
        assert session.run(loss, feeds)[0] == pytest.approx(0.6931472)


def test_a_fed_rate_keeps_the_shape_of_dropout():
    with tf.Graph().as_default():
        x, keep = tf.placeholder(tf.float32, [None, 7]), tf.placeholder(tf.float32)
        made = [
            tf.nn.dropout(x, keep),
            tf.nn.dropout(x, rate=1 - keep),
            tf.layers.dropout(x, keep, training=True),
        ]
        assert [tensor.shape.as_list() for tensor in made] == [[None, 7]] * 3


def test_labels_of_unknown_rank():
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=y)
        assert loss.shape.as_list() == [None]
        found = session.run(loss, {x: numpy.eye(3), y: [0, 1, 2]})
        assert numpy.allclose(found, numpy.log(numpy.exp(1) + 2) - 1)


def test_zeros_and_ones_like_numbers():
    with tf.Graph().as_default(), tf.Session() as session:
        made = session.run([tf.zeros_like(19), tf.ones_like(3, tf.float32), tf.ones_like([[1.0], [2.0]])])
        assert made[0] == 0 and made[0].dtype == numpy.int32
        assert made[1] == 1.0 and made[1].dtype == numpy.float32 and made[2].shape == (2, 1)


def test_tuples_are_fed_with_tuples():
    with tf.Graph().as_default(), tf.Session() as session:
        a, b, c = (tf.placeholder(tf.float32) for _ in range(3))
        assert session.run(a + b * c, {(a, (b, c)): (1.0, [2.0, 3.0])}) == 7.0
        state = tf.nn.rnn_cell.BasicLSTMCell(3).zero_state(2, tf.float32)
        fed = session.run(state.c + state.h, {state: (numpy.ones((2, 3)), numpy.ones((2, 3)))})
        assert (fed == 2).all()
        with pytest.raises(ValueError, match="1 values for 2 tensors"):
            session.run(a + b, {(a, b): (1.0,)})
