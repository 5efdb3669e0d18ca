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
_FEW = 16
_REFUSED = (TwofoldError, ArithmeticError, LookupError, TypeError, ValueError)
"""What a body raises for sizes that it does not take."""
_SEVERAL = (0, 2, 3, 4, 5, 6, 7, 8, 16, 100, 5001, 30011)
Source = tuple[Operation, int]


def read_of(source: Source) -> Any:
    """The variable that a tensor is a plain read of, or None."""
    operation = source[0]
    return None if operation.updates else operation.variable


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


Open = dict[Source, list[int]]
"""Names of numbers that only a run will tell, by the tensors that hold them."""


def known_value(source: Source, sizes: Sizes, open_: Open | None = None) -> Any:
    """The value of a tensor that depends on constants and sizes alone; raises Unforeseen for any other.

    With ``open_`` whole numbers that only a run will tell are unknown sizes as well: they get names there.
    """
    try:
        return _known_value(source, sizes, open_)
    except Unforeseen:
        owner, index = source
        type = owner.outputs[index].type_
        few = len(type.shape) <= 1 and all(0 <= size <= _FEW for size in type.shape)
        if open_ is None or type.dtype.kind not in "iu" or not few:
            raise
    if source not in open_:
        open_[source] = [new_unknown_size() for _ in range(type.shape[0] if type.shape else 1)]
    numbers = numpy.array([sizes.get(name, 1) for name in open_[source]], type.dtype.numpy)
    return _core.from_array(numbers.reshape(type.shape), False)


def _known_value(source: Source, sizes: Sizes, open_: Open | None) -> Any:
    operation, index = source
    if operation.constant is not None:
        return operation.constant
    if operation.body is None or operation.updates or operation.draws or operation.branches:
        raise Unforeseen
    if operation.type in ("Shape", "Size", "Rank", "ShapeN"):
        values = [_SizeOf(owner.outputs[k].type_, sizes) for owner, k in operation.sources]
    else:
        values = [known_value(item, sizes, open_) for item in operation.sources]
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
    fitting: list[int] = []
    first_error: Exception | None = None
    for rank in range(_RANKS):
        sizes = tuple(new_unknown_size() for _ in range(rank))
        ranked = [
            tensor_type(t.dtype, sizes) if t.shape == UNKNOWN_RANK and k not in operation.host else t
            for k, t in enumerate(types)
        ]
        try:
            found.append(_infer_sizes(operation, ranked))
            fitting.append(rank)
        except _REFUSED as error:  # not of this rank
            first_error = first_error or error
    if not found:
        assert first_error is not None
        raise first_error
    outputs = []
    for candidates in zip(*found):
        # a single rank that fits is the rank, unless it is the largest tried: larger ones might fit, too
        certain = len(found) > 1 or fitting[0] < _RANKS - 1
        outputs.append(_common(candidates) if certain else tensor_type(candidates[0].dtype, UNKNOWN_RANK))
    return outputs


def _common(types: Sequence[TensorType]) -> TensorType:
    """What types found for several ranks agree on."""
    first, *rest = types
    if any(len(other.shape) != len(first.shape) for other in rest):
        return tensor_type(first.dtype, UNKNOWN_RANK)
    sizes = [
        size if all(other.shape[place] == size for other in rest) else new_unknown_size()
        for place, size in enumerate(first.shape)
    ]
    return tensor_type(first.dtype, tuple(sizes))


def _infer_sizes(operation: Operation, types: Sequence[TensorType]) -> list[TensorType]:
    unknown = list(dict.fromkeys(size for type in types for size in type.shape if size < -1))
    hosts = [operation.sources[k] for k in sorted(operation.host)]
    open_ = _open(hosts)
    followed = [*_unknown_sizes(hosts), *[name for names in open_.values() for name in names]]
    unknown = list(dict.fromkeys([*unknown, *followed]))
    trials = Trials(lambda sizes: _typed(operation, types, sizes, open_))
    try:
        low, high = trials.first(_assignments(unknown, [type.shape for type in types]))
    except Unforeseen:
        return [tensor_type(_guess_dtype(operation, types), UNKNOWN_RANK)]
    except _REFUSED:
        if unknown and operation.type == "Reshape" and hosts:
            return [_reshaped(operation, types)]
        if not open_:
            raise
        return [tensor_type(_guess_dtype(operation, types), UNKNOWN_RANK)]
    several = low != high or not followed
    found = [(sizes, made) for sizes in (low, high) if (made := trials.of(sizes)) is not None]
    found += _more(operation, types, unknown, open_, bool(followed))
    return [
        tensor_type(made.dtype, _shape([(sizes, each[k].shape) for sizes, each in found], several))
        for k, made in enumerate(found[0][1])
    ]


def _reshaped(operation: Operation, types: Sequence[TensorType]) -> TensorType:
    """The rank that a shape says, where sizes that are not known yet may fit it or not."""
    rank = next(types[k].shape for k in sorted(operation.host))
    dtype = _guess_dtype(operation, types)
    if len(rank) != 1 or rank[0] < 0:
        return tensor_type(dtype, UNKNOWN_RANK)
    return tensor_type(dtype, tuple(new_unknown_size() for _ in range(rank[0])))


def _open(hosts: Sequence[Source]) -> Open:
    """The numbers among those that a body must know which only a run will tell."""
    found: Open = {}
    for source in hosts:
        try:
            known_value(source, _Sevens(), found)
        except (Unforeseen, *_REFUSED):
            continue
    return found


class _Sevens(dict[int, int]):
    def get(self, name: int, default: Any = None) -> Any:
        return default if default is not None and default >= 0 else 7


def _more(
    operation: Operation, types: Sequence[TensorType], unknown: list[int], open_: Open, followed: bool
) -> list[tuple[Sizes, list[TensorType]]]:
    """Further sizes and types, which show what depends on a size after all, such as ``x[:10]`` or ``shape(x)[0] % 2``.

    Where numbers follow sizes, as in the second, many are tried.
    """
    tried: list[Sizes] = [dict.fromkeys(unknown, 1)] if unknown else []
    if followed:
        tried += [dict.fromkeys(unknown, size) for size in _SEVERAL]
        tried += [{name: 3 + 2 * place for place, name in enumerate(unknown)}]
        tried += [{name: 40 - place for place, name in enumerate(unknown)}]
        tried += [{**dict.fromkeys(unknown, 6), name: size} for name in unknown for size in (1, 2)]
    found = []
    for sizes in tried:
        try:
            found.append((sizes, _typed(operation, types, sizes, open_)))
        except (Unforeseen, *_REFUSED):
            continue
    return found


def _shape(found: Sequence[tuple[Sizes, Shape]], several: bool) -> Shape:
    """What shapes for different sizes have in common; with one for one set of sizes no more than their rank."""
    (first_sizes, first), rest = found[0], found[1:]
    if any(len(shape) != len(first) for _, shape in rest):
        return UNKNOWN_RANK
    shape = []
    for place, size in enumerate(first):
        same = all(other[place] == size for _, other in rest)
        names = [name for name in first_sizes if all(sizes.get(name) == made[place] for sizes, made in found)]
        if same and several:
            shape.append(size)
        else:
            shape.append(names[0] if names and not same else new_unknown_size())
    return tuple(shape)


def _guess_dtype(operation: Operation, types: Sequence[TensorType]) -> Any:
    wanted = operation.keywords.get("dtype")
    if wanted is not None:
        return wanted
    free = [type.dtype for k, type in enumerate(types) if k not in operation.host]
    # where numbers are chosen or scattered by others, these are integers
    content = [dtype for dtype in free if dtype.kind in "fcS"]
    return (content or free or [types[0].dtype])[0]


def _typed(operation: Operation, types: Sequence[TensorType], sizes: Sizes, open_: Open) -> list[TensorType]:
    values: list[Any] = []
    for k, type in enumerate(types):
        if k in operation.host:
            values.append(known_value(operation.sources[k], sizes, open_))
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
