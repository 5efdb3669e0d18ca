"""``GradScaler`` on the CPU: the values are those that PyTorch 2.13 gives for the same program."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.amp.grad_scaler import OptState


def parts(**options: Any) -> tuple[Any, Any, Any]:
    weight = torch.ones(2, requires_grad=True)
    return weight, torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler("cpu", **options)


def test_steps_that_overflow_are_left_out_and_the_scale_follows() -> None:
    weight, optimizer, scaler = parts(init_scale=4.0, growth_interval=2)
    seen = []
    for factor in (1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * torch.tensor([factor, 1.0])).sum()).backward()
        assert scaler.step(optimizer) is None
        scaler.update()
        seen.append((*weight.tolist(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
    assert seen == [
        (0.5, 0.5, 4.0, 1),
        (-0.5, 0.0, 8.0, 0),
        (-0.5, 0.0, 4.0, 0),
        (-1.0, -0.5, 4.0, 1),
        (-1.0, -0.5, 2.0, 0),
        (-1.5, -1.0, 2.0, 1),
        (-2.0, -1.5, 4.0, 0),
        (-2.5, -2.0, 4.0, 1),
    ]


def test_gradients_are_those_without_a_scaler() -> None:
    weight, optimizer, scaler = parts(init_scale=1024.0)
    scaler.scale((weight**3).sum()).backward()
    assert weight.grad.tolist() == [3072.0, 3072.0]
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [3.0, 3.0]
    weight.grad.clamp_(max=2.0)  # what unscale_ is for
    scaler.step(optimizer)
    assert weight.tolist() == [0.0, 0.0]
    scaler.update()


def test_half_gradients_do_not_underflow() -> None:
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    found = []
    for scaler in (
        torch.amp.GradScaler("cpu", enabled=False),
        torch.amp.GradScaler("cpu", init_scale=2.0**15),
    ):
        optimizer.zero_grad()
        loss = (weight.half() * 1e-4 * 1e-4).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        found.append(weight.grad.item())
    assert found[0] == 0.0
    assert found[1] == pytest.approx(1e-8, rel=1e-2)


def test_several_optimizers_share_a_scale() -> None:
    first, second = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizers = [torch.optim.SGD([one], lr=1.0) for one in (first, second)]
    scaler = torch.GradScaler("cpu", init_scale=2.0)
    scaler.scale((first + second * float("inf")).sum()).backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert (first.item(), second.item(), scaler.get_scale()) == (0.0, 1.0, 1.0)


def test_containers_are_scaled_through() -> None:
    scaler = torch.cpu.amp.GradScaler(16.0)
    found = scaler.scale([torch.ones(1), (torch.ones(2),)])
    assert isinstance(found, list) and isinstance(found[1], tuple)
    assert found[0].tolist() == [16.0] and found[1][0].tolist() == [16.0, 16.0]
    assert [one.item() for one in scaler.scale(iter([torch.ones(1)]))] == [16.0]
    with pytest.raises(ValueError, match="must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_the_scale_stays_in_float32() -> None:
    weight, optimizer, scaler = parts(init_scale=2.0**127, growth_interval=1)
    scaler.scale(weight[0]).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127
    for given in (0.1, torch.tensor(0.1)):
        scaler.update(given)
        assert scaler.get_scale() == torch.tensor(0.1).item()


def test_states() -> None:
    weight, optimizer, scaler = parts(
        init_scale=8.0, growth_interval=3, growth_factor=4.0, backoff_factor=0.25
    )
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0,
        "growth_factor": 4.0,
        "backoff_factor": 0.25,
        "growth_interval": 3,
        "_growth_tracker": 1,
    }
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state == pickle.loads(pickle.dumps(scaler)).state_dict()
    other.set_growth_factor(3.0)
    other.set_backoff_factor(0.5)
    other.set_growth_interval(7)
    assert (other.get_growth_factor(), other.get_backoff_factor(), other.get_growth_interval()) == (
        3.0,
        0.5,
        7,
    )
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


MISTAKES: dict[str, tuple[Callable[[Any, Any, Any], Any], type[Exception]]] = {
    "Attempted step but _scale is None": (lambda w, o, s: s.step(o), AssertionError),
    "Attempted update but _scale is None": (lambda w, o, s: s.update(), AssertionError),
    "Attempted unscale_ but _scale is None": (lambda w, o, s: s.unscale_(o), AssertionError),
    "growth factor must be > 1": (lambda w, o, s: torch.GradScaler("cpu", growth_factor=1.0), AssertionError),
    "backoff factor must be < 1": (lambda w, o, s: torch.GradScaler("cpu", backoff_factor=1.0), AssertionError),
    "Closure use is not": (lambda w, o, s: (s.scale(w), s.step(o, closure=print)), RuntimeError),
    "already been called on this": (lambda w, o, s: (s.scale(w), s.unscale_(o), s.unscale_(o)), RuntimeError),
    "called after step": (lambda w, o, s: (_stepped(w, o, s), s.unscale_(o)), RuntimeError),
    "step.. has already been": (lambda w, o, s: (_stepped(w, o, s), s.step(o)), RuntimeError),
    "No inf checks were recorded for": (lambda w, o, s: (s.scale(w), s.step(o)), AssertionError),
    "No inf checks were recorded prior": (lambda w, o, s: (s.scale(w), s.update()), AssertionError),
    "new_scale should be a float": (lambda w, o, s: (s.scale(w), s.update(w)), AssertionError),
}  # fmt: skip


def _stepped(weight: Any, optimizer: Any, scaler: Any) -> None:
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes(message: str) -> None:
    call, error = MISTAKES[message]
    with pytest.raises(error, match=message):
        call(*parts())


def test_half_gradients_are_refused() -> None:
    weight = torch.ones(1, dtype=torch.float16, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.step(optimizer)


def test_disabled() -> None:
    weight, optimizer, scaler = parts(enabled=False, growth_factor=0.5)
    assert scaler.scale(weight) is weight
    weight.sum().backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert (weight.tolist(), scaler.get_scale(), scaler.state_dict()) == ([0.5, 0.5], 1.0, {})
    scaler.load_state_dict({})
    assert not scaler.is_enabled()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.amp.GradScaler().is_enabled()


def test_names() -> None:
    assert torch.GradScaler is torch.amp.GradScaler
    assert [state.name for state in OptState] == ["READY", "UNSCALED", "STEPPED"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_without_axes_are_scaled_in_float32(dtype: Any) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
    scaled = scaler.scale(torch.tensor(1.5, dtype=dtype))
    assert scaled.dtype is torch.float32 and scaled.item() == 1.5 * 2**20
    assert scaler.scale(torch.ones(2, dtype=dtype)).dtype is dtype
