"""``assert_close``: values, shapes, dtypes and structure of two results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType
from twofold.frontend.creation import as_tensor

Tensor = _core.Tensor

# relative and absolute: PyTorch's, a few roundings of each dtype
_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}


class _Comparison:
    """The settings of one call of ``assert_close``."""

    def __init__(
        self,
        tolerances: tuple[float, float] | None,
        equal_nan: bool,
        check_dtype: bool,
        check_stride: bool,
        allow_subclasses: bool,
        msg: str | Callable[[str], str] | None,
    ) -> None:
        self.given = tolerances
        self.equal_nan = equal_nan
        self.check_dtype = check_dtype
        self.check_stride = check_stride
        self.allow_subclasses = allow_subclasses
        self.msg = msg

    def fail(self, text: str, position: tuple[Any, ...]) -> None:
        """Raise AssertionError for the item at ``position``."""
        if position:
            text += "\n\nThe failure occurred for item " + "".join(f"[{key!r}]" for key in position)
        raise AssertionError(self.msg(text) if callable(self.msg) else self.msg or text)

    def compare(self, actual: Any, expected: Any, position: tuple[Any, ...]) -> None:
        """Raise AssertionError where two values differ."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self._mappings(actual, expected, position)
        elif _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                self.fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", position)
            for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
                self.compare(one, other, (*position, index))
        elif actual is None and expected is None:
            pass
        elif actual is None or expected is None:
            self.fail(f"None mismatch: {actual} is not {expected}", position)
        elif isinstance(actual, bool) and isinstance(expected, bool):
            if actual is not expected:
                self.fail(f"Booleans mismatch: {actual} is not {expected}", position)
        elif _is_number(actual) and _is_number(expected):
            self._numbers(actual, expected, position)
        elif _is_array(actual) and _is_array(expected):
            self._tensors(actual, expected, position)
        else:
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
            )

    def _mappings(self, actual: Any, expected: Any, position: tuple[Any, ...]) -> None:
        if set(actual) != set(expected):
            missing, further = set(expected) - set(actual), set(actual) - set(expected)
            self.fail(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(further, key=str)}",
                position,
            )
        for key in actual:
            self.compare(actual[key], expected[key], (*position, key))

    def _tolerances(self, *found: DType) -> tuple[float, float]:
        if self.given is not None:
            return self.given
        pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in found]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)

    def _numbers(self, actual: Any, expected: Any, position: tuple[Any, ...]) -> None:
        if self.check_dtype and type(actual) is not type(expected):
            self.fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.", position)
        found = [_dtype_of_number(one) for one in (actual, expected)]
        rtol, atol = self._tolerances(*found)
        self._close_numbers(actual, expected, rtol, atol, position)

    def _close_numbers(
        self, actual: Any, expected: Any, rtol: float, atol: float, position: tuple[Any, ...]
    ) -> None:
        difference = abs(actual - expected)
        both_nan = self.equal_nan and actual != actual and expected != expected
        if (
            actual == expected
            or both_nan
            or (math.isfinite(difference) and difference <= atol + rtol * abs(expected))
        ):
            return
        relative = difference / abs(expected) if expected else math.inf
        exact = rtol == atol == 0
        self.fail(
            f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
            f"Relative difference: {relative}{_allowed(rtol, exact)}",
            position,
        )

    def _tensors(self, actual: Any, expected: Any, position: tuple[Any, ...]) -> None:
        if not self.allow_subclasses and type(actual) is not type(expected):
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
            )
        one, other = as_tensor(actual).detach(), as_tensor(expected).detach()
        if tuple(one.shape) != tuple(other.shape):
            self._differ("shape", one.shape, other.shape, position)
        if self.check_stride and one.stride() != other.stride():
            self._differ("stride()", one.stride(), other.stride(), position)
        if self.check_dtype and one.dtype is not other.dtype:
            self._differ("dtype", one.dtype, other.dtype, position)
        rtol, atol = self._tolerances(one.dtype, other.dtype)
        self._values(one.numpy(), other.numpy(), rtol, atol, position)

    def _differ(self, name: str, one: Any, other: Any, position: tuple[Any, ...]) -> None:
        self.fail(f"The values for attribute {name!r} do not match: {one} != {other}.", position)

    def _values(
        self, one: numpy.ndarray, other: numpy.ndarray, rtol: float, atol: float, position: tuple[Any, ...]
    ) -> None:
        wide = numpy.complex128 if "c" in one.dtype.kind + other.dtype.kind else numpy.float64
        if one.dtype.kind in "iub" and other.dtype.kind in "iub" and rtol == atol == 0:
            close = one == other
        else:
            close = numpy.isclose(one.astype(wide), other.astype(wide), rtol, atol, self.equal_nan)
        if close.all():
            return
        if one.ndim == 0:
            self._close_numbers(one.item(), other.item(), rtol, atol, position)
            return
        with numpy.errstate(all="ignore"):
            difference = numpy.where(close, 0, numpy.abs(one.astype(wide) - other.astype(wide)))
            relative = numpy.where(close, 0, difference / numpy.abs(other.astype(wide)))
        wrong, exact = close.size - int(close.sum()), rtol == atol == 0
        lines = [f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})"]
        for name, values, limit in (("absolute", difference, atol), ("relative", relative, rtol)):
            index = numpy.unravel_index(int(numpy.argmax(values)), values.shape)
            worst = values[index].item()
            if one.dtype.kind in "iub" and name == "absolute":
                worst = int(worst)
            at = tuple(int(n) for n in index)
            lines.append(f"Greatest {name} difference: {worst} at index {at}{_allowed(limit, exact)}")
        text = "\n".join(lines)
        self.fail(f"Tensor-likes are not {'equal' if exact else 'close'}!\n\n{text}", position)


def _allowed(limit: float, exact: bool) -> str:
    return "" if exact else f" (up to {limit} allowed)"


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, numpy.generic)


def _is_array(value: Any) -> bool:
    return isinstance(value, (Tensor, numpy.ndarray, numpy.generic))


def _dtype_of_number(value: Any) -> DType:
    kinds = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}
    return kinds.get(type(value), dtypes.complex128)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``actual`` is close to ``expected``, in value, shape and dtype.

    Close is ``abs(actual - expected) <= atol + rtol * abs(expected)``.

    Args:
        actual: A tensor, an array, a number, or sequences and mappings of these.
        expected: What it should be, of the same structure.
        allow_subclasses: Whether a subclass of tensor compares with a tensor.
        rtol: Relative tolerance; by default a few roundings of the dtype, 0 for integers. Given with ``atol``.
        atol: Absolute tolerance.
        equal_nan: Whether NaN equals NaN.
        check_device: Whether devices must be equal; there is one.
        check_dtype: Whether dtypes, and types of numbers, must be equal.
        check_layout: Whether layouts must be equal; there is one.
        check_stride: Whether strides must be equal.
        msg: The message, or a function from the usual message to it.

    Raises:
        AssertionError: They differ; the message says where most.
        TypeError: Values of these types do not compare.
        ValueError: One tolerance is given without the other.

    >>> import twofold as torch
    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]))
    >>> torch.testing.assert_close(1.0, 1.5)
    Traceback (most recent call last):
        ...
    AssertionError: Scalars are not close!
    <BLANKLINE>
    Expected 1.5 but got 1.0.
    Absolute difference: 0.5 (up to 1e-07 allowed)
    Relative difference: 0.3333333333333333 (up to 1e-07 allowed)
    """
    if (rtol is None) is not (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    for name, value in (("check_device", check_device), ("check_layout", check_layout)):
        if not isinstance(value, bool):
            raise TypeError(f"assert_close: {name} is True or False, not {value!r}")
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    comparison = _Comparison(tolerances, equal_nan, check_dtype, check_stride, allow_subclasses, msg)
    comparison.compare(actual, expected, ())


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """``assert_close`` as it was called earlier: NaN equals NaN, dtypes may differ.

    >>> import twofold as torch
    >>> torch.testing.assert_allclose(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]))
    """
    one, other = as_tensor(actual), as_tensor(expected)
    assert_close(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
