"""Shapes of arguments as far as they are declared, before an operation is made."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.errors import ShapeError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import holds_tensor, is_tensor_like
from twofold.static.graph.tensor_shape import TensorShape


def _declared_shape(value: Any) -> TensorShape:
    """Shape of a tensor as far as it is known, or of what becomes one."""
    if is_tensor_like(value):
        return TensorShape(value.get_shape())
    return TensorShape(None if holds_tensor(value) else numpy.shape(value))


def need_compatible_shapes(name: str, labels: Any, scores: Any, what: str = "logits") -> None:
    """Raise ShapeError where the shapes of both, as far as they are declared, cannot be equal."""
    wanted, found = _declared_shape(labels), _declared_shape(scores)
    if not wanted.is_compatible_with(found):
        sizes = f"labels of shape {wanted} for {what} of shape {found}"
        raise failed(name, ShapeError(sizes, "Make the shapes equal."))
