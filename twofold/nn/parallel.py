"""Modules over several devices, of which there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
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
    """Calls ``module``, whose parameters stand under ``module.`` in the state, in a group of one process.

    Gradients of one process are those of the group, so what tells when and how they are joined has no effect.

    Args:
        module: The module; RuntimeError where none of its parameters requires grad.
        device_ids: Cards, with ``output_device``; ValueError where one is given, as there are none.
        process_group: The group; ValueError where none was made.

    >>> import twofold as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> list(model.state_dict()), model(torch.ones(3, 2)).shape
    (['module.weight', 'module.bias'], twofold.Size([3, 1]))
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        self.process_group = import_module("twofold.distributed.process_group").member(process_group)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with GPU modules, but got "
                f"device_ids {device_ids}, output_device {output_device}. Leave them out."
            )
        self.module = module
        self.dim = dim
        self.require_backward_grad_sync = True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A ``with`` block whose backward passes keep gradients in this process, where they are in any case."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


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


class _BetweenDevices:
    """A function with a gradient that copies between graphics cards, of which there are none: ``apply`` raises."""

    apply = staticmethod(_missing)


class Broadcast(_BetweenDevices):
    """Copies of tensors on several graphics cards, of which there are none."""


class Scatter(_BetweenDevices):
    """Parts of a tensor on several graphics cards, of which there are none."""


class Gather(_BetweenDevices):
    """Tensors of several graphics cards as one, of which there are none."""


class ReduceAddCoalesced(_BetweenDevices):
    """Sums of tensors of several graphics cards, of which there are none."""


other_files(
    __name__,
    {
        "_functions": "Broadcast Gather ReduceAddCoalesced Scatter",
        "comm": " ".join(
            f"{name}={__name__}:_missing"
            for name in (
                "broadcast",
                "broadcast_coalesced",
                "gather",
                "reduce_add",
                "reduce_add_coalesced",
                "scatter",
            )
        ),
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
