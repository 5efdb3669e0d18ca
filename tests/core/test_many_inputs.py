"""Calls with more inputs than sixteen bits count, and views by more integers than most operations have inputs."""

from __future__ import annotations

import pytest

import twofold as torch
from tests.core.in_child import run

PROGRAM = """
import twofold as torch
a = torch.tensor([1.0, 2.0], requires_grad=True)
for count in (65535, 65536, 70000):
    joined = torch.cat([a] * count)
    assert joined.shape == (2 * count,)
    assert joined[-2:].tolist() == [1.0, 2.0] and joined.sum().item() == 3.0 * count
"""


def test_more_than_65535_inputs() -> None:
    run(PROGRAM, timeout=600)


@pytest.mark.parametrize("axes", [15, 16, 17, 40])
def test_a_view_by_an_index_of_many_axes_is_read_again(axes: int) -> None:
    x = torch.zeros([1] * axes)
    whole, one = x[(slice(0, 1),) * axes], x[(0,) * (axes - 1)]
    x.add_(1)
    assert whole.sum().item() == one.sum().item() == 1
    one.mul_(3)
    assert x.sum().item() == whole.sum().item() == 3
