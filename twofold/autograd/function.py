"""``Function``: an operation with a gradient of the user's own."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import GraphError, described
from twofold.frontend.called_backward import CalledBackward
from twofold.frontend.gradients import no_grad
from twofold.ir.graph import interned
from twofold.ir.types import TensorType
from twofold.ops.base import apply
from twofold.ops.control_flow.user_gradient import Pullback
from twofold.ops.signatures import shows
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
        self._watched: list[tuple[Callable[[], Any], int] | None] = []
        """Saved tensors that backward reads when a pass calls it, results as the program has them; their versions."""
        self._results: dict[int, Tensor] = {}  # by key of a result: what stands for it in backward
        self._not_differentiable: list[Tensor] = []
        self._dirty: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``backward``, which finds them in ``saved_tensors``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "map_values"):
                raise TypeError(
                    f"save_for_backward: a {type(tensor).__name__} is no tensor, at {here()}. Set it as an "
                    "attribute of ctx."
                )
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` was given; raises RuntimeError if it was written to meanwhile."""
        for one in self._watched:
            value, version = (None, 0) if one is None else (one[0](), one[1])
            if value is not None and value._version != version:
                raise RuntimeError(
                    f"saved_tensors: {described(value)}, which is needed for the gradient, has been "
                    f"modified by an inplace operation: it is at version {value._version}, expected version "
                    f"{version}, at {here()}. Save a clone()."
                )
        return tuple(value if value is None else self._stand_in(value) for value in self._saved)

    saved_variables = saved_tensors  # its name in old programs

    def _stand_in(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value.map_values(self._stand_in)
        return self._results.get(_core.value_key(value), value)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that no gradient flows to these results."""
        self._not_differentiable.extend(tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that ``forward`` changed inputs in place; if it returns them, they get the gradient."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` is given zeros (or else None) for results without a cotangent."""
        self.materialize_grads = value


BackwardCFunction = FunctionCtx


class Function:
    """An operation that a program defines by a ``forward`` and a ``backward`` static method; ``apply`` calls it.

    ``forward(ctx, *args)`` runs without gradients and returns a tensor or a tuple of them; or it is ``forward(*args)``
    with a ``setup_context(ctx, inputs, output)`` beside it. ``backward(ctx, *cotangents)`` returns a cotangent, or
    None, for every argument, once for a backward pass. If it consists of differentiable operations, the gradient has
    gradients. Where an argument has no value yet (in transforms of ``twofold.func``, loops, sessions), ``backward`` is
    declared with the call, for each result alone and with the other cotangents zero: there it cannot ask for values,
    and must be linear in the cotangents.

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: a Function is not made and called as in PyTorch before 1.5."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method: make forward and backward static methods, "
            f"and call {type(self).__name__}.apply(...)."
        )

    shows(__call__, __call__, without=("args", "kwargs"))

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
        declared = enabled and any(isinstance(value, Tensor) and value._is_symbolic for value in args)
        called = _CalledGradient(cls, ctx, args) if enabled and not declared else None
        with no_grad():
            if cls.setup_context is None:
                result = cls.forward(ctx, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
        if called is not None:
            return called.of(result)
        result = tree_map_only(Tensor, Tensor.detach, result)
        return _with_gradient(cls, ctx, args, result) if declared else result


class InplaceFunction(Function):
    """The base that PyTorch keeps for old programs; it adds an attribute ``inplace``, which programs read."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _may_flow(value: Tensor) -> bool:
    return value.requires_grad or (value._is_symbolic and value.dtype.is_differentiable)


def _has_gradient(value: Any, excluded: set[int]) -> bool:
    return (
        isinstance(value, Tensor) and value.dtype.is_differentiable and _core.value_key(value) not in excluded
    )


class _CalledGradient:
    """The gradient of a call: ``backward``, called by each backward pass."""

    def __init__(self, cls: Any, ctx: FunctionCtx, args: Sequence[Any]) -> None:
        self._cls, self._ctx = cls, ctx
        self._called_at = _core.capture_location()
        self._args = [(value.type_, value._where) if isinstance(value, Tensor) else None for value in args]
        self._types: list[TensorType | None] = []  # of the results
        self._numbers: dict[int, int] = {}  # of results with a gradient, by their values
        inputs = [value for value, flows in zip(args, ctx.needs_input_grad, strict=True) if flows]
        self._gradient = CalledBackward(cls.__name__, inputs, self._shares)

    def of(self, result: Any) -> Any:
        """What ``forward`` returned, with the gradient."""
        ctx = self._ctx
        results = [result] if isinstance(result, Tensor) else list(result)
        self._types = [value.type_ if isinstance(value, Tensor) else None for value in results]
        excluded = {_core.value_key(value) for value in ctx._not_differentiable}
        found, followed = [], {}
        for k, value in enumerate(results):
            if _has_gradient(value, excluded):
                made = self._gradient.result(k, value.detach())
                self._numbers[_core.value_key(value)] = k
                followed[k] = _rebound(value, made) if any(value is one for one in ctx._dirty) else made
                found.append(followed[k])
            else:
                found.append(value.detach() if isinstance(value, Tensor) else value)
        self._gradient.close(followed)
        returned = {key: followed[k] for key, k in self._numbers.items()}
        ctx._watched = [_watched(value, returned) for value in ctx._saved]
        return found[0] if isinstance(result, Tensor) else tuple(found)

    def _shares(self, cotangents: dict[int, Tensor]) -> list[Tensor | None]:
        ctx = self._ctx
        given = [
            cotangents[k]
            if k in cotangents
            else apply("zeros", attrs=(tuple(one.shape), one.dtype))
            if one is not None and ctx.materialize_grads
            else None
            for k, one in enumerate(self._types)
        ]
        if _core.grad_enabled():
            ctx._results = self._saved_results()
        try:
            found = self._cls.backward(ctx, *given)
        finally:
            ctx._results = {}
        shares = _of_arguments(self._cls, len(self._args), found, self._called_at)
        return [
            None if share is None else _fitting(self._cls, *arg, share, self._called_at)
            for arg, flows, share in zip(self._args, ctx.needs_input_grad, shares, strict=True)
            if flows and arg is not None
        ]

    def _saved_results(self) -> dict[int, Tensor]:
        """Saved results as values that have gradients."""
        saved = [value for value in self._ctx._saved if isinstance(value, Tensor)]
        numbered = [(_core.value_key(value), value) for value in saved]
        return {
            key: self._gradient.result(self._numbers[key], value.detach())
            for key, value in numbered
            if key in self._numbers
        }


def _watched(value: Any, returned: dict[int, Tensor]) -> tuple[Callable[[], Any], int] | None:
    """What gives a saved tensor, or the result that the program was given for it as long as it lives; its version."""
    if not isinstance(value, Tensor):
        return None
    result = returned.get(_core.value_key(value))
    return (lambda: value, value._version) if result is None else (weakref.ref(result), result._version)


def _rebound(value: Tensor, made: Tensor) -> Tensor:
    """An argument that ``forward`` wrote to and returned, from now on with the gradient."""
    if value.is_leaf and value.requires_grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    return value._assign(made)


def _with_gradient(cls: type[Function], ctx: FunctionCtx, args: Sequence[Any], result: Any) -> Any:
    single = isinstance(result, Tensor)
    results = [result] if single else list(result)
    excluded = {_core.value_key(value) for value in ctx._not_differentiable}
    tensors = [value for value in results if isinstance(value, Tensor)]
    found = [
        _result(cls, ctx, args, value, tensors) if _has_gradient(value, excluded) else value
        for value in results
    ]
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
    kept: list[Tensor] = []
    position = 0
    called_at = _core.declaring_location()
    for arg, share in zip(args, _of_arguments(cls, len(args), found, called_at), strict=True):
        if not isinstance(arg, Tensor):
            continue
        if share is not None and _may_flow(arg):
            kept.append(_fitting(cls, arg.type_, arg._where, share, called_at))
            positions.append(position)
        position += 1
    return kept


def _of_arguments(cls: Any, count: int, found: Any, called_at: int) -> list[Any]:
    """What ``backward`` returned for each of ``count`` arguments of the call at a location."""
    shares = list(found) if isinstance(found, tuple) else [found]
    while len(shares) > count and shares[-1] is None:
        shares.pop()
    if len(shares) != count:
        error = RuntimeError(
            f"{cls.__name__}.backward: {len(shares)} gradients for {count} arguments of forward. Return one for "
            "each, None for those that are no tensors."
        )
        raise end_in(error, cls.backward, None, called_at)
    return shares


def _fitting(cls: Any, arg: TensorType, where: str, share: Any, called_at: int) -> Tensor:
    """``share`` as the gradient of an argument of type ``arg``, summed over axes along which that broadcasts."""
    if isinstance(share, Tensor) and share.shape != arg.shape and _expands(arg.shape, share.shape):
        share = share.sum_to_size(arg.shape)
    if not isinstance(share, Tensor) or share.shape != arg.shape:
        found = share.type_ if isinstance(share, Tensor) else f"a {type(share).__name__}"
        error = RuntimeError(
            f"{cls.__name__}.backward: the gradient of {arg} ({where}) is {found}. Return one of its shape."
        )
        raise end_in(error, cls.backward, share, called_at)
    return share.to(arg.dtype)


def _expands(shape: Sequence[int], wide: Sequence[int]) -> bool:
    own = (1,) * (len(wide) - len(shape)) + tuple(shape)
    return len(own) == len(wide) and all(one in (1, other) for one, other in zip(own, wide))


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a ``backward`` whose result has no gradient: differentiating it again raises GradientError."""

    @functools.wraps(function)
    def wrapped(ctx: Any, *cotangents: Any) -> Any:
        found = function(ctx, *cotangents)
        return tree_map_only(Tensor, lambda value: apply("differentiated_once", value), found)

    return wrapped
