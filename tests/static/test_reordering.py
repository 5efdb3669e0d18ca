"""Moving elements about, against NumPy."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


@pytest.fixture
def numbers():
    return numpy.random.default_rng(0).standard_normal


def test_sequences_are_turned_within_their_lengths(session, numbers):
    x = numbers((3, 5, 2)).astype("f")
    expected = x.copy()
    for row, length in enumerate((2, 5, 0)):
        expected[row, :length] = x[row, :length][::-1]
    given, lengths = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int32, [None])
    reversed_steps = tf.reverse_sequence(given, lengths, 1)
    feeds = {given: x, lengths: [2, 5, 0]}
    assert (session.run(reversed_steps, feeds) == expected).all()
    other = tf.reverse_sequence(tf.transpose(given, [1, 0, 2]), lengths, seq_dim=0, batch_dim=1)
    assert (session.run(other, feeds) == expected.swapaxes(0, 1)).all()
    weight = numbers((3, 5, 2)).astype("f")
    slope = session.run(tf.gradients(tf.reduce_sum(reversed_steps * weight), given)[0], feeds)
    for row, length in enumerate((2, 5, 0)):
        weight[row, :length] = weight[row, :length][::-1]
    assert (slope == weight).all()


def test_blocks_of_images(session, numbers):
    x = numbers((2, 4, 6, 3)).astype("f")
    blocks = x.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 2, 3, 12)
    assert (session.run(tf.space_to_depth(x, 2)) == blocks).all()
    assert (session.run(tf.nn.depth_to_space(blocks, 2)) == x).all()
    with pytest.raises(ValueError, match="blocks of 5"):
        tf.space_to_depth(x, 5)


def test_space_and_batches(session, numbers):
    x = numbers((2, 3, 5, 2)).astype("f")
    batches = tf.space_to_batch_nd(x, [2, 3], [[1, 0], [0, 1]])
    padded = numpy.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)))
    expected = numpy.concatenate([padded[:, i::2, j::3] for i in range(2) for j in range(3)])
    assert (session.run(batches) == expected).all()
    assert (session.run(tf.batch_to_space_nd(batches, [2, 3], [[1, 0], [0, 1]])) == x).all()
    square = numbers((1, 4, 4, 1)).astype("f")
    there = tf.space_to_batch(square, [[0, 0], [0, 0]], 2)
    assert (session.run(tf.batch_to_space(there, [[0, 0], [0, 0]], 2)) == square).all()


def test_order(session):
    x = numpy.array([[3.0, 1.0, 2.0, 1.0], [0.0, -1.0, 5.0, 4.0]], "f")
    assert (session.run(tf.sort(x)) == numpy.sort(x)).all()
    assert (session.run(tf.sort(x, 0, "DESCENDING")) == -numpy.sort(-x, 0)).all()
    assert (session.run(tf.argsort(x)) == numpy.argsort(x, kind="stable")).all()
    assert session.run(tf.invert_permutation([2, 0, 3, 1])).tolist() == [1, 3, 0, 2]
    found = tf.searchsorted([1.0, 2.0, 2.0, 4.0], [0.0, 2.0, 5.0])
    assert session.run(found).tolist() == [0, 1, 4]
    assert session.run(tf.searchsorted([1.0, 2.0, 2.0, 4.0], [2.0], "right")).tolist() == [3]
    with pytest.raises(ValueError, match="direction"):
        tf.sort(x, direction="UP")


def test_grids_rolls_and_batches(session):
    for indexing in ("xy", "ij"):
        found = session.run(tf.meshgrid([1, 2, 3], [4, 5], indexing=indexing))
        for mine, theirs in zip(found, numpy.meshgrid([1, 2, 3], [4, 5], indexing=indexing), strict=True):
            assert (mine == theirs).all()
    x = numpy.arange(24.0).reshape(2, 3, 4).astype("f")
    assert (session.run(tf.roll(x, 2, 1)) == numpy.roll(x, 2, 1)).all()
    assert (session.run(tf.roll(x, [1, -1], [0, 2])) == numpy.roll(x, (1, -1), (0, 2))).all()
    indices = numpy.array([[2, 0], [1, 1]])
    expected = numpy.take_along_axis(x, numpy.broadcast_to(indices[..., None], (2, 2, 4)), 1)
    assert (session.run(tf.batch_gather(x, indices)) == expected).all()
    assert session.run(tf.unravel_index([5, 23], [2, 3, 4])).tolist() == [[0, 1], [1, 2], [1, 3]]


def test_strided_slices(session):
    x = numpy.arange(60).reshape(3, 4, 5)
    assert (session.run(tf.strided_slice(x, [0, 1], [3, 4], [2, 1])) == x[0:3:2, 1:4]).all()
    assert (session.run(tf.strided_slice(x, [2, 3], [0, 0], [-1, -2])) == x[2:0:-1, 3:0:-2]).all()
    assert (session.run(tf.strided_slice(x, [1, 2], [9, 1], None, 1, 2)) == x[:9, 2:]).all()
    shrunk = tf.strided_slice(x, [1, 0, 2], [2, 0, 3], shrink_axis_mask=5, ellipsis_mask=2)
    assert (session.run(shrunk) == x[1, ..., 2]).all()
    assert (session.run(tf.strided_slice(x, [0, 1], [0, 2], new_axis_mask=1)) == x[None, 1:2]).all()


def test_transposed_numbers_are_conjugated_if_asked_for(session):
    z = numpy.array([[1 + 2j, 3j], [4, 5 - 1j]], numpy.complex64)
    assert (session.run(tf.transpose(z, conjugate=True)) == z.conj().T).all()
    assert (session.run(tf.transpose(z)) == z.T).all()


def test_a_constant_may_be_held_to_its_shape(session):
    assert session.run(tf.constant(1.0, shape=[2])).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="shape"):
        tf.constant(1.0, shape=[2], verify_shape=True)
    assert session.run(tf.constant([1.0, 2.0], shape=[2], verify_shape=True)).tolist() == [1.0, 2.0]


def test_lists_beside_operators_are_constants(session):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    v = tf.Variable([1, 2])
    session.run(tf.global_variables_initializer())
    assert session.run(x * [2, 10]).tolist() == [[2.0, 20.0], [6.0, 40.0]]
    assert session.run([[1.0], [2.0]] * x).tolist() == [[1.0, 2.0], [6.0, 8.0]]
    assert session.run((3, 4) - x[0]).tolist() == [2.0, 2.0]
    doubled = session.run(v * [3, 4])
    assert doubled.tolist() == [3, 8] and doubled.dtype == numpy.int32
    with pytest.raises(TypeError, match="a list of float32 beside"):
        v * [0.5, 1.0]


def test_axes_that_are_fed():
    with tf.Graph().as_default(), tf.Session() as session:
        axis = tf.placeholder(tf.int32, [])
        made = tf.expand_dims(tf.ones([2, 3]), axis)
        for given, shape in ((0, (1, 2, 3)), (1, (2, 1, 3)), (-1, (2, 3, 1))):
            assert session.run(made, {axis: given}).shape == shape
        with pytest.raises(tf.errors.InvalidArgumentError, match="axis 7 is outside a tensor with 3 axes"):
            session.run(made, {axis: 7})


def test_elements_are_repeated():
    matrix = numpy.arange(6).reshape(3, 2)
    cases = [(2, None), ([3], 1), ([1, 0, 2], 0), ([0, 4], 1), (0, 0)]
    with tf.Graph().as_default(), tf.Session() as session:
        for repeats, axis in cases:
            wanted = numpy.repeat(matrix, repeats, axis)
            assert numpy.array_equal(session.run(tf.repeat(matrix, repeats, axis)), wanted)
        with pytest.raises(ValueError, match="2 repeats for 3 elements"):
            tf.repeat(matrix, [1, 2], 0)


def test_shapes_are_ensured():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        made = tf.ensure_shape(x, [2, None])
        assert made.shape.as_list() == [2, None]
        assert session.run(made, {x: numpy.ones((2, 3))}).shape == (2, 3)
        with pytest.raises(tf.errors.InvalidArgumentError, match="where .2, None. is needed"):
            session.run(made, {x: numpy.ones((3, 3))})
        with pytest.raises(ValueError):
            tf.ensure_shape(tf.ones([3, 3]), [2, None])


def test_paddings_are_not_negative():
    with tf.Graph().as_default(), tf.Session() as session:
        x, widths = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [2, 2])
        made = tf.pad(x, widths)
        given = numpy.ones((3, 2))
        assert session.run(made, {x: given, widths: [[0, 1], [2, 0]]}).shape == (4, 4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Pad with 0 or more"):
            session.run(made, {x: given, widths: [[0, 1], [-1, 0]]})
        with pytest.raises(ValueError, match="Pad with 0 or more"):
            tf.pad(given, [[-1, 0], [0, 0]])


def test_seeds_are_taken_back_and_batches_have_axes():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(3)
        tf.set_random_seed(None)
        assert graph.seed is None
        state = tf.nn.rnn_cell.BasicLSTMCell(4).zero_state([3], tf.float32)
        assert state.c.shape == (3, 4)
