"""What is fed, in dtypes that NumPy does not have or that are not those of the placeholder."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
import twofold.static as tf


@pytest.mark.parametrize("fed", [[1.0, 2.5], numpy.array([1.0, 2.5]), numpy.float32([1.0, 2.5])], ids=str)
def test_brain_floats(fed):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.bfloat16, [2])
        doubled = tf.cast(x, tf.float32) * 2.0
        for _ in range(3):  # the first run of its kind, and later ones
            assert session.run(doubled, {x: fed}).tolist() == [2.0, 5.0]
        assert session.run(doubled, {x: numpy.uint16([1, 3])}).tolist() == [2.0, 6.0]  # numbers, not bits
        assert session.run(doubled, {x: torch.tensor(fed, dtype=torch.bfloat16)}).tolist() == [2.0, 5.0]
