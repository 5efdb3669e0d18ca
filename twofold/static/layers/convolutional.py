"""Convolution layers that make their variables, as ``tf.layers`` has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twofold.errors import GraphError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.runtime.tracing import here
from twofold.static import initializers, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.api.signatures import takes
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.shape_ops import shape as shape_of
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import describe
from twofold.static.layers.graph_collections import with_loss
from twofold.static.nn.pooling import LAYOUTS, channels_first, need_axes
from twofold.static.variables.variable_scope import get_variable, layer_scope


def for_each_axis(value: Any, count: int) -> list[int]:
    """A size for each of ``count`` axes, of which one number stands for all."""
    return [int(item) for item in value] if isinstance(value, Iterable) else [int(value)] * count


class Variables:
    """The variables and the last steps of one layer, whose ``options`` are those of ``layer_parameters``."""

    def __init__(
        self,
        kind: str,
        inputs: Any,
        options: dict[str, Any],
        count: int = 0,
        data_format: str = "channels_last",
    ) -> None:
        self.tensor = need_axes(kind, inputs, count) if count else convert_to_tensor(inputs)
        self.options = options
        self.last = not count or not channels_first(kind, data_format, count)
        self.data_format: Any = LAYOUTS[count][not self.last] if count else None
        axis, shape = -1 if self.last else 1, self.tensor.type_.shape
        if not count and shape != UNKNOWN_RANK and len(shape) < 2:
            what = f"{kind}: {describe(self.tensor)} has {len(shape)} axes, at {here()}"
            raise ShapeError(
                what, "Give at least 2, of which the first is the batch; tf.expand_dims adds an axis."
            )
        self.channels = shape[axis] if shape != UNKNOWN_RANK else -1
        if self.channels < 0:
            raise GraphError(
                f"{kind}: axis {axis} of {describe(self.tensor)}, its channels, is of unknown size, at {here()}",
                "Give the placeholder all axes, and that size.",
            )

    def variable(self, name: str, shape: list[int], kind: str = "kernel") -> Any:
        """A variable of the layer with the options of its kind."""
        options = self.options
        first, regularizer, constraint = (
            options.get(f"{kind}_{what}") for what in ("initializer", "regularizer", "constraint")
        )
        if first is None and kind == "bias":
            first = initializers.zeros_initializer()
        dtype, trainable = self.tensor.dtype, options["trainable"]
        return get_variable(name, shape, dtype, first, regularizer, trainable, constraint=constraint)

    def finish(self, made: Any, filters: int) -> Any:
        """Bias and activation."""
        if self.options["use_bias"]:
            bias = self.variable("bias", [filters], "bias")
            made = nn.bias_add(made, bias, self.data_format, name="BiasAdd")
        activation = self.options["activation"]
        made = made if activation is None else activation(made)
        return with_loss(made, self.options["activity_regularizer"])


def layer_parameters(*kernels: str) -> dict[str, Any]:
    """The parameters that layers end with, options of their variables; ``kernels`` are those beside the bias."""
    variables = [*kernels, "bias"]
    return {
        "activation": None,
        "use_bias": True,
        **{f"{kind}_initializer": None for kind in variables},
        **{f"{kind}_regularizer": None for kind in variables},
        "activity_regularizer": None,
        **{f"{kind}_constraint": None for kind in variables},
        "trainable": True,
        "name": None,
        "reuse": None,
    }


def _plain(count: int, convolve: Callable[..., Any], *example: str) -> Callable[..., Any]:
    own = f"conv{count}d"

    @takes(**layer_parameters("kernel"))
    def layer(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        **options: Any,
    ) -> Any:
        made = Variables(own, inputs, options, count, data_format)
        with layer_scope(options["name"], own, options["reuse"]):
            kernel = made.variable(
                "kernel", [*for_each_axis(kernel_size, count), made.channels, int(filters)]
            )
            rates = for_each_axis(dilation_rate, count)
            tensor, around = made.tensor, padding.upper()
            if around == "CAUSAL" and count == 1:
                before = [rates[0] * (for_each_axis(kernel_size, 1)[0] - 1), 0]
                sizes = [[0, 0], before] if data_format == "channels_first" else [before, [0, 0]]
                tensor, around = creation.pad(tensor, [[0, 0], *sizes]), "VALID"
            settings = {"data_format": made.data_format, "dilations": rates}
            step = for_each_axis(strides, count)
            result = convolve(tensor, kernel, step, around, name=f"Conv{count}D", **settings)
            return made.finish(result, int(filters))

    return described(
        layer,
        own,
        f"Convolution over {count} axes with variables ``kernel`` and ``bias`` of its own.\n\n"
        "``padding`` is 'valid' or 'same'"
        + (", or 'causal': zeros before the first element alone" if count == 1 else "")
        + "; initializers and regularizers go by name, such as\n"
        "``kernel_initializer``. Raises GraphError where the number of channels is unknown.",
        *example,
    )


conv1d = _plain(
    1, nn.conv1d, "print(tf.layers.conv1d(tf.zeros([2, 9, 3]), 8, 3, strides=2).shape)", "(2, 4, 8)"
)
conv2d = _plain(
    2,
    nn.conv2d,
    'print(tf.layers.conv2d(tf.zeros([2, 9, 9, 3]), 8, 3, padding="same").shape)',
    "(2, 9, 9, 8)",
)
conv3d = _plain(
    3, nn.conv3d, "print(tf.layers.conv3d(tf.zeros([2, 5, 5, 5, 3]), 8, 3).shape)", "(2, 3, 3, 3, 8)"
)


def _transposed(count: int, convolve: Callable[..., Any], sizes: str, *example: str) -> Callable[..., Any]:
    own = f"conv{count}d_transpose"

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
        beyond = options.pop("output_padding", None)  # of Keras's layers
        made = Variables(own, inputs, options, count, data_format)
        size, step = for_each_axis(kernel_size, count), for_each_axis(strides, count)
        with layer_scope(options["name"], own, options["reuse"]):
            kernel = made.variable("kernel", [*size, int(filters), made.channels])
            same = padding.lower() == "same"
            if beyond is None:
                extra = [0 if same else max(k - s, 0) for k, s in zip(size, step, strict=True)]
            else:
                extra = _extra(own, size, step, for_each_axis(beyond, count), same)
            wanted = _wanted(made, step, extra, int(filters))
            result = convolve(made.tensor, kernel, wanted, step, padding.upper(), made.data_format, name=own)
            return made.finish(result, int(filters))

    text = f"Transposed convolution with variables ``kernel`` ({sizes}, out, in) and ``bias`` of its own."
    return described(layer, own, text, *example)


def _extra(own: str, size: list[int], step: list[int], beyond: list[int], same: bool) -> list[int]:
    """How much larger than the strides say the axes of a transposed convolution with padding of its output are."""
    if any(b >= s for b, s in zip(beyond, step, strict=True)):
        raise ValueError(f"{own}: strides {step} must be greater than output padding {beyond}, at {here()}.")
    edges = [2 * (k // 2) if same else 0 for k in size]
    return [k - s - edge + b for k, s, edge, b in zip(size, step, edges, beyond, strict=True)]


conv2d_transpose = _transposed(
    2,
    nn.conv2d_transpose,
    "height, width",
    "print(tf.layers.conv2d_transpose(tf.zeros([2, 4, 4, 3]), 8, 2, strides=2).shape)",
    "(2, 8, 8, 8)",
)
conv3d_transpose = _transposed(
    3,
    nn.conv3d_transpose,
    "depth, height, width",
    "print(tf.layers.conv3d_transpose(tf.zeros([2, 3, 4, 4, 3]), 8, 2, strides=2).shape)",
    "(2, 6, 8, 8, 8)",
)


def _wanted(made: Variables, strides: list[int], extra: list[int], filters: int) -> Any:
    """The shape of the result, of which only the channels need be known before the graph is fed."""
    first = 1 if made.last else 2
    batch, *sizes = [
        size if size >= 0 else shape_of(made.tensor)[axis]
        for axis, size in enumerate(made.tensor.type_.shape)
        if axis == 0 or first <= axis < first + len(strides)
    ]
    spatial = [n * s + e for n, s, e in zip(sizes, strides, extra, strict=True)]
    return [batch, *spatial, filters] if made.last else [batch, filters, *spatial]


@example("print(tf.layers.separable_conv2d(tf.zeros([2, 4, 4, 3]), 8, 3).shape)", "(2, 2, 2, 8)")
@takes(**layer_parameters("depthwise", "pointwise"))
def separable_conv2d(
    inputs: Any,
    filters: int | None,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    depth_multiplier: int = 1,
    **options: Any,
) -> Any:
    """Each channel convolved on its own, then mixed: variables ``depthwise_kernel``, ``pointwise_kernel``, ``bias``.

    With ``filters`` None they are not mixed, as in layers of ``tf.contrib``.
    """
    made = Variables("separable_conv2d", inputs, options, 2, data_format)
    with layer_scope(options["name"], "separable_conv2d", options["reuse"]):
        apart = made.variable(
            "depthwise_kernel",
            [*for_each_axis(kernel_size, 2), made.channels, int(depth_multiplier)],
            "depthwise",
        )
        between = made.channels * int(depth_multiplier)
        step, apart_by = for_each_axis(strides, 2), for_each_axis(dilation_rate, 2)
        settings = (step, padding.upper(), apart_by, None, made.data_format)
        if filters is None:
            return made.finish(nn.depthwise_conv2d(made.tensor, apart, *settings), between)
        mix = made.variable("pointwise_kernel", [1, 1, between, int(filters)], "pointwise")
        result = nn.separable_conv2d(made.tensor, apart, mix, *settings)
        return made.finish(result, int(filters))


@example("print(tf.layers.separable_conv1d(tf.zeros([2, 5, 3]), 8, 3).shape)", "(2, 3, 8)")
@takes(**layer_parameters("depthwise", "pointwise"))
def separable_conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    depth_multiplier: int = 1,
    **options: Any,
) -> Any:
    """Each channel convolved on its own, then mixed: variables ``depthwise_kernel``, ``pointwise_kernel``, ``bias``."""
    made = Variables("separable_conv1d", inputs, options, 1, data_format)
    axis = 1 if made.last else 2
    with layer_scope(options["name"], "separable_conv1d", options["reuse"]):
        [size], between = for_each_axis(kernel_size, 1), made.channels * int(depth_multiplier)
        apart = made.variable("depthwise_kernel", [size, made.channels, int(depth_multiplier)], "depthwise")
        mix = made.variable("pointwise_kernel", [1, between, int(filters)], "pointwise")
        step, rates = for_each_axis(strides, 1) * 2, [1, *for_each_axis(dilation_rate, 1)]
        result = nn.separable_conv2d(
            shape_ops.expand_dims(made.tensor, axis),
            shape_ops.expand_dims(apart, 0),
            shape_ops.expand_dims(mix, 0),
            step,
            padding.upper(),
            rates,
            None,
            LAYOUTS[2][not made.last],
        )
        return made.finish(shape_ops.squeeze(result, [axis]), int(filters))
