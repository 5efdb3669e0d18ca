"""Casts of operands where the default dtype of a program is not float32, so that no graph depends on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, rules_in_default
from twofold.errors import TwofoldError
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.sizes import current_sizes, is_symbolic
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.unknown import result_type
from twofold.ops.base import apply
from twofold.transforms.derived import stable_graph

Dtypes = tuple[DType | None, ...]


def caster(default: DType) -> Callable[..., Any]:
    """What the core asks of calls none of whose operands has a floating dtype.

    It gives their operands, some of them cast, if their rule gives another type in this default dtype; None if not.
    """

    def in_default_dtype(
        op: Op, attrs: Attributes, types: tuple[TensorType, ...], operands: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        dtypes = _casts(default, op, attrs, types)
        if not dtypes:
            return None
        return tuple(
            one if dtype is None else _cast(one, dtype) for one, dtype in zip(operands, dtypes, strict=True)
        )

    return in_default_dtype


def _cast(operand: Any, dtype: DType) -> Any:
    if isinstance(operand, _core.Tensor):
        return apply("cast", operand, attrs=(dtype,))
    return _core.from_array(numpy.asarray(operand).astype(dtype.compute.numpy), False).to(dtype)


@functools.lru_cache(maxsize=4096)
def _casts(default: DType, op: Op, attrs: Attributes, types: tuple[TensorType, ...]) -> Dtypes:
    """What the operands of a call are cast to; empty where none is."""
    try:
        usual = _result(op, attrs, types)
        with rules_in_default(default):
            wanted = _result(op, attrs, types)
    except TwofoldError:
        return ()  # the call itself reports it
    if wanted is usual:
        return ()
    for dtypes in _choices(default, types):
        given = [
            type if dtype is None else tensor_type(dtype, type.shape)
            for type, dtype in zip(types, dtypes, strict=True)
        ]
        try:
            if _result(op, attrs, given) is wanted:
                return dtypes
        except TwofoldError:
            continue
    raise TypeError(f"{op.name}: takes no operands of {default.name}. Cast what it gives with .to().")


def _choices(default: DType, types: Sequence[TensorType]) -> Iterator[Dtypes]:
    """Numbers alone, then with them all tensors or one of these."""
    of_kind = {"f": default, "c": default.complex}
    numbers = [of_kind.get(type.dtype.kind) if type.weak else None for type in types]
    tensors = [n for n, type in enumerate(types) if not type.weak]
    for chosen in ([], tensors, *([n] for n in tensors)):
        yield tuple(default if n in chosen else dtype for n, dtype in enumerate(numbers))


def _result(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
    """The type that the rule gives; sizes may be names or symbols."""
    if is_symbolic(attrs) or any(size < 0 for type in types for size in type.shape):
        sizes = current_sizes()
        return result_type(op, attrs, types) if sizes is None else sizes.result_type(op, attrs, types)
    return stable_graph(op, attrs, types).outputs[0].type
