"""Random programs with several backward passes: gradients and refusals are PyTorch's, in every round of a loop."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

import twofold

sys.path.insert(0, str(Path(__file__).parent))

from bridge import torch

# no products with numbers, which PyTorch saves: a second pass through them goes on here, see docs/differences.md
UNARY: list[Any] = [
    lambda x: x.exp(),
    lambda x: x.tanh(),
    lambda x: -x,
    lambda x: x.sin(),
    lambda x: x + 1,
    lambda x: x.sum(),
    lambda x: x.mean(),
    lambda x: x.relu(),
    lambda x: x.clone(),
    lambda x: x * x,
    lambda x: x.reshape(-1),
    lambda x: x.cos(),
]
BINARY: list[Any] = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y]


def run_pass(library: Any, choose: random.Random, values: list[Any], leaves: list[Any]) -> list[Any]:
    """One backward pass of some kind; what it found, or that it was refused."""
    root, other = values[choose.randrange(len(values))], values[choose.randrange(len(values))]
    retain, create = choose.choice([None, None, True, False]), choose.random() < 0.1
    kind, options = choose.choice(["backward", "grad", "inputs", "many"]), {}
    targets = [values[choose.randrange(len(values))] for _ in range(choose.randint(1, 2))]
    if retain is not None:
        options["retain_graph"] = retain
    if create:
        options["create_graph"] = True
    try:
        if kind == "backward":
            root.sum().backward(**options)
        elif kind == "inputs":
            root.sum().backward(inputs=leaves[:2], **options)
        elif kind == "many":
            library.autograd.backward([root.sum(), other.sum()], **options)
        else:
            found = library.autograd.grad(root.sum(), targets, allow_unused=True, **options)
            values.extend(one for one in found if one is not None and one.requires_grad)
            return [kind, [None if one is None else one.tolist() for one in found]]
    except RuntimeError:
        for leaf in leaves:  # PyTorch's may have got a part
            leaf.grad = None
        return [kind, "refused"]
    return [kind, "done"]


def run_program(library: Any, seed: int, rounds: int) -> list[Any]:
    """All that a random program shows, run in a loop with the same leaves."""
    leaves = [library.tensor([0.5, 1.5], requires_grad=True) for _ in range(3)]
    seen: list[Any] = []
    for _ in range(rounds):
        choose, values = random.Random(seed), list(leaves)
        for _ in range(choose.randint(4, 14)):
            kind, i = choose.random(), choose.randrange(len(values))
            if kind < 0.4:
                values.append(choose.choice(UNARY)(values[i]))
            elif kind < 0.6:
                values.append(choose.choice(BINARY)(values[i], values[choose.randrange(len(values))]))
            elif kind < 0.7:
                seen.append(["read", values[i].detach().tolist()])
            else:
                seen.append(run_pass(library, choose, values, leaves))
        seen.append(["leaves", [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]])
    return seen


def alike(want: Any, got: Any) -> bool:
    """Equal but for the last digits."""
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(alike, want, got))
    if not isinstance(want, float):
        return want == got
    return isinstance(got, float) and (
        got == want or abs(got - want) <= 1e-4 * (1 + abs(want)) or got != got != want
    )


@pytest.mark.parametrize("seed", range(200))
def test_passes_find_and_refuse_what_pytorchs_do(seed: int) -> None:
    for rounds in (1, 3, 5):
        want, got = run_program(torch, seed, rounds), run_program(twofold, seed, rounds)
        for one, other in zip(want, got, strict=True):
            assert alike(one, other), (rounds, one, other)
