"""Networks for images: ``tf.contrib.slim.nets``."""

from twofold.static.contrib.slim.nets import alexnet as alexnet
from twofold.static.contrib.slim.nets import inception as inception
from twofold.static.contrib.slim.nets import overfeat as overfeat
from twofold.static.contrib.slim.nets import resnet_utils as resnet_utils
from twofold.static.contrib.slim.nets import resnet_v1 as resnet_v1
from twofold.static.contrib.slim.nets import resnet_v2 as resnet_v2
from twofold.static.contrib.slim.nets import vgg as vgg
