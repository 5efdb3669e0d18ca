"""A long trace that is new runs while Python records what comes next; nobody sees what is not there yet."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.core.in_child import run
from twofold import _core, nn
from twofold.config import config

WIDTH, WORDS = 24, 40


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(config.threads)


class Chains(nn.Module):
    """Chains of cells of random lengths, so that no step is like another."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.own, self.before = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def cell(self, h: Any, word: int) -> Any:
        return torch.tanh(self.own(self.words(torch.tensor([word]))) + self.before(h))

    def loss(self, chance: random.Random, last: int = 1) -> Any:
        total: Any = 0.0
        for _k in range(40):
            h = torch.zeros(1, WIDTH)
            for _ in range(chance.randrange(3, 12)):
                h = self.cell(h, chance.randrange(WORDS))
            total = total + (h * h).sum()
        return total + self.cell(h, last).sum()


def trained(steps: int, look: Callable[[Any, Any], None] = lambda net, loss: None) -> list[Any]:
    """Losses and final weights of some steps; ``look`` is called behind each."""
    torch.manual_seed(0)
    chance = random.Random(0)
    net = Chains()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(steps):
        loss = net.loss(chance)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        look(net, loss)
        losses.append(loss)
    return [loss.item() for loss in losses] + [
        parameter.detach().numpy().copy() for parameter in net.parameters()
    ]


def assert_same(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        numpy.testing.assert_array_equal(a, b)


def test_a_run_behind_has_the_bits_of_one_that_is_waited_for() -> None:
    before = torch.stats().behind_traces
    behind = trained(6)
    assert torch.stats().behind_traces > before
    torch.set_num_threads(1)
    before = torch.stats().behind_traces
    assert_same(behind, trained(6))
    assert torch.stats().behind_traces == before
    with torch.no_batching():
        assert_same(behind, trained(6))


def test_values_may_be_read_at_any_time() -> None:
    expected = trained(5)
    seen: list[Any] = []

    def look(net: Any, loss: Any) -> None:
        seen.append(loss.item())  # while the updates go on
        seen.append(float((net.own.weight * 2).sum()))
        seen.append(net.words.weight.grad.sum().item())

    assert_same(trained(5, look), expected)
    assert seen[::3] == expected[:5]


def test_an_array_that_is_written_to_does_not_reach_into_a_run() -> None:
    data = torch.ones(1, WIDTH)
    results = []
    for wait in (False, True):
        torch.manual_seed(0)
        chance = random.Random(3)
        net = Chains()
        for _ in range(3):
            loss = net.loss(chance) + sum(((data + k) * net.own.weight[k]).sum() for k in range(WIDTH))
            loss.backward()
            _core.flush()
        if wait:
            loss.item()
        data.numpy()[:] = 7.0
        results.append(loss.item())
        data.numpy()[:] = 1.0
    assert results[0] == results[1]


def test_what_fails_is_told_at_the_next_look_with_its_line() -> None:
    torch.manual_seed(0)
    chance = random.Random(0)
    net = Chains()
    for _ in range(2):
        net.loss(chance).backward()
        _core.flush()
    before = torch.stats().behind_traces
    apart = torch.tanh(net.own.weight)
    bad = net.loss(chance, last=WORDS)
    with pytest.raises(IndexError, match=r"test_runs_behind\.py:\d+"):
        _core.flush()
        bad.item()
    assert torch.stats().behind_traces == before + 1
    with pytest.raises(RuntimeError, match="never computed"):
        bad.item()
    numpy.testing.assert_array_equal(apart.detach().numpy(), torch.tanh(net.own.weight).detach().numpy())


def test_what_fails_is_told_by_the_next_run() -> None:
    torch.manual_seed(0)
    chance = random.Random(0)
    net = Chains()
    for _ in range(2):
        net.loss(chance).backward()
        _core.flush()
    bad = net.loss(chance, last=WORDS)
    with pytest.raises(IndexError):
        _core.flush()
        (bad * 2).item()
    assert numpy.isfinite(net.loss(chance).item())


def test_threads_share_what_is_still_to_come() -> None:
    expected = trained(4)
    torch.manual_seed(0)
    chance = random.Random(0)
    net = Chains()
    loss = net.loss(chance)
    _core.flush()
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append((loss * 1).item())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected[0]] * 3


PROGRAM = """
import os, random, sys
import twofold as torch
from tests.core.test_runs_behind import Chains
torch.set_num_threads(2)
torch.manual_seed(0)
net, chance = Chains(), random.Random(0)
for _ in range(4):
    loss = net.loss(chance)
    loss.backward()
    torch._core.flush()
assert torch.stats().behind_traces > 0
"""


def test_the_process_may_end_during_a_run() -> None:
    assert run(PROGRAM + "print('end')").strip() == "end"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_has_what_was_still_to_come() -> None:
    program = (
        PROGRAM
        + """
child = os.fork()
value = loss.item()
more = net.loss(random.Random(5)).item()
if child == 0:
    print(value, more, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(value, more)
"""
    )
    child, parent = run(program).strip().splitlines()
    assert child == parent
