"""Operations that Python computes while a graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import DType
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import tensor_type
from twofold.static.bodies import source_of
from twofold.static.define import convert_to_tensor
from twofold.static.graph import get_default_graph


def in_python(
    type: str,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    results: Sequence[tuple[DType, Sequence[int | None] | None]],
    name: str | None,
    given_run: bool = False,
) -> list[Any]:
    """A ``py_func`` whose results have known dtypes, ranks unless the shape is None, and sizes unless one is None.

    With ``given_run`` the function gets the run first, as that of a loop on the host does.
    """
    tensors = [convert_to_tensor(value) for value in inputs]
    types = [
        tensor_type(dtype, UNKNOWN_RANK)
        if sizes is None
        else tensor_type(dtype, tuple(new_unknown_size() if size is None else size for size in sizes))
        for dtype, sizes in results
    ]
    graph = tensors[0].graph if tensors else get_default_graph()
    parts = {"python": function, "hosted": function if given_run else None}
    made = graph.add(type, name, types, [source_of(tensor) for tensor in tensors], **parts)
    return list(made.outputs)
