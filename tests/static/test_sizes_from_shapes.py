"""A size computed from ``tf.shape`` is unknown, or the size that it is, and never one of some sample."""

import numpy
import pytest

import twofold.static as tf

BATCHES = (1, 2, 5, 17, 1009)
CASES = {
    "remainder": (lambda p, n: tf.zeros([tf.shape(p)[0] % 2, 3]), [None, 3]),
    "quotient": (lambda p, n: tf.zeros([tf.shape(p)[0] // 1000, 3]), [None, 3]),
    "bounded above": (lambda p, n: tf.zeros([tf.minimum(tf.shape(p)[0], 10), 3]), [None, 3]),
    "bounded above far away": (lambda p, n: tf.zeros([tf.minimum(tf.shape(p)[0], 5000), 3]), [None, 3]),
    "bounded below far away": (lambda p, n: tf.zeros([tf.maximum(tf.shape(p)[0], 5000), 3]), [None, 3]),
    "chosen": (lambda p, n: tf.zeros([tf.where(tf.shape(p)[0] > 20000, 7, 2), 3]), [None, 3]),
    "compared": (lambda p, n: tf.zeros([tf.cast(tf.equal(tf.shape(p)[0], 5), tf.int32), 2]), [None, 2]),
    "the same": (lambda p, n: tf.zeros([tf.shape(p)[0], 3]), [None, 3]),
    "known": (lambda p, n: tf.zeros([tf.shape(p)[1], 3]), [3, 3]),
    "range": (lambda p, n: tf.range(tf.shape(p)[0] % 7), [None]),
    "slice": (lambda p, n: p[: tf.shape(p)[0] % 3], [None, 3]),
    "pad": (lambda p, n: tf.pad(p, [[0, tf.shape(p)[0] % 2], [1, 1]]), [None, 5]),
    "one_hot": (lambda p, n: tf.one_hot([1, 2], tf.shape(p)[0] % 4), [2, None]),
    "random_uniform": (lambda p, n: tf.random_uniform([tf.shape(p)[0] % 3, 2]), [None, 2]),
    "top_k": (lambda p, n: tf.nn.top_k(tf.transpose(p), tf.minimum(tf.shape(p)[0], 1))[0], [3, None]),
    "one row for many": (lambda p, n: tf.reshape(tf.zeros([2018]), [tf.shape(p)[0], -1]), [None, None]),
    "a fed number": (lambda p, n: tf.fill([n, 2], 1.0), [None, 2]),
    "a slice to a fed number": (lambda p, n: p[:n], [None, 3]),
    "a slice of known size to a fed number": (lambda p, n: tf.zeros([2000, 3])[:n], [None, 3]),
    "a slice of known size to a size": (lambda p, n: tf.zeros([2000, 3])[1 : tf.shape(p)[0]], [None, 3]),
    "a slice of known size behind its first to a fed number": (lambda p, n: tf.zeros([128])[1:n], [None]),
    "a slice of known size from a fed number": (lambda p, n: tf.zeros([128])[n:], [None]),
    "each second to a fed number": (lambda p, n: tf.zeros([128])[:n:2], [None]),
    "each third behind the first to a size": (lambda p, n: tf.zeros([128])[1 : tf.shape(p)[0] : 3], [None]),
    "the last to a fed number": (lambda p, n: tf.zeros([128])[-5:n], [None]),
    "all but a fed number": (lambda p, n: tf.zeros([128])[1:-n], [None]),
    "a fed number of the last": (lambda p, n: tf.zeros([128])[-n:], [None]),
    "backwards from a fed number": (lambda p, n: tf.zeros([128])[n::-1], [None]),
    "a range from a fed number": (lambda p, n: tf.range(n, 5000), [None]),
    "sizes behind each other": (
        lambda p, n: tf.reshape(p, tf.concat([tf.shape(p)[:1], [1, 3]], 0)),
        [None, 1, 3],
    ),
    "all sizes but one": (
        lambda p, n: tf.reshape(tf.tile(p, [1, 2]), tf.concat([tf.shape(p)[:-1], [6]], 0)),
        [None, 6],
    ),
    "a fed number and -1": (lambda p, n: tf.reshape(p, [n, -1]), [None, None]),
}


@pytest.mark.parametrize("name", CASES)
def test_declared_shapes_hold_for_every_size(name):
    make, expected = CASES[name]
    with tf.Graph().as_default(), tf.Session() as session:
        p, n = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [])
        made = make(p, n)
        assert made.shape.as_list() == expected
        for batch in BATCHES:
            if name == "one row for many" and 2018 % batch:
                continue
            found = session.run(made, {p: numpy.ones([batch, 3], numpy.float32), n: batch}).shape
            assert all(size in (None, real) for size, real in zip(expected, found))


def test_a_rank_that_is_unknown_leaves_what_is_asked_for():
    with tf.Graph().as_default():
        q = tf.placeholder(tf.float32)
        assert tf.reshape(q, [tf.shape(q)[0], -1]).shape.as_list() == [None, None]
        assert tf.zeros(tf.placeholder(tf.int32, [None])).shape.dims is None


def test_a_fed_axis_leaves_the_rank():
    with tf.Graph().as_default(), tf.Session() as session:
        p, n = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [])
        total = tf.reduce_sum(p, n)
        for axis, shape in ((0, (3,)), (1, (4,))):
            assert session.run(total, {p: numpy.ones([4, 3]), n: axis}).shape == shape
            sizes = total.shape.as_list() if total.shape.dims is not None else [None]
            assert sizes == [None]


def test_a_reshape_to_the_sizes_of_another_tensor():
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None])
        z = tf.reshape(y, tf.shape(x))
        assert z.shape.as_list() == [None, 2]
        feeds = {x: [[1, 2], [3, 4]], y: [5, 6, 7, 8]}
        found = session.run([z, tf.gradients(z * x, y)[0]], feeds)
        assert [value.tolist() for value in found] == [[[5, 6], [7, 8]], [1, 2, 3, 4]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="3 elements do not fill shape"):
            session.run(z, {**feeds, y: [1, 2, 3]})


def test_windows_larger_than_small_sizes_have_declared_shapes():
    image = tf.placeholder(tf.float32, [None, None, None, 3])
    pooled = tf.nn.max_pool(image, [1, 40, 40, 1], [1, 1, 1, 1], "VALID")
    assert pooled.shape.as_list() == [None, None, None, 3]
    assert image[:, 100:, 7:].shape.as_list() == [None, None, None, 3]
    with tf.Session() as session:
        found = session.run(tf.shape(pooled), {image: numpy.zeros((2, 41, 45, 3), "f")})
    assert found.tolist() == [2, 2, 6, 3]


@pytest.mark.parametrize("padding, sizes", [("same", [2, 8, 10, 5]), ("valid", [2, 9, 11, 5])])
def test_transposed_convolutions_of_unknown_height_and_width(padding, sizes):
    image = tf.placeholder(tf.float32, [None, None, None, 3])
    up = tf.layers.conv2d_transpose(image, 5, 3, 2, padding)
    assert up.shape.as_list() == [None, None, None, 5]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert list(session.run(up, {image: numpy.ones((2, 4, 5, 3), "f")}).shape) == sizes
