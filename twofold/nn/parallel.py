"""Modules over several devices, of which there is one."""

from __future__ import annotations

from typing import Any, NoReturn

from twofold.frontend.options import check_device
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


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """What each module computes from its own inputs; each of ``devices`` must be there.

    >>> import twofold as torch
    >>> torch.nn.parallel.parallel_apply([torch.neg, torch.abs], [torch.ones(1), -torch.ones(1)])
    [tensor([-1.]), tensor([1.])]
    """
    for device in devices or ():
        check_device(device)
    calls = zip(modules, inputs, kwargs_tup or [{}] * len(modules), strict=True)
    return [
        module(*(given if isinstance(given, tuple) else (given,)), **named) for module, given, named in calls
    ]


def _missing(what: Any, devices: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise RuntimeError: there are no graphics cards to copy to. Ask ``torch.cuda.is_available()`` first."""
    check_device("cuda")
    raise AssertionError("the device is there")


replicate = scatter = gather = scatter_kwargs = _missing

other_files(
    __name__,
    {
        "data_parallel": "DataParallel data_parallel",
        "distributed": "DistributedDataParallel",
        "parallel_apply": "parallel_apply",
        "replicate": "replicate",
        "scatter_gather": "scatter gather scatter_kwargs",
    },
)

__path__: list[
    str
] = []  # so that ``import twofold.nn.parallel.distributed`` looks among the modules entered above
