"""``tensorflow.python.ops.inplace_ops``: rows of a tensor changed. The tensor given stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.arrays.segments import tensor_scatter_add, tensor_scatter_sub, tensor_scatter_update


def _changed(scatter: Callable[[Any, Any, Any], Any], x: Any, i: Any, v: Any) -> Any:
    x, v = convert_to_tensor(x), convert_to_tensor(v)
    if i is None:
        whole = shape_ops.expand_dims(x, 0)
        return shape_ops.squeeze(scatter(whole, [[0]], shape_ops.expand_dims(v, 0)), [0])
    i = convert_to_tensor(i)
    if i.shape.ndims == 0:
        i, v = shape_ops.expand_dims(i, 0), shape_ops.expand_dims(v, 0)
    return scatter(x, shape_ops.expand_dims(i, 1), v)


def alias_inplace_update(x: Any, i: Any, v: Any) -> Any:
    """``x`` with the rows ``i`` replaced by ``v``: a number and a row, several of both, or None and a whole tensor.

    >>> import twofold.static as tf
    >>> from twofold.static.python.ops import inplace_ops
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(inplace_ops.alias_inplace_update([1.0, 2.0, 3.0], 1, 5.0)))
    [1. 5. 3.]
    """
    return _changed(tensor_scatter_update, x, i, v)


def alias_inplace_add(x: Any, i: Any, v: Any) -> Any:
    """``x`` with ``v`` added to the rows ``i``, named as in ``alias_inplace_update``."""
    return _changed(tensor_scatter_add, x, i, v)


def alias_inplace_sub(x: Any, i: Any, v: Any) -> Any:
    """``x`` with ``v`` subtracted from the rows ``i``, named as in ``alias_inplace_update``."""
    return _changed(tensor_scatter_sub, x, i, v)


inplace_update, inplace_add, inplace_sub = alias_inplace_update, alias_inplace_add, alias_inplace_sub
