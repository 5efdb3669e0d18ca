"""An axis outside of a tensor raises, wherever it is taken, instead of counting round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.array_api as xp
import twofold.static as tf
from twofold.errors import AxisError

DENSE = torch.ones(2, 3)
SPARSE = DENSE.to_sparse()
ARRAY = numpy.ones((2, 3), numpy.float32)
IMAGES = numpy.ones((1, 2, 2, 4), numpy.float32)

CALLS: dict[str, Callable[[int], Any]] = {
    "sparse.sum": lambda axis: torch.sparse.sum(SPARSE, axis),
    "sparse.softmax": lambda axis: torch.sparse.softmax(SPARSE, axis),
    "sparse.log_softmax": lambda axis: torch.sparse.log_softmax(SPARSE, axis),
    "sparse transpose": lambda axis: SPARSE.transpose(0, axis),
    "masked.sum": lambda axis: torch.masked.sum(DENSE, axis),
    "masked.prod": lambda axis: torch.masked.prod(DENSE, (axis,)),
    "weight_norm": lambda axis: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2), dim=axis),
    "take_along_axis": lambda axis: xp.take_along_axis(
        xp.ones((2, 3)), xp.zeros((2, 3), dtype=xp.int64), axis=axis
    ),
    "gather": lambda axis: tf.gather(ARRAY, [0], axis=axis),
    "squeeze": lambda axis: tf.squeeze(ARRAY[:, :1], axis=axis),
    "squeeze of several": lambda axis: tf.squeeze(ARRAY[:, :1], axis=[1, axis]),
    "split": lambda axis: tf.split(ARRAY, 1, axis),
    "unstack": lambda axis: tf.unstack(ARRAY, axis=axis),
    "unstack of a number": lambda axis: tf.unstack(ARRAY, num=2, axis=axis),
    "reverse_sequence": lambda axis: tf.reverse_sequence(ARRAY, [1, 2], seq_axis=axis),
    "batch of reverse_sequence": lambda axis: tf.reverse_sequence(ARRAY, [1, 2], seq_axis=1, batch_axis=axis),
    "cumulative_logsumexp": lambda axis: tf.math.cumulative_logsumexp(ARRAY, axis=axis),
    "sparse_reduce_sum": lambda axis: tf.sparse_reduce_sum(
        tf.SparseTensor([[0, 0]], [1.0], [2, 3]), axis=axis
    ),
    "layer_norm": lambda axis: tf.contrib.layers.layer_norm(tf.constant(ARRAY), begin_norm_axis=axis),
    "group_norm": lambda axis: tf.contrib.layers.group_norm(
        tf.constant(IMAGES), groups=2, channels_axis=axis + 2, reduction_axes=(-3, -2)
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("axis", [2, 5, -7])
def test_an_axis_outside_raises(name: str, axis: int) -> None:
    with tf.Graph().as_default(), pytest.raises(AxisError, match="outside a tensor with [24] axes"):
        CALLS[name](axis)


def test_an_axis_given_twice_raises() -> None:
    with pytest.raises(ValueError, match="occurs twice"):
        torch.sparse.sum(SPARSE, (0, -2))
