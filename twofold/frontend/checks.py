"""Checks of a program's own conditions, ``torch._check`` and its relatives, and ``sym_max`` and its relatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.dtypes import bool_

Tensor = _core.Tensor


class SymInt:
    """The class of sizes that are unknown while PyTorch's compiler traces; sizes here are ints.

    >>> import twofold as torch
    >>> isinstance(torch.ones(2).size(0), torch.SymInt)
    False
    """


class SymFloat:
    """The class of numbers computed of unknown sizes, see ``SymInt``; here they are floats.

    >>> import twofold as torch
    >>> isinstance(torch.sym_float(2), torch.SymFloat)
    False
    """


class SymBool:
    """The class of conditions on unknown sizes, see ``SymInt``; here they are bools.

    >>> import twofold as torch
    >>> isinstance(torch.ones(2).size(0) > 1, torch.SymBool)
    False
    """


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None) -> None:
    """Raise ``error_type`` with what ``message`` returns, unless ``cond`` is true.

    >>> import twofold as torch
    >>> torch._check_with(KeyError, 1 < 2, None)
    """
    if not isinstance(cond, bool):
        of_tensor = isinstance(cond, Tensor)
        raise TypeError(
            f"cond must be a bool, but got {'a Tensor' if of_tensor else type(cond)}."
            + (" For tensor conditions, use torch._check_tensor_all()." if of_tensor else "")
        )
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError with what ``message`` returns, unless ``cond`` is true.

    >>> import twofold as torch
    >>> torch._check(1 < 2, lambda: "never")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """As ``_check``, with IndexError.

    >>> import twofold as torch
    >>> torch._check_index(True)
    """
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """As ``_check``, with ValueError.

    >>> import twofold as torch
    >>> torch._check_value(True)
    """
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """As ``_check``, with TypeError.

    >>> import twofold as torch
    >>> torch._check_type(True)
    """
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """As ``_check``, with NotImplementedError.

    >>> import twofold as torch
    >>> torch._check_not_implemented(True)
    """
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raise RuntimeError unless ``i`` is from 0 on, and not above ``max``.

    >>> import twofold as torch
    >>> torch._check_is_size(3, max=4)
    """
    _check(bool(i >= 0), message)
    if max is not None:
        _check(bool(i <= max), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None
) -> None:
    """Raise ``error_type`` with what ``message`` returns, unless all elements of a bool tensor are true.

    >>> import twofold as torch
    >>> torch._check_tensor_all_with(ValueError, torch.tensor([True, True]))
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError with what ``message`` returns, unless all elements of a bool tensor are true.

    >>> import twofold as torch
    >>> torch._check_tensor_all(torch.ones(2) > 0)
    """
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(
    input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """Raise RuntimeError with ``assert_msg``, unless a tensor of one element is not zero.

    >>> import twofold as torch
    >>> torch._assert_async(torch.tensor(True))
    """
    if not bool(input):
        raise RuntimeError(assert_msg)


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if one is.

    >>> import twofold as torch
    >>> torch.sym_max(2, 3.0)
    3.0
    """
    return _alike(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one is.

    >>> import twofold as torch
    >>> torch.sym_min(2, 3)
    2
    """
    return _alike(min(a, b), a, b)


def _alike(found: Any, *numbers: Any) -> Any:
    return float(found) if any(isinstance(one, float) for one in numbers) else found


def sym_int(a: Any) -> int:
    """A number without its fraction.

    >>> import twofold as torch
    >>> torch.sym_int(-2.7)
    -2
    """
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """A number as a float.

    >>> import twofold as torch
    >>> torch.sym_float(2)
    2.0
    """
    return float(a)


def sym_not(a: Any) -> bool:
    """The negation of a bool.

    >>> import twofold as torch
    >>> torch.sym_not(True)
    False
    """
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``.

    >>> import twofold as torch
    >>> torch.sym_ite(True, 1, 2)
    1
    """
    return t if b else f


def sym_sum(args: Any) -> Any:
    """The sum of numbers.

    >>> import twofold as torch
    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return sum(args)
