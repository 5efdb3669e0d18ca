"""Inception networks as tables: what their layers are called, how deep they are, and how they are joined.

A layer is "depth name", such as "64 0a_1x1" for a convolution called ``Conv2d_0a_1x1``, or "max name" and "avg name"
for a pool. Behind it may stand another kernel, "/2" for the stride, "SAME" or "VALID" for the padding and "~0.1" for
the standard deviation of the weights. Layers of a branch are divided by ",", and by "|" those of one input that are
joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import initializers, nn
from twofold.static.arrays import shape_ops
from twofold.static.contrib import layers
from twofold.static.contrib.framework import arg_scope
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.variables.variable_scope import variable_scope

Depth = Callable[[int], int]
Table = Sequence[tuple[str, str | Sequence[str]]]
KINDS = {"max": "MaxPool", "avg": "AvgPool"}


def normal(deviation: float) -> Any:
    """An initializer of normal numbers within two standard deviations."""
    return initializers.truncated_normal_initializer(0.0, deviation)


def layer(net: Any, text: str, depth: Depth) -> Any:
    """The layer that a text says."""
    kind, name, *rest = text.split()
    own = name if name.startswith("Conv") else f"{KINDS.get(kind, 'Conv2d')}_{name}"
    options: dict[str, Any] = {"scope": own}
    kernel = re.findall(r"\d+x\d+", name)[-1]
    for one in rest:
        if one.startswith("/"):
            options["stride"] = int(one[1:])
        elif one.startswith("~"):
            options["weights_initializer"] = normal(float(one[1:]))
        elif one in ("SAME", "VALID"):
            options["padding"] = one
        else:
            kernel = one
    size = [int(one) for one in kernel.split("x")]
    if kind in KINDS:
        return (layers.max_pool2d if kind == "max" else layers.avg_pool2d)(net, size, **options)
    return layers.conv2d(net, depth(int(kind)), size, **options)


def branch(net: Any, text: str, depth: Depth) -> Any:
    """The layers of a branch, one after another."""
    for step in text.split(","):
        parts = [layer(net, one, depth) for one in step.split("|")]
        net = parts[0] if len(parts) == 1 else shape_ops.concat(parts, 3)
    return net


def stack(net: Any, table: Table, depth: Depth, found: dict[str, Any], last: str) -> Any:
    """The layers of a table, which enter ``found`` by name, up to the ``last``."""
    for name, what in table:
        if last in found:
            break
        if isinstance(what, str):
            net = layer(net, what, depth)
        else:
            with variable_scope(name):
                parts = []
                for number, text in enumerate(what):
                    with variable_scope(f"Branch_{number}"):
                        parts.append(branch(net, text, depth))
                net = shape_ops.concat(parts, 3)
        found[name] = net
    return net


def named(*texts: str) -> Table:
    """A table of single layers, which are called as they are."""
    return [
        (f"{KINDS.get(kind, 'Conv2d')}_{name}", text) for text in texts for kind, name in [text.split()[:2]]
    ]


def need_found(found: dict[str, Any], last: str, net: Any) -> tuple[Any, dict[str, Any]]:
    """The result of a base; raises ValueError for a layer that there is not."""
    if last not in found:
        raise ValueError(f"Unknown final endpoint {last}, at {here()}. There are {', '.join(found)}.")
    return net, found


def scaled(depth_multiplier: float, min_depth: int) -> Depth:
    """How deep layers are; raises ValueError unless the multiplier is positive."""
    if depth_multiplier <= 0:
        raise ValueError(f"depth_multiplier is not greater than zero, at {here()}: {depth_multiplier}.")
    return lambda depth: max(int(depth * depth_multiplier), min_depth)


def fitting(net: Any, size: int) -> list[int]:
    """A kernel of ``size``, or of the whole image where that is smaller."""
    known = net.get_shape().as_list()[1:3]
    return [size, size] if None in known else [min(one, size) for one in known]


@contextmanager
def network(
    name: str, inputs: Any, num_classes: int, is_training: Any, reuse: Any, scope: Any
) -> Iterator[Any]:
    """The variable scope of a network, in which layers train or not."""
    with (
        variable_scope(scope, name, [inputs, num_classes], reuse=reuse) as own,
        arg_scope([layers.batch_norm, layers.dropout], is_training=is_training),
    ):
        yield own


def fitted_head(net: Any, num_classes: int, keep: float, squeeze: bool, size: int) -> tuple[Any, Any]:
    """``head`` under the scope "Logits", of a kernel of ``size``, or of the whole image where that is smaller."""
    with variable_scope("Logits"):
        kernel = fitting(net, size)
        names = f"AvgPool_1a_{kernel[0]}x{kernel[1]} Dropout_1b Conv2d_1c_1x1"
        return head(net, num_classes, keep, squeeze, kernel, names)


def head(
    net: Any, num_classes: int, keep: float, squeeze: bool, kernel: Sequence[int], names: str
) -> tuple[Any, Any]:
    """The mean over the image with dropout, and the convolution of it that says the classes, with these ``names``."""
    pool, drop, last = names.split()
    options = {"stride": 1} if pool.startswith("Max") else {}
    net = layers.avg_pool2d(net, kernel, padding="VALID", scope=pool, **options)
    net = layers.dropout(net, keep, scope=drop)
    logits = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=last)
    if squeeze:
        logits = shape_ops.squeeze(logits, [1, 2], name="SpatialSqueeze")
    return net, logits


def scope_of(
    weight_decay: float, collection: Any, normalized: bool = True, fused: Any = None, **options: Any
) -> Any:
    """Default arguments of layers: decay of weights, and batch normalisation whose averages are in ``collection``."""
    batch = {
        "decay": 0.9997,
        "epsilon": 0.001,
        "updates_collections": GraphKeys.UPDATE_OPS,
        "fused": fused,
        "variables_collections": {
            "beta": None,
            "gamma": None,
            "moving_mean": [collection],
            "moving_variance": [collection],
        },
        **options,
    }
    convolution = {
        "weights_initializer": layers.variance_scaling_initializer(),
        "activation_fn": nn.relu,
        "normalizer_fn": layers.batch_norm if normalized else None,
        "normalizer_params": batch if normalized else {},
    }
    decay = layers.l2_regularizer(weight_decay)
    with (
        arg_scope([layers.conv2d, layers.fully_connected], weights_regularizer=decay),
        arg_scope([layers.conv2d], **convolution) as made,
    ):
        return made
