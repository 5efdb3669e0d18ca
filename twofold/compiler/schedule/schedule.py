"""Scheduling: from a primitive graph to a list of instructions, kernels or host calls, over buffers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.loopnest import LoopNest, typed_attributes
from twofold.compiler.lower.loops import emit
from twofold.compiler.lower.mode import MODE
from twofold.compiler.schedule.affine_maps import NotAffine
from twofold.compiler.schedule.blocks import split_reductions
from twofold.compiler.schedule.fused_expressions import Analysis, FusedExpression
from twofold.compiler.schedule.fusion_groups import FusionGroup, Grouping
from twofold.compiler.schedule.loop_nests import BufferKey, NestBuilder
from twofold.ir.bind import is_input
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.op import ControlFlowOp, CustomOp, LoopOp, TemplateOp
from twofold.ir.sizes import keys_by_identity
from twofold.ir.views import below_reshapes

if TYPE_CHECKING:
    from twofold.compiler.lower.gemm import MatmulPlan


class Instruction:
    """A call of a kernel, a host function or nested programs.

    Attributes:
        name: A name for people.
        nodes: The nodes that it computes.
        buffers: Its buffers.
        key: The key of its code; None if it calls no kernel.
        text: Emits its LLVM IR; None if it calls no kernel.
        params: The run-time integers of the kernel.
        work: The number of work items.
        grain: The fewest work items that are worth a thread.
        nest: The loop nest of the kernel, if it is one.
    """

    __slots__ = (
        "buffers",
        "grain",
        "key",
        "name",
        "nest",
        "nodes",
        "params",
        "scratch",
        "text",
        "work",
    )

    def __init__(
        self,
        name: str,
        nodes: Sequence[Node],
        buffers: Sequence[BufferKey],
        key: Any = None,
        text: Callable[[], str] | None = None,
        params: Sequence[int] = (),
        work: int = 1,
        grain: int = 1,
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.buffers = list(buffers)
        self.key = key
        self.text = text
        self.params = tuple(params)
        self.work = work
        self.grain = grain
        self.scratch: dict[BufferKey, int] = {}
        self.nest: LoopNest | None = None


class Schedule:
    """The instructions of a graph.

    Attributes:
        instructions: The instructions in the order in which they run.
        sizes: The bytes of each buffer in the arena.
    """

    def __init__(self, graph: Graph, fuse: bool = True) -> None:
        if fuse:
            graph = split_reductions(graph)
        # what is only reshaped is stored to the output directly
        outputs = [
            node if (below := below_reshapes(node)).op.kind in ("source", "view") else below
            for node in graph.outputs
        ]
        self.graph = graph = Graph(graph.input_types, outputs)
        self.analysis, self.grouping = _group(graph, fuse)
        self.instructions: list[Instruction] = []
        self.sizes: dict[BufferKey, int] = {}
        self._outputs: dict[int, int] = {}
        for number, node in enumerate(graph.outputs):
            if node.id in self.analysis.roots:
                self._outputs.setdefault(node.id, number)
        self._scratch = 0
        for group in _ordered(self.analysis, self.grouping):
            self._emit(group)

    def position(self, node: Node) -> BufferKey:
        """The buffer of the value of ``node``."""
        if is_input(node):
            return ("input", node.attrs[0])
        number = self._outputs.get(node.id)
        return ("value", node.id) if number is None else ("output", number)

    def _stored(self, expression: FusedExpression) -> list[BufferKey]:
        if expression.output >= 0:
            return [("output", expression.output)]
        root = expression.root
        if root.id in self._outputs:
            return [("output", self._outputs[root.id])]
        home = self.grouping.home[root.id]
        if any(
            self.grouping.of_expression[user.number] is not home
            for user in self.analysis.users.get(root.id, ())
        ):
            self.sizes["value", root.id] = root.type.nbytes
            return [("value", root.id)]
        return []

    def _emit(self, group: FusionGroup) -> None:
        if group.kind == "loop":
            self._loop(group)
        elif group.kind == "contraction":
            self._contraction(group)
        elif group.kind == "custom":
            self._custom(group.expressions[0])
        elif group.kind == "control_flow":
            self._control_flow(group.expressions[0])
        elif group.kind == "host":
            self._host(group.expressions[0])

    def _bound(self, buffers: Iterable[BufferKey], scratch: dict[BufferKey, int]) -> list[BufferKey]:
        """Buffers of the schedule for those of a kernel; scratch buffers are numbered anew."""
        nodes = self.analysis.by_id
        names = {}
        for key, size in scratch.items():
            names[key] = ("scratch", self._scratch)
            self.sizes[names[key]] = size
            self._scratch += 1
        return [
            names[key] if key in names else self.position(nodes[key[1]]) if key[0] == "value" else key
            for key in buffers
        ]

    def _loop(self, group: FusionGroup) -> None:
        with keys_by_identity():
            kernel = NestBuilder(group, self._stored).build()
        if kernel.work == 0 or not kernel.nest.stores:
            return
        nest = kernel.nest
        instruction = Instruction(
            nest.form,
            kernel.nodes,
            self._bound(kernel.buffers, kernel.scratch),
            nest.key(),
            partial(emit, nest),
            nest.parameters(),
            kernel.work,
            kernel.grain,
        )
        instruction.nest = nest
        self.instructions.append(instruction)

    def _contraction(self, group: FusionGroup) -> None:
        expression = group.expressions[0]
        make = self._plan(expression)
        roles = dict(zip("ab", self._operands(expression)))
        nest = None
        if len(group.expressions) == 1:
            (result,) = self._stored(expression)
            roles["c"] = result
            made = make(None, ())
        else:
            with keys_by_identity():
                kernel = NestBuilder(group, self._stored).epilogue()
            nest = kernel.nest
            for number, position in enumerate(self._bound(kernel.buffers, {})):
                roles[f"epilogue{number}"] = position
            from twofold.compiler.lower.epilogue import NestEpilogue

            made = make(NestEpilogue(nest, len(kernel.buffers)), nest.parameters())
        self._calls(made, roles, [member.root for member in group.expressions], nest)

    def _plan(self, expression: FusedExpression) -> Callable[[Any, Sequence[int]], MatmulPlan]:
        """The planner of the product of an expression: a function of an epilogue and its parameters."""
        root = expression.root
        stay = (False, False)
        if MODE.weights_stay:
            first, second = self.analysis.stored_operands(expression)[:2]
            stay = is_input(first), is_input(second)
        if isinstance(root.op, TemplateOp):
            plan, kernel_shape = _from_template(root.op, root, stay[1])
            return partial(plan, kernel_shape)
        from twofold.compiler.lower.gemm import MatmulProblem, Operand, plan_matmul

        left, right = root.inputs
        m, n = root.shape[-2:]
        batch = root.type.size // max(m * n, 1)
        strides = self.analysis.matrix_strides
        return partial(
            plan_matmul,
            MatmulProblem(
                batch, m, n, left.shape[-1], Operand(*strides(left)), Operand(*strides(right)),
                Operand(m * n, n, 1), root.dtype, stay=stay,
            ),
        )  # fmt: skip

    def _calls(
        self, made: MatmulPlan, roles: dict[str, BufferKey], nodes: list[Node], nest: LoopNest | None
    ) -> None:
        """Add the instructions of the plan of a product.

        Args:
            made: The plan.
            roles: The buffers that its calls name.
            nodes: The nodes that it computes.
            nest: The loop nest of its epilogue.
        """
        for number, size in enumerate(made.scratch_bytes):
            roles[f"scratch{number}"] = ("scratch", self._scratch)
            self.sizes[roles[f"scratch{number}"]] = size
            self._scratch += 1
        for call in made.calls:
            buffers = [roles[role] for role in call.buffers]
            instruction = Instruction(
                call.name,
                nodes,
                buffers,
                call.text_key,
                partial(str, call.text),
                call.params,
                call.work,
                call.grain,
            )
            instruction.nest = nest if call.name != "pack" else None
            self.instructions.append(instruction)

    def _operands(self, expression: FusedExpression) -> list[BufferKey]:
        return [self.position(node) for node in self.analysis.stored_operands(expression)]

    def _result(self, expression: FusedExpression) -> BufferKey:
        position = self.position(expression.root)
        if position[0] == "value":
            self.sizes[position] = expression.root.type.nbytes
        return position

    def _custom(self, expression: FusedExpression) -> None:
        root = expression.root
        if isinstance(root.op, TemplateOp):
            plan, kernel_shape = _from_template(root.op, root, False)
            operands = zip(("a", "b", "start"), self._operands(expression))
            roles = {**dict(operands), "c": self._result(expression)}
            self._calls(plan(kernel_shape), roles, [root], None)
            return
        assert isinstance(root.op, LoopOp)
        op, attrs, types, result = root.op, root.attrs, [value.type for value in root.inputs], root.type
        work, grain = op.work(attrs, types, result)
        # an empty result has a buffer, too: a reduction may read it
        buffers = [*self._operands(expression), self._result(expression)]
        if work == 0:
            return
        scratch = op.scratch(attrs, types, result)
        if scratch:
            buffers.append(self._new_scratch(scratch))

        def text() -> str:
            builder = Builder()
            op.emit(builder, attrs, types, result)
            return builder.finish()

        dtypes = tuple(type.dtype for type in (*types, result))
        key = ("custom", op.name, dtypes, typed_attributes(tuple(op.code_key(attrs, types, result))))
        params = self._with_rows(root, op.parameters(attrs, types, result))
        self.instructions.append(Instruction(op.name, [root], buffers, key, text, params, work, grain))

    def _with_rows(self, root: Node, params: Sequence[int]) -> Sequence[int]:
        """The parameters of a custom operation with the rows of operands where they lie in larger values."""
        found, first = list(params), len(params) - 2 * len(root.inputs)
        for number in range(len(root.inputs)):
            lies = self.analysis.rows.get((root.id, number))
            if lies is not None:
                at = first + 2 * number
                found[at : at + 2] = lies[1:]
        return found

    def _host(self, expression: FusedExpression) -> None:
        root = expression.root
        buffers = [*self._operands(expression), self._result(expression)]
        self.instructions.append(Instruction(root.op.name, [root], buffers))

    def _control_flow(self, expression: FusedExpression) -> None:
        """Add an instruction on its operands, all its results, and scratch memory for nested programs."""
        root = expression.root
        op = root.op
        assert isinstance(op, ControlFlowOp)
        results = {user.root.attrs[0]: user.root for user in self.analysis.users.get(root.id, ())}
        buffers = self._operands(expression)
        for number, type in enumerate(op.results(root.attrs, [value.type for value in root.inputs])):
            if number in results:
                position = self.position(results[number])
                if position[0] == "value":
                    self.sizes[position] = type.nbytes
            else:
                position = self._new_scratch(type.nbytes)
            buffers.append(position)
        instruction = Instruction(op.name, [root], [*buffers, self._new_scratch(0)])
        self.instructions.append(instruction)

    def _new_scratch(self, nbytes: int) -> BufferKey:
        position = ("scratch", self._scratch)
        self.sizes[position] = nbytes
        self._scratch += 1
        return position


def _from_template(op: TemplateOp, root: Node, stays: bool) -> tuple[Callable[..., MatmulPlan], Any]:
    """The planner of a kernel template, and the kernel shape of a node whose second operand ``stays`` the same."""
    from twofold.compiler.lower.convolution import plan_convolution, plan_convolution_weight
    from twofold.compiler.lower.gemm import plan_accumulated_product

    planners: dict[str, Callable[..., MatmulPlan]] = {
        "accumulated": plan_accumulated_product,
        "accumulated_convolution": partial(plan_convolution_weight, accumulates=True),
        "convolution": plan_convolution,
        "convolution_weight": plan_convolution_weight,
    }
    types = [value.type for value in root.inputs]
    shape = op.kernel_shape(root.attrs, types, root.type)
    if stays and op.template == "convolution":
        shape = replace(shape, weight_stays=True)
    return planners[op.template], shape


def _group(graph: Graph, fuse: bool) -> tuple[Analysis, Grouping]:
    """Expressions and groups; the input of a reshape that is not affine is materialised."""
    forced: list[Node] = []
    while True:
        try:
            with keys_by_identity():
                analysis = Analysis(graph, fuse, forced)
                return analysis, Grouping(analysis, fuse)
        except NotAffine as obstacle:
            forced.append(obstacle.args[0])


def _ordered(analysis: Analysis, grouping: Grouping) -> list[FusionGroup]:
    """List scheduling of groups: each after those that it reads; among ready ones in the order of the graph.

    A group that reads inputs only is delayed until its first user, as its result would only take memory until then. One
    that may overwrite an input is delayed until no other is ready: readers of the input, and what may fail, come first.
    """
    needs: dict[int, list[FusionGroup]] = {}
    readers: dict[int, list[FusionGroup]] = {}
    for group in grouping.groups:
        read = {
            grouping.home[node_id]
            for expression in group.expressions
            for node_id in analysis.reads(expression)
            if node_id in grouping.home
        }
        read.discard(group)
        needs[group.number] = sorted(read, key=_position)
        for other in read:
            readers.setdefault(other.number, []).append(group)
    late = [
        group
        for group in sorted(grouping.groups, key=_position)
        if not needs[group.number] and group.number in readers and not _overwrites(analysis, group)
    ]
    unmade = {group.number for group in late}
    waiting = {number: sum(one.number not in unmade for one in read) for number, read in needs.items()}
    by_number = {group.number: group for group in grouping.groups}
    ready = [
        (_overwrites(analysis, group), _position(group), group.number)
        for group in grouping.groups
        if not waiting[group.number] and group.number not in unmade
    ]
    heapq.heapify(ready)
    order = []
    while ready:
        overwrites, _, number = heapq.heappop(ready)
        before = late if overwrites else needs[number]
        made = [*(one for one in before if one.number in unmade), by_number[number]]
        order += made
        unmade.difference_update([one.number for one in made])
        for reader in readers.get(number, ()):
            waiting[reader.number] -= 1
            if not waiting[reader.number]:
                heapq.heappush(ready, (_overwrites(analysis, reader), _position(reader), reader.number))
    if len(order) != len(grouping.groups):
        raise AssertionError("the graph of groups has a cycle")
    return order


def _position(group: FusionGroup) -> int:
    """The position of its last expression in the graph."""
    return max(expression.number for expression in group.expressions)


def _overwrites(analysis: Analysis, group: FusionGroup) -> bool:
    """Whether it may overwrite a buffer that other groups read."""
    expression = group.expressions[0]
    op = expression.root.op
    number = op.overwrites if isinstance(op, CustomOp) else None
    if number is None:
        return False
    return len(analysis.users.get(analysis.stored_operands(expression)[number].id, ())) > 1
