"""Elements added around a tensor, or taken off: ``pad`` with all its modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import apply, ops, public
from twofold.ops.promotion import need_fitting
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import slice_axis

Widths = tuple[int, int, int]
"""An axis, and what is added (negative: taken off) before and after it."""


def _widths(input: Any, pad: Sequence[int]) -> list[Widths]:
    """PyTorch's flat list, which begins at the last axis."""
    given = shapes.integers((tuple(pad),))
    ndim = len(input.shape)
    if len(given) % 2 or len(given) > 2 * ndim:
        raise ArgumentError(
            f"{len(given)} pad widths for {ndim} axes", "Give (low, high) for each of the last axes."
        )
    return [(ndim - 1 - k, given[2 * k], given[2 * k + 1]) for k in range(len(given) // 2)]


def _cropped(input: Any, pairs: Sequence[Widths]) -> Any:
    """What is left where widths are negative."""
    for axis, low, high in pairs:
        cut_low, cut_high = max(-low, 0), max(-high, 0)
        size = input.shape[axis]
        if cut_low + cut_high > size:
            raise ShapeError(
                f"pad widths {low}, {high} leave {size - cut_low - cut_high} elements of axis {axis}",
                f"Take off at most its size, {size}.",
            )
        input = slice_axis(input, axis, cut_low, size - cut_low - cut_high)
    return input


def _filled(input: Any, pairs: Sequence[Widths], value: Any) -> Any:
    """The input with ``value`` around it."""
    need_fitting(value, input.dtype)
    input = _cropped(input, pairs)
    added = sorted((axis, max(low, 0), max(high, 0)) for axis, low, high in pairs if low > 0 or high > 0)
    if not added:
        return ops.copied(input)
    shape = list(input.shape)
    for axis, low, high in added:
        shape[axis] += low + high
    attrs = (tuple(shape), (1,) * len(shape), tuple(axis for axis, _, _ in added))
    return apply(
        "pad_block", input, 0 if value is None else value, *[low for _, low, _ in added], attrs=attrs
    )


def _reflected(input: Any, axis: int, low: int, high: int) -> list[Any]:
    size = input.shape[axis]
    before = slice_axis(input, axis, 1, low) if low else None
    after = slice_axis(input, axis, size - 1 - high, high) if high else None
    return [piece if piece is None else ops.flip(piece, axis) for piece in (before, after)]


def _replicated(input: Any, axis: int, low: int, high: int) -> list[Any]:
    def repeated(position: int, count: int) -> Any:
        shape = (*input.shape[:axis], count, *input.shape[axis + 1 :])
        return ops.broadcast_to(slice_axis(input, axis, position, 1), shape) if count else None

    return [repeated(0, low), repeated(input.shape[axis] - 1, high)]


def _wrapped(input: Any, axis: int, low: int, high: int) -> list[Any]:
    before = slice_axis(input, axis, input.shape[axis] - low, low) if low else None
    return [before, slice_axis(input, axis, 0, high) if high else None]


_PIECES = {"reflect": _reflected, "replicate": _replicated, "circular": _wrapped}


def _pad_with_itself(input: Any, axis: int, low: int, high: int, mode: str) -> Any:
    """One axis padded with elements of the input; widths are not negative."""
    size = input.shape[axis]
    limit = {"reflect": size - 1, "replicate": None, "circular": size}[mode]
    if (limit is not None and max(low, high) > limit) or (not size and max(low, high)):
        most = "of an axis with elements" if limit is None or limit < 0 else f"of at most {limit}"
        raise ArgumentError(
            f"pad widths {low}, {high} for size {size} with mode {mode!r}", f"Use widths {most}."
        )
    before, after = _PIECES[mode](input, axis, low, high)
    pieces = [piece for piece in (before, input, after) if piece is not None]
    return ops.concatenate(pieces, axis) if len(pieces) > 1 else input


@public(methods=("pad",))
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """The input with elements added (negative: removed) around it.

    ``pad`` holds ``(low, high)`` of the last axis, then of the one before it, and so on, as in PyTorch.
    ``mode`` is ``"constant"`` (``value``, 0 by default), ``"replicate"``, ``"reflect"`` or ``"circular"``.

    >>> import twofold as torch
    >>> torch.nn.functional.pad(torch.tensor([[1, 2]]), (1, 2))
    tensor([[0, 1, 2, 0, 0]])
    >>> torch.nn.functional.pad(torch.tensor([[1, 2, 3]]), (1, 1), mode="reflect")
    tensor([[2, 1, 2, 3, 2]])
    """
    pairs = _widths(input, pad)
    if mode == "constant":
        if isinstance(value, (int, float)):  # as a float it does not wrap round
            need_fitting(float(value), input.dtype)
        return _filled(input, pairs, value)
    if not any(low or high for _, low, high in pairs):
        return ops.copied(input)
    if mode not in _PIECES:
        raise ArgumentError(f"pad mode {mode!r}", "Use 'constant', 'replicate', 'reflect' or 'circular'.")
    if mode == "circular":  # what is wrapped around is what is left
        input = _cropped(input, pairs)
    for axis, low, high in pairs:
        input = _pad_with_itself(input, axis, max(low, 0), max(high, 0), mode)
    return input if mode == "circular" else _cropped(input, pairs)


@public()
def constant_pad_nd(input: Any, pad: Sequence[int], value: Any = 0) -> Any:
    """``pad`` with mode ``"constant"``.

    >>> import twofold as torch
    >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 1), 9)
    tensor([9, 1, 2, 9])
    """
    return _filled(input, _widths(input, pad), value)
