"""Operations derived from other operations: the pullback of one input, and a call for every sample.

Both name the operation that they come from in their attributes, so one entry serves all operations, and both
may be derived again: a pullback has a pullback, and a call for every sample of samples is one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold.autodiff.factors import Form, form_of
from twofold.autodiff.reverse import closed_graph, vjp_of
from twofold.cache import Cache
from twofold.ir.graph import Graph, graph_bytes
from twofold.ir.node import Attributes, Node
from twofold.ir.op import REGISTRY, Op, register
from twofold.ir.types import TensorType, tensor_type
from twofold.passes.stabilize import stabilize

_USED = {"cotangent": -1, "output": -2}

__all__ = ["EACH_SAMPLE", "PULLBACK", "Pullback", "pullback_of", "stable_graph"]


def stable_graph(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> Graph:
    """The closed primitive graph that one call of ``op`` computes.

    It is stabilised here, before any tier sees it, so that a rule that changes bits changes them in both.
    """
    graph = closed_graph(op, attrs, types)
    return graph if isinstance(op, _Derived) else stabilize(graph)


class Pullback(NamedTuple):
    """The cotangent of one input of a call as a call itself.

    ``slots`` says what its inputs are: -1 the cotangent of the result, -2 the result, k the k-th input. ``form`` is how
    a backward pass may combine it with others.
    """

    attrs: Attributes
    graph: Graph
    slots: tuple[int, ...]
    form: Form


def _cost(key: Any, found: tuple[Pullback | None]) -> int:
    return 1024 if found[0] is None else 1024 + graph_bytes(found[0].graph)


_pullbacks: Cache[tuple[Pullback | None]] = Cache("pullbacks", 1, _cost)


def _pullback(name: str, attrs: Attributes, types: tuple[TensorType, ...], index: int) -> Pullback | None:
    key = name, attrs, types, index
    found = _pullbacks.get(key)
    if found is None:
        found = _pullbacks.keep(key, (_made_pullback(*key),))
    return found[0]


def _made_pullback(
    name: str, attrs: Attributes, types: tuple[TensorType, ...], index: int
) -> Pullback | None:
    op = REGISTRY[name]
    if not getattr(op, "differentiable", True):
        return None
    return pullback_of(op, attrs, types, index, stable_graph(op, attrs, types))


def pullback_of(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], index: int, graph: Graph | None = None
) -> Pullback | None:
    """The pullback of input ``index`` of a call on inputs of ``types``; None if no gradient flows there."""
    if graph is None:
        return _pullback(op.name, _Exactly(attrs), types, index)
    found = vjp_of(op, attrs, graph, index)
    if found is None:
        return None
    gradient, used = found
    slots = tuple(_USED[slot] if isinstance(slot, str) else slot for slot in used)
    written = tuple((type.dtype, type.shape, type.weak) for type in types)
    return Pullback((op.name, tuple(attrs), written, index), gradient, slots, form_of(gradient, slots))


class _Exactly(tuple[Any, ...]):
    """Attributes as a key that tells 1, 1.0 and True apart, as the core does."""

    def _typed(self) -> str:
        return repr(tuple(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Exactly) and self._typed() == other._typed()

    def __hash__(self) -> int:
        return hash(self._typed())


class _Derived(Op):
    """An operation whose graphs are made from stabilised ones."""

    kind = "composite"
    differentiable = True


class _PullbackOp(_Derived):
    """Attributes ``(name, attributes, input types, index)`` of the call and its input."""

    name = "pullback"
    checked_above = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The gradient graph on these inputs, the slots that it uses."""
        name, inner, written, index = attrs
        types = tuple(tensor_type(*type) for type in written)
        found = _pullback(name, _Exactly(inner), types, index)
        assert found is not None
        return found.graph.inline(inputs)[0]


class _EachSample(_Derived):
    """A call for every sample; attributes ``(name, attributes, flags)``: flagged inputs hold samples."""

    name = "each_sample"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The call's graph, batched."""
        from twofold.autodiff.batch import batch_graph, without_samples

        name, inner, flags = attrs
        types = [
            without_samples(node.type) if flag else node.type
            for node, flag in zip(inputs, flags, strict=True)
        ]
        ((result, has_samples),) = batch_graph(stable_graph(REGISTRY[name], inner, types), inputs, flags)
        if has_samples:
            return result
        size = next(node.shape[0] for node, flag in zip(inputs, flags, strict=True) if flag)
        shared: Any = result
        spread: Node = REGISTRY["broadcast_to"].build(((size, *shared.shape),), (shared,))
        return spread


PULLBACK = register(_PullbackOp())
EACH_SAMPLE = register(_EachSample())
