"""Which nodes TensorFlow has for the operations of a graph."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import bool_, int32, string
from twofold.static.control_flow.lowering import Choice
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph_def.export_shapes import axes_of
from twofold.static.graph_def.node_writer import Writer, exports, index_dtype, other, shape_of
from twofold.static.protobuf.graph_def import CODES, tensor_message
from twofold.static.strings.string_table import decode

_UNARY = (
    "Abs Neg Sign Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Tanh Asinh Acosh Atanh Sigmoid Softplus Softsign Erf Erfc Lgamma Digamma Floor Ceil Round Rint Relu "
    "Relu6 Elu Selu Invert StopGradient Identity IsNan IsInf IsFinite ZerosLike OnesLike L2Loss Inv"
)
_BINARY = (
    "Add AddV2 Sub Mul RealDiv FloorDiv FloorMod TruncateDiv TruncateMod Pow Maximum Minimum "
    "SquaredDifference Atan2 BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift DivNoNan Equal NotEqual "
    "Less LessEqual Greater GreaterEqual"
)


def _operands(writer: Writer) -> list[str]:
    """The operands of an operation, numbers among them in the dtype of the tensors."""
    operation = writer.operation
    given = [*operation.arguments, *operation.keywords.values()]
    dtype = operation.inputs[0].type_.dtype
    return [writer.value(item, dtype, "xyz"[k]) for k, item in enumerate(given[:2])]


@exports(*_UNARY.split())
def _unary(writer: Writer) -> None:
    (operand,) = writer.sources()
    kind = writer.operation.type
    wanted = writer.argument("dtype")
    if wanted is not None and kind in ("ZerosLike", "OnesLike") and wanted is not writer.dtype_of(operand):
        operand = writer.node("Cast", [operand], "Cast", wanted, SrcT=writer.dtype_of(operand), DstT=wanted)
    name = {"Reciprocal": "Inv"}.get(kind, kind)
    writer.last(name, [operand], T=writer.dtype_of(operand))


@exports(*_BINARY.split())
def _binary(writer: Writer) -> None:
    operands = _operands(writer)
    dtype = writer.dtype_of(operands[0])
    writer.last(writer.operation.type, operands, T=dtype)


@exports("TrueDiv", "Div", "Mod")
def _division(writer: Writer) -> None:
    operands = _operands(writer)
    given, dtype = writer.dtype_of(operands[0]), writer.dtype
    if given is not dtype:
        operands = [
            writer.node("Cast", [ref], f"Cast_{k}", dtype, SrcT=given, DstT=dtype)
            for k, ref in enumerate(operands)
        ]
    name = {"TrueDiv": "RealDiv", "Mod": "FloorMod"}.get(writer.operation.type)
    writer.last(name or ("FloorDiv" if dtype.kind in "iu" else "RealDiv"), operands, T=dtype)


@exports("LogicalAnd", "LogicalOr")
def _logical(writer: Writer) -> None:
    writer.last(writer.operation.type, _operands(writer))


@exports("LogicalNot")
def _not(writer: Writer) -> None:
    writer.last("LogicalNot", writer.sources())


@exports("Const")
def _const(writer: Writer) -> None:
    bound, dtype = writer.operation.constant, writer.dtype
    array = decode(bound.numpy()) if dtype is string else bound.numpy()
    writer.last("Const", [], dtype=dtype, value=tensor_message(array, dtype))


@exports("Placeholder", "Argument")
def _placeholder(writer: Writer) -> None:
    writer.last("Placeholder", [], dtype=writer.dtype, shape=shape_of(writer.operation.outputs[0]))


@exports("PlaceholderWithDefault")
def _placeholder_with_default(writer: Writer) -> None:
    shape = shape_of(writer.operation.outputs[0])
    writer.last("PlaceholderWithDefault", writer.sources(), dtype=writer.dtype, shape=shape)


@exports("VariableV2")
def _variable(writer: Writer) -> None:
    shape = shape_of(writer.operation.outputs[0])
    writer.last("VariableV2", [], dtype=writer.dtype, shape=shape, container="", shared_name="")


@exports("Assign", "AssignAdd", "AssignSub")
def _assign(writer: Writer) -> None:
    operation = writer.operation
    attrs: dict[str, Any] = {"validate_shape": True} if operation.type == "Assign" else {}
    value = writer.value(operation.arguments[0], writer.dtype)
    writer.last(
        operation.type, [operation.updates[0].op.name, value], T=writer.dtype, use_locking=False, **attrs
    )


@exports("NoOp")
def _no_op(writer: Writer) -> None:
    writer.last("NoOp", [])


@exports("IdentityN")
def _identity_n(writer: Writer) -> None:
    refs = writer.sources()[: len(writer.operation.outputs)]
    _several(writer, refs)


def _several(writer: Writer, refs: list[str]) -> None:
    """The results of an operation that TensorFlow computes with several nodes."""
    if len(refs) == 1:
        writer.last("Identity", refs, T=writer.dtype_of(refs[0]))
        return
    writer.last("IdentityN", refs)
    node = writer.graph.node[-1]
    node.attr["T"].list.type.extend(CODES[writer.dtype_of(ref)] for ref in refs)


@exports("Merge")
def _choice(writer: Writer) -> None:
    """A choice between two functions without effects: both are computed, and one is taken."""
    operation = writer.operation
    if not isinstance(operation.flow, Choice) or operation.inputs[0].dtype is not bool_:
        other(writer)
        return
    no, yes = ([writer.of(source) for source in body.results] for body in operation.flow.bodies)
    choice = writer.sources()[0]
    if len(yes) == 1:
        writer.last("Select", [choice, yes[0], no[0]], T=writer.dtype_of(yes[0]))
        return
    pairs = enumerate(zip(yes, no))
    chosen = [
        writer.node(
            "Select", [choice, *pair], f"Select_{k}", writer.dtype_of(pair[0]), T=writer.dtype_of(pair[0])
        )
        for k, pair in pairs
    ]
    _several(writer, chosen)


# Products and layers


@exports("MatMul", "BatchMatMulV2")
def _matmul(writer: Writer) -> None:
    flags = {
        name: bool(writer.argument(name, False))
        for name in ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b")
    }
    refs = writer.sources()
    a, b = flags["transpose_a"] or flags["adjoint_a"], flags["transpose_b"] or flags["adjoint_b"]
    if writer.rank(0) == 2 and writer.rank(1) == 2:
        writer.last("MatMul", refs, T=writer.dtype, transpose_a=a, transpose_b=b)
    else:
        writer.last("BatchMatMulV2", refs, T=writer.dtype, adj_x=a, adj_y=b)


@exports("BiasAdd")
def _bias_add(writer: Writer) -> None:
    layout = "NCHW" if writer.argument("first", False) else "NHWC"
    writer.last("BiasAdd", writer.sources(), T=writer.dtype, data_format=layout)


def _fours(given: Any, layout: str) -> list[int]:
    """Numbers for the inner axes or for all, as those for all four."""
    if given is None:
        return [1, 1, 1, 1]
    inner = [given, given] if isinstance(given, int) else [int(item) for item in given]
    if len(inner) == 4:
        return inner
    inner = inner * 2 if len(inner) == 1 else inner
    return [1, 1, *inner] if layout == "NCHW" else [1, *inner, 1]


def _padding(writer: Writer) -> dict[str, Any]:
    given = writer.argument("padding", "VALID")
    if isinstance(given, str):
        return {"padding": given.upper()}
    return {"padding": "EXPLICIT", "explicit_paddings": [int(n) for pair in given for n in pair]}


@exports("Conv2D", "DepthwiseConv2dNative")
def _convolution(writer: Writer) -> None:
    layout = writer.argument("data_format") or "NHWC"
    dilations = writer.argument("dilations", writer.argument("rate"))
    attrs = {"strides": _fours(writer.argument("strides"), layout), "dilations": _fours(dilations, layout)}
    writer.last(
        writer.operation.type,
        [writer.input("input"), writer.input("filter")],
        T=writer.dtype,
        data_format=layout,
        **attrs,
        **_padding(writer),
    )


@exports("Conv2DBackpropInput")
def _transposed(writer: Writer) -> None:
    layout = writer.argument("data_format") or "NHWC"
    refs = [writer.sizes("output_shape"), writer.input("filter"), writer.input("value")]
    strides, dilations = writer.argument("strides"), writer.argument("dilations")
    writer.last(
        "Conv2DBackpropInput",
        refs,
        T=writer.dtype,
        data_format=layout,
        strides=_fours(strides, layout),
        dilations=_fours(dilations, layout),
        **_padding(writer),
    )


@exports("MaxPool", "AvgPool")
def _pool(writer: Writer) -> None:
    layout = "NCHW" if writer.argument("first") else "NHWC"
    attrs = {
        "ksize": _fours(writer.argument("kernel"), layout),
        "strides": _fours(writer.argument("strides"), layout),
    }
    padding = "SAME" if writer.argument("same") else "VALID"
    writer.last(
        writer.operation.type, writer.sources(), T=writer.dtype, data_format=layout, padding=padding, **attrs
    )


@exports("LRN")
def _lrn(writer: Writer) -> None:
    names = {"depth_radius": writer.argument("depth_radius", 5)}
    floats = {
        name: float(writer.argument(name, default))
        for name, default in (("bias", 1), ("alpha", 1), ("beta", 0.5))
    }
    writer.last("LRN", writer.sources(), T=writer.dtype, **names, **floats)


@exports("LeakyRelu")
def _leaky(writer: Writer) -> None:
    alpha = writer.argument("alpha", 0.2)
    if isinstance(alpha, Slot):
        scaled = writer.node("Mul", [writer.input("alpha"), writer.input("features")], "mul", T=writer.dtype)
        writer.last("Maximum", [scaled, writer.input("features")], T=writer.dtype)
        return
    writer.last("LeakyRelu", writer.sources(), T=writer.dtype, alpha=float(alpha))


@exports("Softmax", "LogSoftmax")
def _softmax(writer: Writer) -> None:
    axis, rank = writer.argument("axis", -1), writer.rank()
    kind, (ref,) = writer.operation.type, writer.sources()
    if axis in (None, -1) or (rank is not None and axis == rank - 1):
        writer.last(kind, [ref], T=writer.dtype)
        return
    assert rank is not None
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    order = writer.constant(perm, int32, "perm")
    moved = writer.node("Transpose", [ref, order], "transpose", T=writer.dtype, Tperm=int32)
    made = writer.node(kind, [moved], kind, T=writer.dtype)
    writer.last("Transpose", [made, order], T=writer.dtype, Tperm=int32)


@exports("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def _cross_entropy(writer: Writer) -> None:
    labels, logits = writer.input("labels"), writer.input("logits")
    kind, dtype = writer.operation.type, writer.dtype
    attrs: dict[str, Any] = {"Tlabels": writer.dtype_of(labels)} if kind.startswith("Sparse") else {}
    if writer.rank(1) == 2:
        writer.last(kind, [logits, labels], T=dtype, **attrs)
        return
    shape = writer.node("Shape", [logits], "Shape", int32, T=dtype, out_type=int32)
    zero, end, one = (writer.constant([k], int32, n) for k, n in ((0, "begin"), (-1, "end"), (1, "strides")))
    slicing = {"T": int32, "Index": int32, "begin_mask": 1}
    outer = writer.node("StridedSlice", [shape, zero, end, one], "strided_slice", int32, **slicing)
    last = writer.node(
        "StridedSlice", [shape, end, zero, one], "last", int32, T=int32, Index=int32, end_mask=1
    )
    both = writer.constant(-1, int32, "minus_one")
    flat = writer.node(
        "ConcatV2",
        [writer.node("Pack", [both], "Pack", N=1, T=int32, axis=0), last, writer.constant(0, int32, "axis")],
        "concat",
        N=2,
        T=int32,
        Tidx=int32,
    )
    rows = writer.node("Reshape", [logits, flat], "Reshape", T=dtype, Tshape=int32)
    target = writer.constant([-1], int32, "flat") if attrs else flat
    wanted = writer.node("Reshape", [labels, target], "Reshape_1", T=writer.dtype_of(labels), Tshape=int32)
    made = writer.node(kind, [rows, wanted], kind, T=dtype, **attrs)
    writer.last("Reshape", [made, outer], T=dtype, Tshape=int32)


@exports("SigmoidCrossEntropyWithLogits")
def _logistic(writer: Writer) -> None:
    labels, logits, t = writer.input("labels"), writer.input("logits"), writer.dtype
    zero = writer.constant(0, t, "zero")
    positive = writer.node("Maximum", [logits, zero], "max", T=t)
    product = writer.node("Mul", [logits, labels], "mul", T=t)
    size = writer.node("Neg", [writer.node("Abs", [logits], "abs", T=t)], "neg", T=t)
    rest = writer.node("Log1p", [writer.node("Exp", [size], "exp", T=t)], "log1p", T=t)
    writer.last("AddV2", [writer.node("Sub", [positive, product], "sub", T=t), rest], T=t)


@exports("BatchNormalization")
def _batch_normalization(writer: Writer) -> None:
    t, x = writer.dtype, writer.input("x")
    total = writer.node(
        "AddV2",
        [writer.input("variance"), writer.constant(writer.argument("variance_epsilon"), t, "epsilon")],
        "add",
        T=t,
    )
    scale = writer.node("Rsqrt", [total], "Rsqrt", T=t)
    if writer.argument("scale") is not None:
        scale = writer.node("Mul", [scale, writer.input("scale")], "mul", T=t)
    shift = writer.node("Mul", [writer.input("mean"), scale], "mul_1", T=t)
    if writer.argument("offset") is not None:
        shift = writer.node("Sub", [writer.input("offset"), shift], "sub", T=t)
    else:
        shift = writer.node("Neg", [shift], "neg", T=t)
    writer.last("AddV2", [writer.node("Mul", [x, scale], "mul_2", T=t), shift], T=t)


@exports("Moments")
def _moments(writer: Writer) -> None:
    t, (x,) = writer.dtype, writer.sources()
    keep = bool(writer.argument("keepdims", False))
    axes = axes_of(writer, writer.argument("axes"), x)
    mean = writer.node("Mean", [x, axes], "mean_keep", T=t, Tidx=int32, keep_dims=True)
    square = writer.node("SquaredDifference", [x, mean], "SquaredDifference", T=t)
    variance = writer.node("Mean", [square, axes], "variance", T=t, Tidx=int32, keep_dims=keep)
    own = mean if keep else writer.node("Mean", [x, axes], "mean", T=t, Tidx=int32, keep_dims=False)
    _several(writer, [own, variance])


@exports("Dropout")
def _dropout(writer: Writer) -> None:
    t, x = writer.dtype, writer.input("value")
    rate = writer.value(writer.argument("rate"), t, "rate")
    one = writer.constant(1, t, "one")
    shape = (
        writer.node("Shape", [x], "Shape", int32, T=t, out_type=int32)
        if writer.argument("shape") is None
        else writer.sizes("shape")
    )
    sample = writer.node(
        "RandomUniform", [shape], "random_uniform", t, dtype=t, T=int32, seed=_seed(writer), seed2=0
    )
    kept = writer.node("GreaterEqual", [sample, rate], "GreaterEqual", bool_, T=t)
    mask = writer.node("Cast", [kept], "Cast", t, SrcT=bool_, DstT=t)
    scale = writer.node("RealDiv", [one, writer.node("Sub", [one, rate], "sub", T=t)], "scale", T=t)
    scaled = writer.node("Mul", [x, scale], "mul", T=t)
    writer.last("Mul", [scaled, mask], T=t)


def _seed(writer: Writer) -> int:
    """A seed that differs from operation to operation; TensorFlow samples other numbers from it than this library."""
    return int(writer.argument("key", 0)) % (2**31 - 1) + 1


_SAMPLERS = {
    "random_uniform": "RandomUniform",
    "random_normal": "RandomStandardNormal",
    "truncated_normal": "TruncatedNormal",
}


@exports(*_SAMPLERS)
def _random(writer: Writer) -> None:
    t, kind = writer.dtype, writer.operation.type
    shape = writer.sizes("shape")
    sample = writer.node(
        _SAMPLERS[kind],
        [shape],
        _SAMPLERS[kind],
        t,
        dtype=t,
        T=index_dtype(writer, shape),
        seed=_seed(writer),
        seed2=0,
    )
    first, second = ("minval", "maxval") if kind == "random_uniform" else ("mean", "stddev")
    low, high = writer.input(first, t), writer.input(second, t)
    scale = writer.node("Sub", [high, low], "sub", T=t) if kind == "random_uniform" else high
    writer.last("AddV2", [writer.node("Mul", [sample, scale], "mul", T=t), low], T=t)


@exports("ClipByValue")
def _clip(writer: Writer) -> None:
    t = writer.dtype
    least = writer.node("Minimum", [writer.input("t"), writer.input("clip_value_max")], "Minimum", T=t)
    writer.last("Maximum", [least, writer.input("clip_value_min")], T=t)


@exports("L2Normalize")
def _l2_normalize(writer: Writer) -> None:
    t, x = writer.dtype, writer.input("x")
    square = writer.node("Square", [x], "Square", T=t)
    axes = axes_of(writer, writer.argument("axis"), x)
    total = writer.node("Sum", [square, axes], "Sum", T=t, Tidx=int32, keep_dims=True)
    epsilon = writer.constant(writer.argument("epsilon", 1e-12), t, "epsilon")
    scale = writer.node("Rsqrt", [writer.node("Maximum", [total, epsilon], "Maximum", T=t)], "Rsqrt", T=t)
    writer.last("Mul", [x, scale], T=t)
