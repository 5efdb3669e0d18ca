"""Steps of a loop that read one another run by one program each, with the bits that their operations have alone."""

from __future__ import annotations

import re
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
from tests.core.in_child import run
from tests.core.test_batches import at_once, weight
from twofold import optim
from twofold.nn import functional as F

WIDTH = 6


class Loop:
    """A recurrent network, a step at a time, with what does not depend on the step before inside the loop."""

    def __init__(self) -> None:
        self.given, self.own = weight(1, 4 * WIDTH, WIDTH), weight(2, 4 * WIDTH, WIDTH)
        self.bias, self.head = weight(3, 4 * WIDTH), weight(4, 3, WIDTH)

    def parameters(self) -> list[Any]:
        return [self.given, self.own, self.bias, self.head]

    def __call__(self, xs: list[Any], head_inside: bool, peeks: bool) -> Any:
        h = c = torch.zeros(WIDTH)
        states, heads = [], []
        for x in xs:
            i, f, u, o = (F.linear(x, self.given, self.bias * 2) + F.linear(h, self.own)).chunk(4)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
            if head_inside:
                heads.append(torch.log_softmax(F.linear(torch.tanh(h), self.head), 0)[1])
        if peeks:
            assert states[0].shape == (WIDTH,)
            states[len(xs) // 2].sum().item()
        return torch.stack(heads).sum() if head_inside else F.linear(torch.stack(states), self.head).sum()


def outcome(lengths: list[int], head_inside: bool, peeks: bool, both_ways: bool) -> list[bytes]:
    net, back = Loop(), Loop()
    back.own = weight(9, 4 * WIDTH, WIDTH)
    found = []
    for number, length in enumerate(lengths):
        values = numpy.random.default_rng(number).normal(size=(length, WIDTH)).astype("float32")
        table = torch.tensor(values, requires_grad=True)
        xs = list(table)
        loss = net(xs, head_inside, peeks)
        if both_ways:
            loss = loss + back(xs[::-1], head_inside, False)
        loss.backward()
        found += [loss.detach().numpy().tobytes(), table.grad.numpy().tobytes()]
    parameters = net.parameters() + (back.parameters() if both_ways else [])
    return found + [parameter.grad.numpy().tobytes() for parameter in parameters]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(2, 12), min_size=1, max_size=4), st.booleans(), st.booleans(), st.booleans())
def test_steps_have_the_same_bits_alone_and_as_one(
    lengths: list[int], head_inside: bool, peeks: bool, both_ways: bool
) -> None:
    with torch.no_batching():
        alone = outcome(lengths, head_inside, peeks, both_ways)
    with at_once():
        # the programs of single steps come after those of several
        found = [outcome(lengths, head_inside, peeks, both_ways) for _ in range(3)]
    assert found == [alone] * 3


def test_a_step_is_one_launch_and_what_does_not_depend_on_the_last_is_batched() -> None:
    program = """
import logging, sys
from tests.core.test_batches_of_loops import at_once, outcome
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
with at_once():
    for length in (14, 15, 16, 20, 30):
        outcome([length], True, False, False)
"""
    text = run(program, TWOFOLD_LOG="batches")
    launches = [int(found) for found in re.findall(r"in (\d+) launches", text)]
    assert len(launches) == 5
    # forward and backward; the products of all inputs stand together, and so do the heads of all states
    assert launches[4] - launches[3] <= 2.5 * 10


@pytest.mark.parametrize(
    ("lengths", "least"),
    [
        pytest.param([12 + (7 * step) % 17 for step in range(16)], 8, id="never the same"),
        pytest.param(
            [*numpy.random.default_rng(0).integers(12, 40, 60).tolist()], 30, id="the same now and then"
        ),
    ],
)
def test_an_update_behind_graphs_that_change_is_predicted(lengths: list[int], least: int) -> None:
    def trained() -> tuple[list[bytes], int]:
        net, predicted = Loop(), 0
        optimizer = optim.Adam(net.parameters(), 0.01)
        for step, length in enumerate(lengths):
            values = numpy.random.default_rng(step).normal(size=(length, WIDTH)).astype("float32")
            optimizer.zero_grad()
            net(list(torch.tensor(values)), False, False).backward()
            before = torch.stats().predicted
            optimizer.step()
            predicted += torch.stats().predicted - before
        return [parameter.detach().numpy().tobytes() for parameter in net.parameters()], predicted

    found, predicted = trained()
    assert predicted >= least
    with torch.no_batching():
        assert trained()[0] == found
