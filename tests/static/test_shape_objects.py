"""``tf.Dimension``, ``tf.TensorShape`` and dtypes; expected values: recorded from TensorFlow 2.21, compat.v1."""

import numpy
import pytest

import twofold.static as tf

D, S = tf.Dimension, tf.TensorShape


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([D(3) < 4, D(3) <= 3, D(3) > D(2), D(3) >= 4, D(None) < 3], [True, True, True, False, None]),
        ([(D(7) % 4).value, (D(None) % 4).value, (7 % D(4)).value, (10 - D(3)).value], [3, None, 3, 7]),
        ([(D(7) // 2).value, (7 // D(2)).value, D(3).merge_with(None).value], [3, 3, 3]),
        ([D(3).is_compatible_with(None), D(3).is_compatible_with(4)], [True, False]),
        ([str(S([None, 3]).with_rank(2)), str(S(None).with_rank(2))], ["(?, 3)", "(?, ?)"]),
        ([str(S([None, 3]).with_rank_at_least(2)), str(S(None).with_rank_at_least(2))], ["(?, 3)", "<unknown>"]),
        ([str(S([2, 3]).with_rank_at_most(2)), str(S(None).with_rank_at_most(2))], ["(2, 3)", "<unknown>"]),
        ([str(S([None, 3]).merge_with(other)) for other in ([2, None], None)], ["(2, 3)", "(?, 3)"]),
        ([str(S(None).merge_with([2])), str(S([2]).concatenate([None, 3]))], ["(2,)", "(2, ?, 3)"]),
        ([str(S(None).concatenate([3])), str(S([2]).concatenate(None))], ["<unknown>", "<unknown>"]),
        ([str(S([2, None]).most_specific_compatible_shape(other)) for other in ([3, 4], [1])], ["(?, ?)", "<unknown>"]),
        ([str(S([2, 3]).most_specific_compatible_shape([2, 4])), str(S([2]) + [3]), str([1] + S([3]))],
         ["(2, ?)", "(2, 3)", "(1, 3)"]),
        ([tf.uint8.limits, tf.int32.limits, tf.float32.limits, tf.bool.limits],
         [(0, 255), (0, 2147483647), (0, 1), (0, True)]),
        ([tf.float32.max, tf.float32.min, tf.float16.min, tf.int8.max, tf.int8.min],
         [numpy.float32(3.4028235e38), numpy.float32(-3.4028235e38), numpy.float16(-65504), 127, -128]),
        ([tf.complex64.real_dtype, tf.float32.real_dtype, tf.uint8.is_unsigned, tf.int8.is_unsigned],
         [tf.float32, tf.float32, True, False]),
        ([tf.float32.is_compatible_with(tf.float32), tf.float32.is_compatible_with(tf.int32)], [True, False]),
    ],
)  # fmt: skip
def test_values(found, expected):
    assert found == expected


def test_limits_are_numbers_of_the_dtype():
    assert type(tf.float32.min) is numpy.float32 and type(tf.int8.max) is int


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: D(3).merge_with(4), "Dimensions 3 and 4 are not compatible"),
        (lambda: S([None, 3]).with_rank(3), r"Shape \(\?, 3\) must have rank 3"),
        (lambda: S([3]).with_rank_at_least(2), r"Shape \(3,\) must have rank at least 2"),
        (lambda: S([None, 3]).with_rank_at_most(1), r"Shape \(\?, 3\) must have rank at most 1"),
        (lambda: S([None, 3]).merge_with([2, 4]), r"Shapes \(\?, 3\) and \(2, 4\) are not compatible"),
        (lambda: S([2]).merge_with([2, 3]), r"Shapes \(2,\) and \(2, 3\) are not compatible"),
        (lambda: S([2]).assert_has_rank(2), r"Shape \(2,\) must have rank 2"),
        (lambda: S([2, 3]).assert_same_rank([2]), r"Shapes \(2, 3\) and \(2,\) must have the same rank"),
        (lambda: S([2, None]).assert_is_compatible_with([3, 4]), "are not compatible"),
        (lambda: S([2, None]).assert_is_fully_defined(), r"Shape \(2, \?\) is not fully defined"),
    ],
)
def test_what_does_not_fit_raises(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("dtype", [tf.bool, tf.string])
def test_dtypes_without_order_have_no_limits(dtype):
    with pytest.raises(TypeError, match="Cannot find maximum value"):
        print(dtype.max)


def test_what_fits_passes():
    S([2]).assert_has_rank(1), S(None).assert_has_rank(3), S([2]).assert_is_fully_defined()


def test_dimensions_are_operands():
    shape = tf.placeholder(tf.float32, [3, 4]).get_shape()
    made = [
        tf.convert_to_tensor(shape[1]),
        tf.stack([shape[0] * 2, 2, tf.shape(tf.ones([5]))[0]]),
        tf.cast(shape[0], tf.float32),
        tf.concat([[shape[0]], [-1]], 0),
        tf.maximum(shape[0], 7),
        tf.range(shape[0]),
    ]
    assert made[0].dtype == tf.int32
    with tf.Session() as session:
        found = [value.tolist() for value in session.run(made)]
    assert found == [4, [6, 2, 5], 3.0, [3, -1], 7, [0, 1, 2]]
    with pytest.raises(TypeError, match="unknown until the graph is fed"):
        tf.stack([tf.Dimension(None), 2])


def test_sizes_by_the_name_that_keras_copied():
    assert [size.value for size in tf.TensorShape([2, None])._dims] == [2, None] and tf.TensorShape(
        None
    )._dims is None
