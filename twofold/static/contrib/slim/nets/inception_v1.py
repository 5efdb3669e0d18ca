"""GoogLeNet (Szegedy et al., Going Deeper with Convolutions, 2014), with batch normalisation."""

from __future__ import annotations

from typing import Any

from twofold.static.contrib import layers
from twofold.static.contrib.framework import arg_scope
from twofold.static.contrib.slim.nets.inception_blocks import (
    head,
    named,
    need_found,
    network,
    normal,
    scope_of,
    stack,
)
from twofold.static.variables.variable_scope import variable_scope


def _mixed(name: str, depths: str, last: str = "0b_3x3") -> tuple[str, list[str]]:
    """A block whose branches have these depths."""
    a, b, wide, c, deep, d = depths.split()
    second, third = f"{b} 0a_1x1,{wide} 0b_3x3", f"{c} 0a_1x1,{deep} {last}"
    return f"Mixed_{name}", [f"{a} 0a_1x1", second, third, f"max 0a_3x3,{d} 0b_1x1"]


_TABLE = [
    *named("64 1a_7x7 /2", "max 2a_3x3 /2", "64 2b_1x1", "192 2c_3x3", "max 3a_3x3 /2"),
    _mixed("3b", "64 96 128 16 32 32"),
    _mixed("3c", "128 128 192 32 96 64"),
    *named("max 4a_3x3 /2"),
    _mixed("4b", "192 96 208 16 48 64"),
    _mixed("4c", "160 112 224 24 64 64"),
    _mixed("4d", "128 128 256 24 64 64"),
    _mixed("4e", "112 144 288 32 64 64"),
    _mixed("4f", "256 160 320 32 128 128"),
    *named("max 5a_2x2 /2"),
    _mixed("5b", "256 160 320 32 128 128", "0a_3x3"),
    _mixed("5c", "384 192 384 48 128 128"),
]


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """The layers up to ``final_endpoint``: its output, and those of all by name."""
    found: dict[str, Any] = {}
    with (
        variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope([layers.conv2d, layers.fully_connected], weights_initializer=normal(0.01)),
        arg_scope([layers.conv2d, layers.max_pool2d], stride=1, padding="SAME"),
    ):
        return need_found(found, final_endpoint, stack(inputs, _TABLE, int, found, final_endpoint))


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """What the network says of classes, and its layers' outputs by name."""
    with network("InceptionV1", inputs, num_classes, is_training, reuse, scope) as own:
        net, found = inception_v1_base(inputs, scope=own)
        with variable_scope("Logits"):
            names = "MaxPool_0a_7x7 Dropout_0b Conv2d_0c_1x1"
            net, logits = head(net, num_classes, dropout_keep_prob, spatial_squeeze, [7, 7], names)
            found["Logits"] = logits
            found["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, found


inception_v1.default_image_size = 224  # type: ignore[attr-defined]


def inception_v1_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """Default arguments of layers for this network."""
    return scope_of(weight_decay, batch_norm_var_collection, use_batch_norm)
