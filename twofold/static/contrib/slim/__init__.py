"""Layers with default arguments for many at once, and variables by name: ``tf.contrib.slim``."""

from __future__ import annotations

from math import prod as _prod
from types import SimpleNamespace
from typing import Any

from twofold.static.contrib import framework, layer_utils
from twofold.static.contrib import layers as _layers
from twofold.static.contrib import losses as losses
from twofold.static.contrib import metrics as metrics
from twofold.static.contrib.framework import *  # noqa: F403
from twofold.static.contrib.layers import *  # noqa: F403
from twofold.static.contrib.slim import dataset as dataset
from twofold.static.contrib.slim import dataset_data_provider as dataset_data_provider
from twofold.static.contrib.slim import evaluation as evaluation
from twofold.static.contrib.slim import learning as learning
from twofold.static.contrib.slim import nets as nets
from twofold.static.contrib.slim import prefetch_queue as prefetch_queue
from twofold.static.contrib.slim import queues as queues
from twofold.static.contrib.slim import tfexample_decoder as tfexample_decoder
from twofold.static.python.positions import enter


def analyze_vars(variables: Any, print_info: bool = False) -> tuple[int, int]:
    """The numbers of elements and bytes of variables; printed with ``print_info``."""
    count = size = 0
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    for variable in variables:
        own = _prod(variable.get_shape().as_list())
        count, size = count + own, size + own * variable.dtype.itemsize
        if print_info:
            shape = "x".join(str(one) for one in variable.get_shape().as_list())
            kind = f"{variable.dtype.name}_ref {shape or 'scalar'}"
            print(f"{variable.name} ({kind}) [{own}, bytes: {own * variable.dtype.itemsize}]")
    if print_info:
        print(f"Total size of variables: {count}\nTotal bytes of variables: {size}")
    return count, size


model_analyzer = SimpleNamespace(analyze_vars=analyze_vars)
arg_scope = framework.arg_scope
utils = layer_utils
layers = _layers
initializers = _layers  # type: ignore[misc]
regularizers = _layers
variables = framework
enter(
    __name__,
    {
        "python.slim.learning": "contrib.slim.learning",
        "python.slim.evaluation": "contrib.slim.evaluation",
        "python.slim.queues": "contrib.slim.queues",
        **{
            f"data.{name} python.slim.data.{name}": f"contrib.slim.{name}"
            for name in ("prefetch_queue", "dataset", "dataset_data_provider", "tfexample_decoder")
        },
        **{
            f"python.slim.nets.{name}": f"contrib.slim.nets.{name}"
            for name in ("alexnet", "overfeat", "resnet_utils", "resnet_v1", "resnet_v2", "vgg")
            + tuple(f"inception{version}" for version in ("", "_v1", "_v2", "_v3"))
        },
        "data.parallel_reader python.slim.data.parallel_reader": "contrib.slim.dataset_data_provider",
    },
)
