"""Elements of a graph: which a caller takes, what stands for a tensor in arguments, what Python's operators declare.

Operators declare operations of TensorFlow's types; on strings, functions of each string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy

from twofold.dtypes import DType
from twofold.errors import DTypeError
from twofold.runtime.tracing import here
from twofold.static.graph.string_table import decode

_Function = TypeVar("_Function", bound=Callable[..., Any])

BODIES: dict[tuple[str, str], Callable[..., Any]] = {}
"""The functions that compute operations, by their modules and names: those that files of graphs may name."""


def importable(body: _Function) -> _Function:
    """Let files of graphs name a function that computes operations; one inside of another function has no name."""
    if "<" not in body.__qualname__:
        BODIES[body.__module__, body.__qualname__] = body
    return body


class Slot:
    """The position of the ``index``-th input tensor in the arguments of a body."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def check_kind(
    item: Any, is_element: bool, is_tensor: bool, allow_tensor: bool, allow_operation: bool
) -> None:
    """Raise TypeError for what is no element or not of a kind allowed, ValueError for the name of such a one."""
    if not is_element:
        what = f"a value of type {type(item).__name__} is neither a tensor nor an operation"
        raise TypeError(f"{what}. Fetch one of those, or its name.")
    if not allow_tensor and not allow_operation:
        raise ValueError(
            f"as_graph_element: neither tensors nor operations are allowed, at {here()}. Allow one kind."
        )
    if not (allow_tensor if is_tensor else allow_operation):
        found, wanted = ("a tensor", "an operation") if is_tensor else ("an operation", "a tensor")
        words = f"{item!r} names {found}" if isinstance(item, str) else f"'{item.name}' is {found}"
        error = ValueError if isinstance(item, str) else TypeError
        raise error(f"as_graph_element: {words}, at {here()}. Give {wanted}.")


def _pairs(text: str) -> dict[str, str]:
    """A table of names from a text of pairs."""
    return dict(pair.split("=") for pair in text.split())


_TYPES = _pairs(
    "abs=Abs add=AddV2 bitwise_and=BitwiseAnd bitwise_invert=Invert bitwise_left_shift=LeftShift "
    "bitwise_or=BitwiseOr bitwise_right_shift=RightShift bitwise_xor=BitwiseXor divide=RealDiv "
    "equal=Equal floor_divide=FloorDiv greater=Greater greater_equal=GreaterEqual less=Less "
    "less_equal=LessEqual matmul=MatMul multiply=Mul negative=Neg not_equal=NotEqual positive=Identity "
    "pow=Pow remainder=FloorMod subtract=Sub"
)
_OF_TRUTH = _pairs(
    "bitwise_and=LogicalAnd bitwise_invert=LogicalNot bitwise_or=LogicalOr bitwise_xor=NotEqual"
)


def operator_type(name: str, result: Any) -> str:
    """The type of the operation ``name`` of define-by-run with a ``result``."""
    type_ = result.type_
    if name == "matmul" and len(type_.shape) > 2:
        return "BatchMatMulV2"
    if type_.dtype.kind == "b" and name in _OF_TRUTH:
        return _OF_TRUTH[name]
    return _TYPES[name]


def on_strings(function: Callable[..., Any], slots: Sequence[Any]) -> Callable[..., Any]:
    """A function of the strings of the slots, element by element; operands beside them are constant strings."""
    each = numpy.frompyfunc(function, len(slots), 1)

    def mapped(*values: Any) -> Any:
        return each(*[values[s.index] if isinstance(s, Slot) else decode(s.detach().numpy()) for s in slots])

    return mapped


def check_same_dtype(*values: Any) -> list[Any]:
    """The values; raises DTypeError unless tensors have one dtype, which takes the Python numbers among them, too."""
    dtypes = [value.dtype for value in values if isinstance(getattr(value, "dtype", None), DType)]
    if any(dtype is not dtypes[0] for dtype in dtypes):
        what = f"dtypes {' and '.join(dtype.name for dtype in dtypes)} do not match"
        raise DTypeError(what, "Make them one dtype with tf.cast.")
    if dtypes and dtypes[0].kind in "iub" and any(isinstance(value, float) for value in values):
        what = f"a number with a fraction beside {dtypes[0].name}"
        raise DTypeError(what, "Cast the tensor with tf.cast, or give a whole number.")
    return list(values)


class OfValues:
    """What has ``values``, those of some elements of a tensor, and is in their graph."""

    values: Any
    shape: Any

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def op(self) -> Any:
        """The operation that computes the values."""
        return self.values.op

    @property
    def graph(self) -> Any:
        """The graph of the values."""
        return self.values.graph

    def get_shape(self) -> Any:
        """``shape``."""
        return self.shape
