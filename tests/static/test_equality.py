"""``==`` of declared tensors is identity; the expected values were recorded from TensorFlow 2.21, ``tf.compat.v1``."""

import twofold as torch
import twofold.static as tf


def test_tensors_are_equal_to_themselves_alone():
    c, d, v = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0]), tf.Variable(1.0)
    p = tf.placeholder(tf.float32)
    assert [c == c, c == d, c == [1.0, 2.0], p == p] == [True, False, False, True]
    assert [c != c, c != d, c != 0, p != p] == [False, True, True, False]
    assert [c == v, v == c, v == v, v != v] == [False, False, True, False]
    assert [(c + d) == (c + d), tf.identity(c) == c, c[0] == 1.0] == [False, False, False]


def test_tensors_are_found_in_lists_and_dictionaries():
    c, d = tf.constant([1.0, 2.0]), tf.placeholder(tf.float32)
    assert c in [d, c] and d in [c, d] and c not in [d, c + 1.0]
    assert [d, c].index(c) == 1 and {c: "c", d: "d"}[d] == "d"
    assert [tensor for tensor in [c, d] if tensor not in [c]] == [d]


def test_other_tensors_are_compared_element_by_element():
    assert (torch.tensor([1.0, 2.0]) == torch.tensor([1.0, 3.0])).tolist() == [True, False]
    compiled = torch.compile(lambda x: x == 2.0)
    assert compiled(torch.tensor([1.0, 2.0])).tolist() == [False, True]
    assert torch.vmap(lambda x: x != 2.0)(torch.tensor([1.0, 2.0])).tolist() == [True, False]
    found = tf.equal(tf.constant([1.0, 2.0]), [1.0, 3.0])
    with tf.Session() as session:
        assert session.run(found).tolist() == [True, False]
