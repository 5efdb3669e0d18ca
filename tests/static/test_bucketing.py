"""``tf.contrib.training.bucket``: batches, checked against the elements that were put in."""

import numpy as np
import pytest

import twofold.static as tf

training = tf.contrib.training


def batches_of(fetches):
    """All batches until the queues are closed."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(fetches))
        coord.request_stop()
        coord.join(threads)
    return found


@pytest.fixture
def lengths():
    with tf.Graph().as_default():
        yield tf.train.slice_input_producer([[1, 2, 3, 4, 5, 6, 7]], num_epochs=1, shuffle=False)[0]


@pytest.mark.parametrize("single", [False, True])
def test_sequences_are_batched_by_length_and_padded(lengths, single):
    sequence = tf.fill([lengths], lengths)
    made = training.bucket_by_sequence_length(
        lengths,
        [sequence],
        2,
        [3, 6],
        dynamic_pad=True,
        allow_smaller_final_batch=True,
        num_threads=1 + single,
    )
    found = batches_of(made)
    assert sorted(n for each, _ in found for n in each) == [1, 2, 3, 4, 5, 6, 7]
    for each, (rows,) in found:
        assert len({np.searchsorted([3, 6], n, side="right") for n in each}) == 1
        np.testing.assert_array_equal(rows, [[n] * n + [0] * (max(each) - n) for n in each])


def test_buckets_have_sizes_of_their_own_and_leave_out_what_is_not_kept(lengths):
    number, made = training.bucket(
        {"n": lengths}, lengths % 2, [3, 2], 2, keep_input=tf.not_equal(lengths, 4), bucket_capacities=[4, 4]
    )
    found = sorted((int(k), each["n"].tolist()) for k, each in batches_of((number, made)))
    assert found == [(1, [1, 3]), (1, [5, 7])]


def test_wrong_arguments():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="has 1 elements for 2 buckets"):
            training.bucket([tf.zeros([2])], 0, [4], 2)
        with pytest.raises(ValueError, match="at least one tensor"):
            training.bucket([], 0, 4, 2)
        with pytest.raises(TypeError, match="list or tuple of integers"):
            training.bucket_by_sequence_length(1, [tf.zeros([2])], 4, 3)
        with pytest.raises(ValueError, match="increasing lengths, but saw: 3 before 3"):
            training.bucket_by_sequence_length(1, [tf.zeros([2])], 4, [3, 3])
