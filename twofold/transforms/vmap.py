"""Batching: from a closed graph to the graph that computes it for each sample along a leading batch axis.

Each kind of operation has a batching rule:

* element-wise: operands without the batch axis are broadcast along it;
* reduction: the reduced axes move up by one, so each sample is combined in the same order as alone;
* view: the same index map behind the batch axis;
* contraction: one more batch axis, or more rows of one product where only the left side has samples;
* custom: the same kernel in a loop over the samples;
* host: the same function of the arrays of each sample;
* control flow: a call becomes the batched callee, inlined; a branch whose index is not batched chooses between batched
  graphs; others become loops over the samples.

An operation may have a ``batching_rule`` of its own, as most views do (a ``batch`` rule for their attributes). A sample
of a batch has the bits that it has alone. Nodes that depend on no batched input stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir.bind import input_node, is_input
from twofold.ir.graph import Graph, called, interned, rebuild
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, ControlFlowOp, GetOutputOp, TemplateOp, ViewForm, ViewOp
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.views import view_form
from twofold.ops.base import apply, broadcast, ops
from twofold.ops.control_flow.programs import Branch, Branches, LoopSpec, renumbered, results_of, run
from twofold.transforms.reverse import input_cotangents

Flags = tuple[bool, ...]


def batch_graph(graph: Graph, inputs: Sequence[Node], flags: Sequence[bool]) -> list[tuple[Node, bool]]:
    """Apply a graph to a batch.

    Args:
        graph: The graph for one sample.
        inputs: Nodes for its inputs.
        flags: For each input, whether it has a leading batch axis.

    Returns:
        Each output, and whether it has the batch axis.
    """

    def make(node: Node, operands: tuple[Any, ...]) -> Any:
        if is_input(node):
            return inputs[node.attrs[0]], flags[node.attrs[0]]
        if isinstance(node.op, GetOutputOp):
            return operands[0][node.attrs[0]]
        values, batched = zip(*operands) if operands else ((), ())
        return (_control_flow if isinstance(node.op, ControlFlowOp) else batch_node)(node, values, batched)

    return list(rebuild(graph.outputs, make))


def batch_node(node: Node, values: Sequence[Node], flags: Flags) -> tuple[Node, bool]:
    """Apply a node to a batch.

    Args:
        node: The node for one sample.
        values: Nodes in place of its inputs.
        flags: For each input, whether it has a leading batch axis.

    Returns:
        The result, and whether it has the batch axis.
    """
    if not any(flags):
        return make_node(node.op, node.attrs, tuple(values), node.type), False
    size = next(value.shape[0] for value, flag in zip(values, flags, strict=True) if flag)
    if view_form(node) is ViewForm.BROADCAST and len(node.shape) > node.inputs[0].ndim:
        ones = (1,) * (len(node.shape) - node.inputs[0].ndim)
        values = (ops.reshape(values[0], (size, *ones, *node.inputs[0].shape)),)
    own = node.op.batching_rule(node, values, flags, size)
    if own is not None:
        return own, True
    if isinstance(node.op, TemplateOp):  # there is no kernel of its own to repeat
        return _sequential(node, values, flags, size)
    return _BY_KIND[node.op.kind](node, values, flags, size)


def batched_type(type: TensorType, size: int) -> TensorType:
    """``type`` with a leading axis of ``size`` samples."""
    return tensor_type(type.dtype, (size, *type.shape), type.weak)


def sample_type(type: TensorType) -> TensorType:
    """``type`` of one sample."""
    return tensor_type(type.dtype, type.shape[1:], type.weak)


def _with_attrs(node: Node, attrs: Attributes, values: Sequence[Node], size: int) -> tuple[Node, bool]:
    return make_node(node.op, attrs, tuple(values), batched_type(node.type, size)), True


def _wrapped(name: str, node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    attrs = (node.op.name, node.attrs, flags)
    return make_node(REGISTRY[name], attrs, tuple(values), batched_type(node.type, size)), True


def _elementwise(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    shape = (size, *node.shape)
    return _with_attrs(node, node.attrs, [broadcast(value, shape) for value in values], size)


def _reduction(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    axes, *rest = node.attrs
    return _with_attrs(node, (tuple(axis + 1 for axis in axes), *rest), values, size)


def _view(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    if not flags[0]:
        return _sequential(node, values, flags, size)
    if any(_batched_offsets(node, flags)):
        return _sequential(node, values, flags, size)
    return _wrapped("batched_view", node, values, flags, size)


def _batched_offsets(node: Node, flags: Flags) -> list[bool]:
    """For each offset of a view that is an input, whether it is batched."""
    assert isinstance(node.op, ViewOp)
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape) or ()
    return [flags[offset[1]] for _, _, offset in mapping if isinstance(offset, tuple)]


def _contraction(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    left, right = values
    rows, inner = node.inputs[0].shape[-2:]
    columns = node.shape[-1]
    batch = node.shape[:-2]
    if flags == (True, False) and not batch:
        flat = ops.reshape(left, (size * rows, inner))
        product = make_node(
            node.op, node.attrs, (flat, right), tensor_type(node.dtype, (size * rows, columns))
        )
        return ops.reshape(product, (size, rows, columns)), True
    if flags == (False, True) and not batch and columns == 1:
        # a matrix times one vector for each sample: these are the rows of the transposed product
        flat, matrix = ops.reshape(right, (size, inner)), ops.permute(left, (1, 0))
        product = make_node(node.op, node.attrs, (flat, matrix), tensor_type(node.dtype, (size, rows)))
        return ops.reshape(product, (size, rows, 1)), True
    left = left if flags[0] else broadcast(left, (size, *left.shape))
    right = right if flags[1] else broadcast(right, (size, *right.shape))
    return _with_attrs(node, node.attrs, (left, right), size)


def _custom(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    return _wrapped("batched_kernel", node, values, flags, size)


def _host(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    return _wrapped("batched_host", node, values, flags, size)


def _sequential(node: Node, values: Sequence[Node], flags: Flags, size: int) -> tuple[Node, bool]:
    """A loop that applies the node to one sample at a time."""
    inputs = [input_node(k, value.type) for k, value in enumerate(node.inputs)]
    alone = make_node(node.op, node.attrs, tuple(inputs), node.type)
    return _loop_over_samples(inputs, [alone], values, flags, size)[0], True


def _loop_over_samples(
    inputs: Sequence[Node], outputs: Sequence[Node], values: Sequence[Node], flags: Flags, size: int
) -> list[Node]:
    """A loop whose iterations are the samples.

    Args:
        inputs: Input nodes for one sample.
        outputs: What is computed of them.
        values: Nodes for the batch in place of the inputs.
        flags: For each input, whether it has a leading batch axis.
        size: The batch size.

    Returns:
        The outputs with a leading batch axis.
    """
    order = sorted(range(len(inputs)), key=lambda k: not flags[k])
    body = renumbered(outputs, [inputs[k] for k in order])
    spec = interned(LoopSpec(body, 0, sum(flags), size))
    return run("loop", (spec,), [values[k] for k in order])[: len(outputs)]


def _control_flow(node: Node, values: Sequence[Node], flags: Flags) -> list[tuple[Node, bool]]:
    """The results of a control flow node, each with whether it has the batch axis."""
    if not any(flags):
        return [
            (result, False) for result in results_of(make_node(node.op, node.attrs, tuple(values), node.type))
        ]
    callee = called(node)
    if callee is not None:
        return batch_graph(callee, values, flags)
    size = next(value.shape[0] for value, flag in zip(values, flags, strict=True) if flag)
    if isinstance(node.op, Branch) and not flags[0]:
        return [(result, True) for result in _branch(node, values, flags, size)]
    inputs = [input_node(k, value.type) for k, value in enumerate(node.inputs)]
    alone = make_node(node.op, node.attrs, tuple(inputs), node.type)
    return [(result, True) for result in _loop_over_samples(inputs, results_of(alone), values, flags, size)]


def _branch(node: Node, values: Sequence[Node], flags: Flags, size: int) -> list[Node]:
    """A branch whose index is not batched, between batched graphs."""
    types = [value.type for value in values[1:]]
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    graphs = []
    for graph in node.attrs[0].graphs:
        found = batch_graph(graph, inputs, flags[1:])
        batched = [one if flag else broadcast(one, (size, *one.shape)) for one, flag in found]
        graphs.append(Graph(types, batched))
    return run(node.op.name, (interned(Branches(graphs)),), values)


_BY_KIND = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "view": _view,
    "contraction": _contraction,
    "custom": _custom,
    "host": _host,
}


def batched_vjp(
    attrs: Attributes, cotangent: Node, output: Node, inputs: Sequence[Node]
) -> list[Node | None]:
    """The gradient rule of a batched operation: that of the operation that it wraps, batched.

    Args:
        attrs: The attributes ``(name, attributes, flags)`` of the batched operation.
        cotangent: The cotangent of its result.
        output: Its result.
        inputs: Its inputs.

    Returns:
        For each input its cotangent; None where no gradient flows.
    """
    name, inner, flags = attrs
    types = [sample_type(value.type) if flag else value.type for value, flag in zip(inputs, flags)]
    single = sample_type(output.type)
    ct, known, *own = [input_node(k, type) for k, type in enumerate((single, single, *types))]
    shares = input_cotangents(REGISTRY[name], inner, ct, known, tuple(own))
    actual, batched = (cotangent, output, *inputs), (True, True, *flags)
    size = output.shape[0]
    return [
        None
        if share is None
        else _batched_cotangent(Graph((single, single, *types), (share,)), actual, batched, flag, size)
        for share, flag in zip(shares, flags, strict=True)
    ]


def _batched_cotangent(
    graph: Graph, actual: Sequence[Node], batched: Sequence[bool], flag: bool, size: int
) -> Any:
    """The cotangent of one input; for an input that is not batched, the sum over samples."""
    ((share, is_batched),) = batch_graph(graph, actual, batched)
    if not is_batched:
        share = broadcast(share, (size, *share.shape))
    return share if flag else apply("sum", share, attrs=((0,), False))
