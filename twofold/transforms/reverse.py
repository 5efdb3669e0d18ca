"""Reverse mode: from a closed graph to the closed graph of its gradient.

The pass visits nodes in descending topological position. A node's cotangent is the sum of what its consumers
contribute (see ``Cotangent``): the order depends on the structure of the graph alone, so gradients have the same
bits however the graph was declared. A structural zero is None and never becomes a node.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from twofold.transforms.sharing import divided

Used = list[int | str]
"""What each input of a gradient graph is: "cotangent", "output", or the number of an original input or
of a shared value."""


def backward(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node], given: dict[int, Node]
) -> list[Node | None]:
    """Cotangents of the nodes ``wrt``, in terms of the nodes of the graph and ``cotangents`` of its outputs.

    ``given`` maps the id of a node to what rules read in its place (its value, already known).
    """
    return [cotangent.total() for cotangent in collected(outputs, cotangents, wrt, given)]


def collected(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node], given: dict[int, Node]
) -> list[Cotangent]:
    """As ``backward``, the cotangents as what they are sums of."""
    flat = inlined((*outputs, *wrt))  # what is summed over calls is one sum
    if flat is not None:
        return collected(flat[: len(outputs)], cotangents, flat[len(outputs) :], given)
    order = topological(outputs)
    needed = _reaching(order, wrt)
    waiting: dict[int, Cotangent] = {}
    for output, cotangent in zip(outputs, cotangents):
        if cotangent is not None:
            waiting.setdefault(output.id, Cotangent()).add(cotangent)
    wanted = {node.id for node in wrt}
    found: dict[int, Cotangent] = {}
    parts: dict[int, dict[int, Node]] = {}  # by id of a program node: cotangents of its results
    for position, node in reversed(list(enumerate(order))):
        arrived = waiting.pop(node.id, None)
        if (arrived is None and node.id not in parts) or node.id not in needed:
            continue
        if arrived is not None and node.id in wanted:
            found[node.id] = arrived
        if not node.inputs:
            continue
        if arrived is not None and arrived.terms and is_view(node):
            arrived = arrived.through_view(node, waiting.setdefault(node.inputs[0].id, Cotangent()))
        total = None if arrived is None else arrived.total()
        if total is None and node.id not in parts:
            continue
        if isinstance(node.op, GetOutputOp):
            assert total is not None
            parts.setdefault(node.inputs[0].id, {})[node.attrs[0]] = total
            continue
        shares = (
            _shares_of_program(node, parts.get(node.id, {}))
            if isinstance(node.op, ControlFlowOp)
            else _shares(node, total, given)
        )
        for value, share in zip(node.inputs, shares, strict=True):
            if share is None or value.id not in needed or not value.dtype.is_differentiable:
                continue
            if (
                view_form(value) is ViewForm.BROADCAST
                and value.id not in wanted
                and isinstance(share, Node)
                and (repeated := through_broadcast(node, _checked(node, value, share), value)) is not None
            ):
                value, share = value.inputs[0], repeated
            to = waiting.setdefault(value.id, Cotangent())
            if isinstance(share, Cotangent):
                to.join(position, share)
            else:
                to.add(_checked(node, value, share))
    return [found.get(node.id, Cotangent()) for node in wrt]


def _shares(node: Node, cotangent: Node | None, given: dict[int, Node]) -> Sequence[Share]:
    assert cotangent is not None
    values = tuple(given.get(value.id, value) for value in node.inputs)
    summed = node.op.shares(cotangent, node, values)
    if summed is not None:
        return summed
    shares = input_shares(node.op, node.attrs, cotangent, given.get(node.id, node), values)
    return [rows_share(cotangent, share, node) for share in shares]


def input_shares(
    op: Op, attrs: Attributes, cotangent: Node, output: Node, values: tuple[Node, ...]
) -> Sequence[Node | None]:
    """What a node passes on to its inputs: by its own rule, or by that of the nodes that define it."""
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


def _shares_of_program(node: Node, parts: dict[int, Node]) -> Sequence[Share]:
    """What a program passes on to its inputs, from the cotangents of its results by number."""
    assert isinstance(node.op, ControlFlowOp)
    types = node.op.results(node.attrs, [value.type for value in node.inputs])
    found: Sequence[Share] = node.op.parts_vjp(node, [parts.get(k) for k in range(len(types))], collected)
    return found


def _reaching(order: Sequence[Node], wrt: Sequence[Node]) -> set[int]:
    """Ids of the nodes that depend on one of ``wrt`` (those included)."""
    reached = {node.id for node in wrt}
    for node in order:
        if any(value.id in reached for value in node.inputs):
            reached.add(node.id)
    return reached


def _checked(node: Node, value: Node, share: Node) -> Node:
    """A rule may leave a scalar factor's dtype or shape; anything else is a mistake in the entry."""
    if share.shape != value.shape:
        raise AssertionError(f"{node.op.name}: the cotangent of {value.type} has type {share.type}")
    return share if share.type is value.type else convert(share, value.dtype)


def _shifted(graph: Graph, by: int) -> tuple[list[Node], Node]:
    """The graph's inputs renumbered by ``by``, and its output in terms of them."""
    inputs = [input_node(k + by, type) for k, type in enumerate(graph.input_types)]
    (output,) = rewrite(graph.outputs, lambda node: inputs[node.attrs[0]] if is_input(node) else None)
    return inputs, output


def vjp_graph(graph: Graph, index: int | tuple[int, ...]) -> tuple[Graph, Used] | None:
    """The graph from the cotangent of the output of ``graph`` to that of its input ``index``.

    It may read the cotangent, the inputs of ``graph``, and its output's value (so that it is not computed
    again); the returned list says which of them its inputs are, in order. For several indices the graph has
    one output each, zeros where no path leads. None if no path leads from any of them to the output.
    """
    return _vjp(graph, index, None, ())


def vjp_of(
    op: Op, attrs: Attributes, graph: Graph, index: int | tuple[int, ...]
) -> tuple[Graph, Used] | None:
    """``vjp_graph`` of the call that ``graph`` computes; a composite may have its own rule."""
    return _vjp(graph, index, _own_rule(op, graph), attrs)


Pieces = dict[int, "tuple[Graph, Used] | NotImplementedError"]
"""Graphs by what they compute: the cotangent of an input, by its number, or a shared value, numbered behind them."""


def vjp_pieces(op: Op, attrs: Attributes, graph: Graph, indices: Sequence[int]) -> Pieces:
    """The graphs of ``vjp_of`` for several inputs, without what they have in common.

    That is values of graphs of their own, which the others read: in ``Used`` they are numbers from the number of
    inputs on, and stand in front of what reads them. An input to which no gradient flows is left out; one whose
    gradient has no formula has the error instead.
    """
    own, count = _own_rule(op, graph), len(graph.input_types)
    try:
        found = _cotangents_of(graph, indices, own, attrs)
    except NotImplementedError as error:
        if len(indices) == 1:
            return {indices[0]: error}
        alone = [vjp_pieces(op, attrs, graph, (index,)) for index in indices]
        return {index: made for pieces in alone for index, made in pieces.items()}
    outputs, shared = divided([node for node in found if node is not None], count + 2)
    reached = [index for index, node in zip(indices, found, strict=True) if node is not None]
    numbers = [*range(count, count + len(shared)), *reached]
    return {k: _pruned([node], count) for k, node in zip(numbers, [*shared, *outputs], strict=True)}


def _own_rule(op: Op, graph: Graph) -> Op | None:
    """``op`` where it is a composite with a rule of its own that holds for the result."""
    if not isinstance(op, Composite) or op.rule_vjp is None:
        return None
    return op if graph.outputs[0].dtype.kind != "c" or op.complex_rule else None


def _vjp(
    graph: Graph, index: int | tuple[int, ...], op: Op | None, attrs: Attributes
) -> tuple[Graph, Used] | None:
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
    """Cotangents of inputs in terms of inputs: the cotangent of the output, those of ``graph``, and the output."""
    if not graph.outputs[0].dtype.is_differentiable:
        return [None] * len(indices)
    inputs, output = _shifted(graph, 1)
    if op is not None:
        return _by_rule(op, attrs, inputs, output, indices)
    found = _cotangents(inputs, output, indices)
    if isinstance(output.op, SourceOp):
        return found
    # a rule may have rebuilt the very node that computes the output
    known = _given(inputs, output)[1]
    replaced = iter(
        rewrite([node for node in found if node is not None], lambda node: known if node is output else None)
    )
    return [None if node is None else next(replaced) for node in found]


def _given(inputs: Sequence[Node], output: Node) -> tuple[Node, Node]:
    """The inputs of a gradient graph beside those of the graph: the cotangent, and the output's value."""
    cotangent = input_node(0, tensor_type(output.dtype, output.shape))
    return cotangent, input_node(len(inputs) + 1, output.type)


def _by_rule(
    op: Op, attrs: Attributes, inputs: Sequence[Node], output: Node, indices: Sequence[int]
) -> list[Node | None]:
    shares = op.vjp(attrs, *_given(inputs, output), tuple(inputs))
    return [_fitting(shares[k], inputs[k]) for k in indices]


def _cotangents(inputs: Sequence[Node], output: Node, indices: Sequence[int]) -> list[Node | None]:
    """By the rules of the nodes."""
    cotangent, known = _given(inputs, output)
    wrt = [inputs[k] for k in indices]
    floating = [node for node in wrt if node.dtype.is_differentiable]
    given = {} if isinstance(output.op, SourceOp) else {output.id: known}
    by_node = dict(zip([node.id for node in floating], backward([output], [cotangent], floating, given)))
    return [by_node.get(node.id) for node in wrt]


def _fitting(share: Node | None, value: Node) -> Node | None:
    return None if share is None or not value.dtype.is_differentiable else convert(share, value.dtype)


def _pruned(outputs: Sequence[Node], count: int) -> tuple[Graph, Used]:
    """Renumber the inputs read: 0 was the cotangent, 1 to ``count`` the inputs, then the output and what is shared."""
    read = {node.attrs[0]: node.type for node in topological(outputs) if is_input(node)}
    numbers = sorted(read)
    offset = {number: position for position, number in enumerate(numbers)}

    def replace(node: Node) -> Node | None:
        return input_node(offset[node.attrs[0]], node.type) if is_input(node) else None

    used: Used = [
        "cotangent"
        if number == 0
        else "output"
        if number == count + 1
        else number - (1 if number <= count else 2)
        for number in numbers
    ]
    return Graph([read[number] for number in numbers], rewrite(outputs, replace)), used


def grad_graph(graph: Graph, wrt: Sequence[int], output: int = 0) -> Graph:
    """The closed graph with the inputs of ``graph`` and the gradients of one scalar output as its outputs.

    Raises GradientError if the output is no floating scalar or an input in ``wrt`` does not reach it.
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
