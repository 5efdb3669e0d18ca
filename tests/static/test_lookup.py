"""Tables of keys, nested values and flags: what they give, against the definitions."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.platform.flags import Flags


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_tables(session):
    keys, values = tf.constant(["a", "b", "c"]), tf.constant([3.0, 4.0, 5.0])
    table = tf.lookup.HashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0.5)
    asked = tf.placeholder(tf.string, [None, 2])
    found = table.lookup(asked)
    assert found.dtype is tf.float32 and found.shape.as_list() == [None, 2]
    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialised"):
        session.run(found, {asked: [["a", "b"]]})
    session.run(tf.tables_initializer())
    assert session.run(found, {asked: [["c", "x"], ["a", "a"]]}).tolist() == [[5.0, 0.5], [3.0, 3.0]]
    assert session.run(table.size()) == 3
    with pytest.raises(TypeError, match="keys of float32"):
        table.lookup(tf.constant([1.0]))


def test_vocabularies(session, tmp_path):
    path = tmp_path / "words"
    path.write_text("the\nof\nand\n")
    ids = tf.contrib.lookup.index_table_from_file(str(path), num_oov_buckets=2, vocab_size=2)
    words = tf.contrib.lookup.index_to_string_table_from_file(str(path))
    numbers = tf.contrib.lookup.index_table_from_tensor(tf.constant([7, 9], tf.int64))
    session.run(tf.tables_initializer())
    found = session.run(ids.lookup(tf.constant(["of", "the", "and", "and"])))
    assert found[:2].tolist() == [1, 0] and found[2] == found[3] and found[2] in (2, 3)
    assert session.run(words.lookup(tf.constant([2, 5], tf.int64))).tolist() == [b"and", b"UNK"]
    assert session.run(numbers.lookup(tf.constant([9, 1], tf.int64))).tolist() == [1, -1]
    split = tf.string_split(["the of", "of"])
    sparse = session.run(ids.lookup(split))
    assert sparse.values.tolist() == [0, 1, 1] and sparse.indices.tolist() == [[0, 0], [0, 1], [1, 0]]


def test_nested_values():
    value = {"b": (1, [2]), "a": 3}
    assert tf.nest.flatten(value) == [3, 1, 2]
    assert tf.nest.pack_sequence_as(value, [30, 10, 20]) == {"a": 30, "b": (10, [20])}
    assert tf.nest.map_structure(lambda x, y: x * y, value, value) == {"a": 9, "b": (1, [4])}
    with pytest.raises(ValueError, match="differ"):
        tf.nest.map_structure(lambda x, y: x, [1], [1, 2])
    with pytest.raises(TypeError, match="differ"):
        tf.nest.assert_same_structure([1], (1,))
    tf.nest.assert_same_structure([1], (1,), check_types=False)
    with pytest.raises(ValueError, match="2 values for a structure of 3"):
        tf.nest.pack_sequence_as(value, [1, 2])


def test_values_of_flags():
    flags = Flags()
    flags.define("rate", 0.5, None, float)
    flags.define_switch("fast", False, None)
    flags.parse(["--fast"])
    assert flags.flag_values_dict() == {"rate": 0.5, "fast": True}
    tf.flags.DEFINE_enum("kind_of_cell", "gru", ["gru", "lstm"], "Which cell.")
    tf.flags.FLAGS.parse(["--kind_of_cell=lstm"])
    assert tf.flags.FLAGS.kind_of_cell == "lstm"
    with pytest.raises(SystemExit):
        tf.flags.FLAGS.parse(["--kind_of_cell=rnn"])
    tf.flags.FLAGS.parse([])


def test_scipy_finds_values(session):
    scipy = pytest.importorskip("scipy.optimize")
    target = tf.placeholder(tf.float64, [2])
    w, b = tf.Variable(numpy.array([5.0, -3.0])), tf.Variable(numpy.float64(2.0))
    loss = tf.reduce_sum((w - target) ** 4) + (b + w[0]) ** 2
    seen = []
    options = {"maxiter": 200, "gtol": 1e-10, "ftol": 1e-16}
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(
        loss, options=options, var_to_bounds={b: (0.0, numpy.inf)}
    )
    session.run(tf.global_variables_initializer())
    optimizer.minimize(session, {target: [1.0, 2.0]}, fetches=[loss], loss_callback=seen.append)

    def value(x):
        return ((x[:2] - [1, 2]) ** 4).sum() + (x[2] + x[0]) ** 2

    expected = scipy.minimize(value, [5, -3, 2], bounds=[(None, None)] * 2 + [(0, None)], tol=1e-12).fun
    assert seen[0] == pytest.approx(930.0) and session.run(b) >= 0
    assert session.run(loss, {target: [1.0, 2.0]}) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="equalities"):
        tf.contrib.opt.ScipyOptimizerInterface(loss, equalities=[loss])
    with pytest.raises(ValueError, match="depends on none of"):
        tf.contrib.opt.ScipyOptimizerInterface(tf.constant(1.0), [b])


def test_lower_triangles(session):
    matrix = numpy.arange(1.0, 10.0).reshape(3, 3)
    operator = tf.linalg.LinearOperatorLowerTriangular(matrix)
    right = numpy.ones((3, 2))
    dense, product, solved = session.run([operator.to_dense(), operator.matmul(right), operator.solve(right)])
    numpy.testing.assert_array_equal(dense, numpy.tril(matrix))
    numpy.testing.assert_allclose(product, numpy.tril(matrix) @ right)
    numpy.testing.assert_allclose(numpy.tril(matrix) @ solved, right)


def test_sparse_placeholders_by_the_values_of_a_vector(session):
    sparse = tf.sparse_placeholder(tf.float32, shape=tf.constant([2, 3], tf.int64))
    dense = tf.sparse_tensor_dense_matmul(sparse, tf.ones([3, 2]))
    found = session.run(dense, {sparse: ([[0, 1], [1, 2]], [2.0, 3.0], [2, 3])})
    assert found.tolist() == [[2, 2], [3, 3]]
    open_one = tf.sparse_placeholder(tf.float32, shape=tf.placeholder(tf.int64, [2]))
    assert open_one.get_shape().ndims in (None, 2)


def test_columns_of_files(session, tmp_path):
    path = tmp_path / "pairs"
    path.write_text("a;1.5\nb;2.5\n")
    initializer = tf.lookup.TextFileInitializer(
        str(path), tf.string, 0, tf.float32, 1, vocab_size=2, delimiter=";"
    )
    table = tf.lookup.HashTable(initializer, -1.0)
    lines = tf.contrib.lookup.index_to_string_table_from_file(str(path), value_column_index=0, delimiter=";")
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(tf.constant(["b", "c"]))).tolist() == [2.5, -1.0]
    assert session.run(lines.lookup(tf.constant([1, 2], tf.int64))).tolist() == [b"b", b"UNK"]
    with pytest.raises(TypeError, match="column -2 as int64"):
        tf.lookup.TextFileInitializer(str(path), tf.int64, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, -1)


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [("a\nb\na\n", None, "has the values 0 and 2"), ("a\nb\n", 3, "has 2 lines, and vocab_size is 3")],
)
def test_files_that_are_no_vocabulary(session, tmp_path, text, size, words):
    path = tmp_path / "words"
    path.write_text(text)
    table = tf.contrib.lookup.index_table_from_file(str(path), vocab_size=size)
    with pytest.raises((tf.errors.FailedPreconditionError, tf.errors.InvalidArgumentError), match=words):
        session.run(table.init)
