"""Methods of the tensor handle that are not operations: conversion, in-place writes, interchange."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType, as_dtype
from twofold.errors import ArgumentError
from twofold.frontend import (
    creation_functions,
    elements,
    gradients,
    inplace,
    sampling,
    storage,
    tensor_hooks,
)
from twofold.frontend.creation import CREATION, from_numpy, tensor
from twofold.frontend.device import CPU
from twofold.frontend.elements import instead_of
from twofold.frontend.grad_fn import grad_fn
from twofold.frontend.options import (
    check_device,
    check_layout,
    check_type_device,
    get_default_dtype,
    in_format,
)
from twofold.ops.base import FUNCTIONS, apply
from twofold.ops.docstrings import shown
from twofold.ops.promotion import need_fitting
from twofold.ops.shape.contiguity import dense_copy
from twofold.ops.signatures import method_like

Tensor = _core.Tensor


def numpy_(self: Tensor, *, force: bool = False) -> numpy.ndarray:
    """An array that shares this tensor's memory (bfloat16: a float32 copy).

    Raises RuntimeError for a tensor that requires grad, unless ``force`` or where gradients are disabled.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).numpy()
    array([1, 2])
    """
    if force or (self.requires_grad and not _core.grad_enabled()):
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
    return self._read().tolist()


def _read(self: Tensor) -> numpy.ndarray:
    """The elements as an array that is read at once: unlike ``numpy`` it runs no calls that read the same memory."""
    if self.dtype is dtypes.bfloat16:
        return apply("cast", self.detach(), attrs=(dtypes.float32,))._values()
    return self.detach()._values()


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
    array = numpy.asarray(self.numpy())  # of TensorFlow's names a value without axes gives a number
    if dtype is not None and array.dtype != numpy.dtype(dtype):
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(
    self: Tensor, array: numpy.ndarray, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """What a function of NumPy makes of tensors is a tensor, truth values as uint8."""
    return from_numpy(array.astype(numpy.uint8) if array.dtype == bool else array)


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The functions of the array API standard; raises ValueError for a version of it that they do not follow."""
    space = import_module("twofold.array_api")
    if api_version not in (None, "2021.12", "2022.12", "2023.12", space.__array_api_version__):
        raise ValueError(
            f"__array_namespace__: version {api_version!r} is not known. Use {space.__array_api_version__!r}."
        )
    return space


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
    return numpy.asarray(self.numpy()).__dlpack__(
        **{name: value for name, value in options.items() if value is not None}
    )


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return (1, 0)


def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """This tensor in another dtype, or that of ``other``; the tensor itself when nothing changes, unless ``copy``.

    Args:
        args: A dtype, a device, a device and a dtype, or a tensor whose dtype counts; then ``non_blocking``, ``copy``.
        non_blocking: Without effect: there is no other device to wait for.
        memory_format: The order of axes in memory; raises RuntimeError for another number of axes.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).to(torch.float64)
    tensor([1., 2.], dtype=twofold.float64)
    >>> torch.tensor([1.5, 2.5]).to("cpu", dtype=torch.int32)
    tensor([1, 2], dtype=twofold.int32)
    """
    if args and isinstance(args[0], bool):
        raise TypeError(
            f"to: {args[0]} comes first. Give a dtype, a device or a tensor before non_blocking and copy."
        )
    flags = []
    for argument in args if other is None else (other, *args):
        if isinstance(argument, Tensor):
            dtype = argument.dtype
        elif isinstance(argument, (DType, numpy.dtype, type)):
            dtype = argument
        elif isinstance(argument, bool):
            flags.append(argument)
        else:
            device = argument
    if len(flags) > 2:
        raise TypeError(f"to() takes non_blocking and copy, got {len(flags)} flags")
    check_device(device)
    copy = copy or flags[1:] == [True]
    if dtype is not None and as_dtype(dtype) is not self.dtype:
        self = apply("cast", self, attrs=(as_dtype(dtype),))
    elif copy:
        return self.clone(memory_format=memory_format)
    return in_format(self, memory_format)


def _caster(name: str, dtype: DType) -> Callable[..., Tensor]:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        made = self if self.dtype is dtype else apply("cast", self, attrs=(dtype,))
        return made if memory_format is None else in_format(made, memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = shown(
        f"This tensor as {dtype.name}.",
        f">>> torch.tensor([1, 0]).{name}().dtype",
        repr(dtype),
    )
    return convert


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The name of the tensor type, or this tensor in ``dtype``, for which ``Tensor`` is the default dtype.

    Raises RuntimeError for a type of tensors on another device.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).type(), torch.tensor([1, 2]).type("torch.FloatTensor")
    ('twofold.LongTensor', tensor([1., 2.]))
    """
    if dtype is None:
        return f"twofold.{_TYPE_NAMES.get(self.dtype, self.dtype.name)}"
    check_type_device(dtype)
    if isinstance(dtype, str) and dtype.split(".")[-1] in _BY_TYPE_NAME:
        dtype = _BY_TYPE_NAME[dtype.split(".")[-1]]
    if dtype is Tensor:
        dtype = get_default_dtype()
    return to(self, as_dtype(getattr(dtype, "dtype", dtype)))


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


def _is_view(self: Tensor) -> bool:
    """Whether the tensor is a view of another; what ``detach`` and ``data`` give is none, as in PyTorch.

    >>> import twofold as torch
    >>> x = torch.ones(2, 3)
    >>> x._is_view(), x.t()._is_view(), x.detach()._is_view()
    (False, True, False)
    """
    view = self._view
    return view is not None and view[1] is not None


def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, through which gradients flow.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x.clone().sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    return dense_copy(self, memory_format)


def same(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> x.cpu() is x
    True
    """
    return in_format(self, memory_format)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set ``requires_grad`` and return the tensor.

    >>> import twofold as torch
    >>> torch.tensor([1.0, 2.0]).requires_grad_().requires_grad
    True
    """
    self.requires_grad = requires_grad
    return self


def detach_(self: Tensor) -> Tensor:
    """In-place: become a leaf through which no gradient flows. Raises RuntimeError for a view that has a gradient.

    >>> import twofold as torch
    >>> (torch.ones(2, requires_grad=True) * 2).detach_()
    tensor([2., 2.])
    """
    if self._base is not None and not self.is_leaf:
        raise RuntimeError(
            "Can't detach views in-place: the tensor shows the storage of another. Use detach() instead."
        )
    if self.is_leaf:
        self.requires_grad = False
    else:
        self._replace_value(self.detach())
    return self


def __format__(self: Tensor, spec: str) -> str:
    if self.ndim == 0 and not self._is_symbolic:
        return format(self.item(), spec)
    return format(repr(self), spec)


def _rebuild(
    kind: type, array: numpy.ndarray, dtype: str, requires_grad: bool, state: dict[str, Any] | None = None
) -> Tensor:
    made = _core.from_array(array, False, dtypes.BY_NAME[dtype].code)
    made = made if kind is Tensor else kind(made)
    made.requires_grad = requires_grad
    if state and hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state:
        made.__dict__.update(state)
    return made


def __reduce_ex__(self: Tensor, protocol: int) -> Any:
    """A function and its arguments, always two as in PyTorch: classes add arguments of their own."""
    plain = self.detach()
    array = plain._numpy().copy()
    parts = (type(self), array, self.dtype.name, self.requires_grad and self.is_leaf)
    return (_rebuild, (*parts, dict(self.__dict__)) if self.__dict__ else parts)


def fill_(self: Tensor, value: Any) -> Tensor:
    """In-place: make every element ``value``.

    >>> import twofold as torch
    >>> torch.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    if isinstance(value, Tensor):
        given = apply("cast", value.expand(tuple(self.shape)), attrs=(self.dtype,))
        return self._assign(instead_of(self, given), value)
    need_fitting(value, self.dtype)
    return self._assign(instead_of(self, apply("full", value, attrs=(tuple(self.shape), self.dtype))))


def zero_(self: Tensor) -> Tensor:
    """In-place: make every element 0.

    >>> import twofold as torch
    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    return self._assign(instead_of(self, apply("zeros", attrs=(tuple(self.shape), self.dtype))))


def _by_types(method: Callable[..., Any]) -> Any:
    """``method``, whose calls of operations follow from the types of its tensors."""
    return _core.operation_callable(None, -1, method, "", False, True)


def _to_copy(self: Tensor, source: Tensor) -> Tensor:
    """``source`` as ``self`` takes it, a copy of it at least: a leaf that takes a value makes it require gradients."""
    value = to(source, self.dtype)
    if tuple(value.shape) != tuple(self.shape):
        value = value.expand(tuple(self.shape))
    return value.clone() if value is source else value


_copied = _by_types(_to_copy)


def copy_(self: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """In-place: take the elements of ``source``, a tensor or a number, broadcast and converted.

    ``non_blocking`` has no effect: there is no other device to wait for.

    >>> import twofold as torch
    >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if isinstance(source, (int, float, complex, numpy.number)):
        source = tensor(source)
    elif not isinstance(source, Tensor):
        raise TypeError(f"copy_(): source must be a tensor or a number, not {type(source).__name__}")
    return self._assign(instead_of(self, _copied(self, source)), source)


def _new(name: str) -> Callable[..., Tensor]:
    def made(self: Tensor, *args: Any, dtype: Any = None, **options: Any) -> Tensor:
        return CREATION[name](*args, dtype=dtype or self.dtype, **options)

    made.__name__ = made.__qualname__ = f"new_{name}"
    values = ", 7" if name == "full" else ""
    made.__doc__ = shown(
        f"``{name}`` in this tensor's dtype unless another is given.",
        f">>> torch.tensor([1, 2]).new_{name}((2, 3){values}).dtype",
        "twofold.int64",
    )
    return method_like(made, CREATION[name])


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with ``data`` in this tensor's dtype.

    >>> import twofold as torch
    >>> torch.zeros(1, dtype=torch.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=twofold.float64)
    """
    check_layout(layout)
    wanted = dtype or self.dtype
    return tensor(data, dtype=wanted, device=device, requires_grad=requires_grad, pin_memory=pin_memory)


def _get_data(self: Tensor) -> Tensor:
    return self._data()


def _set_data(self: Tensor, other: Tensor) -> None:
    if isinstance(other, Tensor) and other._base is not None:
        inplace.show(self, other)
    else:
        self._share_storage(other)


def _part(name: str) -> property:
    """A view of the real or imaginary parts, which can be set."""
    return property(
        lambda self: FUNCTIONS[name](self), lambda self, value: FUNCTIONS[name](self).copy_(value)
    )


METHODS: dict[str, Any] = {
    "numpy": numpy_,
    "tolist": tolist,
    "_read": _read,
    "__array__": _array,
    "__array_wrap__": _array_wrap,
    "__array_namespace__": _array_namespace,
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
    "requires_grad_": requires_grad_,
    **elements.METHODS,
    "__format__": __format__,
    "__reduce_ex__": __reduce_ex__,
    "fill_": fill_,
    "zero_": zero_,
    "copy_": copy_,
    "_is_view": _is_view,
    "new_tensor": new_tensor,
    "backward": gradients.backward,
    "is_floating_point": lambda self: self.dtype.kind == "f",
    "element_size": lambda self: self.dtype.itemsize,
    "data": property(_get_data, _set_data),
    "device": property(lambda self: CPU),
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
    "new_empty": _new("empty"),
    "new_full": _new("full"),
    "itemsize": property(lambda self: self.dtype.itemsize),
    "grad_fn": property(grad_fn),
    "T": property(_by_types(lambda self: self.permute(*reversed(range(self.ndim))))),
    "mT": property(_by_types(lambda self: self.transpose(-2, -1))),
    "H": property(lambda self: self.transpose(-2, -1).conj()),
    "mH": property(lambda self: self.adjoint()),
    "real": _part("real"),
    "imag": _part("imag"),
    "cfloat": _caster("cfloat", dtypes.complex64),
    "cdouble": _caster("cdouble", dtypes.complex128),
    "is_complex": lambda self: self.dtype.is_complex,
    "is_conj": lambda self: False,
    "is_neg": lambda self: False,
    "__complex__": lambda self: complex(self.item()),
    "to_device": to_device,
    "detach_": detach_,
    "from_numpy": staticmethod(from_numpy),
}


def install() -> None:
    """Put the methods on the tensor type."""
    given = (
        METHODS,
        storage.METHODS,
        inplace.METHODS,
        creation_functions.METHODS,
        sampling.METHODS,
        tensor_hooks.METHODS,
    )
    for name, method in {name: method for methods in given for name, method in methods.items()}.items():
        if name in ("__getitem__", "__setitem__"):
            reads = name == "__getitem__"
            method = _core.operation_callable(None, 0, method, "", False, reads, reads)
            method.__name__ = method.__qualname__ = name
        setattr(Tensor, name, method)
