"""Large values that are cheap are computed again for the backward pass, not kept: the same bits in less memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.core.test_in_place_results import most_bytes
from tests.core.test_templates import tier
from twofold import _core, nn
from twofold.compiler.recompute import is_cheap
from twofold.ir.text import parse_graph

F = nn.functional
MEGABYTE = 1 << 20
LAYERS, WIDTH = 24, 256


def layers(rows: slice) -> tuple[Callable[[], Any], list[Any]]:
    """A step of products and activations on these rows of 2,048, and their weights."""
    random = numpy.random.default_rng(0)
    weights = [
        torch.from_numpy(random.normal(size=(WIDTH, WIDTH)).astype(numpy.float32) / 16).requires_grad_(True)
        for _ in range(LAYERS)
    ]
    given = random.normal(size=(2048, WIDTH)).astype(numpy.float32)[rows]

    def step() -> Any:
        x = value = torch.from_numpy(given).requires_grad_(True)
        for weight in weights:
            value = F.silu(value @ weight)
        value.square().sum().backward()
        _core.flush()
        return x.grad

    return step, weights


def recomputed() -> int:
    """How many entries the trace that ran last computes twice."""
    entries, steps = _core.describe_executable(_core.last_executable())[1::2]
    return len(steps) - len(entries)


@pytest.mark.parametrize("name", ["unfused", "fused"])
def test_activations_are_computed_again(name: str) -> None:
    step, weights = layers(slice(None))
    with tier(name):
        step()
        for weight in weights:
            weight.grad = None
        # 2 MiB for each product, but none for each activation; and the gradients
        assert most_bytes(step) < (2 * LAYERS + 24) * MEGABYTE
    assert recomputed() >= LAYERS - 2


@pytest.mark.parametrize("name", ["unfused", "fused"])
def test_rows_have_the_bits_that_they_have_where_everything_is_kept(name: str) -> None:
    with tier(name):
        whole = layers(slice(None))[0]().numpy()
        assert recomputed()
        halves = [layers(rows)[0]().numpy() for rows in (slice(0, 1024), slice(1024, 2048))]
        assert not recomputed()
    assert whole.tobytes() == b"".join([half.tobytes() for half in halves])


def test_values_that_live_on_are_kept() -> None:
    x = torch.ones(1 << 19, requires_grad=True)

    def chain() -> list[Any]:
        values = [(x * (k + 1.0)).sigmoid() for k in range(48)]
        sum((value * value).sum() for value in values).backward()
        return values

    with tier("unfused"):
        living = chain()
        _core.flush()
        assert len(living) == 48
        assert not recomputed()


def test_products_are_kept_and_loops_are_not() -> None:
    of = "%0 : float32[64,64]"
    for text, expected in (
        (f"graph({of}) {{\n %1 = exp(%0) : float32[64,64]\n return %1\n}}", True),
        (f"graph({of}) {{\n %1 = matmul(%0, %0) : float32[64,64]\n return %1\n}}", False),
    ):
        assert is_cheap(parse_graph(text)) is expected
