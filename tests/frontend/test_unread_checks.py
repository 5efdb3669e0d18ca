"""A wrong index or value is reported even if nobody reads the result that it would have gone into."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import twofold as torch

INDEX = torch.tensor([7])


def written(y: Any) -> None:
    y[INDEX] = 1.0


CALLS: dict[str, Callable[[], Any]] = {
    "setitem": lambda: written(torch.zeros(3)),
    "getitem": lambda: torch.zeros(3)[INDEX],
    "index_put_": lambda: torch.zeros(3).index_put_((INDEX,), torch.ones(1)),
    "index_add_": lambda: torch.zeros(3).index_add_(0, INDEX, torch.ones(1)),
    "index_copy_": lambda: torch.zeros(3).index_copy_(0, INDEX, torch.ones(1)),
    "index_fill_": lambda: torch.zeros(3).index_fill_(0, INDEX, 1.0),
    "index_select": lambda: torch.zeros(3).index_select(0, INDEX),
    "gather": lambda: torch.zeros(3).gather(0, INDEX),
    "scatter_": lambda: torch.zeros(3).scatter_(0, INDEX, torch.ones(1)),
    "scatter_add_": lambda: torch.zeros(3).scatter_add_(0, INDEX, torch.ones(1)),
    "take": lambda: torch.zeros(3).take(INDEX),
    "embedding": lambda: torch.nn.functional.embedding(INDEX, torch.zeros(3, 2)),
    "nll_loss": lambda: torch.nn.functional.nll_loss(torch.zeros(1, 3), INDEX),
    "cross_entropy": lambda: torch.nn.functional.cross_entropy(torch.zeros(1, 3), INDEX),
    "binary_cross_entropy": lambda: torch.nn.functional.binary_cross_entropy(INDEX.float(), torch.ones(1)),
    "floor_divide": lambda: INDEX // (INDEX - 7),
    "through other operations": lambda: (torch.zeros(3)[INDEX] * 2 + 1).sum(),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_nobody_reads(name: str) -> None:
    for _ in range(3):
        CALLS[name]()
        with pytest.raises(RuntimeError, match="index 7|class 7|element 0|ZeroDivisionError"):
            (torch.ones(2) + 1).tolist()
        assert (torch.ones(2) + 1).tolist() == [2, 2]


def test_a_value_that_is_written_over() -> None:
    y = torch.zeros(3)
    y[INDEX] = 1.0
    y.zero_()
    with pytest.raises(IndexError, match="index 7 is outside"):
        y.tolist()


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores: torch.nn.functional.cross_entropy(scores, INDEX),
        lambda scores: torch.nn.functional.binary_cross_entropy(scores * 2, torch.ones(1, 3)),
    ],
)
def test_a_loss_of_which_only_the_gradient_is_read(loss: Any) -> None:
    with pytest.raises(IndexError, match="class 7|element 0"):
        torch.compile(torch.func.grad(loss))(torch.ones(1, 3)).tolist()


def test_in_a_training_loop_that_is_predicted() -> None:
    layer = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    wrong = []
    for turn in range(12):
        x = torch.randn(4, 3)
        x.index_select(0, torch.tensor([0, 9 if turn == 9 else 1]))
        loss = (layer(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        try:
            optimizer.step()
        except IndexError:
            wrong.append(turn)
    assert wrong == [9]


def test_right_values_that_nobody_reads_are_dropped() -> None:
    for _ in range(4):
        torch.zeros(3)[torch.tensor([2])]
        assert (torch.ones(2) + 1).tolist() == [2, 2]


def test_at_the_end_of_a_program() -> None:
    program = "import twofold as torch\ny = torch.zeros(3)\ny[torch.tensor([7])] = 1.0\n"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert "index 7 is outside an axis of size 3" in done.stderr


@pytest.mark.parametrize("name", ("fmod_", "remainder_", "floor_divide_", "__imod__", "__ifloordiv__"))
@pytest.mark.parametrize("is_refused_for", ("shape", "leaf"))
def test_an_error_of_a_result_that_was_refused_is_raised_at_no_later_value(
    name: str, is_refused_for: str
) -> None:
    for _ in range(3):
        x = torch.tensor([5, 7, 9])
        zeros = torch.zeros(2, 3, dtype=torch.int64)
        if is_refused_for == "leaf":
            x, zeros = torch.ones(2, requires_grad=True), torch.zeros(2, dtype=torch.int64)
        with pytest.raises(RuntimeError, match=r"^in-place: "):
            getattr(x, name)(zeros)
        assert (torch.arange(4) * 3).tolist() == [0, 3, 6, 9]
        assert x.tolist() in ([5, 7, 9], [1.0, 1.0])


def test_an_error_of_a_refused_result_that_is_read_all_the_same() -> None:
    x, result = torch.tensor([5, 7, 9]), torch.tensor([1, 2, 3]) // torch.zeros(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"^in-place: "):
        x[:2]._assign(result)
    with pytest.raises(torch.errors.TwofoldError, match="element 0 of the divisor is 0"):
        result.tolist()


def test_errors_before_a_refused_result_are_raised() -> None:
    x = torch.tensor([5, 7, 9])
    x // torch.tensor([1, 0, 1])
    with pytest.raises(RuntimeError, match=r"^in-place: "):
        x.fmod_(torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(torch.errors.TwofoldError, match="element 1 of the divisor is 0"):
        (x + 1).tolist()
