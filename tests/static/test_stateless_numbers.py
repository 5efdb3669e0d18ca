"""Random numbers that depend on two integers alone."""

from __future__ import annotations

import itertools

import numpy
import pytest

import twofold.static as tf

STATELESS = {
    "uniform": (lambda seed: tf.random.stateless_uniform([4000], seed, -1.0, 3.0), 1.0, 4 / 12**0.5),
    "normal": (lambda seed: tf.random.stateless_normal([4000], seed, 2.0, 0.5), 2.0, 0.5),
    "truncated": (lambda seed: tf.random.stateless_truncated_normal([4000], seed), 0.0, 0.8796),
    "integers": (lambda seed: tf.random.stateless_uniform([4000], seed, 2, 7, tf.int64), 4.0, 2**0.5),
    "classes": (lambda seed: tf.random.stateless_categorical(tf.log([[0.2, 0.8]]), 4000, seed), 0.8, 0.4),
}


@pytest.mark.parametrize("name", STATELESS)
def test_two_integers_alone_decide_stateless_numbers(name: str) -> None:
    make, mean, deviation = STATELESS[name]
    found = []
    for seed in ([1, 2], [1, 2], [2, 1], [-1, 2], [1, 3]):
        with tf.Graph().as_default(), tf.Session() as session:
            given = tf.placeholder(tf.int64, [2])
            values, declared = make(given), make(seed)
            one, same = session.run([values, declared], {given: seed})
            numpy.testing.assert_array_equal(one, same)
            numpy.testing.assert_array_equal(one, session.run(values, {given: seed}))
            found.append(one.ravel())
    numpy.testing.assert_array_equal(found[0], found[1])
    for other in found[1:]:
        assert abs(other.mean() - mean) < 5 * deviation / 4000**0.5
        assert abs(other.std() - deviation) < 0.05 * deviation
    assert all((a != b).mean() > 0.15 for a, b in itertools.combinations(found[1:], 2))


def test_a_stateless_seed_is_two_integers() -> None:
    with pytest.raises(ValueError, match="Give two integers"):
        tf.random.stateless_normal([3], [1, 2, 3])
    with pytest.raises(ValueError, match="needs maxval"):
        tf.random.stateless_uniform([3], [1, 2], dtype=tf.int32)
    assert tf.contrib.stateless.stateless_random_normal is tf.random.stateless_normal
