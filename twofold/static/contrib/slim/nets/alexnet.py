"""AlexNet for one processor (Krizhevsky, One weird trick, 2014)."""

from typing import Any

from twofold.static import initializers, nn
from twofold.static.contrib import layers
from twofold.static.contrib.framework import arg_scope
from twofold.static.contrib.slim.nets.chains import NARROW, chain


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Default arguments of layers for AlexNet."""
    options = {
        "activation_fn": nn.relu,
        "biases_initializer": initializers.constant_initializer(0.1),
        "weights_regularizer": layers.l2_regularizer(weight_decay),
    }
    with (
        arg_scope([layers.conv2d, layers.fully_connected], **options),
        arg_scope([layers.conv2d], padding="SAME"),
        arg_scope([layers.max_pool2d], padding="VALID") as made,
    ):
        return made


def _body(net: Any) -> Any:
    net = layers.conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
    net = layers.max_pool2d(net, [3, 3], 2, scope="pool1")
    net = layers.conv2d(net, 192, [5, 5], scope="conv2")
    net = layers.max_pool2d(net, [3, 3], 2, scope="pool2")
    for k, depth in ((3, 384), (4, 384), (5, 256)):
        net = layers.conv2d(net, depth, [3, 3], scope=f"conv{k}")
    return layers.max_pool2d(net, [3, 3], 2, scope="pool5")


alexnet_v2 = chain(
    "alexnet_v2", 224, _body, (4096, 5), "AlexNet of one column, without its normalisation", NARROW
)
