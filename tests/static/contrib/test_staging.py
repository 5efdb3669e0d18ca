"""Buffers between the steps of a pipeline."""

import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_elements_leave_in_the_order_they_came(session):
    area = tf.contrib.staging.StagingArea([tf.float32, tf.int32], shapes=[[2], []])
    x = tf.placeholder(tf.float32, [2])
    put, get = area.put([x, tf.cast(tf.reduce_sum(x), tf.int32)]), area.get()
    session.run(put, {x: [1, 2]})
    for _ in range(3):
        session.run(put, {x: [3, 4]})
    assert session.run(area.size()) == 4
    array, number = session.run(get)
    assert array.tolist() == [1, 2] and number == 3
    assert [one.get_shape().as_list() for one in get] == [[2], []]


def test_elements_may_be_dicts(session):
    area = tf.contrib.staging.StagingArea([tf.int32, tf.int32], names=["a", "b"], capacity=1)
    session.run(area.put({"b": tf.constant(2), "a": tf.constant(1)}))
    assert session.run(area.get()) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="Give a dict"):
        area.put([1, 2])
