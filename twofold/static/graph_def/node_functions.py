"""What the nodes of a ``GraphDef`` mean: the functions of this package that declare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold import static as tf
from twofold.dtypes import DType, float32, int32, int64, string
from twofold.ops.base import ops
from twofold.static import image, linalg, math  # noqa: F401  their rows are in the table
from twofold.static.api.aliases import RENAMED
from twofold.static.api.op_functions import define
from twofold.static.errors import UnimplementedError
from twofold.static.functions.bodies import source_of
from twofold.static.functions.custom_gradients import identity_of_several
from twofold.static.graph.graph import get_default_graph
from twofold.static.nn import activations  # noqa: F401
from twofold.static.protobuf.graph_def import DTYPES, NodeDef, array_of_message, sizes_of_message
from twofold.static.variables.variable import imported_variable

IMPORTERS: dict[str, Callable[[Node], Any]] = {}


class Node:
    """A node with its inputs declared."""

    def __init__(self, message: NodeDef, inputs: Sequence[Any], scope: str = "") -> None:
        self.scope = scope  # of what is declared beside it
        self.name, self.op, self.inputs = message.name, message.op, list(inputs)
        self._message = message

    def __getitem__(self, position: int) -> Any:
        return self.inputs[position]

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

    def numbers(self, position: int) -> Any:
        """The numbers of an input if it is a constant, else the tensor."""
        owner = source_of(self.inputs[position])[0]
        if owner.constant is None or owner.constant.type_.dtype is string:
            return self.inputs[position]
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
    "Rank": tf.rank, "ClipByValue": tf.clip_by_value, "Maximum": tf.maximum, "Minimum": tf.minimum,
    "Selu": tf.nn.selu, "Xlogy": tf.math.xlogy, "Xlog1py": tf.math.xlog1py,
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
    bound = _bound(array, dtype)
    return get_default_graph().add("Const", node.name, [bound.type_], (), constant=bound)


def _bound(array: numpy.ndarray, dtype: DType) -> Any:
    plain = array.dtype == dtype.numpy and dtype.name == array.dtype.name
    return _core.from_array(numpy.array(array), False, *([] if plain else [dtype.code]))


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


@imports("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _matmul(node: Node) -> Any:
    a, b = (
        bool(node.attr("transpose_" + old, False) or node.attr("adj_" + new, False))
        for old, new in ("ax", "by")
    )
    return tf.matmul(node[0], node[1], transpose_a=a, transpose_b=b, name=node.name)


def _padding(node: Node) -> Any:
    given = node.attr("padding")
    if given != "EXPLICIT":
        return given
    pairs = node.attr("explicit_paddings")
    return [list(pair) for pair in zip(pairs[::2], pairs[1::2])]


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


@imports("ConcatV2", "Concat")
def _concat(node: Node) -> Any:
    old = node.op == "Concat"
    values = node.inputs[1:] if old else node.inputs[:-1]
    return tf.concat(values, node.numbers(0 if old else len(node.inputs) - 1), name=node.name)


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


@imports("GatherV2", "Gather", "ResourceGather")
def _gather(node: Node) -> Any:
    if node.attr("batch_dims", 0):
        raise refused(node, "batch_dims")
    return tf.gather(node[0], node[1], axis=node.numbers(2) if len(node.inputs) > 2 else 0, name=node.name)


def refused(node: Node, what: str) -> Exception:
    text = f"import_graph_def: {what} of node '{node.name}' ({node.op}) is not offered"
    return UnimplementedError(text, "Leave it out.")


@imports("SelectV2")
def _select(node: Node) -> Any:
    return define("SelectV2", lambda choice, x, y: ops.where(choice, x, y), node.inputs, {}, node.name)


@imports("Einsum")
def _einsum(node: Node) -> Any:
    return tf.einsum(node.attr("equation"), *node.inputs, name=node.name)


def entered(types: str, function: Callable[..., Any], inputs: str, **attributes: Any) -> None:
    """Nodes of these types are ``function`` of inputs and attributes.

    Args:
        types: The types.
        function: What declares them; it takes ``name``.
        inputs: Indices of inputs in its order; "#1" are the numbers of input 1, "*" is the list of all.
        attributes: By parameter, the default of the attribute of this name, or its other name and its default, or a
            function of the node.
    """

    def given(node: Node, position: str) -> Any:
        if position == "*":
            return node.inputs
        return node.numbers(int(position[1:])) if position[0] == "#" else node[int(position)]

    def attribute(node: Node, name: str, rule: Any) -> Any:
        if callable(rule) and not isinstance(rule, DType):
            return rule(node)
        return node.attr(*rule) if isinstance(rule, tuple) else node.attr(name, rule)

    def declare(node: Node) -> Any:
        options = {name: attribute(node, name, rule) for name, rule in attributes.items()}
        return function(*[given(node, position) for position in inputs.split()], **options, name=node.name)

    IMPORTERS.update(dict.fromkeys(types.split(), declare))


_LAYOUT = {"strides": None, "padding": _padding, "data_format": "NHWC"}
_DILATED = {"dilations": [1, 1, 1, 1], **_LAYOUT}


def _rate(node: Node) -> list[int]:
    """The dilations of the two inner axes."""
    first = 2 if node.attr("data_format", "NHWC") == "NCHW" else 1
    return list(node.attr("dilations", [1, 1, 1, 1])[first : first + 2])


def _corners(node: Node) -> bool:
    """``align_corners`` of a resize that offers no ``half_pixel_centers``."""
    if node.attr("half_pixel_centers", False):
        raise refused(node, "half_pixel_centers")
    return bool(node.attr("align_corners", False))


def _seed(node: Node) -> int | None:
    return node.attr("seed", 0) or node.attr("seed2", 0) or None


def _shape(node: Node) -> Any:
    return sizes_of_message(node._message.attr["shape"].shape) if "shape" in node._message.attr else None


entered("NoOp", tf.no_op, "")
entered("IdentityN", several_named, "*")
entered("Placeholder", tf.placeholder, "", dtype=("dtype",), shape=_shape)
entered("PlaceholderWithDefault", tf.placeholder_with_default, "0", shape=_shape)
entered("AssignAdd AssignAddVariableOp", tf.assign_add, "0 1")
entered("AssignSub AssignSubVariableOp", tf.assign_sub, "0 1")
entered("BiasAdd BiasAddV1", tf.nn.bias_add, "0 1", data_format="NHWC")
entered("Conv2D", tf.nn.conv2d, "0 1", **_DILATED)
entered("DepthwiseConv2dNative", tf.nn.depthwise_conv2d, "0 1", rate=_rate, **_LAYOUT)
entered("Conv2DBackpropInput", tf.nn.conv2d_transpose, "2 1 #0", **_DILATED)
entered("MaxPool", tf.nn.max_pool, "0", ksize=None, **_LAYOUT)
entered("AvgPool", tf.nn.avg_pool, "0", ksize=None, **_LAYOUT)
entered("LRN", tf.nn.local_response_normalization, "0", depth_radius=5, bias=1.0, alpha=1.0, beta=0.5)
entered("LeakyRelu", tf.nn.leaky_relu, "0", alpha=0.2)
_LABELLED = {"logits": lambda node: node[0], "labels": lambda node: node[1]}
entered(
    "SparseSoftmaxCrossEntropyWithLogits", tf.nn.sparse_softmax_cross_entropy_with_logits, "", **_LABELLED
)
entered("SoftmaxCrossEntropyWithLogits", tf.nn.softmax_cross_entropy_with_logits_v2, "", **_LABELLED)
entered("ArgMax", tf.argmax, "0 #1", output_type=int64)
entered("ArgMin", tf.argmin, "0 #1", output_type=int64)
entered("Cumsum", tf.cumsum, "0 #1", exclusive=False, reverse=False)
entered("Cumprod", tf.cumprod, "0 #1", exclusive=False, reverse=False)
entered("Cast", tf.cast, "0", dtype=("DstT",))
entered("Shape", tf.shape, "0", out_type=int32)
entered("Size", tf.size, "0", out_type=int32)
entered("Squeeze", tf.squeeze, "0", axis=lambda node: node.attr("squeeze_dims") or node.attr("axis") or None)
entered("Reshape", tf.reshape, "0 #1")
entered("ExpandDims", tf.expand_dims, "0 #1")
entered("Transpose", tf.transpose, "0 #1")
entered("Tile", tf.tile, "0 #1")
entered("Slice", tf.slice, "0 #1 #2")
entered("BroadcastTo", tf.broadcast_to, "0 #1")
entered("ReverseV2", tf.reverse, "0 #1")
entered("Pack", tf.stack, "*", axis=0)
entered("Unpack", tf.unstack, "0", num=None, axis=0)
entered("Pad MirrorPad", tf.pad, "0 #1", mode="CONSTANT")
entered("PadV2", tf.pad, "0 #1", mode="CONSTANT", constant_values=lambda node: node[2])
entered("GatherNd", tf.gather_nd, "0 1")
entered("Select", tf.where, "0 1 2")
entered("AddN AccumulateNV2", tf.add_n, "*")
entered("Fill", tf.fill, "#0 1")
entered("Range", tf.range, "0 1 2")
entered("LinSpace", tf.linspace, "0 1 #2")
entered("OneHot", tf.one_hot, "0 #1 2 3", axis=-1, dtype=("T", float32))
entered("TopKV2", tf.nn.top_k, "0 #1", sorted=True)
entered("InTopK", tf.nn.in_top_k, "0 1", k=None)
entered("InTopKV2", tf.nn.in_top_k, "0 1 #2")
entered("SpaceToDepth", tf.space_to_depth, "0", block_size=None, data_format="NHWC")
entered("DepthToSpace", tf.depth_to_space, "0", block_size=None, data_format="NHWC")
_CENTERS = {"align_corners": False, "half_pixel_centers": False}
entered("ResizeBilinear", image.resize_bilinear, "0 #1", **_CENTERS)
entered("ResizeNearestNeighbor", image.resize_nearest_neighbor, "0 #1", align_corners=_corners)
entered("ResizeBicubic", image.resize_bicubic, "0 #1", **_CENTERS)
entered("RandomUniform", tf.random_uniform, "#0", dtype=None, seed=_seed)
entered("RandomStandardNormal", tf.random_normal, "#0", dtype=None, seed=_seed)
entered("TruncatedNormal", tf.truncated_normal, "#0", dtype=None, seed=_seed)
