"""Calls with more inputs than sixteen bits count."""

from __future__ import annotations

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
