"""Feature columns beside values worked out by hand, and buckets beside those that TensorFlow's own tests write down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.static.strings.fingerprint import fingerprint64
from twofold.static.strings.hash_buckets import crossed

fc = tf.feature_column


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _run(made: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(made)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0x9AE16A3B2F90404F),
        ("abcdefgh", 0xFEE9D22990C82909),
        ("0123456789+0123456", 11865776521063717196),
        ("Discard medicine more than two years old.", 16787337721249783077),
        ("It's well we cannot hear the screams/That we create in others' dreams.", 2127229703280164532),
        (
            "The fugacity of a constituent in a mixture of gases at a given temperature is proportional to its mole "
            "fraction.  Lewis-Randall Rule",
            688768620960278810,
        ),
    ],
)
def test_fingerprints_are_those_of_farmhash(text: str, expected: int) -> None:
    assert fingerprint64(text.encode()) == expected


def test_buckets_are_those_of_tensorflow() -> None:
    assert _run(tf.strings.to_hash_bucket_fast(["a", "b", "c", "d"], 10)).tolist() == [9, 2, 2, 5]
    words = [[f"batch1-FC{k}-F1"] for k in (1, 2, 3)]
    sparse = [tf.SparseTensor([[0, 0]], word, [1, 1]) for word in words]
    assert _run(crossed(sparse, 100, 0xDECAFCAFFE)).values.tolist() == [83]
    assert _run(crossed(sparse, 2**63 - 1, 0xDECAFCAFFE)).values.tolist() == [1971693436396284976]
    dense_last = [tf.constant([words[2]]), *sparse[:2]]
    assert _run(crossed(dense_last, 100, 0xDECAFCAFFE)).values.tolist() == [83]


def _features() -> dict[str, Any]:
    return {
        "age": numpy.array([[20.0], [35.0], [60.0]], numpy.float32),
        "letter": numpy.array(["a", "b", "other"]),
        "day": numpy.array([1, 2, 7]),
        "words": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["x", "y", "x"], [3, 2]),
        "weights": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, 3.0], [3, 2]),
    }


def test_dense_columns_are_side_by_side_by_name() -> None:
    age = fc.numeric_column("age", normalizer_fn=lambda x: x / 10.0)
    bucket = fc.bucketized_column(age, [3.0, 6.0])
    letter = fc.categorical_column_with_vocabulary_list("letter", ["a", "b"])
    day = fc.categorical_column_with_identity("day", 3, default_value=0)
    words = fc.weighted_categorical_column(
        fc.categorical_column_with_vocabulary_list("words", ["x", "y"]), "weights"
    )
    columns = [*map(fc.indicator_column, (words, letter, day)), bucket, age]
    expected = [
        [2.0, 1, 0, 0, 0, 1, 0, 1, 0, 0.5, 2.0],
        [3.5, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0],
        [6.0, 0, 0, 1, 1, 0, 0, 0, 0, 3.0, 0],
    ]
    assert _run(fc.input_layer(_features(), columns)).tolist() == expected


def test_embeddings_combine_rows_and_share_tables() -> None:
    table = numpy.arange(6, dtype=numpy.float32).reshape(3, 2)
    words = fc.categorical_column_with_vocabulary_list("words", ["x", "y"], num_oov_buckets=1)
    weighted = fc.weighted_categorical_column(words, "weights")
    made: dict[Any, Any] = {}
    options = {"initializer": tf.constant_initializer(table)}
    column = fc.embedding_column(weighted, 2, "mean", **options)
    shared = fc.shared_embedding_columns([words, fc.categorical_column_with_identity("day", 3)], 2, **options)
    features = {**_features(), "day": numpy.array([0, 2, 1])}
    dense = fc.input_layer(features, column, cols_to_vars=made)
    mean = (0.5 * table[0] + 2.0 * table[1]) / 2.5
    assert _run(dense) == pytest.approx(numpy.stack([mean, [0, 0], table[0]]))
    assert [variable.name for variable in made[column]] == [
        "input_layer/words_weighted_by_weights_embedding/embedding_weights:0"
    ]
    both = _run(fc.input_layer(features, shared))
    assert both[:, :2].tolist() == table[[0, 2, 1]].tolist()
    assert both[:, 2:] == pytest.approx(numpy.stack([table[:2].mean(0), [0, 0], table[0]]))
    assert len(tf.trainable_variables()) == 2


def test_a_linear_model_learns_by_gradients_of_counts() -> None:
    age = fc.numeric_column("age")
    bucket = fc.bucketized_column(age, [30, 60])
    letter = fc.categorical_column_with_hash_bucket("letter", 4)
    cross = fc.crossed_column(["letter", bucket], 5)
    made = fc.linear_model(_features(), [age, bucket, letter, cross], units=2)
    slopes = tf.gradients(tf.reduce_sum(made), tf.trainable_variables())
    names = [variable.name for variable in tf.trainable_variables()]
    found = dict(zip(names, _run([tf.convert_to_tensor(slope) for slope in slopes])))
    buckets = [fingerprint64(text) % 4 for text in (b"a", b"b", b"other")]
    assert _run(made).tolist() == [[0.0, 0.0]] * 3
    assert found["linear_model/age/weights:0"].tolist() == [[115.0, 115.0]]
    assert found["linear_model/age_bucketized/weights:0"].tolist() == [[1.0, 1.0]] * 3
    assert (
        found["linear_model/letter/weights:0"][:, 0].tolist() == numpy.bincount(buckets, minlength=4).tolist()
    )
    assert found["linear_model/age_bucketized_X_letter/weights:0"].sum() == 6.0
    assert found["linear_model/bias_weights:0"].tolist() == [3.0, 3.0]


def test_empty_strings_and_minus_one_stand_for_nothing() -> None:
    letter = fc.indicator_column(
        fc.categorical_column_with_vocabulary_list("letter", ["a"], num_oov_buckets=1)
    )
    day = fc.indicator_column(fc.categorical_column_with_identity("day", 2))
    features = {"letter": [["a", ""], ["", ""]], "day": [[-1, 1], [0, 0]]}
    assert _run(fc.input_layer(features, [letter, day])).tolist() == [[0, 1, 1, 0], [2, 0, 0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, 2\)"):
        _run(fc.input_layer({"day": [2]}, day))


def test_what_columns_refuse() -> None:
    age = fc.numeric_column("age")
    letter = fc.categorical_column_with_hash_bucket("letter", 4)
    for wrong in (
        lambda: fc.input_layer(_features(), [letter]),
        lambda: fc.input_layer(_features(), [age, age]),
        lambda: fc.input_layer({}, [age]),
        lambda: fc.bucketized_column(age, [2, 1]),
        lambda: fc.crossed_column([letter, "day"], 5),
        lambda: fc.embedding_column(letter, 2, combiner="max"),
        lambda: fc.indicator_column(age),
        lambda: fc.input_layer(
            _features(), fc.indicator_column(fc.categorical_column_with_hash_bucket("age", 3))
        ),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_columns_say_how_examples_are_parsed() -> None:
    age = fc.numeric_column("age", default_value=1.5)
    words = fc.categorical_column_with_vocabulary_list("words", ["x", "y"])
    cross = fc.crossed_column([fc.bucketized_column(age, [1.0, 2.0]), "town"], 5)
    spec = fc.make_parse_example_spec([age, fc.weighted_categorical_column(words, "weights"), cross])
    assert spec == {
        "age": tf.FixedLenFeature((1,), tf.float32, (1.5,)),
        "words": tf.VarLenFeature(tf.string),
        "weights": tf.VarLenFeature(tf.float32),
        "town": tf.VarLenFeature(tf.string),
    }
