"""Methods of the tensor handle that are not operations: conversion, indexing, in-place writes, interchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType, as_dtype
from twofold.errors import ArgumentError
from twofold.frontend import drawing, gradients, inplace, more_creation
from twofold.frontend.creation import check_device, from_numpy, tensor
from twofold.ops.base import FUNCTIONS, apply
from twofold.ops.docstrings import shown
from twofold.ops.indexing import getitem, setitem

Tensor = _core.Tensor


class Device:
    """Where a tensor lives; always the CPU so far.

    >>> import twofold as torch
    >>> torch.device("cpu"), torch.tensor([1.0]).device == torch.device("cpu")
    (device(type='cpu'), True)
    """

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        check_device(type)
        self.type = "cpu"
        self.index = index

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) or other == "cpu"

    def __hash__(self) -> int:
        return hash("cpu")


_CPU = Device()


def numpy_(self: Tensor, *, force: bool = False) -> numpy.ndarray:
    """An array that shares this tensor's memory (bfloat16: a float32 copy).

    Raises RuntimeError for a tensor that requires grad, unless ``force``.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).numpy()
    array([1, 2])
    """
    if force:
        self = self.detach()
    if self.dtype is dtypes.bfloat16:
        return apply("cast", self, attrs=(dtypes.float32,)).numpy()
    return self._numpy()


def tolist(self: Tensor) -> Any:
    """The elements as (nested lists of) Python numbers.

    >>> import twofold as torch
    >>> torch.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return self.detach().numpy().tolist()


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
    array = self.numpy()
    if dtype is not None and array.dtype != numpy.dtype(dtype):
        return array.astype(dtype)
    return array.copy() if copy else array


def _dlpack(
    self: Tensor,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule on the memory of the tensor, made by NumPy, whose version may limit the options."""
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return self.numpy().__dlpack__(**{name: value for name, value in options.items() if value is not None})


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return (1, 0)


def to(
    self: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **_: Any
) -> Tensor:
    """This tensor in another dtype; the tensor itself when nothing changes.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).to(torch.float64)
    tensor([1., 2.], dtype=twofold.float64)
    >>> torch.tensor([1.5, 2.5]).to("cpu", dtype=torch.int32)
    tensor([1, 2], dtype=twofold.int32)
    """
    for argument in args:
        if isinstance(argument, Tensor):
            dtype = argument.dtype
        elif isinstance(argument, (DType, numpy.dtype, type)):
            dtype = argument
        elif not isinstance(argument, bool):
            device = argument
    check_device(device)
    if dtype is None or as_dtype(dtype) is self.dtype:
        return self.clone() if copy else self
    return apply("cast", self, attrs=(as_dtype(dtype),))


def _caster(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor, **_: Any) -> Tensor:
        return self if self.dtype is dtype else apply("cast", self, attrs=(dtype,))

    convert.__doc__ = shown(
        f"This tensor as {dtype.name}.",
        f">>> torch.tensor([1, 0]).{name}().dtype",
        repr(dtype),
    )
    return convert


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The name of the tensor type, or this tensor in ``dtype``.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).type(), torch.tensor([1, 2]).type("torch.FloatTensor")
    ('twofold.LongTensor', tensor([1., 2.]))
    """
    if dtype is None:
        return f"twofold.{_TYPE_NAMES.get(self.dtype, self.dtype.name)}"
    if isinstance(dtype, str) and dtype.split(".")[-1] in _BY_TYPE_NAME:
        dtype = _BY_TYPE_NAME[dtype.split(".")[-1]]
    return to(self, getattr(dtype, "dtype", dtype))


_TYPE_NAMES = {
    dtypes.float32: "FloatTensor",
    dtypes.float64: "DoubleTensor",
    dtypes.int64: "LongTensor",
    dtypes.int32: "IntTensor",
    dtypes.uint8: "ByteTensor",
    dtypes.bool_: "BoolTensor",
    dtypes.float16: "HalfTensor",
    dtypes.int16: "ShortTensor",
    dtypes.int8: "CharTensor",
    dtypes.bfloat16: "BFloat16Tensor",
}
_BY_TYPE_NAME = {name: dtype for dtype, name in _TYPE_NAMES.items()}


class Extent(int):
    """What ``tensor.size`` is: the number of elements, as in the array API, and called, the shape, as in PyTorch."""

    shape: Any

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[dim]


def size(self: Tensor) -> Extent:
    """The number of elements; ``size()`` is the shape and ``size(dim)`` the size of one axis.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3)
    >>> x.size(), x.size(1), x.size == 6
    (twofold.Size([2, 3]), 3, True)
    """
    extent = Extent(self.type_.size)
    extent.shape = self.shape
    return extent


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on ``device``, which can only be the CPU, where it is; a CPU has no streams.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).to_device("cpu")
    tensor([1, 2])
    """
    check_device(device)
    if stream is not None:
        raise ArgumentError(f"stream {stream!r} of a CPU", "Leave it out.")
    return self


def dim(self: Tensor) -> int:
    """Number of axes.

    >>> import twofold as torch
    >>> torch.zeros(2, 3).dim()
    2
    """
    return self.ndim


def numel(self: Tensor) -> int:
    """Number of elements.

    >>> import twofold as torch
    >>> torch.zeros(2, 3).numel()
    6
    """
    return self.type_.size


def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, through which gradients flow.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x.clone().sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    return apply("positive", self)


def same(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> x.contiguous() is x, x.cpu() is x
    (True, True)
    """
    return self


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Elements between neighbours along each axis of the dense row-major layout.

    >>> import twofold as torch
    >>> torch.zeros(2, 3, 5).stride()
    (15, 5, 1)
    """
    steps, step = [], 1
    for length in reversed(self.shape):
        steps.append(step)
        step *= max(length, 1)
    found = tuple(reversed(steps))
    return found if dim is None else found[dim]


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set ``requires_grad`` and return the tensor.

    >>> import twofold as torch
    >>> torch.tensor([1.0, 2.0]).requires_grad_().requires_grad
    True
    """
    self.requires_grad = requires_grad
    return self


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a tensor that is not a leaf, too.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> (y * y).backward()
    >>> y.grad
    tensor(12.)
    """
    self._gradient_hooks(True)


class HookHandle:
    """Takes a hook away again with ``remove``."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook away."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> HookHandle:
    """Call ``hook`` with each gradient of this tensor; what it returns, unless None, takes its place.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda gradient: gradient * 10)
    >>> (x * x).backward()
    >>> x.grad
    tensor(60.)
    """
    if not self.requires_grad:
        raise RuntimeError("register_hook: the tensor does not require grad. Set requires_grad first.")
    hooks = self._gradient_hooks(False)
    hooks.append(hook)
    return HookHandle(hooks, hook)


def _lift(array: numpy.ndarray) -> Tensor:
    return _core.from_array(numpy.ascontiguousarray(array), False)


def _key(key: Any) -> Any:
    """A Python key with lists as arrays."""
    if isinstance(key, list):
        return _lift(numpy.asarray(tensor(key).numpy())) if key else _lift(numpy.zeros(0, numpy.int64))
    if isinstance(key, tuple):
        return tuple(_key(item) for item in key)
    if isinstance(key, Tensor) and key.ndim == 0 and key.dtype.kind in "iu" and not key._is_symbolic:
        return key.item()
    return key


def _observe(mask: Any) -> numpy.ndarray:
    return mask.detach().numpy()


def __getitem__(self: Tensor, key: Any) -> Tensor:
    found = getitem(self, _key(key), _observe, _lift)
    return (
        apply("basic_index", self, attrs=((*self.shape,), (1,) * self.ndim, (), (), (*self.shape,)))
        if found is self
        else found
    )


def __setitem__(self: Tensor, key: Any, value: Any) -> None:
    if isinstance(value, numpy.ndarray):
        value = _core.from_array(value, False)
    elif isinstance(value, (list, tuple)):
        value = tensor(value)
    if isinstance(value, Tensor) and value.dtype is not self.dtype:
        value = apply("cast", value, attrs=(self.dtype,))
    self._assign(setitem(self, _key(key), value, _observe, _lift))


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor. Use item() for its number.")
    return (self[k] for k in range(self.shape[0]))


def __contains__(self: Tensor, value: Any) -> bool:
    return bool((self == value).any())


def __format__(self: Tensor, spec: str) -> str:
    if self.ndim == 0 and not self._is_symbolic:
        return format(self.item(), spec)
    return format(repr(self), spec)


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError("deepcopy: only leaves can be copied deeply. Use detach().clone().")
    made = type(self)(self.detach().clone())
    made.requires_grad = self.requires_grad
    if self.grad is not None:
        made.grad = self.grad.detach().clone()
    memo[id(self)] = made
    return made


def _rebuild(kind: type, array: numpy.ndarray, dtype: str, requires_grad: bool) -> Tensor:
    made = _core.from_array(array, False, dtypes.BY_NAME[dtype].code)
    made = made if kind is Tensor else kind(made)
    made.requires_grad = requires_grad
    return made


def __reduce_ex__(self: Tensor, protocol: int) -> Any:
    plain = self.detach()
    array = plain._numpy().copy()
    return _rebuild, (type(self), array, self.dtype.name, self.requires_grad and self.is_leaf)


def fill_(self: Tensor, value: Any) -> Tensor:
    """In-place: make every element ``value``.

    >>> import twofold as torch
    >>> torch.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    if isinstance(value, Tensor):
        return self._assign(apply("cast", value.expand(tuple(self.shape)), attrs=(self.dtype,)))
    return self._assign(_instead_of(self, apply("full", value, attrs=(tuple(self.shape), self.dtype))))


def zero_(self: Tensor) -> Tensor:
    """In-place: make every element 0.

    >>> import twofold as torch
    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    return self._assign(_instead_of(self, apply("zeros", attrs=(tuple(self.shape), self.dtype))))


def _instead_of(old: Tensor, new: Tensor) -> Tensor:
    """``new``, through which zeros flow back to ``old`` where a gradient is wanted."""
    return FUNCTIONS["where"](True, new, old) if old.requires_grad else new


def copy_(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """In-place: take the elements of ``source``, broadcast and converted.

    >>> import twofold as torch
    >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    value = to(source, self.dtype)
    if tuple(value.shape) != tuple(self.shape):
        value = value.expand(tuple(self.shape))
    return self._assign(value)


def _new(name: str) -> Callable[..., Tensor]:
    def made(
        self: Tensor, *args: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
    ) -> Tensor:
        result = FUNCTIONS[name](*args, dtype=dtype or self.dtype)
        if requires_grad:
            result.requires_grad = True
        return result

    made.__name__ = f"new_{name}"
    values = ", 7" if name == "full" else ""
    made.__doc__ = shown(
        f"``{name}`` in this tensor's dtype unless another is given.",
        f">>> torch.tensor([1, 2]).new_{name}((2, 3){values}).dtype",
        "twofold.int64",
    )
    return made


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """A new leaf with ``data`` in this tensor's dtype.

    >>> import twofold as torch
    >>> torch.zeros(1, dtype=torch.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=twofold.float64)
    """
    return tensor(data, dtype=dtype or self.dtype, requires_grad=requires_grad)


def _get_data(self: Tensor) -> Tensor:
    return self.detach()


def _set_data(self: Tensor, other: Tensor) -> None:
    self._leave_storage()
    self._replace_value(other)


METHODS: dict[str, Any] = {
    "numpy": numpy_,
    "tolist": tolist,
    "__array__": _array,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "to": to,
    "type": type_,
    "size": property(size),
    "dim": dim,
    "ndimension": dim,
    "numel": numel,
    "nelement": numel,
    "clone": clone,
    "cpu": same,
    "contiguous": same,
    "requires_grad_": requires_grad_,
    "retain_grad": retain_grad,
    "stride": stride,
    "register_hook": register_hook,
    "__getitem__": __getitem__,
    "__setitem__": __setitem__,
    "__iter__": __iter__,
    "__contains__": __contains__,
    "__format__": __format__,
    "__deepcopy__": __deepcopy__,
    "__reduce_ex__": __reduce_ex__,
    "fill_": fill_,
    "zero_": zero_,
    "copy_": copy_,
    "new_tensor": new_tensor,
    "backward": gradients.backward,
    "is_contiguous": lambda self, **_: True,
    "is_floating_point": lambda self: self.dtype.kind == "f",
    "element_size": lambda self: self.dtype.itemsize,
    "data": property(_get_data, _set_data),
    "device": property(lambda self: _CPU),
    "is_cuda": property(lambda self: False),
    "__array_priority__": 1000,
    "float": _caster("float", dtypes.float32),
    "double": _caster("double", dtypes.float64),
    "half": _caster("half", dtypes.float16),
    "bfloat16": _caster("bfloat16", dtypes.bfloat16),
    "int": _caster("int", dtypes.int32),
    "long": _caster("long", dtypes.int64),
    "short": _caster("short", dtypes.int16),
    "char": _caster("char", dtypes.int8),
    "byte": _caster("byte", dtypes.uint8),
    "bool": _caster("bool", dtypes.bool_),
    "new_zeros": _new("zeros"),
    "new_ones": _new("ones"),
    "new_empty": _new("zeros"),
    "new_full": _new("full"),
    "itemsize": property(lambda self: self.dtype.itemsize),
    "grad_fn": property(lambda self: None if self.is_leaf else "recorded"),
    "T": property(lambda self: self.permute(*reversed(range(self.ndim)))),
    "mT": property(lambda self: self.transpose(-2, -1)),
    "H": property(lambda self: self.transpose(-2, -1).conj()),
    "mH": property(lambda self: self.transpose(-2, -1).conj()),
    "real": property(lambda self: FUNCTIONS["real"](self)),
    "imag": property(lambda self: FUNCTIONS["imag"](self)),
    "cfloat": _caster("cfloat", dtypes.complex64),
    "cdouble": _caster("cdouble", dtypes.complex128),
    "is_complex": lambda self: self.dtype.is_complex,
    "is_conj": lambda self: False,
    "is_neg": lambda self: False,
    "__complex__": lambda self: complex(self.item()),
    "to_device": to_device,
    "detach_": lambda self: self._replace_value(self.detach()) or self,
    "__array_ufunc__": None,
    "from_numpy": staticmethod(from_numpy),
}


def install() -> None:
    """Put the methods on the tensor type."""
    for name, method in {**METHODS, **inplace.METHODS, **more_creation.METHODS, **drawing.METHODS}.items():
        indexes = name in ("__getitem__", "__setitem__")
        setattr(Tensor, name, _core.operation_callable(None, 0, method) if indexes else method)
