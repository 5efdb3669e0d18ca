"""Inception with batch normalisation (Ioffe, Szegedy, Batch Normalization, 2015)."""

from __future__ import annotations

from typing import Any

from twofold.static.contrib import layers
from twofold.static.contrib.framework import arg_scope
from twofold.static.contrib.slim.nets.inception_blocks import (
    fitted_head,
    named,
    need_found,
    network,
    normal,
    scaled,
    scope_of,
    stack,
)
from twofold.static.variables.variable_scope import variable_scope


def _mixed(name: str, depths: str, pool: str = "avg") -> tuple[str, list[str]]:
    """A block whose branches have these depths."""
    a, b, wide, c, deep, d = depths.split()
    third = f"{c} 0a_1x1 ~0.09,{deep} 0b_3x3,{deep} 0c_3x3"
    second = f"{b} 0a_1x1 ~0.09,{wide} 0b_3x3"
    return f"Mixed_{name}", [f"{a} 0a_1x1", second, third, f"{pool} 0a_3x3,{d} 0b_1x1 ~0.1"]


def _halved(name: str, depths: str) -> tuple[str, list[str]]:
    """A block that halves the image."""
    a, wide, b, deep = depths.split()
    second = f"{b} 0a_1x1 ~0.09,{deep} 0b_3x3,{deep} 1a_3x3 /2"
    return f"Mixed_{name}", [f"{a} 0a_1x1 ~0.09,{wide} 1a_3x3 /2", second, "max 1a_3x3 /2"]


_TABLE = [
    *named("max 2a_3x3 /2", "64 2b_1x1 ~0.1", "192 2c_3x3", "max 3a_3x3 /2"),
    _mixed("3b", "64 64 64 64 96 32"),
    _mixed("3c", "64 64 96 64 96 64"),
    _halved("4a", "128 160 64 96"),
    _mixed("4b", "224 64 96 96 128 128"),
    _mixed("4c", "192 96 128 96 128 128"),
    _mixed("4d", "160 128 160 128 160 96"),
    _mixed("4e", "96 128 192 160 192 96"),
    _halved("5a", "128 192 192 256"),
    _mixed("5b", "352 192 320 160 224 128"),
    _mixed("5c", "352 192 320 192 224 128", "max"),
]


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The layers up to ``final_endpoint``: its output, and those of all by name."""
    depth = scaled(depth_multiplier, min_depth)
    found: dict[str, Any] = {}
    shared = [layers.conv2d, layers.max_pool2d, layers.avg_pool2d, layers.separable_conv2d]
    with variable_scope(scope, "InceptionV2", [inputs]), arg_scope(shared, stride=1, padding="SAME"):
        first = {"depth_multiplier": min(depth(64) // 3, 8), "stride": 2, "weights_initializer": normal(1.0)}
        net = layers.separable_conv2d(inputs, depth(64), [7, 7], scope="Conv2d_1a_7x7", **first)
        found["Conv2d_1a_7x7"] = net
        return need_found(found, final_endpoint, stack(net, _TABLE, depth, found, final_endpoint))


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV2",
) -> tuple[Any, dict[str, Any]]:
    """What the network says of classes, and its layers' outputs by name."""
    with network("InceptionV2", inputs, num_classes, is_training, reuse, scope) as own:
        net, found = inception_v2_base(
            inputs, scope=own, min_depth=min_depth, depth_multiplier=depth_multiplier
        )
        net, logits = fitted_head(net, num_classes, dropout_keep_prob, spatial_squeeze, 7)
        found["Logits"] = logits
        found["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, found


inception_v2.default_image_size = 224  # type: ignore[attr-defined]


def inception_v2_arg_scope(
    weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """Default arguments of layers for this network."""
    return scope_of(weight_decay, batch_norm_var_collection)
