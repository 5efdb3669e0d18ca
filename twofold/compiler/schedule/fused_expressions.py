"""Element-wise fusion: which values are materialised, and the fused expression that computes each of them.

All other values are computed inside the expressions of their users.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from twofold.compiler.lower.expression import operation_cost
from twofold.compiler.lower.values import LANES
from twofold.compiler.schedule.affine_maps import (
    ZERO,
    AffineExpr,
    AffineMap,
    NeedsLoopSplit,
    NotAffine,
    ViewResolver,
    compose,
    input_map,
    linearized,
    row_major,
)
from twofold.compiler.schedule.blocks import BlockReduction
from twofold.ir.bind import is_constant, is_input
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.op import LoopOp, TemplateOp
from twofold.ir.views import below_reshapes, is_reshape

STORED = ("reduction", "contraction", "custom", "host", "control_flow", "get_output")
"""Kinds of operations whose results are materialised."""

CHEAP = 8
"""Most instructions of a value that each of its users recomputes rather than loads."""

LARGEST_EXPRESSION = 2500
"""Most instructions of an expression; larger ones are split."""

Item = tuple[Node, AffineMap]


class Term:
    """An instruction of an expression.

    Attributes:
        kind: "load", "index", "constant" or "op", see ``compiler.lower.loopnest.Step``.
        node: The node that is computed or loaded.
        args: The terms that it reads.
        strides: Of a load, the stride along each loop axis, in elements of a dense buffer.
        offset: Of a load, the constant part of the linear index.
        dynamic: Of a load, pairs of a scalar term and its stride.
    """

    __slots__ = ("args", "dynamic", "kind", "node", "offset", "strides")

    def __init__(
        self,
        kind: str,
        node: Node,
        args: tuple[int, ...] = (),
        strides: tuple[int, ...] = (),
        offset: int = 0,
        dynamic: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.kind = kind
        self.node = node
        self.args = args
        self.strides = strides
        self.offset = offset
        self.dynamic = dynamic


class FusedExpression:
    """A materialised value with the expression that computes it.

    Attributes:
        root: The node of the value.
        kind: The kind of its operation, or "copy" for an output that equals an input or an earlier output.
        number: The position of the expression.
        output: Of a copy, the number of the output; else -1.
        domain: The lengths of its loop axes.
        reduced: For each of them, whether it is reduced.
        strides: The strides of the stored result, 0 along reduced axes.
        terms: The instructions.
        value: The term that is stored or reduced.
        cost: Its machine instructions, roughly.
    """

    __slots__ = ("cost", "domain", "kind", "number", "output", "reduced", "root", "strides", "terms", "value")

    def __init__(self, root: Node, kind: str, number: int, output: int = -1) -> None:
        self.root = root
        self.kind = kind
        self.number = number
        self.output = output
        self.domain: tuple[int, ...] = ()
        self.reduced: tuple[bool, ...] = ()
        self.strides: tuple[int, ...] = ()
        self.terms: list[Term] = []
        self.value = 0
        self.cost = 1

    @property
    def is_loop(self) -> bool:
        """Whether this is computed by a loop nest."""
        return self.kind not in ("contraction", "custom", "host", "control_flow", "get_output")

    @property
    def is_blocked(self) -> bool:
        """Whether this is the first step of a reduction in two steps, see ``schedule.blocks``."""
        return isinstance(self.root.op, BlockReduction) and self.output < 0

    @property
    def buffers(self) -> int:
        """An upper bound of the number of its buffers."""
        return 1 + sum(term.kind == "load" for term in self.terms)

    def loads(self) -> Iterable[Term]:
        """The terms that read memory."""
        return (term for term in self.terms if term.kind == "load")


class Analysis:
    """Chooses which values are materialised, and builds their expressions.

    Args:
        graph: The graph.
        fuse: Whether operations are fused at all.
        forced: Values that must be materialised.
    """

    def __init__(self, graph: Graph, fuse: bool = True, forced: Iterable[Node] = ()) -> None:
        self.graph = graph
        self.fuse = fuse
        self.order = graph.nodes()
        self.by_id = {node.id: node for node in self.order}
        self.views = ViewResolver(resolve=fuse)
        self.roots: dict[int, Node] = {}
        self._dense: dict[int, Node] = {}  # operands that are reshapes of a materialised value
        self._strided: dict[int, Node] = {}  # operands of matrix products that are strided views of one
        self.operands: dict[
            int, tuple[int, int, int]
        ] = {}  # their strides: batch, row, column of a matrix product
        self.rows: dict[
            tuple[int, int], tuple[Node, int, int]
        ] = {}  # by custom operation and operand: what holds the rows, offset, and stride
        self.users: dict[int, list[FusedExpression]] = {}
        self._costs: dict[int, int] = {}
        self._loads: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._epilogues: set[int] = set()
        self._forced = {node.id for node in forced}
        self._outputs = {node.id for node in graph.outputs}
        self._choose()
        self.expressions = self._expressions()

    # Materialised values

    def _choose(self) -> None:
        for node in self.order:
            if node.op.kind == "view":
                self.views.base(node)
        if self.fuse:
            self._measure()
            self._find_epilogues()
        owners: dict[int, set[int]] = {}
        for node in reversed(self.order):
            kind = node.op.kind
            if kind == "source":
                continue
            if node.id in self._outputs or node.id in self._forced or kind in STORED:
                self.roots[node.id] = node
            if kind == "get_output":
                continue
            if kind in ("contraction", "custom", "host", "control_flow"):
                strided = self.fuse and kind == "contraction" and not isinstance(node.op, TemplateOp)
                axis = node.op.row_axis(node.attrs) if self.fuse and isinstance(node.op, LoopOp) else None
                for number, operand in enumerate(node.inputs):
                    if strided and self._read_strided(operand):
                        continue
                    if axis is None or not self._read_rows(node, number, axis):
                        self._store_operand(operand)
                continue
            own = owners.get(node.id)
            if node.id not in self.roots:
                if own is None:
                    # a view that is folded into its users, or a dead value
                    continue
                if not self.fuse or not self._inline(node, own):
                    self.roots[node.id] = node
            if own is None or node.id in self.roots:
                own = {node.id}
            self._add_owners(node, own, owners)

    def _add_owners(self, node: Node, own: set[int], owners: dict[int, set[int]]) -> None:
        """Add the expressions that ``node`` is part of to the owners of its operands."""
        operands: Iterable[Node] = node.inputs
        if node.op.kind == "view" and self.views.base(node)[0] is not node:
            operands = (node,)
        for operand in operands:
            base, indices = self.views.base(operand)
            owners.setdefault(base.id, set()).update(own)
            for index in indices or ():
                for scalar, _ in index[2]:
                    owners.setdefault(self.views.base(scalar)[0].id, set()).update(own)
            spreads = (
                indices is not None
                and base.op.kind == "elementwise"
                and _repeats(base, indices, operand.shape)
            )
            if (spreads and not self._cheap(base)) or self._repeats_in_epilogue(node, operand, base):
                self.roots[base.id] = base

    def _find_epilogues(self) -> None:
        """Find the values that may be computed in the epilogue of a product."""
        found = self._epilogues
        for node in self.order:
            kind = node.op.kind
            if kind == "contraction" or (
                kind == "elementwise"
                and any(self.views.base(operand)[0].id in found for operand in node.inputs)
            ):
                found.add(node.id)

    def _repeats_in_epilogue(self, node: Node, operand: Node, base: Node) -> bool:
        """Whether an epilogue that computes ``node`` would recompute ``base`` for every few columns."""
        if base.op.kind != "elementwise" or node.id not in self._epilogues:
            return False
        return self._costs[base.id] > 2 and 1 < base.type.size * LANES <= operand.type.size

    def _inline(self, node: Node, own: set[int]) -> bool:
        """Whether ``node`` is computed inside the expressions of all its owners."""
        if node.op.kind == "view":
            return True
        if len(own) > 1 and not self._cheap(node):
            return False
        cost = operation_cost(node) if self.fuse else 1
        sizes, most = self._sizes, LARGEST_EXPRESSION - cost
        for owner in own:
            if sizes.get(owner, 0) > most:
                return False
        for owner in own:
            sizes[owner] = sizes.get(owner, 0) + cost
        return True

    def _cheap(self, node: Node) -> bool:
        return self._costs[node.id] <= CHEAP and self._loads[node.id] <= 2

    def _measure(self) -> None:
        """Instructions and loads to compute each value from inputs and results of reductions and products."""
        costs, loads = self._costs, self._loads
        for node in self.order:
            kind = node.op.kind
            if kind == "elementwise":
                cost, load = operation_cost(node), 0
                for value in node.inputs:
                    cost += costs[value.id]
                    load += loads[value.id]
                # common subexpressions are counted for each use, which may be exponential
                costs[node.id], loads[node.id] = min(cost, 1 << 20), min(load, 1 << 20)
            elif kind == "view":
                below = node.inputs[0].id
                costs[node.id], loads[node.id] = (
                    (0, 0) if self._same_along_rows(node) else (costs[below], loads[below])
                )
            else:
                costs[node.id] = 0
                loads[node.id] = 1 if node.shape and (kind != "source" or is_input(node)) else 0

    def _same_along_rows(self, node: Node) -> bool:
        """Whether runs of a view repeat one element, which a loop along them reads or computes once."""
        indices = self.views.base(node)[1]
        used = {axis for index in indices or () for axis, _ in index[1]}
        run, axis = 1, node.ndim - 1
        while axis >= 0 and axis not in used:
            run *= node.shape[axis]
            axis -= 1
        return indices is not None and axis >= 0 and run >= LANES

    def _read_strided(self, operand: Node) -> bool:
        """Let a matrix product read a strided view in the buffer of its base; False if strides cannot express it."""
        lies = self._lies(operand)
        if lies is None or lies[1]:
            return False
        base, _, strides = lies
        batch = [
            (operand.shape[axis], strides[axis])
            for axis in range(operand.ndim - 2)
            if operand.shape[axis] != 1
        ]
        if any(stride != size * inner for (_, stride), (size, inner) in pairwise(batch)):
            return False
        self._store(base)
        self._strided[operand.id] = base
        self.operands[operand.id] = (batch[-1][1] if batch else 0, strides[-2], strides[-1])
        return True

    def _lies(self, operand: Node) -> tuple[Node, int, list[int]] | None:
        """The value that ``operand`` is a strided view of, the offset, and the strides; None if it is no such view."""
        base, indices = self.views.base(operand)
        if indices is None:
            return None
        constant, terms, dynamic = linearized(indices, base.shape)
        base = below_reshapes(base)
        if base.op.kind == "view" or (base.op.kind == "source" and not is_input(base)):
            return None
        for start, stride in dynamic:
            if not is_constant(start):
                return None
            constant += stride * start.attrs[0]
        by_axis = dict(terms)
        return base, constant, [by_axis.get(axis, 0) for axis in range(operand.ndim)]

    def _read_rows(self, node: Node, number: int, axis: int) -> bool:
        """Let a custom operation read rows of an operand, from ``axis`` on, in the buffer of a larger value."""
        operand = node.inputs[number]
        lies = self._lies(operand)
        if lies is None:
            return False
        base, offset, strides = lies
        expected = 1
        for at in range(operand.ndim - 1, axis - 1, -1):
            if operand.shape[at] != 1:
                if strides[at] != expected:
                    return False
                expected *= operand.shape[at]
        outer = [(operand.shape[at], strides[at]) for at in range(axis) if operand.shape[at] != 1]
        if any(stride != size * inner for (_, stride), (size, inner) in pairwise(outer)):
            return False
        self._store(base)
        self.rows[node.id, number] = base, offset, outer[-1][1] if outer else expected
        return True

    def _store(self, base: Node) -> None:
        if not is_input(base):
            self.roots[base.id] = base

    def matrix_strides(self, operand: Node) -> tuple[int, int, int]:
        """Strides of an operand of a matrix product along batch, rows and columns."""
        rows, columns = operand.shape[-2:]
        return self.operands.get(operand.id, (rows * columns, columns, 1))

    def _store_operand(self, operand: Node) -> None:
        """Materialise an operand of a product or custom operation, if possible without a copy."""
        base = below_reshapes(operand)
        if base.op.kind not in ("view", "source") or is_input(base):
            self._store(base)
            if base is not operand:
                self._dense[operand.id] = base
            return
        self.roots[operand.id] = operand

    # Expressions

    def _expressions(self) -> list[FusedExpression]:
        expressions: list[FusedExpression] = []
        outputs_seen: set[int] = set()
        for node in self.order:
            if node.id in self.roots:
                expression = FusedExpression(node, node.op.kind, len(expressions))
                expressions.append(expression)
                if expression.is_loop:
                    _ExpressionBuilder(self, expression).build(node)
                else:
                    expression.domain = tuple(size for size in node.shape if size != 1)
                    expression.reduced = (False,) * len(expression.domain)
                    expression.strides = tuple(row_major(expression.domain))
        for number, node in enumerate(self.graph.outputs):
            if node.id in outputs_seen or (node.op.kind == "source" and node.id not in self.roots):
                expression = FusedExpression(node, "copy", len(expressions), number)
                expressions.append(expression)
                _ExpressionBuilder(self, expression).build(node)
            outputs_seen.add(node.id)
        for expression in expressions:
            for node_id in self.reads(expression):
                self.users.setdefault(node_id, []).append(expression)
        return expressions

    def reads(self, expression: FusedExpression) -> set[int]:
        """Ids of the materialised values that an expression reads."""
        if expression.is_loop:
            return {term.node.id for term in expression.loads()}
        return {value.id for value in self.stored_operands(expression)}

    def stored_operands(self, expression: FusedExpression) -> list[Node]:
        """The materialised values that an expression reads in place of its operands, if it is no loop."""
        found = [self._dense.get(operand.id, operand) for operand in expression.root.inputs]
        if expression.kind == "contraction" and not isinstance(expression.root.op, TemplateOp):
            found = [
                self._strided.get(operand.id, value) for operand, value in zip(expression.root.inputs, found)
            ]
        if expression.kind == "custom":
            root = expression.root.id
            found = [
                self.rows[root, number][0] if (root, number) in self.rows else value
                for number, value in enumerate(found)
            ]
        return found

    def in_memory(self, node: Node) -> bool:
        """Whether ``node`` is materialised, or an input."""
        return node.id in self.roots or is_input(node)


def _repeats(base: Node, indices: AffineMap, shape: tuple[int, ...]) -> bool:
    """Whether a loop over ``shape`` would recompute ``base`` in its innermost axes."""
    if base.type.size <= 1:
        return False
    used = {axis for index in indices for axis, _ in index[1]}
    missing = [axis for axis, size in enumerate(shape) if size != 1 and axis not in used]
    return bool(missing) and bool(used) and min(missing) < max(used)


class _ExpressionBuilder:
    """Builds the terms of one expression; restarts when a reshape needs a loop axis to be split."""

    def __init__(self, analysis: Analysis, expression: FusedExpression) -> None:
        self.analysis = analysis
        self.views = analysis.views
        self.expression = expression

    def build(self, root: Node) -> None:
        """Set the loop axes and terms of the expression.

        Raises:
            NotAffine: A value must be materialised, the argument of the error.
        """
        expression = self.expression
        shape = root.inputs[0].shape if expression.kind == "reduction" else root.shape
        axes = set(root.attrs[0]) if expression.kind == "reduction" else set()
        kept = [axis for axis, size in enumerate(shape) if size != 1]
        if axes and not any(axis in axes for axis in kept):
            kept = sorted([*kept, min(axes)])
        elif expression.kind == "reduction" and not axes:
            kept.append(len(shape))  # the reduction of one element
        sizes = [shape[axis] if axis < len(shape) else 1 for axis in kept]
        positions: dict[int, list[tuple[int, int]]] = {axis: [(k, 1)] for k, axis in enumerate(kept)}
        while True:
            indices = tuple(
                (0, tuple(positions[axis]), ()) if axis in positions and size != 1 else ZERO
                for axis, size in enumerate(shape)
            )
            try:
                self._expression(root, indices, sizes)
                break
            except NeedsLoopSplit as split:
                _split(sizes, positions, split)
        expression.domain = tuple(sizes)
        reduced = {loop for axis in kept if axis in axes or axis == len(shape) for loop, _ in positions[axis]}
        expression.reduced = tuple(k in reduced for k in range(len(sizes)))
        result = [0] * len(sizes)
        stored = [axis for axis in range(len(shape)) if axis not in axes]
        strides = row_major(root.shape)
        for stride, axis in zip(strides[1:] if expression.is_blocked else strides, stored):
            for loop, coefficient in indices[axis][1]:
                result[loop] = stride * coefficient
        expression.strides = tuple(result)

    def _expression(self, root: Node, indices: AffineMap, sizes: Sequence[int]) -> None:
        expression = self.expression
        self.sizes = sizes
        self.terms: list[Term] = []
        self.known: dict[Item, int] = {}
        self.loaded: dict[tuple[object, ...], int] = {}
        top: Item = (root, indices)
        if expression.kind == "reduction":
            top = self._resolved(root.inputs[0], indices)
        inside = expression.kind not in ("reduction", "copy")
        stack: list[tuple[Item, list[Item] | None]] = [(top, None)]
        while stack:
            item, needs = stack.pop()
            if item in self.known:
                continue
            if needs is None:
                needs = self._needs(*item, item is top and inside)
                missing = [need for need in needs if need not in self.known]
                if missing:
                    stack.append((item, needs))
                    stack += [(need, None) for need in reversed(missing)]
                    continue
            self.known[item] = self._term(*item, needs, item is top and inside)
        expression.terms = self.terms
        expression.cost += sum(operation_cost(term.node) for term in self.terms if term.kind == "op")
        expression.value = self.known[top]

    def _resolved(self, operand: Node, indices: AffineMap) -> Item:
        base, inner = self.views.base(operand)
        return base, indices if inner is None else compose(inner, indices)

    def _needs(self, node: Node, indices: AffineMap, inside: bool) -> list[Item]:
        """The values that a value depends on, each with its map."""
        kind = node.op.kind
        if kind == "source" or (not inside and self.analysis.in_memory(node)):
            return [self._resolved(scalar, ()) for index in indices for scalar, _ in index[2]]
        if kind == "elementwise":
            return [self._resolved(operand, indices) for operand in node.inputs]
        base, inner = self.views.base(node)
        if base is not node and inner is not None:
            return [(base, compose(inner, indices))]
        below = node.inputs[0]
        if self.analysis.in_memory(below) and is_reshape(node):
            # a reshape of a dense value has the same linear index
            return [(below, (linearized(indices, node.shape),))]
        try:
            return [self._resolved(below, input_map(node, indices, self.sizes))]
        except NotAffine:
            raise NotAffine(below) from None

    def _term(self, node: Node, indices: AffineMap, needs: list[Item], inside: bool) -> int:
        kind = node.op.kind
        if kind == "source" or (not inside and self.analysis.in_memory(node)):
            return self._input_term(node, indices, needs)
        if kind == "view":
            return self.known[needs[0]]
        self.terms.append(Term("op", node, tuple(self.known[need] for need in needs)))
        return len(self.terms) - 1

    def _input_term(self, node: Node, indices: AffineMap, needs: list[Item]) -> int:
        if is_constant(node):
            key: tuple[object, ...] = (node.id,)
            term = Term("constant", node)
        else:
            constant, strides, dynamic = self._address(linearized(indices, node.shape))
            run_time = tuple((self.known[need], step) for need, (_, step) in zip(needs, dynamic))
            key = (node.id, constant, strides, run_time)
            kind = "load" if self.analysis.in_memory(node) else "index"
            term = Term(kind, node, tuple(step for step, _ in run_time), strides, constant, run_time)
        found = self.loaded.get(key)
        if found is None:
            found = self.loaded[key] = len(self.terms)
            self.terms.append(term)
        return found

    def _address(self, index: AffineExpr) -> tuple[int, tuple[int, ...], tuple[tuple[Node, int], ...]]:
        strides = [0] * len(self.sizes)
        for axis, coefficient in index[1]:
            strides[axis] += coefficient
        return index[0], tuple(strides), index[2]


def _split(sizes: list[int], positions: dict[int, list[tuple[int, int]]], split: NeedsLoopSplit) -> None:
    """Split a loop axis."""
    at, inner = split.axis, split.inner
    sizes[at : at + 1] = [sizes[at] // inner, inner]
    for axis, terms in positions.items():
        moved: list[tuple[int, int]] = []
        for loop, coefficient in terms:
            if loop == at:
                moved += [(at, coefficient * inner), (at + 1, coefficient)]
            else:
                moved.append((loop + (loop > at), coefficient))
        positions[axis] = moved
