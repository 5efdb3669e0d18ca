"""Nodes of reductions, and of what changes shapes."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import bool_, int32, int64
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph_def.node_writer import (
    Writer,
    count,
    exports,
    index,
    index_dtype,
    of,
    other,
    result,
    row,
)


def axes_of(writer: Writer, axis: Any, ref: str) -> str:
    """The axes of a reduction as an input; all of them for None."""
    if axis is not None:
        return writer.value(axis, int32, "reduction_indices")
    rank = writer.rank()
    if rank is not None:
        return writer.constant(numpy.arange(rank), int32, "reduction_indices")
    count = writer.node("Rank", [ref], "Rank", int32)
    zero, one = writer.constant(0, int32, "start"), writer.constant(1, int32, "delta")
    return writer.node("Range", [zero, count, one], "range", int32, Tidx=int32)


@exports("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
def _reduction(writer: Writer) -> None:
    writer.need("input_tensor")
    (ref, *_), kind = writer.sources(), writer.operation.type
    axes = axes_of(writer, writer.argument("axis"), ref)
    keep = bool(writer.argument("keepdims", False))
    writer.last(kind, [ref, axes], Tidx=index_dtype(writer, axes), keep_dims=keep)


@exports("LogSumExp")
def _log_sum_exp(writer: Writer) -> None:
    x = writer.sources()[0]
    axes, keep = axes_of(writer, writer.argument("axis"), x), bool(writer.argument("keepdims", False))
    most = writer.node("Max", [x, axes], "Max", Tidx=int32, keep_dims=True)
    powers = writer.node("Exp", [writer.node("Sub", [x, most], "sub")], "Exp")
    total = writer.node("Log", [writer.node("Sum", [powers, axes], "Sum", Tidx=int32, keep_dims=keep)], "Log")
    again = most if keep else writer.node("Max", [x, axes], "Max_1", Tidx=int32, keep_dims=False)
    writer.last("AddV2", [total, again])


@exports("ArgMax", "ArgMin")
def _arg(writer: Writer) -> None:
    (ref, *_), axis = writer.sources(), writer.argument("axis", 0)
    position = writer.value(0 if axis is None else axis, int32, "dimension")
    writer.last(
        writer.operation.type, [ref, position], Tidx=index_dtype(writer, position), output_type=writer.dtype
    )


@exports("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def _combined_segments(writer: Writer) -> None:
    if "num_segments" not in writer.operation.keywords:  # slices as a dense gradient
        other(writer)
        return
    data, ids, count = writer.input("data"), writer.input("segment_ids", int32), writer.sizes("num_segments")
    attrs = {"Tindices": writer.dtype_of(ids), "Tnumsegments": index_dtype(writer, count)}
    writer.last(writer.operation.type, [data, ids, count], **attrs)


@exports("UnsortedSegmentMean", "UnsortedSegmentSqrtN")
def _averaged_segments(writer: Writer) -> None:
    data, ids, count = writer.input("data"), writer.input("segment_ids", int32), writer.sizes("num_segments")
    attrs = {"Tindices": writer.dtype_of(ids), "Tnumsegments": index_dtype(writer, count)}
    total = writer.node("UnsortedSegmentSum", [data, ids, count], "sum", **attrs)
    ones = writer.cast(writer.node("OnesLike", [ids], "ones"), writer.dtype)
    found = writer.node("UnsortedSegmentSum", [ones, ids, count], "count", **attrs)
    least = writer.node("Maximum", [found, writer.constant(1, writer.dtype, "one")], "Maximum")
    if writer.operation.type == "UnsortedSegmentSqrtN":
        least = writer.node("Sqrt", [least], "Sqrt")
    rest = len(writer.operation.outputs[0].type_.shape) - 1
    shape = writer.constant([-1, *[1] * rest], int32, "shape")
    writer.last("RealDiv", [total, writer.node("Reshape", [least, shape], "Reshape", Tshape=int32)])


# Shapes


@exports("Reshape")
def _reshape(writer: Writer) -> None:
    if "mask" in writer.operation.keywords:  # as long as axes of a tensor
        ref, tensor = writer.input("mask", bool_), writer.input("tensor")
        first, count = writer.argument("first"), writer.argument("count")
        shape = _sizes_between(writer, tensor, first, first + count)
    elif "shape" in writer.operation.keywords:
        ref, shape = writer.input("tensor"), writer.sizes("shape")
    else:  # ``count`` axes from ``first`` on become one
        ref, first = writer.input("tensor"), writer.argument("first")
        shape = _merged_sizes(writer, ref, first, first + writer.argument("count"))
    writer.last("Reshape", [ref, shape], Tshape=index_dtype(writer, shape))


def _sizes_between(writer: Writer, ref: str, first: int, stop: int | None) -> str:
    """Some sizes of a tensor as an input."""
    shape = writer.node("Shape", [ref], "Shape", int32, out_type=int32)
    begin, end, one = (
        writer.constant([k], int32, n) for k, n in ((first, "begin"), (stop or 0, "end"), (1, "by"))
    )
    hint = "strided_slice" if stop else "rest"
    mask = int(stop is None)
    return writer.node("StridedSlice", [shape, begin, end, one], hint, int32, Index=int32, end_mask=mask)


def _merged_sizes(writer: Writer, ref: str, first: int, stop: int) -> str:
    sizes = writer.operation.outputs[0].type_.shape
    known = [size if size >= 0 else -1 for size in sizes]
    if known.count(-1) <= 1:
        return writer.constant(known, int32, "shape")
    parts = [_sizes_between(writer, ref, 0, first)] if first else []
    parts += [writer.constant([-1], int32, "merged"), _sizes_between(writer, ref, stop, None)]
    axis = writer.constant(0, int32, "axis")
    return writer.node("ConcatV2", [*parts, axis], "concat", int32, N=len(parts), Tidx=int32)


@exports("Flatten")
def _flatten(writer: Writer) -> None:
    ref = writer.sources()[0]
    shape = writer.node("Shape", [ref], "Shape", int32, out_type=int32)
    zero, one = writer.constant([0], int32, "begin"), writer.constant([1], int32, "end")
    slicing = {"Index": int32, "shrink_axis_mask": 1}
    rows = writer.node("StridedSlice", [shape, zero, one, one], "strided_slice", int32, **slicing)
    rest = writer.constant(-1, int32, "minus_one")
    sizes = writer.node("Pack", [rows, rest], "Pack", int32, N=2, axis=0)
    known = writer.operation.inputs[0].type_.shape[1:]
    if all(size >= 0 for size in known):
        sizes = writer.constant([-1, int(numpy.prod(known))], int32, "shape")
    writer.last("Reshape", [ref, sizes], Tshape=int32)


@exports("Transpose")
def _transpose(writer: Writer) -> None:
    ref, perm = writer.input("a"), writer.argument("perm")
    if perm is not None:
        order = writer.sizes("perm")
    elif (rank := writer.rank()) is not None:
        order = writer.constant(numpy.arange(rank)[::-1], int32, "perm")
    else:
        count, minus_one = writer.node("Rank", [ref], "Rank", int32), writer.constant(-1, int32, "minus_one")
        last = writer.node("AddV2", [count, minus_one], "last")
        order = writer.node("Range", [last, minus_one, minus_one], "perm", int32, Tidx=int32)
    writer.last("Transpose", [ref, order], Tperm=index_dtype(writer, order))


@exports("ConcatV2")
def _concat(writer: Writer) -> None:
    refs = [writer.value(item, writer.dtype, "values") for item in writer.argument("values")]
    if len(refs) == 1:
        writer.last("Identity", refs)
        return
    axis = writer.sizes("axis", 0)
    writer.last("ConcatV2", [*refs, axis], N=len(refs), Tidx=index_dtype(writer, axis))


@exports("Split")
def _split(writer: Writer) -> None:
    axis, parts = writer.sizes("axis", 0), writer.argument("parts")
    count = len(writer.operation.outputs)
    if isinstance(parts, int):
        writer.last("Split", [axis, writer.input("value")], num_split=count, T=writer.dtype)
        return
    sizes = writer.sizes("parts")
    attrs = {"num_split": count, "Tlen": index_dtype(writer, sizes)}
    writer.last("SplitV", [writer.input("value"), sizes, axis], **attrs)


@exports("StridedSlice")
def _strided_slice(writer: Writer) -> None:
    form = writer.argument("form")
    if form is None:
        _slice_by_vectors(writer)
        return
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
                row[1] = writer.node("AddV2", [ref, writer.constant(1, writer.dtype_of(ref), "one")], "end")
            elif begin == -1:
                masks["end_mask"] |= 1 << k
        for each, given in zip(numbers, row):
            each.append(given)
    refs = [_numbers(writer, each, hint) for each, hint in zip(numbers, ("begin", "end", "strides"))]
    writer.last("StridedSlice", [writer.sources()[0], *refs], Index=int32, **masks)


def _slice_by_vectors(writer: Writer) -> None:
    """A slice whose bounds are vectors, and whose masks are numbers."""
    refs = [writer.sizes("begin"), writer.sizes("end")]
    if writer.argument("strides") is None:
        refs.append(writer.node("OnesLike", refs[:1], "strides"))
    else:
        refs.append(writer.sizes("strides"))
    dtype = int64 if any(writer.dtype_of(ref) is int64 for ref in refs) else int32
    refs = [ref if writer.dtype_of(ref) is dtype else writer.cast(ref, dtype) for ref in refs]
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = dict(zip(names, writer.argument("masks")))
    writer.last("StridedSlice", [writer.input("input_"), *refs], Index=dtype, **masks)


def _numbers(writer: Writer, items: list[Any], hint: str) -> str:
    if not any(isinstance(item, (Slot, str)) for item in items):
        return writer.constant(items, int32, hint)
    parts = []
    for k, item in enumerate(items):
        ref = item if isinstance(item, str) else writer.value(item, int32, f"{hint}_{k}")
        if writer.dtype_of(ref) is int64:
            ref = writer.cast(ref, int32, f"{hint}_{k}")
        parts.append(ref)
    return writer.node("Pack", parts, hint, int32, N=len(parts), axis=0)


@exports("Pad")
def _pad(writer: Writer) -> None:
    ref, paddings = writer.input("tensor"), writer.sizes("paddings")
    attrs = {"Tpaddings": index_dtype(writer, paddings)}
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


@exports("ReverseV2")
def _reverse(writer: Writer) -> None:
    axis = writer.value(
        [writer.argument("axis")] if isinstance(writer.argument("axis"), int) else writer.argument("axis"),
        int32,
        "axis",
    )
    writer.last("ReverseV2", [writer.input("tensor"), axis], Tidx=int32)


def _squeezed(writer: Writer, refs: list[str]) -> list[int]:
    axis = writer.argument("axis")
    return [] if axis is None else [axis] if isinstance(axis, int) else list(axis)


row("Cast", "x", SrcT=of(0), DstT=result, Truncate=False)
row("Shape Size", "input", out_type=result)
row("Rank", "input")
row("ExpandDims", "input #axis", Tdim=index(1))
row("Tile", "input #multiples", Tmultiples=index(1))
row("Slice", "input_ #begin #size", Index=index(1))
row("GatherV2", "params indices:int32 #axis=0", Tparams=result, Tindices=of(1), Taxis=index(2), batch_dims=0)
row("GatherNd", "params indices:int32", Tparams=result, Tindices=of(1))
row("Fill", "#dims value", T=result, index_type=index(0))
row("Range", "start limit delta=1", Tidx=result)
row("OneHot", "indices:int32 #depth on_value=1 off_value=0", T=result, TI=of(0), axis=-1)
row("TopKV2", "input #k=1", sorted=True)
row("Cumsum Cumprod", "x #axis=0", Tidx=index(1), exclusive=False, reverse=False)
row("DepthToSpace SpaceToDepth", "input", block_size=0, data_format="NHWC")
row("InTopK", "predictions:float32 targets:int32 #k", op=lambda writer, refs: "InTopKV2", T=of(1))
row("LinSpace", "start stop #num", Tidx=index(2))
row(
    "ResizeBilinear ResizeNearestNeighbor ResizeBicubic",
    "images #size",
    align_corners=False,
    half_pixel_centers=False,
)
row("SegmentSum SegmentProd SegmentMean SegmentMax SegmentMin", "data segment_ids:int32", Tindices=of(1))
row("UniqueWithCounts", "*", out_idx=lambda writer, refs: writer.operation.outputs[1].type_.dtype)
row("Squeeze", "input", squeeze_dims=_squeezed)
row("Pack", "values*", N=count, axis=0)
row("Unpack", "value", num=lambda writer, refs: len(writer.operation.outputs), axis=0)
row("SelectV2", "*", T=result)
row("AddN", "*", N=count)
row("Einsum", "*", N=count, equation="")
