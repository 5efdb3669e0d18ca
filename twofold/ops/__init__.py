"""The operations: one entry each, from which functions, methods, gradients, code and tests are derived."""

from twofold.ops import (
    activation,
    elementwise_arithmetic,
    elementwise_logic,
    elementwise_math,
    reduction,
    source,
)

__all__ = [
    "activation",
    "elementwise_arithmetic",
    "elementwise_logic",
    "elementwise_math",
    "reduction",
    "source",
]
