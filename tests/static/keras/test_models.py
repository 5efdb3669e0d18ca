"""Models of Keras's layers against steps computed with NumPy, and what ``fit`` tells and returns."""

import subprocess
import sys

import numpy
import pytest

import twofold.static as tf

L = tf.keras.layers
R = numpy.random.default_rng(0)
X = R.random((24, 3)).astype("f")
Y = X.sum(1) + 0.5


@pytest.fixture(autouse=True)
def graph():
    tf.keras.backend.clear_session()
    with tf.Graph().as_default() as made:
        yield made


def line(**options):
    """A linear model that begins with ones."""
    model = tf.keras.Sequential([L.Dense(1, kernel_initializer="ones", input_shape=(3,), **options)])
    return model


def test_steps_of_gradient_descent():
    model = line()
    model.compile(tf.keras.optimizers.SGD(lr=0.1, momentum=0.9, decay=0.5), "mse", metrics=["mae"])
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    w, b, mw, mb, steps = numpy.ones(3), 0.0, 0.0, 0.0, 0
    losses, errors = [], []
    for _ in range(2):
        loss = error = 0.0
        for k in range(3):
            x, y = X[8 * k : 8 * k + 8], Y[8 * k : 8 * k + 8]
            off = x @ w + b - y
            loss, error = loss + (off**2).mean() / 3, error + abs(off).mean() / 3
            rate = 0.1 / (1 + 0.5 * steps)
            mw, mb = 0.9 * mw - rate * 2 * off @ x / 8, 0.9 * mb - rate * 2 * off.mean()
            w, b, steps = w + mw, b + mb, steps + 1
        losses.append(loss)
        errors.append(error)
    numpy.testing.assert_allclose(history.history["loss"], losses, rtol=1e-5)
    numpy.testing.assert_allclose(history.history["mean_absolute_error"], errors, rtol=1e-5)
    assert history.epoch == [0, 1]
    kernel, bias = model.get_weights()
    numpy.testing.assert_allclose([*kernel[:, 0], *bias], [*w, b], rtol=1e-5)
    found = [((X @ w + b - Y) ** 2).mean(), abs(X @ w + b - Y).mean()]
    numpy.testing.assert_allclose(model.evaluate(X, Y, verbose=0), found, rtol=1e-5)
    numpy.testing.assert_allclose(model.predict(X)[:, 0], X @ w + b, rtol=1e-5)


FIRST_STEPS = {
    "adam": lambda g: 0.001 * g / (abs(g) + 1e-7 / 0.001**0.5),
    "rmsprop": lambda g: 0.001 * g / (numpy.sqrt(0.1 * g * g) + 1e-7),
    "adagrad": lambda g: 0.001 * g / (numpy.sqrt(g * g) + 1e-7),
    "adadelta": lambda g: 0.001 * g * numpy.sqrt(1e-7) / numpy.sqrt(0.05 * g * g + 1e-7),
    "sgd": lambda g: 0.01 * g,
}


@pytest.mark.parametrize("name", list(FIRST_STEPS))
def test_first_steps(name):
    model = line(use_bias=False)
    model.compile(name, "mse")
    loss = model.train_on_batch(X, Y)
    off = X.sum(1) - Y
    assert loss == pytest.approx((off**2).mean(), rel=1e-5)
    step = FIRST_STEPS[name](2 * off @ X / len(X))
    numpy.testing.assert_allclose(model.get_weights()[0][:, 0], 1 - step, rtol=1e-5)


def test_clipped_gradients():
    model = line(use_bias=False)
    model.compile(tf.keras.optimizers.SGD(1.0, clipvalue=0.01), "mse")
    model.train_on_batch(X, Y)
    numpy.testing.assert_allclose(model.get_weights()[0], 1.01 * numpy.ones([3, 1]), rtol=1e-6)


def cross_entropies(p, classes):
    return -numpy.log(p[numpy.arange(len(p)), classes])


@pytest.mark.parametrize("activation", ["softmax", None])
def test_losses_of_classes(activation):
    classes = R.integers(0, 4, 24)
    model = tf.keras.Sequential([L.Dense(4, activation=activation, input_shape=(3,))])
    sparse = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=activation is None)
    model.compile("sgd", sparse, metrics=["accuracy"])
    kernel, bias = model.get_weights()
    logits = X @ kernel + bias
    p = numpy.exp(logits) / numpy.exp(logits).sum(1, keepdims=True)
    expected = [cross_entropies(p, classes).mean(), (p.argmax(1) == classes).mean()]
    assert model.metrics_names == ["loss", "acc"]
    numpy.testing.assert_allclose(model.evaluate(X, classes, verbose=0), expected, rtol=1e-5)
    if activation:
        model.compile("sgd", "categorical_crossentropy", metrics=["accuracy"])
        rows = tf.keras.utils.to_categorical(classes, 4)
        numpy.testing.assert_allclose(model.evaluate(X, rows, verbose=0), expected, rtol=1e-5)


def test_weights_of_elements_and_classes():
    model = line(use_bias=False)
    model.compile("sgd", "mse")
    squares, weights = (X.sum(1) - Y) ** 2, R.random(24).astype("f")
    found = model.test_on_batch(X, Y, sample_weight=weights)
    assert found == pytest.approx((squares * weights).mean(), rel=1e-5)
    labels = (X[:, 0] > 0.5).astype("f")
    squares = (X.sum(1) - labels) ** 2 * numpy.where(labels > 0, 3.0, 0.5)
    found = model.train_on_batch(X, labels, class_weight={0: 0.5, 1: 3.0})
    assert found == pytest.approx(squares.mean(), rel=1e-5)


def test_penalties_are_part_of_the_loss(graph):
    model = line(use_bias=False, kernel_regularizer=tf.keras.regularizers.l2(0.5))
    model.compile("sgd", "mse")
    assert model.test_on_batch(X, Y) == pytest.approx(((X.sum(1) - Y) ** 2).mean() + 1.5, rel=1e-5)
    assert graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []


def test_connected_layers():
    given = tf.keras.Input([3])
    a, b = L.Dense(2, activation="tanh")(given), L.Dense(2)(given)
    both = L.concatenate([a, L.Lambda(lambda x: x * 2.0)(L.add([a, b]))])
    model = tf.keras.Model(given, [L.Dense(1)(both), b])
    model.compile("adam", ["mse", "mae"], loss_weights=[1.0, 0.5])
    loss = model.fit(X, [Y, X[:, :2]], epochs=2, verbose=0).history["loss"]
    assert loss[1] < loss[0] and len(model.layers) == 7 and len(model.weights) == 6
    one, two = model.predict(X)
    again = tf.keras.backend.get_session().run(model(tf.constant(X)))
    numpy.testing.assert_array_equal(again[0], one)
    numpy.testing.assert_array_equal(again[1], two)
    inner = tf.keras.Sequential([model, L.Lambda(lambda pair: pair[0] + pair[1])])
    assert model.get_layer("dense_1") is model.layers[2]
    numpy.testing.assert_array_equal(inner.predict(X), one + two)
    with pytest.raises(ValueError, match="No such layer"):
        model.get_layer("none")


def test_operations_between_layers():
    given = tf.keras.Input([3])
    doubled = L.Dense(2)(given) * 2.0
    model = tf.keras.Model(given, L.Dense(1)(doubled))
    assert [layer.name for layer in model.layers[1:]] == ["dense", "dense_1"] and model.predict(X).shape == (
        24,
        1,
    )
    with pytest.raises(ValueError, match="Lambda layer"):
        model(tf.constant(X))


class Residual(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.parts = [L.Dense(3), L.BatchNormalization()]
        self.last = L.Dense(1)

    def call(self, inputs, training=None):
        made = inputs
        for part in self.parts:
            made = made + part(made)
        return self.last(made)


def test_models_by_call():
    model = Residual()
    model.compile("adam", "mse")
    loss = model.fit(X, Y, epochs=3, verbose=0).history["loss"]
    assert loss[2] < loss[0] and len(model.weights) == 8 and len(model.trainable_weights) == 6
    moved = model.parts[1].get_weights()[2]
    assert abs(moved).max() > 0
    model.evaluate(X, Y, verbose=0)
    numpy.testing.assert_array_equal(model.parts[1].get_weights()[2], moved)


def test_dropout_only_in_training():
    model = tf.keras.Sequential([L.Dropout(0.5, input_shape=(3,)), L.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    expected = ((X.sum(1) - Y) ** 2).mean()
    assert model.test_on_batch(X, Y) == pytest.approx(expected, rel=1e-5)
    assert model.train_on_batch(X, Y) != pytest.approx(expected, rel=1e-5)
    rate = tf.reduce_sum(model(tf.ones([4, 3]), training=True))
    assert rate.dtype is tf.float32


def test_datasets_and_generators():
    model = line()
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    whole = model.evaluate(X, Y, verbose=0)
    assert model.evaluate(data, verbose=0) == pytest.approx(whole, rel=1e-5)
    numpy.testing.assert_array_equal(model.predict(data), model.predict(X))
    history = model.fit(data.repeat(), epochs=2, steps_per_epoch=3, validation_data=data, verbose=0).history
    assert sorted(history) == ["loss", "val_loss"]
    batches = iter([(X[:8], Y[:8])] * 4)
    assert len(model.fit_generator(batches, steps_per_epoch=2, epochs=2, verbose=0).epoch) == 2


def test_callbacks(tmp_path, capsys):
    model = line()
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    rates = []

    class Seen(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rates.append(float(tf.keras.backend.get_value(self.model.optimizer.lr)))

    told = [
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.0 if epoch else 1e-3),
        tf.keras.callbacks.EarlyStopping("val_loss", patience=2),
        tf.keras.callbacks.ModelCheckpoint(str(tmp_path / "w{epoch}"), save_weights_only=True),
        Seen(),
    ]
    history = model.fit(X, Y, epochs=9, validation_split=0.25, callbacks=told)
    assert history.epoch == [0, 1, 2] and rates == [pytest.approx(1e-3), 0.0, 0.0]
    assert capsys.readouterr().out.startswith("Epoch 1/9 - loss: ")
    kept = model.get_weights()
    model.set_weights([0 * one for one in kept])
    model.load_weights(str(tmp_path / "w3"))
    for one, other in zip(model.get_weights(), kept, strict=True):
        numpy.testing.assert_array_equal(one, other)


AT_ONCE = """
import numpy
import twofold.static as tf
tf.enable_eager_execution()
tf.set_random_seed(0)
L = tf.keras.layers
model = tf.keras.Sequential([L.Dense(4, activation="tanh", input_shape=(3,)), L.BatchNormalization(), L.Dense(1)])
x = numpy.linspace(-1, 1, 96, dtype="f").reshape(32, 3)
y = x.sum(1, keepdims=True)
rule = tf.train.AdamOptimizer(0.05)
losses = []
for _ in range(60):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    rule.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    losses.append(float(loss.numpy()))
assert losses[-1] < 0.1 * losses[0] and len(model.variables) == 8
model.compile("adam", "mse")
found = model.fit(x, y, epochs=2, verbose=0).history["loss"]
assert numpy.isfinite(found).all() and model.predict(x).shape == (32, 1)
given = tf.keras.Input([3])
joined = tf.keras.Model(given, L.add([L.Dense(2)(given), L.Dense(2)(given)]))
assert joined(tf.ones([5, 3])).shape.as_list() == [5, 2]
"""


def test_at_once():
    subprocess.run([sys.executable, "-c", AT_ONCE], check=True)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: line().fit(X, Y), RuntimeError, "compile the model first"),
        (lambda: line().compile("none", "mse"), ValueError, "Unknown optimizer: none"),
        (lambda: line().compile("sgd", "none"), ValueError, "Unknown loss function: none"),
        (lambda: line().save("m", save_format="tf"), ValueError, "simple_save"),
        (lambda: L.Dense(3, activation="none"), ValueError, "Unknown activation"),
        (lambda: L.Dense(), TypeError, "units"),
        (lambda: L.LSTMCell(3, dropout=0.5), ValueError, "not offered"),
        (lambda: L.LSTM(3, stateful=True)(tf.keras.Input([2, 3])), ValueError, "size of a batch"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_summary():
    lines = []
    line().summary(print_fn=lines.append)
    text = "\n".join(lines)
    assert "dense (Dense)" in text and "(None, 1)" in text and "Total params: 4" in text


def test_weights_are_not_written_over_without_asking(tmp_path):
    model, path = line(), str(tmp_path / "w")
    model.save_weights(path, overwrite=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save_weights(path, overwrite=False)
    model.save_weights(path)


def test_callbacks_tell_what_they_do(tmp_path, capsys):
    model = line()
    model.compile("sgd", "mse")
    told = [
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.0, verbose=1),
        tf.keras.callbacks.ModelCheckpoint(str(tmp_path / "w"), save_weights_only=True, verbose=1),
        tf.keras.callbacks.EarlyStopping("loss", patience=1, verbose=1),
    ]
    model.fit(X, Y, epochs=9, verbose=0, callbacks=told)
    each = [
        f"Epoch {k}: {text}" for k in (1, 2) for text in ("learning rate 0.0", f"saved to {tmp_path / 'w'}")
    ]
    assert capsys.readouterr().out.splitlines() == [*each, "Epoch 2: early stopping"]


def test_batches_are_shuffled_whole():
    seen = []

    class Seen(tf.keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            seen.append(logs["size"])

    model = line()
    model.compile("sgd", "mse")
    inputs = []
    run = model._run
    model._run = lambda batch, training: (inputs.append(batch.inputs[0][:, 0]), run(batch, training))[1]
    numpy.random.seed(1)  # noqa: NPY002
    rows = numpy.repeat(numpy.arange(10.0)[:, None], 3, 1)
    model.fit(rows, rows[:, 0], batch_size=4, shuffle="batch", verbose=0, epochs=6, callbacks=[Seen()])
    starts = [[int(one[0]) for one in inputs[k : k + 3]] for k in range(0, 18, 3)]
    assert (
        all(sorted(one) == [0, 4, 8] and one[2] == 8 for one in starts)
        and len({tuple(one) for one in starts}) == 2
    )
    assert all((numpy.diff(one) == 1).all() for one in inputs) and seen == [4, 4, 2] * 6


def test_initializers_by_name_are_objects():
    made = tf.keras.initializers.get("glorot_uniform")
    assert made.get_config()["seed"] is None
    found = tf.keras.backend.get_session().run(made([40, 20]))
    assert abs(found).max() <= 0.1**0.5 and found.shape == (40, 20)


def test_ends_of_models():
    given = tf.keras.Input([3])
    model = tf.keras.Model(given, [L.Dense(2)(given), L.Dense(1)(given)])
    assert (
        model.input is given
        and model.output[1] is model.outputs[1]
        and model.output_shape == [(None, 2), (None, 1)]
    )
    outside = tf.keras.Model(given, L.Dense(2)(given) * 2.0)
    with pytest.raises(ValueError, match="Lambda layer"):
        outside(tf.constant(X))
    model.compile("sgd")
    with pytest.raises(ValueError, match="there is no loss"):
        model.fit(X, verbose=0)


def test_layers_inside_are_frozen_and_trained_again():
    base = tf.keras.Sequential([L.Dense(2, input_shape=(3,)), L.Dense(2, trainable=False)])
    model = tf.keras.Model(base.input, L.Dense(1)(base.output))
    assert len(model.trainable_weights) == 4
    base.trainable = False
    assert len(model.trainable_weights) == 2 and not base.layers[0].trainable
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.train_on_batch(X, Y)
    assert [(one == two).all() for one, two in zip(before, model.get_weights())] == [True] * 4 + [False] * 2
    base.trainable = True
    model.compile("sgd", "mse")
    model.train_on_batch(X, Y)
    assert not any((one == two).all() for one, two in zip(before, model.get_weights()))
