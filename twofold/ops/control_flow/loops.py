"""``loop``: a closed graph run again and again, and its gradient, which is a loop in the other direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold.ir.bind import input_node, is_constant, is_input
from twofold.ir.graph import Graph, interned, rewrite
from twofold.ir.interpret import evaluate
from twofold.ir.node import Attributes, Node, topological
from twofold.ir.op import ControlFlowOp, ElementwiseOp, SourceOp, ViewOp, register
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ir.views import below, below_reshapes
from twofold.ops.base import apply, filled, ops
from twofold.ops.control_flow.bounded_loops import LimitedLoop, sized_gradient
from twofold.ops.control_flow.programs import (
    ITERATIONS_TYPE,
    Backward,
    LoopSpec,
    inputs_below,
    is_differentiable,
    renumbered,
    results_of,
    run,
    zeros,
)
from twofold.ops.indexing.row_products import Cotangent, Factors, Share


class Loop(ControlFlowOp):
    """The last carried values, the stacked rows, and the number of iterations, of a loop (see ``LoopSpec``).

    Inputs: whether to start at all (bool, if conditional), how many iterations (int64, if counted), then those of
    the body, with arrays in place of rows. Rows of iterations that are not made are zero. Attributes ``(LoopSpec,)``.
    """

    name = "loop"

    def results(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        spec = attrs[0]
        types = [node.type for node in spec.body.outputs]
        carried, rows = types[: spec.carry], types[spec.carry : spec.carry + spec.ys]
        for position in spec.in_place:
            carried[position] = spec.body.input_types[position]
        return (*carried, *[tensor_type(t.dtype, (spec.limit, *t.shape)) for t in rows], ITERATIONS_TYPE)

    def graphs(self, attrs: Attributes) -> tuple[Graph, ...]:
        return (attrs[0].body,)

    def nested(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[tuple[Any, ...], list[Any]]:
        spec = attrs[0]
        types = spec.body.input_types
        carried = [node.type.nbytes for node in spec.body.outputs[: spec.carry]]
        placed = [
            number
            for k in spec.in_place
            for number in (types[k].nbytes, types[k].nbytes // types[k].shape[0])
        ]
        read = [type.nbytes for type in types[spec.carry : spec.carry + spec.xs]]
        written = [node.type.nbytes for node in spec.body.outputs[spec.carry :]][: spec.ys]
        counts = len(carried), len(read), len(written), spec.consts
        form = (spec.descending, spec.conditional, spec.counted, *counts, spec.in_place)
        return form, [-1 if spec.limit is None else spec.limit, *carried, *read, *written, *placed]

    def results_vjp(
        self, node: Node, cotangents: Sequence[Node | None], backward: Backward
    ) -> Sequence[Share]:
        spec = node.attrs[0]
        if spec.limit is None:
            return _unlimited_vjp(node, cotangents, backward)
        return _LoopGradient(node, cotangents, backward).shares()

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        spec = attrs[0]
        body = spec.body
        rest = list(arrays[spec.first :])
        carried, rows = rest[: spec.carry], rest[spec.carry : spec.carry + spec.xs]
        count = int(arrays[spec.first - 1]) if spec.counted else spec.limit
        most = count if spec.limit is None else min(max(count, 0), spec.limit)
        types = self.results(attrs, ())
        written = [numpy.zeros(t.shape, t.dtype.numpy) for t in types[spec.carry : -1]]
        go_on, made = not spec.conditional or bool(arrays[0]), 0
        while go_on and (most is None or made < most):
            row = most - 1 - made if spec.descending else made
            found = evaluate(body, [*carried, *[r[row] for r in rows], *rest[spec.carry + spec.xs :]])
            carried = found[: spec.carry]
            for target, value in zip(written, found[spec.carry :]):
                target[row] = value
            go_on = not spec.conditional or bool(found[-1])
            made += 1
        return [*carried, *written, numpy.asarray(made)]


class _LoopGradient:
    """Builds the loop that computes the cotangents of a loop's inputs."""

    def __init__(self, node: Node, cotangents: Sequence[Node | None], backward: Backward) -> None:
        spec: LoopSpec = node.attrs[0]
        self.node, self.spec, self.cotangents, self.backward = node, spec, cotangents, backward
        types = spec.body.input_types
        self.primal = [input_node(k, type) for k, type in enumerate(types)]
        positions = [k for k, type in enumerate(types) if is_differentiable(type)]
        self.carried = [k for k in positions if k < spec.carry]
        self.read = [k for k in positions if spec.carry <= k < spec.carry + spec.xs]
        self.fixed = [k for k in positions if k >= spec.carry + spec.xs]
        self.numbers = len(types)

    def _fresh(self, type: TensorType) -> Node:
        made = input_node(self.numbers, type)
        self.numbers += 1
        return made

    def shares(self) -> list[Share]:
        """The cotangents of all inputs of the node."""
        spec, primal = self.spec, self.primal
        outputs = spec.body.outputs
        ahead = [self._fresh(primal[k].type) for k in self.carried]
        row_indices = [k for k in range(spec.carry, spec.carry + spec.ys) if self.cotangents[k] is not None]
        row_seeds = [self._fresh(outputs[k].type) for k in row_indices]
        wanted = [*self.carried, *self.read, *self.fixed]
        roots = [*[outputs[k] for k in self.carried], *[outputs[k] for k in row_indices]]
        arrived = self.backward(roots, [*ahead, *row_seeds], [primal[k] for k in wanted], {})
        fixed_terms = {k: cotangent.in_order() for k, cotangent in zip(wanted, arrived) if k in self.fixed}
        found: dict[int, Any] = {
            k: cotangent.plain if k in fixed_terms else cotangent.total()
            for k, cotangent in zip(wanted, arrived)
        }
        read = [k for k in self.read if found[k] is not None]
        fixed = [k for k in self.fixed if found[k] is not None]
        sums = [self._fresh(primal[k].type) for k in fixed]
        results: list[Node] = [
            *[zeros(primal[k].type) if found[k] is None else found[k] for k in self.carried],
            *[apply("add", total, found[k]) for total, k in zip(sums, fixed)],
            *[found[k] for k in read],
        ]
        factors = [
            side for terms in fixed_terms.values() for pair in terms for side in pair[:2] if side is not None
        ]
        seeds = dict(zip([s.id for s in row_seeds], row_indices))
        made, stacked = self._run(results, factors, ahead, sums, seeds, fixed)
        shares: list[Share] = [None] * len(self.node.inputs)
        computed = dict(zip([*self.carried, *fixed, *read], made))
        for k, result in computed.items():
            shares[spec.first + k] = result
        for k, terms in fixed_terms.items():
            pairs = [Factors(None if term.left is None else next(stacked), next(stacked)) for term in terms]
            if pairs:
                total = shares[spec.first + k] = Cotangent(computed.get(k))
                for kind in sorted({term.kind for term in terms}):
                    group = [pair for pair, term in zip(pairs, terms) if term.kind == kind]
                    total.keep(0, self._all_rows(group, primal[k].shape if kind[1] else None, kind[2]))
        return shares

    def _all_rows(self, pairs: list[Factors], shape: Shape | None, block: bool) -> Factors:
        """The factors of all iterations, stacked for each call of the body, as those of one call, in order."""

        def joined(sides: list[Node]) -> Node:
            whole = sides[0] if len(sides) == 1 else ops.cat(sides, 1)
            if self.spec.descending:
                whole = ops.flip(whole, (0,))
            rows: Node = ops.reshape(whole, (whole.shape[0] * whole.shape[1], whole.shape[2]))
            return rows

        left = [pair.left for pair in pairs if pair.left is not None]
        return Factors(
            joined(left) if left else None, joined([pair.right for pair in pairs]), shape, block=block
        )

    def _run(
        self,
        results: list[Node],
        factors: list[Node],
        ahead: list[Node],
        sums: list[Node],
        seeds: dict[int, int],
        fixed: list[int],
    ) -> tuple[list[Node], Iterator[Node]]:
        """The results of the loop whose body computes ``results`` and ``factors``, and the stacked factors."""
        spec, primal = self.spec, self.primal
        whole, saved, forward = self._with_saved([*results, *factors])
        results, factors = whole[: len(results)], whole[len(results) :]
        used = inputs_below(whole)
        there = {node.id: rows for node, rows in saved}  # zeros in iterations that are not made
        values = self.node.inputs[spec.first :]
        read = range(spec.carry, spec.carry + spec.xs)
        saved += [(primal[k], values[k]) for k in read if primal[k].id in used]
        for number, k in seeds.items():
            node = next(n for n in topological(whole) if n.id == number) if number in used else None
            if node is not None:
                seed = self.cotangents[k]
                assert seed is not None
                saved.append((node, seed))
        same = [k for k in range(spec.carry + spec.xs, len(primal)) if primal[k].id in used]
        computed = [node for node in factors if below_reshapes(node).id not in there]
        body_rows = [node for node, _ in saved]
        body = renumbered([*results, *computed], [*ahead, *sums, *body_rows, *[primal[k] for k in same]])
        counted = spec.conditional or spec.counted
        carried = len(ahead) + len(sums)
        reverse = LoopSpec(body, carried, len(body_rows), spec.limit, not spec.descending, False, counted)
        count = [forward[-1] if spec.conditional else self.node.inputs[spec.first - 1]] if counted else []
        begin: list[Any] = [
            zeros(primal[k].type) if self.cotangents[k] is None else self.cotangents[k] for k in self.carried
        ]
        # -0.0 is what leaves every number as it is when added to
        begin += [filled(-0.0, primal[k].dtype, primal[k].shape) for k in fixed]
        inputs = [*count, *begin, *[rows for _, rows in saved], *[values[k] for k in same]]
        made = run("loop", (interned(reverse),), inputs)
        fresh = iter(made[len(results) :])
        stacked = (
            ops.reshape(there[shown.id], (spec.limit, *node.shape))
            if (shown := below_reshapes(node)).id in there
            else next(fresh)
            for node in factors
        )
        return made, stacked

    def _with_saved(self, whole: list[Node]) -> tuple[list[Node], list[tuple[Node, Node]], list[Node]]:
        """Nodes that read rows for values worth keeping, the rows and what they hold, and the loop that writes them."""
        spec, primal = self.spec, self.primal
        written = spec.body.outputs[spec.carry : spec.carry + spec.ys]
        kept = _worth_keeping(whole, {node.id for node in primal}, {node.id for node in written})
        rows = [self._fresh(node.type) for node in kept]
        positions = {node.id: row for node, row in zip(kept, rows)}
        whole = list(rewrite(whole, lambda node: positions.get(node.id)))
        used = inputs_below(whole)
        starts = [primal[k] for k in range(spec.carry) if primal[k].id in used]
        forward = self._forward([*starts, *kept])
        saved = list(zip([*starts, *rows], forward[spec.carry + spec.ys : -1]))
        return whole, saved, forward

    def _forward(self, extra: Sequence[Node]) -> list[Node]:
        """The results of the loop itself, made to write ``extra`` as further rows."""
        spec = self.spec
        outputs = spec.body.outputs
        last = spec.carry + spec.ys
        body = Graph(spec.body.input_types, [*outputs[:last], *extra, *outputs[last:]])
        return run("loop", (spec.with_body(body),), self.node.inputs)


_RECOMPUTED = (SourceOp, ElementwiseOp, ViewOp)


def _shown(node: Node) -> Node | None:
    """The one value that a view or an operation with constants shows in another form, cheap to make again."""
    varying = {value.id: value for value in node.inputs if not _is_constant(value)}
    single = next(iter(varying.values())) if len(varying) == 1 else None
    if isinstance(node.op, ViewOp):
        return single
    return single if isinstance(node.op, ElementwiseOp) and len(node.inputs) > 1 else None


def _is_constant(node: Node) -> bool:
    return is_constant(below(node, lambda view: isinstance(view.op, ViewOp) and len(view.inputs) == 1))


def _worth_keeping(results: Sequence[Node], primal: set[int], written: set[int]) -> list[Node]:
    """Values of the body that its gradient reads and that are written anyway, or cost more than element-wise work."""
    known: dict[
        int, bool
    ] = {}  # by id, for what depends on the body's own inputs alone: whether it costs more
    wanted: dict[int, Node] = {}

    def keep(node: Node) -> None:
        while (shown := _shown(node)) is not None:
            node = shown
        if (
            node.id in known
            and (known[node.id] or node.id in written)
            and not isinstance(node.op, ControlFlowOp)
        ):
            wanted[node.id] = node

    for node in topological(results):
        if is_input(node):
            if node.id in primal:
                known[node.id] = False
        elif all(value.id in known for value in node.inputs):
            heavy = not isinstance(node.op, _RECOMPUTED)
            known[node.id] = heavy or any(known[value.id] for value in node.inputs)
        else:
            for value in node.inputs:
                keep(value)
    for node in results:
        keep(node)
    return list(wanted.values())


def _unlimited_vjp(
    node: Node, cotangents: Sequence[Node | None], backward: Backward
) -> Sequence[Node | None]:
    iterations = results_of(node)[-1]
    family = interned(LimitedLoop(node.attrs[0], [value.type for value in node.inputs]))
    return sized_gradient(family, iterations, node.inputs, cotangents, backward)


register(Loop())
