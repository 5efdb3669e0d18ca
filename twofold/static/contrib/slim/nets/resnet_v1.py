"""Residual networks that normalise behind convolutions (He et al., Deep Residual Learning, 2015)."""

from twofold.static.contrib.slim.nets.residual import block_of, bottleneck_of, network_of, sized
from twofold.static.contrib.slim.nets.resnet_utils import resnet_arg_scope as resnet_arg_scope

bottleneck = bottleneck_of(1)
resnet_v1 = network_of(1, bottleneck)
resnet_v1_block = block_of(bottleneck)
resnet_v1_50, resnet_v1_101, resnet_v1_152, resnet_v1_200 = (
    sized(1, count, resnet_v1, resnet_v1_block) for count in (50, 101, 152, 200)
)
