"""Reductions of runs of neighbours, and a number that stands for all bits of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import float64, int64, uint64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import Host, apply, convert, host, normalize_axes, normalize_axis, ops, public, strong
from twofold.ops.examples import example

_WAYS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
}
"""How a segment is combined, and what an empty one is."""


@public("segment_reduce", "_segment_reduce")
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Each run of neighbours along ``axis`` as one element: its "sum", "mean", "prod", "max" or "min".

    The runs have the given ``lengths`` (their last axis; others match the axes of ``data`` before ``axis``), or begin
    and end at ``offsets``. Each is combined with ``initial``. Elements behind the last offset do not count; lengths
    that are negative, or do not add up to the size of the axis, are a RuntimeError, unless ``unsafe``.

    >>> import twofold as torch
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.])
    """
    if reduce not in _WAYS:
        raise ArgumentError(f"reduce {reduce!r}", f"Use one of {', '.join(_WAYS)}.")
    if data.dtype.kind != "f":
        raise DTypeError(f"takes floating dtypes, not {data.dtype.name}", "Cast with .to(float32) first.")
    if indices is not None or (lengths is None) == (offsets is None):
        raise ArgumentError("not one of lengths and offsets", "Give one of them.")
    position = normalize_axis(axis, len(data.shape))
    if lengths is not None and not unsafe:
        lengths = apply("run_lengths", lengths, attrs=(data.shape[position],))
    ends, lengths = _runs(lengths, offsets)
    if tuple(ends.shape[:-1]) != tuple(data.shape[:position]):
        raise ShapeError(
            f"runs of shape {tuple(ends.shape)} for axis {position} of shape {tuple(data.shape)}",
            "Give lengths the axes before it, and one axis of runs.",
        )
    how, empty = _WAYS[reduce]
    numbers = _run_numbers(ends, data.shape[position])
    behind = (1,) * (len(data.shape) - position - 1)
    shape = (*data.shape[:position], ends.shape[-1], *data.shape[position + 1 :])
    # one run more takes the elements behind the last one
    start = apply(
        "full", empty if initial is None else float(initial), attrs=(_longer(shape, position), data.dtype)
    )
    index = ops.expand(ops.reshape(numbers, (*numbers.shape, *behind)), tuple(data.shape))
    found = ops.narrow(ops.scatter_reduce(start, position, index, data, how), position, 0, shape[position])
    if reduce != "mean":
        return found
    counts = ops.reshape(lengths, (*lengths.shape, *behind))
    if initial is not None:
        counts = ops.clamp(counts, 1)
    return ops.divide(found, ops.cast(counts, data.dtype))


def _longer(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])


def _runs(lengths: Any, offsets: Any) -> tuple[Any, Any]:
    """Where runs end, and their lengths."""
    if lengths is not None:
        return ops.cumsum(lengths, -1), lengths
    return ops.narrow(offsets, -1, 1, offsets.shape[-1] - 1), ops.diff(offsets)


def _run_numbers(ends: Any, size: int) -> Any:
    """The number of the run that each of ``size`` positions lies in."""
    positions = apply("arange", 0, 1, attrs=(size, int64))
    return ops.searchsorted(ends, ops.expand(positions, (*ends.shape[:-1], size)), right=True)


@host
class run_lengths(Host):
    """The lengths of runs, of which those of each row add up to a size; attributes ``(size,)``."""

    signature = "lengths"
    functions = ()
    title = "segment_reduce"
    differentiable = False
    kinds = "iu"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (lengths,) = map(strong, inputs)
        self.check_kind(lengths.dtype)
        return make_node(self, attrs, (lengths,), lengths.type)

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (lengths,) = arrays
        if lengths.size and lengths.min() < 0:
            raise ShapeError(f"lengths contains negative value {lengths.min()}", "Give lengths from 0 on.")
        totals = lengths.sum(-1)
        if (totals != attrs[0]).any():
            raise ShapeError(
                f"lengths add up to {totals[totals != attrs[0]].flat[0]} on an axis of size {attrs[0]}",
                "Give lengths whose sum is that size, or unsafe=True.",
            )
        return lengths

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return arrays[0]

    def samples(self) -> Sequence[Any]:
        return [example((5,), numpy.array([2, 0, 3])), example((4,), numpy.array([[1, 3], [4, 0]]))]


@host
class bit_parity(Host):
    """All elements over some axes, as 64 bits each, combined by exclusive or; attributes ``(axes,)``."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = strong(inputs[0])
        wide = convert(x, float64 if x.dtype.kind == "f" else x.dtype if x.dtype is uint64 else int64)
        kept = tuple(size for axis, size in enumerate(x.shape) if axis not in attrs[0])
        return make_node(self, attrs, (wide,), tensor_type(uint64, kept))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        bits = numpy.ascontiguousarray(arrays[0]).view(numpy.uint64).reshape(arrays[0].shape)
        return numpy.bitwise_xor.reduce(bits, axis=attrs[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        numbers = numpy.array([[1, 2, -3], [4, 1, 2]])
        return [example(((0,),), (3, 5)), example(((0, 1),), numbers), example(((),), ())]


@public(methods=("hash_tensor",))
def hash_tensor(input: Any, dim: Any = None, *, keepdim: bool = False, mode: int = 0) -> Any:
    """A uint64 number that depends on every bit over ``dim`` (default: all): the elements combined by exclusive or.

    Floating elements are taken as float64, all others as int64. Elements may change positions unseen.

    >>> import twofold as torch
    >>> torch.hash_tensor(torch.tensor([5, 3])).item()
    6
    """
    if mode:
        raise ArgumentError(f"mode {mode}", "Use 0, exclusive or.")
    if input.dtype.kind == "c":
        raise DTypeError(f"takes real dtypes, not {input.dtype.name}", "Use view_as_real first.")
    axes = normalize_axes(None if dim == () else dim, len(input.shape))
    found = apply("bit_parity", input, attrs=(axes,))
    if not keepdim:
        return found
    return ops.reshape(found, tuple(1 if axis in axes else size for axis, size in enumerate(input.shape)))
