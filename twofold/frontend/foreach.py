"""PyTorch's ``_foreach_`` functions: one operation on each tensor of a list, as optimizers of programs call them.

Operations are recorded and fused in any case, so these are loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.ops.base import ops

Tensor = _core.Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_BINARY = "add sub mul div pow maximum minimum clamp_max clamp_min"
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_OPERANDS = ("other", "scalar", "scalars", "exponent")


def _checked(tensors: Any) -> list[Tensor]:
    """The tensors of a list; RuntimeError where there are none."""
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _operands(tensors: Sequence[Tensor], given: Any) -> list[Any]:
    """An operand for each tensor: those of a list, or the one for all."""
    if not isinstance(given, (list, tuple)):
        return [given] * len(tensors)
    if len(given) == len(tensors):
        return list(given)
    if given and isinstance(given[0], Tensor):
        counts = f"{len(tensors)} and {len(given)}"
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {counts}")
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _unary(name: str) -> None:
    def function(self: Any) -> tuple[Tensor, ...]:
        return tuple(getattr(tensor, name)() for tensor in _checked(self))

    def in_place(self: Any) -> Any:
        for tensor in _checked(self):
            getattr(tensor, f"{name}_")()
        return self

    _enter(name, function, in_place)


def _binary(name: str) -> None:
    scaled = name in ("add", "sub")

    def calls(self: Any, operand: tuple[Any, ...], named: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
        options = {"alpha": named.pop("alpha")} if scaled and "alpha" in named else {}
        found = [*operand, *(named.pop(key) for key in _OPERANDS if key in named)]
        if named or len(found) != 1:
            raise TypeError(f"_foreach_{name}: give a list of tensors and one operand for all or for each")
        tensors = _checked(self)
        others = _operands(tensors, found[0])
        if options and isinstance(found[0], (list, tuple)) and not isinstance(found[0][0], Tensor):
            raise TypeError(f"_foreach_{name}: alpha scales tensors, not a list of numbers")
        return [(tensor, other, options) for tensor, other in zip(tensors, others, strict=True)]

    def method(operand: Any) -> str:
        return name if isinstance(operand, Tensor) else _OF_NUMBERS.get(name, name)

    def function(self: Any, *operand: Any, **named: Any) -> tuple[Tensor, ...]:
        if name == "pow" and operand and not isinstance(self, (list, tuple)):
            return tuple(ops.pow(self, exponent) for exponent in _checked(operand[0]))
        found = calls(self, operand, named)
        return tuple(getattr(tensor, method(other))(other, **options) for tensor, other, options in found)

    def in_place(self: Any, *operand: Any, **named: Any) -> Any:
        for tensor, other, options in calls(self, operand, named):
            getattr(tensor, f"{method(other)}_")(other, **options)
        return self

    _enter(name, function, in_place)


def _scaled(name: str) -> None:
    """``addcmul`` or ``addcdiv``: the last argument is a number for all, a list of them or a vector of them."""

    def calls(self: Any, tensor1: Any, tensor2: Any, value: Any, scalars: Any) -> Any:
        tensors = _checked(self)
        numbers = value if scalars is None else scalars
        numbers = numbers.tolist() if isinstance(numbers, Tensor) else numbers
        lists = [_operands(tensors, given) for given in (tensor1, tensor2, numbers)]
        return zip(tensors, *lists, strict=True)

    def function(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        found = calls(self, tensor1, tensor2, value, scalars)
        return tuple(getattr(tensor, name)(one, two, value=number) for tensor, one, two, number in found)

    def in_place(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        for tensor, one, two, number in calls(self, tensor1, tensor2, value, scalars):
            getattr(tensor, f"{name}_")(one, two, value=number)
        return self

    _enter(name, function, in_place)


def _lerp() -> None:
    def calls(self: Any, tensors1: Any, weight: Any, weights: Any) -> Any:
        tensors = _checked(self)
        ends, given = _operands(tensors, tensors1), _operands(tensors, weight if weights is None else weights)
        return zip(tensors, ends, given, strict=True)

    def function(self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None) -> Any:
        return tuple(tensor.lerp(end, part) for tensor, end, part in calls(self, tensors1, weight, weights))

    def in_place(self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None) -> Any:
        for tensor, end, part in calls(self, tensors1, weight, weights):
            tensor.lerp_(end, part)
        return self

    _enter("lerp", function, in_place)


def _enter(name: str, function: Callable[..., Any], in_place: Callable[..., Any]) -> None:
    """Enter both forms under their names."""
    for form, suffix, what in ((function, "", "computed from"), (in_place, "_", "written to")):
        form.__name__ = form.__qualname__ = f"_foreach_{name}{suffix}"
        form.__doc__ = f"What ``Tensor.{name}{suffix}`` gives, {what} each tensor of a list."
        globals()[form.__name__] = form
        __all__.append(form.__name__)


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor of a list.

    >>> import twofold as torch
    >>> torch._foreach_norm([torch.tensor([3.0, 4.0]), torch.ones(1)])
    (tensor(5.), tensor(1.))
    """
    norm = import_module("twofold.linalg").vector_norm
    return tuple(norm(tensor, ord, dtype=dtype) for tensor in _checked(self))


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor of a list."""
    return tuple(tensor.max() for tensor in _checked(self))


def _foreach_clone(self: Any) -> tuple[Tensor, ...]:
    """Copies of the tensors of a list."""
    return tuple(tensor.clone() for tensor in _checked(self))


def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """The product of each matrix of a list with that of another list."""
    tensors = _checked(self)
    return tuple(tensor.mm(other) for tensor, other in zip(tensors, _operands(tensors, mat2), strict=True))


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy each tensor of a list to that of another; with ``non_blocking`` alike, as there is one device.

    >>> import twofold as torch
    >>> kept = [torch.zeros(2)]
    >>> torch._foreach_copy_(kept, [torch.ones(2)])
    [tensor([1., 1.])]
    """
    tensors = _checked(self)
    for tensor, other in zip(tensors, _operands(tensors, src), strict=True):
        tensor.copy_(other, non_blocking)
    return self


def _foreach_zero_(self: Any) -> Any:
    """Set all elements of the tensors of a list to 0."""
    for tensor in _checked(self):
        tensor.zero_()
    return self


__all__ = [
    "_foreach_clone",
    "_foreach_copy_",
    "_foreach_max",
    "_foreach_mm",
    "_foreach_norm",
    "_foreach_zero_",
]
for _name in _UNARY.split():
    _unary(_name)
for _name in _BINARY.split():
    _binary(_name)
for _name in ("addcmul", "addcdiv"):
    _scaled(_name)
_lerp()
