"""Complex numbers: their parts, their conjugates, and how they are put together.

A kernel never computes on a whole complex element: every operation on complex operands is written with
operations on the parts, which fuse, and ``complex`` puts the results together. So the gradient follows from
the rules for real numbers alone. It is that of PyTorch: for a real function ``L`` of ``z = x + iy`` it is
``dL/dx + i dL/dy``, the direction of steepest ascent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, complex64, complex128, float32, float64
from twofold.errors import DTypeError, ShapeError
from twofold.ir.layout import Layout
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import Elementwise, apply, composite, convert, elementwise, filled, ops, public, strong
from twofold.ops.promotion import need_one_dtype
from twofold.ops.samples import Sample


def _composed(common: DType) -> tuple[DType, DType]:
    real = common if common in (float32, float64) else float32
    return real, real.complex


def _join(real: Any, imag: Any) -> Any:
    joined = numpy.empty(numpy.shape(real), numpy.result_type(real, numpy.complex64))
    joined.real, joined.imag = real, imag
    return joined


@elementwise
class complex_(Elementwise):
    """The complex numbers with the parts ``real`` and ``imag``; float16 and bfloat16 give complex64.

    >>> import twofold as torch
    >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([0.0, -3.0]))
    tensor([1.+0.j, 2.-3.j])
    """

    signature = "real, imag"
    functions = ("complex",)
    methods = ()
    kinds = "f"
    keeps_nan = True
    result_dtype = staticmethod(_composed)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node; its operands are never weak, and of one dtype."""
        real, imag = inputs
        need_one_dtype(real=real.type, imag=imag.type)
        return super().build(attrs, [strong(node) for node in inputs])

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The parts of the cotangent."""
        return ops.real(cotangent), ops.imag(cotangent)

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """The bits of the parts side by side."""
        return builder.pack_complex(*values)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The same by NumPy."""
        return _join(*arrays)


def _is_real(input: Any) -> bool:
    """Whether ``input`` is a tensor of real numbers: parts and conjugates of these are the tensor itself."""
    dtype = getattr(input, "dtype", None)
    return isinstance(dtype, DType) and dtype.kind != "c"


class Part(Elementwise):
    """A part of complex numbers, which shares their memory."""

    kinds = "c"
    keeps_nan = True
    is_view = True
    position: int  # of the part in the memory of an element

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        """Every other number in memory; a real tensor itself."""
        if source.dtype.kind != "c":
            return source
        stride = tuple(2 * step for step in source.stride)
        return Layout(source.dtype.real, source.size, stride, 2 * source.offset + self.position)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node; the parts of a Python number are no longer weak."""
        (node,) = inputs
        self.check_kind(node.type.dtype)
        return make_node(self, attrs, (node,), tensor_type(node.type.dtype.real, node.type.shape))

    def samples(self) -> Sequence[Any]:
        """Both dtypes, special values among them."""
        values = numpy.array(
            [[1 + 2j, -0.5j, 3.0], [complex(numpy.inf, -0.0), complex(0, numpy.nan), -1e-40j]]
        )
        return [Sample((), (values.astype(of.numpy),), (of,), smooth=False) for of in (complex64, complex128)]


@elementwise
class real(Part):
    """The real part of each element; a real tensor itself. The result shares the memory of the input.

    >>> import twofold as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """

    position = 0

    @staticmethod
    def call(input: Any) -> Any:
        return input if _is_real(input) else apply("real", input)

    def write(self, base: Any, value: Any) -> Any:
        """Complex numbers with another real part."""
        return ops.complex(value, ops.imag(base)) if base.dtype.kind == "c" else value

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node; nothing for a real operand."""
        (node,) = inputs
        return super().build(attrs, inputs) if node.type.dtype.kind == "c" else node

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """A real cotangent."""
        return (convert(cotangent, cotangent.dtype.complex),)

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """The low half of the bits."""
        return builder.real_part(values[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The same by NumPy."""
        return numpy.real(arrays[0])


@elementwise
class imag(Part):
    """The imaginary part of each element of a complex tensor, whose memory the result shares.

    >>> import twofold as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """

    position = 1

    def write(self, base: Any, value: Any) -> Any:
        """Complex numbers with another imaginary part."""
        return ops.complex(ops.real(base), value)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """An imaginary cotangent."""
        return (ops.complex(filled(0, cotangent.dtype, cotangent.shape), cotangent),)

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """The high half of the bits."""
        return builder.imaginary_part(values[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The same by NumPy."""
        return numpy.imag(arrays[0])


def _conjugate(z: Any) -> Any:
    return ops.complex(ops.real(z), -ops.imag(z)) if z.type.dtype.kind == "c" else z


@composite
class conj:
    """The complex conjugate of each element; a real tensor itself.

    >>> import twofold as torch
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """

    functions = ("conj", "conj_physical")
    kinds = "biufc"
    signature = "input"
    inplace = True
    call = lambda input: input if _is_real(input) else apply("conj", input)
    reference = numpy.conj
    compute = _conjugate


@public("resolve_conj", "resolve_neg", methods=("resolve_conj", "resolve_neg"))
def resolved(input: Any) -> Any:
    """``input`` itself: conjugates and negatives are never left for later.

    >>> import twofold as torch
    >>> torch.resolve_conj(torch.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return input


def _polar(radius: Any, angle: Any) -> Any:
    need_one_dtype(abs=radius.type, angle=angle.type)
    return ops.complex(radius * ops.cos(angle), radius * ops.sin(angle))


@composite
class polar:
    """The complex numbers with this absolute value and this angle in radians.

    >>> import twofold as torch
    >>> torch.polar(torch.tensor([2.0]), torch.tensor([torch.pi / 6]))
    tensor([1.7321+1.j])
    """

    autocast = "float32"
    memory = (3, "values in between are stored")

    signature = "abs, angle"
    methods = ()
    kinds = "f"
    compute = _polar
    reference = lambda radius, angle: radius * numpy.exp(1j * angle)


def _view_as_real(z: Any) -> Any:
    if z.type.dtype.kind != "c":
        raise DTypeError(f"takes complex dtypes, not {z.dtype.name}", "Use complex(input, zeros) first.")
    return ops.stack([ops.real(z), ops.imag(z)], -1)


@composite
class view_as_real:
    """The parts of each element as a last axis of size 2, in the memory of the input.

    >>> import twofold as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([[ 1.,  2.],
            [ 3., -4.]])
    """

    signature = "input"
    is_view = True
    write = lambda base, value: ops.complex(ops.select(value, -1, 0), ops.select(value, -1, 1))
    layout = lambda source: Layout(
        source.dtype.real,
        (*source.size, 2),
        (*(2 * step for step in source.stride), 1),
        2 * source.offset,
    )
    samples = lambda: [Sample((), (numpy.array([1 + 2j, 3 - 1j]).astype(numpy.complex64),), (complex64,))]
    reference = lambda z: numpy.stack([z.real, z.imag], -1)
    compute = _view_as_real


def _side_by_side(parts: Any) -> bool:
    """Whether the last axis is dense in memory, and each pair of its elements starts at an even one."""
    *steps, last = parts.stride()
    return last == 1 and not parts.storage_offset() % 2 and not any(step % 2 for step in steps)


def _view_as_complex(x: Any) -> Any:
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(
            f"the last axis of {x.type} is not of size 2", "It holds the real and imaginary part."
        )
    return ops.complex(ops.select(x, -1, 0), ops.select(x, -1, 1))


@composite
class view_as_complex:
    """The complex numbers whose parts lie along the last axis, of size 2, in the memory of the input.

    Raises ShapeError where the parts do not lie side by side; half precision becomes complex64, which is a copy.

    >>> import twofold as torch
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, -4.0]]))
    tensor([1.+2.j, 3.-4.j])
    """

    autocast = "float32"
    kinds = "f"
    methods = ()
    is_view = True
    may_copy = True

    @staticmethod
    def call(input: Any) -> Any:
        """Bind it; the result is a view of all that may be one."""
        if input.dtype.kind == "f" and input.dtype not in (float32, float64):
            return apply("view_as_complex", ops.cast(input, float32))
        result = apply("view_as_complex", input)
        if not getattr(result, "_is_symbolic", True) and not _side_by_side(input):
            what = f"parts {input.stride()} apart in memory, from element {input.storage_offset()}"
            raise ShapeError(
                what, "They must lie side by side, from an even element: use contiguous() first."
            )
        return result

    @staticmethod
    def layout(source: Layout) -> Layout | None:
        """Every second number in memory starts an element."""
        *steps, last = source.stride
        odd = source.offset % 2 or any(step % 2 for step in steps)
        if last != 1 or odd:
            return None
        return Layout(
            source.dtype.complex, source.size[:-1], tuple(step // 2 for step in steps), source.offset // 2
        )

    write = lambda base, value: ops.stack([ops.real(value), ops.imag(value)], -1)
    samples = lambda: [Sample((), (numpy.array([[1, 2], [3, 4]], numpy.float32),), (float32,))]
    reference = lambda x: x[..., 0] + 1j * x[..., 1]
    compute = _view_as_complex
