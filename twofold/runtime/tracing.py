"""Callbacks of the core while it records: names and errors of calls, constants, and the fusing of traces."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.errors import TwofoldError, at_operation, describe_operand
from twofold.errors import described as described_tensor
from twofold.ir.node import Attributes
from twofold.ir.op import REGISTRY, DerivedOp, Op
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.failures import describe_call


def here() -> str:
    """``file:line`` of the running user code, or of the operation that is being declared."""
    return _core.location_text(_core.declaring_location())


def message(what: str, fix: str, **operands: Any) -> str:
    """The text of an error of a library function: what, its operands with their types, the line, and what to change."""
    shown = ", ".join(f"{name} {described_tensor(one)}" for name, one in operands.items() if one is not None)
    return f"{what}{': ' if shown else ''}{shown}, at {here()}. {fix}"


def public_name(op: Op, attrs: Attributes = ()) -> str:
    """The public name of an operation, or of the one that it is derived from."""
    if isinstance(op, DerivedOp) and attrs:
        return "backward pass of " * op.is_gradient + public_name(*op.base(attrs))
    names = getattr(op, "functions", ())
    return names[0] if names else getattr(op, "title", "") or op.name


def described(names: Sequence[str], types: Sequence[TensorType], operands: Sequence[Any]) -> list[str]:
    """Texts of operands for a message: name, type or Python number, and the line that made it.

    Numbers that have no name beside others that do are the operation's own.
    """
    found = []
    for k, type in enumerate(types):
        name = names[k] if k < len(names) else ""
        if names and not name and type.weak:
            continue
        operand = operands[k] if k < len(operands) else None
        where = operand._where if isinstance(operand, _core.Tensor) else None
        found.append(
            describe_operand(
                name or f"operand {k}",
                repr(operand) if type.weak and operand is not None else str(type),
                where,
            )
        )
    return found


def located(
    error: TwofoldError,
    op: Op,
    attrs: Attributes,
    types: Sequence[TensorType],
    where: str,
    operands: Sequence[Any] | None = None,
) -> TwofoldError:
    """A run-time error with its call.

    Args:
        error: The error.
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands.
        where: The location of the call.
        operands: The operands, if they are known.
    """
    names = described(parameter_names(op, attrs), types, operands or ())
    return at_operation(error, public_name(op, attrs), names, where)


def at_call(
    error: TwofoldError,
    name: str,
    parameters: Sequence[str],
    types: Sequence[TensorType],
    operands: Sequence[Any],
) -> TwofoldError:
    """An error of the call that is being recorded, with its operands and line.

    Args:
        error: The error.
        name: The public name of the operation.
        parameters: The names of its parameters.
        types: The types of its operands.
        operands: The operands, whose values are shown if they are computed.
    """
    worded = at_operation(error, name, described(parameters, types, operands), here())
    worded.call = f"{name}: {error.what}", operands
    describe_call(worded, operands, parameters)
    return worded


def parameter_names(op: Op, attrs: Attributes = ()) -> Sequence[str]:
    """Names of the tensor parameters of an operation, if its entry has them."""
    if isinstance(op, DerivedOp) and attrs:
        return _pullback_names(attrs) if op.is_gradient else parameter_names(*op.base(attrs))
    named = op.parameter_names() if hasattr(op, "parameter_names") else []
    return named or _names_of_rule(op)


_SPELLED = {"x": "input", "t": "target", "ct": "gradient"}
"""Parameters of rules that have other names in signatures."""


def _names_of_rule(op: Op) -> list[str]:
    """The names of the inputs in the rule of a composite operation."""
    rule = getattr(op, "rule_compute", None)
    found: list[str] = []
    for parameter in inspect.signature(rule).parameters.values() if rule is not None else ():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            break
        found.append(_SPELLED.get(parameter.name, parameter.name))
    return found or _required(getattr(op, "call", None))


def _required(call: Any) -> list[str]:
    """The parameters without a default of a function whose first one is ``input``."""
    given = list(inspect.signature(call).parameters.values()) if callable(call) else []
    if not given or given[0].name != "input":
        return []
    return [one.name for one in given if one.default is one.empty]


def _pullback_names(attrs: Attributes) -> list[str]:
    """The names of the operands of a gradient, empty for what has none."""
    derived = import_module("twofold.transforms.derived")
    name, inner, written, index, flags = attrs
    types = tuple(tensor_type(*type) for type in written)
    wrt = tuple(k for k, flag in enumerate(flags) if flag) or (index,)
    own = parameter_names(REGISTRY[name], inner)
    shown = {-1: "gradient", -2: "result", **dict(enumerate(own))}
    slots = derived.pullbacks_of(REGISTRY[name], inner, types, wrt)[index].slots
    return [shown.get(slot, "") for slot in slots]


def specialise_error(op: Op, where: str) -> None:
    """Raise the error of a declared operation whose fed sizes do not fit."""
    raise RuntimeError(f"{op.name}, declared at {where}: the sizes that were fed do not fit")


def compile_trace(executable: Any, wait: bool, first: int, last: int) -> bool:
    """See ``compiler.requests``."""
    from twofold.compiler import requests

    return requests.compile_trace(executable, wait, first, last)


def _constant_of(name: str, type: TensorType) -> tuple[Op, Attributes]:
    return REGISTRY[name], (type.shape, type.dtype)


@atexit.register
def _flush_pending_checks() -> None:
    """At exit, compute pending operations that check values, and wait for the run in the background."""
    if _core.pending_checks():
        _core.flush()
    _core.finish_background()


def ones(type: TensorType) -> tuple[Op, Attributes]:
    """The operation of ones of a type, the seed of a backward pass."""
    return _constant_of("ones", type)


def zeros(type: TensorType) -> tuple[Op, Attributes]:
    """The operation of zeros of a type."""
    return _constant_of("zeros", type)
