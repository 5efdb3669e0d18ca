"""Two of the three arrangements of a convolution that gradients of any order stay within.

All work on arrays of five axes: images ``x`` ``(batch, groups * channels, depth, height, width)``, kernels
``w`` ``(groups * filters, channels, ...)`` and results ``y`` ``(batch, groups * filters, ...)``. Attributes are
``(strides, lows, dilations, groups, sizes)`` with the sizes of what is computed; see ``convolution_problem``.

The products of one element are accumulated by fused multiply-add, half types in float32:

- ``convolution`` ``y(x, w)`` in the order (channel, depth, height, width of the kernel),
- ``convolution_transposed`` ``x(y, w)``, in the module of that name, in the order (filter,
  depth, height, width of the kernel),
- ``convolution_weight`` ``w(x, y)`` in the order (batch, depth, height, width of the result).

Where a window reaches over the image, products with zero are among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import bfloat16, float16, float32, float64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import AccumulatingOp, TemplateOp
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.base import Contraction, Templated, apply, contraction, custom, filled
from twofold.ops.convolution.window_sizes import ConvolutionProblem, Windows, patches, problem
from twofold.ops.examples import example


def primitive_samples(names: str) -> list[Any]:
    """Calls of the primitive whose inputs are ``names``; of all three it computes w."""
    cases: list[tuple[Shape, Shape, Shape, Windows, int]] = [
        ((2, 3, 1, 5, 6), (4, 3, 1, 3, 3), (2, 4, 1, 5, 6), Windows((1, 1, 1), (0, 1, 1), (1, 1, 1)), 1),
        ((1, 2, 1, 1, 40), (2, 2, 1, 1, 3), (1, 2, 1, 1, 38), Windows((1, 1, 1), (0, 0, 0), (1, 1, 1)), 1),
        ((1, 4, 1, 7, 5), (6, 2, 1, 3, 2), (1, 6, 1, 3, 3), Windows((1, 2, 2), (0, 1, 1), (1, 2, 1)), 2),
        ((2, 2, 3, 4, 3), (2, 2, 2, 2, 2), (2, 2, 2, 2, 4), Windows((1, 3, 1), (0, 1, 1), (1, 1, 1)), 1),
        ((2, 3, 1, 4, 4), (6, 1, 1, 3, 3), (2, 6, 1, 2, 2), Windows((1, 2, 2), (0, 1, 1), (1, 1, 1)), 3),
        ((3, 2, 1, 2, 2), (3, 2, 1, 1, 1), (3, 3, 1, 2, 2), Windows((1, 1, 1), (0, 0, 0), (1, 1, 1)), 1),
        ((1, 1, 1, 6, 6), (2, 1, 1, 2, 2), (1, 2, 1, 2, 2), Windows((1, 3, 3), (0, -1, -1), (1, 1, 2)), 1),
        ((2, 3, 1, 6, 5), (4, 3, 1, 4, 5), (2, 4, 1, 3, 1), Windows((1, 1, 1), (0, 0, 0), (1, 1, 1)), 1),
        ((1, 4, 1, 5, 5), (4, 2, 1, 7, 6), (1, 4, 1, 1, 1), Windows((1, 2, 1), (0, 1, 0), (1, 1, 1)), 2),
        ((0, 2, 1, 3, 3), (3, 2, 1, 2, 2), (0, 3, 1, 2, 2), Windows((1, 1, 1), (0, 0, 0), (1, 1, 1)), 1),
    ]  # fmt: skip
    found = []
    for number, (x, w, y, windows, groups) in enumerate(cases):
        shapes = {"x": x, "w": w, "y": y}
        made = min({"x", "w", "y"} - set(names), default="w")
        attrs = (*windows, groups, shapes[made][2:])
        for dtype in (float32, float64, float16, bfloat16)[: 4 if number == 2 else 1]:
            found.append(example(attrs, *[shapes[name] for name in names], dtype=dtype))
    return found


def grouped(array: Any, axis: int, groups: int) -> Any:
    """``array`` with an axis cut into groups."""
    shape = array.shape
    return array.reshape((*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))


@contraction
class convolution(Contraction, TemplateOp):
    """``y(x, w)``; see the module."""

    functions = ()
    template = "convolution"
    matrix_axes = (1, 3)
    kinds = "iuf"
    call = staticmethod(lambda x, w, attrs: apply("convolution", x, w, attrs=attrs))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, w = inputs
        type = tensor_type(x.dtype, (x.shape[0], w.shape[0], *attrs[-1]))
        if not type.size or not x.type.size or not w.type.size:
            zeros: Node = filled(0, type.dtype, type.shape)
            return zeros
        return make_node(self, attrs, (x, w), type)

    def kernel_shape(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> ConvolutionProblem:
        """The sizes of a node."""
        x, w = inputs
        return problem(x.shape, w.shape, output.shape, Windows(*attrs[:3]), attrs[3], output.dtype)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        return 2 * output.size * prod(inputs[1].shape[1:])

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        x, w = inputs
        return (
            apply("convolution_transposed", cotangent, w, attrs=(*attrs[:4], x.shape[2:])),
            apply("convolution_weight", x, cotangent, attrs=(*attrs[:4], w.shape[2:])),
        )

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x, w), groups, sizes = arrays, attrs[3], attrs[4]
        seen = grouped(patches(x, Windows(*attrs[:3]), w.shape[2:], sizes), 1, groups)
        found = numpy.einsum("ngcijkdhw,gocijk->ngodhw", seen, grouped(w, 0, groups))
        return found.reshape((x.shape[0], w.shape[0], *sizes))

    def samples(self) -> Sequence[Any]:
        return primitive_samples("xw")


class WindowSum(Templated):
    """Images times results, summed over all positions of all results to kernels, perhaps from a third input on."""

    functions = ()

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, y, *start = inputs
        type = tensor_type(x.dtype, (y.shape[1], x.shape[1] // attrs[3], *attrs[-1]))
        if not type.size or not x.type.size or not y.type.size:
            nothing: Node = start[0] if start else filled(0, type.dtype, type.shape)
            return nothing
        return make_node(self, attrs, tuple(inputs), type)

    def kernel_shape(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> ConvolutionProblem:
        """The sizes of a node."""
        x, y = inputs[:2]
        return problem(x.shape, output.shape, y.shape, Windows(*attrs[:3]), attrs[3], output.dtype)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        y = inputs[1]
        return 2 * output.size * (y.size // max(y.shape[1], 1))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        x, y, *start = inputs
        return (
            apply("convolution_transposed", y, cotangent, attrs=(*attrs[:4], x.shape[2:])),
            apply("convolution", x, cotangent, attrs=(*attrs[:4], y.shape[2:])),
            *[cotangent for _ in start],
        )

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x, y, *start), groups, sizes = arrays, attrs[3], attrs[4]
        seen = grouped(patches(x, Windows(*attrs[:3]), sizes, y.shape[2:]), 1, groups)
        found = numpy.einsum("ngcijkdhw,ngodhw->gocijk", seen, grouped(y, 1, groups))
        return sum(start, found.reshape((y.shape[1], x.shape[1] // groups, *sizes)))


@custom
class convolution_weight(WindowSum, AccumulatingOp):
    """``w(x, y)``; see the module."""

    template = "convolution_weight"
    samples = lambda self: primitive_samples("xy")

    def accumulates(self, node: Node) -> bool:
        return True

    def accumulated(self, node: Node, start: Node) -> Node:
        made: Node = apply("accumulate_convolution", *node.inputs, start, attrs=node.attrs)
        return made


@custom
class accumulate_convolution(WindowSum):
    """``w(x, y)`` with sums that begin with a third input, whose memory the result may take over."""

    template = "accumulated_convolution"
    overwrites = 2
    samples = lambda self: primitive_samples("xyw")
