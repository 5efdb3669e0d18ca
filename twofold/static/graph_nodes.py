"""What the nodes of a ``GraphDef`` mean: the functions of this package that declare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold import static as tf
from twofold.dtypes import DType, float32, int32, int64, string
from twofold.ops.base import ops
from twofold.static import linalg, math, nn, special  # noqa: F401  their rows are in the table
from twofold.static.bodies import source_of
from twofold.static.custom_gradients import identity_of_several
from twofold.static.define import define
from twofold.static.errors import UnimplementedError
from twofold.static.graph import get_default_graph
from twofold.static.graph_def import DTYPES, NodeDef, array_of_message, sizes_of_message
from twofold.static.renamed import RENAMED
from twofold.static.variables import imported_variable

IMPORTERS: dict[str, Callable[[Node], Any]] = {}


class Node:
    """A node with its inputs declared."""

    def __init__(self, message: NodeDef, inputs: Sequence[Any], scope: str = "") -> None:
        self.scope = scope  # of what is declared beside it
        self.name, self.op, self.inputs = message.name, message.op, list(inputs)
        self._message = message

    def __getitem__(self, place: int) -> Any:
        return self.inputs[place]

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute: text as ``str``, a type as a dtype, a list as a list."""
        if name not in self._message.attr:
            return default
        message = self._message.attr[name]
        kind = message.WhichOneof("value")
        if kind == "s":
            return message.s.decode()
        if kind == "type":
            return DTYPES.get(message.type)
        if kind == "list":
            found: list[Any] = next((items for items in message.list._values.values() if items), [])
            return list(found)
        return default if kind is None else getattr(message, kind)

    def numbers(self, place: int) -> Any:
        """The numbers of an input if it is a constant, else the tensor."""
        owner = source_of(self.inputs[place])[0]
        if owner.constant is None or owner.constant.type_.dtype is string:
            return self.inputs[place]
        return owner.constant.detach().numpy().tolist()


def imports(*types: str) -> Callable[[Callable[[Node], Any]], Callable[[Node], Any]]:
    """Make a function what declares nodes of some types."""

    def enter(function: Callable[[Node], Any]) -> Callable[[Node], Any]:
        IMPORTERS.update(dict.fromkeys(types, function))
        return function

    return enter


def several_named(outputs: Sequence[Any], name: str) -> list[Any]:
    """The same values as results of one operation of a name."""
    if len(outputs) == 1:
        return [tf.identity(outputs[0], name=name)]
    return identity_of_several(outputs, name)


_PLAIN: dict[str, Callable[..., Any]] = {
    **RENAMED,
    "Inv": tf.reciprocal, "PreventGradient": tf.identity, "Identity": tf.identity, "Snapshot": tf.identity,
    "ReadVariableOp": tf.identity, "ZerosLike": tf.zeros_like, "OnesLike": tf.ones_like, "L2Loss": tf.nn.l2_loss,
    "Add": tf.add, "AddV2": tf.add, "Div": tf.div, "Mod": tf.floormod, "SquaredDifference": tf.squared_difference,
    "DivNoNan": tf.math.divide_no_nan, "Softmax": tf.nn.softmax, "LogSoftmax": tf.nn.log_softmax, "Diag": tf.diag,
    "DiagPart": tf.diag_part, "MatrixDiag": tf.matrix_diag, "InvertPermutation": tf.invert_permutation,
    "Rank": tf.rank, "ClipByValue": tf.clip_by_value,
}  # fmt: skip
"""Functions that take the inputs and a name."""


def _plain(function: Callable[..., Any]) -> Callable[[Node], Any]:
    return lambda node: function(*node.inputs, name=node.name)


IMPORTERS.update({op: _plain(function) for op, function in _PLAIN.items()})


@imports("Const")
def _const(node: Node) -> Any:
    array, dtype = array_of_message(node._message.attr["value"].tensor)
    if dtype is string:
        return tf.constant(array, string, name=node.name)
    made = get_default_graph().add("Const", node.name, [_bound(array, dtype).type_], ())
    made.constant = _bound(array, dtype)
    return made


def _bound(array: numpy.ndarray, dtype: DType) -> Any:
    plain = array.dtype == dtype.numpy and dtype.name == array.dtype.name
    return _core.from_array(numpy.array(array), False, *([] if plain else [dtype.code]))


@imports("Placeholder")
def _placeholder(node: Node) -> Any:
    shape = sizes_of_message(node._message.attr["shape"].shape) if "shape" in node._message.attr else None
    return tf.placeholder(node.attr("dtype"), shape, node.name)


@imports("PlaceholderWithDefault")
def _placeholder_with_default(node: Node) -> Any:
    return tf.placeholder_with_default(
        node[0], sizes_of_message(node._message.attr["shape"].shape), node.name
    )


@imports("VariableV2", "Variable", "VarHandleOp")
def _variable(node: Node) -> Any:
    shape = sizes_of_message(node._message.attr["shape"].shape)
    return imported_variable(node.name, node.attr("dtype"), shape, node.op == "VarHandleOp").op


@imports("Assign", "AssignVariableOp")
def _assign(node: Node) -> Any:
    made = tf.assign(node[0], node[1], node.attr("validate_shape", True), name=node.name)
    operation = source_of(made)[0]
    variable = operation.updates[0]
    if variable.initializer is None:
        variable._initializer = operation
        variable.initial_value = node[1]
    return operation


@imports("AssignAdd", "AssignSub", "AssignAddVariableOp", "AssignSubVariableOp")
def _assign_more(node: Node) -> Any:
    function = tf.assign_add if node.op.startswith("AssignAdd") else tf.assign_sub
    return function(node[0], node[1], name=node.name)


@imports("NoOp")
def _no_op(node: Node) -> Any:
    return tf.no_op(node.name)


@imports("IdentityN")
def _identity_n(node: Node) -> Any:
    return several_named(node.inputs, node.name)


@imports("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _matmul(node: Node) -> Any:
    a, b = (
        bool(node.attr("transpose_" + old, False) or node.attr("adj_" + new, False))
        for old, new in ("ax", "by")
    )
    return tf.matmul(node[0], node[1], transpose_a=a, transpose_b=b, name=node.name)


@imports("BiasAdd", "BiasAddV1")
def _bias_add(node: Node) -> Any:
    return tf.nn.bias_add(node[0], node[1], node.attr("data_format", "NHWC"), name=node.name)


def _padding(node: Node) -> Any:
    given = node.attr("padding")
    if given != "EXPLICIT":
        return given
    pairs = node.attr("explicit_paddings")
    return [list(pair) for pair in zip(pairs[::2], pairs[1::2])]


def _layout(node: Node) -> dict[str, Any]:
    return {"data_format": node.attr("data_format", "NHWC"), "name": node.name}


@imports("Conv2D")
def _conv2d(node: Node) -> Any:
    dilations = node.attr("dilations", [1, 1, 1, 1])
    return tf.nn.conv2d(
        node[0],
        node[1],
        strides=node.attr("strides"),
        padding=_padding(node),
        dilations=dilations,
        **_layout(node),
    )


@imports("DepthwiseConv2dNative")
def _depthwise(node: Node) -> Any:
    layout, dilations = node.attr("data_format", "NHWC"), node.attr("dilations", [1, 1, 1, 1])
    rate = dilations[2:] if layout == "NCHW" else dilations[1:3]
    strides = node.attr("strides")
    return tf.nn.depthwise_conv2d(node[0], node[1], strides, _padding(node), rate=rate, **_layout(node))


@imports("Conv2DBackpropInput")
def _conv2d_backwards(node: Node) -> Any:
    sizes = node.numbers(0)
    dilations = node.attr("dilations", [1, 1, 1, 1])
    return tf.nn.conv2d_transpose(
        node[2], node[1], sizes, node.attr("strides"), _padding(node), dilations=dilations, **_layout(node)
    )


@imports("MaxPool", "AvgPool")
def _pool(node: Node) -> Any:
    function = tf.nn.max_pool if node.op == "MaxPool" else tf.nn.avg_pool
    return function(node[0], node.attr("ksize"), node.attr("strides"), _padding(node), **_layout(node))


@imports("LRN")
def _lrn(node: Node) -> Any:
    radius, bias, alpha = node.attr("depth_radius", 5), node.attr("bias", 1.0), node.attr("alpha", 1.0)
    return tf.nn.local_response_normalization(
        node[0], radius, bias, alpha, node.attr("beta", 0.5), name=node.name
    )


@imports("LeakyRelu")
def _leaky_relu(node: Node) -> Any:
    return tf.nn.leaky_relu(node[0], node.attr("alpha", 0.2), name=node.name)


@imports("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _fused(node: Node) -> Any:
    x, scale, offset, mean, variance = node.inputs
    epsilon, layout = node.attr("epsilon", 0.0001), node.attr("data_format", "NHWC")
    with tf.name_scope(node.scope):
        if not node.attr("is_training", True):
            made = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, epsilon, layout, False)
        else:
            made = tf.nn.fused_batch_norm(
                x, scale, offset, epsilon=epsilon, data_format=layout, is_training=True
            )
        outputs = [tf.convert_to_tensor(value) for value in made]
    return several_named([*outputs, *outputs[1:], outputs[2]], node.name)


@imports("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def _cross_entropy(node: Node) -> Any:
    logits, labels = node.inputs
    if node.op.startswith("Sparse"):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=node.name)
    return tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name=node.name)


_REDUCTIONS = {
    "Sum": tf.reduce_sum,
    "Mean": tf.reduce_mean,
    "Max": tf.reduce_max,
    "Min": tf.reduce_min,
    "Prod": tf.reduce_prod,
    "All": tf.reduce_all,
    "Any": tf.reduce_any,
}


@imports(*_REDUCTIONS)
def _reduction(node: Node) -> Any:
    axis, keep = node.numbers(1), bool(node.attr("keep_dims", False))
    if axis == []:
        return tf.identity(node[0], name=node.name)
    return _REDUCTIONS[node.op](node[0], axis, keepdims=keep, name=node.name)


@imports("ArgMax", "ArgMin")
def _arg(node: Node) -> Any:
    function = tf.argmax if node.op == "ArgMax" else tf.argmin
    return function(node[0], node.numbers(1), output_type=node.attr("output_type", int64), name=node.name)


@imports("Cast")
def _cast(node: Node) -> Any:
    return tf.cast(node[0], node.attr("DstT"), name=node.name)


@imports("Shape", "Size")
def _shape(node: Node) -> Any:
    function = tf.shape if node.op == "Shape" else tf.size
    return function(node[0], out_type=node.attr("out_type", int32), name=node.name)


@imports("Squeeze")
def _squeeze(node: Node) -> Any:
    return tf.squeeze(node[0], node.attr("squeeze_dims") or node.attr("axis") or None, name=node.name)


_SHAPED: dict[str, Callable[..., Any]] = {
    "Reshape": tf.reshape,
    "ExpandDims": tf.expand_dims,
    "Transpose": tf.transpose,
    "Tile": tf.tile,
    "Slice": tf.slice,
    "BroadcastTo": tf.broadcast_to,
    "ReverseV2": tf.reverse,
}
"""Functions of a tensor, of numbers, and of a name."""


@imports(*_SHAPED)
def _shaped(node: Node) -> Any:
    return _SHAPED[node.op](node[0], *[node.numbers(k) for k in range(1, len(node.inputs))], name=node.name)


@imports("ConcatV2", "Concat")
def _concat(node: Node) -> Any:
    old = node.op == "Concat"
    values = node.inputs[1:] if old else node.inputs[:-1]
    return tf.concat(values, node.numbers(0 if old else len(node.inputs) - 1), name=node.name)


@imports("Pack")
def _pack(node: Node) -> Any:
    return tf.stack(node.inputs, axis=node.attr("axis", 0), name=node.name)


@imports("Unpack")
def _unpack(node: Node) -> Any:
    return tf.unstack(node[0], node.attr("num"), node.attr("axis", 0), name=node.name)


@imports("Split", "SplitV")
def _split(node: Node) -> Any:
    if node.op == "Split":
        return tf.split(node[1], node.attr("num_split"), node.numbers(0), name=node.name)
    return tf.split(node[0], node.numbers(1), node.numbers(2), name=node.name)


@imports("StridedSlice")
def _strided_slice(node: Node) -> Any:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = {name: node.attr(name, 0) for name in names}
    key: list[Any] = []
    given = [node.numbers(k) for k in (1, 2, 3)]
    count = next((len(each) for each in given if isinstance(each, list)), None)
    if count is None:
        count = node[1].get_shape().as_list()[0]

    def number(which: int, k: int) -> Any:
        return given[which][k] if isinstance(given[which], list) else tf.unstack(given[which], count)[k]

    with tf.name_scope(node.scope):
        for k in range(count):
            bit = 1 << k
            if masks["ellipsis_mask"] & bit:
                key.append(Ellipsis)
            elif masks["new_axis_mask"] & bit:
                key.append(None)
            elif masks["shrink_axis_mask"] & bit:
                key.append(number(0, k))
            else:
                start = None if masks["begin_mask"] & bit else number(0, k)
                stop = None if masks["end_mask"] & bit else number(1, k)
                key.append(slice(start, stop, number(2, k)))
        found = node[0][tuple(key)]
    return tf.identity(found, name=node.name)


@imports("Pad", "PadV2", "MirrorPad")
def _pad(node: Node) -> Any:
    mode = node.attr("mode", "CONSTANT")
    value = node.inputs[2] if node.op == "PadV2" else 0
    return tf.pad(node[0], node.numbers(1), mode, constant_values=value, name=node.name)


@imports("GatherV2", "Gather", "ResourceGather")
def _gather(node: Node) -> Any:
    if node.attr("batch_dims", 0):
        raise _refused(node, "batch_dims")
    return tf.gather(node[0], node[1], axis=node.numbers(2) if len(node.inputs) > 2 else 0, name=node.name)


def _refused(node: Node, what: str) -> Exception:
    text = f"import_graph_def: {what} of node '{node.name}' ({node.op}) is not offered"
    return UnimplementedError(text, "Leave it out.")


@imports("GatherNd")
def _gather_nd(node: Node) -> Any:
    return tf.gather_nd(node[0], node[1], name=node.name)


@imports("Fill")
def _fill(node: Node) -> Any:
    return tf.fill(node.numbers(0), node[1], name=node.name)


@imports("Range")
def _range(node: Node) -> Any:
    start, limit, delta = node.inputs
    return tf.range(start, limit, delta, name=node.name)


@imports("LinSpace")
def _linspace(node: Node) -> Any:
    return tf.linspace(node[0], node[1], node.numbers(2), name=node.name)


@imports("OneHot")
def _one_hot(node: Node) -> Any:
    indices, _, on, off = node.inputs
    made = {"on_value": on, "off_value": off, "axis": node.attr("axis", -1), "dtype": node.attr("T", float32)}
    return tf.one_hot(indices, node.numbers(1), **made, name=node.name)


@imports("TopKV2")
def _top_k(node: Node) -> Any:
    return tf.nn.top_k(node[0], node.numbers(1), sorted=node.attr("sorted", True), name=node.name)


@imports("Select", "SelectV2")
def _select(node: Node) -> Any:
    if node.op == "Select":
        return tf.where(node[0], node[1], node[2], name=node.name)
    return define("SelectV2", lambda choice, x, y: ops.where(choice, x, y), node.inputs, {}, node.name)


@imports("AddN", "AccumulateNV2")
def _add_n(node: Node) -> Any:
    return tf.add_n(node.inputs, name=node.name)


@imports("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
def _resize(node: Node) -> Any:
    functions = {
        "ResizeBilinear": tf.image.resize_bilinear,
        "ResizeNearestNeighbor": tf.image.resize_nearest_neighbor,
        "ResizeBicubic": tf.image.resize_bicubic,
    }
    flags = {name: True for name in ("align_corners", "half_pixel_centers") if node.attr(name, False)}
    return functions[node.op](node[0], node.numbers(1), **flags, name=node.name)


@imports("Cumsum", "Cumprod")
def _cumulative(node: Node) -> Any:
    function = tf.cumsum if node.op == "Cumsum" else tf.cumprod
    flags = {name: node.attr(name, False) for name in ("exclusive", "reverse")}
    return function(node[0], node.numbers(1), **flags, name=node.name)


@imports("Einsum")
def _einsum(node: Node) -> Any:
    return tf.einsum(node.attr("equation"), *node.inputs, name=node.name)


@imports("SpaceToDepth", "DepthToSpace")
def _blocks(node: Node) -> Any:
    if node.attr("data_format", "NHWC") != "NHWC":
        raise _refused(node, "data_format")
    function = tf.space_to_depth if node.op == "SpaceToDepth" else tf.depth_to_space
    return function(node[0], node.attr("block_size"), name=node.name)


@imports("InTopK", "InTopKV2")
def _in_top_k(node: Node) -> Any:
    k = node.attr("k") if node.op == "InTopK" else node.numbers(2)
    return tf.nn.in_top_k(node[0], node[1], k, name=node.name)


_SAMPLERS = {
    "RandomUniform": tf.random_uniform,
    "RandomStandardNormal": tf.random_normal,
    "TruncatedNormal": tf.truncated_normal,
}


@imports(*_SAMPLERS)
def _random(node: Node) -> Any:
    seed = node.attr("seed", 0) or node.attr("seed2", 0) or None
    return _SAMPLERS[node.op](node.numbers(0), dtype=node.attr("dtype"), seed=seed, name=node.name)
