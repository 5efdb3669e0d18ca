"""``jacrev``, ``jacfwd`` and ``hessian``: all partial derivatives, as one batched pass over the unit directions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.func._batching import vmap
from twofold.func._tape import Tape
from twofold.func._trees import Argnums, chosen, floating_leaves, rebuilt, replaced
from twofold.ops.base import ops
from twofold.tracebacks import boundary
from twofold.utils._pytree import TreeSpec, tree_unflatten

Tensor = _core.Tensor


def _tape(
    name: str,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
) -> tuple[Tape, TreeSpec, list[Tensor]]:
    tree, positions = chosen(args, argnums, name)
    inputs, spec = floating_leaves(tree, name, "the arguments of argnums")

    def call(starts: list[Tensor]) -> Any:
        return func(*replaced(args, positions, argnums, tree_unflatten(starts, spec)), **kwargs)

    return Tape(name, inputs, call, has_aux), spec, inputs


def _directions(value: Tensor) -> Tensor:
    """The unit directions of a tensor, along a new leading axis."""
    size = value.numel()
    return ops.reshape(ops.eye(size, dtype=value.dtype), (size, *value.shape))


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func`` by reverse mode: one pullback for all unit cotangents.

    The result has the form of the output, and in each position that of the argument (or arguments) of ``argnums``;
    a tensor in it has the shape of the output followed by that of the input. ``func`` runs once, as plain
    Python. ``chunk_size`` limits the cotangents at once.

    >>> import twofold as torch
    >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        tape, spec, inputs = _tape("jacrev", func, args, kwargs, argnums, has_aux)
        rows = [_pulled(tape, position, inputs, chunk_size) for position in range(len(tape.outputs))]
        found = rebuilt([tree_unflatten(row, spec) for row in rows], tape.spec)
        return (found, tape.aux) if has_aux else found

    return boundary(wrapped)


def _pulled(tape: Tape, position: int, inputs: Sequence[Tensor], chunk_size: int | None) -> list[Tensor]:
    """The Jacobian of one output in every input."""
    output = tape.outputs[position]

    def pull(cotangent: Tensor) -> Any:
        return tuple(tape.pull([cotangent], only=position))

    columns = vmap(pull, chunk_size=chunk_size)(_directions(output))
    return [
        ops.reshape(column, (*output.shape, *given.shape))
        for column, given in zip(columns, inputs, strict=True)
    ]


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """As ``jacrev`` by forward mode: one derivative along all unit directions of the inputs.

    It is the cheaper one where ``func`` has more outputs than inputs.

    >>> import twofold as torch
    >>> torch.func.jacfwd(lambda x: x.sum() * x)(torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        tape, spec, inputs = _tape("jacfwd", func, args, kwargs, argnums, has_aux)
        linear = tape.linearized()
        columns = []
        for position, given in enumerate(inputs):
            push = functools.partial(_push_one, linear, position)
            pushed = vmap(push, randomness=randomness, chunk_size=chunk_size, out_dims=-1)(_directions(given))
            columns.append(
                [
                    ops.reshape(part, (*out.shape, *given.shape))
                    for part, out in zip(pushed, tape.outputs, strict=True)
                ]
            )
        rows = [tree_unflatten([column[k] for column in columns], spec) for k in range(len(tape.outputs))]
        found = rebuilt(rows, tape.spec)
        return (found, tape.aux) if has_aux else found

    return boundary(wrapped)


def _push_one(linear: Any, position: int, direction: Tensor) -> tuple[Tensor, ...]:
    return tuple(linear.push_one(position, direction))


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of ``func``: forward mode over reverse mode.

    >>> import twofold as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
