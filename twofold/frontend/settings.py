"""Settings that programs make, and promotion of dtypes.

Every tensor is on the CPU, products are never rounded to fewer digits, and the same program gives the same
bits; so most settings are checked and change nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from twofold import _core
from twofold.dtypes import DType, as_dtype, rules_in_default
from twofold.errors import ArgumentError
from twofold.frontend.legacy import CONSTRUCTORS
from twofold.frontend.options import (
    check_device,
    check_pinned,
    check_type_device,
    get_default_dtype,
    set_default_dtype,
)
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import FUNCTIONS
from twofold.ops.promotion import common_beside_scalars

Tensor = _core.Tensor

_PRECISIONS = ("highest", "high", "medium")


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype that an operation on both computes in; of numbers, and of scalars beside axes, the kind counts.

    >>> import twofold as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    twofold.float32
    >>> torch.result_type(torch.ones(2), torch.ones((), dtype=torch.float64))
    twofold.float32
    """
    with rules_in_default(get_default_dtype()):
        return common_beside_scalars([_type_of(value) for value in (tensor1, tensor2)])


def _type_of(value: Any) -> TensorType:
    return value.type_ if isinstance(value, Tensor) else tensor_type(as_dtype(type(value)), (), True)


def typename(obj: Any) -> str:
    """The name of the type of a tensor, or of an object's class.

    >>> import twofold as torch
    >>> torch.typename(torch.ones(2))
    'twofold.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = type(obj)
    return f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ != "builtins" else cls.__qualname__


def set_default_device(device: Any) -> None:
    """Nothing for the CPU; raises RuntimeError for any other device.

    >>> import twofold as torch
    >>> torch.set_default_device("cpu")
    >>> torch.get_default_device()
    device(type='cpu')
    """
    check_device(device)


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a class such as ``DoubleTensor`` or by its name; RuntimeError for another device.

    >>> import twofold as torch
    >>> torch.set_default_tensor_type(torch.FloatTensor)
    >>> torch.tensor(0.5).dtype
    twofold.float32
    """
    check_type_device(t)
    set_default_dtype((CONSTRUCTORS[t.split(".")[-1]] if isinstance(t, str) else t).dtype)


def set_float32_matmul_precision(precision: str) -> None:
    """Allow fewer digits in products of float32, which are computed in full all the same.

    >>> import twofold as torch
    >>> torch.set_float32_matmul_precision("medium")
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    if precision not in _PRECISIONS:
        raise ArgumentError(f"precision {precision!r}", f"Use one of {', '.join(_PRECISIONS)}.")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in every run, as they always are.

    >>> import twofold as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    """


def set_num_interop_threads(num: int) -> None:
    """How many calls may run at once; one does, whose kernels share the threads of ``set_num_threads``.

    Raises RuntimeError for fewer than 1.

    >>> import twofold as torch
    >>> torch.set_num_interop_threads(4)
    >>> torch.get_num_interop_threads()
    1
    """
    if num < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive number of threads, not {num}")


def set_flush_denormal(mode: bool) -> bool:
    """False: numbers close to zero keep all their digits.

    >>> import twofold as torch
    >>> torch.set_flush_denormal(True)
    False
    """
    return False


def new(self: Tensor, *args: Any) -> Tensor:
    """A tensor of this dtype from sizes (then zeros) or from data; without arguments, of no elements.

    >>> import twofold as torch
    >>> torch.zeros(1, dtype=torch.int32).new([1, 2])
    tensor([1, 2], dtype=twofold.int32)
    """
    constructor = next(made for made in CONSTRUCTORS.values() if made.dtype is self.dtype)
    return constructor(*args)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Raise RuntimeError: memory is pinned for another device, and there is none."""
    check_device(device)
    check_pinned(True)
    return self


def share_memory_(self: Tensor) -> Tensor:
    """Move the values to memory that processes share which are forked, or given it, from here on; returns the tensor.

    What one process writes in place, the others read; it writes the whole tensor, even for a part of it, so parts that
    several processes write at a time are tensors of their own. Raises ArgumentError for a view.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> x.share_memory_() is x, x.is_shared()
    (True, True)
    """
    import_module("twofold.frontend.shared_memory").share(self)
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the values are in memory that processes share.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).is_shared()
    False
    """
    found: bool = import_module("twofold.frontend.shared_memory").is_shared(self)
    return found


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
    """The tensor itself, which is dense, in ``dtype`` if given; ``masked_grad`` would count for a sparse one.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> x.to_dense() is x, x.to_dense(torch.float32)
    (True, tensor([1., 2.]))
    """
    return self if dtype is None else self.to(dtype)


def as_subclass(self: Tensor, cls: type[Tensor]) -> Any:
    """This tensor as one of a class that inherits from ``Tensor``: a view, through which gradients flow.

    What is computed of it are plain tensors.

    >>> import twofold as torch
    >>> class Named(torch.Tensor):
    ...     name = "x"
    >>> torch.ones(2).as_subclass(Named).name
    'x'
    """
    return FUNCTIONS["alias"](self)._as_class(cls)


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of a class that inherits from ``Tensor``, with the memory of ``data``.

    >>> import twofold as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> torch.Tensor._make_subclass(Named, torch.ones(2), True).requires_grad
    True
    """
    made = _core.disabled_torch_function(as_subclass, (), (data.detach(), cls))
    made.requires_grad = require_grad
    return made


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None) -> Any:
    """The elements that are not zero, of the first ``sparse_dim`` axes (default: all), as a sparse tensor.

    >>> import twofold as torch
    >>> torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices()
    tensor([[0],
            [1]])

    Raises:
        ArgumentError: If there are not so many axes, or for another layout than ``sparse_coo``.
    """
    return import_module("twofold.sparse.coordinates").nonzeros(self, sparse_dim, layout)


def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements at the coordinates of a sparse tensor of the same shape, as a sparse tensor.

    >>> import twofold as torch
    >>> mask = torch.sparse_coo_tensor([[0, 1], [1, 0]], [5.0, 5.0], (2, 2))
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(mask.coalesce()).values()
    tensor([2., 3.])

    Raises:
        ShapeError: If the shapes differ.
    """
    return import_module("twofold.sparse.functions").at_coordinates(self, mask)


METHODS: dict[str, Any] = {
    "sparse_mask": sparse_mask,
    "as_subclass": as_subclass,
    "_make_subclass": staticmethod(_make_subclass),
    "new": new,
    "pin_memory": pin_memory,
    "share_memory_": share_memory_,
    "is_shared": is_shared,
    "to_dense": to_dense,
    "to_sparse": to_sparse,
}


def _assert(condition: Any, message: Any) -> None:
    """Raise AssertionError with ``message`` unless ``condition`` is true.

    >>> import twofold as torch
    >>> torch._assert(torch.tensor(1.0) > 0, "not positive")
    """
    if type(condition) is not Tensor and _core.has_torch_function(condition):
        _core.call_torch_function(_assert, (condition,), (condition, message), {})
    elif not condition:
        raise AssertionError(message)


_SETTINGS: tuple[Any, ...] = (
    _assert,
    result_type,
    typename,
    set_default_device,
    set_default_tensor_type,
    set_float32_matmul_precision,
    use_deterministic_algorithms,
    set_num_interop_threads,
    set_flush_denormal,
)
TOP_LEVEL: dict[str, Any] = {function.__name__: function for function in _SETTINGS}


def install() -> None:
    """Put the methods on the tensor type."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
