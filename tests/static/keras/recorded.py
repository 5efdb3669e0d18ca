"""Calls and short programs of Keras, and what TensorFlow makes of them.

Calls are the lines of ``recorded.txt``; in them stand ``K`` for ``tf.keras.backend``, ``M``, ``O``, ``S`` and ``L`` for
its metrics, optimizers, losses and layers, ``t`` for the module, ``D`` for random numbers of a shape, and arrays by
upper-case names. What TensorFlow returned is recorded in ``recorded.json`` by running this file where it is installed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_suffix(".json")


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.RandomState(seed).randn(*shape).astype("f")


A, B, C = drawn(2, 3, 4), drawn(2, 4, 5, seed=1), drawn(4, 5, seed=2)
X, Y = drawn(3, 4, seed=3), drawn(3, 4, seed=4)
P, Q = (abs(one) / abs(one).sum(-1, keepdims=True) for one in (X, Y))
U = np.random.RandomState(5).rand(3, 4).astype("f")
I, V = drawn(2, 4, 3, 2, seed=6), drawn(1, 3, 4, 3, 2, seed=7)
T = drawn(4, 5, 3, seed=8)
N, W, W2 = np.array([1, 0, 3]), np.array([1, 2, 0], "f"), np.array([[1], [2], [0]], "f")
KEPT = np.array([[False, True, False], [True, True, False]])
NUMBERS = np.array([[1, 2, 0, 0], [3, 4, 5, 0], [0, 0, 0, 0]])
ARRAYS = {name: value for name, value in list(globals().items()) if isinstance(value, np.ndarray)}


def rows_of(kind: str) -> list[str]:
    """The lines of ``recorded.txt`` below a heading."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in text[2:].split("\n# "))
    return sections[kind].splitlines()


def names(tf: Any) -> dict[str, Any]:
    keras = tf.keras
    modules = {
        "K": keras.backend,
        "S": keras.losses,
        "M": keras.metrics,
        "O": keras.optimizers,
        "L": keras.layers,
    }
    return {"t": tf, "np": np, "D": lambda *shape: tf.constant(drawn(*shape)), **modules, **ARRAYS}


def given_values(model: Any, seed: int = 1) -> None:
    """Let variables begin with given values."""
    random = np.random.RandomState(seed)
    model.set_weights([random.rand(*value.shape) * 0.5 for value in model.get_weights()])


def call(tf: Any, text: str) -> Any:
    made = eval(
        text, {**names(tf), **{key: tf.constant(value) for key, value in ARRAYS.items() if key not in "NW"}}
    )
    session = tf.keras.backend.get_session()
    return session.run(list(made) if isinstance(made, tuple) else made)


def layer(tf: Any, text: str) -> Any:
    made, _, inputs = text.partition("@")
    built = eval(f"L.{made}", names(tf))
    given = eval(f"[{inputs}]", names(tf))
    outputs = built([tf.constant(one) for one in given] if len(given) > 1 else tf.constant(given[0]))
    session = tf.keras.backend.get_session()
    given_values(built)
    return session.run(outputs)


def metric(tf: Any, text: str) -> Any:
    made = eval(f"M.{text}", names(tf))
    labels, found = tf.constant([[0], [1], [1], [0], [1]]), tf.constant([[0.1], [0.6], [0.4], [0.7], [0.9]])
    weighted = made.update_state(labels, found, sample_weight=tf.constant([1.0, 2.0, 0.5, 1.0, 1.0]))
    plain, result = made.update_state(labels, found), made.result()
    session = tf.keras.backend.get_session()
    session.run([one.initializer for one in made.variables])
    results = []
    for update in (weighted, plain):
        session.run(update)
        results.append(session.run(result))
    made.reset_states()
    return [made.name, *results, session.run(result)]


def steps(tf: Any, text: str) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(7, 3, input_length=2), layers.Flatten(), layers.Dense(1)])
    given_values(model)
    model.compile(eval(f"O.{text}", names(tf)), "mse")
    found = [model.train_on_batch(np.array([[k, 3]]), np.ones((1, 1))) for k in range(4)]
    return [found, model.get_weights()]


def _histories(model: Any, *args: Any, **options: Any) -> Any:
    history = model.fit(*args, shuffle=False, verbose=0, **options).history
    return {key: [float(one) for one in values] for key, values in history.items()}


def several_outputs(tf: Any) -> Any:
    layers = tf.keras.layers
    a, b = layers.Input([2], name="a"), layers.Input([3], name="b")
    model = tf.keras.Model(
        [a, b], [layers.Dense(1, name="y")(layers.concatenate([a, b])), layers.Dense(2, name="z")(b)]
    )
    given_values(model)
    losses, metrics = {"z": "mse", "y": "mae"}, {"z": ["mae", "mse"], "y": "mse"}
    model.compile("sgd", loss=losses, loss_weights={"y": 0.5, "z": 2.0}, metrics=metrics)
    inputs, labels = (
        {"b": drawn(10, 3), "a": drawn(10, 2)},
        {"z": drawn(10, 2, seed=1), "y": drawn(10, 1, seed=1)},
    )
    found = _histories(model, inputs, labels, epochs=2, batch_size=4)
    return [found, model.metrics_names, model.evaluate(inputs, labels, verbose=0), model.predict(inputs)]


def classes(tf: Any) -> Any:
    results = []
    for loss, labels in (
        ("categorical_crossentropy", np.eye(3)[np.arange(10) % 3]),
        ("sparse_categorical_crossentropy", np.arange(10) % 3),
        ("binary_crossentropy", np.eye(3)[np.arange(10) % 3]),
    ):
        layers, metrics = tf.keras.layers, tf.keras.metrics
        model = tf.keras.Sequential([layers.Dense(3, activation="softmax", input_shape=(4,))])
        given_values(model)
        more = [] if labels.ndim == 1 else [metrics.Precision(), metrics.AUC(num_thresholds=5)]
        model.compile("adam", loss, metrics=["accuracy", "mae", "crossentropy", *more])
        results.append(_histories(model, drawn(10, 4), labels, epochs=2, batch_size=4, validation_split=0.3))
        results.append(model.evaluate(drawn(10, 4), labels, verbose=0, batch_size=4))
    return results


def masks(tf: Any) -> Any:
    layers = tf.keras.layers
    numbers = layers.Input([4], dtype="int32")
    steps = layers.LSTM(4, return_sequences=True)(layers.Embedding(7, 3, mask_zero=True)(numbers))
    ends = [
        steps,
        layers.GRU(2)(steps),
        layers.GlobalAveragePooling1D()(steps),
        layers.TimeDistributed(layers.Dense(2))(steps),
    ]
    model = tf.keras.Model(numbers, ends)
    given_values(model)
    found = model.predict(NUMBERS)[:2]
    trained = tf.keras.Model(numbers, ends[-1])
    trained.compile("sgd", "mse", metrics=["mae"])
    return [found, _histories(trained, NUMBERS, drawn(3, 4, 2), epochs=2, batch_size=3)]


def cells(tf: Any) -> Any:
    layers = tf.keras.layers
    given = layers.Input([5, 3])
    kept = layers.Masking()(given)
    outputs = layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)], return_sequences=True, return_state=True)(
        kept
    )
    model = tf.keras.Model(given, [*outputs, layers.Bidirectional(layers.RNN(layers.SimpleRNNCell(2)))(kept)])
    given_values(model)
    data = T.copy()
    data[0, 3:] = 0
    return model.predict(data)


def penalties(tf: Any) -> Any:
    keras = tf.keras
    penalty = {"kernel_regularizer": keras.regularizers.l1_l2(0.1, 0.2), "bias_regularizer": "l2"}
    first = keras.layers.Dense(
        3, input_shape=(4,), activity_regularizer=keras.regularizers.l2(0.3), **penalty
    )
    model = keras.Sequential([first, keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    given_values(model)
    model.compile("sgd", "mse")
    found = _histories(model, drawn(8, 4), drawn(8, 1), epochs=2, batch_size=4)
    first.trainable = False
    model.compile("sgd", "mse")
    return [found, _histories(model, drawn(8, 4), drawn(8, 1), batch_size=4), model.get_weights()]


def states_are_kept(tf: Any) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.LSTM(3, stateful=True, batch_input_shape=(4, 5, 3)), layers.Dense(1)])
    given_values(model)
    found = [model.predict(T, batch_size=4) for _ in range(2)]
    model.reset_states()
    return [*found, model.predict(T, batch_size=4)]


def batches(tf: Any) -> Any:
    class Numbered(tf.keras.utils.Sequence):  # type: ignore[misc]
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return drawn(3 + index % 2, 4, seed=index), drawn(3 + index % 2, 1, seed=index)

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    given_values(model)
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit_generator(Numbered(), epochs=2, verbose=0, shuffle=False).history
    found = {key: [float(one) for one in values] for key, values in history.items()}
    data = tf.data.Dataset.from_tensor_slices((drawn(10, 4), drawn(10, 1))).batch(4)
    later = _histories(
        model, data.repeat(), epochs=2, steps_per_epoch=3, validation_data=data, validation_steps=3
    )
    return [found, model.evaluate_generator(Numbered()), model.predict_generator(Numbered()), later]


def plateaus(tf: Any) -> Any:
    calls = tf.keras.callbacks
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    given_values(model)
    model.compile(tf.keras.optimizers.SGD(0.9), "mse")
    told = [
        calls.EarlyStopping("loss", patience=2, restore_best_weights=True),
        calls.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_lr=0.1),
        calls.TerminateOnNaN(),
    ]
    return [
        _histories(model, drawn(8, 4), drawn(8, 1), epochs=9, batch_size=4, callbacks=told),
        model.get_weights(),
    ]


def words(tf: Any) -> Any:
    text, sequence = tf.keras.preprocessing.text, tf.keras.preprocessing.sequence
    texts, results = ["The cat, the dog.", "A dog! And a bird", ["a", "Cat"]], []
    for options in (
        {},
        {"num_words": 4, "oov_token": "?"},
        {"char_level": True, "lower": False},
        {"num_words": 3},
    ):
        made = text.Tokenizer(**options)
        made.fit_on_texts(texts)
        numbers = made.texts_to_sequences([*texts, "a new dog"])
        results += [list(made.word_index), numbers, made.sequences_to_texts(numbers), made.document_count]
        results += [made.texts_to_matrix(texts, mode) for mode in ("binary", "count", "freq", "tfidf")]
    results += [text.hashing_trick("one two one", 10, "md5"), sequence.make_sampling_table(7)]
    series = np.arange(20.0)
    for options in (
        {},
        {"sampling_rate": 2, "stride": 3},
        {"start_index": 2, "end_index": 15, "reverse": True},
    ):
        windows = sequence.TimeseriesGenerator(series, series * 2, length=4, batch_size=3, **options)
        results += [len(windows), *windows[0], *windows[1]]
    return results


def losses_of_the_model(tf: Any) -> Any:
    layers, K = tf.keras.layers, tf.keras.backend
    given = layers.Input([4])
    made = layers.Dense(4, kernel_constraint=tf.keras.constraints.MinMaxNorm(0.2, 0.8, rate=0.5))(
        layers.Dense(2)(given)
    )
    model = tf.keras.Model(given, made)
    model.add_loss(K.mean(K.square(made - given)))
    given_values(model)
    model.compile("sgd")
    history = model.fit(drawn(8, 4), epochs=2, verbose=0, shuffle=False, batch_size=4).history
    shapes = [list(model.input_shape), list(model.output_shape), list(model.layers[1].input_shape)]
    return [[float(one) for one in history["loss"]], model.predict(drawn(2, 4)), [str(one) for one in shapes]]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    one.__name__: one
    for one in (
        several_outputs,
        classes,
        masks,
        cells,
        penalties,
        states_are_kept,
        batches,
        plateaus,
        words,
        losses_of_the_model,
    )
}
KINDS: dict[str, tuple[list[str], Callable[[Any, str], Any]]] = {
    "calls": (rows_of("calls"), call),
    "layers": (rows_of("layers"), layer),
    "metrics": (rows_of("metrics"), metric),
    "optimizers": (rows_of("optimizers"), steps),
    "programs": (list(PROGRAMS), lambda tf, name: PROGRAMS[name](tf)),
}


def plain(value: Any) -> Any:
    """A result as JSON holds it."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return value
    found = np.asarray(value)
    return [str(found.dtype) if found.dtype.kind != "f" else "float", found.astype(float).round(6).tolist()]


def run(tf: Any, kind: str, name: str) -> Any:
    """The result of a call or program in a graph of its own."""
    tf.keras.backend.clear_session()
    with tf.Graph().as_default():
        return plain(KINDS[kind][1](tf, name))


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow  # type: ignore[import-not-found,import-untyped]

    tensorflow.compat.v1.logging.set_verbosity("ERROR")
    recorded = {
        kind: {name: run(tensorflow, kind, name) for name in rows} for kind, (rows, _) in KINDS.items()
    }
    RECORDED.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")
    sys.stdout.write(f"{sum(map(len, recorded.values()))} results\n")
