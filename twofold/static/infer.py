"""What an operation will return, found by running its body on samples of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import int64
from twofold.errors import TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.node import Node
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.runtime.unknown import UNKNOWN_RANK, Sizes, Trials, new_unknown_size, sizes_by_place
from twofold.static.graph import Operation, Slot, local

Tensor = _core.Tensor
_SAMPLES = (1009, 2003)
_RANKS = 5
_SMALL = 17
Source = tuple[Operation, int]


class Unforeseen(Exception):
    """A number that a body must know is known only when the graph runs."""


def fill(template: Any, values: Sequence[Any]) -> Any:
    """``template`` with every slot replaced by its value."""
    if isinstance(template, Slot):
        return values[template.index]
    if type(template) in (list, tuple):
        return type(template)(fill(item, values) for item in template)
    return template


def call_body(
    operation: Operation, values: Sequence[Any], counter: Any = None, states: Sequence[Any] = ()
) -> list[Any]:
    """The outputs of a body on concrete inputs; ``counter`` numbers the run for operations that draw."""
    assert operation.body is not None
    arguments = [*states, *[fill(item, values) for item in operation.arguments]]
    keywords = {key: fill(item, values) for key, item in operation.keywords.items()}
    if operation.draws:
        keywords["counter"] = counter
    local.replaying += 1
    try:
        made = operation.body(*arguments, **keywords)
    finally:
        local.replaying -= 1
    return list(made) if isinstance(made, (list, tuple)) else [made]


def known_value(source: Source, sizes: Sizes) -> Any:
    """The value of a tensor that depends on constants and sizes alone; raises Unforeseen for any other."""
    operation, index = source
    if operation.constant is not None:
        return operation.constant
    if operation.body is None or operation.updates or operation.draws or operation.branches:
        raise Unforeseen
    if operation.type in ("Shape", "Size", "Rank", "ShapeN"):
        values = [_SizeOf(owner.outputs[k].type_, sizes) for owner, k in operation.sources]
    else:
        values = [known_value(item, sizes) for item in operation.sources]
    return call_body(operation, values)[index]


class _SizeOf:
    """Stands for a tensor of which only the type may be asked."""

    def __init__(self, type: TensorType, sizes: Sizes) -> None:
        if type.shape == UNKNOWN_RANK:
            raise Unforeseen
        self.dtype = type.dtype
        self.shape = tuple(sizes.get(size, size) for size in type.shape)
        self.ndim = len(self.shape)
        if any(size < 0 for size in self.shape):
            raise Unforeseen


def _unknown_sizes(sources: Sequence[Source]) -> Iterator[int]:
    """Unknown sizes that the numbers of ``sources`` may follow."""
    seen: set[int] = set()
    left = [operation for operation, _ in sources]
    while left:
        operation = left.pop()
        if id(operation) not in seen:
            seen.add(id(operation))
            yield from (size for tensor in operation.inputs for size in tensor.type_.shape if size < -1)
            left += [owner for owner, _ in operation.sources]


_ROUND = (5040, 10080)


def _assignments(unknown: list[int], shapes: Sequence[Shape]) -> Iterator[tuple[Sizes, Sizes]]:
    """Pairs of sizes to try: all different, equal axis by axis, all equal, those known, and round ones."""

    def spread(base: int, step: int) -> Sizes:
        return {name: base + step * place for place, name in enumerate(unknown)}

    low, high = _SAMPLES
    yield spread(low, 6), spread(high, 6)
    if unknown:
        few, many = ({**spread(base, 6), **sizes_by_place(shapes, base)} for base in (low, high))
        yield few, many
        yield dict.fromkeys(unknown, low), dict.fromkeys(unknown, high)
        for size in dict.fromkeys(size for shape in shapes for size in shape if size >= 0):
            yield dict.fromkeys(unknown, size), dict.fromkeys(unknown, size)
        yield spread(_ROUND[0], _ROUND[0]), spread(_ROUND[1], _ROUND[1])
        for size in range(1, _SMALL):
            yield dict.fromkeys(unknown, size), dict.fromkeys(unknown, size)


def infer(operation: Operation) -> list[TensorType]:
    """The types of an operation's outputs; raises the error of its body where the inputs do not fit."""
    types = [owner.outputs[index].type_ for owner, index in operation.sources]
    if any(type.shape == UNKNOWN_RANK for k, type in enumerate(types) if k not in operation.host):
        return _infer_rank(operation, types)
    return _infer_sizes(operation, types)


def _infer_rank(operation: Operation, types: Sequence[TensorType]) -> list[TensorType]:
    found: list[list[TensorType]] = []
    first_error: Exception | None = None
    for rank in range(_RANKS):
        sizes = tuple(new_unknown_size() for _ in range(rank))
        ranked = [
            tensor_type(t.dtype, sizes) if t.shape == UNKNOWN_RANK and k not in operation.host else t
            for k, t in enumerate(types)
        ]
        try:
            found.append(_infer_sizes(operation, ranked))
        except (TwofoldError, ArithmeticError, LookupError, ValueError) as error:  # not of this rank
            first_error = first_error or error
    if not found:
        assert first_error is not None
        raise first_error
    outputs = []
    for candidates in zip(*found):
        same = len(found) > 1 and all(type is candidates[0] for type in candidates)
        outputs.append(candidates[0] if same else tensor_type(candidates[0].dtype, UNKNOWN_RANK))
    return outputs


def _infer_sizes(operation: Operation, types: Sequence[TensorType]) -> list[TensorType]:
    unknown = list(dict.fromkeys(size for type in types for size in type.shape if size < -1))
    hosts = [operation.sources[k] for k in sorted(operation.host)]
    unknown = list(dict.fromkeys([*unknown, *_unknown_sizes(hosts)]))
    trials = Trials(lambda sizes: _typed(operation, types, sizes))
    try:
        low, high = trials.first(_assignments(unknown, [type.shape for type in types]))
    except Unforeseen:
        return [tensor_type(_guess_dtype(operation, types), UNKNOWN_RANK)]
    first, second = trials.of(low), trials.of(high)
    assert first is not None and second is not None
    small = _tiny(operation, types, unknown) or first
    return [
        tensor_type(a.dtype, _shape(a.shape, b.shape, low, high, c.shape))
        for a, b, c in zip(first, second, small)
    ]


def _tiny(operation: Operation, types: Sequence[TensorType], unknown: list[int]) -> list[TensorType] | None:
    """The types for sizes of 1, which show what depends on the size after all, such as ``x[:10]``."""
    try:
        return _typed(operation, types, dict.fromkeys(unknown, 1)) if unknown else None
    except (TwofoldError, Unforeseen):
        return None


def _shape(a: Shape, b: Shape, low: Sizes, high: Sizes, small: Shape) -> Shape:
    if len(a) != len(b) or len(a) != len(small):
        return UNKNOWN_RANK
    sizes = []
    for m, n, s in zip(a, b, small):
        name = next((name for name in low if low[name] == m and high[name] == n and m != n), None)
        sizes.append(m if m == n == s else new_unknown_size() if name is None else name)
    return tuple(sizes)


def _guess_dtype(operation: Operation, types: Sequence[TensorType]) -> Any:
    wanted = operation.keywords.get("dtype")
    if wanted is not None:
        return wanted
    free = [type.dtype for k, type in enumerate(types) if k not in operation.host]
    # where numbers are chosen or scattered by others, these are integers
    floating = [dtype for dtype in free if dtype.kind in "fc"]
    return (floating or free or [types[0].dtype])[0]


def _typed(operation: Operation, types: Sequence[TensorType], sizes: Sizes) -> list[TensorType]:
    values: list[Any] = []
    for k, type in enumerate(types):
        if k in operation.host:
            values.append(known_value(operation.sources[k], sizes))
        else:
            shape = tuple(sizes.get(size, size) for size in type.shape)
            values.append(input_node(k, tensor_type(type.dtype, shape)))
    counter = input_node(len(types), tensor_type(int64))
    return [type_of(made) for made in call_body(operation, values, counter)]


def type_of(value: Any) -> TensorType:
    """The type of a node, tensor or number that a body returned."""
    if isinstance(value, Node):
        return value.type
    if isinstance(value, Tensor):
        value._realise()
        return value.type_
    array = numpy.asarray(value)
    return _core.from_array(array, False).type_
