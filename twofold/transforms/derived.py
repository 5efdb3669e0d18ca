"""Operations derived from other operations: ``pullback``, the gradient of one input, and ``vmap``, a batched call.

Both have the name of the original operation among their attributes, so one entry serves all operations. Both may be
derived again: a pullback has a pullback, and a batched call may be batched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from twofold.cache import Cache
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_bytes
from twofold.ir.node import Attributes, Node
from twofold.ir.op import REGISTRY, CompositeOp, CustomOp, DerivedOp, Op, register
from twofold.ir.sizes import Symbol, symbolic_type
from twofold.ir.types import TensorType, tensor_type, type_from_code
from twofold.ops.base import ops
from twofold.transforms.gradient_forms import WrittenForm, form_of, rows_of, with_initial_value
from twofold.transforms.movement import Movement, movement_in
from twofold.transforms.reverse import closed_graph, split_vjp
from twofold.transforms.sparse_rows import is_sparse
from twofold.transforms.stabilize import stabilize

_SLOTS = {"cotangent": -1, "output": -2}

__all__ = [
    "PULLBACK",
    "PULLBACK_BLOCKS",
    "PULLBACK_CHAIN",
    "PULLBACK_ROWS",
    "VMAP",
    "Pullback",
    "Pullbacks",
    "Traits",
    "graph_of_entry",
    "pullback_chain",
    "pullback_nodes",
    "pullback_rows",
    "pullbacks_of",
    "stable_graph",
    "traits_of",
]


def stable_graph(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> Graph:
    """The closed primitive graph that one call of ``op`` computes, after ``stabilize``.

    Stable formulas change bits, so they are chosen here, before the op-by-op and the fused tier part.
    """
    graph = closed_graph(op, attrs, types)
    return graph if isinstance(op, _Derived) else stabilize(graph)


def graph_of_entry(entry: tuple[Any, ...]) -> Graph:
    """The closed graph of an instruction ``(op instance, operands, op, attributes, _, types)`` of the core."""
    instance, _, op, attrs, _, types = entry
    if instance is not None:
        graph: Graph = instance.graph
        return graph
    return stable_graph(op, attrs, [symbolic_type(type_from_code(*type)) for type in types])


class Traits(NamedTuple):
    """Properties of a call that the core asks for.

    Attributes:
        defers: Whether a live result is deferred until it is read: a large table of zeros with a few rows added.
        checks: Whether it is computed even if its result is dead, as wrong indices and values are always reported.
        movement: The data movement that it is, if it computes nothing.
    """

    defers: bool
    checks: bool
    movement: Movement | None


def traits_of(op: Op, graph: Graph) -> Traits:
    """The properties of a call of ``op`` that computes ``graph``.

    A gradient does not report wrong indices once more: the call that it differentiates has checked them.
    """
    sparse = is_sparse(graph.outputs[0], sum(type.nbytes for type in graph.input_types))
    checked = isinstance(op, CompositeOp) and op.checked_above
    checks = not checked and any(isinstance(node.op, CustomOp) and node.op.checks for node in graph.nodes())
    return Traits(sparse, checks, movement_in(graph))


class Pullback(NamedTuple):
    """The call that computes the cotangent of one input of a call, or a value that several of them share.

    Attributes:
        attrs: The attributes of the ``pullback``.
        graph: What it computes.
        slots: What its inputs are: -1 the cotangent of the result, -2 the result, ``k`` the input ``k``, and from the
            number of inputs on the shared values.
        form: How a backward pass sums it with others, see ``gradient_forms``.
    """

    attrs: Attributes
    graph: Graph
    slots: tuple[int, ...]
    form: WrittenForm


Pullbacks = dict[int, "Pullback | NotImplementedError"]
"""Calls by what they compute: the cotangent of an input, by its number, or a shared value, numbered behind these."""


def _nbytes(key: Any, entry: tuple[Attributes, Pullbacks]) -> int:
    pullbacks = [one for one in entry[1].values() if isinstance(one, Pullback)]
    return 1024 + sum(1024 + graph_bytes(one.graph) for one in pullbacks)


# The attributes are kept alive: a key has the addresses of some, which must not be reused.
_pullbacks: Cache[tuple[Attributes, Pullbacks]] = Cache("pullbacks", 1, _nbytes)


def pullbacks_of(
    op: Op,
    attrs: Attributes,
    types: tuple[TensorType, ...],
    wrt: tuple[int, ...],
    graph: Graph | None = None,
) -> Pullbacks:
    """The pullbacks of some inputs of a call, and the values that they share.

    Args:
        op: The operation of the call.
        attrs: Its attributes.
        types: The types of its inputs.
        wrt: The inputs whose pullbacks are returned.
        graph: The closed graph of the call, if it is at hand; the result is not cached then.

    Returns:
        A shared value before the pullbacks that read it. An input to which no gradient flows is left out; one whose
        gradient is not implemented has the error in place of its pullback.
    """
    if graph is not None:
        return _build_pullbacks(op, attrs, types, wrt, graph)
    if not getattr(op, "differentiable", True):
        return {}
    key = op.name, _exact_key(attrs), types, wrt
    cached = _pullbacks.get(key)
    if cached is None:
        built = _build_pullbacks(op, attrs, types, wrt, stable_graph(op, attrs, types))
        cached = _pullbacks.keep(key, (attrs, built))
    return cached[1]


def pullback_nodes(op: Op, attrs: Attributes, types: tuple[TensorType, ...]) -> Iterator[Node]:
    """The nodes of all gradients of a call."""
    wrt = tuple(k for k, type in enumerate(types) if type.dtype.is_differentiable)
    for one in pullbacks_of(op, attrs, types, wrt).values():
        if isinstance(one, Pullback):
            yield from one.graph.nodes()


def _build_pullbacks(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], wrt: tuple[int, ...], graph: Graph
) -> Pullbacks:
    graphs, count = split_vjp(op, attrs, graph, wrt), len(types)
    written = tuple((type.dtype, type.shape, type.weak) for type in types)
    flags = tuple(k in wrt for k in range(count))
    pullbacks: Pullbacks = {}
    sparse = op.sparse_gradient is not None and op.sparse_gradient(attrs)
    for index, found in graphs.items():
        if isinstance(found, NotImplementedError):
            pullbacks[index] = found
            continue
        gradient, named_slots = found
        slots = tuple(_SLOTS[slot] if isinstance(slot, str) else slot for slot in named_slots)
        alone = index < count and all(slot < count for slot in slots)
        own = (op.name, tuple(attrs), written, index, () if alone else flags)
        pullbacks[index] = Pullback(own, gradient, slots, (*form_of(gradient, slots, alone), sparse))
    return pullbacks


def _exact_key(value: Any) -> str:
    """A string that is equal for the same attributes only, so that 1, 1.0 and True differ, as in the core.

    Strings are compared without Python code, in which another thread could change the table.
    """
    if isinstance(value, tuple):
        return f"({','.join(map(_exact_key, value))})"
    return value.content_key if isinstance(value, Symbol) else repr(value)


class _Derived(DerivedOp):
    """An operation whose graphs are made from graphs that are stabilised already."""

    differentiable = True


def _pullback(attrs: Attributes) -> Pullback:
    """The pullback that the attributes of a ``_PullbackOp`` say."""
    name, inner, written, index, flags = attrs
    types = tuple(tensor_type(*type) for type in written)
    wrt = tuple(k for k, flag in enumerate(flags) if flag) or (index,)
    found = pullbacks_of(REGISTRY[name], inner, types, wrt)[index]
    assert isinstance(found, Pullback)
    return found


class _PullbackOp(_Derived):
    """The cotangent of one input; attributes ``(name, attributes, input types, index, flags)``.

    ``index`` is that of the input, or of a shared value. ``flags`` tell for which inputs gradients are computed
    together, with shared values; they are empty where nothing is shared.
    """

    name = "pullback"
    checked_above = True
    is_gradient = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The gradient graph on these inputs, which are its slots."""
        return self.result(_pullback(attrs).graph, inputs).inline(inputs)[0]

    def result(self, graph: Graph, inputs: Sequence[Node]) -> Graph:
        """What this operation computes of the gradient ``graph``."""
        return graph


class _PullbackRowsOp(_PullbackOp):
    """The rows that the pullback with the same attributes sums; its form is ``GradientKind.ROWS``."""

    name = "pullback_rows"

    def result(self, graph: Graph, inputs: Sequence[Node]) -> Graph:
        """The operand of the sum."""
        return rows_of(graph)


class _PullbackBlocksOp(_PullbackOp):
    """The sum of several calls of the pullback with the same attributes; its form is ``GradientKind.BLOCK``."""

    name = "pullback_blocks"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The sum in order; inputs are those of each call, and one more behind if there is a sum to go on from."""
        slots = len(_pullback(attrs).slots)
        each = [inputs[k : k + slots] for k in range(0, len(inputs) + 1 - slots, slots)]
        before = inputs[len(each) * slots :]
        return reduce(ops.add, [*before, *[PULLBACK.build(attrs, own) for own in each]])


class _PullbackChainOp(_PullbackOp):
    """The pullback with the same attributes accumulated into a further input; its form is ``GradientKind.CHAIN``."""

    name = "pullback_chain"
    accumulates = True

    def result(self, graph: Graph, inputs: Sequence[Node]) -> Graph:
        """The accumulation."""
        return with_initial_value(graph, input_node(len(inputs) - 1, inputs[-1].type))


class _Vmap(_Derived):
    """A batched call; attributes ``(name, attributes, flags)``: flagged inputs have the batch axis."""

    name = "vmap"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The call's graph, batched."""
        from twofold.transforms.vmap import batch_graph, sample_type

        name, inner, flags = attrs
        types = [
            sample_type(node.type) if flag else node.type for node, flag in zip(inputs, flags, strict=True)
        ]
        ((result, is_batched),) = batch_graph(stable_graph(REGISTRY[name], inner, types), inputs, flags)
        if is_batched:
            return result
        size = next(node.shape[0] for node, flag in zip(inputs, flags, strict=True) if flag)
        return REGISTRY["broadcast_to"].build(((size, *result.shape),), (result,))


PULLBACK = register(_PullbackOp())
PULLBACK_ROWS = register(_PullbackRowsOp())
PULLBACK_BLOCKS = register(_PullbackBlocksOp())
PULLBACK_CHAIN = register(_PullbackChainOp())
VMAP = register(_Vmap())


def pullback_rows() -> Op:
    """The operation that computes the rows that a pullback sums."""
    return PULLBACK_ROWS


def pullback_blocks() -> Op:
    """The operation that adds pullbacks which are blocks inside zeros."""
    return PULLBACK_BLOCKS


def pullback_chain() -> Op:
    """The operation of a pullback that accumulates into an initial value."""
    return PULLBACK_CHAIN
