"""Reductions over axes, and the statistics written with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import DType, as_dtype, default_float, int64, uint8
from twofold.errors import ShapeError
from twofold.ir.node import Attributes, Node
from twofold.ir.op import REGISTRY
from twofold.ir.sizes import real
from twofold.ops.autograd_names import over_axes
from twofold.ops.axes import given_once
from twofold.ops.base import (
    Elementwise,
    Reduction,
    apply,
    composite,
    convert,
    elementwise,
    filled,
    logical,
    normalize_axes,
    ops,
    public,
    reduction,
    same,
)  # fmt: skip
from twofold.ops.elementwise import complex_functions
from twofold.ops.reduction.scan import products_of_others
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample, reals, reduction_samples
from twofold.ops.shape.movement import axis_numbers
from twofold.ops.shape.shapes import inverse
from twofold.ops.signatures import shows

Axes = tuple[int, ...]


def broadcast_back(value: Any, axes: Axes, like: Any) -> Any:
    """A reduced value back at the shape of ``like``, from which ``axes`` were reduced (kept or not)."""
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(like.shape))
    return ops.broadcast_to(value if value.shape == kept else ops.reshape(value, kept), like.shape)


def count_over(shape: tuple[int, ...], axes: Axes) -> int:
    """How many elements are reduced to one."""
    return math.prod(shape[axis] for axis in axes)


def axes_call(name: str) -> Callable[..., Any]:
    """The public function ``f(input, dim=None, keepdim=False)``; also with ``axis`` and ``keepdims``."""

    def call(
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        axis: Any = None,
        keepdims: bool = False,
        dtype: Any = None,
    ) -> Any:
        axes = normalize_axes(given_once(dim=dim, axis=axis), input.ndim)
        attrs = (axes, bool(keepdim or keepdims))
        if dtype is None:
            return apply(name, input, attrs=attrs)
        found = apply(name, ops.cast(input, as_dtype(dtype)), attrs=attrs)
        return found if found.dtype is as_dtype(dtype) else ops.cast(found, as_dtype(dtype))

    call.empty_dim_is_all = True  # type: ignore[attr-defined]
    return call


def _wide_integer(common: DType) -> tuple[DType, DType]:
    """Integers and bools are added in int64 (uint64 stays)."""
    dtype = int64 if common.kind in "bi" or (common.kind == "u" and common.itemsize < 8) else common
    return dtype, dtype


def _lowest(dtype: DType) -> Any:
    return (
        False if dtype.kind == "b" else -math.inf if dtype.kind == "f" else int(numpy.iinfo(dtype.numpy).min)
    )


def _highest(dtype: DType) -> Any:
    return True if dtype.kind == "b" else math.inf if dtype.kind == "f" else int(numpy.iinfo(dtype.numpy).max)


@reduction
class sum_:
    """Sum over ``dim`` (default: all axes); integers and bools are summed in int64.

    ``dim`` is an axis or several, kept with size 1 by ``keepdim``. Raises AxisError for an axis outside.

    >>> import twofold as torch
    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]))
    tensor(10)
    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), dim=1, keepdim=True)
    tensor([[3],
            [7]])
    """

    autograd_name = over_axes("SumBackward", "0", "1")
    signature = "input"
    on_complex = complex_functions.by_parts_over_axes("sum")
    combine = "sum"
    identity = lambda dtype: 0
    result_dtype = _wide_integer
    vjp = lambda ct, y, x, axes: (broadcast_back(ct, axes, x),)
    reference = lambda x, axes, *_: numpy.sum(x, axis=axes)
    call = axes_call("sum")


@reduction
class ordered_sum:
    """Sum over axes whose elements are added one after another, to the first; 0 of none. Attributes ``(axes,)``.

    This is the order of sums over calls: adding further elements to a sum gives the sum of all.
    """

    functions = ()
    methods = ()
    signature = "input"
    kinds = "f"
    combine = "sum"
    in_order = True
    identity = lambda dtype: -0.0
    vjp = lambda ct, y, x, axes: (broadcast_back(ct, axes, x),)
    reference = lambda x, axes, *_: numpy.sum(x, axis=axes)
    # of few rows: tests/laws/test_sums_over_calls.py compares long chains, which round as no other sum does
    samples = lambda: reduction_samples("f", reals(-3, 3), True, large=False)

    def build(attrs: Any, inputs: Any) -> Any:
        """A sum of nothing is 0, while additions begin at -0.0, which changes nothing."""
        op: Any = REGISTRY["ordered_sum"]
        made, shape = Reduction.build(op, attrs, inputs), inputs[0].shape
        return filled(0, made.dtype, made.shape) if any(shape[axis] == 0 for axis in attrs[0]) else made


def _prod_gradient(ct: Any, y: Any, x: Any, axes: Axes) -> tuple[Any]:
    """The product of all before each element and all after it: right to every order, also at zeros."""
    order = (*axes, *(axis for axis in range(x.ndim) if axis not in axes))
    moved = ops.permute(x, order)
    others = products_of_others(ops.reshape(moved, (1, count_over(x.shape, axes), -1 if x.type.size else 0)))
    return (broadcast_back(ct, axes, x) * ops.permute(ops.reshape(others, moved.shape), inverse(order)),)


@reduction
class prod:
    """Product over ``dim`` (default: all axes); integers and bools are multiplied in int64.

    ``dim`` is an axis or several, kept with size 1 by ``keepdim``. Raises AxisError for an axis outside.

    >>> import twofold as torch
    >>> torch.prod(torch.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([3, 8])
    """

    autograd_name = over_axes("ProdBackward", "0", "1")
    autocast = "float32"
    signature = "input"
    on_complex = complex_functions.product_over_axes
    combine = "prod"
    identity = lambda dtype: 1
    result_dtype = _wide_integer
    domain = (reals(0.9, 1.2),)
    vjp = _prod_gradient
    reference = lambda x, axes, *_: numpy.prod(x, axis=axes)
    call = axes_call("prod")


def _extreme_gradient(ct: Any, y: Any, x: Any, axes: Axes) -> tuple[Any]:
    """Shared evenly among equal elements."""
    chosen = ops.equal(x, broadcast_back(y, axes, x))
    ties = ops.cast(apply("sum", chosen, attrs=(axes,)), ct.dtype)
    return (ops.where(chosen, broadcast_back(ct / ties, axes, x), 0),)


@reduction
class amax:
    """Largest element over ``dim``; NaN if there is one. Equal elements share the gradient.

    ``dim`` is an axis or several, kept with size 1 by ``keepdim``. Raises AxisError for an axis outside,
    ShapeError where no elements are reduced, DTypeError for complex numbers.

    >>> import twofold as torch
    >>> torch.amax(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([5., 4.])
    """

    autograd_name = over_axes("", "MaxBackward1", "AmaxBackward0")
    signature = "input"
    combine = "max"
    identity = _lowest
    empty = "the largest of no elements does not exist"
    vjp = _extreme_gradient
    reference = lambda x, axes, *_: numpy.max(x, axis=axes) if axes else x
    call = axes_call("amax")


@reduction
class amin:
    """Smallest element over ``dim``; NaN if there is one. Equal elements share the gradient.

    ``dim`` is an axis or several, kept with size 1 by ``keepdim``. Raises AxisError for an axis outside,
    ShapeError where no elements are reduced, DTypeError for complex numbers.

    >>> import twofold as torch
    >>> torch.amin(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([1., 3.])
    """

    autograd_name = over_axes("", "MinBackward1", "AminBackward0")
    signature = "input"
    combine = "min"
    identity = _highest
    empty = "the smallest of no elements does not exist"
    vjp = _extreme_gradient
    reference = lambda x, axes, *_: numpy.min(x, axis=axes) if axes else x
    call = axes_call("amin")


def _truth_call(name: str) -> Callable[..., Any]:
    """As ``axes_call``, but the answer about uint8 is uint8: the masks of programs from before there were bools."""
    plain = axes_call(name)

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain(input, *args, **kwargs)
        return ops.cast(found, uint8) if input.dtype is uint8 else found

    return shows(call, plain)


@reduction
class any_:
    """Whether any element over ``dim`` is non-zero.

    >>> import twofold as torch
    >>> torch.any(torch.tensor([[0, 0], [0, 7]]), dim=1)
    tensor([False,  True])
    """

    signature = "input"
    kinds = "biufc"
    combine = "any"
    identity = lambda dtype: False
    result_dtype = logical
    differentiable = False
    reference = lambda x, axes, *_: numpy.any(x, axis=axes)
    call = _truth_call("any")


@reduction
class all_:
    """Whether all elements over ``dim`` are non-zero.

    >>> import twofold as torch
    >>> torch.all(torch.tensor([[1, 2], [0, 7]]), dim=1)
    tensor([ True, False])
    """

    signature = "input"
    kinds = "biufc"
    combine = "all"
    identity = lambda dtype: True
    result_dtype = logical
    differentiable = False
    reference = lambda x, axes, *_: numpy.all(x, axis=axes)
    call = _truth_call("all")


def _to_index(common: DType) -> tuple[DType, DType]:
    return common, int64


def _index_reference(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, axes: Axes, *_: Any) -> Any:
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        moved = numpy.transpose(x, [*kept, *axes])
        flat = moved.reshape(*[x.shape[axis] for axis in kept], count_over(x.shape, axes))
        return function(flat, axis=-1)

    return reference


def _index_samples() -> Sequence[Sample]:
    made = reduction_samples("bfiu", reals(-3, 3), False)
    return [sample for sample in made if sample.attrs[0] or sample.arrays[0].ndim == 0]


def _index_call(name: str) -> Callable[..., Any]:
    def call(
        input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
    ) -> Any:
        axes = normalize_axes(given_once(dim=dim, axis=axis), input.ndim)
        return apply(name, input, attrs=(axes, bool(keepdim or keepdims)))

    return call


@reduction
class argmax:
    """Index of the first largest element over ``dim`` (None: of the flattened tensor); NaN wins.

    The result is int64. Raises AxisError for an axis outside, ShapeError where there are no elements.

    >>> import twofold as torch
    >>> torch.argmax(torch.tensor([[1.0, 5.0], [5.0, 4.0]]), dim=1)
    tensor([1, 0])
    """

    signature = "input"
    combine = "argmax"
    identity = _lowest
    result_dtype = _to_index
    empty = "the largest of no elements does not exist"
    differentiable = False
    samples = _index_samples
    reference = _index_reference(numpy.argmax)
    call = _index_call("argmax")


@reduction
class argmin:
    """Index of the first smallest element over ``dim`` (None: of the flattened tensor); NaN wins.

    The result is int64. Raises AxisError for an axis outside, ShapeError where there are no elements.

    >>> import twofold as torch
    >>> torch.argmin(torch.tensor([[1.0, 5.0], [5.0, 4.0]]), dim=1)
    tensor([0, 1])
    """

    signature = "input"
    combine = "argmin"
    identity = _highest
    result_dtype = _to_index
    empty = "the smallest of no elements does not exist"
    differentiable = False
    samples = _index_samples
    reference = _index_reference(numpy.argmin)
    call = _index_call("argmin")


@elementwise
class stop_gradient:
    """``input`` itself, as a constant for gradients.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (x * torch.stop_gradient(x)).backward()
    >>> x.grad
    tensor(3.)
    """

    inplace = False
    differentiable = False
    result_dtype = same
    keeps_nan = True
    copies = True
    lower = lambda b, x: x
    reference = lambda x: x


@elementwise
class straight_through:
    """``value``, with gradients that pass to ``input``, of the same shape, as if it were the value of that.

    Raises ShapeError for different shapes.

    Source: Bengio et al., Estimating or Propagating Gradients Through Stochastic Neurons, 2013.

    >>> import twofold as torch
    >>> x = torch.tensor([0.2, 1.7], requires_grad=True)
    >>> y = torch.straight_through(x, x.round())
    >>> y.sum().backward()
    >>> y.detach(), x.grad
    (tensor([0., 2.]), tensor([1., 1.]))
    """

    inplace = False
    signature = "input, value"
    kinds = "fc"
    arity = 2
    keeps_nan = True
    samples = lambda: [
        Sample((), (values.astype(name), values[::-1].astype(name)), (as_dtype(name),) * 2, smooth=False)
        for name in ("float32", "float64", "complex64")
        for values in (numpy.linspace(-2, 3, 20), numpy.array([[numpy.inf, 1.0], [-0.0, numpy.nan]]))
    ]
    vjp = lambda ct, y, x, value: (ct, None)
    copies = True
    lower = lambda b, x, value: value
    reference = lambda x, value: value

    @staticmethod
    def build(attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The value, which is not broadcast."""
        shape, other = (node.type.shape for node in inputs)
        if shape != other:
            what = f"shapes differ, {list(shape)} against {list(other)}"
            raise ShapeError(what, "Give a value of the shape of the input.")
        return Elementwise.build(straight_through, attrs, inputs)  # type: ignore[arg-type]


def mean_over(x: Any, axes: Axes, keepdims: bool) -> Any:
    """The average; half types are summed and divided in float32, so that the sum cannot overflow."""
    total = apply("sum", convert(x, x.dtype.compute), attrs=(axes, keepdims))
    return convert(total / real(count_over(x.shape, axes)), x.dtype)


@composite
class mean:
    """Average over ``dim`` (default: all axes). Raises DTypeError for integers.

    >>> import twofold as torch
    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), dim=1)
    tensor([1.5000, 4.5000])
    """

    autograd_name = over_axes("MeanBackward", "0", "1")
    signature = "input"
    kinds = "f"
    on_complex = complex_functions.by_parts_over_axes("mean")
    samples = lambda: reduction_samples("fc", reals(-3, 3), True)
    reference = lambda x, axes, keepdims: (
        numpy.sum(x, axis=axes, keepdims=keepdims) / numpy.float64(count_over(x.shape, axes))
    )
    compute = mean_over
    call = axes_call("mean")


@composite
class count_nonzero:
    """Number of non-zero elements over ``dim``.

    >>> import twofold as torch
    >>> torch.count_nonzero(torch.tensor([[0, 2], [3, 4]]), dim=0)
    tensor([1, 2])
    """

    signature = "input"
    samples = lambda: reduction_samples("fib", reals(-3, 3), True)
    reference = lambda x, axes, keepdims: numpy.sum(x != 0, axis=axes, keepdims=keepdims)
    compute = lambda x, axes, keepdims: apply("sum", ops.not_equal(x, 0), attrs=(axes, keepdims))
    call = axes_call("count_nonzero")


def _logsumexp(x: Any, axes: Axes, keepdims: bool) -> Any:
    """Shifted by the largest element; by 0 where that is infinite."""
    x = convert(x, x.dtype if x.dtype.kind in "fc" else default_float())
    if count_over(x.shape, axes) == 0:
        return ops.log(apply("sum", x, attrs=(axes, keepdims)))
    real = ops.real(x) if x.dtype.kind == "c" else x
    top = ops.stop_gradient(apply("amax", real, attrs=(axes,)))
    top = ops.where(ops.isfinite(top), top, 0)
    total = ops.log(apply("sum", ops.exp(x - broadcast_back(top, axes, x)), attrs=(axes,))) + top
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    return ops.reshape(total, kept) if keepdims else total


@composite
class logsumexp:
    """``log(sum(exp(input)))`` over ``dim``, without overflow.

    >>> import twofold as torch
    >>> torch.logsumexp(torch.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """

    functions = ("logsumexp", "special.logsumexp")
    signature = "input"
    samples = lambda: reduction_samples("fic", reals(-3, 3), True)
    reference = lambda x, axes, keepdims: numpy.log(
        numpy.sum(numpy.exp(x * 1.0), axis=axes, keepdims=keepdims)
    )
    compute = _logsumexp
    complex_rule = True
    vjp = lambda ct, y, x, axes, keepdims: (_softmax_share(ct, y, x, axes),)
    call = axes_call("logsumexp")


def _softmax_share(ct: Any, y: Any, x: Any, axes: Axes) -> Any:
    """Where the result is an infinity the shift is left out: the distance would be NaN."""
    if x.dtype.kind not in "fc":
        return None
    top = ops.where(ops.isfinite(ops.real(y) if y.dtype.kind == "c" else y), y, 0)
    share = ops.exp(x - broadcast_back(top, axes, x))
    return broadcast_back(ct, axes, x) * (ops.conj(share) if x.dtype.kind == "c" else share)


class ValuesAndIndices(NamedTuple):
    """What ``max`` and ``min`` along an axis return."""

    values: Any
    indices: Any


_MAX, _MIN = return_type("max", ValuesAndIndices), return_type("min", ValuesAndIndices)


def _selected_gradient(ct: Any, y: Any, x: Any, axis: int, keepdims: bool, largest: bool) -> tuple[Any]:
    """All of it goes to the element whose index ``argmax`` gives."""
    first = apply("argmax" if largest else "argmin", x, attrs=((axis,),))
    chosen = ops.equal(axis_numbers(axis, x.shape), broadcast_back(first, (axis,), x))
    return (ops.where(chosen, broadcast_back(ct, (axis,), x), 0),)


@composite
class select_extreme:
    """The largest or smallest element along one axis, whose whole gradient goes to the first such element."""

    autograd_name = lambda attrs, types: "MaxBackward0" if attrs[2] else "MinBackward0"
    functions = ()
    methods = ()
    signature = "input"
    compute = lambda x, axis, keepdims, largest: apply(
        "amax" if largest else "amin", x, attrs=((axis,), keepdims)
    )
    vjp = _selected_gradient
    samples = lambda: [
        Sample((axis, keep, largest), sample.arrays, sample.dtypes)
        for sample in reduction_samples("f", reals(-3, 3), False, large=False)
        for axis, keep, largest in ((0, False, True), (0, True, False))
        if sample.arrays[0].ndim and sample.arrays[0].size
    ]


def _extreme(largest: bool, input: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return apply("amax" if largest else "amin", input, attrs=(tuple(range(input.ndim)), bool(keepdim)))
    if not isinstance(dim, int):
        return apply("maximum" if largest else "minimum", input, dim)
    (axis,) = normalize_axes(dim, input.ndim) or (None,)
    kind = _MAX if largest else _MIN
    if axis is None:
        return kind(ops.copied(input), apply("argmax", input, attrs=((),)))
    values = apply("select_extreme", input, attrs=(axis, bool(keepdim), largest))
    return kind(values, apply("argmax" if largest else "argmin", input, attrs=((axis,), bool(keepdim))))


@public("max", methods=("max",))
def max_(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element; along ``dim`` also its first index; with ``other``, a tensor, ``maximum``.

    >>> import twofold as torch
    >>> torch.max(torch.tensor([[1.0, 5.0], [7.0, 4.0]]))
    tensor(7.)
    >>> torch.max(torch.tensor([[1.0, 5.0], [7.0, 4.0]]), dim=1)
    twofold.return_types.max(
    values=tensor([5., 7.]),
    indices=tensor([1, 0]))
    """
    return _extreme(True, input, given_once(dim=dim, other=other), keepdim)


@public("min", methods=("min",))
def min_(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element; along ``dim`` also its first index; with ``other``, a tensor, ``minimum``.

    >>> import twofold as torch
    >>> torch.min(torch.tensor([[1.0, 5.0], [7.0, 4.0]]))
    tensor(1.)
    >>> torch.min(torch.tensor([[1.0, 5.0], [7.0, 4.0]]), dim=1)
    twofold.return_types.min(
    values=tensor([1., 4.]),
    indices=tensor([0, 1]))
    """
    return _extreme(False, input, given_once(dim=dim, other=other), keepdim)


class MinAndMax(NamedTuple):
    """Result of ``aminmax``."""

    min: Any
    max: Any


_AMINMAX = return_type("aminmax", MinAndMax)


@public(methods=("aminmax",))
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> MinAndMax:
    """The smallest and the largest element over ``dim``.

    >>> import twofold as torch
    >>> torch.aminmax(torch.tensor([3.0, 1.0, 2.0]))
    twofold.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """
    return _AMINMAX(ops.amin(input, dim, keepdim), ops.amax(input, dim, keepdim))
