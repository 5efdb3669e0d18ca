"""Sparse tensors and what reads and writes sequences with them, against NumPy and define-by-run."""

import numpy
import pytest

import twofold as torch
import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


INDICES, VALUES = [[0, 1], [1, 0], [1, 3]], [5.0, 6.0, 7.0]
DENSE = numpy.array([[0, 5, 0, 0], [6, 0, 0, 7], [0, 0, 0, 0]], "f")
VALUE = tf.SparseTensorValue(numpy.array(INDICES), numpy.array(VALUES, "f"), numpy.array([3, 4]))


def test_feeding_and_fetching(session):
    x = tf.sparse_placeholder(tf.float32, [None, None])
    whole = tf.sparse_tensor_to_dense(x)
    assert (session.run(whole, {x: VALUE}) == DENSE).all()
    assert (session.run(whole, {x: (INDICES, VALUES, [3, 4])}) == DENSE).all()
    small = tf.SparseTensorValue([[0, 0]], [1.0], [1, 2])
    for value, shape in ((small, (1, 2)), (VALUE, (3, 4))):
        assert session.run(whole, {x: value}).shape == shape
    found = session.run(x, {x: VALUE})
    assert isinstance(found, tf.SparseTensorValue) and found.values.tolist() == VALUES
    doubled = session.run({"twice": x * 2.0, "same": [x]}, {x: VALUE})
    assert (
        doubled["twice"].values.tolist() == [10.0, 12.0, 14.0]
        and doubled["same"][0].values.tolist() == VALUES
    )


def test_dense_forms(session):
    x = tf.SparseTensor(INDICES, VALUES, [3, 4])
    assert x.get_shape().as_list() == [3, 4] and x.dtype is tf.float32
    assert (session.run(tf.sparse_tensor_to_dense(x, -1.0)) == numpy.where(DENSE, DENSE, -1)).all()
    assert session.run(tf.sparse_to_dense([1, 3], [5], 9)).tolist() == [0, 9, 0, 9, 0]
    assert session.run(tf.sparse_to_dense([[0, 1], [2, 2]], [3, 3], [1.0, 2.0], 0.5)).tolist() == [
        [0.5, 1.0, 0.5],
        [0.5, 0.5, 0.5],
        [0.5, 0.5, 2.0],
    ]
    scaled = x * numpy.arange(12.0, dtype="f").reshape(3, 4)
    assert session.run(scaled).values.tolist() == [5.0, 24.0, 49.0]
    assert x.eval(session=session).indices.tolist() == INDICES
    with pytest.raises(ValueError, match=r"Give \[count, rank\]"):
        tf.SparseTensor([1, 2], VALUES, [3, 4])


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_products(session, adjoint_a, adjoint_b):
    x = tf.sparse_placeholder(tf.float32)
    random = numpy.random.default_rng(0)
    a = DENSE.T if adjoint_a else DENSE
    b = random.standard_normal((a.shape[1], 2)).astype("f")
    right = tf.placeholder(tf.float32, [None, None])
    made = tf.sparse_tensor_dense_matmul(x, right, adjoint_a, adjoint_b)
    feeds = {x: VALUE, right: b.T if adjoint_b else b}
    slopes = tf.gradients(tf.reduce_sum(made * made), [x.values, right])
    found, to_values, to_right = session.run([made, *slopes], feeds)
    numpy.testing.assert_allclose(found, a @ b, rtol=1e-5)
    whole = 2 * (a @ b) @ b.T
    whole = whole.T if adjoint_a else whole
    numpy.testing.assert_allclose(to_values, whole[tuple(numpy.array(INDICES).T)], rtol=1e-5)
    expected = a.T @ (2 * (a @ b))
    numpy.testing.assert_allclose(to_right, expected.T if adjoint_b else expected, rtol=1e-5)


def test_sums_and_forms(session):
    x = tf.SparseTensor(INDICES, VALUES, [3, 4])
    for axis in (None, 0, 1, [0, 1], -1):
        axes = tuple(axis) if isinstance(axis, list) else axis
        assert (session.run(tf.sparse_reduce_sum(x, axis)) == DENSE.sum(axes)).all()
    assert (session.run(tf.sparse_reduce_sum(x, 1, keepdims=True)) == DENSE.sum(1, keepdims=True)).all()
    mixed = tf.SparseTensor(INDICES[::-1], VALUES[::-1], [3, 4])
    assert session.run(tf.sparse_reorder(mixed)).indices.tolist() == INDICES
    flat = session.run(tf.sparse_tensor_to_dense(tf.sparse_reshape(x, [2, -1])))
    assert (flat == DENSE.reshape(2, 6)).all()
    transposed = session.run(tf.sparse_tensor_to_dense(tf.sparse_transpose(x)))
    assert (transposed == DENSE.T).all()
    kept = session.run(tf.sparse_retain(x, [True, False, True]))
    assert kept.values.tolist() == [5.0, 7.0]


def test_edit_distances(session):
    guess = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 0]], [1, 2, 3, 4], [4, 2])
    truth = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]], [1, 5, 2, 3, 9], [4, 3])
    distance = tf.edit_distance(guess, truth)
    assert distance.get_shape().ndims == 1
    numpy.testing.assert_allclose(session.run(distance), [1 / 3, 0, 1, numpy.inf])
    assert session.run(tf.edit_distance(guess, truth, normalize=False)).tolist() == [1, 0, 1, 1]


def test_losses_and_decoding_of_sequences(session):
    random = numpy.random.default_rng(1)
    logits = random.standard_normal((6, 2, 4)).astype("f")
    labels = tf.sparse_placeholder(tf.int32)
    scores, lengths = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.int32, [None])
    loss = tf.nn.ctc_loss(labels, scores, lengths)
    value = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], [1, 1, 2], [2, 2])
    feeds = {labels: value, scores: logits, lengths: [6, 4]}
    found, slope = session.run([loss, tf.gradients(loss, scores)[0]], feeds)
    x = torch.tensor(logits, requires_grad=True)
    targets = torch.tensor([[1, 1], [2, 0]])
    mine = torch.nn.functional.ctc_loss(x.log_softmax(-1), targets, [6, 4], [2, 1], 3, "none")
    mine.sum().backward()
    numpy.testing.assert_allclose(found, mine.detach().numpy(), rtol=1e-6)
    numpy.testing.assert_allclose(slope, x.grad.numpy(), rtol=1e-5, atol=1e-6)
    transposed = tf.nn.ctc_loss(labels, tf.transpose(scores, [1, 0, 2]), lengths, time_major=False)
    numpy.testing.assert_allclose(session.run(transposed, feeds), found, rtol=1e-6)

    path = numpy.full((5, 2, 4), -1.0, "f")
    for k, classes in enumerate(([1, 1, 3, 1, 2], [3, 0, 0, 2, 2])):
        path[numpy.arange(5), k, classes] = 1.0
    (decoded,), total = tf.nn.ctc_greedy_decoder(scores, lengths)
    whole, sums = session.run(
        [tf.sparse_tensor_to_dense(decoded, -1), total], {scores: path, lengths: [5, 4]}
    )
    assert whole.tolist() == [[1, 1, 2], [0, 2, -1]] and sums.tolist() == [[-5.0], [-4.0]]
    (plain,), _ = tf.nn.ctc_greedy_decoder(scores, lengths, merge_repeated=False)
    assert session.run(plain, {scores: path, lengths: [5, 4]}).values.tolist() == [1, 1, 1, 2, 0, 0, 2]


def test_parts_of_unknown_rank_are_added():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.sparse_placeholder(tf.float32)
        y = x * tf.constant([[2.0], [3.0]])
        assert y.values.shape.as_list() == [None]
        fed = tf.SparseTensorValue([[0, 1], [1, 0]], [1.0, 1.0], [2, 2])
        total = tf.sparse_softmax(tf.sparse_add(y, x))
        assert session.run(tf.sparse_add(y, x), {x: fed}).values.tolist() == [3.0, 4.0]
        assert session.run(total, {x: fed}).values.tolist() == [1.0, 1.0]


def test_a_sparse_tensor_of_unknown_rank_is_reshaped():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.sparse_placeholder(tf.float32)
        flat, wide = tf.sparse_reshape(x, [-1]), tf.sparse_reshape(x, [2, -1])
        assert (flat.rank, wide.rank) == (1, 2)
        value = tf.SparseTensorValue([[0, 1, 0], [1, 2, 1]], [5.0, 6.0], [2, 3, 2])
        dense = numpy.zeros((2, 3, 2))
        dense[0, 1, 0], dense[1, 2, 1] = 5, 6
        for found, shape in ((flat, [12]), (wide, [2, 6])):
            made, sizes = session.run([tf.sparse_tensor_to_dense(found), found.dense_shape], {x: value})
            numpy.testing.assert_array_equal(made, dense.reshape(shape))
            assert sizes.tolist() == shape
        product = tf.sparse_tensor_dense_matmul(wide, tf.ones([6, 1]))
        numpy.testing.assert_array_equal(session.run(product, {x: value}), [[5], [6]])


def test_functions_that_keep_zeros_take_sparse_tensors():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.SparseTensor([[0, 1], [1, 0]], [1.5, -4.0], [2, 2])
        assert isinstance(tf.cast(x, tf.int32), tf.SparseTensor)
        found = [
            tf.cast(x, tf.int32),
            tf.abs(x),
            tf.square(x, name="s"),
            tf.negative(x),
            tf.sign(x),
            tf.tanh(x),
        ]
        values = session.run([one.values for one in found])
        wanted = [numpy.array([1, -4]), [1.5, 4], [2.25, 16], [-1.5, 4], [1, -1], numpy.tanh([1.5, -4])]
        for value, one in zip(values, wanted):
            numpy.testing.assert_allclose(value, one, rtol=1e-6)
        errors = tf.edit_distance(tf.cast(x, tf.int64), tf.cast(x, tf.int64))
        assert session.run(errors).tolist() == [0, 0]


def test_a_sparse_tensor_without_elements_becomes_dense():
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = tf.sparse_placeholder(tf.float32, [None, 3])
        dense = tf.sparse_tensor_to_dense(sparse, default_value=-1.0)
        for count in (0, 2, 0, 1):
            indices = numpy.array([[k, k] for k in range(count)], numpy.int64).reshape(-1, 2)
            given = tf.SparseTensorValue(indices, numpy.ones(count, "f"), [2, 3])
            wanted = numpy.full((2, 3), -1.0)
            wanted[tuple(indices.T)] = 1.0
            assert session.run(dense, {sparse: given}).tolist() == wanted.tolist()


@pytest.mark.parametrize(("adjoint", "dense"), [(False, (4, 2)), (True, (3, 2))])
@pytest.mark.parametrize("coordinate", [[0, -1], [-1, 0], [3, 0], [0, 4]])
def test_a_product_refuses_coordinates_outside(session, coordinate, adjoint, dense):
    x = tf.SparseTensor(tf.placeholder(tf.int64, [1, 2]), [5.0], [3, 4])
    made = tf.sparse_tensor_dense_matmul(x, tf.ones(dense), adjoint_a=adjoint)
    session.run(made, {x.indices: [[2, 3]]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds|outside an axis"):
        session.run(made, {x.indices: [coordinate]})
