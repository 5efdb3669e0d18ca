"""What define-by-run promotes otherwise than rules do: operands are cast, so that no graph depends on it.

Integers and Python floats alone are computed in the default dtype, and a tensor without axes never widens one that has
some, as a Python number does not (PyTorch's Tensor Attributes, "Type promotion").
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, float32, promote, rules_in_default
from twofold.errors import TwofoldError
from twofold.frontend.options import get_default_dtype
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.shape_inference import result_type
from twofold.ir.sizes import current_sizes, is_symbolic
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import Elementwise, apply
from twofold.ops.promotion import common_beside_scalars
from twofold.transforms.derived import stable_graph

Dtypes = tuple[DType | None, ...]


def cast_operands(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], operands: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """The operands of a call, some of them cast; None if none has to be."""
    dtypes = _casts(get_default_dtype(), op, attrs, types)
    if not dtypes:
        return None
    return tuple(
        one if dtype is None else _cast(one, dtype) for one, dtype in zip(operands, dtypes, strict=True)
    )


def _cast(operand: Any, dtype: DType) -> Any:
    if isinstance(operand, _core.Tensor):
        return apply("cast", operand, attrs=(dtype,))
    return _core.from_array(numpy.asarray(operand).astype(dtype.compute.numpy), False).to(dtype)


@functools.lru_cache(maxsize=4096)
def _casts(default: DType, op: Op, attrs: Attributes, types: tuple[TensorType, ...]) -> Dtypes:
    """What the operands of a call are cast to; empty where none is."""
    try:
        usual = _result(op, attrs, types)
        if default is not float32 and not any(type.dtype.kind in "fc" for type in types if not type.weak):
            return _in_default(default, op, attrs, types, usual)
        return _beside_scalars(op, types)
    except TwofoldError:
        return ()  # the call itself reports it


def _in_default(
    default: DType, op: Op, attrs: Attributes, types: tuple[TensorType, ...], usual: TensorType
) -> Dtypes:
    with rules_in_default(default):
        wanted = _result(op, attrs, types)
        computed = _computation(op, attrs, types) if wanted is usual else None
    if wanted is usual:
        numbers = next(_choices(default, types))
        differs = any(numbers) and computed is not _computation(op, attrs, types)
        return numbers if differs and _result(op, attrs, _cast_types(types, numbers)) is wanted else ()
    for dtypes in _choices(default, types):
        try:
            if _result(op, attrs, _cast_types(types, dtypes)) is wanted:
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


def _beside_scalars(op: Op, types: Sequence[TensorType]) -> Dtypes:
    if not getattr(op, "promotes", False):
        return ()
    fixed = getattr(op, "operand_dtypes", ()) or (None,) * len(types)
    free = [None if type.weak or dtype else type for type, dtype in zip(types, fixed, strict=True)]
    given = [type for type in free if type is not None]
    if not any(type.shape for type in given):
        return ()
    common = common_beside_scalars(given)
    dtypes = tuple(
        common if type is not None and not type.shape and promote(type.dtype, common) is not common else None
        for type in free
    )
    return dtypes if any(dtypes) else ()


def _cast_types(types: Sequence[TensorType], dtypes: Dtypes) -> list[TensorType]:
    return [
        type if dtype is None else tensor_type(dtype, type.shape)
        for type, dtype in zip(types, dtypes, strict=True)
    ]


def _computation(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> Graph | DType | None:
    """What changes with the default where the result's dtype may not: the operands' dtype, or the graph.

    None where sizes of a call that promotes nothing itself are not known: it has no graph yet.
    """
    if isinstance(op, Elementwise):
        return op.infer(attrs, op.promoted(types))[0]
    return None if _is_open(attrs, types) else stable_graph(op, attrs, types)


def _is_open(attrs: Attributes, types: Sequence[TensorType]) -> bool:
    return is_symbolic(attrs) or any(size < 0 for type in types for size in type.shape)


def _result(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
    """The type that the rule gives; sizes may be names or symbols."""
    if _is_open(attrs, types):
        sizes = current_sizes()
        return result_type(op, attrs, types) if sizes is None else sizes.result_type(op, attrs, types)
    return stable_graph(op, attrs, types).outputs[0].type
