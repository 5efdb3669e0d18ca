"""What layers compute while they train, and else: choices of Keras's backend."""

from __future__ import annotations

from typing import Any

from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import where
from twofold.static.control_flow.conditional import cond
from twofold.static.keras.backend_shapes import ndim
from twofold.static.keras.state import learning_phase


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """``x`` while layers train, else ``alt``, which may be functions."""
    chosen = learning_phase() if training is None else training
    if hasattr(chosen, "type_"):
        return switch(chosen, x, alt)
    found = x if chosen else alt
    return found() if callable(found) and not hasattr(found, "type_") else found


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """``x`` while layers do not train, else ``alt``, which may be functions."""
    return in_train_phase(alt, x, training)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One value or the other: by a bool what ``tf.cond`` gives, by elements what ``tf.where`` gives."""
    chosen = math.cast(condition, "bool")
    if ndim(chosen) == 0:
        one, two = (
            one if callable(one) else lambda one=one: shape_ops.identity(one)
            for one in (then_expression, else_expression)
        )
        return cond(chosen, one, two)
    one, two = (
        one() if callable(one) else convert_to_tensor(one) for one in (then_expression, else_expression)
    )
    missing = (ndim(one) or 0) - (ndim(chosen) or 0)
    for _ in range(missing):
        chosen = shape_ops.expand_dims(chosen, -1)
    return where(math.logical_and(chosen, creation.ones_like(one, "bool")), one, two)
