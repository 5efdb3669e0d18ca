"""Convolutions whose kernels differ from position to position: ``tf.keras.layers.LocallyConnected1D`` and ``2D``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.signatures import takes
from twofold.static.arrays import shape_ops
from twofold.static.keras.backend_shapes import first_to_last
from twofold.static.layers.convolutional import Variables, for_each_axis, layer_parameters


def windows(inputs: Any, counts: Sequence[int], size: Sequence[int], step: Sequence[int]) -> Any:
    """The windows of inputs with the channels last: (positions, batch, elements of a window)."""
    width = int(numpy.prod(size)) * inputs.get_shape()[-1].value
    found = []
    for position in itertools.product(*map(range, counts)):
        ends = [slice(at * s, at * s + k) for at, s, k in zip(position, step, size)]
        found.append(shape_ops.reshape(inputs[(slice(None), *ends)], [-1, width]))
    return shape_ops.stack(found, 0)


def locally_connected(count: int) -> Callable[..., Any]:
    """The function of a layer over ``count`` axes, with a kernel and a bias for each position."""
    own = f"locally_connected{count}d"

    @takes(**layer_parameters("kernel"))
    def layer(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = (1,) * count,
        padding: str = "valid",
        data_format: str = "channels_last",
        **options: Any,
    ) -> Any:
        if padding.lower() != "valid":
            raise ValueError(
                f"Invalid border mode for LocallyConnected{count}D (only 'valid' is supported): {padding}, at {here()}."
            )
        made = Variables(own, inputs, options, count, data_format)
        x = first_to_last(made.tensor, data_format)
        size, step = for_each_axis(kernel_size, count), for_each_axis(strides, count)
        sizes = x.get_shape().as_list()[1:-1]
        if None in sizes:
            raise ValueError(
                f"LocallyConnected{count}D: sizes {sizes} are not all known, at {here()}. Declare them."
            )
        counts = [(n - k) // s + 1 for n, k, s in zip(sizes, size, step)]
        positions = int(numpy.prod(counts))
        shape = [positions, int(numpy.prod(size)) * made.channels, filters]
        kernel = made.variable("kernel", shape)
        found = math.matmul(windows(x, counts, size, step), kernel)
        rows = shape_ops.shape(x)[0] if x.get_shape()[0].value is None else x.get_shape()[0].value
        result = shape_ops.reshape(shape_ops.transpose(found, [1, 0, 2]), [rows, *counts, filters])
        if options["use_bias"]:
            result = result + made.variable("bias", [*counts, filters], "bias")
        made.options = {**options, "use_bias": False}
        return made.finish(first_to_last(result, data_format, True), filters)

    layer.__name__ = own
    return layer
