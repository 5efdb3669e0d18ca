"""Convolutions, normalisation, recurrences and CTC by Keras's names and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import where
from twofold.static.control_flow import map_scan
from twofold.static.keras.backend_shapes import temporal_padding
from twofold.static.keras.masking import stepped
from twofold.static.keras.state import settings
from twofold.static.layers.convolutional import for_each_axis
from twofold.static.optimizers.moving_averages import assign_moving_average
from twofold.static.sparse import SparseTensor, sparse_to_dense

_FORMATS = {
    "channels_last": ("NWC", "NHWC", "NDHWC"),
    "channels_first": ("NCW", "NCHW", "NCDHW"),
}


def _format(data_format: Any, count: int) -> str:
    given = data_format or settings.image_data_format
    if given not in _FORMATS:
        raise ValueError(
            f"Unknown data_format: {given}, at {here()}. Use 'channels_last' or 'channels_first'."
        )
    return _FORMATS[given][count - 1]


def _padding(padding: str) -> str:
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding: {padding}, at {here()}. Use 'same' or 'valid'.")
    return padding.upper()


def _convolved(
    x: Any, kernel: Any, strides: Any, padding: str, data_format: Any, dilation_rate: Any, count: int
) -> Any:
    return nn.convolution(
        input=x,
        filter=kernel,
        padding=_padding(padding),
        strides=for_each_axis(strides, count),
        dilation_rate=for_each_axis(dilation_rate, count),
        data_format=_format(data_format, count),
    )


def conv1d(
    x: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = 1,
) -> Any:
    """A convolution over steps; with padding "causal" of each step and those before it."""
    if padding == "causal":
        before = int(dilation_rate) * (kernel.get_shape().as_list()[0] - 1)
        x, padding = temporal_padding(x, (before, 0)), "valid"
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate, 1)


def conv2d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = (1, 1),
) -> Any:
    """A convolution of images."""
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate, 2)


def conv3d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = (1, 1, 1),
) -> Any:
    """A convolution of volumes."""
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate, 3)


def conv2d_transpose(
    x: Any,
    kernel: Any,
    output_shape: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = (1, 1),
) -> Any:
    """The transpose of a convolution, of the shape given."""
    if for_each_axis(dilation_rate, 2) != [1, 1]:
        raise ValueError(
            f"conv2d_transpose: dilation_rate is not offered, at {here()}. Use tf.nn.conv2d_transpose."
        )
    steps = for_each_axis(strides, 2)
    layout = _format(data_format, 2)
    windows = [1, *steps, 1] if layout == "NHWC" else [1, 1, *steps]
    sizes = [shape_ops.shape(x)[0] if size is None else size for size in list(output_shape)]
    return nn.conv2d_transpose(x, kernel, sizes, windows, _padding(padding), layout)


def separable_conv2d(
    x: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = (1, 1),
) -> Any:
    """Each channel convolved on its own, and then the channels of each position together."""
    steps, layout = for_each_axis(strides, 2), _format(data_format, 2)
    return nn.separable_conv2d(
        x,
        depthwise_kernel,
        pointwise_kernel,
        strides=[1, *steps, 1] if layout == "NHWC" else [1, 1, *steps],
        padding=_padding(padding),
        rate=for_each_axis(dilation_rate, 2),
        data_format=layout,
    )


def _pooled(
    x: Any, pool_size: Any, strides: Any, padding: str, data_format: Any, pool_mode: str, count: int
) -> Any:
    if pool_mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {pool_mode}, at {here()}. Use 'max' or 'avg'.")
    return nn.pool(
        x,
        for_each_axis(pool_size, count),
        pool_mode.upper(),
        _padding(padding),
        strides=for_each_axis(strides, count),
        data_format=_format(data_format, count),
    )


def pool2d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: Any = None,
    pool_mode: str = "max",
) -> Any:
    """The largest element of windows of images, or with "avg" the mean."""
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode, 2)


def pool3d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: Any = None,
    pool_mode: str = "max",
) -> Any:
    """The largest element of windows of volumes, or with "avg" the mean."""
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode, 3)


def bias_add(x: Any, bias: Any, data_format: Any = None) -> Any:
    """A bias for each channel, or for each element of a batch."""
    found, own = convert_to_tensor(x), convert_to_tensor(bias)
    rank, sizes = len(found.get_shape()), own.get_shape().as_list()
    if len(sizes) not in (1, rank - 1):
        raise ValueError(
            f"Unexpected bias dimensions {len(sizes)}, expect to be 1 or {rank - 1} dimensions, at {here()}."
        )
    first = _format(data_format, 1) == "NCW" and rank > 2
    if len(sizes) == 1:
        return found + shape_ops.reshape(own, [1, sizes[0], *[1] * (rank - 2)]) if first else found + own
    if first:
        own = shape_ops.transpose(own, [len(sizes) - 1, *range(len(sizes) - 1)])
    return found + shape_ops.expand_dims(own, 0)


def dropout(x: Any, level: float, noise_shape: Any = None, seed: int | None = None) -> Any:
    """``tf.nn.dropout`` with the rate ``level``."""
    return nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Any:
    """``gamma * (x - mean) / sqrt(var + epsilon) + beta``, each of one axis for ``axis`` or of as many as ``x``."""
    found = convert_to_tensor(x)
    rank = len(found.get_shape())
    sizes = [1] * rank
    sizes[axis] = -1

    def along(value: Any) -> Any:
        own = None if value is None else convert_to_tensor(value)
        return own if own is None or len(own.get_shape()) == rank else shape_ops.reshape(own, sizes)

    return nn.batch_normalization(found, *map(along, (mean, var, beta, gamma)), epsilon)


def normalize_batch_in_training(
    x: Any, gamma: Any, beta: Any, reduction_axes: Sequence[int], epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    """A batch normalised by its own statistics over some axes, and these: mean and variance.

    That of images is the one for ``batch_normalization`` later, by one element less, as ``tf.nn.fused_batch_norm``'s.
    """
    found = convert_to_tensor(x)
    if list(reduction_axes) == [0, 1, 2] and len(found.get_shape()) == 4:
        sizes = [found.get_shape()[-1].value]
        scale = creation.ones(sizes) if gamma is None else gamma
        return nn.fused_batch_norm(
            found, scale, creation.zeros(sizes) if beta is None else beta, epsilon=epsilon
        )
    center, spread = nn.moments(found, list(reduction_axes))
    whole = [1 if axis in reduction_axes else -1 for axis in range(len(found.get_shape()))]
    if whole.count(-1) > 1:
        dynamic = shape_ops.shape(found)
        whole = [1 if size == 1 else dynamic[axis] for axis, size in enumerate(whole)]
    values = [None if one is None else shape_ops.reshape(one, whole) for one in (center, spread, beta, gamma)]
    return nn.batch_normalization(found, *values, epsilon), center, spread


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """An operation that moves a variable towards a value, as an average that begins with zeros."""
    return assign_moving_average(x, value, momentum, zero_debias=True)


def map_fn(fn: Callable[..., Any], elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """``tf.map_fn``."""
    return map_scan.map_fn(fn, elems, name=name, dtype=dtype)


def foldl(fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """``tf.foldl``."""
    return map_scan.foldl(fn, elems, initializer=initializer, name=name)


def foldr(fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """``tf.foldr``."""
    return map_scan.foldr(fn, elems, initializer=initializer, name=name)


def _logits(y_pred: Any) -> Any:
    return math.log(shape_ops.transpose(convert_to_tensor(y_pred), [1, 0, 2]) + settings.epsilon)


def _flat(lengths: Any) -> Any:
    return math.cast(shape_ops.reshape(convert_to_tensor(lengths), [-1]), "int32")


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> SparseTensor:
    """The labels of each row up to its length, as a sparse tensor."""
    found = convert_to_tensor(labels)
    sizes = shape_ops.shape(found)
    kept = creation.range(sizes[1])[None, :] < _flat(label_lengths)[:, None]
    indices = math.cast(where(kept), "int64")
    return SparseTensor(indices, shape_ops.gather_nd(found, indices), math.cast(sizes, "int64"))


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The CTC loss of each element of a batch: labels, probabilities (batch, time, classes) and lengths (batch, 1)."""
    labels = ctc_label_dense_to_sparse(math.cast(convert_to_tensor(y_true), "int32"), label_length)
    losses = nn.ctc_loss(labels=labels, inputs=_logits(y_pred), sequence_length=_flat(input_length))
    return shape_ops.expand_dims(losses, 1)


def ctc_decode(
    y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Any]:
    """The likeliest labels of each element, filled up with -1, and their log probabilities (greedy: minus logits)."""
    if greedy:
        found, scores = nn.ctc_greedy_decoder(_logits(y_pred), _flat(input_length))
    else:
        found, scores = nn.ctc_beam_search_decoder(
            _logits(y_pred), _flat(input_length), beam_width=beam_width, top_paths=top_paths
        )
    return [sparse_to_dense(one.indices, one.dense_shape, one.values, -1) for one in found], scores


def rnn(
    step_function: Callable[..., Any],
    inputs: Any,
    initial_states: Sequence[Any],
    go_backwards: bool = False,
    mask: Any = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """A function applied to one step after the other: the last output, all outputs, and the last states.

    Args:
        step_function: Gives for the input of a step and the list of states (and constants) an output and new states.
        inputs: A tensor (batch, time, ...).
        initial_states: The first states, a list.
        go_backwards: Whether the last step comes first.
        mask: Bools (batch, time); at a step that is false the output and the states before are kept.
        constants: Tensors that are given behind the states.
        unroll: Changes nothing that is computed.
        input_length: Changes nothing: how many steps there are is known from the inputs.
        time_major: Whether inputs, mask and outputs have time first.
        zero_output_for_mask: Whether outputs of steps that are left out are zeros.
    """
    more = list(constants or ())

    def step(value: Any, before: list[Any]) -> Any:
        output, new = step_function(value, [*before, *more])
        return output, list(new)

    options = (mask, go_backwards, time_major, zero_output_for_mask)
    return stepped(step, convert_to_tensor(inputs), initial_states, *options)
