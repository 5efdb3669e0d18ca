"""Operators that a program defines: what computes them, and their gradient, a ``torch.autograd.Function``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.autograd.function import Function, FunctionCtx
from twofold.frontend.gradients import no_grad
from twofold.library.schemas import Schema
from twofold.utils._pytree import tree_flatten, tree_unflatten

Tensor = _core.Tensor

KEYS = {
    "CPU": "kernel",
    "CompositeExplicitAutograd": "kernel",
    "CompositeImplicitAutograd": "composite",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "Meta": "fake",
}
"""Dispatch keys that are asked here, and what a function is for each; those of other devices are never asked."""
OTHER_KEYS = ("CUDA", "AutogradCUDA", "XPU", "AutogradXPU", "MPS", "AutogradMPS", "HPU", "XLA", "PrivateUse1")


class OpOverload:
    """One operator of a namespace: a schema, and the functions that compute it."""

    def __init__(self, namespace: str, schema: Schema) -> None:
        self.namespace, self._schema = namespace, schema
        self.__name__, self.__module__ = (
            f"{schema.name}.{schema.overload or 'default'}",
            f"twofold.ops.{namespace}",
        )
        self.functions: dict[str, Callable[..., Any]] = {}  # by what they are for, a value of KEYS
        self._formula: tuple[Callable[..., Any], Callable[..., Any] | None] | None = None
        self._gradient = _gradient_class(self)
        self._thread = threading.local()  # whether this thread runs the function that makes its gradient

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.name()}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._schema.name}.{self._schema.overload or 'default'}"

    def name(self) -> str:
        """The name with its namespace, ``mylib::f``."""
        overload = f".{self._schema.overload}" if self._schema.overload else ""
        return f"{self.namespace}::{self._schema.name}{overload}"

    @property
    def mutates(self) -> bool:
        """Whether it writes to arguments."""
        return any(one.is_mutated for one in self._schema.arguments)

    def set_gradient(self, backward: Any, setup_context: Any) -> None:
        """Set the functions that make its gradient."""
        if self.mutates:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self}: it writes to its arguments."
            )
        self._formula = (backward, setup_context)

    @property
    def has_gradient(self) -> bool:
        """Whether a gradient flows through it."""
        return self._formula is not None or not {"autograd", "composite"}.isdisjoint(self.functions)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        relevant = tree_flatten([args, kwargs])[0]
        if _core.has_torch_function(*relevant):
            return _core.call_torch_function(self, tuple(relevant), args, kwargs)
        values, keywords = self._schema.bound(args, kwargs)
        functions = self.functions
        above = functions.get("autograd")
        if above is not None and not getattr(self._thread, "is_below_autograd", False):
            self._thread.is_below_autograd = True
            try:
                return above(*values, **keywords)
            finally:
                self._thread.is_below_autograd = False
        if "kernel" not in functions and "composite" in functions:
            return functions["composite"](*values, **keywords)
        leaves, _ = tree_flatten(values)
        flows = [one for one in leaves if isinstance(one, Tensor) and (one.requires_grad or one._is_symbolic)]
        if not flows or not _core.grad_enabled() or self.mutates:
            with no_grad():
                return self._compute(values, keywords)
        call = _Call(self, values, keywords)
        results = self._gradient.apply(call, *leaves)
        return tree_unflatten(list(results), call.results)

    def _compute(self, values: Sequence[Any], keywords: dict[str, Any]) -> Any:
        kernel = self.functions.get("kernel")
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self.name()}' with arguments from the 'CPU' backend: no function is registered "
                "for it. Register one with impl() or register_kernel()."
            )
        result = kernel(*values, **keywords)
        self._check_aliases([*values, *keywords.values()], result)
        return result

    def _check_aliases(self, values: Sequence[Any], result: Any) -> None:
        """Raise if a result is an argument, or a view of one."""
        roots = {id(_root(one)) for one in tree_flatten(list(values))[0] if isinstance(one, Tensor)}
        found = [one for one in tree_flatten(result)[0] if isinstance(one, Tensor)]
        if any(id(_root(one)) in roots for one in found):
            raise RuntimeError(
                f"{self.name()}: The output of this custom operator (1) must not also be an input to this custom "
                "operator and (2) may not alias any inputs to this custom operator. Return a clone() of it."
            )


def _root(value: Tensor) -> Tensor:
    return value if value._base is None else value._base


class _Call:
    """One call: the structure of its arguments and results."""

    def __init__(self, op: OpOverload, values: Sequence[Any], keywords: dict[str, Any]) -> None:
        self.op, self.keywords = op, keywords
        self.values = tree_flatten(list(values))[1]
        self.results: Any = None


class _Context:
    """The context that ``backward`` gets, with ``needs_input_grad`` in the structure of the arguments."""

    def __init__(self, ctx: FunctionCtx, needs: Sequence[Any]) -> None:
        self.__dict__.update(_ctx=ctx, needs_input_grad=tuple(needs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def _gradient_class(op: OpOverload) -> Any:
    """The ``Function`` that calls of an operator are, of the call and the elements of its arguments."""

    def forward(ctx: Any, call: _Call, *leaves: Any) -> tuple[Any, ...]:
        values = tree_unflatten(list(leaves), call.values)
        output = op._compute(values, call.keywords)
        found, call.results = tree_flatten(output)
        ctx.call = call
        if op._formula is not None and op._formula[1] is not None:
            keywords = {"keyword_only_inputs": call.keywords} if call.keywords else {}
            op._formula[1](ctx=ctx, inputs=tuple(values), output=output, **keywords)
        return tuple(found)

    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        if op._formula is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        call = ctx.call
        needs = tree_unflatten(list(ctx.needs_input_grad[1:]), call.values)
        given = tree_unflatten(list(cotangents), call.results)
        given = given if isinstance(given, tuple) else (given,)
        found = op._formula[0](_Context(ctx, needs), *given)
        return (None, *_flat(op, needs, found if isinstance(found, tuple) else (found,)))

    name = f"GeneratedBackwardFor_{op.namespace}_{op._schema.name}_{op._schema.overload or 'default'}"
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def _flat(op: OpOverload, needs: Sequence[Any], found: Sequence[Any]) -> list[Any]:
    """Gradients of arguments as those of the elements of lists."""
    if len(found) != len(needs):
        raise RuntimeError(
            f"{op}: backward returned {len(found)} gradient(s) for {len(needs)} argument(s). Return one, or None, "
            "for each."
        )
    flat: list[Any] = []
    for need, share in zip(needs, found, strict=True):
        if not isinstance(need, (list, tuple)):
            flat.append(share)
            continue
        shares = [None] * len(need) if share is None else share
        if len(shares) != len(need):
            raise RuntimeError(
                f"{op}: backward returned {len(shares)} gradient(s) for a list of {len(need)}."
            )
        flat.extend(shares)
    return flat
