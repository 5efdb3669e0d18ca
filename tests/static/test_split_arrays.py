"""A ``TensorArray`` that is split into parts of different lengths, beside what NumPy splits."""

from typing import Any

import numpy
import pytest

import twofold.static as tf

VALUES = numpy.arange(12.0, dtype="float32").reshape(6, 2)


def split(value: Any, lengths: Any, size: int = 3) -> Any:
    return tf.TensorArray(tf.float32, size, infer_shape=False).split(value, lengths)


@pytest.mark.parametrize("lengths", [[1, 2, 3], [0, 4, 2], [2, 2, 2]])
@pytest.mark.parametrize("known", [True, False])
def test_parts_are_those_of_the_value(lengths: list[int], known: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.int32, [None])
        array = split(tf.constant(VALUES), lengths if known else fed)
        fetches = [array.read(0), array.read(1), array.read(2), array.concat(), array.size()]
        *found, whole, count = session.run(fetches, {fed: lengths})
    for one, part in zip(found, numpy.split(VALUES, numpy.cumsum(lengths)[:-1])):
        assert one.tolist() == part.tolist()
    assert whole.tolist() == VALUES.tolist() and count == 3


def test_gradients_reach_the_parts_that_were_read() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(VALUES)
        array = split(x, [1, 2, 3])
        part = array.read(1)
        found = session.run(tf.gradients(part * part, x)[0] + tf.gradients(array.concat(), x)[0])
    expected = numpy.ones_like(VALUES)
    expected[1:3] += 2 * VALUES[1:3]
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("what", ["rows", "count", "stack", "index"])
def test_what_does_not_fit_raises(what: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        array = split(tf.constant(VALUES), [1, 2, 2] if what == "rows" else [1, 2, 3], 2 + (what != "count"))
        session.run(array.stack() if what == "stack" else array.read(3 if what == "index" else 0))


def test_elements_of_one_shape_are_asked_for_unless_shapes_are_not_inferred() -> None:
    with (
        tf.Graph().as_default(),
        tf.Session() as session,
        pytest.raises(ValueError, match="infer_shape=False"),
    ):
        session.run(tf.TensorArray(tf.float32, 3).split(tf.constant(VALUES), [1, 2, 3]).read(0))


@pytest.mark.parametrize("what", ["split", "equal", "unstack", "scatter"])
def test_the_shape_of_elements_is_checked(what: str) -> None:
    with tf.Graph().as_default():
        array = tf.TensorArray(tf.float32, 3, infer_shape=False, element_shape=[None, 3])
        write = {
            "split": lambda: array.split(VALUES, [1, 2, 3]),
            "equal": lambda: array.split(VALUES, [2, 2, 2]),
            "unstack": lambda: array.unstack(VALUES.reshape(3, 2, 2)),
            "scatter": lambda: array.scatter([0, 1, 2], VALUES.reshape(3, 2, 2)),
        }[what]
        with pytest.raises(ValueError, match="for elements of shape"):
            write()


def test_the_shape_of_parts_that_fit_is_accepted() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        array = tf.TensorArray(tf.float32, 3, infer_shape=False, element_shape=[None, 2])
        fed = tf.placeholder(tf.int32, [None])
        assert session.run(array.split(VALUES, fed).read(2), {fed: [1, 2, 3]}).shape == (3, 2)
        assert session.run(array.split(VALUES, [1, 2, 3]).read(1)).shape == (2, 2)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("what", ["known", "new", "write", "scatter"])
def test_parts_are_not_written_again(what: str, dynamic: bool) -> None:
    with tf.Graph().as_default():
        array = tf.TensorArray(tf.float32, 3, infer_shape=False, dynamic_size=dynamic).split(
            VALUES, [1, 2, 3]
        )
        row, index = numpy.zeros(2, "float32"), tf.placeholder(tf.int32, [])
        with pytest.raises(tf.errors.InvalidArgumentError, match="parts of different lengths"):
            if what == "scatter":
                array.scatter(tf.reshape(index, [1]), row[None])
            else:
                array.write({"known": 1, "new": 3, "write": index}[what], row)


@pytest.mark.parametrize("what", ["cond", "equal", "loop", "swapped"])
def test_choices_and_loops_return_no_parts_of_their_own(what: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Split behind it"):
        if what in ("cond", "equal"):
            lengths = ([2, 2, 2], [1, 2, 3]) if what == "equal" else ([1, 2, 3], [3, 2, 1])
            parts = [lambda own=own: split(VALUES, own) for own in lengths]
            tf.cond(tf.placeholder(tf.bool, []), *parts)
        else:
            start = tf.TensorArray(tf.float32, 3, infer_shape=False)
            start = split(VALUES, [2, 1, 3]) if what == "swapped" else start
            tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, split(VALUES, [1, 2, 3])), [0, start])


def test_parts_pass_choices_and_loops() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        array = split(VALUES, [1, 2, 3])
        chosen = tf.cond(tf.constant(True), lambda: array, lambda: array)
        _, carried = tf.while_loop(lambda i, _: i < 2, lambda i, array: (i + 1, array), [0, chosen])
        assert session.run(carried.read(1)).tolist() == VALUES[1:3].tolist()


def test_slices_of_another_dtype_are_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="for an array of float32"):
        tf.TensorArray(tf.float32, 3).scatter([0, 1, 2], numpy.ones((3, 2), numpy.int32))
