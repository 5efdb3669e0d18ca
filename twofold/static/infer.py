"""What an operation will return: its body runs once on symbols of the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir.bind import input_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.unknown import UNKNOWN_RANK, OpenSizes, types_by, types_by_rank
from twofold.static.graph import Operation
from twofold.static.values import REFUSED, Unforeseen, Values, call_body, counter_node, type_of


def infer(operation: Operation) -> list[TensorType]:
    """The types of an operation's outputs; raises the error of its body where the inputs do not fit."""
    types = [owner.outputs[index].type_ for owner, index in operation.sources]
    places = [k for k in range(len(types)) if k not in operation.host]
    open_numbers = [False]

    def of_rank(ranked: list[TensorType]) -> list[TensorType]:
        given = dict(zip(places, ranked))

        def rule(sizes: OpenSizes) -> list[TensorType]:
            values = Values(sizes)
            try:
                return _typed(operation, given, values)
            finally:
                open_numbers[0] |= values.at_run

        return types_by(rule, REFUSED)

    try:
        return types_by_rank([types[k] for k in places], of_rank, REFUSED)
    except Unforeseen:
        pass
    except REFUSED:
        if not open_numbers[0]:
            raise
    return [tensor_type(_guess_dtype(operation, types), UNKNOWN_RANK)]


def _typed(operation: Operation, given: dict[int, TensorType], values: Values) -> list[TensorType]:
    sizes = values.sizes
    assert sizes is not None
    arguments: list[Any] = [
        input_node(k, sizes.type_of(given[k])) if k in given else values.of(source)
        for k, source in enumerate(operation.sources)
    ]
    return [type_of(made) for made in call_body(operation, arguments, counter_node(len(arguments)))]


def _guess_dtype(operation: Operation, types: Sequence[TensorType]) -> Any:
    wanted = operation.keywords.get("dtype")
    if wanted is not None:
        return wanted
    free = [type.dtype for k, type in enumerate(types) if k not in operation.host]
    # where numbers are chosen or scattered by others, these are integers
    content = [dtype for dtype in free if dtype.kind in "fcS"]
    return (content or free or [types[0].dtype])[0]
