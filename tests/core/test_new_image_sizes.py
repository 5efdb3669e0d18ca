"""Images in ever new sizes, and ever other numbers of tensors, ask nothing of the rules and the planner."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.core.test_templates import tier, without_python
from twofold import nn
from twofold.ir.recording import Facts, Recording, Restart
from twofold.nn import functional

ROOT = Path(__file__).parents[2]


def normal(*shape: int) -> Any:
    return torch.tensor(numpy.random.default_rng(len(shape)).normal(size=shape).astype(numpy.float32))


def trained(net: nn.Module, given: Any) -> None:
    loss = net(given).square().mean()
    loss.backward()
    loss.item(), *[parameter.grad.sum().item() for parameter in net.parameters()]


def convolutions() -> None:
    """Layers that read windows where lines or planes lie, that collect them, and each channel on its own."""
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 24, 3, stride=2, padding=1),
        nn.BatchNorm2d(24),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 8, 1),
    )
    with tier("unfused"):
        for height, width in ((104, 124), (128, 108), (112, 132), (124, 100)):
            trained(net, normal(2, 3, height, width))
        with without_python():
            for height, width in ((116, 120), (100, 128), (132, 104), (108, 116), (120, 112)):
                trained(net, normal(2, 3, height, width))


def pyramids() -> None:
    """Images that are made larger, and reduced to a grid that divides them."""
    net = nn.Conv2d(3, 4, 1)

    def run(height: int, width: int) -> None:
        y = functional.interpolate(net(normal(2, 3, height, width)), scale_factor=2, mode="bilinear")
        loss = functional.adaptive_avg_pool2d(y, 4).square().mean()
        loss.backward()
        loss.item(), net.weight.grad.sum().item()  # type: ignore[union-attr]

    with tier("unfused"):
        for height, width in ((48, 36), (40, 66), (54, 38), (34, 52)):
            run(height, width)
        with without_python():
            for height, width in ((50, 44), (36, 58), (62, 46), (42, 64)):
                run(height, width)


def numbers_of_tensors() -> None:
    """A loop that stacks what each of its passes made, of ever other numbers of them."""

    def run(count: int) -> None:
        given = [normal(3, 8).requires_grad_() for _ in range(count)]
        loss = torch.stack(given, 1).square().mean() + torch.cat(given, 1).sin().sum()
        loss.backward()
        loss.item(), *[one.grad.sum().item() for one in given]

    with tier("unfused"):
        for count in range(17, 51):
            run(count)
        with without_python():
            for count in (53, 56, 51):
                run(count)


def lines_and_windows() -> None:
    """Sources whose numbers of elements vary."""

    def run(count: int) -> None:
        (
            torch.linspace(0.0, 1.0, count) * torch.hann_window(count) + torch.bartlett_window(count)
        ).sum().item()

    with tier("unfused"):
        for count in (33, 48, 57):
            run(count)
        with without_python():
            for count in (40, 61, 52):
                run(count)


@pytest.mark.parametrize("program", [convolutions, pyramids, numbers_of_tensors, lines_and_windows])
def test_new_sizes_ask_python_nothing(program: Callable[[], None]) -> None:
    # in a process of its own, as plans that other tests had made decide whether more are made
    name = program.__name__
    source = f"from tests.core.test_new_image_sizes import {name}; {name}()"
    subprocess.run([sys.executable, "-c", source], check=True, cwd=ROOT)


def test_that_a_size_is_divisible_is_a_guard_and_fixes_nothing() -> None:
    recording = Recording([32, 10], [0, 0], strict=True)
    n, m = recording.inputs
    assert n % 2 == 0
    assert recording.guards[-1][0] == "eq"
    assert recording.at(n // 2 * m, {0: 48, 1: 7}) == 168
    with pytest.raises(Restart) as raised:
        assert n // 2 == m + 6
    assert raised.value.facts != Facts()


@pytest.mark.parametrize(("elements", "calls"), [(24, 4), (5000, 1)])
def test_small_tensors_are_joined_in_groups_and_large_ones_at_once(elements: int, calls: int) -> None:
    given = [torch.ones(elements) for _ in range(28)]
    torch.stack(given).sum().item()
    before = torch.stats().recorded
    joined = torch.stack(given)
    assert torch.stats().recorded - before == calls
    assert joined.shape == (28, elements)
    assert joined.numpy().sum() == 28 * elements
