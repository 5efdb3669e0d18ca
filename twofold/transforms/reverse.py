"""Reverse mode: from a closed graph to the closed graph of its gradient.

Reverse accumulation (Griewank and Walther, "Evaluating Derivatives", 2008) visits nodes in descending topological
position. The cotangent of a node is the sum of the contributions of its consumers (see ``Cotangent``). Their order
depends on the structure of the graph alone, so gradients have the same bits however the graph was declared. A
structural zero is None and never becomes a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from twofold.errors import GradientError
from twofold.ir.bind import input_node, is_input
from twofold.ir.graph import Graph, inlined, rewrite
from twofold.ir.node import Attributes, Node, topological
from twofold.ir.op import ControlFlowOp, CustomOp, GetOutputOp, Op, SourceOp, ViewForm
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.views import is_view, view_form
from twofold.ops.base import Composite, convert, filled, strong
from twofold.ops.indexing.row_products import (
    Cotangent,
    Share,
    rows_share,
    through_broadcast,
)

Slots = list[int | str]
"""What each input of a gradient graph is: "cotangent", "output", or the number of an input of the original graph;
shared values are numbered behind these."""


def backward(
    outputs: Sequence[Node],
    cotangents: Sequence[Node | None],
    wrt: Sequence[Node],
    substitutes: dict[int, Node],
) -> list[Node | None]:
    """Differentiate a graph.

    Args:
        outputs: The outputs of the graph.
        cotangents: Their cotangents; None is zero.
        wrt: The nodes whose cotangents are returned.
        substitutes: By id of a node, the node that gradient rules read in its place (its value, known already).

    Returns:
        The cotangents of ``wrt``; None where no gradient flows.
    """
    return [cotangent.total() for cotangent in backward_sums(outputs, cotangents, wrt, substitutes)]


def backward_sums(
    outputs: Sequence[Node],
    cotangents: Sequence[Node | None],
    wrt: Sequence[Node],
    substitutes: dict[int, Node],
) -> list[Cotangent]:
    """``backward``, with each cotangent as the terms that it is the sum of."""
    flat = inlined((*outputs, *wrt))  # a sum over calls is one sum
    if flat is not None:
        return backward_sums(flat[: len(outputs)], cotangents, flat[len(outputs) :], substitutes)
    return _BackwardPass(outputs, wrt, substitutes).run(outputs, cotangents, wrt)


class _BackwardPass:
    """The state of one backward pass over the nodes below ``outputs``."""

    def __init__(self, outputs: Sequence[Node], wrt: Sequence[Node], substitutes: dict[int, Node]) -> None:
        self._order = topological(outputs)
        self._active = _dependent(self._order, wrt)
        self._wrt = {node.id for node in wrt}
        self._substitutes = substitutes
        self._sums: dict[int, Cotangent] = {}  # by id of a node that is not visited yet
        self._of_results: dict[
            int, dict[int, Node]
        ] = {}  # by id of a control flow node: those of its results

    def run(
        self, outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node]
    ) -> list[Cotangent]:
        """The cotangents of ``wrt``."""
        for output, cotangent in zip(outputs, cotangents):
            if cotangent is not None:
                self._sums.setdefault(output.id, Cotangent()).add(cotangent)
        found: dict[int, Cotangent] = {}
        for position, node in reversed(list(enumerate(self._order))):
            arrived = self._sums.pop(node.id, None)
            if (arrived is None and node.id not in self._of_results) or node.id not in self._active:
                continue
            if arrived is not None and node.id in self._wrt:
                found[node.id] = arrived
            if node.inputs:
                self._visit(position, node, arrived)
        return [found.get(node.id, Cotangent()) for node in wrt]

    def _visit(self, position: int, node: Node, arrived: Cotangent | None) -> None:
        """Pass on the cotangent of a node to its inputs."""
        if arrived is not None and arrived.terms and is_view(node):
            arrived = arrived.through_view(node, self._sums.setdefault(node.inputs[0].id, Cotangent()))
        total = None if arrived is None else arrived.total()
        if total is None and node.id not in self._of_results:
            return
        if isinstance(node.op, GetOutputOp):
            assert total is not None
            self._of_results.setdefault(node.inputs[0].id, {})[node.attrs[0]] = total
            return
        shares = (
            _control_flow_cotangents(node, self._of_results.get(node.id, {}))
            if isinstance(node.op, ControlFlowOp)
            else _node_cotangents(node, total, self._substitutes)
        )
        for value, share in zip(node.inputs, shares, strict=True):
            if share is not None and value.id in self._active and value.dtype.is_differentiable:
                self._accumulate(position, node, value, share)

    def _accumulate(self, position: int, node: Node, value: Node, share: Node | Cotangent) -> None:
        """Add what ``node`` passes on to its input ``value``."""
        if (
            view_form(value) is ViewForm.BROADCAST
            and value.id not in self._wrt
            and isinstance(share, Node)
            and (repeated := through_broadcast(node, _checked(node, value, share), value)) is not None
        ):
            value, share = value.inputs[0], repeated
        target = self._sums.setdefault(value.id, Cotangent())
        if isinstance(share, Cotangent):
            target.join(position, share)
        else:
            target.add(_checked(node, value, share))


def _node_cotangents(node: Node, cotangent: Node | None, substitutes: dict[int, Node]) -> Sequence[Share]:
    assert cotangent is not None
    values = tuple(substitutes.get(value.id, value) for value in node.inputs)
    summed = node.op.shares(cotangent, node, values)
    if summed is not None:
        return summed
    output = substitutes.get(node.id, node)
    return [
        rows_share(cotangent, share, node)
        for share in input_cotangents(node.op, node.attrs, cotangent, output, values)
    ]


def input_cotangents(
    op: Op, attrs: Attributes, cotangent: Node, output: Node, values: tuple[Node, ...]
) -> Sequence[Node | None]:
    """Apply the gradient rule of an operation, or differentiate the graph that defines it.

    Args:
        op: The operation.
        attrs: Its attributes.
        cotangent: The cotangent of its output.
        output: What rules read as its output.
        values: What they read as its inputs.

    Returns:
        For each input its cotangent; None where no gradient flows.
    """
    if not isinstance(op, CustomOp):
        return op.vjp(attrs, cotangent, output, values)
    inputs = [input_node(k, value.type) for k, value in enumerate(values)]
    defined = op.definition(attrs, inputs)
    if defined is None:
        return op.vjp(attrs, cotangent, output, values)
    seed = input_node(len(inputs), cotangent.type)
    floating = [value for value in inputs if value.dtype.kind == "f"]
    found = backward([defined], [seed], floating, {})
    reached = [share for share in found if share is not None]
    types = [*[value.type for value in inputs], seed.type]
    inlined = iter(Graph(types, reached).inline([*values, cotangent]))
    by_input = {value.id: None if share is None else next(inlined) for value, share in zip(floating, found)}
    return [by_input.get(value.id) for value in inputs]


def _control_flow_cotangents(node: Node, cotangents: dict[int, Node]) -> Sequence[Share]:
    """The cotangents of the inputs of a control flow node, from those of its results by number."""
    assert isinstance(node.op, ControlFlowOp)
    types = node.op.results(node.attrs, [value.type for value in node.inputs])
    by_result = [cotangents.get(k) for k in range(len(types))]
    found: Sequence[Share] = node.op.results_vjp(node, by_result, backward_sums)
    return found


def _dependent(order: Sequence[Node], wrt: Sequence[Node]) -> set[int]:
    """Ids of the nodes that depend on one of ``wrt`` (those included)."""
    reached = {node.id for node in wrt}
    for node in order:
        if any(value.id in reached for value in node.inputs):
            reached.add(node.id)
    return reached


def _checked(node: Node, value: Node, share: Node) -> Node:
    """``share`` in the dtype of ``value``; another shape is a mistake in the gradient rule."""
    if share.shape != value.shape:
        raise AssertionError(f"{node.op.name}: the cotangent of {value.type} has type {share.type}")
    return share if share.type is value.type else convert(share, value.dtype)


def _shifted(graph: Graph, by: int) -> tuple[list[Node], Node]:
    """The graph's inputs renumbered by ``by``, and its output in terms of them."""
    inputs = [input_node(k + by, type) for k, type in enumerate(graph.input_types)]
    (output,) = rewrite(graph.outputs, lambda node: inputs[node.attrs[0]] if is_input(node) else None)
    return inputs, output


def vjp_graph(graph: Graph, index: int | tuple[int, ...]) -> tuple[Graph, Slots] | None:
    """The graph of a vector-Jacobian product.

    Args:
        graph: A graph with one output.
        index: The input whose cotangent is computed, or several of them.

    Returns:
        A graph with one output for each index, zeros where no path leads from the input to the output of ``graph``,
        and what its inputs are: among the cotangent, the inputs of ``graph``, and the value of its output (so that it
        is not recomputed). None if no path leads from any of the inputs to the output.
    """
    return _vjp(graph, index, None, ())


def vjp_of(
    op: Op, attrs: Attributes, graph: Graph, index: int | tuple[int, ...]
) -> tuple[Graph, Slots] | None:
    """``vjp_graph`` of the call that ``graph`` computes; a composite may have its own rule."""
    return _vjp(graph, index, _composite_rule(op, graph), attrs)


SplitVjp = dict[int, "tuple[Graph, Slots] | NotImplementedError"]
"""Graphs by what they compute: the cotangent of an input, by its number, or a shared value, numbered behind these."""


def split_vjp(op: Op, attrs: Attributes, graph: Graph, indices: Sequence[int]) -> SplitVjp:
    """The graphs of ``vjp_of`` for several inputs, with their common subexpressions as graphs of their own.

    Args:
        op: The operation of the call.
        attrs: Its attributes.
        graph: The closed graph of the call.
        indices: The inputs whose cotangents are computed.

    Returns:
        One graph for each cotangent and shared value, a shared value before the graphs that read it. An input to which
        no gradient flows is left out; one whose gradient is not implemented has the error in place of the graph.
    """
    own, count = _composite_rule(op, graph), len(graph.input_types)
    try:
        found = _cotangents_of(graph, indices, own, attrs)
    except NotImplementedError as error:
        if len(indices) == 1:
            return {indices[0]: error}
        separate = [split_vjp(op, attrs, graph, (index,)) for index in indices]
        return {index: made for graphs in separate for index, made in graphs.items()}
    sharing = import_module("twofold.transforms.sharing")  # programs without gradients need none of it
    outputs, shared = sharing.extract_common_subexpressions(
        [node for node in found if node is not None], count + 2
    )
    reached = [index for index, node in zip(indices, found, strict=True) if node is not None]
    numbers = [*range(count, count + len(shared)), *reached]
    return {k: _pruned([node], count) for k, node in zip(numbers, [*shared, *outputs], strict=True)}


def _composite_rule(op: Op, graph: Graph) -> Op | None:
    """``op`` if it is a composite with a gradient rule of its own that holds for the dtype of the result."""
    if not isinstance(op, Composite) or op.rule_vjp is None:
        return None
    return op if graph.outputs[0].dtype.kind != "c" or op.complex_rule else None


def _vjp(
    graph: Graph, index: int | tuple[int, ...], op: Op | None, attrs: Attributes
) -> tuple[Graph, Slots] | None:
    indices = (index,) if isinstance(index, int) else index
    found = _cotangents_of(graph, indices, op, attrs)
    if all(node is None for node in found):
        return None
    types = [graph.input_types[k] for k in indices]
    outputs = [
        filled(0, type.dtype, type.shape) if node is None else node
        for type, node in zip(types, found, strict=True)
    ]
    return _pruned(outputs, len(graph.input_types))


def _cotangents_of(
    graph: Graph, indices: Sequence[int], op: Op | None, attrs: Attributes
) -> list[Node | None]:
    """Cotangents of inputs of ``graph``, in terms of the inputs of a gradient graph.

    These are the cotangent of the output, the inputs of ``graph``, and the value of its output, in this order.
    """
    if not graph.outputs[0].dtype.is_differentiable:
        return [None] * len(indices)
    inputs, output = _shifted(graph, 1)
    if op is not None:
        return _by_rule(op, attrs, inputs, output, indices)
    found = _cotangents(inputs, output, indices)
    if isinstance(output.op, SourceOp):
        return found
    # a rule may have rebuilt the very node that computes the output
    known = _seeds(inputs, output)[1]
    replaced = iter(
        rewrite([node for node in found if node is not None], lambda node: known if node is output else None)
    )
    return [None if node is None else next(replaced) for node in found]


def _seeds(inputs: Sequence[Node], output: Node) -> tuple[Node, Node]:
    """The input nodes for the cotangent and for the value of the output."""
    cotangent = input_node(0, tensor_type(output.dtype, output.shape))
    return cotangent, input_node(len(inputs) + 1, output.type)


def _by_rule(
    op: Op, attrs: Attributes, inputs: Sequence[Node], output: Node, indices: Sequence[int]
) -> list[Node | None]:
    shares = op.vjp(attrs, *_seeds(inputs, output), tuple(inputs))
    return [_in_dtype_of(inputs[k], shares[k]) for k in indices]


def _cotangents(inputs: Sequence[Node], output: Node, indices: Sequence[int]) -> list[Node | None]:
    """By the gradient rules of the nodes."""
    cotangent, known = _seeds(inputs, output)
    wrt = [inputs[k] for k in indices]
    floating = [node for node in wrt if node.dtype.is_differentiable]
    substitutes = {} if isinstance(output.op, SourceOp) else {output.id: known}
    by_node = dict(
        zip([node.id for node in floating], backward([output], [cotangent], floating, substitutes))
    )
    return [by_node.get(node.id) for node in wrt]


def _in_dtype_of(value: Node, share: Node | None) -> Node | None:
    return None if share is None or not value.dtype.is_differentiable else convert(share, value.dtype)


def _pruned(outputs: Sequence[Node], count: int) -> tuple[Graph, Slots]:
    """The gradient graph with the inputs that it reads, and what they are.

    Args:
        outputs: Its outputs. Their input 0 is the cotangent, 1 to ``count`` are the inputs, then follow the output and
            the shared values.
        count: The number of inputs of the original graph.
    """
    read = {node.attrs[0]: node.type for node in topological(outputs) if is_input(node)}
    numbers = sorted(read)
    offset = {number: position for position, number in enumerate(numbers)}

    def replace(node: Node) -> Node | None:
        return input_node(offset[node.attrs[0]], node.type) if is_input(node) else None

    slots: Slots = [
        "cotangent"
        if number == 0
        else "output"
        if number == count + 1
        else number - (1 if number <= count else 2)
        for number in numbers
    ]
    return Graph([read[number] for number in numbers], rewrite(outputs, replace)), slots


def grad_graph(graph: Graph, wrt: Sequence[int], output: int = 0) -> Graph:
    """The graph of the gradients of a scalar.

    Args:
        graph: The graph to differentiate.
        wrt: The inputs with respect to which it is differentiated.
        output: The number of the output, a floating scalar.

    Returns:
        A graph with the inputs of ``graph`` and one output for each input in ``wrt``.

    Raises:
        GradientError: The output is no floating scalar, or an input in ``wrt`` does not reach it.
    """
    target = graph.outputs[output]
    if target.shape != () or target.dtype.kind != "f":
        raise GradientError(
            f"the gradient of {target.type} is no single number each", "Reduce it to a scalar."
        )
    inputs = [input_node(k, type) for k, type in enumerate(graph.input_types)]
    found = backward([target], [filled(1, target.dtype, ())], [inputs[k] for k in wrt], {})
    for k, node in zip(wrt, found):
        if node is None:
            raise GradientError(f"input {k} does not reach the output", "Leave it out, or use it.")
    return Graph(graph.input_types, [node for node in found if node is not None])


def closed_graph(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> Graph:
    """The closed graph of one call: ``build`` on input nodes of these types; its output is never weak."""
    return Graph(types, [strong(op.build(attrs, [input_node(k, type) for k, type in enumerate(types)]))])
