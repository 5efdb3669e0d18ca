"""What programs ask about tensors, memory and the machine, with the answers of dense tensors on a CPU.

Also the constants and the names of memory formats that stand beside them in PyTorch's namespace.
"""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.dtypes import as_dtype
from twofold.frontend.creation import check_device
from twofold.frontend.methods import Device
from twofold.ops.base import ops

Tensor = _core.Tensor


class memory_format:
    """An order of axes in memory, by its name; every tensor is row-major, so it changes nothing.

    >>> import twofold as torch
    >>> torch.tensor([1.0]).contiguous(memory_format=torch.contiguous_format)
    tensor([1.])
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"twofold.{self._name}"


class layout(memory_format):
    """A way of storing elements, by its name: all tensors are ``strided``.

    >>> import twofold as torch
    >>> torch.tensor([1.0]).layout == torch.strided
    True
    """


strided = layout("strided")

_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
"""From the narrowest kind of numbers to the widest."""


def can_cast(from_: Any, to: Any) -> bool:
    """Whether values of one dtype become the other without losing their kind: fractions, or imaginary parts.

    >>> import twofold as torch
    >>> torch.can_cast(torch.int64, torch.float16), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    return _KINDS[as_dtype(from_).kind] <= _KINDS[as_dtype(to).kind]


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, through which gradients flow.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> y = torch.clone(x)
    >>> y[0] = 5
    >>> x
    tensor([1, 2])
    """
    return input.clone()


def detach(input: Tensor) -> Tensor:
    """The values of a tensor as a constant for gradients; both share memory.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.detach(x).requires_grad
    False
    """
    return input.detach()


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> import twofold as torch
    >>> torch.is_signed(torch.tensor([1])), torch.is_signed(torch.tensor([1], dtype=torch.uint8))
    (True, False)
    """
    return input.dtype.kind in "ifc"


def is_conj(input: Tensor) -> bool:
    """Whether elements are stored conjugated: never.

    >>> import twofold as torch
    >>> torch.is_conj(torch.conj(torch.tensor([1j])))
    False
    """
    return False


def is_neg(input: Tensor) -> bool:
    """Whether elements are stored negated: never.

    >>> import twofold as torch
    >>> torch.is_neg(torch.tensor([-1.0]))
    False
    """
    return False


def is_inference(input: Tensor) -> bool:
    """Whether a tensor may never take part in gradients: no, ``inference_mode`` only records none.

    >>> import twofold as torch
    >>> torch.is_inference(torch.tensor([1.0]))
    False
    """
    return False


def is_storage(value: Any) -> bool:
    """Whether ``value`` is a storage: never, as memory has no object of its own.

    >>> import twofold as torch
    >>> torch.is_storage(torch.tensor([1.0]))
    False
    """
    return False


def get_device(input: Tensor) -> int:
    """The number of the device: -1, the CPU.

    >>> import twofold as torch
    >>> torch.get_device(torch.tensor([1.0]))
    -1
    """
    return -1


def get_default_device() -> Device:
    """Where new tensors live: on the CPU.

    >>> import twofold as torch
    >>> torch.get_default_device()
    device(type='cpu')
    """
    return Device()


def are_deterministic_algorithms_enabled() -> bool:
    """Whether equal calls give equal bits: always.

    >>> import twofold as torch
    >>> torch.are_deterministic_algorithms_enabled()
    True
    """
    return True


def get_num_interop_threads() -> int:
    """How many calls run at once: one, whose kernels share the threads.

    >>> import twofold as torch
    >>> torch.get_num_interop_threads()
    1
    """
    return 1


def get_float32_matmul_precision() -> str:
    """How exact products of float32 matrices are: the "highest".

    >>> import twofold as torch
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return "highest"


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raise RuntimeError: there is no such device. Ask ``cuda.is_available()`` first."""
    check_device("cuda")
    return self


def is_set_to(self: Tensor, other: Tensor) -> bool:
    """Whether both show the same memory in one shape.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> x.is_set_to(x), x.is_set_to(x.clone())
    (True, False)
    """
    return tuple(self.shape) == tuple(other.shape) and self.data_ptr() == other.data_ptr()


_ASKED: tuple[Any, ...] = (
    can_cast,
    clone,
    detach,
    is_signed,
    is_conj,
    is_neg,
    is_inference,
    is_storage,
    get_device,
    get_default_device,
    are_deterministic_algorithms_enabled,
    get_num_interop_threads,
    get_float32_matmul_precision,
)

TOP_LEVEL: dict[str, Any] = {
    **{function.__name__: function for function in _ASKED},
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "pi": math.pi,
    "newaxis": None,
    "memory_format": memory_format,
    "layout": layout,
    "strided": strided,
    **{
        name: memory_format(name)
        for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
    },
}

_NEVER = ("meta", "mps", "xpu", "sparse", "sparse_csr", "quantized", "nested", "mkldnn")

METHODS: dict[str, Any] = {
    "cuda": cuda,
    "is_set_to": is_set_to,
    "is_inference": is_inference,
    "is_pinned": lambda self, *rest: False,
    "is_shared": lambda self: False,
    "is_distributed": lambda self: False,
    "dim_order": lambda self, **_: tuple(range(self.ndim)),
    "layout": property(lambda self: strided),
    "is_cpu": property(lambda self: True),
    **{f"is_{name}": property(lambda self: False) for name in _NEVER},
    "__rdiv__": lambda self, other: ops.divide(other, self),
    "__reversed__": lambda self: ops.flip(self, (0,)) if self.ndim else self,
}


def install() -> None:
    """Put the methods on the tensor type."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)


def in_place_functions() -> dict[str, Any]:
    """The in-place methods of the tensor type as functions: ``exp_(x)`` is ``x.exp_()``."""
    names = [name for name in dir(Tensor) if name.endswith("_") and not name.startswith("_")]
    return {name: getattr(Tensor, name) for name in names}
