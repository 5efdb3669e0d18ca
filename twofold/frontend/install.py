"""Wires the core to the operations: recorder, hooks, operators, and methods on the tensor type."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold import _core, index
from twofold.config import config
from twofold.dtypes import DType, Size, bfloat16, float32
from twofold.errors import GraphError, TwofoldError, at_operation, described
from twofold.frontend import gradients, storage
from twofold.frontend.inplace import write_out
from twofold.frontend.legacy import construct
from twofold.frontend.mapping import active_mappings
from twofold.ir import op as operations
from twofold.ir.op import REGISTRY
from twofold.ir.sizes import Symbol, current_sizes, symbolic_type
from twofold.ir.types import TensorType
from twofold.ops.base import apply
from twofold.ops.kernels import index_of_error_code
from twofold.ops.signatures import extended, keyword
from twofold.ops.tables import BY_CALL, FUNCTIONS, INPLACE, METHODS
from twofold.runtime import tracing
from twofold.runtime.closure_conversion import inner_line
from twofold.runtime.failures import first_wrong, operands_inside, pass_of, position
from twofold.tracebacks import positions

Tensor = _core.Tensor


def as_operand(value: Any) -> Any:
    """A NumPy array or scalar, or a size that is not known, as an operand; NotImplemented for anything else."""
    if isinstance(value, numpy.generic):
        return value.item() if value.dtype.kind in "biufc" else NotImplemented
    if isinstance(value, numpy.ndarray):
        return _core.from_array(value, False)
    if isinstance(value, Symbol) and not value.is_real and (sizes := current_sizes()) is not None:
        return sizes.operand(value)
    return NotImplemented


def cast(tensor: Tensor, type: TensorType) -> Tensor:
    """``tensor`` in the dtype of ``type``."""
    return apply("cast", tensor, attrs=(type.dtype,))


def write_view(
    op: operations.Op, attrs: Any, inputs: tuple[Any, ...], parent: Tensor, value: Tensor
) -> Tensor:
    """What a view's parent is after ``value`` was written to the view."""
    return apply("write_view", parent, value, *inputs, attrs=(op.name, attrs))


def kernel_error(
    labels: Any,
    label: int,
    code: int,
    where: str,
    location: tuple[int, int],
    op: Any,
    attrs: Any,
    types: Sequence[TensorType],
    operands: tuple[Any, ...] | None,
) -> BaseException:
    """The exception for a kernel that reported an error, with the message of its operation.

    ``op`` with ``attrs`` is what was called at ``location``, which ``where`` tells, on ``operands`` of ``types``,
    unless the line is one inside a body that it runs; ``location`` is that of the call and, of what a backward pass
    computes, of the pass.
    """
    what = labels[label]
    text, fix = what.op.failure(index_of_error_code(code), what.input_types, what.attrs)
    if not where:
        error = what.op.error(text, fix)
        error.label = what  # for the call whose host runs this program
        return error
    return _failed_call(what.op.error(text, fix), what, where, location, op, attrs, types, operands)


def _failed_call(
    error: TwofoldError,
    what: Any,
    where: str,
    location: tuple[int, int],
    op: Any,
    attrs: Any,
    types: Sequence[TensorType],
    operands: tuple[Any, ...] | None,
) -> BaseException:
    """An error of ``what`` in a call, worded for the call, or for the line in the body that it runs."""
    called = _core.forced_location() or location[0]  # a debugger computes it elsewhere
    inside = inner_line(called, (what.op, what.attrs, what.input_types))
    inner = first_wrong(op, attrs, operands, location)
    if inner is None and inside:
        inner = operands_inside(op, attrs, operands, what.op, called, inside)
    if inner is not None:
        return _inner_error(error, inner, location)
    if inside and not pass_of(location):
        op, attrs, types, operands, where = (
            what.op,
            what.attrs,
            what.input_types,
            None,
            _core.location_text(inside),
        )
    worded = tracing.located(error, op, attrs, types, where, operands)
    return position(
        worded, location, None if inside else operands, tracing.parameter_names(op, attrs), inside
    )


def _inner_error(error: TwofoldError, inner: Any, location: tuple[int, int]) -> BaseException:
    """An error of a call inside of a loop, branch or gradient, with its operands as far as they are known."""
    names = tracing.parameter_names(inner.op, inner.attrs)
    types = [
        value.type_ if isinstance(value, Tensor) else type for value, type in zip(inner.operands, inner.types)
    ]
    words = tracing.described(names, types, inner.operands)
    where = _core.location_text(inner.location)
    if pass_of(location):
        function = positions(inner.location)[0].code.co_name
        outer, backward = map(_core.location_text, location)
        where += f" in {function}, at {outer}, in the backward pass at {backward}"
    worded = at_operation(error, tracing.public_name(inner.op, inner.attrs), words, where)
    return position(worded, location, inner.operands, names, inner.location)


def host_error(
    error: TwofoldError,
    where: str,
    location: tuple[int, int],
    op: Any,
    attrs: Any,
    operands: tuple[Any, ...] | None,
) -> BaseException:
    """An error that a host operation raised while it ran, with its operands and the line that declared it."""
    label = error.label
    if error.placed:
        return error
    if error.located or label is None:
        return position(error, location, operands)
    return _failed_call(error, label, where, location, op, attrs, label.input_types, operands)


def symbolic_observed(tensor: Tensor, what: str) -> None:
    """Raise: a value above which a placeholder stands was asked for."""
    if active_mappings():
        raise GraphError(
            f"vmap: {what} of {described(tensor)} asks for one value, but there is one for every "
            f"sample, at {tracing.here()}",
            "In place of a branch on it use where(), or loop over the samples.",
        )
    if what == "a feed":
        raise GraphError(
            f"feed: {described(tensor)} has no value outside of a run, at {tracing.here()}",
            "Feed numbers or an array, such as what a run has returned for it.",
        )
    raise GraphError(
        f"{what}: {described(tensor)} is not computed yet, as it depends on a placeholder, "
        f"at {tracing.here()}",
        "Fetch it with Session.run(tensor, feed_dict={...}); for a branch on its value use cond.",
    )


def feed_array(value: Any, type: TensorType) -> numpy.ndarray:
    """A fed value as an array of the placeholder's dtype."""
    is_wide = type.dtype is bfloat16  # whose bits NumPy holds as integers
    if isinstance(value, numpy.ndarray) and value.dtype == type.dtype.numpy and not is_wide:
        return value
    array = numpy.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"feed: a value of dtype {array.dtype} for {type}. Feed numbers.")
    if array.dtype.kind == "f" and type.dtype.kind in "iub":
        raise TypeError(
            f"feed: values of dtype {array.dtype} for {type} would lose their fractions. Cast them first."
        )
    if array.dtype.kind == "c" and type.dtype.kind != "c":
        raise TypeError(
            f"feed: values of dtype {array.dtype} for {type} would lose their imaginary parts. Feed real(value)."
        )
    if is_wide:
        bits: numpy.ndarray = _core.from_array(array.astype(numpy.float32), False).to(type.dtype)._numpy()
        return bits
    return array.astype(type.dtype.numpy)


def wide_array(tensor: Tensor) -> numpy.ndarray:
    """The values of a bfloat16 tensor as float32."""
    return numpy.asarray(apply("cast", tensor, attrs=(float32,))._numpy())


_HOOKS: dict[str, Any] = {
    "construct": construct,
    "compile_trace": tracing.compile_trace,
    "kernel_error": kernel_error,
    "host_error": host_error,
    "ones": tracing.ones,
    "zeros": tracing.zeros,
    "specialise_error": tracing.specialise_error,
    "feed_array": feed_array,
    "wide_array": wide_array,
    "write_view": write_view,
    "as_operand": as_operand,
    "cast": cast,
    "error_class": TwofoldError,
    "write_out": write_out,
    "symbolic_observed": symbolic_observed,
    "no_gradient": gradients.no_gradient_message,
    "accumulate": REGISTRY["add"],
    "copy": REGISTRY["copied"],
    "join_rows": REGISTRY["concatenate_rows"],
    "row_product": REGISTRY["product_over_rows"],
    "row_table": REGISTRY["rows_added_at"],
    "row_sum": REGISTRY["sum_of_rows"],
    "view_layout": storage.view_layout,
    "view_array": storage.view_array,
    "write_storage": storage.write_storage,
    "dtype_class": DType,
    "size_class": Size,
    "symbol_class": Symbol,
    "symbolic_type": symbolic_type,
}


_LATE_HOOKS = {
    "bad_value": "twofold.runtime.anomaly",
    "is_cheap": "twofold.runtime.instances",
    "compile_op_instance": "twofold.runtime.instances",
    "display": "twofold.frontend.display",
    "expand": "twofold.runtime.instances",
    "expand_gradients": "twofold.runtime.instances",
    "locate_error": "twofold.runtime.argument_errors",
    "operator_method": "twofold.frontend.torch_function",
    "plan_batch": "twofold.compiler.batches",
    "plan_trace": "twofold.compiler.requests",
    "pullback_blocks": "twofold.transforms.derived",
    "pullback_chain": "twofold.transforms.derived",
    "pullback_rows": "twofold.transforms.derived",
    "renamed_keywords": "twofold.runtime.keywords",
    "sparse_gradient": "twofold.frontend.sparse_gradients",
    "template_gradients": "twofold.compiler.templates",
    "template_of": "twofold.runtime.instances",
    "template_program": "twofold.compiler.templates",
    "traits_of": "twofold.runtime.instances",
    "wrong_gradient": "twofold.runtime.failures",
}
"""Hooks that are functions of the same name in modules which their first call imports."""


def _late(name: str, module: str) -> Callable[..., Any]:
    def hook(*arguments: Any) -> Any:
        found = getattr(import_module(module), name)
        _core.set_hook(name, found)
        return found(*arguments)

    return hook


_HOOKS.update({name: _late(name, module) for name, module in _LATE_HOOKS.items()})


def _observing(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, but everything recorded is computed before it returns (values of placeholders later)."""

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, (Tensor, tuple)):
            _core.flush()
        return result

    return made


def _over_all(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as in PyTorch, where ``dim=()`` means all axes; NumPy's ``axis=()`` means none."""

    @functools.wraps(function)
    def made(input: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        return function(input, None if isinstance(dim, (tuple, list)) and not dim else dim, *args, **kwargs)

    return made


def _callable(function: Callable[..., Any]) -> Any:
    """The core's callable: records calls of exactly so many tensors at once; other calls end in error messages.

    What the function calls is repeated for arguments of the same types and values without Python. A function that looks
    at values, strides, ``requires_grad`` or whether gradients are recorded, that takes random numbers or writes to a
    tensor, is not repeated: the core sees that it does. What depends on anything else calls ``_core.not_by_types()``.
    """
    op = BY_CALL.get(function)
    policy = getattr(function, "autocast", "") or getattr(op, "autocast", "")
    function = _observing(function) if getattr(function, "observed", False) else function
    function = _over_all(function) if getattr(function, "empty_dim_is_all", False) else function
    arity = getattr(op, "arity", None)
    checks = getattr(op, "checks_numbers", False)
    observed = getattr(function, "observed", False)
    made = _core.operation_callable(op if arity else None, arity or 0, function, policy, checks, not observed)
    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = function.__doc__
    return made


def _signature(made: Any) -> inspect.Signature:
    """What a callable of the core takes: the parameters of the function behind it, and ``out`` if it handles that."""
    if made.arity < 0:
        return inspect.signature(made.__wrapped__)
    return extended(made.__wrapped__, keyword("out"))


_operation_type: Any = type(_core.operation_callable(None, 0, _callable))
_operation_type.__signature__ = property(_signature)


def guard(functions: dict[str, Any], but: Sequence[str] = (), by_types: bool = False) -> None:
    """Let every public Python function among ``functions`` word the errors that wrong arguments meet inside.

    Not those named in ``but``, which run what users give them.
    """
    for name, function in list(functions.items()):
        if name not in but:
            functions[name] = guarded(name, function, by_types)


def guarded(name: str, value: Any, by_types: bool = False) -> Any:
    """``value``, or the public Python function that it is as a callable with messages for wrong arguments.

    With ``by_types`` the core repeats calls, see ``_callable``.
    """
    plain = inspect.isfunction(value) and not inspect.isgeneratorfunction(inspect.unwrap(value))
    if not plain or name.startswith("_") or not value.__module__.startswith("twofold."):
        return value
    made = _core.operation_callable(None, -1, value, getattr(value, "autocast", ""), False, by_types)
    for part in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(made, part, getattr(value, part))
    return made


PUBLIC: dict[str, Any] = {}
"""Every public function by name, as users get it; its module is imported when it is first touched."""

_methods: dict[str, Any] = {}
"""Every method that is such a function; a property of the tensor may stand in its place there."""


def namespace(name: str) -> dict[str, Any]:
    """The public functions whose names start with ``name`` and a dot, by the rest of their names."""
    start = name + "."
    found = {whole.removeprefix(start): made for whole, made in PUBLIC.items() if whole.startswith(start)}
    return {short: made for short, made in found.items() if short.isidentifier()}


def _in_place(function: Callable[..., Any], shape: bool = False) -> Callable[..., Any]:
    def method(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        made = function(input, *args, **kwargs)
        if made.requires_grad and (before := input._apart(input)) is not input:
            named = {name: input._apart(one) for name, one in kwargs.items()}
            made = function(before, *map(input._apart, args), **named)
        return input._become(made) if shape else input._assign(made, *args, *kwargs.values())

    method.__wrapped__ = inspect.unwrap(function)  # type: ignore[attr-defined]
    method.__name__ = function.__name__ + "_"
    method.__doc__ = (
        f"In-place form of ``{function.__name__}``: the tensor itself becomes the result, and is returned."
        if shape
        else f"In-place form of ``{function.__name__}``: the tensor itself takes the result, and is returned.\n\n"
        "Raises RuntimeError where the shape differs, the dtype cannot hold the result, or a leaf requires grad."
    )
    return method


def _load(name: str) -> Any:
    """The callable of the public function, or with a dot before its name of the method."""
    return _callable(METHODS[name[1:]] if name[0] == "." else FUNCTIONS[name])


_OPERANDS = (Tensor, int, float, complex, numpy.generic, numpy.ndarray, Symbol)


def _yielding(function: Callable[..., Any], reflected: str) -> Callable[..., Any]:
    """``function`` as an operator, which leaves operands that are none of its own to their ``reflected`` operator."""

    def method(a: Any, b: Any) -> Any:
        known = isinstance(b, _OPERANDS)
        return NotImplemented if not known and hasattr(type(b), reflected) else function(a, b)

    return functools.wraps(function)(method)


def _asking(method: Callable[..., Any]) -> Any:
    """``method`` as a callable that asks the classes of its arguments first (``__torch_function__``)."""
    made = _core.operation_callable(None, -1, method)
    for part in ("__name__", "__qualname__", "__doc__"):
        setattr(made, part, getattr(method, part))
    return made


def _load_in_place(name: str) -> Any:
    """The in-place form of the method ``name``."""
    plain = METHODS[name]
    kind = getattr(BY_CALL.get(plain), "inplace", False) or INPLACE[plain]
    return guarded(name, _in_place(_methods[name], kind == "shape"))


def _tensor_html(tensor: Tensor) -> str:
    return str(import_module("twofold.frontend.html").tensor_html(tensor))


def _init_subclass(cls: Any, **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_function__ is not _core.disabled_torch_function:
        import_module("twofold.frontend.torch_function").handle_calls(cls)


def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return import_module("twofold.frontend.torch_function").torch_function(cls, func, types, args, kwargs)


def install_methods() -> None:
    """Give the tensor type its methods and operators, from the entries alone, and what notebooks show of it."""
    Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment]
    Tensor.__torch_function__ = classmethod(_torch_function)  # type: ignore[attr-defined]
    Tensor._repr_html_ = _tensor_html  # type: ignore[attr-defined]
    for groups in index.FUNCTIONS.values():
        for group in groups.split():
            names = group.split(",")
            function = _core.deferred_callable(_load, names[0])
            for name in names:
                if name[0] == "!":
                    in_place = _core.deferred_callable(_load_in_place, name[1:])
                    setattr(Tensor, name[1:] + "_", in_place)
                elif name[0] != ".":
                    PUBLIC[name] = function
                elif not name.startswith(".__"):
                    _methods[name[1:]] = function
                    setattr(Tensor, name[1:], function)
    for one in index.OPERATORS.split():
        op: Any = REGISTRY[one]
        for operator in op.operators:
            if not _core.set_operator(operator, op):
                setattr(Tensor, operator, _asking(_yielding(METHODS[operator], "__r" + operator[2:])))
                if getattr(op, "reflected", False):
                    setattr(Tensor, "__r" + operator[2:], _asking(METHODS["__r" + operator[2:]]))
                if getattr(op, "inplace", False):
                    setattr(Tensor, "__i" + operator[2:], _in_place(METHODS[operator]))


def install() -> None:
    """Set everything up, once, when the package is imported."""
    operations.set_recorder(_core.record)
    for name, hook in _HOOKS.items():
        _core.set_hook(name, hook)
    if "batches" in config.log:
        _core.set_hook("log_batches", _late("log_batches", "twofold.compiler.log"))
    _core.set_package_directory(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep)
    install_methods()
