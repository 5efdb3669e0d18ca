"""The networks of Oxford's Visual Geometry Group (Simonyan, Zisserman, 2014)."""

from collections.abc import Callable
from typing import Any

from twofold.static import initializers
from twofold.static.contrib import layers
from twofold.static.contrib.slim.nets.chains import chain, scope_of


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Default arguments of layers for these networks."""
    return scope_of(weight_decay, initializers.zeros_initializer())


def _body(*counts: int) -> Callable[[Any], Any]:
    def made(net: Any) -> Any:
        for k, (count, depth) in enumerate(zip(counts, (64, 128, 256, 512, 512)), 1):
            net = layers.repeat(net, count, layers.conv2d, depth, [3, 3], scope=f"conv{k}")
            net = layers.max_pool2d(net, [2, 2], scope=f"pool{k}")
        return net

    return made


vgg_a = chain("vgg_a", 224, _body(1, 1, 2, 2, 2), (4096, 7), "Configuration A, of 11 layers")
vgg_16 = chain("vgg_16", 224, _body(2, 2, 3, 3, 3), (4096, 7), "Configuration D, of 16 layers")
vgg_19 = chain("vgg_19", 224, _body(2, 2, 4, 4, 4), (4096, 7), "Configuration E, of 19 layers")
