"""Steps of optimisers on lists of tensors: what ``torch.optim.adam.adam`` and its relatives share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold import _core
from twofold.optim.optimizer import Steps, check_ways, gradients

Tensor = _core.Tensor
Update = Callable[[Steps, dict[str, Any]], None]


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
