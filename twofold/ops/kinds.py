"""Base classes of operation entries, one for each kind: the rules that an entry gives as plain functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import DType, bool_, default_float, float64
from twofold.errors import DTypeError, IndexRangeError, ShapeError, TwofoldError
from twofold.ir.bind import constant, is_constant
from twofold.ir.layout import Layout
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import (
    CompositeOp,
    ContractionOp,
    CustomOp,
    ElementwiseOp,
    HostOp,
    LoopOp,
    Op,
    ReductionOp,
    SourceOp,
    TemplateOp,
    ViewOp,
)
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.building_blocks import (
    NoGradient,
    apply,
    broadcast,
    broadcast_shapes,
    convert,
    ops,
    restore_axes,
    strong,
    weakly,
    with_own_gradient,
)
from twofold.ops.promotion import common_dtype, same
from twofold.ops.samples import Domain, elementwise_samples, reals, reduction_samples

_KIND_WORDS = {
    "b": "bool",
    "i": "signed integers",
    "u": "unsigned integers",
    "f": "floating dtypes",
    "c": "complex dtypes",
    "S": "strings",
}


class Operation(Op):
    """What every entry has beside the rules: its public names."""

    functions: tuple[str, ...] = ()  # the first is the canonical name
    title: str = ""  # what messages call an entry that has no function of its own
    methods: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()  # "__add__"; with ``reflected`` also "__radd__" with swapped operands
    reflected: bool = False
    inplace: bool | str = False  # whether the method ``name_`` exists; "shape" if it changes that
    arity: int | None = None  # n: the public call takes exactly n positional values and no attributes
    checks_numbers: bool = False  # with an arity: ``call`` only sees whether the dtype holds a Python number
    call: Callable[..., Any]
    creates: str = ""  # makes new leaves, of the "default" dtype or of that of a "value"
    differentiable: bool = True
    without_gradient: tuple[int, ...] = ()  # inputs whose gradient has no formula: asking for it is an error
    exact_reference: bool = False  # the reference wants arrays of the true dtypes, not of float64
    kinds: str = "biuf"  # the dtype kinds that the operands may promote to
    promotes: bool = False  # whether operands without axes count by their kind, in define-by-run
    half_types: bool = True  # custom: whether kernels read float16 and bfloat16; else calls widen them before
    domain: tuple[Domain, ...] = ()  # per input, where ``samples`` takes values (default: -3 to 3)
    attribute_samples: tuple[Attributes, ...] = ((),)

    on_complex: Callable[..., Node] | None = None
    """How the result comes from complex operands, written with operations on their parts; None: it does not."""
    on_strings: Callable[..., Any] | str | None = None
    """On strings of define-then-run: a function of bytes that Python calls for each element; "kernel" where elements
    are only copied or compared for equality; None: the entry does not take them."""
    complex_rule: bool = False
    """Composite: whether the ``vjp`` rule conjugates where it must, so that it holds for complex results."""
    holomorphic: bool = False
    """Whether the ``vjp`` rule holds for complex operands, too, as the derivative is a complex number itself."""

    write: Callable[..., Any] | None = None
    """With ``is_view``: ``(base, value, *other inputs, *attrs)`` -> the base with the value in place of what the view
    shows; a subclass writes it as a method."""
    rule_vjp: Callable[..., Sequence[Node | None]] | None = None
    rule_layout: Callable[..., Layout | None] | None = None
    rule_reference: Callable[..., Any] | None = None
    rule_samples: Callable[[], Sequence[Any]] | None = None

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The entry's ``vjp`` rule; an entry that is not differentiable passes nothing on."""
        if not self.differentiable:
            return (None,) * len(inputs)
        if self.rule_vjp is None:
            raise NotImplementedError(self.name)
        if not self.holomorphic or cotangent.dtype.kind != "c":
            found: list[Any] = list(self.rule_vjp(cotangent, output, *inputs, *attrs))
            for k in self.without_gradient:
                found[k] = NoGradient(self.name, self.parameter_names()[k])
            return found
        # the gradient of L is ct times the conjugate of the derivative
        shares = self.rule_vjp(ops.conj(cotangent), output, *inputs, *attrs)
        return [None if share is None else ops.conj(share) for share in shares]

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        """The entry's ``layout`` rule."""
        if self.rule_layout is None:
            raise NotImplementedError(self.name)
        return self.rule_layout(source, *inputs, *attrs)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The entry's ``reference`` rule."""
        if self.rule_reference is None:
            raise NotImplementedError(self.name)
        return self.rule_reference(*arrays, *attrs)

    def samples(self) -> Sequence[Any]:
        """The entry's own ``samples``: ``Sample`` objects."""
        return self.rule_samples() if self.rule_samples is not None else ()

    def parameter_names(self) -> list[str]:
        """Names of the tensor parameters, from the signature."""
        return [name.strip() for name in self.signature.split(",") if name.strip()]

    error: type[TwofoldError] = IndexRangeError  # what a kernel that fails raises

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        """What to say, and what to change, when a kernel fails with the code of ``index``."""
        what = f"index {index} is outside the axis it selects from"
        return what, "Use indices from -size to size - 1."

    def check_kind(self, dtype: DType) -> None:
        """Raise DTypeError where the entry does not take ``dtype``."""
        if dtype.kind == "S" and self.on_strings is not None:
            return
        if dtype.kind not in self.kinds and (dtype.kind != "c" or self.on_complex is None):
            takes = " and ".join(_KIND_WORDS[kind] for kind in self.kinds)
            raise DTypeError(f"takes {takes}, not {dtype.name}", "Cast with .to() first.")


class Source(Operation, SourceOp):
    """An operation without inputs."""

    differentiable = False


class Elementwise(Operation, ElementwiseOp):
    """One element of the result from the elements at the same position in the operands.

    The operands are promoted to one dtype and broadcast to one shape, as the entry says:
    ``result_dtype`` names the dtype to compute in and that of the result, ``operand_dtypes`` fixes the dtype
    of single operands (None: takes part in promotion).
    """

    signature = "input"
    result_dtype: Callable[[DType], tuple[DType, DType]] = staticmethod(same)
    operand_dtypes: tuple[DType | None, ...] = ()
    accuracy: tuple[float, float] = (0.5, 0.5)  # bounds in float32 and float64, in units in the last place
    amplitude: Callable[..., Any] | None = None  # of arrays: errors are relative to it where values are less
    accurate_where: Callable[..., Any] | None = None  # of arrays: where the bounds hold, if not everywhere
    promotes = True
    divides: bool = False  # whether the second operand, of integers, must not be 0
    wide_numbers: bool = False  # whether Python numbers beside half types keep the digits of float32
    rule_lower: Callable[..., Any]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """Promote, broadcast, and make the node."""
        fixed = self.operand_dtypes or (None,) * len(inputs)
        operand, result, weak = self.infer(attrs, self.promoted([node.type for node in inputs]))
        shape = broadcast_shapes(*[node.type.shape for node in inputs])
        if operand.kind == "c" and self.on_complex is not None:
            wide = [broadcast(convert(node, operand), shape) for node in inputs]
            value = self.on_complex(*wide, *attrs)
            return with_own_gradient(self, attrs, value, wide) if self.holomorphic else value
        if self.wide_numbers and operand.compute is not operand and any(node.type.weak for node in inputs):
            return convert(self.build(attrs, [convert(node, operand.compute) for node in inputs]), result)
        values = []
        for one, dtype in zip(inputs, fixed, strict=True):
            values.append(weakly(one, operand) if weak else convert(one, dtype or operand))
        if self.divides and operand.kind in "iu" and 0 not in shape:
            known = is_constant(values[1]) and values[1].attrs[0]
            values[1] = values[1] if known else apply("nonzero_divisor", values[1])
        wide = [broadcast(value, shape) for value in values]
        return make_node(self, attrs, wide, tensor_type(result, shape, weak))

    def promoted(self, types: Sequence[TensorType]) -> list[TensorType]:
        """The types of operands that take part in promotion."""
        fixed = self.operand_dtypes or (None,) * len(types)
        return [type for type, dtype in zip(types, fixed, strict=True) if dtype is None]

    def infer(self, attrs: Attributes, types: Sequence[TensorType]) -> tuple[DType, DType, bool]:
        """Dtype of the operands that promote, dtype of the result, and whether that is weak."""
        if not types:
            operand, result = self.result_dtype(bool_)
            return operand, result, False
        common, weak = common_dtype(types)
        if weak and self.operand_dtypes:
            # beside a tensor whose dtype does not count, numbers are tensors of their own
            common, weak = default_float() if common.kind == "f" else common, False
        operand, result = self.result_dtype(common)
        if weak and operand.kind == "f":
            operand, result = float64, float64 if result.kind == "f" else result
        self.check_kind(common)
        return operand, result, weak

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """The entry's ``lower`` rule."""
        return self.rule_lower(builder, *values, *attrs)

    def samples(self) -> Sequence[Any]:
        """The entry's own samples, or calls on awkward shapes of every dtype it takes."""
        if self.rule_samples is not None:
            return self.rule_samples()
        count = len(self.parameter_names())
        domain = self.domain * count if len(self.domain) == 1 else self.domain or (reals(-3, 3),) * count
        fixed = self.operand_dtypes or (None,) * count
        kinds = self.kinds + ("c" if self.on_complex is not None else "")
        return list(elementwise_samples(kinds, domain, fixed, self.attribute_samples))


class Reduction(Operation, ReductionOp):
    """Combines all elements along some axes, in the fixed order that makes every result reproducible.

    Declared attributes: ``(axes, keepdims)``, axes sorted and not negative; those of the node: ``(axes,)``.
    ``identity(dtype)`` is what the combination starts from.
    """

    identity: Callable[[DType], Any]
    result_dtype: Callable[[DType], tuple[DType, DType]] = staticmethod(same)
    empty: str = ""  # why an empty axis cannot be reduced, if it cannot

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """Convert, check and make the node; ``keepdims`` is a reshape behind it."""
        (node,) = inputs
        axes, keepdims = attrs[0], len(attrs) > 1 and attrs[1]
        shape = node.type.shape
        self.check_kind(node.type.dtype)
        operand, result = self.result_dtype(node.type.dtype)
        if operand.kind == "c" and self.on_complex is not None:
            return self.on_complex(convert(node, operand), axes, keepdims)
        if self.empty and any(shape[axis] == 0 for axis in axes):
            raise ShapeError(self.empty, "Reduce an axis that has elements.")
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        value = convert(node, operand)
        reduced = make_node(self, (axes,), (value,), tensor_type(result, kept))
        return restore_axes(reduced, axes, shape) if keepdims else reduced

    def samples(self) -> Sequence[Any]:
        """The entry's own samples, or reductions of awkward shapes of every dtype it takes."""
        if self.rule_samples is not None:
            return self.rule_samples()
        domain = self.domain[0] if self.domain else reals(-3, 3)
        kinds = self.kinds + ("c" if self.on_complex is not None else "")
        return list(reduction_samples(kinds, domain, not self.empty))


class Typed(Operation):
    """A primitive whose ``result`` rule gives the type from the input types and attributes."""

    rule_result: Callable[..., TensorType]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """Make the node; weak inputs become values of float32, int64 or bool first."""
        values = [strong(node) for node in inputs]
        return make_node(self, attrs, values, self.rule_result(*[value.type for value in values], *attrs))


class View(Typed, ViewOp):
    """Elements of the input at other positions."""

    rule_index_map: Callable[..., Any]
    rule_batch: Callable[..., Attributes] | None = None
    rule_cut: Callable[..., Attributes] | None = None

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """The view with the attributes that the entry's ``batch`` rule gives, if only its first input has samples."""
        if self.rule_batch is None or not flags[0] or any(flags[1:]):
            return None
        type = tensor_type(node.type.dtype, (size, *node.type.shape), node.type.weak)
        return make_node(self, self.rule_batch(size, *node.attrs), tuple(values), type)

    def index_map(self, attrs: Attributes, input_shape: Shape, output_shape: Shape) -> Any:
        """The entry's ``index_map`` rule."""
        return self.rule_index_map(input_shape, output_shape, *attrs)


class Contraction(Typed, ContractionOp):
    """The matrix product, or a convolution."""


class Custom(Typed, LoopOp):
    """An operation that writes its own loops."""


class Templated(Typed, CustomOp, TemplateOp):
    """A custom operation that a kernel template computes."""


class Host(Typed, HostOp):
    """An operation that computes on NumPy arrays in Python."""

    library: str = ""  # what computes it, where its last bits are that library's own
    memory = (16, "computed by NumPy, with copies and steps in between")


class Composite(Operation, CompositeOp):
    """An operation written with others; it is declared as one and vanishes when the graph is built.

    ``rule_vjp`` is optional: a form of the gradient that is better than differentiating the parts. It also
    holds inside other composites, where a ``ruled`` node marks the result.
    """

    rule_compute: Callable[..., Any]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The entry's ``compute`` rule, after checking the dtypes it takes."""
        if self.kinds != "biuf":
            for node in inputs:
                self.check_kind(node.type.dtype)
        if self.on_complex is not None and any(node.type.dtype.kind == "c" for node in inputs):
            return self.on_complex(*inputs, *attrs)
        result = self.rule_compute(*inputs, *attrs)
        value = result if isinstance(result, Node) else strong(constant(result))
        if self.rule_vjp is None or value.type.dtype.kind not in ("fc" if self.complex_rule else "f"):
            return value
        return with_own_gradient(self, attrs, value, inputs)

    def samples(self) -> Sequence[Any]:
        """The entry's own samples, or calls of an element-wise function of floats."""
        names = self.parameter_names()
        if self.rule_samples is not None or not names:
            return super().samples()
        domain = self.domain * len(names) if len(self.domain) == 1 else self.domain
        domain = domain or (reals(-3, 3),) * len(names)
        kinds = "fc" if "c" in self.kinds or self.on_complex is not None else "f"
        return list(elementwise_samples(kinds, domain, (None,) * len(names), self.attribute_samples))
