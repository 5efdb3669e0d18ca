"""Residual networks of both kinds: normalised behind their convolutions (v1), or before them (v2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.contrib import layers
from twofold.static.contrib.framework import add_arg_scope, arg_scope
from twofold.static.contrib.layer_utils import (
    collect_named_outputs,
    convert_collection_to_dict,
    last_dimension,
)
from twofold.static.contrib.slim.nets.resnet_utils import Block, conv2d_same, stack_blocks_dense, subsample
from twofold.static.variables.variable_scope import variable_scope

DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
"""The numbers of units of the four blocks, by the number of layers."""


def bottleneck_of(version: int) -> Callable[..., Any]:
    """The unit of three convolutions, of which the middle one is narrow, and a shortcut."""
    before = version == 2

    @add_arg_scope
    def bottleneck(
        inputs: Any,
        depth: int,
        depth_bottleneck: int,
        stride: int,
        rate: int = 1,
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        with variable_scope(scope, f"bottleneck_v{version}", [inputs]) as own:
            wide = last_dimension(inputs.get_shape(), 4)
            given = layers.batch_norm(inputs, activation_fn=nn.relu, scope="preact") if before else inputs
            plain = {"activation_fn": None, **({"normalizer_fn": None} if before else {})}
            if depth == wide:
                shortcut = subsample(inputs, stride, "shortcut")
            else:
                shortcut = layers.conv2d(given, depth, [1, 1], stride=stride, scope="shortcut", **plain)
            value = layers.conv2d(given, depth_bottleneck, [1, 1], stride=1, scope="conv1")
            value = conv2d_same(value, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
            value = layers.conv2d(value, depth, [1, 1], stride=1, scope="conv3", **plain)
            total = shortcut + value
            return collect_named_outputs(outputs_collections, own.name, total if before else nn.relu(total))

    bottleneck.__doc__ = (
        "A residual unit: ``depth`` channels, ``depth_bottleneck`` between, the stride in the middle."
    )
    return bottleneck


def network_of(version: int, bottleneck: Callable[..., Any]) -> Callable[..., Any]:
    """The function that makes a network of blocks."""

    def resnet(
        inputs: Any,
        blocks: Sequence[Block],
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        include_root_block: bool = True,
        reuse: Any = None,
        scope: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope(scope, f"resnet_v{version}", [inputs], reuse=reuse) as own:
            collection = f"{own.original_name_scope}_end_points"
            collected = [layers.conv2d, bottleneck, stack_blocks_dense]
            with (
                arg_scope(collected, outputs_collections=collection),
                arg_scope([layers.batch_norm], is_training=is_training),
            ):
                net, stride = inputs, output_stride
                if include_root_block:
                    if stride is not None and stride % 4:
                        raise ValueError(
                            f"The output_stride needs to be a multiple of 4, at {here()}: {stride}."
                        )
                    stride = None if stride is None else stride // 4
                    plain = {"activation_fn": None, "normalizer_fn": None} if version == 2 else {}
                    with arg_scope([layers.conv2d], **plain):
                        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                    net = layers.max_pool2d(net, [3, 3], stride=2, scope="pool1")
                net = stack_blocks_dense(net, blocks, stride)
                if version == 2:
                    net = layers.batch_norm(net, activation_fn=nn.relu, scope="postnorm")
                if global_pool:
                    net = math.reduce_mean(net, [1, 2], keepdims=True, name="pool5")
                if num_classes is not None:
                    last = {"activation_fn": None, "normalizer_fn": None, "scope": "logits"}
                    net = layers.conv2d(net, num_classes, [1, 1], **last)
                found = convert_collection_to_dict(collection)
                if num_classes is not None:
                    found["predictions"] = layers.softmax(net, scope="predictions")
                return net, found

    resnet.__name__ = resnet.__qualname__ = f"resnet_v{version}"
    resnet.__doc__ = (
        "A network of blocks, and its layers' outputs by name; features without ``num_classes``.\n\n"
        "    ``output_stride`` is how much smaller the features are: dilation replaces the strides behind it."
    )
    resnet.default_image_size = 224  # type: ignore[attr-defined]
    return resnet


def block_of(bottleneck: Callable[..., Any]) -> Callable[..., Block]:
    """The function that makes a block."""

    def block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
        """``num_units`` units of ``4 * base_depth`` channels, the last of which has the stride."""
        unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
        steps = [1] * (num_units - 1) + [stride]
        return Block(scope, bottleneck, [{**unit, "stride": step} for step in steps])

    return block


def sized(version: int, count: int, resnet: Callable[..., Any], block: Callable[..., Block]) -> Any:
    """The network of ``count`` layers."""
    own = f"resnet_v{version}_{count}"

    def made(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: Any = own,
    ) -> tuple[Any, dict[str, Any]]:
        steps = (2, 2, 2, 1)
        blocks = [
            block(f"block{k + 1}", base_depth=64 << k, num_units=DEPTHS[count][k], stride=steps[k])
            for k in range(4)
        ]
        return resnet(
            inputs, blocks, num_classes, is_training, global_pool, output_stride, reuse=reuse, scope=scope
        )

    made.__name__ = made.__qualname__ = own
    made.__doc__ = f"The residual network of {count} layers (He et al., 2016)."
    made.default_image_size = 224  # type: ignore[attr-defined]
    return made
