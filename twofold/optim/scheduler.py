"""The base of schedules of learning rates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.optim.optimizer import Optimizer

_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call `optimizer.step()` first: otherwise the "
    "first value of the schedule is never used."
)


def _copied(rate: Any) -> Any:
    """A rate, of a tensor a copy that keeps its value."""
    return rate.detach().clone() if isinstance(rate, _core.Tensor) else rate


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Set the learning rate of a group; a tensor that holds it is written in place."""
    if isinstance(group["lr"], _core.Tensor):
        group["lr"].fill_(float(rate))
    else:
        group["lr"] = rate


def per_group(name: str, optimizer: Optimizer, given: Any) -> list[Any]:
    """A setting for each group: one value for all, or a list with one for each."""
    count = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [_copied(given) for _ in range(count)]
    if len(given) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(given)} values, "
            f"param_groups has {count}."
        )
    return [_copied(one) for one in given]


class LRScheduler:
    """Base of schedules: ``get_lr`` gives the rates for ``last_epoch``; ``step`` goes on to the next.

    >>> import twofold as torch
    >>> class Halved(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = Halved(optimizer)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.5
    0.25
    0.125
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming "
                    f"scheduler with last_epoch >= 0"
                )
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch, or of that where a run resumes."""
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def recursive_undo(self) -> None:
        """Take the first step back, where another schedule says when this one starts."""
        self.last_epoch -= 1

    def rates(self) -> list[float]:
        """The rates that the groups have now; of tensors, copies."""
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """The rate of each group for ``last_epoch``."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to ``epoch``, and set the rates; warns before the optimiser's first step."""
        if self._step_count == 1 and not self.optimizer.has_stepped:
            warnings.warn(_TOO_EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None) -> None:
        """Set the rates of the next epoch, or of ``epoch``, for which there may be a closed form."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        self._set(closed() if epoch is not None and closed else self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = self.rates()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that ``state_dict`` gave."""
        self.__dict__.update(state_dict)
