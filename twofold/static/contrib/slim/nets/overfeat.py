"""OverFeat (Sermanet et al., 2013)."""

from typing import Any

from twofold.static import initializers
from twofold.static.contrib import layers
from twofold.static.contrib.slim.nets.chains import NARROW, chain, scope_of


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Default arguments of layers for OverFeat."""
    return scope_of(weight_decay, initializers.zeros_initializer(), valid_pools=True)


def _body(net: Any) -> Any:
    net = layers.conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
    net = layers.max_pool2d(net, [2, 2], scope="pool1")
    net = layers.conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
    net = layers.max_pool2d(net, [2, 2], scope="pool2")
    for k, depth in ((3, 512), (4, 1024), (5, 1024)):
        net = layers.conv2d(net, depth, [3, 3], scope=f"conv{k}")
    return layers.max_pool2d(net, [2, 2], scope="pool5")


overfeat = chain("overfeat", 231, _body, (3072, 6), "The faster network of OverFeat", NARROW)
