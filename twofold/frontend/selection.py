"""Functions whose result has a shape that depends on values: they observe their operand."""

from __future__ import annotations

from typing import Any

import numpy

from twofold import _core
from twofold.ops.base import broadcast_shapes as common_shape
from twofold.ops.base import ops, public
from twofold.ops.indexing.masks import nonzero_indices, nonzero_rows

Tensor = _core.Tensor


@public("nonzero", methods=("nonzero",))
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: one row each or, ``as_tuple``, one int64 tensor an axis.

    >>> import twofold as torch
    >>> torch.nonzero(torch.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    array = input._read()
    if as_tuple:
        return tuple([_core.from_array(index, False) for index in nonzero_indices(numpy.atleast_1d(array))])
    return _core.from_array(nonzero_rows(array), False)


@public("argwhere", methods=("argwhere",))
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, one row each.

    >>> import twofold as torch
    >>> torch.argwhere(torch.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)


@public("masked_select", methods=("masked_select",))
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where ``mask`` is true, in row-major order; the two broadcast.

    >>> import twofold as torch
    >>> torch.masked_select(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    tensor([1., 3.])
    """
    shape = common_shape(tuple(input.shape), tuple(mask.shape))
    values, chosen = (ops.reshape(ops.broadcast_to(one, shape), (-1,)) for one in (input, mask))
    return values[chosen]
