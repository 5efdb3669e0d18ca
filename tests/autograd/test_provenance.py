"""Lines in backward passes: that of the pass, and that of the forward call which it differentiates."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from tests.core.in_child import run
from tests.core.test_out_of_memory import LIMITED
from twofold import _core


def line_in(function: Callable[..., Any], text: str) -> str:
    """``file.py:line`` of the line of ``function`` that holds ``text``."""
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + k for k, line in enumerate(lines) if text in line)
    return f"test_provenance.py:{number}"


def root(x: torch.Tensor) -> torch.Tensor:
    return x.sqrt().sum()


def root_elsewhere(x: torch.Tensor) -> torch.Tensor:
    return x.sqrt().sum()  # elsewhere


def asked_for(x: torch.Tensor) -> torch.Tensor:
    (gradient,) = torch.autograd.grad(root(x), [x])
    return gradient


def test_a_gradient_stands_where_backward_was_called() -> None:
    x = torch.ones(3, requires_grad=True)

    def first() -> None:
        root(x).backward()

    def second() -> None:
        root_elsewhere(x).backward()

    for call in (first, first, first, first, second, second, first):
        x.grad = None
        call()
        assert x.grad is not None
        assert x.grad._where == line_in(call, "backward()")
        x.grad.tolist()
        assert asked_for(x)._where == line_in(asked_for, "autograd.grad")


@pytest.mark.parametrize("observed", [False, True])
def test_anomaly_names_the_forward_line_of_this_run_and_the_backward_pass(observed: bool) -> None:
    def step(call: Callable[[torch.Tensor], torch.Tensor], value: float) -> None:
        x = torch.full((2,), value, requires_grad=True)
        loss = call(x)
        if observed:
            loss.item()
        loss.backward()

    for _ in range(4):
        step(root, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
            step(root_elsewhere, -1.0)
    text = str(caught.value)
    assert text.startswith("Function 'SqrtBackward' returned nan values in its 0th output")
    assert f"in the backward pass at {line_in(step, 'loss.backward()')}" in text
    assert f"{line_in(root_elsewhere, '# elsewhere')}, in root_elsewhere, called at " in text
    assert f"{line_in(step, 'call(x)')}, in step" in text


class Picked(torch.autograd.Function):
    """Twice its input, with a gradient that reads the cotangent at given indices."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(index)
        return x * 2

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor, None]:
        (index,) = ctx.saved_tensors
        return torch.index_select(cotangent, 0, index), None


def picked(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return Picked.apply(x, index)


def picked_elsewhere(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return Picked.apply(x, index)  # elsewhere


def swept(y: torch.Tensor) -> None:
    y.sum().backward()


def swept_elsewhere(y: torch.Tensor) -> None:
    y.sum().backward()  # elsewhere


@pytest.mark.parametrize("tier", ["unfused", "fused", "auto"])
@pytest.mark.parametrize("observed", [False, True])
def test_an_error_in_a_backward_pass_names_both_lines_of_this_run(tier: str, observed: bool) -> None:
    x = torch.ones(3, requires_grad=True)

    def step(forward: Callable[..., torch.Tensor], backward: Callable[..., None], index: list[int]) -> Any:
        x.grad = None
        y = forward(x, torch.tensor(index))
        if observed:
            y.tolist()
        backward(y)
        assert x.grad is not None
        return x.grad.tolist()

    _core.set_tier(tier)
    try:
        for _ in range(4):
            assert step(picked, swept, [0, 1, 2]) == [1, 1, 1]
            torch.wait_for_compiler()
        for forward, backward, mark in (
            (picked_elsewhere, swept_elsewhere, "# elsewhere"),
            (picked, swept_elsewhere, "apply"),
        ):
            with pytest.raises(IndexError) as caught:
                step(forward, backward, [0, 1, 7])
            forward_line, backward_line = line_in(forward, mark), line_in(backward, "backward()")
            text = str(caught.value)
            gradient_line = line_in(Picked.backward, "index_select")
            assert f", at {gradient_line} in backward, called at {backward_line} " in text
            assert f", in the backward pass of the call at {forward_line}" in text
    finally:
        _core.set_tier("auto")


def test_an_error_in_the_gradient_of_a_gradient_names_the_forward_line() -> None:
    x = torch.ones(3, requires_grad=True)
    index = torch.tensor([0, 1, 7])
    (gradient,) = torch.autograd.grad(picked(torch.exp(x), index).sum(), [x], create_graph=True)
    gradient.sum().backward()
    with pytest.raises(IndexError) as caught:
        x.grad.tolist()
    assert f" of the call at {line_in(picked, 'apply')}" in str(caught.value)


DEFERRED = (
    LIMITED
    + """
weight = torch.ones(1 << 20, 4, requires_grad=True)
index = torch.tensor([1, 5])

def step(forward, backward):
    weight.grad = None
    backward(forward())
    torch._core.flush()

def forward(): return torch.embedding(weight, index)
def backward(y): y.sum().backward()
def forward_elsewhere(): return torch.embedding(weight, index)
def backward_elsewhere(y): y.sum().backward()

for _ in range(4):
    step(forward, backward)
    torch.wait_for_compiler()
held = weight.grad
held._realise()  # with memory for its kernels; what it takes is not given back
step(forward_elsewhere, backward_elsewhere)
limit(4)
try:
    weight.grad._realise()
except MemoryError as error:
    print(error)
"""
)


def test_a_gradient_that_was_deferred_keeps_both_lines() -> None:
    text = run(DEFERRED, TWOFOLD_THREADS="1")
    lines = DEFERRED.splitlines()
    forward = next(k for k, line in enumerate(lines, 1) if line.startswith("def forward_elsewhere"))
    assert f", at <string>:{forward}, in the backward pass at <string>:{forward + 1}. " in text
