"""Schedules that raise and lower the rate, and the momentum against it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from twofold.optim.optimizer import Optimizer
from twofold.optim.scheduler import LRScheduler, per_group, set_rate


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Set what plays the part of momentum: the first of ``betas``, or ``momentum``."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _start_momenta(optimizer: Optimizer, base: list[Any], top: list[Any], last_epoch: int) -> None:
    """Give every group the limits of its momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    if last_epoch == -1:
        for low, high, group in zip(base, top, optimizer.param_groups, strict=True):
            _set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low


class CyclicLR(LRScheduler):
    """From ``base_lr`` up to ``max_lr`` and down again, over and over; the momentum goes the other way.

    Source: Smith, Cyclical Learning Rates for Training Neural Networks, 2017.

    Args:
        optimizer: The optimiser.
        base_lr: Lowest rate, for all groups or for each.
        max_lr: Highest rate, for all groups or for each.
        step_size_up: Steps upwards.
        step_size_down: Steps downwards; by default as many.
        mode: "triangular", "triangular2" (half the height in each cycle) or "exp_range" (``gamma ** step``).
        gamma: Base of "exp_range".
        scale_fn: The height, a function of the cycle or the step, in place of ``mode``.
        scale_mode: Whether ``scale_fn`` is of the "cycle" or of the "iterations".
        cycle_momentum: Whether the momentum, or the first beta, moves too.
        base_momentum: Lowest momentum.
        max_momentum: Highest momentum.
        last_epoch: The last step, where a schedule is resumed.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0], round(optimizer.param_groups[0]["momentum"], 3)
    (0.5, 0.85)
    (1.0, 0.8)
    (0.5, 0.85)
    (0.0, 0.9)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        rates = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(rates, optimizer.param_groups, strict=True):
                set_rate(group, rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            _start_momenta(optimizer, self.base_momentums, self.max_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = rates

    def scale_fn(self, x: float) -> float:
        """The height of cycle or step ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else 1.0

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``; sets the momentum, too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        part = 1.0 + self.last_epoch / self.total_size - cycle
        rising = part <= self.step_ratio
        height = part / self.step_ratio if rising else (part - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for low, high, group in limits:
                _set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, and of a function of the user's its attributes, if it is an object."""
        state = super().state_dict()
        custom = state["_scale_fn_custom"]
        state["_scale_fn_custom"] = dict(custom.__dict__) if getattr(custom, "__dict__", None) else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that ``state_dict`` gave."""
        given = dict(state_dict)
        attributes = given.pop("_scale_fn_custom", None)
        super().load_state_dict(given)
        if attributes and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(LRScheduler):
    """One rise to ``max_lr`` and one fall far below the start, in ``total_steps`` steps, with the momentum against it.

    Source: Smith, Topin, Super-Convergence: Very Fast Training Using Large Learning Rates, 2018.

    Args:
        optimizer: The optimiser.
        max_lr: Highest rate, for all groups or for each.
        total_steps: Steps of the whole; or ``epochs`` times ``steps_per_epoch``.
        epochs: Epochs of the whole.
        steps_per_epoch: Steps in each.
        pct_start: The part that rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: Whether the momentum, or the first beta, moves too.
        base_momentum: Lowest momentum, for all groups or for each.
        max_momentum: Highest momentum, for all groups or for each.
        div_factor: ``max_lr`` over the first rate.
        final_div_factor: The first rate over the last.
        three_phase: Whether the fall ends first at the first rate, as long as the rise, and then goes to the last.
        last_epoch: The last step, where a schedule is resumed.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5, pct_start=0.4, div_factor=2.0)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     round(schedule.get_last_lr()[0], 4), round(optimizer.param_groups[0]["momentum"], 3)
    (1.0, 0.85)
    (0.75, 0.875)
    (0.25, 0.925)
    (0.0001, 0.95)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(float(pct_start * self.total_steps), self.total_steps, three_phase)
        highest = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            low = per_group("base_momentum", optimizer, base_momentum)
            high = per_group("max_momentum", optimizer, max_momentum)
            _start_momenta(optimizer, low, high, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``; sets the momentum, too.

        Raises ValueError after the last step.
        """
        step, start = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}. "
                "Give as many total_steps as the training has."
            )
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                limits = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, self._between(*limits, part))
        return rates


def _total_steps(total: int | None, epochs: int | None, steps: int | None) -> int:
    if total is not None:
        if not isinstance(total, int) or total <= 0:
            raise ValueError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or steps is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * steps


def _phases(rise: float, total: int, three: bool) -> list[dict[str, Any]]:
    """Where each part ends, and between which settings of a group it goes; named as in PyTorch's states."""

    def phase(
        end: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str
    ) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": start_lr,
            "end_lr": end_lr,
            "start_momentum": start_momentum,
            "end_momentum": end_momentum,
        }

    up = phase(rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        return [up, phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [
        up,
        phase(2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]
