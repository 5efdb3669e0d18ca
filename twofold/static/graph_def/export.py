"""Which nodes TensorFlow has for the operations of a graph."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import bool_, int32, int64, string
from twofold.static.functions.lowering import Choice
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph.string_table import decode
from twofold.static.graph_def.export_shapes import axes_of
from twofold.static.graph_def.node_writer import (
    OtherArguments,
    Rule,
    Writer,
    exports,
    other,
    result,
    row,
    shape_of,
)
from twofold.static.graph_def.own_nodes import record
from twofold.static.protobuf.graph_def import OWN, tensor_message

_UNARY = (
    "Abs Neg Sign Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Tanh Asinh Acosh Atanh Sigmoid Softplus Softsign Erf Erfc Lgamma Digamma Floor Ceil Round Rint Relu "
    "Relu6 Elu Selu Invert StopGradient Identity IsNan IsInf IsFinite ZerosLike OnesLike L2Loss Inv"
)
_BINARY = (
    "Add AddV2 Sub Mul RealDiv FloorDiv FloorMod TruncateDiv TruncateMod Pow Maximum Minimum "
    "SquaredDifference Atan2 BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift DivNoNan Equal NotEqual "
    "Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr"
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
        operand = writer.cast(operand, wanted)
    writer.last({"Reciprocal": "Inv"}.get(kind, kind), [operand])


@exports(*_BINARY.split())
def _binary(writer: Writer) -> None:
    writer.last(writer.operation.type, _operands(writer))


@exports("TrueDiv", "Div", "Mod")
def _division(writer: Writer) -> None:
    operands = _operands(writer)
    given, dtype = writer.dtype_of(operands[0]), writer.dtype
    if given is not dtype:
        operands = [writer.cast(ref, dtype, f"Cast_{k}") for k, ref in enumerate(operands)]
    name = {"TrueDiv": "RealDiv", "Mod": "FloorMod"}.get(writer.operation.type)
    writer.last(name or ("FloorDiv" if dtype.kind in "iu" else "RealDiv"), operands)


@exports("Const")
def _const(writer: Writer) -> None:
    bound, dtype = writer.operation.constant, writer.dtype
    array = decode(bound.numpy()) if dtype is string else bound.numpy()
    writer.last("Const", [], dtype=dtype, value=tensor_message(array, dtype))


def _shape(writer: Writer, refs: list[str]) -> Any:
    return shape_of(writer.operation.outputs[0])


row("LogicalNot NoOp", "*")
_PLACEHOLDER = {"op": lambda writer, refs: "Placeholder", "dtype": result, "shape": _shape}
row("Placeholder", "", **_PLACEHOLDER)
row("Argument", "", **_PLACEHOLDER, **{OWN: lambda writer, refs: record(writer)})
row("PlaceholderWithDefault", "*", dtype=result, shape=_shape)
row("VariableV2", "", dtype=result, shape=_shape, container="", shared_name="")


@exports("Assign", "AssignAdd", "AssignSub")
def _assign(writer: Writer) -> None:
    operation = writer.operation
    attrs: dict[str, Any] = {"validate_shape": True} if operation.type == "Assign" else {}
    value = writer.value(operation.arguments[0], writer.dtype)
    writer.last(
        operation.type, [operation.updates[0].op.name, value], T=writer.dtype, use_locking=False, **attrs
    )


@exports("Assert")
def _assert(writer: Writer) -> None:
    refs = writer.sources()
    writer.last("Assert", refs, T=[writer.dtype_of(ref) for ref in refs[1:]], summarize=3)


@exports("Print")
def _print(writer: Writer) -> None:
    refs = writer.sources()
    options = {name: writer.argument(name) for name in ("message", "first_n", "summarize")}
    writer.last("Print", refs, U=[writer.dtype_of(ref) for ref in refs[1:]], **options)


@exports("IsVariableInitialized")
def _is_initialized(writer: Writer) -> None:
    (variable,) = writer.argument("variables")
    writer.last("IsVariableInitialized", [variable.op.name], dtype=variable.dtype)


@exports("ReportUninitialized")
def _uninitialized(writer: Writer) -> None:
    variables = writer.argument("variables")
    names = writer.constant([variable.op.name.encode() for variable in variables], string, "names")
    if not variables:
        writer.last("Identity", [names])
        return
    flags = [
        writer.node("IsVariableInitialized", [one.op.name], "IsVariableInitialized", bool_, dtype=one.dtype)
        for one in variables
    ]
    mask = writer.node("Pack", flags, "Pack", N=len(flags), axis=0)
    found = writer.node("Where", [writer.node("LogicalNot", [mask], "LogicalNot")], "Where", int64)
    flat = writer.constant([-1], int32, "shape")
    positions = writer.node("Reshape", [found, flat], "Reshape", Tshape=int32)
    refs = [names, positions, writer.constant(0, int32, "axis")]
    writer.last("GatherV2", refs, Tparams=string, Tindices=int64, Taxis=int32, batch_dims=0)


@exports("IdentityN")
def _identity_n(writer: Writer) -> None:
    refs = writer.sources()[: len(writer.operation.outputs)]
    _several(writer, refs)


def _several(writer: Writer, refs: list[str]) -> None:
    """The results of an operation that TensorFlow computes with several nodes."""
    if len(refs) == 1:
        writer.last("Identity", refs)
    else:
        writer.last("IdentityN", refs, T=[writer.dtype_of(ref) for ref in refs])


@exports("Merge")
def _choice(writer: Writer) -> None:
    """A choice between two functions without effects: both are computed, and one is taken."""
    operation = writer.operation
    if not isinstance(operation.flow, Choice) or operation.updates or operation.inputs[0].dtype is not bool_:
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
        writer.last("MatMul", refs, transpose_a=a, transpose_b=b)
    else:
        writer.last("BatchMatMulV2", refs, adj_x=a, adj_y=b)


def _layout(writer: Writer, refs: list[str]) -> str:
    return "NCHW" if writer.argument("first") else writer.argument("data_format") or "NHWC"


def _fours(*names: str) -> Rule:
    """A parameter of any of these names: numbers for the inner axes or for all, as those for all four."""

    def rule(writer: Writer, refs: list[str]) -> list[int]:
        given = next((writer.argument(name) for name in names if name in writer.operation.keywords), None)
        if given is None:
            return [1, 1, 1, 1]
        inner = [given, given] if isinstance(given, int) else [int(item) for item in given]
        if len(inner) == 4:
            return inner
        inner = inner * 2 if len(inner) == 1 else inner
        return [1, 1, *inner] if _layout(writer, refs) == "NCHW" else [1, *inner, 1]

    return rule


def _padding(writer: Writer, refs: list[str]) -> str:
    given = writer.argument("padding", "SAME" if writer.argument("same") else "VALID")
    return given.upper() if isinstance(given, str) else "EXPLICIT"


def _explicit_paddings(writer: Writer, refs: list[str]) -> list[int] | None:
    given = writer.argument("padding", "VALID")
    return None if isinstance(given, str) else [int(n) for pair in given for n in pair]


def _window(writer: Writer, refs: list[str]) -> list[int]:
    if writer.rank() != 4:
        raise OtherArguments
    found: list[int] = _fours("kernel")(writer, refs)
    return found


_WINDOW = {"strides": _fours("strides"), "padding": _padding, "data_format": _layout}
_CONVOLUTION = {"dilations": _fours("dilations", "rate"), "explicit_paddings": _explicit_paddings, **_WINDOW}
row("BiasAdd", "*", data_format=_layout)
row("Conv2D DepthwiseConv2dNative", "input filter", **_CONVOLUTION)
row("Conv2DBackpropInput", "#output_shape filter value", T=result, **_CONVOLUTION)
row("MaxPool AvgPool", "*", ksize=_window, **_WINDOW)
row("LRN", "*", depth_radius=5, bias=1.0, alpha=1.0, beta=0.5)


@exports("LeakyRelu")
def _leaky(writer: Writer) -> None:
    alpha = writer.argument("alpha", 0.2)
    if isinstance(alpha, Slot):
        scaled = writer.node("Mul", [writer.input("alpha"), writer.input("features")], "mul")
        writer.last("Maximum", [scaled, writer.input("features")])
        return
    writer.last("LeakyRelu", writer.sources(), alpha=float(alpha))


@exports("Softmax", "LogSoftmax")
def _softmax(writer: Writer) -> None:
    axis, rank = writer.argument("axis", -1), writer.rank()
    kind, (ref,) = writer.operation.type, writer.sources()
    if axis in (None, -1) or (rank is not None and axis == rank - 1):
        writer.last(kind, [ref])
        return
    assert rank is not None
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    order = writer.constant(perm, int32, "perm")
    moved = writer.node("Transpose", [ref, order], "transpose", Tperm=int32)
    made = writer.node(kind, [moved], kind)
    writer.last("Transpose", [made, order], Tperm=int32)


@exports("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def _cross_entropy(writer: Writer) -> None:
    labels, logits = writer.input("labels"), writer.input("logits")
    kind = writer.operation.type
    attrs: dict[str, Any] = {"Tlabels": writer.dtype_of(labels)} if kind.startswith("Sparse") else {}
    if writer.rank(1) == 2:
        writer.last(kind, [logits, labels], **attrs)
        return
    shape = writer.node("Shape", [logits], "Shape", int32, out_type=int32)
    zero, end, one = (writer.constant([k], int32, n) for k, n in ((0, "begin"), (-1, "end"), (1, "strides")))
    outer = writer.node("StridedSlice", [shape, zero, end, one], "strided_slice", Index=int32, begin_mask=1)
    last = writer.node("StridedSlice", [shape, end, zero, one], "last", Index=int32, end_mask=1)
    both = writer.node("Pack", [writer.constant(-1, int32, "minus_one")], "Pack", N=1, axis=0)
    parts = [both, last, writer.constant(0, int32, "axis")]
    flat = writer.node("ConcatV2", parts, "concat", N=2, Tidx=int32)
    rows = writer.node("Reshape", [logits, flat], "Reshape", Tshape=int32)
    target = writer.constant([-1], int32, "flat") if attrs else flat
    wanted = writer.node("Reshape", [labels, target], "Reshape_1", Tshape=int32)
    made = writer.node(kind, [rows, wanted], kind, **attrs)
    writer.last("Reshape", [made, outer], Tshape=int32)


@exports("SigmoidCrossEntropyWithLogits")
def _logistic(writer: Writer) -> None:
    labels, logits, t = writer.input("labels"), writer.input("logits"), writer.dtype
    zero = writer.constant(0, t, "zero")
    positive = writer.node("Maximum", [logits, zero], "max")
    product = writer.node("Mul", [logits, labels], "mul")
    size = writer.node("Neg", [writer.node("Abs", [logits], "abs")], "neg")
    rest = writer.node("Log1p", [writer.node("Exp", [size], "exp")], "log1p")
    writer.last("AddV2", [writer.node("Sub", [positive, product], "sub"), rest])


@exports("BatchNormalization")
def _batch_normalization(writer: Writer) -> None:
    t, x = writer.dtype, writer.input("x")
    total = writer.node(
        "AddV2",
        [writer.input("variance"), writer.constant(writer.argument("variance_epsilon"), t, "epsilon")],
        "add",
    )
    scale = writer.node("Rsqrt", [total], "Rsqrt")
    if writer.argument("scale") is not None:
        scale = writer.node("Mul", [scale, writer.input("scale")], "mul")
    shift = writer.node("Mul", [writer.input("mean"), scale], "mul_1")
    if writer.argument("offset") is not None:
        shift = writer.node("Sub", [writer.input("offset"), shift], "sub")
    else:
        shift = writer.node("Neg", [shift], "neg")
    writer.last("AddV2", [writer.node("Mul", [x, scale], "mul_2"), shift])


@exports("Moments")
def _moments(writer: Writer) -> None:
    (x,) = writer.sources()
    keep = bool(writer.argument("keepdims", False))
    axes = axes_of(writer, writer.argument("axes"), x)
    mean = writer.node("Mean", [x, axes], "mean_keep", Tidx=int32, keep_dims=True)
    square = writer.node("SquaredDifference", [x, mean], "SquaredDifference")
    variance = writer.node("Mean", [square, axes], "variance", Tidx=int32, keep_dims=keep)
    own = mean if keep else writer.node("Mean", [x, axes], "mean", Tidx=int32, keep_dims=False)
    _several(writer, [own, variance])


@exports("Dropout")
def _dropout(writer: Writer) -> None:
    t, x = writer.dtype, writer.input("value")
    rate = writer.value(writer.argument("rate"), t, "rate")
    one = writer.constant(1, t, "one")
    shape = (
        writer.node("Shape", [x], "Shape", int32, out_type=int32)
        if writer.argument("shape") is None
        else writer.sizes("shape")
    )
    sample = writer.node("RandomUniform", [shape], "random_uniform", t, dtype=t, seed=_seed(writer), seed2=0)
    kept = writer.node("GreaterEqual", [sample, rate], "GreaterEqual", bool_)
    mask = writer.cast(kept, t)
    scale = writer.node("RealDiv", [one, writer.node("Sub", [one, rate], "sub")], "scale")
    scaled = writer.node("Mul", [x, scale], "mul")
    writer.last("Mul", [scaled, mask])


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
    sample = writer.node(_SAMPLERS[kind], [shape], _SAMPLERS[kind], t, dtype=t, seed=_seed(writer), seed2=0)
    first, second = ("minval", "maxval") if kind == "random_uniform" else ("mean", "stddev")
    low, high = writer.input(first, t), writer.input(second, t)
    scale = writer.node("Sub", [high, low], "sub") if kind == "random_uniform" else high
    writer.last("AddV2", [writer.node("Mul", [sample, scale], "mul"), low])


@exports("ClipByValue")
def _clip(writer: Writer) -> None:
    least = writer.node("Minimum", [writer.input("t"), writer.input("clip_value_max")], "Minimum")
    writer.last("Maximum", [least, writer.input("clip_value_min")])


@exports("L2Normalize")
def _l2_normalize(writer: Writer) -> None:
    t, x = writer.dtype, writer.input("x")
    square = writer.node("Square", [x], "Square")
    axes = axes_of(writer, writer.argument("axis"), x)
    total = writer.node("Sum", [square, axes], "Sum", Tidx=int32, keep_dims=True)
    epsilon = writer.constant(writer.argument("epsilon", 1e-12), t, "epsilon")
    scale = writer.node("Rsqrt", [writer.node("Maximum", [total, epsilon], "Maximum")], "Rsqrt")
    writer.last("Mul", [x, scale])
