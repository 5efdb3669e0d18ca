"""Keras's cells and the layer over their steps, beside the layers of one piece and NumPy."""

import numpy
import pytest

import twofold.static as tf

layers = tf.keras.layers
X = numpy.random.default_rng(0).standard_normal((2, 5, 3)).astype("f")


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
def test_a_cell_over_its_steps_is_the_layer(session, kind):
    whole = getattr(layers, kind)(4, return_sequences=True, return_state=True)
    cell = getattr(layers, f"{kind}Cell")(4)
    stepped = layers.RNN(cell, return_sequences=True, return_state=True)
    one, two = whole(X), stepped(X)
    session.run(tf.global_variables_initializer())
    assert [w.shape.as_list() for w in stepped.weights] == [w.shape.as_list() for w in whole.weights]
    for mine, other in zip(cell.trainable_weights, whole.trainable_weights):
        session.run(tf.assign(mine, other))
    for mine, other in zip(session.run(two), session.run(one)):
        numpy.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_a_step_and_its_first_state(session):
    cell = layers.SimpleRNNCell(4, activation="tanh")
    state = cell.get_initial_state(tf.constant(X[:, 0]))
    output, (new,) = cell(X[:, 0], [state + 1.0])
    session.run(tf.global_variables_initializer())
    found, again, (kernel, recurrent, bias) = session.run([output, new, cell.weights])
    wanted = numpy.tanh(X[:, 0] @ kernel + numpy.ones((2, 4)) @ recurrent + bias)
    numpy.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_array_equal(found, again)
    assert (cell.state_size, cell.output_size) == (4, 4)
    assert layers.LSTMCell(3).state_size == [3, 3]


def test_cells_upon_each_other_and_backwards(session):
    made = layers.RNN([layers.GRUCell(4), layers.LSTMCell(6)], return_state=True, go_backwards=True)
    last, gru, lstm = made(X)
    first, second = layers.GRU(4, return_sequences=True), layers.LSTM(6)
    wanted = second(first(X[:, ::-1]))
    session.run(tf.global_variables_initializer())
    for mine, other in zip(made.weights, [*first.weights, *second.weights]):
        session.run(tf.assign(mine, other))
    numpy.testing.assert_allclose(session.run(last), session.run(wanted), rtol=1e-5, atol=1e-6)
    assert len(lstm) == 2 and gru.shape.as_list() == [2, 4]


def test_a_cell_of_the_user_s_own(session):
    class Sum(layers.AbstractRNNCell):
        state_size = output_size = 3

        def call(self, inputs, states):
            return inputs + states[0], [inputs + states[0]]

    made = layers.RNN(Sum(), return_sequences=True)(X, initial_state=[numpy.ones((2, 3), "f")])
    numpy.testing.assert_allclose(session.run(made), 1 + X.cumsum(1), rtol=1e-5)
    early = layers.RNN(Sum(), time_major=True)(X)
    numpy.testing.assert_allclose(session.run(early), X.sum(0), rtol=1e-5)


def test_what_is_not_offered_raises():
    with pytest.raises(ValueError, match="not offered"):
        layers.LSTMCell(3, dropout=0.5)
    with pytest.raises(ValueError, match="size of a batch"):
        layers.RNN(layers.LSTMCell(3), stateful=True)(tf.keras.Input([2, 3]))
