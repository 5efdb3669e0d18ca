"""Recurrent layers named after graphics processors; PyTorch's equations in NumPy are the reference."""

import numpy
import pytest

import twofold.static as tf

TIME, BATCH, WIDTH, UNITS = 5, 2, 3, 4
X = numpy.random.default_rng(0).standard_normal((TIME, BATCH, WIDTH)).astype("f")


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def lstm(x, h, c, kernel, bias):
    i, g, f, o = numpy.split(numpy.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
    return sigmoid(o) * numpy.tanh(c), c


def gru(x, h, c, gates, gate_bias, into, into_bias, hidden, hidden_bias):
    r, u = numpy.split(sigmoid(numpy.concatenate([x, h], 1) @ gates + gate_bias), 2, 1)
    candidate = numpy.tanh(x @ into + into_bias + r * (h @ hidden + hidden_bias))
    return (1 - u) * candidate + u * h, c


def over(step, x, h, c, weights, back=False):
    outputs = []
    for row in x[::-1] if back else x:
        h, c = step(row, h, c, *weights)
        outputs.append(h)
    return numpy.array(outputs[::-1] if back else outputs), h, c


@pytest.mark.parametrize("kind, step, count", [("CudnnLSTM", lstm, 2), ("CudnnGRU", gru, 6)])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_layers_equal_their_equations(kind, step, count, direction):
    dirs = 1 + (direction == "bidirectional")
    start = numpy.random.default_rng(1).standard_normal((2, 2 * dirs, BATCH, UNITS)).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        layer = getattr(tf.contrib.cudnn_rnn, kind)(
            2, UNITS, direction=direction, bias_initializer=tf.random_normal_initializer(seed=3)
        )
        given = (start[0], start[1]) if kind == "CudnnLSTM" else (start[0],)
        outputs, state = layer(tf.constant(X), given, training=False)
        session.run(tf.global_variables_initializer())
        found, states = session.run([outputs, state])
        weights = session.run(layer.variables)
        assert len(weights) == 2 * dirs * count == len(layer.trainable_variables)
    x, last = X, []
    for number in range(2):
        made = []
        for way in range(dirs):
            k = number * dirs + way
            own = weights[k * count : (k + 1) * count]
            made.append(over(step, x, start[0, k], start[1, k], own, back=way == 1))
        x = numpy.concatenate([one[0] for one in made], 2)
        last += [one[1:] for one in made]
    numpy.testing.assert_allclose(found, x, rtol=1e-4, atol=1e-5)
    for part in range(len(states)):
        numpy.testing.assert_allclose(states[part], [one[part] for one in last], rtol=1e-4, atol=1e-5)


def test_variables_have_the_names_of_tensorflow_s_checkpoints():
    with tf.Graph().as_default():
        tf.contrib.cudnn_rnn.CudnnLSTM(2, UNITS)(X)
        tf.contrib.cudnn_rnn.CudnnGRU(1, UNITS, direction="bidirectional", name="g")(X)
        names = [variable.op.name for variable in tf.trainable_variables()]
        assert names[1] == "cudnn_lstm/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/bias"
        way = "g/stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/cudnn_compatible_gru_cell"
        assert names[4:7:2] == [f"{way}/gates/kernel", f"{way}/candidate/input_projection/kernel"]


def test_outputs_between_layers_are_dropped_while_training():
    with tf.Graph().as_default(), tf.Session() as session:
        layer = tf.contrib.cudnn_rnn.CudnnRNNTanh(2, 50, dropout=0.5, seed=1)
        training = tf.placeholder(tf.bool, [])
        outputs, _ = layer(X, training=training)
        session.run(tf.global_variables_initializer())
        kept, again = (session.run(outputs, {training: False}) for _ in range(2))
        numpy.testing.assert_array_equal(kept, again)
        assert not numpy.allclose(session.run(outputs, {training: True}), kept)
        alone = layer(X, training=False)[0]
        numpy.testing.assert_allclose(session.run(alone), kept, rtol=1e-6)


@pytest.mark.parametrize("options", [{"input_mode": "skip_input"}, {"direction": "both"}])
def test_other_options_raise(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        tf.contrib.cudnn_rnn.CudnnLSTM(1, 2, **options)
