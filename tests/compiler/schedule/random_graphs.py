"""Random closed graphs for property tests: element-wise operations, views, reductions and products, mixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from hypothesis import strategies as st

import twofold.ops  # noqa: F401
from twofold import dtypes
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, broadcast_shapes, convert, ops

SIZES = (1, 2, 3, 5, 16, 17, 33)
DTYPES = (dtypes.float32, dtypes.float32, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int32)

Draw = Callable[[Any], Any]


def _unary(draw: Draw, x: Node) -> Node:
    if x.dtype.kind == "f":
        name = draw(st.sampled_from(("negative", "relu", "abs", "square", "tanh", "sigmoid", "exp", "floor")))
        if name == "exp":
            x = ops.tanh(x)  # keeps values in range
        return ops.__getattr__(name)(x)
    return ops.__getattr__(draw(st.sampled_from(("abs", "square"))))(
        ops.remainder(convert(x, dtypes.int64), 7)
    )


def _binary(draw: Draw, x: Node, y: Node) -> Node | None:
    try:
        broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return None
    name = draw(st.sampled_from(("add", "subtract", "multiply", "maximum", "minimum")))
    result: Node = ops.__getattr__(name)(x, y)
    return ops.tanh(result) if result.dtype.kind == "f" and name == "multiply" else result


def _view(draw: Draw, x: Node) -> Node:
    kind = draw(st.sampled_from(("permute", "flip", "reshape", "merge", "slice", "broadcast", "unsqueeze")))
    if kind == "permute":
        return ops.permute(x, draw(st.permutations(range(x.ndim))))
    if kind == "flip" and x.ndim:
        return ops.flip(x, [draw(st.integers(0, x.ndim - 1))])
    if kind == "reshape":
        return ops.reshape(x, (x.type.size,))
    if kind == "merge" and x.ndim > 1:
        return ops.flatten(x, 0, 1)
    if kind == "slice" and x.ndim:
        axis = draw(st.integers(0, x.ndim - 1))
        start = draw(st.integers(0, x.shape[axis] - 1))
        size = draw(st.integers(1, x.shape[axis] - start))
        sizes = tuple(size if k == axis else length for k, length in enumerate(x.shape))
        return apply("slice", x, constant(start), attrs=(sizes, (1,) * x.ndim, (axis,)))
    if kind == "broadcast":
        return ops.broadcast_to(x, (2, *x.shape)) if x.type.size < 5000 else x
    return ops.unsqueeze(x, draw(st.integers(0, x.ndim)))


def _reduction(draw: Draw, x: Node) -> Node:
    axes = draw(st.sets(st.integers(0, max(x.ndim - 1, 0)), max_size=x.ndim)) if x.ndim else set()
    name = draw(st.sampled_from(("sum", "sum", "amax", "amin", "argmax")))
    keep = draw(st.booleans())
    result: Node = apply(name, x, attrs=(tuple(sorted(axes)), keep))
    if result.dtype.kind == "f" and name == "sum":
        result = result * 0.125
    return result


def _product(draw: Draw, x: Node) -> Node | None:
    if x.ndim < 2 or x.type.size > 3000 or x.dtype.kind != "f":
        return None
    other = ops.permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    if draw(st.booleans()):
        other = ops.tanh(other)
    return ops.tanh(ops.matmul(x, other) * 0.1)


@st.composite
def graphs(draw: Draw, most: int = 16) -> Graph:
    """A closed graph of up to ``most`` drawn operations with one to four outputs."""
    count = draw(st.integers(1, 3))
    types = []
    for _ in range(count):
        shape = tuple(draw(st.lists(st.sampled_from(SIZES), max_size=3)))
        types.append(tensor_type(draw(st.sampled_from(DTYPES)), shape))
    values: list[Node] = [input_node(k, type) for k, type in enumerate(types)]
    for _ in range(draw(st.integers(most // 2, most))):
        x = draw(st.sampled_from(values[-6:]))
        kind = draw(st.sampled_from(("unary", "binary", "binary", "view", "view", "reduction", "product")))
        made: Node | None = None
        if kind == "unary":
            made = _unary(draw, x)
        elif kind == "binary":
            made = _binary(draw, x, draw(st.sampled_from(values)))
        elif kind == "view":
            made = _view(draw, x)
        elif kind == "reduction":
            made = _reduction(draw, x)
        else:
            made = _product(draw, x)
        if made is not None and made.type.size <= 20_000:
            values.append(made)
    outputs = draw(st.lists(st.sampled_from(values[count:] or values), min_size=1, max_size=3))
    return Graph(types, [*outputs, values[-1]])


def arrays_for(graph: Graph, seed: int = 0) -> list[numpy.ndarray]:
    """Inputs for ``graph``."""
    generator = numpy.random.default_rng(seed)
    arrays = []
    for type in graph.input_types:
        if type.dtype.kind == "f":
            arrays.append(numpy.asarray(generator.normal(size=type.shape)).astype(type.dtype.numpy))
        else:
            arrays.append(generator.integers(-5, 6, size=type.shape).astype(type.dtype.numpy))
    return arrays
