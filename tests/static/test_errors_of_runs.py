"""TensorFlow's classes of errors, and its TypeError where dtypes do not match."""

import numpy
import pytest

import twofold.static as tf
from twofold.errors import IndexRangeError


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_all_errors_are_those_of_operations():
    names = [name for name in vars(tf.errors) if name.endswith("Error")]
    assert len(names) > 15
    for name in names:
        assert issubclass(getattr(tf.errors, name), tf.errors.OpError), name
    for name in set(names) - {"OpError", "GraphError"}:
        others = [other for other in names if other not in ("OpError", "GraphError", name)]
        assert not any(issubclass(getattr(tf.errors, name), getattr(tf.errors, other)) for other in others)


def test_an_index_out_of_range_is_an_invalid_argument(session):
    assert issubclass(IndexRangeError, tf.errors.InvalidArgumentError)
    x, position = tf.constant([1.0, 2.0]), tf.placeholder(tf.int32, [])
    for fetch in (tf.gather(x, position), x[position]):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(fetch, {position: 5})
        assert isinstance(caught.value, IndexError)


def test_shapes_that_do_not_fit_in_a_run_are_invalid_arguments(session):
    a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(a + b, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0]})
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.reshape(a, [2, 2]), {a: [1.0, 2.0]})


def test_a_variable_without_a_value_is_a_failed_precondition(session):
    v = tf.Variable(1.0)
    with pytest.raises(tf.errors.FailedPreconditionError):
        session.run(v)


FLOATS, WHOLE, DOUBLE = [1.0, 2.0], [1, 2], numpy.array([1.0, 2.0])
OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "<": lambda x, y: x < y,
    "add": tf.add,
    "multiply": tf.multiply,
    "divide": tf.divide,
    "maximum": tf.maximum,
    "pow": tf.pow,
    "less": tf.less,
    "equal": tf.equal,
    "add_n": lambda x, y: tf.add_n([x, y]),
    "stack": lambda x, y: tf.stack([x, y]),
    "concat": lambda x, y: tf.concat([x, y], 0),
    "where": lambda x, y: tf.where([True, False], x, y),
    "matmul": lambda x, y: tf.matmul(x[None], y[:, None]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_tensors_of_different_dtypes_do_not_match(session, name):
    floats, whole, double = tf.constant(FLOATS), tf.constant(WHOLE), tf.constant(DOUBLE)
    for x, y in ((floats, whole), (whole, floats), (floats, double)):
        with pytest.raises(TypeError, match=r"dtypes .* do not match.*test_errors_of_runs.py"):
            OPERATIONS[name](x, y)


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "<", "add", "maximum"])
def test_numbers_and_arrays_take_the_dtype_of_the_tensor(session, name):
    floats, whole = tf.constant(FLOATS), tf.constant(WHOLE)
    apply = OPERATIONS[name]
    for other in (2, 2.5, True, numpy.float64(2.0), [1, 2]):
        assert apply(floats, other).dtype in (tf.float32, tf.bool)
    with pytest.raises(TypeError):
        apply(whole, 1.5)


def test_arrays_beside_operators_take_the_dtype_of_the_tensor(session):
    floats, whole = tf.constant(FLOATS), tf.constant(WHOLE)
    for found in (
        floats - DOUBLE,
        DOUBLE - floats,
        floats * numpy.array([1, 2]),
        tf.Variable(FLOATS) + DOUBLE,
    ):
        assert found.dtype is tf.float32
    assert session.run(DOUBLE * 3.0 - floats).tolist() == [2.0, 4.0]
    with pytest.raises(TypeError):
        whole + DOUBLE


@pytest.mark.parametrize("coordinates", ([[0, 5]], [[3, 0]], [[0, -1]]))
@pytest.mark.parametrize("is_checked", [False, True])
def test_coordinates_outside_of_a_sparse_tensor_are_written_nowhere(session, coordinates, is_checked):
    sparse = tf.SparseTensor(coordinates, [1.0], [2, 3])
    dense = tf.sparse_tensor_to_dense(sparse, validate_indices=is_checked)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds|outside an axis"):
        session.run(dense)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds|outside an axis"):
        session.run(tf.sparse_reduce_sum(sparse, 0))
    fed = tf.placeholder(tf.int64, [None, 2])
    dense = tf.sparse_to_dense(fed, [2, 3], 1.0, validate_indices=is_checked)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds|outside an axis"):
        session.run(dense, {fed: coordinates})
    assert session.run(dense, {fed: [[1, 2]]}).tolist() == [[0, 0, 0], [0, 0, 1]]


def test_constants_that_do_not_fit_are_named_where_the_body_needs_numbers(session):
    sparse = tf.SparseTensor([[0, 5]], [1.0], [2, 3])
    product = tf.sparse_tensor_dense_matmul(sparse, tf.ones([3, 2]))
    with pytest.raises(IndexRangeError, match="index 5 is outside an axis of size 3"):
        session.run(product)


def test_operands_are_those_of_the_operation_and_not_what_it_makes_of_them():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, None, 3], name="x")
        filters = tf.ones([4, 4, 3, 1])
        y = tf.nn.conv2d(x, filters, [1, 1, 1, 1], "VALID")
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"'x:0' float32\[1,2,2,3\]") as raised:
            session.run(y, {x: numpy.ones((1, 2, 2, 3))})
    told = "\n".join(raised.value.__notes__)
    assert "x: float32[1,2,2,3], made at" in told and "filters: float32[4,4,3,1]" in told


@pytest.mark.parametrize(
    "width, what", [((3, -1), "num_lower=3 for 2 rows"), ((-1, 4), "num_upper=4 for 3 columns")]
)
def test_bands_wider_than_the_matrix_are_refused(width, what):
    with tf.Graph().as_default(), tf.Session() as session:
        x, lower, upper = (
            tf.placeholder(tf.float32, [None, 3]),
            *(tf.placeholder(tf.int64, []) for _ in range(2)),
        )
        band = tf.matrix_band_part(x, lower, upper)
        feeds = {x: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}
        assert session.run(band, {**feeds, lower: 2, upper: 3}).sum() == 21.0
        with pytest.raises(tf.errors.InvalidArgumentError, match=what):
            session.run(band, {**feeds, lower: width[0], upper: width[1]})
