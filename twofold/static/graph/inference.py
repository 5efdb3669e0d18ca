"""What is known before anything runs: constants, whole numbers that follow from sizes, and the types of results.

The body of an operation runs once, on symbols of the sizes of its inputs, see ``twofold.ir.shape_inference``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy

from twofold import _core
from twofold.dtypes import DType, int64
from twofold.errors import GraphError, TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.graph import rebuild
from twofold.ir.node import Node
from twofold.ir.op import Assembly
from twofold.ir.shape_inference import UNKNOWN_RANK, OpenSizes, new_unknown_size, types_by, types_by_rank
from twofold.ir.sizes import Symbol
from twofold.ir.types import TensorType, tensor_type
from twofold.static.graph.context import local
from twofold.static.graph.graph import Operation, owner_of
from twofold.static.graph.graph_elements import Slot

Tensor = _core.Tensor
_FEW = 16
REFUSED = (TwofoldError, ArithmeticError, LookupError, TypeError, ValueError)
"""What a body raises for inputs that it does not take."""
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
    """The outputs of a body on its inputs; ``counter`` numbers the run for operations that sample."""
    if operation.body is None:
        raise GraphError(
            "a function of the host is called in a gradient that the program gives, and no run calls it there",
            "Compute the gradient with operations, or call py_func outside of it on what it needs.",
        )
    arguments = [*states, *[fill(item, values) for item in operation.arguments]]
    keywords = {key: fill(item, values) for key, item in operation.keywords.items()}
    if operation.is_random:
        keywords["counter"] = counter
    local.in_body += 1
    try:
        made = operation.body(*arguments, **keywords)
    finally:
        local.in_body -= 1
    return list(made) if isinstance(made, (list, tuple)) else [made]


class Numbers:
    """Whole numbers of which some are symbols, as the value of a tensor."""

    def __init__(self, array: Any, dtype: DType) -> None:
        self.array = array
        self.dtype = dtype
        self.shape = array.shape
        self.ndim = array.ndim


def whole_numbers(values: Any, dtype: DType) -> Any:
    """Numbers as an array, or as Numbers where some are symbols."""
    array = numpy.array(values, object)
    if any(isinstance(item, Symbol) for item in array.flat):
        return Numbers(array, dtype)
    return array.astype(dtype.numpy)


def known_value(source: Source) -> Any:
    """The value of a tensor that depends on constants and known sizes alone; raises Unforeseen for any other."""
    found = Values(None).of(source)
    if isinstance(found, Numbers):
        raise Unforeseen
    return found


def known_sizes_of(vector: Any) -> list[int | None] | None:
    """The sizes in a declared vector: each None where a run tells them, and None where it tells their number."""
    source = owner_of(vector)
    try:
        return [int(size) for size in (vector.numpy() if source is None else known_value(source))]
    except Unforeseen:
        count = vector.type_.shape[0]
        return [None] * count if count >= 0 else None


_AT_RUN: WeakKeyDictionary[Operation, dict[int, list[int]]] = WeakKeyDictionary()
"""Names of numbers that only a run will tell, by the tensors that hold them."""


class Values:
    """Values of tensors over open sizes; without them, only those that are the same in all runs."""

    def __init__(self, sizes: OpenSizes | None) -> None:
        self.sizes = sizes
        self._found: dict[Source, Any] = {}
        self.at_run = False
        """Whether a number was asked for that only a run will tell."""

    def of(self, source: Source) -> Any:
        """The value, as a bound tensor or as Numbers; raises Unforeseen."""
        if source not in self._found:
            try:
                self._found[source] = self._computed(source)
            except Unforeseen:
                self._found[source] = self._told_by_a_run(source)
        return self._found[source]

    def _told_by_a_run(self, source: Source) -> Any:
        owner, index = source
        type = owner.outputs[index].type_
        few = len(type.shape) <= 1 and all(0 <= size <= _FEW for size in type.shape)
        if self.sizes is None or type.dtype.kind not in "iu" or not few:
            raise Unforeseen
        self.at_run = True
        names = _AT_RUN.setdefault(owner, {}).get(index)
        if names is None:
            names = [new_unknown_size() for _ in range(type.shape[0] if type.shape else 1)]
            _AT_RUN[owner][index] = names
        symbols = numpy.array([self.sizes.number_at_run(name) for name in names], object)
        return Numbers(symbols.reshape(type.shape), type.dtype)

    def _computed(self, source: Source) -> Any:
        operation, index = source
        if operation.constant is not None:
            return operation.constant
        if operation.body is None or operation.updates or operation.is_random or operation.branches:
            raise Unforeseen
        if operation.type in ("Shape", "Size", "Rank", "ShapeN"):
            values = [self._typed(owner.outputs[k].type_) for owner, k in operation.sources]
        else:
            values = [self.of(item) for item in operation.sources]
            if any(isinstance(value, Numbers) for value in values):
                return self._evaluated(operation, values)[index]
        made = call_body(operation, values)[index]
        return made if isinstance(made, (Tensor, Numbers)) else _core.from_array(made, False)

    def _evaluated(self, operation: Operation, values: Sequence[Any]) -> list[Any]:
        """The outputs over Numbers; raises Unforeseen where only the value of a symbol tells how many there are."""
        sizes = self.sizes
        assert sizes is not None
        before, sizes.concretised = sizes.concretised, False
        try:
            found = evaluated(operation, values)
            if sizes.concretised:
                raise Unforeseen
            return found
        finally:
            sizes.concretised = before

    def _typed(self, type: TensorType) -> Node:
        """What stands for a tensor of which only the type is asked."""
        if type.shape == UNKNOWN_RANK or (self.sizes is None and any(size < 0 for size in type.shape)):
            raise Unforeseen
        return input_node(0, type if self.sizes is None else self.sizes.type_of(type))


def evaluated(operation: Operation, values: Sequence[Any]) -> list[Any]:
    """The outputs over Numbers: the nodes that the body makes, by their references on arrays of symbols.

    Raises Unforeseen where that gives no whole numbers.
    """
    given: list[Any] = []
    arrays = []
    for k, value in enumerate(values):
        if isinstance(value, Tensor) and value._is_symbolic:
            raise Unforeseen
        array = value.detach().numpy() if isinstance(value, Tensor) else getattr(value, "array", value)
        arrays.append(array)
        given.append(value if k in operation.host else input_node(k, tensor_type(value.dtype, array.shape)))
    try:
        found = []
        for made in call_body(operation, given):
            if isinstance(made, Node):
                made = whole_numbers(_value_of_node(made, arrays), made.dtype)
            found.append(made if isinstance(made, (Tensor, Numbers)) else _core.from_array(made, False))
        return found
    except (*REFUSED, AttributeError, AssertionError):
        raise Unforeseen from None


def _value_of_node(result: Node, arrays: Sequence[Any]) -> Any:
    (value,) = rebuild([result], lambda node, operands: _reference_of(node, operands, arrays))
    return value


def _reference_of(node: Node, operands: Sequence[Any], arrays: Sequence[Any]) -> Any:
    op: Any = node.op
    if op.name == "input":
        return arrays[node.attrs[0]]
    if op.name == "constant":
        return numpy.array(node.attrs[0], object)
    if op.kind == "source":
        return op.materialize(node.attrs, node.type)
    copies = getattr(op, "assembly", None) is Assembly.CONCATENATE
    if node.dtype.kind not in "iub" or not (copies or op.kind in ("elementwise", "reduction", "view")):
        raise Unforeseen
    if op.name == "cast":
        return _whole(operands[0]) if node.dtype.kind in "iu" else operands[0] != 0
    return op.reference(node.attrs, *operands)


def _whole(array: Any) -> Any:
    """Truth values as 0 and 1, whole numbers as they are."""
    array = numpy.asarray(array)
    return array.astype(numpy.int64) if array.dtype.kind == "b" else array


def type_of(value: Any) -> TensorType:
    """The type of a node, tensor or number that a body returned."""
    if isinstance(value, Node):
        return value.type
    if isinstance(value, Numbers):
        return tensor_type(value.dtype, value.shape)
    if isinstance(value, Tensor):
        value._realise()
        return value.type_
    array = numpy.asarray(value)
    return _core.from_array(array, False).type_


def counter_node(position: int) -> Node:
    """What stands for the number of a run, as input ``position``."""
    return input_node(position, tensor_type(int64))


def infer(operation: Operation, count: int = 1) -> list[TensorType]:
    """The types of an operation's outputs; raises the error of its body where the inputs do not fit.

    Where only a run can tell them there are ``count`` of one dtype.
    """
    types = [owner.outputs[index].type_ for owner, index in operation.sources]
    positions = [k for k in range(len(types)) if k not in operation.host]
    open_numbers = [False]

    def of_rank(ranked: list[TensorType]) -> list[TensorType]:
        given = dict(zip(positions, ranked))

        def rule(sizes: OpenSizes) -> list[TensorType]:
            values = Values(sizes)
            try:
                return _typed(operation, given, values)
            finally:
                open_numbers[0] |= values.at_run

        return types_by(rule, REFUSED)

    try:
        return types_by_rank([types[k] for k in positions], of_rank, REFUSED)
    except Unforeseen:
        pass
    except REFUSED:
        if not open_numbers[0]:
            raise
    return [tensor_type(_guess_dtype(operation, types), UNKNOWN_RANK)] * count


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
