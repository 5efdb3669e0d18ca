"""Tensors from Python values and arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, as_dtype, bfloat16, float32
from twofold.errors import ShapeError
from twofold.frontend.inplace import write_out
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply

Tensor = _core.Tensor
_default = [float32]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats become.

    >>> import twofold as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(0.5).dtype
    twofold.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    _default[0] = as_dtype(dtype)


def get_default_dtype() -> DType:
    """The dtype that Python floats become.

    >>> import twofold as torch
    >>> torch.get_default_dtype()
    twofold.float32
    """
    return _default[0]


def _nested(data: Any) -> numpy.ndarray:
    try:
        return numpy.array(data)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ShapeError(
            "lists of different lengths", "Give all lists of one level the same length."
        ) from None


def _array(data: Any, dtype: DType | None) -> numpy.ndarray:
    if isinstance(data, numpy.ndarray):
        array = data
    else:
        array = _nested(_plain(data) if isinstance(data, (list, tuple)) and _holds_tensor(data) else data)
    if dtype is None and not isinstance(_first(data), (numpy.ndarray, numpy.generic, Tensor)):
        if array.dtype == numpy.float64:
            return array.astype(numpy.float32 if _default[0] is bfloat16 else _default[0].numpy)
        if array.dtype == numpy.complex128:
            return array.astype(_default[0].complex.numpy)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"tensor: data of type {type(data).__name__} does not become numbers. Give numbers or nested lists of them."
        )
    return array


def _first(data: Any) -> Any:
    """The first element of nested lists: one with a dtype of its own speaks for all."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _holds_tensor(data: Iterable[Any]) -> bool:
    return any(
        isinstance(item, Tensor) or (isinstance(item, (list, tuple)) and _holds_tensor(item)) for item in data
    )


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.detach().numpy()
    return [_plain(item) for item in data] if isinstance(data, (list, tuple)) else data


def _converted(array: numpy.ndarray, dtype: DType | None, share: bool) -> Tensor:
    if dtype is None or (dtype is not bfloat16 and array.dtype == dtype.numpy):
        return _core.from_array(array, share)
    if dtype is bfloat16:
        return apply("cast", _core.from_array(array.astype(numpy.float32), False), attrs=(dtype,))._realise()
    return _core.from_array(array.astype(dtype.numpy), False)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new leaf that holds a copy of ``data``: numbers, nested lists, an array or a tensor.

    Python floats become float32 (see ``set_default_dtype``), integers int64; arrays, and lists of
    them, of their elements or of tensors, keep their dtype.

    >>> import twofold as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        made = data.detach().clone() if wanted is None else data.detach().to(wanted)._realise().clone()
        made = made._realise().detach()
    else:
        made = _converted(_array(data, wanted), wanted, False)
    if requires_grad:
        made.requires_grad = True
    return made


def from_numpy(array: numpy.ndarray) -> Tensor:
    """A tensor that shares the memory of ``array`` (copied if it is not dense).

    What others write to the array shows in the tensor, and in-place operations on the tensor in the array. An
    operation reads the array when it is called, as NumPy would: if others hold the array, it takes a snapshot.

    >>> import twofold as torch
    >>> import numpy
    >>> array = numpy.array([1, 2])
    >>> x = torch.from_numpy(array)
    >>> array[0] = 5
    >>> x
    tensor([5, 2])
    """
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"from_numpy: expected a NumPy array, got {type(array).__name__}")
    return _core.from_array(array, True)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, without a copy where that is possible.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> torch.as_tensor(x) is x, torch.as_tensor([1.0, 2.0])
    (True, tensor([1., 2.]))
    """
    check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        return data if wanted is None or wanted is data.dtype else data.to(wanted)
    if isinstance(data, numpy.ndarray):
        return _converted(data, wanted, True)
    return _converted(_array(data, wanted), wanted, False)


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of any CPU array with ``__dlpack__``.

    >>> import twofold as torch
    >>> import numpy
    >>> torch.from_dlpack(numpy.array([1.0, 2.0]))
    tensor([1., 2.], dtype=twofold.float64)
    """
    return _core.from_array(numpy.from_dlpack(source), True)


def check_device(device: Any) -> None:
    """Raise RuntimeError for a device that is not there."""
    name = getattr(device, "type", device)
    if name is not None and str(name).split(":")[0] != "cpu":
        raise RuntimeError(f"device {str(device)!r} is not available. Use 'cpu'.")


def leaf(made: Tensor, requires_grad: bool) -> Tensor:
    """``made``, marked as a leaf that gradients are wanted for."""
    if requires_grad:
        made.requires_grad = True
    return made


def _leaf_maker(op: Any) -> Callable[..., Tensor]:
    def made(*args: Any, device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             memory_format: Any = None, out: Tensor | None = None, **kwargs: Any) -> Tensor:  # fmt: skip
        check_device(device)
        if out is not None and "dtype" in inspect.signature(op.call).parameters:
            kwargs.setdefault("dtype", out.dtype)
        if kwargs.get("dtype", 0) is None:
            del kwargs["dtype"]
        if op.creates == "default":
            kwargs.setdefault("dtype", _default[0])
        if "size" in kwargs:
            args = (kwargs.pop("size"), *args)
        result = op.call(*args, **kwargs)
        return leaf(result if out is None else write_out(out, result), requires_grad)

    made.__name__ = made.__qualname__ = op.functions[0]
    made.__doc__ = op.doc
    return made


CREATION: dict[str, Callable[..., Tensor]] = {}
"""Functions that make new leaves, by name; beside the entry's own arguments they take PyTorch's ``requires_grad``."""

for _op in REGISTRY.values():
    if getattr(_op, "creates", ""):
        _maker = _leaf_maker(_op)
        CREATION.update(dict.fromkeys(_op.functions, _maker))  # type: ignore[attr-defined]
CREATION["empty"] = CREATION["zeros"]
