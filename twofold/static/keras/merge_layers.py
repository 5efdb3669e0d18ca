"""Layers of several inputs, and the functions of the same: ``tf.keras.layers.Add`` and ``add``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.keras import backend_shapes, masking
from twofold.static.keras.table import layer_of


def _alike(inputs: Sequence[Any]) -> list[Any]:
    """Inputs with axes of size 1 behind the batch, as many as the one of most axes has more."""
    given = [convert_to_tensor(one) for one in inputs]
    ranks = [len(one.get_shape()) for one in given]
    most = max(ranks)
    for k, rank in enumerate(ranks):
        for _ in range(most - rank):
            given[k] = shape_ops.expand_dims(given[k], 1)
    return given


def _merged(name: str, words: str, pair: Callable[[Any, Any], Any]) -> tuple[Any, Callable[..., Any]]:
    """A layer of a list of inputs, and the function of that list."""

    def merge(inputs: Any) -> Any:
        if not isinstance(inputs, list) or len(inputs) < 2 or (name == "Subtract" and len(inputs) != 2):
            raise ValueError(
                f"A `{name}` layer should be called on a list of inputs, not {inputs}, at {here()}."
            )
        return functools.reduce(pair, _alike(inputs))

    made = layer_of(name, merge, f"The {words} of a list of inputs.")

    def function(inputs: Any, **options: Any) -> Any:
        return made(**options)(inputs)

    function.__doc__ = f"The {words} of a list of inputs."
    return made, function


Add, add = _merged("Add", "sum", math.add)
Subtract, subtract = _merged("Subtract", "difference", math.subtract)
Multiply, multiply = _merged("Multiply", "product", math.multiply)
Maximum, maximum = _merged("Maximum", "larger elements", math.maximum)
Minimum, minimum = _merged("Minimum", "smaller elements", math.minimum)
Average = layer_of(
    "Average",
    lambda inputs: functools.reduce(math.add, _alike(inputs)) / float(len(inputs)),
    "The mean of a list of inputs.",
)
Concatenate = layer_of(
    "Concatenate",
    lambda inputs, axis=-1: shape_ops.concat(inputs, axis),
    "A list of inputs behind each other.",
)


def average(inputs: Any, **options: Any) -> Any:
    """The mean of a list of inputs."""
    return Average(**options)(inputs)


def concatenate(inputs: Any, axis: int = -1, **options: Any) -> Any:
    """A list of inputs behind each other."""
    return Concatenate(axis, **options)(inputs)


def _dot(inputs: Any, axes: Any, normalize: bool = False) -> Any:
    a, b = inputs
    ranks = len(a.get_shape()), len(b.get_shape())
    one, two = (axes, axes) if isinstance(axes, int) else axes
    one, two = one % ranks[0], two % ranks[1]
    if normalize:
        a, b = nn.l2_normalize(a, one), nn.l2_normalize(b, two)
    return backend_shapes.batch_dot(a, b, (one, two))


Dot = layer_of("Dot", _dot, "The products of two inputs, summed along ``axes``.")


def dot(inputs: Any, axes: Any, normalize: bool = False, **options: Any) -> Any:
    """The products of two inputs, summed along ``axes``."""
    return Dot(axes, normalize, **options)(inputs)


for _one in (Add, Average, Maximum, Minimum, Multiply, Subtract):
    setattr(_one, "compute_mask", masking.of_merged)  # noqa: B010
setattr(Concatenate, "compute_mask", masking.of_concatenated)  # noqa: B010
