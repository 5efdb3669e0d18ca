"""Dual numbers: tensors that carry a tangent, and what functions make of it.

The tangent of a result is that of ``func.jvp``, from what was recorded between the dual tensors and the result. So what
is computed of them has to be recorded: not under ``no_grad``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold import _core
from twofold.errors import described
from twofold.frontend.transforms import start_of
from twofold.func._tape import Linear, Tape

Tensor = _core.Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """The value of a dual tensor, and its tangent, or None for a tensor that depends on no dual one."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual tensors that were made since a level was entered."""

    def __init__(self) -> None:
        self.starts: list[Tensor] = []
        self.tangents: list[Tensor] = []


class _Run(Tape):
    """What led from the dual tensors of a level to one tensor."""

    def __init__(self, level: _Level, output: Tensor) -> None:
        self.starts, self.outputs = level.starts, [output]
        self.alive = _core.depends_outside((output,), tuple(self.starts))


_levels: list[_Level] = []


def enter_dual_level() -> int:
    """Begin to take dual tensors; returns the number of the level. Raises RuntimeError inside of another one."""
    if _levels:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. Use func.jvp, which may be nested."
        )
    _levels.append(_Level())
    return len(_levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Forget all tangents; raises RuntimeError where no level was entered, or another one than ``level``."""
    if not _levels or level not in (None, len(_levels) - 1):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _levels.pop()


class dual_level:
    """A ``with`` block in which there are dual tensors.

    >>> import twofold as torch
    >>> from twofold.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     forward_ad.unpack_dual(x**2)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


def _check(tensor: Any, tangent: Any) -> None:
    for what, one in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(one, Tensor):
            raise TypeError(f"make_dual: {what} is of type {type(one).__name__}. Give a tensor.")
        if one.dtype.kind not in "fc":
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {described(one)}")
    if tensor.shape != tangent.shape or tensor.dtype is not tangent.dtype:
        raise RuntimeError(
            f"make_dual: primal {described(tensor)} and tangent {described(tangent)}. Give a tangent of the shape and "
            "dtype of the primal."
        )


def _need_recording(what: str) -> None:
    if not _core.grad_enabled():
        raise RuntimeError(
            f"{what}: tangents follow from what is recorded, and recording is off. Leave no_grad, or use "
            "func.jvp."
        )


def _level_of(level: int | None) -> _Level | None:
    if not _levels or (level is not None and not 0 <= level < len(_levels)):
        return None
    return _levels[-1 if level is None else level]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the value of ``tensor`` that carries ``tangent``, of its shape and dtype.

    Gradients flow to ``tensor``, and through results of ``unpack_dual`` also to ``tangent``.

    Args:
        tensor: The value.
        tangent: The tangent.
        level: The number of the level, by default the one that was entered.

    Raises:
        RuntimeError: No level was entered, the two do not fit, or ``tensor`` carries a tangent already.
    """
    found = _level_of(level)
    if found is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    _check(tensor, tangent)
    _need_recording("make_dual")
    if _tangent(found, tensor) is not None:
        raise RuntimeError(
            f"make_dual: {described(tensor)} depends on a dual tensor of this level. Detach it first, or give all "
            "of its tangent where that was made."
        )
    dual = start_of(tensor)
    found.starts.append(dual)
    found.tangents.append(tangent)
    return dual


def _tangent(level: _Level, tensor: Tensor) -> Tensor | None:
    if not level.starts or not tensor.requires_grad or not tensor.dtype.is_differentiable:
        return None
    linear = Linear(_Run(level, tensor))
    if all(one is None for one in linear.found):
        return None
    return linear.push(level.tangents)[0]


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent of one that depends on no dual tensor is None.

    Args:
        tensor: The tensor.
        level: The number of the level, by default the one that was entered; outside of any there are no tangents.
    """
    found = _level_of(level)
    if found is None or not found.starts:
        return UnpackedDualTensor(tensor, None)
    _need_recording("unpack_dual")
    tangent = _tangent(found, tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_Run(found, tensor).without_start(tensor), tangent)
