"""Results of a ``Function`` whose ``backward`` the backward pass calls, once, with the cotangents of all results.

The results depend on a hub, and the hub on the inputs. Hooks on the results keep their cotangents; that of the hub,
which the pass reaches next, calls ``backward``; and hooks on the inputs replace zero cotangents by its results.
As in PyTorch, hooks of a program on results that have no cotangent are called with None before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from twofold import _core
from twofold.dtypes import float32
from twofold.ops.base import apply

Tensor = _core.Tensor
Shares = Callable[[dict[int, Tensor]], Sequence[Tensor | None]]


class CalledBackward:
    """The gradient of one call of a function, made before the call, which may write to its inputs.

    ``shares`` is given the cotangents of the results that a pass reaches, by number, and returns those of ``inputs``,
    which are tensors that require grad.
    """

    def __init__(self, name: str, inputs: Sequence[Tensor], shares: Shares) -> None:
        self._name, self._shares = name, shares
        self._cotangents: dict[int, Tensor] = {}
        self._found: list[Tensor | None] = []
        self._results: dict[int, weakref.ref[Tensor]] = {}
        taps = [self._link(one) for one in inputs]
        for k, tap in enumerate(taps):
            tap.register_hook(partial(self._share, k))
        self._hub: Tensor | None = self._link(apply("zeros", attrs=((), float32)), *taps)
        self._hub.register_hook(self._call)

    def _link(self, value: Tensor, *others: Tensor) -> Tensor:
        return apply("user_link", value, *others, attrs=(self._name,))

    def result(self, k: int, value: Tensor) -> Tensor:
        """Result ``k``: ``value`` with the gradient; while ``shares`` runs, for the gradient of that gradient."""
        assert self._hub is not None
        inner = self._link(value, self._hub)
        inner.register_hook(partial(self._keep, k))
        return self._link(inner)

    def close(self, results: Mapping[int, Tensor]) -> None:
        """All results were made: now only their graph holds the hub, whose hook holds this object."""
        self._hub = None
        self._results = {k: weakref.ref(result) for k, result in results.items()}

    def _keep(self, k: int, cotangent: Tensor | None) -> None:
        if cotangent is None:
            return
        known = self._cotangents.get(k)
        self._cotangents[k] = cotangent if known is None else known + cotangent

    def _call(self, zero: Tensor | None, hub: Tensor | None = None) -> Tensor:
        cotangents, self._cotangents = self._cotangents, {}
        self._tell_the_rest(cotangents)
        if zero is None:
            zero = apply("zeros", attrs=((), float32))
        self._hub = _core.at_hooked_position(zero) if hub is None else hub
        try:
            self._found = list(self._shares(cotangents))
        finally:
            self._hub = None
        return zero

    def _tell_the_rest(self, cotangents: dict[int, Tensor]) -> None:
        for k, known in self._results.items():
            result = known()
            for hook in () if k in cotangents or result is None else hooks_of(result):
                found = hook(cotangents.get(k))
                if found is not None:
                    cotangents[k] = found

    def _share(self, k: int, zero: Tensor) -> Any:
        found, self._found[k] = self._found[k], None
        return NotImplemented if found is None else found  # which says that there is no cotangent


def hooks_of(value: Tensor) -> list[Any]:
    """The hooks of a value, which may remove themselves while they are called."""
    return list(value._gradient_hooks(None) or ())


def after_hooks(value: Tensor, cotangent: Tensor) -> Tensor | None:
    """What the hooks of a recorded value make of its cotangent, in a pass that Python makes; None for no cotangent."""
    for hook in hooks_of(value):
        function = getattr(hook, "func", hook)
        if getattr(function, "__func__", None) is CalledBackward._call:
            found = function(cotangent, value)
        else:
            found = hook(cotangent)
        if found is NotImplemented:
            return None
        cotangent = cotangent if found is None else found
    return cotangent
