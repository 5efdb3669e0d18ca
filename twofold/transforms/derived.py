"""Operations derived from other operations: the pullbacks of their inputs, and ``vmap``, a batched call.

Both name the operation that they come from in their attributes, so one entry serves all operations, and both
may be derived again: a pullback has a pullback, and a batched call may be batched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from twofold.cache import Cache
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_bytes
from twofold.ir.node import Attributes, Node
from twofold.ir.op import REGISTRY, CompositeOp, CustomOp, DerivedOp, Op, register
from twofold.ir.sizes import Symbol, symbolic_type
from twofold.ir.types import TensorType, tensor_type, type_from_code
from twofold.transforms.factors import Form, begun_at, form_of, rows_of
from twofold.transforms.movement import Movement, movement_in
from twofold.transforms.reverse import closed_graph, vjp_pieces
from twofold.transforms.sparse_rows import is_sparse
from twofold.transforms.stabilize import stabilize

_USED = {"cotangent": -1, "output": -2}

__all__ = [
    "PULLBACK",
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
    """The closed primitive graph that one call of ``op`` computes.

    It is stabilised here, before any tier sees it, so that a rule that changes bits changes them in both.
    """
    graph = closed_graph(op, attrs, types)
    return graph if isinstance(op, _Derived) else stabilize(graph)


def graph_of_entry(entry: tuple[Any, ...]) -> Graph:
    """The closed graph of an entry that the core describes."""
    instance, _, op, attrs, _, types = entry
    if instance is not None:
        graph: Graph = instance.graph
        return graph
    return stable_graph(op, attrs, [symbolic_type(type_from_code(*type)) for type in types])


class Traits(NamedTuple):
    """What the core asks of a call: how its result is kept, whether it may fail, and what it moves."""

    defers: bool
    """Whether a result that lives is kept as its call until it is read: a table with a few sums of rows."""
    checks: bool
    """Whether it is computed even if nobody reads its result, as wrong indices and values are always reported."""
    movement: Movement | None


def traits_of(op: Op, graph: Graph) -> Traits:
    """Those of a call of ``op`` that computes ``graph``.

    A gradient that reads indices again reports none, as the call above it has checked them.
    """
    sparse = is_sparse(graph.outputs[0], sum(type.nbytes for type in graph.input_types))
    checked = isinstance(op, CompositeOp) and op.checked_above
    checks = not checked and any(isinstance(node.op, CustomOp) and node.op.checks for node in graph.nodes())
    return Traits(sparse, checks, movement_in(graph))


class Pullback(NamedTuple):
    """The cotangent of one input of a call as a call itself, or a value that several of them read.

    ``slots`` says what its inputs are: -1 the cotangent of the result, -2 the result, k the k-th input, and from the
    number of inputs on the values that are shared. ``form`` is how a backward pass may combine it with others.
    """

    attrs: Attributes
    graph: Graph
    slots: tuple[int, ...]
    form: Form


Pullbacks = dict[int, "Pullback | NotImplementedError"]
"""Calls by what they give: the cotangent of an input, by its number, or a shared value, numbered after the inputs."""


def _cost(key: Any, kept: tuple[Attributes, Pullbacks]) -> int:
    made = [one for one in kept[1].values() if isinstance(one, Pullback)]
    return 1024 + sum(1024 + graph_bytes(one.graph) for one in made)


# With the attributes: some are objects, and a key has their addresses, which may mean no others meanwhile.
_pullbacks: Cache[tuple[Attributes, Pullbacks]] = Cache("pullbacks", 1, _cost)


def pullbacks_of(
    op: Op,
    attrs: Attributes,
    types: tuple[TensorType, ...],
    wanted: tuple[int, ...],
    graph: Graph | None = None,
) -> Pullbacks:
    """The pullbacks of the inputs ``wanted`` of a call on inputs of ``types``; none where no gradient flows.

    What several of them need is computed once. An input whose gradient has no formula has the error in its place.
    """
    if graph is not None:
        return _made_pullbacks(op, attrs, types, wanted, graph)
    if not getattr(op, "differentiable", True):
        return {}
    key = op.name, _exactly(attrs), types, wanted
    kept = _pullbacks.get(key)
    if kept is None:
        made = _made_pullbacks(op, attrs, types, wanted, stable_graph(op, attrs, types))
        kept = _pullbacks.keep(key, (attrs, made))
    return kept[1]


def pullback_nodes(op: Op, attrs: Attributes, types: tuple[TensorType, ...]) -> Iterator[Node]:
    """All that the gradients of a call compute."""
    wanted = tuple(k for k, type in enumerate(types) if type.dtype.is_differentiable)
    for one in pullbacks_of(op, attrs, types, wanted).values():
        if isinstance(one, Pullback):
            yield from one.graph.nodes()


def _made_pullbacks(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], wanted: tuple[int, ...], graph: Graph
) -> Pullbacks:
    pieces, count = vjp_pieces(op, attrs, graph, wanted), len(types)
    written = tuple((type.dtype, type.shape, type.weak) for type in types)
    flags = tuple(k in wanted for k in range(count))
    made: Pullbacks = {}
    for index, piece in pieces.items():
        if isinstance(piece, NotImplementedError):
            made[index] = piece
            continue
        gradient, used = piece
        slots = tuple(_USED[slot] if isinstance(slot, str) else slot for slot in used)
        alone = index < count and all(slot < count for slot in slots)
        own = (op.name, tuple(attrs), written, index, () if alone else flags)
        made[index] = Pullback(own, gradient, slots, form_of(gradient, slots, alone))
    return made


def _exactly(value: Any) -> str:
    """A string that tells attributes from all others, also 1, 1.0 and True, as the core does.

    As a key it is compared without Python code, in which another thread could change the table.
    """
    if isinstance(value, tuple):
        return f"({','.join(map(_exactly, value))})"
    return value.content_key if isinstance(value, Symbol) else repr(value)


class _Derived(DerivedOp):
    """An operation whose graphs are made from stabilised ones."""

    differentiable = True


class _PullbackOp(_Derived):
    """Attributes ``(name, attributes, input types, index, flags)`` of the call and its input.

    The flags say with which inputs it shares values; there are none where it shares nothing.
    """

    name = "pullback"
    checked_above = True
    is_gradient = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The gradient graph on these inputs, the slots that it uses."""
        name, inner, written, index, flags = attrs
        types = tuple(tensor_type(*type) for type in written)
        wanted = tuple(k for k, flag in enumerate(flags) if flag) or (index,)
        found = pullbacks_of(REGISTRY[name], inner, types, wanted)[index]
        assert isinstance(found, Pullback)
        return self.result(found.graph, inputs).inline(inputs)[0]

    def result(self, graph: Graph, inputs: Sequence[Node]) -> Graph:
        """What is computed of a gradient."""
        return graph


class _PullbackRowsOp(_PullbackOp):
    """The rows that the pullback with the same attributes adds up, if it is of the form ``Kind.ROWS``."""

    name = "pullback_rows"

    def result(self, graph: Graph, inputs: Sequence[Node]) -> Graph:
        """The rows behind leading axes."""
        return rows_of(graph)


class _PullbackChainOp(_PullbackOp):
    """The pullback with the same attributes, if it is of the form ``Kind.CHAIN``, begun with a further input."""

    name = "pullback_chain"
    accumulates = True

    def result(self, graph: Graph, inputs: Sequence[Node]) -> Graph:
        """The sum with what it begins with."""
        return begun_at(graph, input_node(len(inputs) - 1, inputs[-1].type))


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
        shared: Any = result
        expanded: Node = REGISTRY["broadcast_to"].build(((size, *shared.shape),), (shared,))
        return expanded


PULLBACK = register(_PullbackOp())
PULLBACK_ROWS = register(_PullbackRowsOp())
PULLBACK_CHAIN = register(_PullbackChainOp())
VMAP = register(_Vmap())


def pullback_rows() -> Op:
    """The operation for the rows that a pullback adds up."""
    return PULLBACK_ROWS


def pullback_chain() -> Op:
    """The operation for a pullback that goes on from a sum."""
    return PULLBACK_CHAIN
