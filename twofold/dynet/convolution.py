"""Convolutions and pooling over images of rows, columns and channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dynet.expression import Expression, of_rank
from twofold.dynet.graph import operation
from twofold.frontend.install import PUBLIC

_conv2d, _max_pool2d, _pad = PUBLIC["conv2d"], PUBLIC["max_pool2d"], PUBLIC["pad"]


def _image(x: Expression) -> Any:
    """The stored image: batch, channels, columns, rows."""
    tensor = of_rank(x, 3)
    return tensor if x._batch != 1 else tensor.unsqueeze(0)


def _result(made: Any, batch: int) -> Expression:
    return Expression(made if batch != 1 else made.squeeze(0), batch)


def _padded(image: Any, window: Sequence[int], stride: Sequence[int], value: float) -> Any:
    """``image`` with the border that gives one result for each stride; the odd row or column is after it."""
    pads: list[int] = []
    for size, width, step in zip(reversed(image.shape[-2:]), reversed(window), reversed(stride)):
        total = max((-(-size // step) - 1) * step + width - size, 0)
        pads += [total // 2, total - total // 2]
    return _pad(image, pads, "constant", value) if any(pads) else image


def _check_stride(what: str, stride: Sequence[int]) -> list[int]:
    if len(stride) != 2:
        raise ValueError(f"{what}: two strides, for rows and columns, not {list(stride)}")
    return [int(stride[1]), int(stride[0])]


def _convolved(x: Expression, f: Expression, b: Any, stride: Sequence[int], is_valid: bool) -> Expression:
    step, filters, image = _check_stride("conv2d", stride), of_rank(f, 4), _image(x)
    if not is_valid:
        image = _padded(image, filters.shape[-2:], step, 0.0)
    return _result(_conv2d(image, filters, b, step), x._batch)


@operation
def conv2d(x: Expression, f: Expression, stride: Sequence[int], is_valid: bool = True) -> Expression:
    """The convolution of an image with filters.

    Args:
        x: Dimensions (rows, columns, channels).
        f: Dimensions (rows, columns, channels, filters).
        stride: Steps along rows and columns.
        is_valid: Whether filters stay inside of the image; else it gets a border of zeros, so that the result has
            as many rows and columns as there are strides.

    >>> import numpy
    >>> import twofold.dynet as dy
    >>> image, ones = dy.inputTensor(numpy.ones((3, 4, 1))), dy.inputTensor(numpy.ones((2, 2, 1, 5)))
    >>> dy.conv2d(image, ones, [1, 1]).dim(), dy.conv2d(image, ones, [1, 1], is_valid=False).dim()
    (((2, 3, 5), 1), ((3, 4, 5), 1))
    """
    return _convolved(x, f, None, stride, is_valid)


@operation
def conv2d_bias(
    x: Expression, f: Expression, b: Expression, stride: Sequence[int], is_valid: bool = True
) -> Expression:
    """``conv2d`` with a number added for each filter."""
    return _convolved(x, f, of_rank(b, 1), stride, is_valid)


@operation
def maxpooling2d(
    x: Expression, ksize: Sequence[int], stride: Sequence[int], is_valid: bool = True
) -> Expression:
    """The largest elements of windows of ``ksize`` rows and columns."""
    step, window = _check_stride("maxpooling2d", stride), [int(ksize[1]), int(ksize[0])]
    image = _image(x)
    if not is_valid:
        image = _padded(image, window, step, float("-inf"))
    return _result(_max_pool2d(image, window, step), x._batch)


@operation
def filter1d_narrow(x: Expression, y: Expression) -> Expression:
    """Filters moved along the columns of a matrix, inside of it.

    Args:
        x: Dimensions (rows, columns).
        y: Dimensions (rows, width), or (rows, width, filters).

    Returns:
        Dimensions (filters, columns - width + 1).
    """
    filters = of_rank(y, 3)
    image = of_rank(x, 2)
    count, width, rows = filters.shape[-3:]
    columns = image.shape[-2] - width + 1
    total: Any = 0
    for start in range(width):
        part = image.narrow(image.ndim - 2, start, columns)
        total = total + part @ filters.select(filters.ndim - 2, start).reshape(count, rows).transpose(0, 1)
    return Expression(total, x._batch)


@operation
def kmax_pooling(x: Expression, k: int, d: int = 1) -> Expression:
    """The ``k`` largest elements along dimension ``d``, in the order in which they stand.

    >>> import twofold.dynet as dy
    >>> dy.kmax_pooling(dy.inputTensor([[3, 1, 2], [4, 6, 5]]), 2).value()
    array([[3., 2.],
           [6., 5.]])
    """
    tensor = of_rank(x, d + 1)
    axis = tensor.ndim - 1 - d
    positions = tensor.detach().topk(k, axis)[1].sort(axis)[0]
    return Expression(tensor.gather(axis, positions), x._batch)
