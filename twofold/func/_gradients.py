"""``grad``, ``vjp``, ``jvp`` and ``linearize``: functions that compute derivatives of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import described
from twofold.frontend.transforms import ones_of
from twofold.func._tape import Tape
from twofold.func._trees import Argnums, chosen, floating_leaves, rebuilt, replaced
from twofold.tracebacks import boundary
from twofold.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

Tensor = _core.Tensor


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of ``func``, whose result is one number, and that number.

    The gradient has the form of the argument that ``argnums`` names; of several, a tuple. With ``has_aux``,
    ``func`` returns ``(output, aux)`` and the value becomes that pair. ``func`` runs as plain Python and may
    branch on values. Raises RuntimeError where the output is no floating scalar.

    >>> import twofold as torch
    >>> torch.func.grad_and_value(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        tree, positions = chosen(args, argnums, "grad")
        inputs, spec = floating_leaves(tree, "grad", "the arguments of argnums")

        def call(starts: list[Tensor]) -> Any:
            return func(*replaced(args, positions, argnums, tree_unflatten(starts, spec)), **kwargs)

        tape = Tape("grad", inputs, call, has_aux)
        _check_scalar(tape)
        found = tree_unflatten(tape.pull([ones_of(tape.outputs[0])]), spec)
        (value,) = tape.values
        return found, ((value, tape.aux) if has_aux else value)

    return boundary(wrapped)


def _check_scalar(tape: Tape) -> None:
    if not tape.spec.is_leaf():
        raise RuntimeError(
            f"grad: the function must return one tensor, not a {tape.spec!r}. Use vjp for several."
        )
    (output,) = tape.outputs
    if output.shape or output.dtype.kind != "f":
        raise RuntimeError(
            f"grad: the function must return a floating tensor without axes, got "
            f"{described(output)}. Reduce it with sum() or mean(), or use vjp or jacrev."
        )


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``func``; see ``grad_and_value``. With ``has_aux`` also aux.

    >>> import twofold as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.0))
    tensor(-0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return boundary(wrapped)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of ``func`` at ``primals``, and a function from cotangents of it to those of the primals.

    With ``has_aux``, ``func`` returns ``(output, aux)`` and aux is returned as a third. Raises RuntimeError for
    primals that are no floating tensors.

    >>> import twofold as torch
    >>> output, pullback = torch.func.vjp(torch.sin, torch.tensor(0.0))
    >>> pullback(torch.tensor(2.0))
    (tensor(2.),)
    """
    inputs, spec = floating_leaves(primals, "vjp", "the primals")
    tape = Tape("vjp", inputs, lambda starts: func(*tree_unflatten(starts, spec)), has_aux)

    @boundary
    def pullback(cotangents: Any) -> Any:
        """Cotangents of the primals, a tuple."""
        seeds = _seeds(tape, cotangents)
        return tree_unflatten(tape.pull(seeds), spec)

    output = rebuilt(tape.values, tape.spec)
    return (output, pullback, tape.aux) if has_aux else (output, pullback)


def _seeds(tape: Tape, cotangents: Any) -> list[Tensor]:
    leaves, spec = tree_flatten(cotangents)
    _check_form("vjp", "cotangents", spec, "output", tape.spec)
    for leaf, output in zip(leaves, tape.outputs, strict=True):
        _check_like("vjp", "cotangent", leaf, output)
    return leaves


def _check_form(name: str, what: str, found: TreeSpec, whose: str, wanted: TreeSpec) -> None:
    if found != wanted:
        raise RuntimeError(
            f"{name}: the {what} have the form {found!r}, the {whose} has {wanted!r}. Give one tensor for each."
        )


def _check_like(name: str, what: str, given: Any, like: Tensor) -> None:
    if not isinstance(given, Tensor) or given.shape != like.shape or given.dtype != like.dtype:
        text = described(given) if isinstance(given, Tensor) else f"a {type(given).__name__}"
        raise RuntimeError(
            f"{name}: a {what} must have the type {like.type_} of its value, got {text}. Give one of that type."
        )


def _directions(name: str, primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], TreeSpec]:
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        raise RuntimeError(f"{name}: expected primals and tangents to be tuples of arguments, not empty.")
    inputs, spec = floating_leaves(primals, name, "the primals")
    return inputs, _tangents(name, tangents, inputs, spec), spec


def _tangents(name: str, tangents: Any, inputs: Sequence[Tensor], spec: TreeSpec) -> list[Tensor]:
    leaves, form = tree_flatten(tangents)
    _check_form(name, "tangents", form, "tuple of primals", spec)
    for leaf, value in zip(leaves, inputs, strict=True):
        _check_like(name, "tangent", leaf, value)
    return leaves


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The output of ``func`` at the tuple ``primals``, and its derivative along ``tangents``.

    The derivative is the transpose of the pullback, which is linear: so it follows from the same gradient
    rules, and what only the pullback computes is never run. ``strict`` raises RuntimeError for an output that
    does not depend on the primals, in place of a tangent of zeros.

    >>> import twofold as torch
    >>> torch.func.jvp(lambda x: x**2, (torch.tensor(3.0),), (torch.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    inputs, directions, spec = _directions("jvp", primals, tangents)
    tape = Tape("jvp", inputs, lambda starts: func(*tree_unflatten(starts, spec)), has_aux)
    if strict and not all(output.requires_grad or output._is_symbolic for output in tape.outputs):
        raise RuntimeError("jvp: an output does not depend on the primals, and strict is set.")
    pushed = tape.linearized().push(directions)
    output, tangent = rebuilt(tape.values, tape.spec), rebuilt(pushed, tape.spec)
    return (output, tangent, tape.aux) if has_aux else (output, tangent)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of ``func`` at ``primals``, and the linear function from tangents there to those of the output.

    ``func`` runs once; the linear function may be called many times.

    >>> import twofold as torch
    >>> output, push = torch.func.linearize(torch.exp, torch.tensor(0.0))
    >>> push(torch.tensor(5.0))
    tensor(5.)
    """
    inputs, spec = floating_leaves(primals, "linearize", "the primals")
    tape = Tape("linearize", inputs, lambda starts: func(*tree_unflatten(starts, spec)), False)
    linear = tape.linearized()

    @boundary
    def push(*tangents: Any) -> Any:
        """Tangents of the output."""
        return rebuilt(linear.push(_tangents("linearize", tangents, inputs, spec)), tape.spec)

    return rebuilt(tape.values, tape.spec), push
