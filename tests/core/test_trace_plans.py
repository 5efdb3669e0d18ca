"""Traces in new sizes: planned for symbols as a whole, with the bits of running one operation at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.core.in_child import run
from tests.core.test_templates import mode, tier
from twofold import nn
from twofold.config import config

F = nn.functional


def normal(*shape: int) -> Any:
    return torch.from_numpy(
        numpy.random.default_rng(sum(shape)).normal(size=shape).astype(numpy.float32)
    ).requires_grad_(True)


def perceptron(n: int) -> list[Any]:
    x, w, v = normal(n, 13), normal(17, 13), normal(5, 17)
    loss = F.cross_entropy(F.linear(torch.relu(F.linear(x, w)), v), torch.arange(n) % 5)
    loss.backward()
    return [loss, x.grad, w.grad, v.grad]


def attention(n: int) -> list[Any]:
    q, k, v = normal(2, n, 8), normal(2, n + 3, 8), normal(2, n + 3, 8)
    result = torch.softmax(q @ k.transpose(1, 2) / 8**0.5, -1) @ v
    (F.layer_norm(result, (8,)) * q).sum().backward()
    return [result, q.grad, k.grad, v.grad]


def image(n: int) -> list[Any]:
    x, w = normal(2, 3, n + 1, n + 2), normal(4, 3, 3, 3)
    y = F.avg_pool2d(torch.tanh(F.conv2d(x, w, padding=1)), 2)
    y.square().mean().backward()
    return [y, x.grad, w.grad]


def pieces(n: int) -> list[Any]:
    x = normal(n + 1, 6)
    y = torch.cat([x[1:], x[:-1] * 2, torch.ones(n, 6)], 1).cumsum(0)
    z = torch.stack([y.sum(0), y.max(0).values]).reshape(-1)
    (z * torch.arange(z.shape[0])).sum().backward()
    return [z, x.grad]


def layers(n: int) -> list[Any]:
    """Long enough to be planned in bodies."""
    x, w = normal(n, 6), normal(6, 6)
    y = x
    for _ in range(30):
        y = torch.tanh(y @ w) + F.softmax(y.reshape(2, -1), 1).reshape(n, 6)
    y.square().sum().backward()
    return [y, x.grad, w.grad]


PROGRAMS: dict[str, Callable[[int], list[Any]]] = {
    f.__name__: f for f in (perceptron, attention, image, pieces, layers)
}


def bits(values: list[Any]) -> list[bytes]:
    return [value.detach().numpy().tobytes() for value in values]


@pytest.mark.parametrize("templates", ["second_size", "at_once"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_of_operations_run_one_by_one(name: str, templates: str) -> None:
    program = PROGRAMS[name]
    sizes = [4, 9, 16, 1, 2, 33, 4]
    with mode("off"), tier("unfused"):
        expected = [bits(program(n)) for n in sizes]
    with mode(templates), tier("fused"):
        for n, wanted in zip(sizes, expected):
            assert bits(program(n)) == wanted, n


def a_few_plans_serve_many_sizes() -> None:
    """A few plans serve a range of sizes; nothing is fused for one size alone."""
    config.background_compile = False
    for n in range(40, 100):
        perceptron(n)[0].item()
    found = torch.stats()
    assert 1 <= found.trace_plans <= 6
    assert found.fused == found.trace_plans
    assert found.trace_plan_uses >= 50


def test_a_few_plans_serve_many_sizes() -> None:
    run("from tests.core.test_trace_plans import *; a_few_plans_serve_many_sizes()")


def all_batch_sizes_are_a_few_classes() -> None:
    """No class for sizes that divide a width, or in which a thread's share of one of the products is another."""
    config.background_compile = False
    widths = 64, 128, 64, 10
    weights = [normal(wide, narrow) for narrow, wide in pairwise(widths)]
    for n in range(2, 129, 3):
        y = normal(n, 64)
        for weight in weights:
            y = torch.relu(F.linear(y, weight))
        F.cross_entropy(y, torch.arange(n) % 10).backward()
        for weight in weights:
            weight.grad.sum().item()
    assert 1 <= torch.stats().trace_plans <= 3


def test_all_batch_sizes_are_a_few_classes() -> None:
    run("from tests.core.test_trace_plans import *; all_batch_sizes_are_a_few_classes()")


def a_plan_that_fails_leaves_the_trace_to_be_fused_for_its_sizes() -> None:
    from twofold.compiler import symbolic_programs

    def refuse(*_: Any) -> Any:
        raise NotImplementedError

    config.background_compile = False
    symbolic_programs.planned = refuse
    found = [bits(attention(n)) for n in (5, 6, 7, 5, 6, 7, 5, 6, 7)]
    assert found[:3] == found[3:6] == found[6:]
    assert torch.stats().trace_plans == 0 and torch.stats().fused >= 1


def test_a_plan_that_fails_leaves_the_trace_to_be_fused_for_its_sizes() -> None:
    run(
        "from tests.core.test_trace_plans import *; a_plan_that_fails_leaves_the_trace_to_be_fused_for_its_sizes()"
    )


PLANNED_WHILE_KERNELS_BEGIN_TO_TELL = """
import threading
import twofold as torch
from twofold import _core
from twofold.compiler.requests import background

def step(n):
    x = torch.arange(float(n))
    assert ((x * 2 + 1) * x).sum().item() == sum((2 * k + 1) * k for k in range(n))

over = threading.Event()
background.submit((over.wait, lambda: None, lambda: "other work"))
step(3), step(4)  # in another size: a plan is asked for
_core.set_tier("fused")
step(4)
torch.autograd.set_detect_anomaly(True)
step(4)  # its program will be another one, of another family
over.set()
torch.wait_for_compiler()
for n in (4, 5, 40):
    step(n)
print("done")
"""


def test_a_plan_that_comes_after_its_executable_has_joined_another_family() -> None:
    assert "done" in run(PLANNED_WHILE_KERNELS_BEGIN_TO_TELL)
