"""Steps of optimisers on lists of tensors: ``torch.optim.adam.adam`` and its relatives, made of their classes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold import _core
from twofold.optim.optimizer import Optimizer, Steps, by_parts, check_ways, gradients
from twofold.signatures import arguments, signature

Tensor = _core.Tensor
Update = Callable[[Steps, dict[str, Any]], None]

_WAYS = ("foreach", "fused", "differentiable", "capturable", "grad_scale", "found_inf")
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
"""Settings of classes that the functions take as two numbers."""


def step_on_lists(
    optimizer: type[Optimizer],
    parameters: str,
    states: Mapping[str, str],
    lists: str,
    settings: str,
    result: str,
    **fixed: Any,
) -> Callable[..., None]:
    """The function that takes the step of an optimiser on lists, named like the class in lower case.

    Args:
        optimizer: The class, whose ``_change`` is the rule.
        parameters: As in a signature; parameters and gradients come first.
        states: By the name of each part of the state the list that has it, which may depend on a setting:
            ``"grad_avgs if centered"``.
        lists: Those of a call for the example in the docstring, in which the first is ``[w]``, of the number 1.
        settings: Those of this call.
        result: What ``w`` is then.
        **fixed: Settings that are not parameters.

    >>> import inspect
    >>> from twofold.optim.sgd import sgd
    >>> list(inspect.signature(sgd).parameters)[:3]
    ['params', 'd_p_list', 'momentum_buffer_list']
    """
    public = signature(parameters)
    params, grads, *_ = public.parameters
    held = {name: text.partition(" if ") for name, text in states.items()}
    apart = {params, grads, *_WAYS, *(one for one, _, _ in held.values())}

    def function(*args: Any, **kwargs: Any) -> None:
        given = arguments(function.__name__, public, args, kwargs)
        own = {name: value for name, value in given.items() if name not in apart} | fixed
        for pair, (first, second) in _PAIRS.items():
            if first in own:
                own[pair] = own.pop(first), own.pop(second)
        kept = {name: given[one] for name, (one, _, setting) in held.items() if not setting or own[setting]}
        update_lists(
            optimizer._change,
            given[params],
            given[grads],
            {name: values for name, values in kept.items() if name not in optimizer.state_numbers},
            {name: values for name, values in kept.items() if name in optimizer.state_numbers},
            own,
            decay=optimizer.decays_weights,
            only_dense="" if optimizer.takes_sparse_gradients else optimizer.__name__,
            **{name: given[name] for name in _WAYS if name in given},
        )

    function.__signature__ = public  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = own = optimizer.__name__.lower()
    function.__module__ = module = sys._getframe(1).f_globals["__name__"]  # whose name it is
    function.__doc__ = _EXAMPLE.format(
        name=optimizer.__name__, own=own, module=module, lists=lists, settings=settings, result=result
    )
    return function


_EXAMPLE = """Take a step of ``{name}`` on lists of tensors, which are written to.

The lists are those of the state, ``state_steps`` is counted up; the settings are those of the class.

>>> import twofold as torch
>>> from {module} import {own}
>>> w = torch.ones(1)
>>> settings = dict({settings})
>>> {own}({lists}, **settings)
>>> round(w.item(), 4)
{result}
"""


def update_lists(
    update: Update,
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    states: Mapping[str, Any],
    numbers: Mapping[str, Sequence[Tensor]],
    settings: dict[str, Any],
    *,
    foreach: bool | None = None,
    fused: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    decay: bool = True,
    only_dense: str = "",
) -> None:
    """Take the step of an optimiser on lists, and write to their tensors.

    Args:
        update: The rule of the optimiser, of parameters with their gradients and states, and the settings.
        params: Parameters.
        grads: Their gradients.
        states: Lists of the tensors that the rule keeps, by their names in the state; None is replaced.
        numbers: Lists of tensors of one element that the rule keeps as numbers; ``"step"`` is counted up.
        settings: What a parameter group has.
        foreach: Without effect on values, as ``fused``.
        fused: Whether ``grad_scale`` and ``found_inf`` may be given.
        differentiable: Must be false.
        capturable: Must be false.
        grad_scale: What gradients are divided by, in place.
        found_inf: Whether there is a gradient that is not finite, as 0 or 1: then nothing changes.
        decay: Whether the rule has a weight decay.
        only_dense: The name of an optimiser that takes no sparse gradients.

    Raises:
        RuntimeError: Counts that are no tensors, a sparse gradient that the rule does not take, or parameters whose
            changes would be recorded for gradients.
    """
    check_ways(foreach and not fused, fused, differentiable, capturable)
    for name, values in numbers.items():
        if not all(isinstance(one, Tensor) for one in values):
            held = "state_steps" if name == "step" else f"{name}s"
            raise RuntimeError(f"API has changed, `{held}` argument must contain a list of singleton tensors")
    if (grad_scale is not None or found_inf is not None) and not fused:
        raise AssertionError("Expected grad_scale and found_inf to be None. Give them with fused=True only.")
    if _core.grad_enabled() and any(one.requires_grad for one in (*params, *grads)):
        raise RuntimeError(
            "a Tensor that requires grad is being used in an in-place operation: a step is not recorded for "
            "gradients. Call the function within torch.no_grad()."
        )
    if found_inf is not None and found_inf.item():
        return
    with _core.GradientMode(False):
        if grad_scale is not None:
            for one in grads:
                one.div_(grad_scale)
        dense = [_dense(one, settings.get("weight_decay"), only_dense) for one in grads]
        pairs = gradients({**settings, "params": params}, decay, given=dense)
        _update_in_place(update, pairs, states, numbers, settings)


def _dense(gradient: Any, weight_decay: float | None, only_dense: str) -> Tensor:
    if isinstance(gradient, Tensor):
        return gradient
    if only_dense:
        raise RuntimeError(
            f"{only_dense} does not support sparse gradients. Give dense ones, with to_dense()."
        )
    if weight_decay:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients. Leave it out.")
    made: Tensor = gradient.to_dense()
    return made


def _update_in_place(
    update: Update,
    pairs: Any,
    states: Mapping[str, Any],
    numbers: Mapping[str, Sequence[Tensor]],
    settings: dict[str, Any],
) -> None:
    """Run the rule, count steps, and write numbers and new tensors to the lists."""
    known = {id(one): one.item() for values in numbers.values() for one in values}
    made = []  # kept, as rules may tell states apart by their identities

    def steps() -> Any:
        for index, (param, gradient) in enumerate(pairs):
            state = {name: values[index] for name, values in states.items()}
            state.update({name: known[id(values[index])] for name, values in numbers.items()})
            if "step" in state:
                state["step"] += 1
            made.append(state)
            if param.dtype.is_complex:
                yield from by_parts(param, gradient, state)
            else:
                yield param, gradient, state
            for name, values in numbers.items():
                known[id(values[index])] = state[name]
            for name, values in states.items():
                if values[index] is None:
                    values[index] = state[name]

    _core.begin_update()
    update(steps(), settings)
    for values in numbers.values():
        for one in values:
            one.fill_(known[id(one)])
    _core.end_update()
