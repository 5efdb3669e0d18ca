"""Networks that are chains of convolutions and pools, with wide convolutions where older ones had dense layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.static import initializers, nn
from twofold.static.arrays import shape_ops
from twofold.static.contrib import layers
from twofold.static.contrib.framework import arg_scope
from twofold.static.contrib.layer_utils import convert_collection_to_dict
from twofold.static.variables.variable_scope import variable_scope

NARROW = {
    "weights_initializer": initializers.truncated_normal_initializer(0.0, 0.005),
    "biases_initializer": initializers.constant_initializer(0.1),
}
"""How the last layers of AlexNet and OverFeat begin."""


def scope_of(weight_decay: float, biases: Any, valid_pools: bool = False) -> Any:
    """Default arguments of layers: decay of weights, how biases begin, and padding."""
    decay = layers.l2_regularizer(weight_decay)
    options = {"activation_fn": nn.relu, "weights_regularizer": decay, "biases_initializer": biases}
    with (
        arg_scope([layers.conv2d, layers.fully_connected], **options),
        arg_scope([layers.conv2d], padding="SAME"),
        arg_scope([layers.max_pool2d] if valid_pools else [], padding="VALID") as made,
    ):
        return made


def chain(
    own: str,
    size: int,
    body: Callable[[Any], Any],
    wide: Sequence[Any],
    words: str,
    last: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The function that makes a network.

    Args:
        own: Its name.
        size: The size of images that it is for.
        body: Makes what is before the wide convolutions.
        wide: The number of channels and the kernel size of the first of these.
        words: What its documentation says.
        last: How the wide convolutions begin, unless as others do.
    """

    def made(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = own,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope(scope, own, [inputs]) as found:
            collection = f"{found.original_name_scope}_end_points"
            collected = [layers.conv2d, layers.fully_connected, layers.max_pool2d]
            with arg_scope(collected, outputs_collections=collection):
                net = body(inputs)
                with arg_scope([layers.conv2d], **last or {}):
                    net = layers.conv2d(net, wide[0], [wide[1]] * 2, padding="VALID", scope="fc6")
                    net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                    net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
                    net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                    plain: dict[str, Any] = (
                        {"biases_initializer": initializers.zeros_initializer()} if last else {}
                    )
                    plain |= {"activation_fn": None, "normalizer_fn": None, "scope": "fc8"}
                    net = layers.conv2d(net, num_classes, [1, 1], **plain)
                ends = convert_collection_to_dict(collection)
                if spatial_squeeze:
                    net = shape_ops.squeeze(net, [1, 2], name="fc8/squeezed")
                    ends[f"{found.name}/fc8"] = net
                return net, ends

    made.__name__ = made.__qualname__ = own
    made.__doc__ = f"{words}: what it says of classes, and its layers' outputs by name."
    made.default_image_size = size  # type: ignore[attr-defined]
    return made
