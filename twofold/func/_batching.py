"""``vmap``: a function for one sample becomes a function for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import AxisError, described
from twofold.frontend.mapping import RANDOMNESS, Mapping, active_mappings
from twofold.frontend.transforms import lift
from twofold.func._trees import named
from twofold.ir.types import tensor_type
from twofold.ops.base import ops
from twofold.tracebacks import boundary
from twofold.utils._pytree import TreeSpec, broadcast_prefix, tree_flatten, tree_unflatten

Tensor = _core.Tensor


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """``func`` for every sample along axes of its arguments, as one batched computation.

    ``in_dims`` names the axis of samples in each argument (None: all samples share it), ``out_dims`` where it
    stands in the results; both may be containers of the form of the arguments or results, or parts of one.
    ``func`` is declared once on one sample and every operation is then computed for all; a sample's result has
    the bits that it has alone. ``func`` cannot branch on values. Random sampling raises RuntimeError, unless
    ``randomness`` is 'different' or 'same' for all samples. ``chunk_size`` limits the samples computed at once.
    Raises ValueError for axes that do not fit the arguments.

    >>> import twofold as torch
    >>> torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"vmap: randomness is {randomness!r}. Use one of {', '.join(map(repr, RANDOMNESS))}."
        )
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size is {chunk_size}. Use None or a number above 0.")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec, dims = _flat_arguments(func, args, in_dims)
        size = _sample_count(func, leaves, dims)
        moved = [
            leaf if dim is None or dim == 0 else ops.movedim(leaf, dim, 0) for leaf, dim in zip(leaves, dims)
        ]
        flags = [dim is not None for dim in dims]

        def call(values: Sequence[Any]) -> Any:
            return func(*tree_unflatten(values, spec), **kwargs)

        if chunk_size is None or size <= chunk_size:
            results, form, positions = _map(func, call, moved, flags, size, out_dims, randomness)
        else:
            results, form, positions = _in_chunks(
                func, call, moved, flags, size, out_dims, randomness, chunk_size
            )
        return tree_unflatten(
            [_moved_back(func, value, position) for value, position in zip(results, positions)], form
        )

    return boundary(wrapped)


def _flat_arguments(func: Any, args: Any, in_dims: Any) -> tuple[list[Any], TreeSpec, list[int | None]]:
    if not args:
        raise ValueError(
            f"vmap({named(func)}): there are no positional arguments. Give one with an axis of samples."
        )
    leaves, spec = tree_flatten(args)
    given = in_dims if isinstance(in_dims, (int, tuple)) or in_dims is None else tuple(in_dims)
    dims = broadcast_prefix(given, args)
    if dims is None:
        raise ValueError(
            f"vmap({named(func)}): in_dims={in_dims} does not have the form of the arguments {spec!r}. "
            "Give one number for all, or one for each."
        )
    return leaves, spec, [_checked_dim(func, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]


def _checked_dim(func: Any, leaf: Any, dim: Any) -> int | None:
    if dim is None:
        return None
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise ValueError(f"vmap({named(func)}): in_dims holds {dim!r}. Use an int or None for each argument.")
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"vmap({named(func)}): in_dims gives axis {dim} to a {type(leaf).__name__}. Use None for what is no tensor."
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(f"vmap({named(func)}): in_dims gives axis {dim} to {described(leaf)}.")
    return dim % leaf.ndim


def _sample_count(func: Any, leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(f"vmap({named(func)}): in_dims names no axis of samples. Give one argument an axis.")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap({named(func)}): the axes of samples have different sizes, {', '.join(map(str, sizes))}. "
            "Make them equal."
        )
    return int(sizes[0])


def _map(
    func: Any, call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any], flags: Sequence[bool], size: int,
    out_dims: Any, randomness: str,
) -> tuple[list[Any], TreeSpec, list[int | None]]:  # fmt: skip
    """The results with samples along the leading axis (where there are), their form, and where the axis goes."""
    samples = [leaf for leaf, flag in zip(leaves, flags, strict=True) if flag]
    placeholders = [_core.placeholder(_one_sample(value)) for value in samples]
    given = iter(placeholders)
    values = [next(given) if flag else leaf for leaf, flag in zip(leaves, flags, strict=True)]
    if randomness == "different":
        samples.append(ops.arange(size))
        placeholders.append(_core.placeholder(_one_sample(samples[-1])))
    mapping = Mapping(randomness, placeholders[-1], size)
    active = active_mappings()
    active.append(mapping)
    try:
        result = call(values)
    finally:
        del active[-1]  # allocates nothing: it is done even where memory has run out
    outputs, form = tree_flatten(result)
    for output in outputs:
        if not isinstance(output, Tensor):
            raise ValueError(
                f"vmap({named(func)}): the function must return tensors, got a {type(output).__name__}."
            )
    positions = broadcast_prefix(out_dims, result)
    if positions is None:
        raise ValueError(
            f"vmap({named(func)}): out_dims={out_dims} does not have the form of the result {form!r}."
        )
    lifted = lift(outputs, placeholders, samples)
    return (
        [_result(func, *pair, position, size) for pair, position in zip(lifted, positions)],
        form,
        positions,
    )


def _one_sample(value: Tensor) -> Any:
    type = value.type_
    return tensor_type(type.dtype, type.shape[1:])


def _result(func: Any, value: Tensor, has_samples: bool, position: Any, size: int) -> Tensor:
    if position is None:
        if has_samples:
            raise ValueError(
                f"vmap({named(func)}): out_dims is None for a result that differs between samples. Give its axis."
            )
        return value
    return value if has_samples else ops.broadcast_to(value, (size, *value.shape))


def _moved_back(func: Any, value: Tensor, position: int | None) -> Tensor:
    if position is not None and not -value.ndim <= position < value.ndim:
        raise AxisError(
            f"vmap({named(func)}): out_dims gives axis {position} to a result with {value.ndim} axes, that of the "
            "samples included",
            f"Use an axis from {-value.ndim} to {value.ndim - 1}.",
        )
    return value if position is None or position == 0 else ops.movedim(value, 0, position)


def _in_chunks(
    func: Any, call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any], flags: Sequence[bool], size: int,
    out_dims: Any, randomness: str, chunk_size: int,
) -> tuple[list[Any], TreeSpec, list[int | None]]:  # fmt: skip
    columns: list[list[Any]] = []
    for first in range(0, size, chunk_size):
        last = min(first + chunk_size, size)
        part = [leaf[first:last] if flag else leaf for leaf, flag in zip(leaves, flags, strict=True)]
        results, form, positions = _map(func, call, part, flags, last - first, out_dims, randomness)
        columns.append(results)
    joined = [
        parts[0] if position is None else ops.concatenate(list(parts), 0)
        for parts, position in zip(zip(*columns), positions)
    ]
    return joined, form, positions
