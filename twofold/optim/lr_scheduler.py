"""Schedules of learning rates; recurrences as PyTorch's, so that a rate changed by hand is carried on."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from twofold.optim.cycles import CyclicLR as CyclicLR
from twofold.optim.cycles import OneCycleLR as OneCycleLR
from twofold.optim.optimizer import Optimizer
from twofold.optim.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from twofold.optim.scheduler import LRScheduler
from twofold.optim.scheduler import set_rate as _set_rate

_LRScheduler = LRScheduler


class _OfFunctions(LRScheduler):
    """Schedules by a function of the epoch for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        several = isinstance(lr_lambda, (list, tuple))
        if several and len(lr_lambda) != count:
            raise ValueError(
                f"Expected {count} lr_lambdas, but got {len(lr_lambda)}. Give one for each parameter group."
            )
        self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda) if several else [lr_lambda] * count
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of callable objects their attributes, of functions None."""
        kept = [
            None if isinstance(one, FunctionType) else dict(getattr(one, "__dict__", {}))
            for one in self.lr_lambdas
        ]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; functions stay those of this schedule."""
        given = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, given.pop("lr_lambdas", ()), strict=False):
            if attributes:
                function.__dict__.update(attributes)
        super().load_state_dict(given)


class LambdaLR(_OfFunctions):
    """The first rate times ``lr_lambda(epoch)``.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        return [
            base * factor(self.last_epoch)
            for factor, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_OfFunctions):
    """The rate times ``lr_lambda(epoch)`` at each step.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.5
    0.25
    0.125
    """

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        if self._is_initial:
            return self.rates()
        return [
            rate * factor(self.last_epoch) for factor, rate in zip(self.lr_lambdas, self.rates(), strict=True)
        ]


class StepLR(LRScheduler):
    """The rate times ``gamma`` every ``step_size`` epochs.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    1.0
    0.5
    0.5
    0.25
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self.rates()
        return [rate * self.gamma for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at each of the ``milestones``.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.5
    0.5
    0.25
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        if self.last_epoch not in self.milestones:
            return self.rates()
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times ``factor`` for the first ``total_iters`` epochs.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.5
    1.0
    1.0
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self.rates()]
        if self.last_epoch != self.total_iters:
            return self.rates()
        return [rate * (1.0 / self.factor) for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [
            base * (1.0 if self.last_epoch >= self.total_iters else self.factor) for base in self.base_lrs
        ]


class LinearLR(LRScheduler):
    """The rate times a factor from ``start_factor`` to ``end_factor`` in ``total_iters`` even steps.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.75
    1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self.rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self.rates()
        change = self.end_factor - self.start_factor
        factor = 1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)
        return [rate * factor for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        change = self.end_factor - self.start_factor
        factor = self.start_factor + change * min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` every epoch.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.5
    0.25
    0.125
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        return self.rates() if self._is_initial else [rate * self.gamma for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The first rate times ``(1 - epoch / total_iters) ** power``.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     round(schedule.get_last_lr()[0], 4)
    0.75
    0.5
    0.25
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self.rates()
        now, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (now / before) ** self.power for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the first rate to ``eta_min`` along half a cosine in ``T_max`` epochs.

    Source: Loshchilov, Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    ...     round(schedule.get_last_lr()[0], 4)
    0.5
    0.0
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        epoch, half, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self.rates()
        if (epoch - 1 - half) % (2 * half) == 0:
            rise = (1 - math.cos(math.pi / half)) / 2
            return [
                rate + (base - low) * rise for base, rate in zip(self.base_lrs, self.rates(), strict=True)
            ]
        factor = (1 + math.cos(math.pi * epoch / half)) / (1 + math.cos(math.pi * (epoch - 1) / half))
        return [factor * (rate - low) + low for rate in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after ``T_0`` epochs, then ``T_mult`` times as many, and so on.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     round(schedule.get_last_lr()[0], 4)
    0.5
    1.0
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group for the position in the current period."""
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one, or to a (fractional) ``epoch``."""
        self._step_count += 1
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.last_epoch = math.floor(epoch)
            self.T_i, self.T_cur = self.T_0, epoch
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self._set(self.get_lr())


def _check_schedules(name: str, schedulers: Sequence[Any], optimizer: Any, chained: str) -> None:
    """Raise for schedules that cannot be run together on ``optimizer``."""
    if not schedulers:
        raise ValueError(f"{name} expects at least one scheduler{chained}, but got no scheduler.")
    for index, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
            )
        if scheduler.optimizer is not (optimizer or schedulers[0].optimizer):
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {index} of another one."
            )


class _Schedules(LRScheduler):
    """A schedule that consists of others."""

    _schedulers: list[Any]

    def recursive_undo(self) -> None:
        """Take the first steps of all schedules back."""
        for scheduler in self._schedulers:
            scheduler.recursive_undo()

    def state_dict(self) -> dict[str, Any]:
        """The states of all schedules."""
        kept = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        return {**kept, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that ``state_dict`` gave."""
        for scheduler, kept in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(kept)
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})


class SequentialLR(_Schedules):
    """Several schedules one after the other, each from its milestone on.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> first = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=9)
    >>> then = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.1)
    >>> schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [first, then], milestones=[2])
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     round(schedule.get_last_lr()[0], 4)
    0.5
    1.0
    0.1
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        _check_schedules(type(self).__name__, schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more "
                "than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of "
                f"milestones to be equal to "
                f"{len(milestones)}. Give {max(len(schedulers) - 1, 0)}, where one ends and the next begins."
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.optimizer = optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        self.recursive_undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        self.last_epoch += 1
        position = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[position]
        if position > 0 and self._milestones[position - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Schedules):
    """Several schedules at the same time, each changing the rate that the one before it left.

    Args:
        schedulers: Schedules of one optimiser.
        optimizer: That optimiser; by default the one of the first schedule.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> halved = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = torch.optim.lr_scheduler.ChainedScheduler([halved, falling])
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.25
    0.25
    0.125
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        _check_schedules(type(self).__name__, schedulers, optimizer, " to be chained")
        self.optimizer = optimizer or schedulers[0].optimizer
        self._schedulers = list(schedulers)
        self._last_lr = self.rates()

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch in all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.rates()
