"""Tensors from Python values and arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, as_dtype, bfloat16, bool_, float32, float64, int64, promote, uint64
from twofold.errors import ShapeError
from twofold.frontend.inplace import write_out
from twofold.frontend.options import (
    OPTIONS,
    check_device,
    check_options,
    check_pinned,
    get_default_dtype,
    in_format,
)
from twofold.frontend.storage import shared_tensor
from twofold.index import CREATES
from twofold.lazy import LazyDict
from twofold.ops.base import apply
from twofold.ops.promotion import need_fitting
from twofold.ops.signatures import keyword, shows
from twofold.ops.tables import BY_CALL, FUNCTIONS

Tensor = _core.Tensor


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
        array = _nested(data)
        array = _exact(data, array, dtype)
    if dtype is None and not isinstance(_first(data), (numpy.ndarray, numpy.generic, Tensor)):
        if array.dtype == numpy.float64:
            with numpy.errstate(over="ignore"):
                return array.astype(
                    numpy.float32 if get_default_dtype() is bfloat16 else get_default_dtype().numpy
                )
        if array.dtype == numpy.complex128:
            return array.astype(get_default_dtype().complex.numpy)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"tensor: data of type {type(data).__name__} does not become numbers. Give numbers or nested lists of them."
        )
    return array


def _exact(data: Any, array: numpy.ndarray, dtype: DType | None) -> numpy.ndarray:
    """The array of Python numbers, made anew where NumPy rounded integers beyond int64 or found no dtype for them.

    Raises ArgumentError for integers that the dtype, int64 if there is none, cannot hold.
    """
    given = isinstance(_first(data), (numpy.ndarray, numpy.generic, Tensor)) or not array.size
    if given or array.dtype.kind not in "Ouf" or (array.dtype != object and not abs(array).max() >= 2.0**63):
        return array
    objects = numpy.array(data, dtype=object)
    kinds = {type(value) for value in objects.flat}
    if not kinds <= {bool, int, float}:
        return array
    if float in kinds or (dtype is not None and dtype.kind not in "iu"):
        return objects.astype(bool if dtype is bool_ else numpy.float64)
    need_fitting(objects.min(), dtype or int64)
    need_fitting(objects.max(), dtype or int64)
    return objects.astype((dtype or int64).numpy)


def _first(data: Any) -> Any:
    """The first element of nested lists: one with a dtype of its own speaks for all."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _without_tensors(data: Any) -> Any:
    """``data`` with arrays for tensors; the elements of the innermost lists are one number each.

    As in PyTorch, the first elements tell how many levels of lists there are, and a tensor at the innermost level is
    a number, of whatever shape. Raises ShapeError where such a tensor has not one element.
    """
    return _numbers(data, _levels(data)) if _holds_tensor(data) else data


def _promoted_dtype(data: Any) -> DType | None:
    """The dtype that all elements of lists promote to; None where none has a dtype of its own."""
    found: DType | None = None
    own = False
    seen: set[Any] = set()
    for key, element in _elements(data):
        if key in seen:
            continue
        seen.add(key)
        dtype = _dtype_of(element)
        if dtype is None:
            return None
        own |= isinstance(element, (Tensor, numpy.ndarray, numpy.generic))
        found = dtype if found is None else promote(found, dtype)
    return found if own else None


def _levels(data: Any) -> int:
    levels = 0
    while isinstance(data, (list, tuple)):
        levels += 1
        if not data:
            return levels
        data = data[0]
    return levels + data.ndim if isinstance(data, numpy.ndarray) else levels


def _holds_tensor(data: Iterable[Any]) -> bool:
    return any(
        isinstance(item, Tensor) or (isinstance(item, (list, tuple)) and _holds_tensor(item)) for item in data
    )


def _numbers(data: Any, levels: int) -> Any:
    if isinstance(data, Tensor):
        if data.ndim < levels or math.prod(data.shape[levels:]) != 1:
            raise ShapeError(
                f"a tensor of shape {tuple(data.shape)} is an element of lists where one number is expected",
                "Use stack for a list of tensors, or cat.",
            )
        data = data.detach()
        array = (data.to(float32) if data.dtype is bfloat16 else data).numpy()
        return array.reshape(array.shape[:levels])
    return [_numbers(item, levels - 1) for item in data] if isinstance(data, (list, tuple)) else data


def _elements(data: Any) -> Iterator[tuple[Any, Any]]:
    """The tensors, arrays and numbers in nested lists, with keys that are equal for those of one dtype."""
    for item in data:
        if isinstance(item, (list, tuple)):
            yield from _elements(item)
        elif isinstance(item, (Tensor, numpy.ndarray, numpy.generic)):
            yield item.dtype, item
        else:
            yield type(item), item


def _dtype_of(element: Any) -> DType | None:
    if isinstance(element, Tensor):
        return element.dtype
    if isinstance(element, (numpy.ndarray, numpy.generic)):
        return as_dtype(element.dtype) if element.dtype.kind in "biufc" else None
    if isinstance(element, bool):
        return bool_
    if isinstance(element, int):
        return int64
    if isinstance(element, float):
        return get_default_dtype()
    return get_default_dtype().complex if isinstance(element, complex) else None


def _of_data(data: Any, dtype: DType | None) -> Tensor:
    """A tensor of a copy of numbers, lists and arrays; of the default dtype where they are Python floats."""
    if isinstance(data, (list, tuple)):
        promoted = None if dtype is not None else _promoted_dtype(data)
        data = _without_tensors(data)
        if promoted is not None:
            return _converted(_nested(data), promoted, False)
    array = _array(data, dtype)
    if dtype is not None:
        _check_values(data, array, dtype)
    elif get_default_dtype() is bfloat16 and array.dtype.kind == "f":
        given = isinstance(_first(data), (numpy.ndarray, numpy.generic, Tensor))
        dtype = None if given else bfloat16  # which NumPy lacks
    return _converted(array, dtype, False)


def _converted(array: numpy.ndarray, dtype: DType | None, share: bool) -> Tensor:
    if dtype is None or (dtype is not bfloat16 and array.dtype == dtype.numpy):
        return shared_tensor(array) if share else _core.from_array(array, False)
    with numpy.errstate(over="ignore"):
        made = _core.from_array(array.astype(numpy.float32 if dtype is bfloat16 else dtype.numpy), False)
    return apply("cast", made, attrs=(dtype,))._realise() if dtype is bfloat16 else made


def _check_values(data: Any, array: numpy.ndarray, dtype: DType) -> None:
    """Raise for Python numbers that an integer dtype cannot hold; arrays and tensors are converted as they are."""
    if isinstance(data, (numpy.ndarray, numpy.generic)) or not array.size:
        return
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("tensor: complex numbers do not become real. Give their real parts.")
    if dtype.kind in "iu" and array.dtype.kind in "iuf":
        need_fitting(array.min(), dtype)
        need_fitting(array.max(), dtype)
        if dtype is uint64 and (array.dtype.kind == "f" or array.min() < 0):
            raise TypeError(
                "tensor: uint64 takes integers that are not negative. Use int64, or convert the tensor."
            )


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new leaf that holds a copy of ``data``: numbers, nested lists, an array or a tensor.

    Python floats become float32 (see ``set_default_dtype``), integers int64; arrays, their elements and tensors keep
    their dtype, and lists have the one that all their elements promote to. A tensor of one element, of any shape, is a
    number among others in a list; ``stack`` joins tensors of more.

    >>> import twofold as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    check_device(device)
    check_pinned(pin_memory)
    wanted = None if dtype is None else as_dtype(dtype)
    floating = wanted if wanted is float32 or wanted is float64 else get_default_dtype()
    plain = _core.from_numbers(data, floating.code)
    if plain is not None and (wanted is None or plain.dtype is wanted):
        made = plain
    elif isinstance(data, Tensor):
        made = data.detach().clone() if wanted is None else data.detach().to(wanted)._realise().clone()
        made = made._realise().detach()
    else:
        made = _of_data(data, wanted)
    if requires_grad:
        made.requires_grad = True
    return made


def from_numpy(ndarray: numpy.ndarray) -> Tensor:
    """A tensor that shares the memory of ``ndarray``.

    What others write to the array shows in the tensor, and in-place operations on the tensor in the array. An
    operation reads the array when it is called, as NumPy would: if others hold the array, it takes a snapshot.
    Raises ValueError for negative strides, and for elements that are not aligned.

    >>> import twofold as torch
    >>> import numpy
    >>> array = numpy.array([1, 2])
    >>> x = torch.from_numpy(array)
    >>> array[0] = 5
    >>> x
    tensor([5, 2])
    """
    if not isinstance(ndarray, numpy.ndarray):
        raise TypeError(f"from_numpy: expected a NumPy array, got {type(ndarray).__name__}")
    return shared_tensor(ndarray)


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
    return _of_data(data, wanted)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of any CPU array with ``__dlpack__``, unless ``copy``.

    >>> import twofold as torch
    >>> import numpy
    >>> torch.from_dlpack(numpy.array([1.0, 2.0]))
    tensor([1., 2.], dtype=twofold.float64)
    """
    check_device(device)
    array = numpy.from_dlpack(ext_tensor)
    return _core.from_array(array, False) if copy else shared_tensor(array)


def leaf(made: Tensor, requires_grad: bool) -> Tensor:
    """``made``, marked as a leaf that gradients are wanted for."""
    if requires_grad:
        made.requires_grad = True
    return made


def _of_numbers(arguments: Sequence[Any]) -> DType | None:
    """The default dtype of what is made of numbers with fractions; None where there are none, or tensors."""
    if any(isinstance(one, Tensor) for one in arguments):
        return None
    if any(isinstance(one, complex) for one in arguments):
        return get_default_dtype().complex
    return get_default_dtype() if any(isinstance(one, float) for one in arguments) else None


def _python_number(value: Any) -> Any:
    """The Python number in a NumPy scalar or a tensor without axes; others, and placeholders, as they are."""
    is_number = isinstance(value, Tensor) and not value.ndim and not value._is_symbolic
    return value.item() if is_number or isinstance(value, numpy.generic) else value


def _leaf_maker(op: Any) -> Callable[..., Tensor]:
    parameters = inspect.signature(op.call).parameters
    has_dtype, operands = "dtype" in parameters, int("input" in parameters)

    def made(*args: Any, device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             memory_format: Any = None, out: Tensor | None = None, **kwargs: Any) -> Tensor:  # fmt: skip
        args = (*args[:operands], *map(_python_number, args[operands:]))
        kwargs = {name: value if name == "input" else _python_number(value) for name, value in kwargs.items()}
        if out is not None and has_dtype:
            kwargs.setdefault("dtype", out.dtype)
        if kwargs.get("dtype", 0) is None:
            del kwargs["dtype"]
        if op.creates == "default":
            kwargs.setdefault("dtype", get_default_dtype())
        elif (
            get_default_dtype() is not float32
            and has_dtype
            and (found := _of_numbers((*args, *kwargs.values())))
        ):
            kwargs.setdefault("dtype", found)
        if "size" in kwargs:
            args = (kwargs.pop("size"), *args)
        result = op.call(*args, **kwargs)
        check_options(device, layout, pin_memory)
        result = in_format(result, memory_format)
        return leaf(result if out is None else write_out(out, result), requires_grad)

    made.__name__ = made.__qualname__ = op.functions[0]
    made.__doc__ = op.doc
    return made_with_options(made, op.call)


def made_with_options(made: Any, function: Callable[..., Any]) -> Any:
    """``made``, whose signature is that of ``function`` with the options of new tensors; ``size`` has two forms."""
    base = inspect.signature(function)
    sizes = base.parameters.get("size")
    added = [one for one in OPTIONS if one.name != "dtype" or "dtype" in base.parameters]
    shows(made, function, *added)
    if sizes is not None and sizes.kind is sizes.VAR_POSITIONAL:
        kept = made.__signature__.parameters.values()
        renamed = [one.replace(name="sizes") if one.name == "size" else one for one in kept]
        position = next(k for k, one in enumerate(renamed) if one.kind is one.KEYWORD_ONLY)
        renamed.insert(position, keyword("size"))
        made.__signature__ = base.replace(parameters=renamed)
    return made


def _maker_of(name: str) -> Callable[..., Tensor]:
    op = BY_CALL[FUNCTIONS["zeros" if name == "empty" else name]]
    first = op.functions[0]
    return CREATION[first] if first != name else _leaf_maker(op)


CREATION: LazyDict[Callable[..., Tensor]] = LazyDict([*CREATES.split(), "empty"], _maker_of)
"""Functions that make new leaves, by name; beside the entry's own arguments they take PyTorch's ``requires_grad``."""
