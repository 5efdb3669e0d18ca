"""Nodes of reductions, and of what changes shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import bool_, float32, int32, int64
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph_def.node_writer import Writer, exports, index_dtype


def axes_of(writer: Writer, axis: Any, ref: str) -> str:
    """The axes of a reduction as an input; all of them for None."""
    if axis is not None:
        return writer.value(axis, int32, "reduction_indices")
    rank = writer.rank()
    if rank is not None:
        return writer.constant(numpy.arange(rank), int32, "reduction_indices")
    count = writer.node("Rank", [ref], "Rank", int32, T=writer.dtype_of(ref))
    zero, one = writer.constant(0, int32, "start"), writer.constant(1, int32, "delta")
    return writer.node("Range", [zero, count, one], "range", int32, Tidx=int32)


@exports("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
def _reduction(writer: Writer) -> None:
    (ref, *_), kind = writer.sources(), writer.operation.type
    axes = axes_of(writer, writer.argument("axis"), ref)
    keep = bool(writer.argument("keepdims", False))
    t = None if kind in ("All", "Any") else writer.dtype_of(ref)
    writer.last(kind, [ref, axes], T=t, Tidx=index_dtype(writer, axes), keep_dims=keep)


@exports("LogSumExp")
def _log_sum_exp(writer: Writer) -> None:
    t, (x, *_) = writer.dtype, writer.sources()
    axes, keep = axes_of(writer, writer.argument("axis"), x), bool(writer.argument("keepdims", False))
    most = writer.node("Max", [x, axes], "Max", T=t, Tidx=int32, keep_dims=True)
    powers = writer.node("Exp", [writer.node("Sub", [x, most], "sub", T=t)], "Exp", T=t)
    total = writer.node(
        "Log", [writer.node("Sum", [powers, axes], "Sum", T=t, Tidx=int32, keep_dims=keep)], "Log", T=t
    )
    again = most if keep else writer.node("Max", [x, axes], "Max_1", T=t, Tidx=int32, keep_dims=False)
    writer.last("AddV2", [total, again], T=t)


@exports("ArgMax", "ArgMin")
def _arg(writer: Writer) -> None:
    (ref, *_), axis = writer.sources(), writer.argument("axis", 0)
    position = writer.value(0 if axis is None else axis, int32, "dimension")
    writer.last(
        writer.operation.type,
        [ref, position],
        T=writer.dtype_of(ref),
        Tidx=index_dtype(writer, position),
        output_type=writer.dtype,
    )


# Shapes


@exports("Reshape")
def _reshape(writer: Writer) -> None:
    ref = writer.input("tensor")
    if "shape" in writer.operation.keywords:
        shape = writer.sizes("shape")
    else:  # ``count`` axes from ``first`` on become one
        sizes = writer.operation.outputs[0].type_.shape
        known = [size if size >= 0 else -1 for size in sizes]
        shape = writer.constant(known, int32, "shape")
    writer.last("Reshape", [ref, shape], T=writer.dtype, Tshape=index_dtype(writer, shape))


@exports("Flatten")
def _flatten(writer: Writer) -> None:
    t, (ref, *_) = writer.dtype, writer.sources()
    shape = writer.node("Shape", [ref], "Shape", int32, T=t, out_type=int32)
    zero, one = writer.constant([0], int32, "begin"), writer.constant([1], int32, "end")
    slicing = {"T": int32, "Index": int32, "shrink_axis_mask": 1}
    rows = writer.node("StridedSlice", [shape, zero, one, one], "strided_slice", int32, **slicing)
    rest = writer.constant(-1, int32, "minus_one")
    sizes = writer.node("Pack", [rows, rest], "Pack", int32, N=2, T=int32, axis=0)
    known = writer.operation.inputs[0].type_.shape[1:]
    if all(size >= 0 for size in known):
        sizes = writer.constant([-1, int(numpy.prod(known))], int32, "shape")
    writer.last("Reshape", [ref, sizes], T=t, Tshape=int32)


@exports("Squeeze")
def _squeeze(writer: Writer) -> None:
    axis = writer.argument("axis")
    positions = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    writer.last("Squeeze", [writer.input("input")], T=writer.dtype, squeeze_dims=positions)


@exports("Transpose")
def _transpose(writer: Writer) -> None:
    ref, perm = writer.input("a"), writer.argument("perm")
    if perm is None:
        rank = writer.rank() or 0
        order = writer.constant(numpy.arange(rank)[::-1], int32, "perm")
    else:
        order = writer.sizes("perm")
    writer.last("Transpose", [ref, order], T=writer.dtype, Tperm=index_dtype(writer, order))


@exports("ConcatV2")
def _concat(writer: Writer) -> None:
    refs = [writer.value(item, writer.dtype, "values") for item in writer.argument("values")]
    if len(refs) == 1:
        writer.last("Identity", refs, T=writer.dtype)
        return
    axis = writer.sizes("axis", 0)
    writer.last("ConcatV2", [*refs, axis], N=len(refs), T=writer.dtype, Tidx=index_dtype(writer, axis))


@exports("Pack")
def _pack(writer: Writer) -> None:
    refs = [writer.value(item, writer.dtype, "values") for item in writer.argument("values")]
    writer.last("Pack", refs, N=len(refs), T=writer.dtype, axis=int(writer.argument("axis", 0)))


@exports("Unpack")
def _unpack(writer: Writer) -> None:
    count = len(writer.operation.outputs)
    writer.last(
        "Unpack", [writer.input("value")], num=count, T=writer.dtype, axis=int(writer.argument("axis", 0))
    )


@exports("Split")
def _split(writer: Writer) -> None:
    axis, parts = writer.sizes("axis", 0), writer.argument("parts")
    count = len(writer.operation.outputs)
    if isinstance(parts, int):
        writer.last("Split", [axis, writer.input("value")], num_split=count, T=writer.dtype)
        return
    sizes = writer.sizes("parts")
    attrs = {"num_split": count, "T": writer.dtype, "Tlen": index_dtype(writer, sizes)}
    writer.last("SplitV", [writer.input("value"), sizes, axis], **attrs)


@exports("StridedSlice")
def _strided_slice(writer: Writer) -> None:
    form = writer.argument("form")
    items = form[1:] if form[0] == "tuple" else [form]
    numbers: list[list[Any]] = [[], [], []]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)

    def number(item: Any, default: int) -> Any:
        if item[0] == "at":
            return Slot(1 + item[1])  # behind the tensor that is sliced
        if item[0] == "part":
            return writer.argument(f"part{item[1]}")
        return default if item[1] is None else int(item[1])

    for k, item in enumerate(items):
        kind, value = item[0], item[1]
        if kind == "slice":
            masks["begin_mask"] |= (item[1] == ("is", None)) << k
            masks["end_mask"] |= (item[2] == ("is", None)) << k
            row = [number(item[1], 0), number(item[2], 0), number(item[3], 1)]
        elif kind == "is" and value is Ellipsis:
            masks["ellipsis_mask"] |= 1 << k
            row = [0, 0, 1]
        elif kind == "is" and value is None:
            masks["new_axis_mask"] |= 1 << k
            row = [0, 0, 1]
        else:
            masks["shrink_axis_mask"] |= 1 << k
            begin = number(item, 0)
            row = [begin, 0 if isinstance(begin, Slot) else begin + 1, 1]
            if isinstance(begin, Slot):
                ref = writer.value(begin, int32)
                row[1] = writer.node(
                    "AddV2",
                    [ref, writer.constant(1, writer.dtype_of(ref), "one")],
                    "end",
                    T=writer.dtype_of(ref),
                )
            elif begin == -1:
                masks["end_mask"] |= 1 << k
        for each, given in zip(numbers, row):
            each.append(given)
    refs = [_numbers(writer, each, hint) for each, hint in zip(numbers, ("begin", "end", "strides"))]
    writer.last("StridedSlice", [writer.sources()[0], *refs], T=writer.dtype, Index=int32, **masks)


def _numbers(writer: Writer, items: list[Any], hint: str) -> str:
    if not any(isinstance(item, (Slot, str)) for item in items):
        return writer.constant(items, int32, hint)
    parts = []
    for k, item in enumerate(items):
        ref = item if isinstance(item, str) else writer.value(item, int32, f"{hint}_{k}")
        if writer.dtype_of(ref) is int64:
            ref = writer.node("Cast", [ref], f"{hint}_{k}", int32, SrcT=int64, DstT=int32)
        parts.append(ref)
    return writer.node("Pack", parts, hint, int32, N=len(parts), T=int32, axis=0)


@exports("Pad")
def _pad(writer: Writer) -> None:
    ref, paddings = writer.input("tensor"), writer.sizes("paddings")
    attrs = {"T": writer.dtype, "Tpaddings": index_dtype(writer, paddings)}
    mode, value = writer.argument("mode", "CONSTANT").upper(), writer.argument("constant_values", 0)
    if mode != "CONSTANT":
        writer.last("MirrorPad", [ref, paddings], mode=mode, **attrs)
    elif isinstance(value, Slot) or value != 0:
        writer.last("PadV2", [ref, paddings, writer.value(value, writer.dtype, "constant_values")], **attrs)
    else:
        writer.last("Pad", [ref, paddings], **attrs)


@exports("Select")
def _select(writer: Writer) -> None:
    if "index" in writer.operation.keywords:  # one slice along an axis
        refs = [writer.input("value"), writer.sizes("index"), writer.sizes("axis")]
        writer.last("GatherV2", refs, Tparams=writer.dtype, Tindices=int32, Taxis=int32, batch_dims=0)
        return
    refs = [writer.input("condition", bool_), writer.input("x"), writer.input("y")]
    rows = writer.rank(0) == 1 and len(writer.operation.outputs[0].type_.shape) > 1
    writer.last("Select" if rows else "SelectV2", refs, T=writer.dtype)


@exports("SelectV2")
def _select_broadcast(writer: Writer) -> None:
    writer.last("SelectV2", writer.sources(), T=writer.dtype)


@exports("AddN")
def _add_n(writer: Writer) -> None:
    refs = writer.sources()
    writer.last("AddN", refs, N=len(refs), T=writer.dtype)


@exports("ReverseV2")
def _reverse(writer: Writer) -> None:
    axis = writer.value(
        [writer.argument("axis")] if isinstance(writer.argument("axis"), int) else writer.argument("axis"),
        int32,
        "axis",
    )
    writer.last("ReverseV2", [writer.input("tensor"), axis], T=writer.dtype, Tidx=int32)


@exports("Einsum")
def _einsum(writer: Writer) -> None:
    refs = writer.sources()
    writer.last("Einsum", refs, N=len(refs), T=writer.dtype, equation=writer.argument("equation"))


def _row(types: str, inputs: str, **attributes: Any) -> None:
    """Operations of these types are nodes of the same type, but for an attribute ``op``.

    Args:
        types: The types.
        inputs: The parameters that are inputs, in their order; "#axis" is a shape, an axis or the like, "axis:int32"
            has this dtype, if it is a number, and "axis=0" this value, if none is given.
        attributes: Attributes: a function of the writer and the inputs, or a parameter's default where the value is
            that of the parameter of the same name.
    """

    def operand(writer: Writer, text: str) -> str:
        name, _, default = text.lstrip("#").partition("=")
        name, _, kind = name.partition(":")
        if text[0] == "#":
            return writer.sizes(name, int(default) if default else None)
        dtype = int32 if kind == "int32" else float32 if kind else writer.dtype
        return writer.value(writer.argument(name, int(default) if default else None), dtype, name)

    def attribute(writer: Writer, refs: list[str], name: str, rule: Any) -> Any:
        if callable(rule):
            return rule(writer, refs)
        given = writer.argument(name, rule)
        return type(rule)(rule if given is None else given)

    def write(writer: Writer) -> None:
        refs = [operand(writer, text) for text in inputs.split()]
        found = {name: attribute(writer, refs, name, rule) for name, rule in attributes.items()}
        writer.last(found.pop("op", writer.operation.type), refs, **found)

    exports(*types.split())(write)


def _result(writer: Writer, refs: list[str]) -> Any:
    """The dtype of the result."""
    return writer.dtype


def _of(position: int) -> Callable[[Writer, list[str]], Any]:
    """The dtype of an input."""
    return lambda writer, refs: writer.dtype_of(refs[position])


def _index(position: int) -> Callable[[Writer, list[str]], Any]:
    """The dtype of an input that is an index or a shape."""
    return lambda writer, refs: index_dtype(writer, refs[position])


_row("Cast", "x", SrcT=_of(0), DstT=_result, Truncate=False)
_row("Shape Size", "input", T=_of(0), out_type=_result)
_row("Rank", "input", T=_of(0))
_row("ExpandDims", "input #axis", T=_result, Tdim=_index(1))
_row("Tile", "input #multiples", T=_result, Tmultiples=_index(1))
_row("Slice", "input_ #begin #size", T=_result, Index=_index(1))
_row(
    "GatherV2",
    "params indices:int32 #axis=0",
    Tparams=_result,
    Tindices=_of(1),
    Taxis=_index(2),
    batch_dims=0,
)
_row("GatherNd", "params indices:int32", Tparams=_result, Tindices=_of(1))
_row("Fill", "#dims value", T=_result, index_type=_index(0))
_row("Range", "start limit delta=1", Tidx=_result)
_row("OneHot", "indices:int32 #depth on_value=1 off_value=0", T=_result, TI=_of(0), axis=-1)
_row("TopKV2", "input #k=1", T=_result, sorted=True)
_row("Cumsum Cumprod", "x #axis=0", T=_result, Tidx=_index(1), exclusive=False, reverse=False)
_row("DepthToSpace SpaceToDepth", "input", T=_result, block_size=0, data_format="NHWC")
_row("InTopK", "predictions:float32 targets:int32 #k", op=lambda writer, refs: "InTopKV2", T=_of(1))
_row("LinSpace", "start stop #num", T=_result, Tidx=_index(2))
_row(
    "ResizeBilinear ResizeNearestNeighbor ResizeBicubic",
    "images #size",
    T=_of(0),
    align_corners=False,
    half_pixel_centers=False,
)
