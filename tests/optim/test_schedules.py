"""Learning rates over epochs against their closed forms."""

from __future__ import annotations

import math
from typing import Any

import pytest

import twofold as torch
from twofold.optim import SGD, lr_scheduler


def optimizer(rate: float = 0.1) -> SGD:
    return SGD([torch.nn.Parameter(torch.ones(1))], lr=rate)


def rates(make: Any, epochs: int = 10) -> list[float]:
    owner = optimizer()
    schedule = make(owner)
    found = []
    for _ in range(epochs):
        assert schedule.get_last_lr() == [owner.param_groups[0]["lr"]]
        found.append(owner.param_groups[0]["lr"])
        owner.step()
        schedule.step()
    return found


CASES: list[tuple[Any, Any]] = [
    (lambda o: lr_scheduler.StepLR(o, 3), lambda t: 0.1 ** (t // 3)),
    (lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.5), lambda t: 0.5 ** ((t >= 2) + (t >= 5))),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda t: 0.9**t),
    (lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (1 + t)), lambda t: 1 / (1 + t)),
    (lambda o: lr_scheduler.MultiplicativeLR(o, lambda t: 0.8), lambda t: 0.8**t),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 6), lambda t: (1 + math.cos(math.pi * t / 6)) / 2),
    (lambda o: lr_scheduler.LinearLR(o, 0.25, total_iters=4), lambda t: 0.25 + 0.75 * min(t, 4) / 4),
    (lambda o: lr_scheduler.ConstantLR(o, 0.5, 3), lambda t: 0.5 if t < 3 else 1),
    (lambda o: lr_scheduler.PolynomialLR(o, 5, 2.0), lambda t: max(1 - t / 5, 0) ** 2),
    (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2),
        lambda t: (1 + math.cos(math.pi * (t / 3 if t < 3 else (t - 3) / 6 if t < 9 else (t - 9) / 12))) / 2,
    ),
    (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.25, total_iters=4), lr_scheduler.ExponentialLR(o, 0.5)], [4]
        ),
        lambda t: 0.25 + 0.75 * t / 4 if t < 4 else 0.5 ** (t - 4),
    ),
]


@pytest.mark.parametrize("position", range(len(CASES)))
def test_rates(position: int) -> None:
    make, exact = CASES[position]
    assert rates(make) == pytest.approx([0.1 * exact(t) for t in range(10)], abs=1e-15)


def test_plateau() -> None:
    owner = optimizer()
    schedule = lr_scheduler.ReduceLROnPlateau(owner, factor=0.5, patience=1, cooldown=1, min_lr=0.03)
    found = []
    for metric in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9):
        schedule.step(torch.tensor(metric))
        found.append(owner.param_groups[0]["lr"])
    assert found == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.03, 0.03])
    with pytest.raises(ValueError, match="Factor should be < 1.0."):
        lr_scheduler.ReduceLROnPlateau(owner, factor=1.5)


def test_state_round_trip() -> None:
    owner = optimizer()
    schedule = lr_scheduler.StepLR(owner, 2)
    for _ in range(3):
        schedule.step()
    resumed_owner = optimizer()
    resumed_owner.load_state_dict(owner.state_dict())
    resumed = lr_scheduler.StepLR(resumed_owner, 2)
    resumed.load_state_dict(schedule.state_dict())
    for each in (schedule, resumed):
        each.step()
    assert schedule.get_last_lr() == resumed.get_last_lr() == pytest.approx([0.001])


def test_an_optimiser_is_needed() -> None:
    with pytest.raises(TypeError, match="Module is not an Optimizer"):
        lr_scheduler.StepLR(torch.nn.Module(), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("StepLR", {"step_size": 2}),
        ("ExponentialLR", {"gamma": 0.8}),
        ("LinearLR", {"start_factor": 0.2, "end_factor": 0.9, "total_iters": 6}),
        ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
        ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
        ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
        ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
    ],
)
def test_resuming_at_an_epoch_does_not_decay_once_more(name: str, options: dict[str, Any]) -> None:
    owner = SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    schedule = getattr(lr_scheduler, name)(owner, **options)

    def steps(one: Any, count: int) -> list[float]:
        found = []
        for _ in range(count):
            one.optimizer.step()
            one.step()
            found += one.get_last_lr()
        return found

    steps(schedule, 3)
    resumed_owner = SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    resumed_owner.load_state_dict(owner.state_dict())
    resumed = getattr(lr_scheduler, name)(resumed_owner, **options, last_epoch=2)
    assert resumed.get_last_lr() == schedule.get_last_lr()
    assert steps(resumed, 6) == steps(schedule, 6)


@pytest.mark.parametrize(
    ("make", "exact"),
    [
        (lambda o: lr_scheduler.ConstantLR(o, 0.25, 3), lambda t: 0.25 if t < 3 else 1),
        (lambda o: lr_scheduler.LinearLR(o, 0.2, 0.9, 4), lambda t: 0.2 + 0.7 * min(t, 4) / 4),
        (lambda o: lr_scheduler.PolynomialLR(o, 6, 2.0), lambda t: max(1 - t / 6, 0) ** 2),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5), lambda t: 0.5**t),
    ],
)
def test_a_schedule_that_starts_later_or_goes_to_an_epoch_has_the_rates_of_its_formula(
    make: Any, exact: Any
) -> None:
    owner = optimizer()
    # what the schedule before leaves, half of the rate, has no effect on it
    schedule = lr_scheduler.SequentialLR(owner, [lr_scheduler.ConstantLR(owner, 0.5, 99), make(owner)], [2])
    found = []
    for _ in range(7):
        found.append(owner.param_groups[0]["lr"])
        owner.step()
        schedule.step()
    assert found == pytest.approx([0.05, 0.05, *[0.1 * exact(t) for t in range(5)]])
    owner = optimizer()
    alone = make(owner)
    for epoch in (0, 3, 1, 9):
        owner.step()
        alone.step(epoch)
        assert owner.param_groups[0]["lr"] == pytest.approx(0.1 * exact(epoch))


def test_a_factor_for_each_epoch_is_applied_wherever_the_schedule_starts() -> None:
    owner = optimizer()
    parts = [
        lr_scheduler.ConstantLR(owner, 0.5, 99),
        lr_scheduler.MultiplicativeLR(owner, lambda t: 1 / (t + 2)),
    ]
    schedule = lr_scheduler.SequentialLR(owner, parts, [1])
    found = []
    for _ in range(3):
        owner.step()
        schedule.step()
        found.append(owner.param_groups[0]["lr"])
    assert found == pytest.approx([0.05 / 2, 0.05 / 2 / 3, 0.05 / 2 / 3 / 4])


def test_schedules_of_schedules() -> None:
    owner = optimizer()
    inner = lr_scheduler.SequentialLR(
        owner, [lr_scheduler.ConstantLR(owner, 0.5, 99), lr_scheduler.ExponentialLR(owner, 0.5)], [2]
    )
    whole = lr_scheduler.SequentialLR(owner, [inner, lr_scheduler.StepLR(owner, 9)], [4])
    kinds = (whole, lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(owner, 9)]))
    assert all(isinstance(one, lr_scheduler.LRScheduler) for one in kinds)
    assert isinstance(lr_scheduler.ReduceLROnPlateau(owner), lr_scheduler.LRScheduler)
    with pytest.raises(ValueError, match="same optimizer"):
        lr_scheduler.SequentialLR(optimizer(), [lr_scheduler.StepLR(owner, 1)], [])


def test_a_schedule_may_end_before_it_starts() -> None:
    owner = optimizer()
    parts = [lr_scheduler.ConstantLR(owner, 0.5, 99), lr_scheduler.ExponentialLR(owner, 0.5)]
    schedule = lr_scheduler.SequentialLR(owner, parts, [0])
    assert schedule.get_last_lr() == pytest.approx([0.1])


class _Power:
    def __init__(self, base):
        self.base = base

    def __call__(self, epoch):
        return self.base**epoch


@pytest.mark.parametrize("name", ["LambdaLR", "MultiplicativeLR"])
def test_the_state_of_functions_as_in_files_of_torch(name):
    def schedule(base):
        groups = [{"params": [torch.zeros(1, requires_grad=True)]} for _ in range(2)]
        optimizer = torch.optim.SGD(groups, lr=1.0)
        return getattr(torch.optim.lr_scheduler, name)(optimizer, [lambda epoch: 0.5, _Power(base)])

    state = schedule(0.9).state_dict()
    assert state["lr_lambdas"] == [None, {"base": 0.9}]
    other = schedule(0.1)
    other.load_state_dict(state)
    assert other.lr_lambdas[1].base == 0.9 and other.lr_lambdas[0](3) == 0.5
    other.load_state_dict({key: value for key, value in state.items() if key != "lr_lambdas"})
    assert other.lr_lambdas[1].base == 0.9


def test_schedules_by_factors_are_no_schedules_by_functions_of_the_first_rate():
    schedulers = torch.optim.lr_scheduler
    assert not issubclass(schedulers.MultiplicativeLR, schedulers.LambdaLR)


@pytest.mark.parametrize("milestone", [1, 3])
def test_a_sequence_begins_with_the_first_epoch_of_warm_restarts(milestone):
    """The rates are PyTorch 2.13's: those of the schedule alone up to the milestone."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedulers = torch.optim.lr_scheduler
    first = schedulers.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    then = schedulers.ConstantLR(optimizer, factor=0.25, total_iters=9)
    schedule = schedulers.SequentialLR(optimizer, [first, then], milestones=[milestone])
    found = []
    for _ in range(5):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    expected = [1.0, 0.5, 1.0][:milestone]
    assert found == pytest.approx(expected + [0.25] * (5 - milestone))


_OF_TENSORS: list[tuple[Any, list[float]]] = [  # what PyTorch 2.13 gives for the same program
    (
        lambda o: lr_scheduler.CyclicLR(o, torch.tensor(1.0), torch.tensor(2.0), 4, cycle_momentum=False),
        [1.25, 1.5, 1.75],
    ),
    (lambda o: lr_scheduler.OneCycleLR(o, 2.0, 10), [1.04, 2.0, 1.90097]),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0), [1.0, 0.1, 0.01]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 5), [0.90451, 0.65451, 0.34549]),
    (lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 1)]), [0.1, 0.01, 0.001]),
    (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o, 0.5, 9), lr_scheduler.LinearLR(o, 0.5)], [2]
        ),
        [0.5, 0.5, 0.6],
    ),
    (lambda o: torch.optim.swa_utils.SWALR(o, 0.1, 4), [0.8682, 0.55, 0.2318]),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3), [0.75, 0.25, 1.0]),
]


@pytest.mark.parametrize("position", range(len(_OF_TENSORS)))
def test_a_rate_that_is_a_tensor_is_written_in_place(position: int) -> None:
    make, expected = _OF_TENSORS[position]
    rate, metric = torch.tensor(1.0), (1.0,) if position == 2 else ()
    owner = SGD([torch.nn.Parameter(torch.ones(1))], lr=rate, momentum=0.9)
    schedule = make(owner)
    found, last = [], []
    for _ in expected:
        owner.step()
        schedule.step(*metric)
        found.append(round(rate.item(), 5))
        last += schedule.get_last_lr()
    assert found == expected and owner.param_groups[0]["lr"] is rate
    assert [round(one.item(), 5) for one in last] == expected


def test_plateau_with_groups_that_came_later() -> None:
    owner = optimizer(1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(owner, patience=0, min_lr=0.5)
    listed = lr_scheduler.ReduceLROnPlateau(owner, patience=0, min_lr=[0.5])
    owner.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 8.0})
    schedule.step(1.0)
    schedule.step(1.0)
    assert schedule.get_last_lr() == pytest.approx([0.5, 0.8])
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="`min_lrs`"):
        listed.step(1.0)
