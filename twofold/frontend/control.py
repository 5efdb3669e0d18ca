"""Control flow as operations: choices and loops that are one call, in either way of declaring.

In define-by-run plain ``if``, ``for`` and ``while`` are the natural form. These operations compute the same
bits; they are for loops whose recording costs more than their work, for choices that must not be made while a
graph is declared, and for programs written for both ways. The functions given are run once, on placeholders, to
declare what they do; they may use tensors and numbers from outside.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import FUNCTIONS, apply, normalize_axis
from twofold.runtime.calls import LoopCall, call_branch, failed, predicate_of, value_of
from twofold.runtime.pytree import flatten, unflatten

Tensor = _core.Tensor


class Declaring:
    """A way of declaring that makes operations of its own for choices and loops over its tensors."""

    def owns(self, tensor: Tensor) -> bool:
        """Whether a tensor is declared there, and declaring goes on."""
        raise NotImplementedError

    def choose(
        self, operation: str, choice: Any, functions: Sequence[Callable[[], Any]], names: Sequence[str]
    ) -> Any:
        """The results of the function that ``choice`` selects."""
        raise NotImplementedError

    def while_loop(self, cond: Callable[..., Any], body: Callable[..., Any], carried: tuple[Any, ...]) -> Any:
        """The values after the last iteration."""
        raise NotImplementedError

    def scan(self, step: Callable[..., Any], init: Any, xs: Any, reverse: bool) -> tuple[Any, Any]:
        """The last carry and the stacked results."""
        raise NotImplementedError


DECLARING: list[Declaring] = []
"""Ways of declaring that entered themselves."""


def _declaring(*values: Any) -> Declaring | None:
    """Who declares operations on one of these values."""
    if not DECLARING:
        return None
    tensors = [v for v in flatten(values, "")[0] if isinstance(v, Tensor) and v._is_symbolic]
    return next((way for way in DECLARING if any(way.owns(tensor) for tensor in tensors)), None)


def _flat_function(operation: str, function: Callable[..., Any], structure: Any, found: list[Any]) -> Any:
    """``function`` on flat values; returns ``(tensor, name)`` pairs and notes the structure of its result."""

    def run(*values: Any) -> list[tuple[Any, str]]:
        returned, names, shape = flatten(function(*unflatten(structure, values)), "result")
        found.append(shape)
        return [(value_of(operation, name, value), name) for value, name in zip(returned, names)]

    return run


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """What ``true_fn(*operands)`` or ``false_fn(*operands)`` returns, whichever ``pred`` chooses; only that one runs.

    ``pred`` is one truth value. Both functions return the same structure of tensors of the same types. Raises
    DTypeError or ShapeError where they do not, or where ``pred`` is not one bool.

    >>> import twofold as torch
    >>> x = torch.tensor([3.0, 4.0])
    >>> torch.cond(x.sum() > 5, lambda x: x * 2, lambda x: x, (x,))
    tensor([6., 8.])
    """
    if isinstance(pred, bool):
        return true_fn(*operands) if pred else false_fn(*operands)
    if (way := _declaring(pred, operands)) is not None:
        functions = (lambda: false_fn(*operands), lambda: true_fn(*operands))
        return way.choose("cond", pred, functions, _TRUTH)
    return _branch("cond", predicate_of("cond", pred, "pred"), (false_fn, true_fn), operands, _TRUTH)


_TRUTH = ("false_fn", "true_fn")


def _branch(
    operation: str,
    choice: Tensor,
    functions: Sequence[Callable[..., Any]],
    operands: Sequence[Any],
    names: Sequence[str],
) -> Any:
    values, value_names, structure = flatten(tuple(operands), "operands")
    tensors = [value_of(operation, name, value) for value, name in zip(values, value_names)]
    shapes: list[Any] = []
    flat = [_flat_function(operation, function, structure, shapes) for function in functions]
    results = call_branch(operation, choice, flat, names, tensors)
    if any(repr(shape) != repr(shapes[0]) for shape in shapes):
        what = "; ".join(f"{name} returns {shape!r}" for name, shape in zip(names, shapes))
        raise failed(operation, ArgumentError(what, "Return the same structure from all."))
    return unflatten(shapes[0], results)


def switch(index: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any] = ()) -> Any:
    """What ``branches[index](*operands)`` returns; only that function runs.

    ``index`` is one integer; one that is negative or too large takes the last branch. All functions return the
    same structure of tensors of the same types.

    >>> import twofold as torch
    >>> torch.switch(torch.tensor(1), [lambda: torch.tensor(1.0), lambda: torch.tensor(5.0)])
    tensor(5.)
    """
    if not branches:
        raise failed("switch", ArgumentError("no branches", "Give at least one function."))
    names = [f"branches[{k}]" for k in range(len(branches))]
    if (way := _declaring(index, operands)) is not None:
        functions = [functools.partial(function, *operands) for function in branches]
        return way.choose("switch", index, functions, names)
    choice = value_of("switch", "index", index)
    if choice.dtype.kind not in "iu" or choice.type_.size != 1:
        what = f"index is {choice.type_}, not one integer"
        raise failed("switch", ArgumentError(what, "Give a 0-d integer tensor."))
    choice = apply("reshape", choice, attrs=((),))
    return _branch("switch", choice, tuple(branches), operands, names)


def _names(function: Callable[..., Any], count: int, role: str) -> list[str]:
    """What to call the arguments of a function: its parameters, where they can be told."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    simple = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [simple[k] if k < len(simple) else f"{role}[{k}]" for k in range(count)]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """The values carried by ``body_fn`` for as long as ``cond_fn`` is true of them.

    Both are called with ``*carried_inputs``: tensors, numbers, or nested tuples, lists and dicts of them.
    ``cond_fn`` returns one truth value; ``body_fn`` new values of the same structure and types. Iterations that a
    condition keeps going for ever end with Ctrl-C. Without a gradient no iteration is kept; with one, memory grows
    with the number of iterations times the carried values.

    Raises DTypeError or ShapeError where a value leaves the body with another type than it entered.

    >>> import twofold as torch
    >>> def halve(count, x):
    ...     return count + 1, x / 2
    >>> torch.while_loop(lambda count, x: x > 1.0, halve, (torch.tensor(0), torch.tensor(100.0)))
    (tensor(7), tensor(0.7812))
    """
    if (way := _declaring(carried_inputs)) is not None:
        return way.while_loop(cond_fn, body_fn, tuple(carried_inputs))
    call, structure = _carried("while_loop", body_fn, tuple(carried_inputs))
    start = predicate_of("while_loop", cond_fn(*unflatten(structure, call.carried)), "what cond_fn returns")

    def step(*values: Any) -> list[Any]:
        returned = body_fn(*unflatten(structure, values))
        if isinstance(returned, Tensor) or not isinstance(returned, (tuple, list)):
            returned = (returned,)
        new = call.check_carried(_same_structure("while_loop", tuple(returned), structure))
        go_on = predicate_of("while_loop", cond_fn(*unflatten(structure, new)), "what cond_fn returns")
        return [*new, go_on]

    return unflatten(structure, _finish(call, step, start)[:-1])


def carried_names(body: Callable[..., Any], carried: Sequence[Any], role: str) -> list[str]:
    """What to call the values that a loop carries: as the body does, and their positions in the call."""
    positions = flatten(carried, role)[1]
    names: list[str] = []
    for item, name in zip(carried, _names(body, len(carried), role)):
        names += flatten(item, name)[1]
    return [name if name == position else f"{name} ({position})" for name, position in zip(names, positions)]


def _carried(operation: str, body: Callable[..., Any], carried: tuple[Any, ...]) -> tuple[LoopCall, Any]:
    values = flatten(carried, "")[0]
    names = carried_names(body, carried, "carried_inputs")
    tensors = [value_of(operation, name, value) for value, name in zip(values, names)]
    return LoopCall(operation, tensors, names), flatten(carried, "")[2]


def _same_structure(operation: str, returned: Any, wanted: Any) -> list[Any]:
    values, _, found = flatten(returned, "")
    if repr(found) != repr(wanted) and len(values) == len(flatten(wanted, "")[0]):
        what = f"the body returns the structure {found!r} and was given {wanted!r}"
        raise failed(operation, ArgumentError(what, "Return what is carried in the same structure."))
    return values


def _finish(call: LoopCall, step: Callable[..., Any], start: Tensor) -> list[Any]:
    """Run a loop that may never end: alone, and given up for good when it is interrupted."""
    bound = not any(value._is_symbolic for value in call.carried) and not start._is_symbolic
    if bound:
        _core.flush()
    results = call.run(step, start)
    if bound and not any(value._is_symbolic for value in results):
        try:
            _core.flush()
        except KeyboardInterrupt:
            results.clear()
            raise
    return results


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """The carry after, and what is returned at, each step of ``carry, y = combine_fn(carry, x)`` along ``dim``.

    ``init`` is the first carry and ``xs`` what the steps read: tensors or nested tuples, lists and dicts of
    them. With ``reverse`` the last slice is read first. Returns the last carry and the ``y`` of all steps
    stacked along a new first axis, each at the position of its ``x``.

    Raises DTypeError or ShapeError where the carry changes its type, ShapeError where lengths differ.

    >>> import twofold as torch
    >>> torch.scan(lambda total, x: (total + x, total), torch.tensor(0.0), torch.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 1., 3.]))
    """
    if (way := _declaring(init, xs)) is not None:
        return way.scan(combine_fn, init, _first(xs, dim), reverse)
    carried, names, structure = flatten(init, "init")
    call = LoopCall("scan", [value_of("scan", name, value) for value, name in zip(carried, names)], names)
    x_structure = _read_rows(call, xs, dim)
    call.descending = reverse
    y_structure: list[Any] = []

    def step(*values: Any) -> list[Any]:
        count = len(call.carried)
        given = unflatten(structure, values[:count]), unflatten(x_structure, values[count:])
        returned = combine_fn(*given)
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            what = f"combine_fn returns {type(returned).__name__}, not (carry, y)"
            raise failed("scan", ArgumentError(what, "Return the next carry and this step's result."))
        new = call.check_carried(_same_structure("scan", returned[0], structure))
        ys, y_names, shape = flatten(returned[1], "y")
        y_structure.append(shape)
        return [*new, *[value_of("scan", name, y) for y, name in zip(ys, y_names)]]

    results = call.run(step)
    count = len(call.carried)
    return unflatten(structure, results[:count]), unflatten(y_structure[0], results[count:-1])


def _first(xs: Any, dim: int) -> Any:
    """``xs`` with axis ``dim`` as the first one."""
    values, _, structure = flatten(xs, "xs")
    return unflatten(structure, [FUNCTIONS["movedim"](value, dim, 0) if dim else value for value in values])


def _read_rows(call: LoopCall, xs: Any, dim: int = 0) -> Any:
    """Have a loop read along axis ``dim`` of all of ``xs``; returns their structure."""
    values, names, structure = flatten(xs, "xs")
    operation = call.operation
    for value, name in zip(values, names):
        tensor = value_of(operation, name, value)
        if not tensor.type_.shape:
            what = f"{name} is {tensor.type_}, which has no axis to go along"
            raise failed(operation, ShapeError(what, "Give a tensor with at least one axis."))
        axis = normalize_axis(dim, tensor.ndim)
        row = FUNCTIONS["movedim"](tensor, axis, 0) if axis else tensor
        length = row.type_.shape[0]
        if call.limit is not None and length != call.limit:
            what = f"{name} is {tensor.type_}, {length} long, and {names[0]} is {call.limit} long"
            raise failed(operation, ShapeError(what, f"Give them one length along axis {dim}."))
        call.limit = length
        call.xs.append(row)
    if not values:
        raise failed(operation, ArgumentError("xs holds no tensor", "Give at least one to go along."))
    return structure


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """``f(x, *args)`` of each slice ``x`` of ``xs`` along the first axis, stacked along a new first axis.

    >>> import twofold as torch
    >>> torch.map(lambda row: row.sum(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([3., 7.])
    """
    if (way := _declaring(xs)) is not None:
        return way.scan(lambda carry, x: (carry, f(x, *args)), (), xs, False)[1]
    call = LoopCall("map", [], [])
    structure = _read_rows(call, xs)
    found: list[Any] = []

    def step(*values: Any) -> list[Any]:
        ys, names, shape = flatten(f(unflatten(structure, values), *args), "result")
        found.append(shape)
        return [value_of("map", name, y) for y, name in zip(ys, names)]

    results = call.run(step)
    return unflatten(found[0], results[:-1])


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int = 0, reverse: bool = False
) -> Any:
    """All running results of ``combine_fn``, which must be associative, along ``dim``, in logarithmic depth.

    ``combine_fn`` combines many positions at once: it is called with slices of ``xs``, not with single elements.
    The tree of pairs is fixed, so results have the same bits everywhere; rounding differs from ``scan``'s.
    Source: Blelloch 1990, Prefix Sums and Their Applications.

    >>> import twofold as torch
    >>> torch.associative_scan(lambda a, b: a + b, torch.arange(1, 6))
    tensor([ 1,  3,  6, 10, 15])
    """
    values, names, structure = flatten(xs, "xs")
    tensors = [value_of("associative_scan", name, value) for value, name in zip(values, names)]
    tensors = [FUNCTIONS["movedim"](t, dim, 0) if t.ndim > 1 else t for t in tensors]
    if reverse:
        tensors = [FUNCTIONS["flip"](t, (0,)) for t in tensors]

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        return flatten(combine_fn(unflatten(structure, a), unflatten(structure, b)), "result")[0]

    found = _running(combine, tensors)
    if reverse:
        found = [FUNCTIONS["flip"](t, (0,)) for t in found]
    return unflatten(structure, [FUNCTIONS["movedim"](t, 0, dim) if t.ndim > 1 else t for t in found])


def _running(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any]) -> list[Any]:
    length = xs[0].type_.shape[0]
    if length < 2:
        return xs
    odd = _running(combine, combine([x[: length - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    rest = (length - 1) // 2
    even = combine([y[:rest] for y in odd], [x[2::2] for x in xs]) if rest else [x[:0] for x in xs]
    even = [FUNCTIONS["cat"]([x[:1], y]) for x, y in zip(xs, even)]
    return [_interleaved(a, b) for a, b in zip(even, odd)]


def _interleaved(even: Any, odd: Any) -> Any:
    """Elements of both in turn; ``even`` may have one more."""
    count = odd.type_.shape[0]
    pairs = FUNCTIONS["stack"]([even[:count], odd], 1)
    flat = FUNCTIONS["reshape"](pairs, (2 * count, *odd.type_.shape[1:]))
    return flat if even.type_.shape[0] == count else FUNCTIONS["cat"]([flat, even[count:]])
