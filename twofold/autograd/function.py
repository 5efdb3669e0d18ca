"""``Function``: an operation with a gradient of the user's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import GraphError
from twofold.frontend.gradients import no_grad
from twofold.ir.graph import interned
from twofold.ops.base import apply
from twofold.ops.control_flow.user_gradient import Pullback
from twofold.runtime.closure_conversion import closure_convert, record_calls
from twofold.runtime.failures import end_in
from twofold.runtime.tracing import here
from twofold.utils._pytree import tree_map_only

Tensor = _core.Tensor

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What ``forward`` leaves for ``backward``; any attribute may be set on it."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True
        self._saved: tuple[Any, ...] = ()
        self._results: dict[int, Tensor] = {}  # by key of a result: what stands for it in backward
        self._not_differentiable: list[Tensor] = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``backward``, which finds them in ``saved_tensors``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "map_values"):
                raise TypeError(
                    f"save_for_backward: a {type(tensor).__name__} is no tensor. Set it as an attribute of ctx."
                )
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` was given."""
        return tuple(value if value is None else self._stand_in(value) for value in self._saved)

    def _stand_in(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value.map_values(self._stand_in)
        return self._results.get(_core.value_key(value), value)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that no gradient flows to these results."""
        self._not_differentiable.extend(tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that ``forward`` changed inputs in place; nothing depends on it here."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` is given zeros (or else None) for results without a cotangent."""
        self.materialize_grads = value


BackwardCFunction = FunctionCtx


class Function:
    """An operation that a program defines by a ``forward`` and a ``backward`` static method; ``apply`` calls it.

    ``forward(ctx, *args)`` runs without gradients and returns a tensor or a tuple of them; or it is
    ``forward(*args)`` with a ``setup_context(ctx, inputs, output)`` beside it. ``backward(ctx, *cotangents)``
    returns a cotangent, or None, for every argument. It is declared when ``apply`` is called, for each result
    alone and with the other cotangents zero, so it is written with tensor operations and cannot ask for their
    values; it must be linear in the cotangents if there are several results. If it consists of differentiable
    operations, the gradient has gradients.

    >>> import twofold as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, cotangent):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * cotangent
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    setup_context: Any = None

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results."""
        raise NotImplementedError("a Function needs a static method forward: define it in the class.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the cotangents of the arguments."""
        raise NotImplementedError(
            "a gradient flows through a Function without a static method backward: define it in the class."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the operation."""
        needs = tuple(isinstance(value, Tensor) and _may_flow(value) for value in args)
        enabled = _core.grad_enabled() and any(needs)
        ctx = FunctionCtx(needs if _core.grad_enabled() else (False,) * len(args))
        with no_grad():
            if cls.setup_context is None:
                result = cls.forward(ctx, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
        result = tree_map_only(Tensor, Tensor.detach, result)
        return _with_gradient(cls, ctx, args, result) if enabled else result


def _may_flow(value: Tensor) -> bool:
    return value.requires_grad or (value._is_symbolic and value.dtype.is_differentiable)


def _with_gradient(cls: type[Function], ctx: FunctionCtx, args: Sequence[Any], result: Any) -> Any:
    single = isinstance(result, Tensor)
    results = [result] if single else list(result)
    excluded = {_core.value_key(value) for value in ctx._not_differentiable}
    tensors = [value for value in results if isinstance(value, Tensor)]
    found = []
    for value in results:
        plain = not isinstance(value, Tensor) or not value.dtype.is_differentiable
        if plain or _core.value_key(value) in excluded:
            found.append(value)
        else:
            found.append(_result(cls, ctx, args, value, tensors))
    return found[0] if single else tuple(found)


def _result(
    cls: Any, ctx: FunctionCtx, args: Sequence[Any], value: Tensor, results: Sequence[Tensor]
) -> Tensor:
    """One result, with the gradient that ``backward`` gives for it alone."""
    own = next(k for k, other in enumerate(results) if other is value)
    inputs = [arg for arg in args if isinstance(arg, Tensor)]
    positions: list[int] = []

    def backward(cotangent: Tensor, *values: Tensor) -> list[Tensor]:
        ctx._results = {_core.value_key(one): other for one, other in zip(results, values, strict=True)}
        zeros = [apply("zeros", attrs=(tuple(one.shape), one.dtype)) for one in results]
        given = [
            cotangent if k == own else zero if ctx.materialize_grads else None for k, zero in enumerate(zeros)
        ]
        found = cls.backward(ctx, *given)
        ctx._results = {}
        return _shares(cls, args, found, positions)

    types = [value.type_, *[one.type_ for one in results]]
    try:
        with _core.AutocastMode(0, _core.autocast_state()[1]):  # the region is that of forward
            closed = closure_convert(backward, types)
    except GraphError as error:
        raise GraphError(
            f"{cls.__name__}.backward asks for a value of a cotangent, but it is declared before there are any, at "
            f"{here()}: {error.what}",
            "Write it with tensor operations alone, where() in place of branches.",
        ) from error
    closed.record_lines()
    content = interned(Pullback(closed.graph, positions, len(inputs), own, len(results), cls.__name__))
    record_calls(content.content_key, [closed], len(types))
    return apply("user_gradient", value, *inputs, *results, *closed.captured, attrs=(content, ()))


def _shares(cls: Any, args: Sequence[Any], found: Any, positions: list[int]) -> list[Tensor]:
    """The cotangents of tensors that may have one; ``positions`` becomes their positions among the tensors."""
    shares = list(found) if isinstance(found, tuple) else [found]
    while len(shares) > len(args) and shares[-1] is None:
        shares.pop()
    if len(shares) != len(args):
        error = RuntimeError(
            f"{cls.__name__}.backward: {len(shares)} gradients for {len(args)} arguments of forward. Return one for "
            "each, None for those that are no tensors."
        )
        raise end_in(error, cls.backward, None)
    kept: list[Tensor] = []
    position = 0
    for arg, share in zip(args, shares, strict=True):
        if not isinstance(arg, Tensor):
            continue
        if share is not None and _may_flow(arg):
            kept.append(_fitting(cls, arg, share))
            positions.append(position)
        position += 1
    return kept


def _fitting(cls: Any, arg: Tensor, share: Any) -> Tensor:
    if not isinstance(share, Tensor) or share.shape != arg.shape:
        found = share.type_ if isinstance(share, Tensor) else f"a {type(share).__name__}"
        error = RuntimeError(
            f"{cls.__name__}.backward: the gradient of {arg.type_} ({arg._where}) is {found}. Return one of its shape."
        )
        raise end_in(error, cls.backward, share)
    return share.to(arg.dtype)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a ``backward`` whose result has no gradient: differentiating it again raises GradientError."""

    @functools.wraps(function)
    def wrapped(ctx: Any, *cotangents: Any) -> Any:
        found = function(ctx, *cotangents)
        return tree_map_only(Tensor, lambda value: apply("differentiated_once", value), found)

    return wrapped
