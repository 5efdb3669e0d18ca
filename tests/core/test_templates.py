"""Calls in new sizes: planned for symbols once, evaluated in the core from then on, with the bits of any other way."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import _core
from twofold.frontend import install

PYTHON = (
    "expand",
    "expand_gradients",
    "compile_op_instance",
    "traits_of",
    "template_of",
    "template_gradients",
    "template_program",
    "plan_trace",
)


@contextmanager
def without_python() -> Iterator[None]:
    """Every question of the core to the rules and the planner is an error."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("Python is asked")

    for name in PYTHON:
        _core.set_hook(name, refuse)
    try:
        yield
    finally:
        for name in PYTHON:
            _core.set_hook(name, install._HOOKS[name])


@contextmanager
def mode(name: str) -> Iterator[None]:
    _core.set_templates(name)
    try:
        yield
    finally:
        _core.set_templates("second_size")


@contextmanager
def tier(name: str) -> Iterator[None]:
    _core.flush()
    _core.set_tier(name)
    try:
        yield
        _core.flush()
    finally:
        _core.set_tier("auto")


def step(n: int, width: int) -> list[Any]:
    """Values and gradients of a small program of ``n`` rows."""
    generator = numpy.random.default_rng(n)
    x = torch.tensor(generator.normal(size=(n, width)).astype(numpy.float32))
    w = torch.tensor(generator.normal(size=(width, 30)).astype(numpy.float32), requires_grad=True)
    b = torch.zeros(30, requires_grad=True)
    h = torch.tanh(x @ w + b)
    y = torch.cat([h, h[:, :7]], 1)
    loss = (torch.nn.functional.log_softmax(y, 1).mean() + (y * y).sum(0).max()) / y[1:].std()
    loss.backward()
    return [value.detach().numpy().tobytes() for value in (loss, w.grad, b.grad, y)]


def third_size() -> None:
    with tier("unfused"):
        for n in (33, 40, 47):
            step(n, 21)
        with without_python():
            for n in (36, 52, 45, 39):
                step(n, 21)


def rows(n: int) -> None:
    """Enough calls to run in batches, some of which only move elements."""
    x = torch.tensor(numpy.ones((30, n), numpy.float32))
    w = torch.ones(n, 3, requires_grad=True)
    torch.stack([torch.tanh(x[k].reshape(1, n) @ w)[0] for k in range(30)]).sum().backward()
    w.grad.sum().item()  # type: ignore[union-attr]


def third_size_in_batches() -> None:
    _core.set_batching("at_once")
    for n in (33, 40, 47):
        rows(n)
    with without_python():
        for n in (36, 52):
            rows(n)
    assert torch.stats().batched_traces > 3


def flattened(n: int) -> None:
    """Leading axes are joined and split again, as around the layers of a network."""
    x = torch.ones(n, 20, 32, requires_grad=True)
    w = torch.ones(32, 24, requires_grad=True)
    y = torch.tanh(x.reshape(n * 20, 32) @ w).reshape(n, 20, 24) * 2
    loss = (y.reshape(n * 20, 24) @ w.T).mean()
    loss.backward()
    loss.item(), w.grad.sum().item()  # type: ignore[union-attr]


def third_size_of_joined_axes() -> None:
    with tier("unfused"):
        for n in (33, 40, 47):
            flattened(n)
        with without_python():
            for n in (36, 52):
                flattened(n)


def rearranged(n: int) -> None:
    """Groups of channels, rolls, windows of an image and pairs of nodes."""
    x = torch.ones(2, 8, 4 * n, 4 * n, requires_grad=True)
    normed = torch.nn.functional.group_norm(x, 2) + torch.nn.functional.group_norm(x, 4)
    windows = torch.roll(normed, (1, -2), (2, 3)).view(2, 8, n, 4, n, 4).permute(0, 2, 4, 1, 3, 5)
    nodes = torch.ones(n, 16, requires_grad=True)
    pairs = nodes.repeat(1, n).view(n * n, -1)
    loss = windows.reshape(-1, 8, 16).mean() + pairs.view(n, n, 16).sum(1).mean()
    loss.backward()
    loss.item(), x.grad.sum().item(), nodes.grad.sum().item()  # type: ignore[union-attr]


def third_size_rearranged() -> None:
    with tier("unfused"):
        for n in (13, 10, 17):
            rearranged(n)
        with without_python():
            for n in (16, 12):
                rearranged(n)


THIRD_SIZES = [third_size, third_size_in_batches, third_size_of_joined_axes, third_size_rearranged]


@pytest.mark.parametrize("program", THIRD_SIZES)
def test_a_third_size_asks_python_nothing(program: Callable[[], None]) -> None:
    # in a process of its own, as plans that other tests had made decide whether more are made
    folder, name = str(Path(__file__).parent), program.__name__
    source = f"import sys; sys.path.insert(0, {folder!r}); from test_templates import {name}; {name}()"
    subprocess.run([sys.executable, "-c", source], check=True)


PROGRAM = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from test_templates import step
from twofold import _core
_core.set_templates({mode!r})
digest = hashlib.sha256()
for n in (2, 35, 3, 18, 64, 17, 129, 1500, 16, 40, 700):
    for value in step(n, 22):
        digest.update(value)
print(digest.hexdigest())
"""


def test_bits_do_not_depend_on_how_sizes_are_planned() -> None:
    folder = str(Path(__file__).parent)
    found = set()
    for mode in ("off", "at_once", "second_size"):  # in processes of their own, as op instances are kept
        command = [sys.executable, "-c", PROGRAM.format(folder=folder, mode=mode)]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


def test_new_op_instances_by_template_have_the_bits_of_those_of_python() -> None:
    def program(n: int, scale: float) -> bytes:
        x = torch.linspace(-1.0, 1.0, n * 3).reshape(n, 3)
        return ((x * scale).exp().sum(0) / x.abs().mean() - x[n // 2]).numpy().tobytes()

    sizes = list(range(20, 60, 3))
    with tier("unfused"):
        with mode("at_once"):
            found = [program(n, 0.5) for n in sizes]
        expected = [_reference(n, 0.5) for n in sizes]
    for one, other in zip(found, expected):
        numpy.testing.assert_allclose(numpy.frombuffer(one, numpy.float32), other, rtol=2e-5, atol=2e-5)


def _reference(n: int, scale: float) -> Any:
    x = numpy.linspace(-1, 1, n * 3).reshape(n, 3)
    return numpy.exp(x * scale).sum(0) / numpy.abs(x).mean() - x[n // 2]


def test_errors_of_new_sizes_are_worded_as_ever() -> None:
    def taken(n: int, index: int) -> Any:
        return torch.take(torch.arange(n).float(), torch.tensor([0, index])).numpy()

    with tier("unfused"):
        for n in (50, 60, 70):
            taken(n, n - 1)
        with pytest.raises(IndexError, match=r"index 80 .*80"):
            taken(80, 80)
        for n in (33, 34, 35):
            torch.ones(n, 4) @ torch.ones(4, 5)
        with pytest.raises(RuntimeError, match=r"float32\[36,4\].*float32\[3,5\]"):
            torch.ones(36, 4) @ torch.ones(3, 5)


def test_a_plan_is_not_made_again_and_again_where_no_size_meets_it() -> None:
    before = _core.statistics()
    for n in range(2, 40):
        torch.combinations(torch.arange(n), 2).sum().item()
    after = _core.statistics()
    tried = sum(after[key] - before[key] for key in ("templates", "templates_refused"))
    assert tried < 38


def test_rows_that_are_equal_by_chance_need_no_plan_of_their_own() -> None:
    chosen = random.Random(0)
    given = [torch.ones(rows, 11) for rows in range(1, 5)]

    def join(parts: list[Any]) -> None:
        assert torch.cat(parts).shape == (sum(part.shape[0] for part in parts), 11)

    for one in given[:2]:
        join([one] * 9)
    before = torch.stats()
    for _ in range(300):
        join(chosen.choices(given, k=9))
    after = torch.stats()
    assert (after.templates, after.templates_refused) == (before.templates, before.templates_refused)


def test_a_plan_of_a_product_serves_other_lengths_of_its_leading_axes() -> None:
    def given(*shape: int) -> Any:
        return torch.from_numpy(numpy.ones(shape, numpy.float32))

    weight, bias, kernels = given(160, 96), given(160), given(80, 48, 1, 1)

    def run(batch: int, length: int, side: int) -> None:
        torch.nn.functional.linear(given(batch, length, 96), weight, bias).numpy()
        torch.nn.functional.conv2d(given(3, 48, side, side), kernels).numpy()

    with mode("sizes_at_once"), tier("unfused"):
        run(4, 32, 12)
        before = torch.stats().template_programs
        run(8, 16, 13)
        assert torch.stats().template_programs == before


def test_threads_meet_new_sizes_together() -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for k in range(25):
                n = 20 + (seed * 7 + k * 3) % 50
                x = torch.ones(n, 11, requires_grad=True)
                ((x * 2).sum(0) + x.mean(0)).sum().backward()
                assert x.grad is not None
                numpy.testing.assert_allclose(x.grad.numpy(), 2 + 1 / n, rtol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
