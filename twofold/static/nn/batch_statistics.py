"""Statistics by which layers normalise a batch."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import ops
from twofold.static.api.op_functions import Number, axis_of, operation


@operation("BatchMoments", several=list, count=2)
def batch_moments(x: Any, axes: Number, keepdims: Number = False) -> Any:
    """Mean and variance over ``axes`` with derivatives of every order, as TensorFlow's fused kernel has them.

    ``moments`` takes the mean in its variance for a constant, which is right for first derivatives alone.
    """
    found, kept = axis_of(axes), bool(keepdims)
    return [ops.mean(x, found, kept), ops.var(x, found, correction=0, keepdim=kept)]
