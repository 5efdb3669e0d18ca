"""Modules over several devices, of which there is one."""

from __future__ import annotations

from typing import Any

from twofold.lazy import other_files
from twofold.nn.module import Module


class DataParallel(Module):
    """Calls ``module``, whose parameters stand under ``module.`` in the state: there is one device.

    >>> import twofold as torch
    >>> list(torch.nn.DataParallel(torch.nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Would average gradients over processes; there are no process groups.

    Raises NotImplementedError when it is made.

    >>> import twofold as torch
    >>> torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    Traceback (most recent call last):
        ...
    NotImplementedError: DistributedDataParallel: training over several processes is not supported. Use the module \
itself.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "DistributedDataParallel: training over several processes is not supported. Use the module itself."
        )


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """What ``module`` computes from ``inputs``, a tuple or one value."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


other_files(
    __name__, {"data_parallel": "DataParallel data_parallel", "distributed": "DistributedDataParallel"}
)

__path__: list[
    str
] = []  # so that ``import twofold.nn.parallel.distributed`` looks among the modules entered above
