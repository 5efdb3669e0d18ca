"""Nodes of reductions, and of what changes shapes."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import bool_, float32, int32, int64
from twofold.static.graph import Slot
from twofold.static.graph_writer import Writer, exports, index_dtype


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
    place = writer.value(0 if axis is None else axis, int32, "dimension")
    writer.last(
        writer.operation.type,
        [ref, place],
        T=writer.dtype_of(ref),
        Tidx=index_dtype(writer, place),
        output_type=writer.dtype,
    )


# Shapes


@exports("Cast")
def _cast(writer: Writer) -> None:
    (ref,) = writer.sources()
    writer.last("Cast", [ref], SrcT=writer.dtype_of(ref), DstT=writer.dtype, Truncate=False)


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


@exports("Shape", "Size")
def _shape(writer: Writer) -> None:
    (ref,) = writer.sources()
    writer.last(writer.operation.type, [ref], T=writer.dtype_of(ref), out_type=writer.dtype)


@exports("Rank")
def _rank(writer: Writer) -> None:
    (ref,) = writer.sources()
    writer.last("Rank", [ref], T=writer.dtype_of(ref))


@exports("ExpandDims")
def _expand(writer: Writer) -> None:
    axis = writer.sizes("axis")
    writer.last("ExpandDims", [writer.input("input"), axis], T=writer.dtype, Tdim=index_dtype(writer, axis))


@exports("Squeeze")
def _squeeze(writer: Writer) -> None:
    axis = writer.argument("axis")
    places = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    writer.last("Squeeze", [writer.input("input")], T=writer.dtype, squeeze_dims=places)


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


@exports("Slice")
def _slice(writer: Writer) -> None:
    begin, size = writer.sizes("begin"), writer.sizes("size")
    writer.last(
        "Slice", [writer.input("input_"), begin, size], T=writer.dtype, Index=index_dtype(writer, begin)
    )


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


@exports("Tile")
def _tile(writer: Writer) -> None:
    times = writer.sizes("multiples")
    writer.last("Tile", [writer.input("input"), times], T=writer.dtype, Tmultiples=index_dtype(writer, times))


@exports("GatherV2")
def _gather(writer: Writer) -> None:
    params, indices, axis = writer.input("params"), writer.input("indices", int32), writer.sizes("axis", 0)
    attrs = {
        "Tparams": writer.dtype,
        "Tindices": writer.dtype_of(indices),
        "Taxis": index_dtype(writer, axis),
    }
    writer.last("GatherV2", [params, indices, axis], batch_dims=0, **attrs)


@exports("GatherNd")
def _gather_nd(writer: Writer) -> None:
    refs = [writer.input("params"), writer.input("indices", int32)]
    writer.last("GatherNd", refs, Tparams=writer.dtype, Tindices=writer.dtype_of(refs[1]))


@exports("Fill")
def _fill(writer: Writer) -> None:
    dims = writer.sizes("dims")
    writer.last("Fill", [dims, writer.input("value")], T=writer.dtype, index_type=index_dtype(writer, dims))


@exports("Range")
def _range(writer: Writer) -> None:
    refs = [
        writer.input("start"),
        writer.input("limit"),
        writer.value(writer.argument("delta", 1), writer.dtype, "delta"),
    ]
    writer.last("Range", refs, Tidx=writer.dtype)


@exports("OneHot")
def _one_hot(writer: Writer) -> None:
    indices = writer.input("indices", int32)
    depth = writer.sizes("depth")
    on = writer.value(writer.argument("on_value", 1), writer.dtype, "on_value")
    off = writer.value(writer.argument("off_value", 0), writer.dtype, "off_value")
    axis = writer.argument("axis", -1)
    attrs = {"T": writer.dtype, "TI": writer.dtype_of(indices), "axis": -1 if axis is None else int(axis)}
    writer.last("OneHot", [indices, depth, on, off], **attrs)


@exports("TopKV2")
def _top_k(writer: Writer) -> None:
    writer.last("TopKV2", [writer.input("input"), writer.sizes("k", 1)], T=writer.dtype, sorted=True)


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


@exports("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
def _resize(writer: Writer) -> None:
    refs = [writer.input("images"), writer.sizes("size")]
    attrs = {
        "align_corners": bool(writer.argument("align_corners")),
        "half_pixel_centers": bool(writer.argument("half_pixel_centers")),
    }
    writer.last(writer.operation.type, refs, T=writer.dtype_of(refs[0]), **attrs)


@exports("ReverseV2")
def _reverse(writer: Writer) -> None:
    axis = writer.value(
        [writer.argument("axis")] if isinstance(writer.argument("axis"), int) else writer.argument("axis"),
        int32,
        "axis",
    )
    writer.last("ReverseV2", [writer.input("tensor"), axis], T=writer.dtype, Tidx=int32)


@exports("Cumsum", "Cumprod")
def _cumulative(writer: Writer) -> None:
    axis = writer.sizes("axis", 0)
    flags = {name: bool(writer.argument(name, False)) for name in ("exclusive", "reverse")}
    writer.last(writer.operation.type, [writer.input("x"), axis], T=writer.dtype, Tidx=int32, **flags)


@exports("Einsum")
def _einsum(writer: Writer) -> None:
    refs = writer.sources()
    writer.last("Einsum", refs, N=len(refs), T=writer.dtype, equation=writer.argument("equation"))


@exports("DepthToSpace", "SpaceToDepth")
def _blocks(writer: Writer) -> None:
    attrs = {"T": writer.dtype, "block_size": int(writer.argument("block_size")), "data_format": "NHWC"}
    writer.last(writer.operation.type, [writer.input("input")], **attrs)


@exports("InTopK")
def _in_top_k(writer: Writer) -> None:
    refs = [writer.input("predictions", float32), writer.input("targets", int32), writer.sizes("k")]
    writer.last("InTopKV2", refs, T=writer.dtype_of(refs[1]))


@exports("LinSpace")
def _linspace(writer: Writer) -> None:
    refs = [writer.input("start"), writer.input("stop"), writer.sizes("num")]
    writer.last("LinSpace", refs, T=writer.dtype, Tidx=int32)
