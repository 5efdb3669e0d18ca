"""The decorators that turn a class body into a registered entry, and what entries are written with.

An entry is a class whose attributes say everything about one operation; a decorator makes the one instance,
registers it and publishes its function. Rules are plain functions (lambdas) without ``self``; they receive
the values first and then the attributes, unpacked:

=============  =====================================================================================
``vjp``        ``(cotangent, output, *inputs, *attrs)`` -> cotangents of the inputs, None for zero
``lower``      ``(builder, *values, *attrs)`` -> the result, in the compute dtype
``reference``  ``(*arrays, *attrs)`` -> the value by NumPy
``compute``    composite: ``(*inputs, *attrs)`` -> the result, written with other operations
``result``     view, custom and contraction: ``(*input types, *attrs)`` -> the result type
``index_map``  view: ``(input shape, output shape, *attrs)``, see ``ViewOp.index_map``
``batch``      view: ``(size, *attrs)`` -> the attributes behind a new leading axis (optional)
``cut``        view: ``(axis, size, *attrs)`` -> the attributes for another size of an axis of the result (optional)
``layout``     with ``is_view``: ``(layout of the first input, *other inputs, *attrs)``, see ``Op.layout``
``call``       the public function, where the signature alone does not give it
=============  =====================================================================================

Other methods of a kind (``emit``, ``work``, ...; see ``ir.op``) have their own parameters. Rules call other operations
through ``ops``: ``ops.exp(x)``; Python operators work on nodes as on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, overload

from twofold.ir.bind import bind
from twofold.ir.node import Node
from twofold.ir.op import Op, register
from twofold.ops.axes import normalize_axes as normalize_axes
from twofold.ops.axes import normalize_axis as normalize_axis
from twofold.ops.axes import whole_number as whole_number
from twofold.ops.building_blocks import apply as apply
from twofold.ops.building_blocks import broadcast as broadcast
from twofold.ops.building_blocks import broadcast_shapes as broadcast_shapes
from twofold.ops.building_blocks import convert as convert
from twofold.ops.building_blocks import filled as filled
from twofold.ops.building_blocks import iota as iota
from twofold.ops.building_blocks import ops as ops
from twofold.ops.building_blocks import restore_axes as restore_axes
from twofold.ops.building_blocks import strong as strong
from twofold.ops.docstrings import with_dtypes, with_library
from twofold.ops.kinds import (
    Composite,
    Contraction,
    Custom,
    Elementwise,
    Host,
    Operation,
    Reduction,
    Source,
    Templated,
    View,
)
from twofold.ops.promotion import common_dtype as common_dtype
from twofold.ops.promotion import logical as logical
from twofold.ops.promotion import same, to_float, to_number
from twofold.ops.promotion import to_bool as to_bool
from twofold.ops.signatures import with_names
from twofold.ops.tables import BY_CALL, FUNCTIONS, INPLACE, LIBRARIES, METHODS


class ElementwiseRules(Protocol):
    """What an element-wise entry cannot do without."""

    @property
    def lower(self) -> Any: ...
    @property
    def reference(self) -> Any: ...


class ReductionRules(Protocol):
    """What a reduction cannot do without."""

    @property
    def combine(self) -> Any: ...
    @property
    def identity(self) -> Any: ...
    @property
    def reference(self) -> Any: ...


class ViewRules(Protocol):
    """What a view cannot do without."""

    @property
    def index_map(self) -> Any: ...
    @property
    def reference(self) -> Any: ...
    @property
    def vjp(self) -> Any: ...


class CompositeRules(Protocol):
    """What a composite cannot do without."""

    @property
    def compute(self) -> Any: ...


Base = TypeVar("Base", contravariant=True)
Rules = TypeVar("Rules", contravariant=True)


class Decorator(Protocol[Base, Rules]):
    """Registers a subclass of the base class of a kind, or a class with its rules."""

    @overload
    def __call__(self, body: type[Base]) -> Any: ...
    @overload
    def __call__(self, body: type[Rules]) -> Any: ...


_RULES = frozenset(
    {"vjp", "lower", "reference", "compute", "result", "index_map", "batch", "cut", "layout", "samples"}
)


def _entry(base: type[Operation]) -> Any:
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


elementwise: Decorator[Elementwise, ElementwiseRules] = _entry(Elementwise)
reduction: Decorator[Reduction, ReductionRules] = _entry(Reduction)
view: Decorator[View, ViewRules] = _entry(View)
composite: Decorator[Composite, CompositeRules] = _entry(Composite)
source: Callable[[type[Source]], Any] = _entry(Source)
contraction: Callable[[type[Contraction]], Any] = _entry(Contraction)
custom: Callable[[type[Custom] | type[Templated]], Any] = _entry(Custom)
host: Callable[[type[Host]], Any] = _entry(Host)
