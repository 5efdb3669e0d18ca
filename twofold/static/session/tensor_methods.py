"""What declared tensors show beyond define-by-run: names, graph, TensorFlow's shapes, indexing, control flow.

Installed on the tensor type when ``twofold.static`` is imported; other tensors behave as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.dtypes import DType, Size, bfloat16, finfo, iinfo, string
from twofold.errors import GraphError
from twofold.frontend.control import DECLARING, Declaring
from twofold.ir.types import tensor_type
from twofold.ops.base import METHODS
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays.indexing import strided_slice_of
from twofold.static.control_flow.choice import choose
from twofold.static.control_flow.while_loop import repeat, while_loop
from twofold.static.graph.context import at_once, local
from twofold.static.graph.graph import Tensor, name_of, operation_of, owner_of
from twofold.static.graph.string_table import decode
from twofold.static.graph.tensor_shape import TensorShape, narrowed_sizes, shape_of_sizes
from twofold.static.session.session import evaluate
from twofold.tracebacks import guard_methods

_plain_shape = vars(Tensor)["shape"].__get__
_plain_numpy: Callable[..., Any] = Tensor.numpy
_plain_text: Callable[[Tensor], str] = Tensor.__str__
_plain_repr: Callable[[Tensor], str] = Tensor.__repr__
_plain_format: Callable[[Tensor, str], str] = Tensor.__format__
_plain_getitem: Callable[[Tensor, Any], Tensor] = Tensor.__getitem__


def _shape(self: Tensor) -> Any:
    if self._is_symbolic and not local.in_body and owner_of(self) is not None:
        return shape_of_sizes(self.type_.shape)
    return _plain_shape(self)


def _text(self: Tensor) -> str:
    """As TensorFlow prints a declared tensor; the values of any other."""
    if not self._is_symbolic or owner_of(self) is None:
        return _plain_text(self)
    shape = _get_shape(self)
    known = "" if shape.dims is None else f", shape={shape}"
    return f'Tensor("{name_of(self)}"{known}, dtype={self.dtype.name})'


def _represented(self: Tensor) -> str:
    """As TensorFlow represents a declared tensor; the values of any other."""
    if not self._is_symbolic or owner_of(self) is None:
        return _plain_repr(self)
    shape = _get_shape(self)
    known = "<unknown>" if shape.dims is None else str(shape)
    return f"<tf.Tensor '{name_of(self)}' shape={known} dtype={self.dtype.name}>"


def _formatted(self: Tensor, form: str) -> str:
    if not self._is_symbolic or owner_of(self) is None:
        return _plain_format(self, form)
    return format(_text(self), form)


def _numpy(self: Tensor, *, force: bool = False) -> Any:
    """The values as an array: where operations are computed at once as a copy, also of what is watched, and strings."""
    if not at_once():
        return _plain_numpy(self, force=force)
    array = _plain_numpy(self.detach())
    if self.dtype is string:
        return decode(array)
    return array.copy() if array.shape else array[()]


def _get_shape(self: Tensor) -> TensorShape:
    return shape_of_sizes(self.type_.shape)


def _set_shape(self: Tensor, shape: Any) -> None:
    """Let what is declared from now on take the sizes of ``shape`` for those of this tensor that are unknown.

    No run checks them but where the tensor is fed. Raises ValueError for a shape that is not compatible.
    """
    if not _get_shape(self).is_compatible_with(shape):
        raise ValueError(
            f"set_shape: {shape} is not compatible with the shape {_get_shape(self)} of {name_of(self)}"
        )
    if self._is_symbolic:
        _core.set_type(self, tensor_type(self.dtype, narrowed_sizes(self.type_.shape, shape)))


def _declared_equal(tensor: Tensor, other: Any) -> Any:
    """Whether ``other`` is the same tensor of a graph, as TensorFlow 1 compares; NotImplemented for one of no graph."""
    if owner_of(tensor) is None:
        return NotImplemented
    return isinstance(other, Tensor) and _core.value_key(tensor) == _core.value_key(other)


def _getitem(self: Tensor, key: Any) -> Any:
    if self._is_symbolic and not local.in_body and owner_of(self) is not None:
        return strided_slice_of(self, key)
    return _plain_getitem(self, key)


def _consumers(self: Tensor) -> list[Any]:
    operation = operation_of(self)
    return [
        other
        for other in operation.graph.get_operations()
        if any(owner is operation for owner, _ in other.sources)
    ]


def _value_index(self: Tensor) -> int:
    found = owner_of(self)
    if found is None:
        raise AttributeError("the tensor has no name, as it is not in a graph")
    return found[1]


def _in_place(plain: Callable[..., Any], assigning: Callable[..., Any]) -> Callable[..., Any]:
    """``x += y`` gives a tensor of a graph a new name, as in TensorFlow, and changes any other."""

    def method(self: Tensor, other: Any) -> Any:
        of_graph = self._is_symbolic and (local.in_body or owner_of(self) is not None)
        return plain(self, other) if of_graph or at_once() else assigning(self, other)

    return method


def _of_declared(name: str, get: Callable[[Tensor], Any], doc: str) -> property:
    """An attribute that declared tensors have; on any other tensor the name is free for an attribute of the user."""

    def getter(self: Tensor) -> Any:
        found = {} if self._is_symbolic else self.__dict__
        if name in found:
            return found[name]
        try:
            return get(self)
        except GraphError as error:  # so that hasattr answers
            raise AttributeError(str(error)) from None

    def setter(self: Tensor, value: Any) -> None:
        if self._is_symbolic:
            raise AttributeError(f"the {name} of a declared tensor cannot be set")
        self.__dict__[name] = value

    def deleter(self: Tensor) -> None:
        if self._is_symbolic or name not in self.__dict__:
            raise AttributeError(name)
        del self.__dict__[name]

    return property(getter, setter, deleter, doc)


class InGraph(Declaring):
    """Define-by-run's choices and loops declare operations of the tensors' graph, but not inside of bodies."""

    def owns(self, tensor: Tensor) -> bool:
        return not local.in_body and owner_of(tensor) is not None

    def choose(
        self, operation: str, choice: Any, functions: Sequence[Callable[[], Any]], names: Sequence[str]
    ) -> Any:
        return choose(operation, convert_to_tensor(choice), functions, names, operation)

    def while_loop(self, cond: Callable[..., Any], body: Callable[..., Any], carried: tuple[Any, ...]) -> Any:
        return tuple(while_loop(cond, body, list(carried), return_same_structure=True))

    def scan(self, step: Callable[..., Any], init: Any, xs: Any, reverse: bool) -> tuple[Any, Any]:
        carried, names, structure = flatten(init, "init")
        rows, _, x_structure = flatten(xs, "xs")
        found: list[Any] = []

        def flat(carry: Sequence[Any], row: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
            new, y = step(unflatten(structure, carry), unflatten(x_structure, row))
            ys, _, shape = flatten(y, "y")
            found.append(shape)
            return flatten(new, "init")[0], ys

        starts = [convert_to_tensor(value) for value in carried]
        arrays = [convert_to_tensor(row) for row in rows]
        results = repeat("scan", flat, starts, names, arrays, reverse, "scan")
        count = len(starts)
        return unflatten(structure, results[:count]), unflatten(found[0], results[count:])


def _limit(dtype: DType, which: str) -> Any:
    """The least or largest number of a dtype; raises TypeError for booleans, complex numbers and strings."""
    if dtype.kind == "f":
        found = getattr(finfo(dtype), which)
        return found if dtype is bfloat16 else dtype.numpy.type(found)
    if dtype.kind not in "iu":
        what = {"min": "minimum", "max": "maximum"}[which]
        raise TypeError(
            f"Cannot find {what} value of {dtype.name}, at {here()}. Use a dtype of real numbers."
        )
    return getattr(iinfo(dtype), which)


def _limits(dtype: DType) -> tuple[Any, Any]:
    """What TensorFlow shows images of a dtype between: 0 and the largest integer, or 0 and 1."""
    return (0, 1) if dtype.kind == "f" else (0, True) if dtype.kind == "b" else (0, _limit(dtype, "max"))


def install() -> None:
    """Put everything on the tensor and dtype types, and have define-by-run's control flow declare."""
    DECLARING.append(InGraph())
    _core.set_hook("declared_equal", _declared_equal)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"):
        setattr(
            Tensor, f"__i{name}__", _in_place(getattr(Tensor, f"__{name}__"), getattr(Tensor, f"__i{name}__"))
        )
    shown: dict[str, Any] = {
        "shape": property(_shape, doc="Sizes of the axes."),
        "__getitem__": _core.operation_callable(None, 0, _getitem, "", False, True, True),
        "__str__": _text,
        "__repr__": _represented,
        "__format__": _formatted,
        "name": _of_declared("name", name_of, "Name in its graph."),
        "op": _of_declared("op", operation_of, "The operation that computes it."),
        "graph": _of_declared("graph", lambda self: operation_of(self).graph, "Its graph."),
        "value_index": _of_declared("value_index", _value_index, "Which output of its operation it is."),
        "eval": evaluate,
        "numpy": _numpy,
        "get_shape": _get_shape,
        "set_shape": _set_shape,
        "consumers": _consumers,
        "OVERLOADABLE_OPERATORS": frozenset(
            {"__getitem__", *(name for name in METHODS if name.startswith("__"))} - {"__eq__", "__ne__"}
        ),
    }
    for name, member in shown.items():
        setattr(Tensor, name, member)
    members: dict[str, Any] = {
        "as_numpy_dtype": property(lambda self: self.numpy.type),
        "base_dtype": property(lambda self: self),
        "is_floating": property(lambda self: self.kind == "f"),
        "is_integer": property(lambda self: self.kind in "iu"),
        "is_bool": property(lambda self: self.kind == "b"),
        "size": property(lambda self: self.itemsize),
        "min": property(lambda self: _limit(self, "min")),
        "max": property(lambda self: _limit(self, "max")),
        "limits": property(_limits),
        "real_dtype": property(lambda self: self.real),
        "is_unsigned": property(lambda self: self.kind == "u"),
        "is_quantized": property(lambda self: False),
        "is_compatible_with": lambda self, other: self is as_dtype(other),
    }
    for name, member in members.items():
        setattr(DType, name, member)
    Size.as_list = lambda self: list(self)  # type: ignore[attr-defined]
    guard_methods(Tensor)
