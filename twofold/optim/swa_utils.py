"""Averages of the weights that a training goes through."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from twofold import _core
from twofold.frontend.creation import check_device, tensor
from twofold.frontend.gradients import no_grad
from twofold.nn.module import Module
from twofold.nn.normalization import _BatchNorm
from twofold.optim.optimizer import Optimizer
from twofold.optim.scheduler import LRScheduler, per_group

Tensor = _core.Tensor


def _checked_decay(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return decay


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """An ``avg_fn`` of exponential moving averages: ``decay * average + (1 - decay) * parameter``.

    >>> import twofold as torch
    >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(torch.tensor(1.0), torch.tensor(2.0), 3).item()
    1.25
    """
    _checked_decay(decay)
    return lambda average, param, count: decay * average + (1 - decay) * param


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """An ``avg_fn`` of equal averages of all weights.

    >>> import twofold as torch
    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor(1.0), torch.tensor(2.0), 3).item()
    1.25
    """
    return lambda average, param, count: average + (param - average) / (count + 1)


def _of_lists(average: Callable[[Tensor, Tensor, Any], Tensor]) -> Callable[[Any, Any, Any], None]:
    def update(averages: Any, params: Any, count: Any) -> None:
        with no_grad():
            for one, param in zip(averages, params, strict=True):
                one.copy_(average(one, param, count))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """A ``multi_avg_fn`` of exponential moving averages, which changes a list of averages in place.

    >>> import twofold as torch
    >>> averages = [torch.tensor(1.0)]
    >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [torch.tensor(2.0)], 3)
    >>> averages
    [tensor(1.2500)]
    """
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """A ``multi_avg_fn`` of equal averages, which changes a list of averages in place.

    >>> import twofold as torch
    >>> averages = [torch.tensor(1.0)]
    >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(averages, [torch.tensor(2.0)], 3)
    >>> averages
    [tensor(1.2500)]
    """
    return _of_lists(get_swa_avg_fn())


def _by_dtype(averages: list[Tensor], params: list[Tensor]) -> Iterable[tuple[list[Tensor], list[Tensor]]]:
    """The averages of each dtype, and the parameters that belong to them."""
    groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
    for average, param in zip(averages, params, strict=True):
        own, given = groups.setdefault(average.dtype, ([], []))
        own.append(average)
        given.append(param)
    return groups.values()


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages of those that ``update_parameters`` was given.

    Source: Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, 2018; Polyak, Juditsky,
    Acceleration of Stochastic Approximation by Averaging, 1992.

    Args:
        model: What is copied.
        device: The CPU.
        avg_fn: The new average from the average, the parameter and the number of averages before; by default all
            count alike.
        multi_avg_fn: The same on lists of one dtype, changing the averages in place.
        use_buffers: Whether buffers are averaged, too; otherwise they are copied.

    >>> import twofold as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for weight in (1.0, 2.0, 6.0):
    ...     _ = model.weight.data.fill_(weight)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        check_device(device)
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of ``model`` into the averages; the first are taken as they are."""
        averages: list[Tensor] = list(self.module.parameters())
        params: list[Tensor] = list(model.parameters())
        buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))
        if self.use_buffers:
            averages += [own for own, _ in buffers]
            params += [given for _, given in buffers]
        own = [average.detach() for average in averages]
        given = [param.detach() for param in params]
        with no_grad():
            if int(self.n_averaged.item()) == 0:
                for average, param in zip(own, given, strict=True):
                    average.copy_(param)
            else:
                update = self.multi_avg_fn or _of_lists(self.avg_fn or get_swa_avg_fn())
                for averages_of_dtype, params_of_dtype in _by_dtype(own, given):
                    update(averages_of_dtype, params_of_dtype, self.n_averaged)
            if not self.use_buffers:
                for average, param in buffers:
                    average.copy_(param)
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the statistics of all batch normalisations of ``model`` anew, as means over the batches.

    Args:
        loader: Batches; of a tuple or list the first element.
        model: A model with batch normalisations.
        device: The CPU.

    >>> import twofold as torch
    >>> model = torch.nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [7.0]])], model)
    >>> model.running_mean
    tensor([4.])
    """
    check_device(device)
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    with no_grad():
        for batch in loader:
            model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """From the rates of the groups to ``swa_lr`` in ``anneal_epochs`` epochs, and then constant.

    Args:
        optimizer: The optimiser.
        swa_lr: The rate at the end, for all groups or for each.
        anneal_epochs: How long it takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: The last epoch, where a schedule is resumed.

    >>> import twofold as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     schedule.get_last_lr()[0]
    0.75
    0.5
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[float]:
        """The rate of each group for the next epoch."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
