"""The current computation graph: its version, what watches its operations, and the root of the last backward pass.

Expressions keep what they are computed from alive themselves; a graph only counts its renewals and, where inputs are
assigned after they were used, replays the operations that were called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from twofold import _core
from twofold.frontend.install import PUBLIC

Tensor = _core.Tensor
F = TypeVar("F", bound=Callable[..., Any])
_isfinite = PUBLIC["isfinite"]


class _State:
    """The state of the one graph that is current."""

    version = 0
    watcher: Watcher | None = None
    root: Any = None
    updates = 0
    """Trainer steps and assignments of parameters since the graph was renewed."""
    inputs: dict[int, Any] = {}
    """Tensors that depend on no other one, by their ids: ``backward`` forgets their gradients."""
    dependents: list[Any] = []
    """Builders and tables that hold something of the graph, which they forget when it is renewed."""


state = _State()


class Watcher:
    """Sees every operation of a graph: to compute it at once, to check it, to replay it with other inputs."""

    def __init__(self, immediate: bool = False, check: bool = False, replays: bool = False) -> None:
        self.immediate, self.check, self.replays = immediate, check, replays
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self.outdated = False
        self._inside = False

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation, and note it; what it calls itself belongs to it."""
        if self._inside:
            return function(*args, **kwargs)
        self._inside = True
        try:
            made = function(*args, **kwargs)
        finally:
            self._inside = False
        if self.replays:
            self.calls.append((function, args, kwargs, made))
        if self.immediate or self.check:
            for result in _expressions(made):
                self._computed(function, result)
        return made

    def _computed(self, function: Any, result: Any) -> None:
        value = result._tensor.detach()
        if self.check and not bool(_isfinite(value).all()):
            raise RuntimeError(f"{function.__name__}: a value is infinite or not a number")
        value.numpy()

    def refresh(self) -> None:
        """Call all operations again where an input was assigned since they were called."""
        if not self.outdated:
            return
        self.outdated = False
        self._inside = True
        try:
            for function, args, kwargs, made in self.calls:
                for old, new in zip(_expressions(made), _expressions(function(*args, **kwargs))):
                    state.inputs.pop(id(old._tensor), None)
                    old._tensor, old._batch = new._tensor, new._batch
        finally:
            self._inside = False


def _expressions(made: Any) -> Any:
    return made if isinstance(made, (list, tuple)) else (made,)


def operation(function: F) -> F:
    """A function of expressions whose calls the watcher of the current graph sees, if it has one."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        watcher = state.watcher
        if watcher is None:
            return function(*args, **kwargs)
        return watcher.run(function, args, kwargs)

    return call  # type: ignore[return-value]


def replayable() -> Watcher:
    """The watcher of the current graph, which from now on replays operations."""
    if state.watcher is None:
        state.watcher = Watcher()
    state.watcher.replays = True
    return state.watcher


def refresh(recalculate: bool = False) -> None:
    """Bring values up to date with the inputs assigned, and if ``recalculate`` with the parameters too.

    Raises RuntimeError where the operations to compute again were not noted.
    """
    watcher = state.watcher
    if watcher is not None and watcher.replays:
        watcher.outdated = watcher.outdated or recalculate
        watcher.refresh()
    elif recalculate and state.updates:
        raise RuntimeError(
            "recalculate=True after parameters changed needs a graph with assignable inputs (vecInput, matInput, "
            "scalarInput): build the expression again after renew_cg()."
        )


class ComputationGraph:
    """The current graph as an object; there is one at a time."""

    def renew(
        self, immediate_compute: bool = False, check_validity: bool = False, autobatching: bool | None = None
    ) -> ComputationGraph:
        """The same as ``renew_cg``."""
        return renew_cg(immediate_compute, check_validity, autobatching)

    def version(self) -> int:
        """How often the graph was renewed."""
        return state.version

    def checkpoint(self) -> None:
        """Remember which operations were noted so far."""
        self._mark = len(state.watcher.calls) if state.watcher else 0

    def revert(self) -> None:
        """Forget the operations noted since the checkpoint; expressions that are kept stay valid."""
        if state.watcher:
            del state.watcher.calls[getattr(self, "_mark", 0) :]


_graph = ComputationGraph()


def renew_cg(
    immediate_compute: bool = False, check_validity: bool = False, autobatching: bool | None = None
) -> ComputationGraph:
    """Begin a new graph.

    Args:
        immediate_compute: Compute every operation when it is called, not when a value is looked at.
        check_validity: Also raise RuntimeError at the operation whose value is infinite or not a number.
        autobatching: Has no effect: what runs as one call does not depend on it, and neither does any result.

    >>> import twofold.dynet as dy
    >>> dy.renew_cg().version() == dy.cg_version()
    True
    """
    state.version += 1
    state.root = None
    state.updates = 0
    state.inputs = {}
    for dependent in state.dependents:
        dependent._forget()
    state.dependents = []
    watched = immediate_compute or check_validity
    state.watcher = Watcher(immediate_compute, check_validity) if watched else None
    return _graph


def cg() -> ComputationGraph:
    """The current graph."""
    return _graph


def cg_version() -> int:
    """How often the graph was renewed."""
    return state.version


def cg_checkpoint() -> None:
    """Remember the current end of the graph."""
    _graph.checkpoint()


def cg_revert() -> None:
    """Return to the end that was remembered last."""
    _graph.revert()
