"""What programs ask about tensors, memory and the machine, with the answers of dense tensors on a CPU.

Also the constants and the names of memory formats that stand beside them in PyTorch's namespace.
"""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.dtypes import as_dtype
from twofold.frontend.device import CPU, Device
from twofold.frontend.options import (
    FORMATS,
    LAYOUTS,
    check_device,
    layout,
    memory_format,
    strided,
)
from twofold.ops.base import ops
from twofold.ops.shape.contiguity import format_name

Tensor = _core.Tensor


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
    return input.clone(memory_format=memory_format)


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


def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is a storage: never, as memory has no object of its own.

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
    return CPU


def are_deterministic_algorithms_enabled() -> bool:
    """Whether equal calls give equal bits: always.

    >>> import twofold as torch
    >>> torch.are_deterministic_algorithms_enabled()
    True
    """
    return True


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether results that differ between runs would only be warned of: there are none.

    >>> import twofold as torch
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return False


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
    """Raise RuntimeError: there is no such device. Ask ``cuda.is_available()`` first.

    ``non_blocking`` has no effect.
    """
    format_name(memory_format)
    check_device("cuda" if device is None else device)
    raise RuntimeError(f"cuda: device {str(device)!r} is not of that kind. Use 'cuda' devices, or to().")


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is pinned for another device: never, as ``device`` could only be one that is not there.

    >>> import twofold as torch
    >>> torch.tensor([1.0]).is_pinned()
    False
    """
    check_device(device)
    return False


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The axes from the slowest to the fastest in memory.

    Raises RuntimeError with ``ambiguity_check`` where axes of size 1 (or a size of 0) allow several orders.

    >>> import twofold as torch
    >>> torch.zeros(2, 3).dim_order(), torch.zeros(2, 3).t().dim_order()
    ((0, 1), (1, 0))
    """
    if ambiguity_check and any(length < 2 for length in self.shape) and self.ndim > 1:
        raise RuntimeError("dim_order: axes of size 0 or 1 allow several orders. Leave ambiguity_check out.")
    stride = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda axis: -stride[axis]))


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
    is_deterministic_algorithms_warn_only_enabled,
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
    **LAYOUTS,
    **FORMATS,
}

_NEVER = ("meta", "mps", "xpu", "sparse", "sparse_csr", "quantized", "nested", "mkldnn")

METHODS: dict[str, Any] = {
    "cuda": cuda,
    "is_inference": is_inference,
    "is_pinned": is_pinned,
    "is_distributed": lambda self: False,
    "dim_order": dim_order,
    "layout": property(lambda self: strided),
    "is_cpu": property(lambda self: True),
    **{f"is_{name}": property(lambda self: False) for name in _NEVER},
    "_grad": property(lambda self: self.grad, lambda self, value: setattr(self, "grad", value)),
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
