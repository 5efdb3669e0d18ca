"""Sets that are rows of tensors, against Python's."""

import numpy as np
import pytest

import twofold.static as tf

_PAIRS = {
    "set_intersection": lambda a, b: a & b,
    "set_difference": lambda a, b: a - b,
    "set_union": lambda a, b: a | b,
}


@pytest.mark.parametrize("name", _PAIRS)
def test_pairs_of_dense_and_sparse_rows(name):
    random = np.random.default_rng(0)
    a, b = random.integers(0, 5, (2, 3, 4)), random.integers(0, 5, (2, 3, 2))
    positions = np.argwhere(np.ones_like(b))
    sparse = tf.SparseTensor(positions, b.ravel(), b.shape)
    with tf.Session() as session:
        found = session.run([getattr(tf.sets, name)(a, other) for other in (b, sparse)])
    rows = {key: sorted(_PAIRS[name](set(a[key].tolist()), set(b[key].tolist()))) for key in np.ndindex(2, 3)}
    for one in found:
        assert one.values.tolist() == [value for row in rows.values() for value in row]
        assert one.indices.tolist() == [[*key, k] for key, row in rows.items() for k in range(len(row))]
        assert one.dense_shape.tolist() == [2, 3, max(map(len, rows.values()))]


def test_sizes_and_strings():
    words = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "a", "b"], [3, 2])
    with tf.Session() as session:
        assert session.run(tf.sets.size(words)).tolist() == [1, 0, 1]
        assert session.run(tf.sets.union(words, [["b"], ["c"], ["b"]]).values).tolist() == [
            b"a",
            b"b",
            b"c",
            b"b",
        ]
    with pytest.raises(TypeError, match="dtypes"):
        tf.sets.set_union([[1]], [[1.0]])
