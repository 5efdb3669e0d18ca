"""Slices combined by segment and scattered, against NumPy."""

import numpy
import pytest

import twofold.static as tf

DATA = numpy.array([[1.0, -2.0], [3.0, 0.5], [-4.0, 6.0], [2.0, 2.0], [7.0, -1.0]], "f")


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


COMBINED = {
    "sum": lambda rows: rows.sum(0),
    "prod": lambda rows: rows.prod(0),
    "mean": lambda rows: rows.mean(0),
    "max": lambda rows: rows.max(0),
    "min": lambda rows: rows.min(0),
    "sqrt_n": lambda rows: rows.sum(0) / numpy.sqrt(len(rows)),
}


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "max", "min"])
def test_sorted_segments(session, how):
    data, ids = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [None])
    found = getattr(tf, f"segment_{how}")(data, ids)
    values = session.run(found, {data: DATA, ids: [0, 0, 1, 3, 3]})
    expected = [
        COMBINED[how](DATA[:2]),
        DATA[2],
        [1.0, 1.0] if how == "prod" else [0.0, 0.0],
        COMBINED[how](DATA[3:]),
    ]
    numpy.testing.assert_allclose(values, expected, rtol=1e-6)


def test_no_segments(session):
    data, ids = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [None])
    nothing = {data: numpy.zeros((0, 2)), ids: []}
    assert session.run(tf.segment_sum(data, ids), nothing).shape == (0, 2)
    assert session.run(tf.unsorted_segment_sum(data, ids, 2), nothing).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("how", list(COMBINED))
def test_unsorted_segments(session, how):
    data, ids = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [None])
    found = getattr(tf, f"unsorted_segment_{how}")(data, ids, 3)
    assert found.get_shape().as_list() == [3, 2]
    slope = tf.gradients(tf.reduce_sum(found[:2] ** 2), data)[0]
    values, gradient = session.run([found, slope], {data: DATA, ids: [1, 0, 1, -1, 0]})
    empty = {"prod": 1.0, "max": numpy.finfo("f").min, "min": numpy.finfo("f").max}.get(how, 0.0)
    expected = [COMBINED[how](DATA[[1, 4]]), COMBINED[how](DATA[[0, 2]]), [empty, empty]]
    numpy.testing.assert_allclose(values, expected, rtol=1e-6)
    assert (gradient[3] == 0).all() and gradient.any()
    whole = getattr(tf, f"unsorted_segment_{how}")(tf.ones([2, 3], tf.float64), [[0, 1, 0], [1, 1, 0]], 2)
    assert session.run(whole).shape == (2,)


def test_scattered_slices(session):
    indices, updates = tf.placeholder(tf.int32, [None, 1]), tf.placeholder(tf.float32, [None, 2])
    made = tf.scatter_nd(indices, updates, [4, 2])
    feeds = {indices: [[3], [1], [3], [0], [1]], updates: DATA}
    expected = numpy.zeros((4, 2), "f")
    numpy.add.at(expected, [3, 1, 3, 0, 1], DATA)
    assert (session.run(made, feeds) == expected).all()
    slope = tf.gradients(tf.reduce_sum(made * made), updates)[0]
    assert (session.run(slope, feeds) == 2 * expected[[3, 1, 3, 0, 1]]).all()
    single = tf.scatter_nd([[0, 1], [2, 0]], [5, 6], [3, 2])
    assert session.run(single).tolist() == [[0, 5], [0, 0], [6, 0]]
    base = numpy.ones((3, 2), "f")
    position, value = [[0, 1], [2, 0]], [5.0, 6.0]
    assert session.run(tf.tensor_scatter_update(base, position, value)).tolist() == [[1, 5], [1, 1], [6, 1]]
    assert session.run(tf.tensor_scatter_add(base, position, value)).tolist() == [[1, 6], [1, 1], [7, 1]]
    assert session.run(tf.tensor_scatter_sub(base, [[1]], [[1.0, 2.0]])).tolist() == [[1, 1], [0, -1], [1, 1]]
    with pytest.raises(ValueError, match="positions of 3 numbers"):
        tf.scatter_nd([[0, 1, 2]], [5], [3, 2])


@pytest.mark.parametrize("how", ["sum", "mean", "sqrt_n"])
def test_chosen_slices_by_segment(session, how):
    found = getattr(tf, f"sparse_segment_{how}")(DATA, [4, 0, 2], [0, 0, 1])
    expected = [COMBINED[how](DATA[[4, 0]]), COMBINED[how](DATA[[2]])]
    numpy.testing.assert_allclose(session.run(found), expected, rtol=1e-6)
    wide = getattr(tf, f"sparse_segment_{how}")(DATA, [4], [0], num_segments=3)
    assert session.run(wide).shape == (3, 2)


def test_losses_with_numbers_of_their_own(session):
    labels, values = numpy.array([[1.0, 0.0], [0.0, 1.0]], "f"), numpy.array([[0.2, 0.1], [0.5, 3.0]], "f")
    away = abs(values - labels)
    expected = numpy.where(away <= 0.5, 0.5 * away**2, 0.5 * away - 0.125).mean()
    assert session.run(tf.losses.huber_loss(labels, values, delta=0.5)) == pytest.approx(expected, rel=1e-5)
    p = values[:, :1]
    expected = -(labels[:, :1] * numpy.log(p + 0.1) + (1 - labels[:, :1]) * numpy.log(1 - p + 0.1)).mean()
    assert session.run(tf.losses.log_loss(labels[:, :1], p, 1.0, 0.1)) == pytest.approx(expected, rel=1e-5)
    expected = (1 - (labels * values).sum(1)).mean()
    assert session.run(tf.losses.cosine_distance(labels, values, 1)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="axis is not given"):
        tf.losses.cosine_distance(labels, values)


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "max", "min"])
def test_sorted_segments_must_be_sorted(session, how):
    ids = tf.placeholder(tf.int32, [None])
    found = getattr(tf, f"segment_{how}")([1.0, 2.0, 3.0], ids)
    session.run(found, {ids: [0, 1, 1]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment ids are not increasing"):
        session.run(found, {ids: [0, 1, 0]})


def test_lengths_as_masks(session):
    lengths = tf.placeholder(tf.int32, [None])
    mask = tf.sequence_mask(lengths, dtype=tf.float32)
    assert session.run(mask, {lengths: [1, 3, 0]}).tolist() == [[1, 0, 0], [1, 1, 1], [0, 0, 0]]
    assert session.run(mask, {lengths: []}).shape == (0, 0)


@pytest.mark.parametrize("mode", ["SYMMETRIC", "REFLECT"])
def test_mirrored(session, mode):
    data = tf.placeholder(tf.float32, [None, 3])
    padded = tf.pad(data, [[1, 1], [2, 0]], mode)
    slope = tf.gradients(tf.reduce_sum(padded**2), data)[0]
    values = numpy.array([[1, 2, 3], [4, 5, 6]], "f")
    found, derivative = session.run([padded, slope], {data: values})
    expected = numpy.pad(values, [[1, 1], [2, 0]], mode.lower())
    numpy.testing.assert_array_equal(found, expected)
    counts = [(expected == value).sum() for value in values.ravel()]
    numpy.testing.assert_array_equal(derivative.ravel(), 2 * values.ravel() * counts)


def test_mirrored_by_too_much(session):
    with pytest.raises(ValueError, match="at most the size"):
        tf.pad([1, 2], [[3, 0]], "SYMMETRIC")
    with pytest.raises(ValueError, match="mode 'EDGE'"):
        tf.pad([1, 2], [[1, 0]], "EDGE")


CHANGES = {
    "scatter_add": [6.0, 2.0, 9.0],
    "scatter_sub": [-4.0, 2.0, -3.0],
    "scatter_mul": [5.0, 2.0, 18.0],
    "scatter_div": [0.2, 2.0, 0.5],
    "scatter_min": [1.0, 2.0, 3.0],
    "scatter_max": [5.0, 2.0, 6.0],
    "scatter_update": [5.0, 2.0, 6.0],
    "scatter_nd_add": [6.0, 2.0, 9.0],
    "scatter_nd_sub": [-4.0, 2.0, -3.0],
    "scatter_nd_update": [5.0, 2.0, 6.0],
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_methods_of_variables(session, name):
    variable = tf.Variable([1.0, 2.0, 3.0])
    rows = tf.IndexedSlices(tf.constant([5.0, 6.0]), tf.constant([0, 2]))
    given = ([[0], [2]], [5.0, 6.0]) if "_nd_" in name else (rows,)
    changed = getattr(variable, name)(*given)
    session.run(variable.initializer)
    numpy.testing.assert_allclose(session.run(changed), CHANGES[name], rtol=1e-6)
    numpy.testing.assert_allclose(session.run(variable), CHANGES[name], rtol=1e-6)
    if "_nd_" not in name:
        with pytest.raises(TypeError, match="IndexedSlices"):
            getattr(variable, name)([1.0])
