"""Computing the inside of a function again for its gradient, in place of keeping it in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import GraphError
from twofold.frontend.creation import tensor
from twofold.frontend.options import check_device
from twofold.runtime.calls import call_branch
from twofold.utils._pytree import tree_flatten, tree_unflatten

Tensor = _core.Tensor

__all__ = [
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "set_device_states",
]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, whose gradient computes what is inside again and keeps only the arguments.

    ``function`` is declared as a closed graph; random samples inside are the same both times. One that branches on
    values is run as plain Python, and then everything is kept. It must not change tensors from outside in place.

    Args:
        use_reentrant: Without effect: of PyTorch's two ways of computing again there is one here.
        preserve_rng_state: Without effect: samples are repeated in any case.
        determinism_check: Without effect: both times the same closed graph is computed. "default" or "none".
        debug: Without effect: it would describe a difference between both times.

    Source: Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(lambda x: (x.exp() * x).sum(), x).backward()
    >>> x.grad
    tensor([ 5.4366, 22.1672])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check is {determinism_check!r}. Use 'default' or 'none'.")
    if not _core.grad_enabled():
        return function(*args, **kwargs)
    leaves, spec = tree_flatten((args, kwargs))
    positions = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    forms: list[Any] = []

    def body(*values: Tensor) -> Sequence[tuple[Any, str]]:
        given = list(leaves)
        for position, value in zip(positions, values, strict=True):
            given[position] = value
        positional, named = tree_unflatten(given, spec)
        results, form = tree_flatten(function(*positional, **named))
        forms.append((results, form))
        return [(value, f"result {k}") for k, value in enumerate(results) if isinstance(value, Tensor)]

    try:
        found = call_branch("checkpoint", tensor(0), [body], ["the function"], [leaves[k] for k in positions])
    except GraphError:
        return function(*args, **kwargs)
    results, form = forms[-1]
    computed = iter(found)
    return tree_unflatten([next(computed) if isinstance(value, Tensor) else value for value in results], form)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """The functions (or modules of a ``Sequential``) one after another, in ``segments`` parts under ``checkpoint``.

    The last part is run as it is. ``use_reentrant`` and ``preserve_rng_state`` as in ``checkpoint``.

    Raises ValueError for fewer than one segment.
    """
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if segments < 1:
        raise ValueError(f"checkpoint_sequential: segments is {segments}. Use at least 1.")
    size = max(len(parts) // segments, 1)
    last = size * (segments - 1)
    for first in range(0, min(last, len(parts)), size):
        part = _chain(parts[first : first + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _chain(parts[last:])(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The graphics cards that hold tensors among ``args``, and the states of their generators: none.

    >>> import twofold as torch
    >>> torch.utils.checkpoint.get_device_states(torch.ones(2))
    ([], [])
    """
    return [], []


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Set the states of generators on graphics cards; RuntimeError if there are any to set."""
    if devices or states:
        check_device(device_type or "cuda")


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with tensors that are leaves of their own, which require grad where those of the call do.

    >>> import twofold as torch
    >>> x = torch.ones(1, requires_grad=True) * 2
    >>> (y, number) = torch.utils.checkpoint.detach_variable((x, 3))
    >>> y.is_leaf, y.requires_grad, number
    (True, True, 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"detach_variable: inputs of type {type(inputs).__name__}. Give a tuple of arguments."
        )
    return tuple(
        one.detach().requires_grad_(one.requires_grad) if isinstance(one, Tensor) else one for one in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no tensor among the arguments requires grad, so that no gradient will come.

    >>> import twofold as torch
    >>> torch.utils.checkpoint.check_backward_validity([torch.ones(1, requires_grad=True), 3])
    """
    if not any(one.requires_grad for one in inputs if isinstance(one, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def _chain(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run
