"""Inception v3 (Szegedy et al., Rethinking the Inception Architecture, 2015)."""

from __future__ import annotations

from typing import Any

from twofold.static.arrays import shape_ops
from twofold.static.contrib import layers
from twofold.static.contrib.framework import arg_scope
from twofold.static.contrib.slim.nets.inception_blocks import (
    Depth,
    Table,
    fitted_head,
    fitting,
    named,
    need_found,
    network,
    normal,
    scaled,
    scope_of,
    stack,
)
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.variables.variable_scope import variable_scope

_STEM = named(
    "32 1a_3x3 /2", "32 2a_3x3", "64 2b_3x3 SAME", "max 3a_3x3 /2", "80 3b_1x1", "192 4a_3x3", "max 5a_3x3 /2"
)


def _five(name: str, depth: int, second: str = "48 0a_1x1,64 0b_5x5") -> tuple[str, list[str]]:
    third = "64 0a_1x1,96 0b_3x3,96 0c_3x3"
    return f"Mixed_{name}", ["64 0a_1x1", second, third, f"avg 0a_3x3,{depth} 0b_1x1"]


def _seven(name: str, depth: int) -> tuple[str, list[str]]:
    second = f"{depth} 0a_1x1,{depth} 0b_1x7,192 0c_7x1"
    third = f"{depth} 0a_1x1,{depth} 0b_7x1,{depth} 0c_1x7,{depth} 0d_7x1,192 0e_1x7"
    return f"Mixed_{name}", ["192 0a_1x1", second, third, "avg 0a_3x3,192 0b_1x1"]


def _wide(name: str, other: str) -> tuple[str, list[str]]:
    second = f"384 0a_1x1,384 0b_1x3|384 {other}_3x1"
    third = "448 0a_1x1,384 0b_3x3,384 0c_1x3|384 0d_3x1"
    return f"Mixed_{name}", ["320 0a_1x1", second, third, "avg 0a_3x3,192 0b_1x1"]


_POOL = "max 1a_3x3 /2 VALID"
_TABLE: Table = [
    _five("5b", 32),
    _five("5c", 64, "48 0b_1x1,64 Conv_1_0c_5x5"),
    _five("5d", 64),
    ("Mixed_6a", ["384 1a_1x1 3x3 /2 VALID", "64 0a_1x1,96 0b_3x3,96 1a_1x1 3x3 /2 VALID", _POOL]),
    _seven("6b", 128),
    _seven("6c", 160),
    _seven("6d", 160),
    _seven("6e", 192),
    (
        "Mixed_7a",
        [
            "192 0a_1x1,320 1a_3x3 /2 VALID",
            "192 0a_1x1,192 0b_1x7,192 0c_7x1,192 1a_3x3 /2 VALID",
            _POOL,
        ],
    ),
    _wide("7b", "0b"),
    _wide("7c", "0c"),
]
_SHARED = [layers.conv2d, layers.max_pool2d, layers.avg_pool2d]


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The layers up to ``final_endpoint``: its output, and those of all by name."""
    depth = scaled(depth_multiplier, min_depth)
    found: dict[str, Any] = {}
    with variable_scope(scope, "InceptionV3", [inputs]):
        with arg_scope(_SHARED, stride=1, padding="VALID"):
            net = stack(inputs, _STEM, depth, found, final_endpoint)
        with arg_scope(_SHARED, stride=1, padding="SAME"):
            net = stack(net, _TABLE, depth, found, final_endpoint)
    return need_found(found, final_endpoint, net)


def _aside(net: Any, num_classes: int, depth: Depth, squeeze: bool) -> Any:
    """What says the classes from the middle of the network, for a further loss."""
    with arg_scope(_SHARED, stride=1, padding="SAME"), variable_scope("AuxLogits"):
        net = layers.avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = layers.conv2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
        kernel = fitting(net, 5)
        options: dict[str, Any] = {"padding": "VALID", "scope": f"Conv2d_2a_{kernel[0]}x{kernel[1]}"}
        net = layers.conv2d(net, depth(768), kernel, weights_initializer=normal(0.01), **options)
        options = {"activation_fn": None, "normalizer_fn": None, "scope": "Conv2d_2b_1x1"}
        net = layers.conv2d(net, num_classes, [1, 1], weights_initializer=normal(0.001), **options)
        return shape_ops.squeeze(net, [1, 2], name="SpatialSqueeze") if squeeze else net


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """What the network says of classes, and its layers' outputs by name; "AuxLogits" are for a further loss."""
    depth = scaled(depth_multiplier, min_depth)
    with network("InceptionV3", inputs, num_classes, is_training, reuse, scope) as own:
        net, found = inception_v3_base(
            inputs, scope=own, min_depth=min_depth, depth_multiplier=depth_multiplier
        )
        found["AuxLogits"] = _aside(found["Mixed_6e"], num_classes, depth, spatial_squeeze)
        net, logits = fitted_head(net, num_classes, dropout_keep_prob, spatial_squeeze, 8)
        found["PreLogits"], found["Logits"] = net, logits
        found["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, found


inception_v3.default_image_size = 299  # type: ignore[attr-defined]


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Any:
    """Default arguments of layers for this network."""
    options = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": updates_collections,
    }
    return scope_of(weight_decay, batch_norm_var_collection, fused=use_fused_batchnorm, **options)
