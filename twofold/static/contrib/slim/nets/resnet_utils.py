"""What residual networks share: blocks of units, convolutions that keep even sizes aligned, and default arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from twofold.runtime.tracing import here
from twofold.static import nn
from twofold.static.arrays.creation import pad
from twofold.static.contrib import layers
from twofold.static.contrib.framework import add_arg_scope, arg_scope
from twofold.static.contrib.layer_utils import collect_named_outputs
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.variables.variable_scope import variable_scope


class Block(NamedTuple):
    """Units of a network under one scope: their function and, for each, its arguments by name."""

    scope: str
    unit_fn: Callable[..., Any]
    args: Sequence[Mapping[str, Any]]


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Every ``factor``-th row and column."""
    return inputs if factor == 1 else layers.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None
) -> Any:
    """A convolution whose padding does not depend on the size: that of stride 1, subsampled."""
    options = {"stride": stride, "rate": rate, "scope": scope}
    if stride == 1:
        return layers.conv2d(inputs, num_outputs, kernel_size, padding="SAME", **options)
    added = (kernel_size - 1) * rate
    around = [added // 2, added - added // 2]
    padded = pad(inputs, [[0, 0], around, around, [0, 0]])
    return layers.conv2d(padded, num_outputs, kernel_size, padding="VALID", **options)


@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: float | None = None, outputs_collections: Any = None
) -> Any:
    """The units of all blocks one after another; from ``output_stride`` on they dilate and do not stride.

    Raises ValueError where the strides do not multiply to ``output_stride``.
    """
    stride = rate = 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as own:
            for number, unit in enumerate(block.args, 1):
                if output_stride is not None and stride > output_stride:
                    break
                step = unit.get("stride", 1)
                with variable_scope(f"unit_{number}", values=[net]):
                    if stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= step
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        stride *= step
            net = collect_named_outputs(outputs_collections, own.name, net)
    if output_stride is not None and stride != output_stride:
        raise ValueError(
            f"The target output_stride cannot be reached, at {here()}: the strides give {stride}, not {output_stride}."
        )
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """Default arguments of layers for residual networks: weight decay, batch normalisation, padding of pools."""
    normal = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    convolution = {
        "weights_regularizer": layers.l2_regularizer(weight_decay),
        "weights_initializer": layers.variance_scaling_initializer(),
        "activation_fn": nn.relu,
        "normalizer_fn": layers.batch_norm,
        "normalizer_params": normal,
    }
    with (
        arg_scope([layers.conv2d], **convolution),
        arg_scope([layers.batch_norm], **normal),
        arg_scope([layers.max_pool2d], padding="SAME") as made,
    ):
        return made
