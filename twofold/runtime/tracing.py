"""What the core asks of Python: the closed graph of a call, of its gradient, and programs for both tiers."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.errors import ShapeError, TwofoldError, at_operation, describe_operand
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import TensorType, type_from_code
from twofold.runtime.failures import describe_call
from twofold.runtime.spans import spanned

_MOST_AXES = 64  # of a NumPy array
_MOST_BYTES = 2**46  # what the core's allocator takes for a mistake


def here() -> str:
    """``file:line`` of the user's code that is running, or of the declared operation that is replayed."""
    return _core.location_text(_core.declaring_location())


def _public_name(op: Op) -> str:
    names = getattr(op, "functions", ())
    return names[0] if names else getattr(op, "title", "") or op.name


def described(names: Sequence[str], types: Sequence[TensorType], operands: Sequence[Any]) -> list[str]:
    """Operands for a message: name, type and the line that made them; a Python number shows itself."""
    found = []
    for k, type in enumerate(types):
        name = names[k] if k < len(names) else f"operand {k}"
        operand = operands[k] if k < len(operands) else None
        where = operand._where if isinstance(operand, _core.Tensor) else None
        found.append(
            describe_operand(name, repr(operand) if type.weak and operand is not None else str(type), where)
        )
    return found


def located(
    error: TwofoldError,
    op: Op,
    types: Sequence[TensorType],
    where: str,
    operands: Sequence[Any] | None = None,
) -> TwofoldError:
    """An error met while running, with the operation that was called there and the types of its inputs."""
    return at_operation(error, _public_name(op), described(parameter_names(op), types, operands or ()), where)


def at_call(
    error: TwofoldError,
    name: str,
    parameters: Sequence[str],
    types: Sequence[TensorType],
    operands: Sequence[Any],
) -> TwofoldError:
    """An error of the call that is made now, with its operands, their values as far as they are there, and its line."""
    worded = at_operation(error, name, described(parameters, types, operands), here())
    describe_call(worded, operands, parameters)
    return worded


def parameter_names(op: Op) -> Sequence[str]:
    """Names of the tensor parameters of an operation, as far as its entry tells them."""
    return op.parameter_names() if hasattr(op, "parameter_names") else []


@spanned("type rule")
def expand(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], operands: tuple[Any, ...]
) -> tuple[Graph | None, TensorType, bool]:
    """The closed graph, result type and differentiability of a call that the core meets for the first time."""
    from twofold.ir.unknown import result_type
    from twofold.runtime.derived import stable_graph

    differentiable = getattr(op, "differentiable", True)
    try:
        if any(size < 0 for type in types for size in type.shape):
            return None, result_type(op, attrs, types), differentiable
        graph = stable_graph(op, attrs, types)
        check_limits(graph.outputs[0].type)
    except TwofoldError as error:
        raise at_call(error, _public_name(op), parameter_names(op), types, operands) from None
    return graph, graph.outputs[0].type, differentiable


def check_limits(type: TensorType) -> None:
    """Raise ShapeError for a type with too many axes or bytes."""
    if len(type.shape) > _MOST_AXES:
        raise ShapeError(f"a result with {len(type.shape)} axes", f"Use at most {_MOST_AXES}.")
    if type.nbytes > _MOST_BYTES:
        raise ShapeError(f"a result of {type.nbytes / 2**40:.4g} TiB, {type}", "Make it smaller.")


def specialise_error(op: Op, where: str) -> None:
    """Word the error of a declared operation whose sizes, known at last, do not fit."""
    raise RuntimeError(f"{op.name}, declared at {where}: the sizes that were fed do not fit")


Expanded = tuple[int, "tuple[Op, Attributes, Graph, TensorType, tuple[int, ...], tuple[int, ...]]"]


@spanned("gradient rule")
def expand_gradients(
    op: Op, attrs: Attributes, types: tuple[TensorType, ...], graph: Graph, wanted: tuple[int, ...]
) -> list[Expanded | tuple[int, NotImplementedError]]:
    """The cotangents of the inputs ``wanted`` of a call as operations, and the values that these share.

    Each with its number: its graph, its result type, what its inputs are, and its form, or the error of one that has no
    formula. What reads a value stands behind it.
    """
    from twofold.runtime.derived import PULLBACK, Pullback, pullbacks_of

    found: list[Any] = []
    for index, one in pullbacks_of(op, attrs, types, wanted, graph).items():
        if isinstance(one, Pullback):
            made = (PULLBACK, one.attrs, one.graph, one.graph.outputs[0].type, one.slots, one.form)
            found.append((index, made))
        else:
            found.append((index, one))
    return found


@spanned("compile operation")
def compile_signature(graph: Graph) -> Any:
    """The first-sight program of one call."""
    from twofold.runtime.compile import compile_graph

    return compile_graph(graph).program()


def graph_of_entry(entry: tuple[Any, ...]) -> Graph:
    """The closed graph of an entry that the core describes."""
    from twofold.runtime.derived import stable_graph

    graph, _, op, attrs, _, types = entry
    return graph if graph is not None else stable_graph(op, attrs, [type_from_code(*type) for type in types])


def compile_trace(executable: Any, wait: bool, first: int, last: int) -> bool:
    """Fuse a trace and hand the program to the core, see ``fusing``."""
    from twofold.runtime import fusing

    return fusing.compile_trace(executable, wait, first, last)


def _constant_of(name: str, type: TensorType) -> tuple[Op, Attributes]:
    return REGISTRY[name], (type.shape, type.dtype)


def worth_delaying(graph: Graph) -> bool:
    """Whether a result that lives is kept as its call, as long as nobody reads it: a table with a few sums of rows."""
    from twofold.passes.sparse_rows import is_sparse

    return is_sparse(graph.outputs[0], sum(type.nbytes for type in graph.input_types))


def checks_values(op: Op, graph: Graph) -> bool:
    """Whether a call is computed even if nobody reads its result: wrong indices and values are always reported.

    Not where a gradient reads indices again that the call above it has checked.
    """
    return not op.checked_above and any(node.op.checks for node in graph.nodes())


@atexit.register
def _report_the_rest() -> None:
    """At the end of a program, compute what nobody has read if it may be wrong."""
    if _core.pending_checks():
        _core.flush()


def ones(type: TensorType) -> tuple[Op, Attributes]:
    """The operation that makes ones of a type, the first cotangent of a backward pass."""
    return _constant_of("ones", type)


def zeros(type: TensorType) -> tuple[Op, Attributes]:
    """The operation that makes zeros of a type."""
    return _constant_of("zeros", type)
