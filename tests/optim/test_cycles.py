"""CyclicLR, OneCycleLR, ChainedScheduler, SWALR and averages of weights against numbers of PyTorch 2.13."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

import twofold as torch
from twofold.optim import SGD, Adam
from twofold.optim.lr_scheduler import ChainedScheduler, ExponentialLR, LinearLR, ReduceLROnPlateau, StepLR
from twofold.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)

# name, settings, PyTorch's rates of two groups after steps 1, 4 and 9, and the momentum of the first
CASES: list[tuple[str, dict[str, Any], list[float]]] = [
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 4},
        [0.04, 0.04, 0.86666667, 0.0775, 0.0775, 0.825, 0.07, 0.07, 0.83333333],
    ),
    (
        "CyclicLR",
        {"base_lr": [0.01, 0.02], "max_lr": [0.1, 0.3], "step_size_up": 3, "mode": "triangular2"},
        [0.04, 0.11333333, 0.86666667, 0.07, 0.20666667, 0.83333333, 0.055, 0.16, 0.85],
    ),
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9},
        [0.037, 0.037, 0.87, 0.049366, 0.049366, 0.85626, 0.044867844, 0.044867844, 0.86125795],
    ),
    (
        "OneCycleLR",
        {"max_lr": 0.1, "total_steps": 13},
        [
            0.029516395,
            0.029516395,
            0.92342042,
            0.096437826,
            0.096437826,
            0.85356219,
            0.024503672,
            0.024503672,
            0.92549663,
        ],
    ),
    (
        "OneCycleLR",
        {
            "max_lr": [0.1, 0.2],
            "epochs": 3,
            "steps_per_epoch": 4,
            "anneal_strategy": "linear",
            "three_phase": True,
            "pct_start": 0.25,
        },
        [0.052, 0.104, 0.9, 0.004, 0.008, 0.95, 0.0011431429, 0.0022862857, 0.95],
    ),
    (
        "OneCycleLR",
        {
            "max_lr": 0.1,
            "total_steps": 12,
            "cycle_momentum": False,
            "div_factor": 5.0,
            "final_div_factor": 10.0,
        },
        [0.045815805, 0.045815805, 0.9, 0.093435245, 0.093435245, 0.9, 0.015080458, 0.015080458, 0.9],
    ),
    (
        "SWALR",
        {"swa_lr": 0.05, "anneal_epochs": 4},
        [0.09267767, 0.26338835, 0.9, 0.05, 0.05, 0.9, 0.05, 0.05, 0.9],
    ),
    (
        "SWALR",
        {"swa_lr": [0.05, 0.01], "anneal_epochs": 0, "anneal_strategy": "linear"},
        [0.05, 0.01, 0.9, 0.05, 0.01, 0.9, 0.05, 0.01, 0.9],
    ),
]


def optimizer(kind: Any = SGD) -> Any:
    groups = [
        {"params": [torch.zeros(1, requires_grad=True)]},
        {"params": [torch.zeros(1, requires_grad=True)], "lr": 0.3},
    ]
    return kind(groups, lr=0.1, **({"momentum": 0.9} if kind is SGD else {}))


def schedule(name: str, target: Any, settings: dict[str, Any]) -> Any:
    home = torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler
    return getattr(home, name)(target, **settings)


def run(target: Any, chosen: Any) -> list[float]:
    found = []
    for step in range(1, 10):
        target.step()
        chosen.step()
        group = target.param_groups[0]
        if step in (1, 4, 9):
            found += [*chosen.get_last_lr(), group["momentum"] if "momentum" in group else group["betas"][0]]
    return found


@pytest.mark.parametrize("name, settings, rates", CASES, ids=lambda one: str(one)[:40])
def test_rates_and_momenta(name: str, settings: dict[str, Any], rates: list[float]) -> None:
    for kind in (SGD, Adam):
        target = optimizer(kind)
        assert run(target, schedule(name, target, settings)) == pytest.approx(rates, rel=1e-6)


@pytest.mark.parametrize("name, settings, rates", CASES, ids=lambda one: str(one)[:40])
def test_states(name: str, settings: dict[str, Any], rates: list[float]) -> None:
    one, other = optimizer(), optimizer()
    first, second = schedule(name, one, settings), schedule(name, other, settings)
    for _ in range(3):
        one.step()
        first.step()
    file = io.BytesIO()
    torch.save([one.state_dict(), first.state_dict()], file)
    states = torch.load(io.BytesIO(file.getvalue()))
    other.load_state_dict(states[0])
    second.load_state_dict(states[1])
    for _ in range(3):
        one.step()
        other.step()
        first.step()
        second.step()
        assert first.get_last_lr() == second.get_last_lr()


def test_several_at_the_same_time() -> None:
    target = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    chain = ChainedScheduler([LinearLR(target, 0.5, total_iters=2), ExponentialLR(target, 0.5)])
    found = []
    for _ in range(4):
        target.step()
        chain.step()
        found += chain.get_last_lr()
    assert found == pytest.approx([0.375, 0.25, 0.125, 0.0625])
    other = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    again = ChainedScheduler([LinearLR(other, 0.5, total_iters=2), ExponentialLR(other, 0.5)])
    again.load_state_dict(chain.state_dict())
    assert again.get_last_lr() == chain.get_last_lr() and again._schedulers[0].last_epoch == 4
    for wrong, message in (
        ([], "at least one scheduler"),
        ([ReduceLROnPlateau(target)], "does not support `ReduceLROnPlateau`"),
        ([StepLR(target, 1), StepLR(other, 1)], "at index 1 of another one"),
    ):
        with pytest.raises(ValueError, match=message):
            ChainedScheduler(wrong)


def test_settings_that_make_no_sense() -> None:
    plain = Adam([torch.zeros(1, requires_grad=True)])
    without = torch.optim.Adagrad([torch.zeros(1, requires_grad=True)])
    make = torch.optim.lr_scheduler
    for call, message in (
        (lambda: make.CyclicLR(plain, 0.1, 1.0, mode="other"), "mode is invalid"),
        (lambda: make.CyclicLR(without, 0.1, 1.0), "must support momentum"),
        (lambda: make.CyclicLR(plain, [0.1, 0.2], 1.0), "base_lr must have the same length"),
        (lambda: make.OneCycleLR(plain, 0.1), "either total_steps OR"),
        (lambda: make.OneCycleLR(plain, 0.1, total_steps=0), "positive integer total_steps"),
        (
            lambda: make.OneCycleLR(plain, 0.1, epochs=1, steps_per_epoch=-1),
            "positive integer steps_per_epoch",
        ),
        (lambda: make.OneCycleLR(plain, 0.1, 9, pct_start=2.0), "between 0 and 1 pct_start"),
        (lambda: make.OneCycleLR(plain, 0.1, 9, anneal_strategy="other"), "one of 'cos' or 'linear'"),
        (lambda: SWALR(plain, 0.1, anneal_epochs=-1), "equal or greater than 0"),
        (lambda: SWALR(plain, 0.1, anneal_strategy="other"), "one of 'cos' or 'linear'"),
        (lambda: get_ema_avg_fn(1.5), "Invalid decay value 1.5"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    short = make.OneCycleLR(plain, 0.1, total_steps=3)
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        for _ in range(4):
            plain.step()
            short.step()


def test_a_schedule_before_the_first_step_of_its_optimiser_is_warned_of() -> None:
    target = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    chosen = StepLR(target, 1)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        chosen.step()

    class Own(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            pass

    for other in (
        target,
        Own([torch.zeros(1, requires_grad=True)], {"lr": 1.0}),
        torch.optim.SGD(target.param_groups[0]["params"]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chosen = StepLR(other, 1)
            torch.optim.lr_scheduler.SequentialLR(other, [StepLR(other, 1), StepLR(other, 2)], [1])
            other.step()
            chosen.step()


def test_averages_of_weights() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    equal, moving = (
        AveragedModel(model),
        AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5), use_buffers=True),
    )
    named = AveragedModel(model, multi_avg_fn=get_swa_multi_avg_fn())
    weights = []
    for _ in range(3):
        torch.nn.init.normal_(model[0].weight)
        model(torch.rand(4, 2))
        weights.append(model[0].weight.detach().clone())
        for one in (equal, moving, named):
            one.update_parameters(model)
    torch.testing.assert_close(equal.module[0].weight.detach(), (weights[0] + weights[1] + weights[2]) / 3)
    torch.testing.assert_close(named.module[0].weight, equal.module[0].weight)
    expected = (weights[0] / 4 + weights[1] / 4) + weights[2] / 2
    torch.testing.assert_close(moving.module[0].weight.detach(), expected)
    assert torch.equal(equal.module[1].running_mean, model[1].running_mean)
    assert not torch.equal(moving.module[1].running_mean, model[1].running_mean)
    assert equal.n_averaged.item() == 3 and "n_averaged" in equal.state_dict()
    x = torch.rand(4, 2)
    assert equal(x).shape == (4, 2)
    with pytest.raises(AssertionError, match="Only one of avg_fn"):
        AveragedModel(model, avg_fn=get_ema_avg_fn(), multi_avg_fn=get_ema_multi_avg_fn())


def test_statistics_are_computed_anew() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3)).eval()
    batches = [torch.randn(5, 3) + 4 for _ in range(3)]
    update_bn([(batch, 0) for batch in batches], model)
    means = torch.stack([batch.mean(0) for batch in batches]).mean(0)
    torch.testing.assert_close(model[0].running_mean, means)
    assert model[0].momentum == 0.1 and not model.training


def test_lists_of_averages_have_one_dtype() -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Parameter(torch.ones(2))
            self.second = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
            self.third = torch.nn.Parameter(torch.ones(3))

    seen = []

    def update(averages, params, count) -> None:
        seen.append([tuple((one.dtype, len(one)) for one in each) for each in (averages, params)])

    model = Mixed()
    averaged = AveragedModel(model, multi_avg_fn=update)
    averaged.update_parameters(model)
    averaged.update_parameters(model)
    single, double = ((torch.float32, 2), (torch.float32, 3)), ((torch.float64, 2),)
    assert seen == [[single, single], [double, double]]
