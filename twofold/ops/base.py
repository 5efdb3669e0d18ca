"""Base classes of operation entries, and the decorators that turn a class body into a registered entry.

An entry is a class whose attributes say everything about one operation; a decorator makes the one instance,
registers it and publishes its function. Rules are plain functions (lambdas) without ``self``; they receive
the values first and then the attributes, unpacked:

=============  =====================================================================================
``vjp``        ``(cotangent, output, *inputs, *attrs)`` -> cotangents of the inputs, None for zero
``lower``      ``(builder, *values, *attrs)`` -> the result, in the compute dtype
``reference``  ``(*arrays, *attrs)`` -> the value by NumPy
``compute``    composite: ``(*inputs, *attrs)`` -> the result, written with other operations
``result``     view, custom and contraction: ``(*input types, *attrs)`` -> the result type
``index_map``  view: ``(input shape, output shape, *attrs)``, see ``Op.index_map``
``batch``      view: ``(size, *attrs)`` -> the attributes behind a new leading axis (optional)
``layout``     with ``is_view``: ``(layout of the first input, *other inputs, *attrs)``, see ``Op.layout``
``call``       the public function, where the signature alone does not give it
=============  =====================================================================================

Other methods of ``Op`` (``emit``, ``work``, ...) are written with their own parameters, without ``self``.
Rules call other operations through ``ops``: ``ops.exp(x)``; Python operators work on nodes as on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import DType, bool_, default_float, float64, int64
from twofold.errors import DTypeError, IndexRangeError, ShapeError, TwofoldError
from twofold.ir.bind import bind, constant
from twofold.ir.layout import Layout
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, Op, register
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.axes import normalize_axes as normalize_axes
from twofold.ops.axes import normalize_axis as normalize_axis
from twofold.ops.axes import whole_number as whole_number
from twofold.ops.docstrings import with_dtypes, with_library
from twofold.ops.gradients import NoGradient, with_own_gradient
from twofold.ops.promotion import common_dtype, same
from twofold.ops.promotion import logical as logical
from twofold.ops.promotion import to_bool as to_bool
from twofold.ops.promotion import to_float as to_float
from twofold.ops.promotion import to_number as to_number
from twofold.ops.samples import Domain, elementwise_samples, reals, reduction_samples
from twofold.ops.signatures import with_names
from twofold.ops.tables import BY_CALL, FUNCTIONS, INPLACE, LIBRARIES, METHODS


class Functions:
    """All public functions as attributes, found when used, so that entries may refer to later ones."""

    def __getattr__(self, name: str) -> Any:
        function = FUNCTIONS.get(name) or getattr(REGISTRY.get(name), "call", None)
        if function is None:
            raise AttributeError(f"no operation named {name!r}")
        setattr(self, name, function)
        return function


ops: Any = Functions()


def apply(name: str, *inputs: Any, attrs: Attributes = ()) -> Any:
    """Bind the operation called ``name``."""
    return bind(REGISTRY[name], inputs, attrs)


# Building blocks for ``build``. They return Any, as type checkers do not see the operators of nodes.


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all ``shapes`` broadcast to; raises ShapeError if there is none.

    >>> broadcast_shapes((2, 1, 3), (4, 1), ())
    (2, 4, 3)
    """
    first = shapes[0]
    # ranks first, so that sizes of different axes are not compared: for symbols that would be a guard
    if all(len(shape) == len(first) and shape == first for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for position, size in enumerate(shape, ndim - len(shape)):
            if size != 1 and size != result[position]:
                if result[position] != 1:
                    what = f"sizes on axis {position - ndim} differ, {result[position]} against {size}"
                    raise ShapeError(what, "Make them equal, or one of them 1 (unsqueeze adds such an axis).")
                result[position] = size
    return tuple(result)


def convert(node: Node, dtype: DType) -> Any:
    """``node`` as a value of ``dtype`` that is not weak; a ``cast`` node only where needed."""
    type = node.type
    if type.dtype is dtype and not type.weak:
        return node
    if "c" in (dtype.kind, type.dtype.kind):
        return _convert_complex(node, dtype)
    if "S" in (dtype.kind, type.dtype.kind):
        what = f"{type.dtype.name} cannot be cast to {dtype.name}"
        raise DTypeError(what, "Use tf.as_string or tf.string_to_number.")
    if node.op.name == "constant" and (dtype.kind == "f" or type.dtype.kind != "f"):
        return constant(node.attrs[0], dtype)
    return make_node(REGISTRY["cast"], (dtype,), (node,), tensor_type(dtype, type.shape))


def _convert_complex(node: Node, dtype: DType) -> Any:
    """From or to a complex dtype, part by part; a complex number is true where either part is."""
    if node.op.name == "constant" and dtype.kind == "c":
        return constant(node.attrs[0], dtype)
    if node.type.dtype.kind != "c":
        real = convert(node, dtype.real)
        return ops.complex(real, filled(0, dtype.real, node.type.shape))
    real, imag = apply("real", node), apply("imag", node)
    if dtype.kind == "b":
        return ops.logical_or(real, imag)
    if dtype.kind == "c":
        return ops.complex(convert(real, dtype.real), convert(imag, dtype.real))
    return convert(real, dtype)


def broadcast(node: Node, shape: Shape) -> Any:
    """``node`` broadcast to ``shape``; a ``broadcast_to`` node only where needed.

    Raises ShapeError where the shapes do not fit: the kernels would read beyond the node's memory.
    """
    type = node.type
    extra = len(shape) - len(type.shape)
    if not extra and type.shape == shape:
        return node
    if extra < 0 or any(size not in (1, shape[extra + axis]) for axis, size in enumerate(type.shape)):
        raise ShapeError(
            f"shape {type.shape} does not broadcast to {shape}",
            "Make the sizes equal, or 1 where they repeat.",
        )
    return make_node(REGISTRY["broadcast_to"], (shape,), (node,), tensor_type(type.dtype, shape, type.weak))


def filled(value: bool | int | float | complex, dtype: DType, shape: Shape) -> Any:
    """A node of ``shape`` whose every element is ``value``."""
    return broadcast(constant(value, dtype), shape)


def iota(shape: Shape) -> Any:
    """The int64 node whose elements are their own flat row-major numbers."""
    return make_node(REGISTRY["iota"], (), (), tensor_type(int64, shape))


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


class Source(Operation):
    """An operation without inputs; ``materialize(attrs, type)`` gives its value as a NumPy array."""

    kind = "source"
    differentiable = False
    materialize: Callable[[Attributes, TensorType], Any]


class Elementwise(Operation):
    """One element of the result from the elements at the same position in the operands.

    The operands are promoted to one dtype and broadcast to one shape, as the entry says:
    ``result_dtype`` names the dtype to compute in and that of the result, ``operand_dtypes`` fixes the dtype
    of single operands (None: takes part in promotion).
    """

    kind = "elementwise"
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
            values.append(_weakly(one, operand) if weak else convert(one, dtype or operand))
        if self.divides and operand.kind in "iu" and 0 not in shape:
            known = values[1].op.name == "constant" and values[1].attrs[0]
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


def _weakly(node: Node, dtype: DType) -> Node:
    """A weak operand of an all-weak expression in ``dtype``, still weak."""
    if node.type.dtype is dtype:
        return node
    return make_node(REGISTRY["cast"], (dtype,), (node,), tensor_type(dtype, node.type.shape, True))


class Reduction(Operation):
    """Combines all elements along some axes, in the fixed order that makes every result reproducible.

    Declared attributes: ``(axes, keepdims)``, axes sorted and not negative; those of the node: ``(axes,)``.
    ``combine`` names the combination, ``identity(dtype)`` what it starts from.
    """

    kind = "reduction"
    combine: str
    in_order: bool = False  # whether elements are combined one after another, rather than in sixteen lanes
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


def restore_axes(reduced: Node, axes: tuple[int, ...], shape: Shape) -> Node:
    """``reduced`` with the reduced axes of ``shape`` put back at size 1."""
    return ops.reshape(reduced, tuple(1 if axis in axes else size for axis, size in enumerate(shape)))


class Typed(Operation):
    """A primitive whose ``result`` rule gives the type from the input types and attributes."""

    rule_result: Callable[..., TensorType]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """Make the node; weak inputs become values of float32, int64 or bool first."""
        values = [strong(node) for node in inputs]
        return make_node(self, attrs, values, self.rule_result(*[value.type for value in values], *attrs))


def strong(node: Node) -> Node:
    """A weak value as a tensor of the default dtype of its kind; any other as it is."""
    if not node.type.weak:
        return node
    default = {"f": default_float(), "c": default_float().complex}
    return convert(node, default.get(node.type.dtype.kind, node.type.dtype))


class View(Typed):
    """Elements of the input at other positions."""

    kind = "view"
    rule_index_map: Callable[..., Any]
    rule_batch: Callable[..., Attributes] | None = None

    def for_samples(
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


class Contraction(Typed):
    """The matrix product, or a convolution: sums of products that element-wise operations may follow."""

    kind = "contraction"


class Custom(Typed):
    """An operation that writes its own loops."""

    kind = "custom"


class Host(Typed):
    """An operation that computes on NumPy arrays in Python."""

    kind = "host"
    library: str = ""  # what computes it, where its last bits are that library's own
    memory = (16, "computed by NumPy, with copies and steps in between")


class Composite(Operation):
    """An operation written with others; it is declared as one and vanishes when the graph is built.

    ``rule_vjp`` is optional: a form of the gradient that is better than differentiating the parts. It also
    holds inside other composites, where a ``ruled`` node marks the result.
    """

    kind = "composite"
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


# Decorators

_RULES = frozenset(
    {"vjp", "lower", "reference", "compute", "result", "index_map", "batch", "cut", "layout", "samples"}
)


def _entry(base: type[Operation]) -> Callable[[type], Any]:
    def decorate(body: type) -> Any:
        op: Any = body() if issubclass(body, Operation) else base()
        own = [part for part in body.__mro__ if part not in base.__mro__]
        given = {key: value for part in reversed(own) for key, value in vars(part).items()}
        op.name = body.__name__.rstrip("_")
        op.doc = (body.__doc__ or "").strip()
        if not isinstance(op, body):
            for key, value in given.items():
                if not key.startswith("__"):
                    function = value.__func__ if isinstance(value, staticmethod) else value
                    setattr(op, f"rule_{key}" if key in _RULES else key, function)
        if "functions" not in given:
            op.functions = () if op.title else (op.name,)
        if isinstance(op, (Elementwise, Reduction, Composite)) and op.signature and "methods" not in given:
            op.methods = tuple(name for name in op.functions if "." not in name)
        if isinstance(op, Elementwise) and "inplace" not in given:
            op.inplace = op.result_dtype in (same, to_float, to_number) or len(op.parameter_names()) > 1
        register(op)
        _publish(op)
        op.call.__module__ = body.__module__
        return op

    return decorate


def _publish(op: Any) -> None:
    if not hasattr(op, "call"):
        count = len(op.parameter_names())
        op.arity = count if op.functions else None
        op.call = _plain_call(op, count) if op.functions else _attribute_call(op)
    op.call.__name__ = op.functions[0].rpartition(".")[2] if op.functions else op.name
    op.call.__qualname__ = op.call.__name__
    op.call.__doc__ = with_dtypes(op) if _follows_its_rules(op) else op.doc
    BY_CALL[op.call] = op
    publish(op.call, op.functions, op.methods, op.operators, op.reflected)


def _follows_its_rules(op: Any) -> bool:
    """Whether an entry is element-wise and its dtypes are those that its attributes say."""
    return type(op) is Elementwise and not {"infer", "build", "operand_dtypes"} & vars(op).keys()


def publish(
    function: Callable[..., Any],
    functions: Sequence[str],
    methods: Sequence[str] = (),
    operators: Sequence[str] = (),
    reflected: bool = False,
) -> None:
    """Enter a public function under its names; operators also come to work on nodes."""
    if functions and functions[0] in LIBRARIES:
        function.__doc__ = with_library(function.__doc__ or "", LIBRARIES[functions[0]])
    for name in functions:
        FUNCTIONS.enter(name, function)
    for name in methods:
        METHODS.enter(name, function)
    for name in operators:
        found = {name: function}
        if reflected:
            found["__r" + name[2:]] = _swapped(function)
        for method, implementation in found.items():
            METHODS.enter(method, implementation)
            if method not in ("__eq__", "__ne__"):  # nodes are compared by identity
                setattr(Node, method, implementation)


def public(
    *functions: str, methods: Sequence[str] = (), inplace: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publish a function that is no operation itself: it has several results or chooses among operations.

    Methods get the form ``name_`` by ``inplace``: it writes the ``"value"`` or changes the ``"shape"`` of a view.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        publish(function, functions or (function.__name__,), methods)
        if inplace:
            INPLACE[function] = inplace
        return function

    return decorate


def _swapped(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda input, other: function(other, input)


def _attribute_call(op: Op) -> Callable[..., Any]:
    return lambda *inputs, attrs=(): bind(op, inputs, attrs)


def _plain_call(op: Any, arity: int) -> Callable[..., Any]:
    def unary(input: Any) -> Any:
        return bind(op, (input,))

    def binary(input: Any, other: Any) -> Any:
        return bind(op, (input, other))

    def ternary(input: Any, other: Any, third: Any) -> Any:
        return bind(op, (input, other, third))

    return with_names((lambda: bind(op, ()), unary, binary, ternary)[arity], op.parameter_names())


source = _entry(Source)
elementwise = _entry(Elementwise)
reduction = _entry(Reduction)
view = _entry(View)
contraction = _entry(Contraction)
custom = _entry(Custom)
host = _entry(Host)
composite = _entry(Composite)
