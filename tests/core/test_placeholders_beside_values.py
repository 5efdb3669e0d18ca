"""Programs that mix placeholders and values at random, and catch what is refused, never crash."""

from __future__ import annotations

import pytest

from tests.core.in_child import run

MIXED = """
import random, sys
import twofold as torch
import twofold.static as tf

def session_run(a, b, placeholder):
    with tf.Session() as session:
        return session.run(a, {placeholder: [1.0, 2.0, 3.0]})

def set_data(a, b, placeholder):
    a.data = b

def set_part(a, b, placeholder):
    a[0:2] = b[0:2]

STEPS = [
    lambda a, b, p: a + b,
    lambda a, b, p: torch.stack([a, b]).sum(0),
    lambda a, b, p: a.add_(b),
    set_part,
    lambda a, b, p: a * b.sum(),
    lambda a, b, p: a.item(),
    lambda a, b, p: (a * b).sum().backward(),
    lambda a, b, p: a.view(3),
    set_data,
    lambda a, b, p: torch.where(a > 0, a, b),
    lambda a, b, p: a.detach(),
    lambda a, b, p: torch.autograd.grad((a * b).sum(), [a])[0],
    lambda a, b, p: a.copy_(b),
    lambda a, b, p: a.numpy(),
    lambda a, b, p: torch.cat([a, b])[:3],
    session_run,
]
choices = random.Random(int(sys.argv[1]))
for _ in range(40):
    placeholder = tf.placeholder(tf.float32, [3])
    pool = [torch.ones(3, requires_grad=choices.random() < 0.5), torch.ones(3), placeholder]
    for _ in range(12):
        try:
            made = choices.choice(STEPS)(choices.choice(pool), choices.choice(pool), placeholder)
        except (RuntimeError, TypeError, ValueError):
            continue
        if isinstance(made, torch.Tensor):
            pool.append(made)
    for value in pool:
        try:
            value.detach().numpy()
        except RuntimeError:
            pass
print("done")
"""


@pytest.mark.parametrize("seed", range(8))
def test_what_cannot_be_is_refused(seed: int) -> None:
    assert run(MIXED, str(seed)).strip() == "done"
