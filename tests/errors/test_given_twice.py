"""Two names of one parameter, both given: neither is forgotten in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold.errors import ArgumentError

X = torch.arange(6.0).reshape(2, 3)
INDEX = torch.tensor([[0]])
IMAGE = numpy.ones((1, 2, 2, 2), numpy.float32)

REDUCTIONS = ("sum", "mean", "prod", "all", "any", "amax", "amin", "argmax", "argmin", "logsumexp", "std", "var",
              "softmax", "log_softmax", "count_nonzero")  # fmt: skip
CALLS: dict[str, Callable[[], Any]] = {
    "cat": lambda: torch.cat([X, X], 1, axis=0),
    "stack": lambda: torch.stack([X, X], 1, axis=0),
    "flip": lambda: X.flip(0, dims=(1,)),
    "tensor_split": lambda: X.tensor_split(2, sections=3),
    "hsplit": lambda: X.hsplit(3, indices=[1]),
    "vsplit": lambda: torch.vsplit(X, sections=2, indices=[1]),
    "scatter": lambda: X.scatter(0, INDEX, torch.ones(1, 1), value=2.0),
    "unbiased std": lambda: X.std(0, True, correction=0),
    "reduce_sum": lambda: tf.reduce_sum([[1.0]], axis=0, reduction_indices=1),
    "keepdims": lambda: tf.reduce_max([[1.0]], axis=0, keepdims=True, keep_dims=False),
    "moments": lambda: tf.nn.moments(tf.constant([[1.0]]), [0], keep_dims=True, keepdims=False),
    "expand_dims": lambda: tf.expand_dims([1.0], 0, dim=1),
    "cond": lambda: tf.cond(tf.constant(True), lambda: 1.0, lambda: 2.0, fn1=lambda: 3.0),
    "max_pool": lambda: tf.nn.max_pool(IMAGE, 1, 1, "SAME", input=IMAGE),
    "conv1d": lambda: tf.nn.conv1d(IMAGE[0], IMAGE[:, 0], 1, "SAME", input=IMAGE[0]),
    "conv2d_transpose": lambda: tf.nn.conv2d_transpose(IMAGE, IMAGE, [1, 2, 2, 2], [1, 1], filters=IMAGE),
    "depthwise_conv2d": lambda: tf.nn.depthwise_conv2d(
        IMAGE, IMAGE, [1, 1, 1, 1], "SAME", rate=[1, 1], dilations=[1, 1]
    ),
    "ctc_loss": lambda: tf.nn.ctc_loss(
        tf.SparseTensor([[0, 0]], [0], [1, 1]), inputs=IMAGE[0], logits=IMAGE[0]
    ),
    "cross_entropy": lambda: tf.nn.softmax_cross_entropy_with_logits(
        labels=[1.0], logits=[1.0], dim=0, axis=0
    ),
    "cosine_distance": lambda: tf.losses.cosine_distance([[1.0]], [[1.0]], axis=1, dim=0),
    "argmax": lambda: tf.argmax([[1.0]], 0, dimension=1),
    "pool": lambda: tf.nn.pool(IMAGE, [1, 1], "MAX", "SAME", dilation_rate=[1, 1], dilations=[1, 1]),
    "space_to_batch": lambda: tf.space_to_batch(IMAGE, [[0, 0], [0, 0]], 2, block_shape=2),
    "crop_and_resize": lambda: tf.image.crop_and_resize(
        IMAGE, [[0, 0, 1, 1.0]], [0], [1, 1], box_indices=[0]
    ),
    "patches": lambda: tf.extract_image_patches(
        IMAGE, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME", sizes=[1, 1, 1, 1]
    ),
    **{name: lambda name=name: getattr(torch, name)(X, 0, axis=1) for name in REDUCTIONS},
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_given_twice_raises(name: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ArgumentError, match="both given"):
        CALLS[name]()


def test_either_name_alone_is_taken() -> None:
    assert torch.sum(X, axis=1).tolist() == X.sum(1).tolist()
    assert torch.softmax(X, axis=0).tolist() == X.softmax(0).tolist()
    assert torch.cat([X, X], axis=1).shape == (2, 6) and torch.stack([X, X], axis=2).shape == (2, 3, 2)
    assert X.flip(dims=(1,)).tolist() == X.flip(1).tolist()
    assert X.std(0, correction=0).tolist() == X.std(0, False).tolist()
