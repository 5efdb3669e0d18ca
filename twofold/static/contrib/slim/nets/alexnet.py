"""AlexNet for one processor (Krizhevsky, One weird trick, 2014)."""

from typing import Any

from twofold.static import initializers
from twofold.static.contrib import layers
from twofold.static.contrib.slim.nets.chains import NARROW, chain, scope_of


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Default arguments of layers for AlexNet."""
    return scope_of(weight_decay, initializers.constant_initializer(0.1), valid_pools=True)


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
