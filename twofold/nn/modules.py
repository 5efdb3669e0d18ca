"""``twofold.nn.modules``: the layers under the names of PyTorch's files, as in ``nn.modules.linear.Linear``."""

from __future__ import annotations

import sys
from types import ModuleType

from twofold.nn import (
    activation,
    adaptive,
    attention,
    containers,
    convolution,
    embedding,
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


for _name, _sources in _FILES.items():
    _made = ModuleType(f"{__name__}.{_name}", f"Layers of PyTorch's ``nn/modules/{_name}.py``.")
    for _source in _sources:
        vars(_made).update(_layers(_source))
        globals().update(_layers(_source))
    globals()[_name] = sys.modules[_made.__name__] = _made

__path__: list[str] = []  # so that ``import twofold.nn.modules.linear`` looks among the modules entered above
