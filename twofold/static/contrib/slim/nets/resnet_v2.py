"""Residual networks that normalise before convolutions (He et al., Identity Mappings, 2016)."""

from twofold.static.contrib.slim.nets.residual import block_of, bottleneck_of, network_of, sized
from twofold.static.contrib.slim.nets.resnet_utils import resnet_arg_scope as resnet_arg_scope

bottleneck = bottleneck_of(2)
resnet_v2 = network_of(2, bottleneck)
resnet_v2_block = block_of(bottleneck)
resnet_v2_50, resnet_v2_101, resnet_v2_152, resnet_v2_200 = (
    sized(2, count, resnet_v2, resnet_v2_block) for count in (50, 101, 152, 200)
)
