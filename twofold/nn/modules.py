"""``twofold.nn.modules``: the layers under the names of PyTorch's files, as in ``nn.modules.linear.Linear``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

from twofold.lazy import submodules
from twofold.nn import (
    activation,
    adaptive,
    attention,
    containers,
    convolution,
    embedding,
    hooks,
    layers,
    lazy,
    loss,
    module,
    normalization,
    padding,
    pooling,
    recurrent,
    resampling,
    transformer,
)
from twofold.nn.module import Module
from twofold.nn.state import IncompatibleKeys, consume_prefix_in_state_dict_if_present

_FILES: dict[str, tuple[ModuleType, ...]] = {
    "activation": (activation, attention),
    "adaptive": (adaptive,),
    "batchnorm": (normalization, lazy),
    "channelshuffle": (resampling,),
    "container": (containers,),
    "conv": (convolution, lazy),
    "distance": (layers,),
    "dropout": (layers,),
    "flatten": (layers,),
    "fold": (convolution,),
    "instancenorm": (normalization, lazy),
    "linear": (layers, lazy),
    "loss": (loss,),
    "module": (module,),
    "normalization": (normalization,),
    "padding": (padding,),
    "pixelshuffle": (resampling,),
    "pooling": (pooling,),
    "rnn": (recurrent,),
    "sparse": (embedding,),
    "transformer": (transformer,),
    "upsampling": (resampling,),
}


def _layers(source: ModuleType) -> dict[str, type]:
    """The layers that a file defines."""
    return {
        name: value
        for name, value in vars(source).items()
        if isinstance(value, type) and issubclass(value, Module) and not name.startswith("_")
    }


_BASES: dict[str, dict[str, Any]] = {
    "activation": {"MultiheadAttention": attention.MultiheadAttention},
    "batchnorm": {"_BatchNorm": normalization._BatchNorm, "_NormBase": normalization._BatchNorm},
    "conv": {"_ConvNd": convolution._Convolution, "_ConvTransposeNd": convolution._ConvTranspose},
    "dropout": {"_DropoutNd": layers._Dropout},
    "instancenorm": {"_InstanceNorm": normalization._InstanceNorm},
    "loss": {"_Loss": loss._Loss, "_WeightedLoss": loss._WeightedLoss},
    "module": {
        "_addindent": module.indented,
        "_IncompatibleKeys": IncompatibleKeys,
        **{name: value for name, value in vars(hooks).items() if name.startswith("register_module_")},
    },
    "padding": {
        "_CircularPadNd": padding._CircularPad,
        "_ConstantPadNd": padding._ConstantPad,
        "_ReflectionPadNd": padding._ReflectionPad,
        "_ReplicationPadNd": padding._ReplicationPad,
    },
    "transformer": {"_get_activation_fn": transformer._activation, "_get_clones": transformer.clones},
    "pooling": {
        "_AdaptiveAvgPoolNd": pooling._AdaptiveAvgPool,
        "_AdaptiveMaxPoolNd": pooling._AdaptiveMaxPool,
        "_AvgPoolNd": pooling._AvgPool,
        "_LPPoolNd": pooling._LPPool,
        "_MaxPoolNd": pooling._MaxPool,
        "_MaxUnpoolNd": pooling._MaxUnpool,
    },
}
"""What programs take from these files beside layers: the classes that layers derive from, and hooks of all modules."""


def _ntuple(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """The function that repeats one value ``count`` times, and takes an iterable as it is."""

    def parse(value: Any) -> tuple[Any, ...]:
        return tuple(value) if hasattr(value, "__iter__") else tuple(repeat(value, count))

    return parse


_TUPLES = {
    name: _ntuple(count + 1) for count, name in enumerate(("_single", "_pair", "_triple", "_quadruple"))
}


def _reverse_repeat_tuple(values: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The values in reverse order, each ``count`` times: padding of axes, as ``pad`` wants it."""
    return tuple(value for value in reversed(values) for _ in range(count))


_contents: dict[str, dict[str, Any]] = {
    "utils": {
        **_TUPLES,
        "_ntuple": _ntuple,
        "_reverse_repeat_tuple": _reverse_repeat_tuple,
        "consume_prefix_in_state_dict_if_present": consume_prefix_in_state_dict_if_present,
    }
}
for _name, _sources in _FILES.items():
    _contents[_name] = {key: value for source in _sources for key, value in _layers(source).items()}
    globals().update(_contents[_name])
    _contents[_name].update(_BASES.get(_name, {}))
_contents["lazy"] = {"LazyModuleMixin": lazy.LazyModuleMixin}
submodules(__name__, _contents)

__path__: list[str] = []  # so that ``import twofold.nn.modules.linear`` looks among the modules entered above
