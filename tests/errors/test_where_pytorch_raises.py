"""Arguments for which PyTorch raises, where a result could be computed; indices below zero among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.nn import functional as F

ONES = torch.ones

RAISE: dict[str, Callable[[Any], Any]] = {
    "index_select": lambda i: ONES(3, 4).index_select(0, i),
    "gather": lambda i: ONES(3, 4).gather(1, i[None]),
    "gather rows": lambda i: ONES(3, 4).gather(0, i[:, None].expand(2, 4)),
    "scatter": lambda i: ONES(3).scatter(0, i, 5.0),
    "scatter_add": lambda i: ONES(3).scatter_add(0, i, ONES(2)),
    "scatter_reduce": lambda i: ONES(3).scatter_reduce(0, i, ONES(2), "amax"),
    "scatter_reduce mean": lambda i: ONES(3).scatter_reduce(0, i, ONES(2), "mean"),
    "index_add": lambda i: ONES(3, 4).index_add(0, i, ONES(2, 4)),
    "index_copy": lambda i: ONES(3, 4).index_copy(0, i, ONES(2, 4)),
    "index_reduce": lambda i: ONES(3, 4).index_reduce(0, i, ONES(2, 4), "prod"),
    "max_unpool": lambda i: F.max_unpool1d(ONES(1, 1, 2), i[None, None], 2),
}
FROM_THE_END: dict[str, Callable[[Any], Any]] = {
    "take": lambda i: ONES(3).take(i),
    "take_along_dim": lambda i: torch.take_along_dim(ONES(3), i, 0),
    "put": lambda i: ONES(3).put_(i, ONES(2)),
    "index_fill": lambda i: ONES(3).index_fill(0, i, 1.0),
    "index_put": lambda i: ONES(3).index_put((i,), ONES(2)),
    "brackets": lambda i: ONES(3)[i],
}


@pytest.mark.parametrize("name", RAISE)
def test_raises(name: str) -> None:
    for way in (lambda f: f, torch.compile):
        call = way(RAISE[name])
        for _ in range(3):
            call(torch.tensor([0, 2])).tolist()
        with pytest.raises(
            IndexError, match=r"index -1 is outside an axis of size \d: (.|\n)*Use indices from 0 to"
        ):
            call(torch.tensor([0, -1])).tolist()


@pytest.mark.parametrize("name", FROM_THE_END)
def test_counts_from_the_end(name: str) -> None:
    found = FROM_THE_END[name](torch.tensor([0, -1]))
    assert found.tolist() == ONES(found.shape).tolist()
    with pytest.raises(IndexError):
        FROM_THE_END[name](torch.tensor([0, -4])).tolist()


def test_no_gradient_passes_where_an_index_is_below_zero() -> None:
    x = torch.zeros(3, 4, requires_grad=True)
    with pytest.raises(IndexError, match="Use indices from 0 to 3"):
        x.gather(1, torch.tensor([[0], [-1], [2]])).sum().backward()
        assert x.grad is not None
        x.grad.tolist()


def test_a_row_that_a_loop_writes_below_zero() -> None:
    """Where a loop writes one row of a carry, its kernel writes that row alone."""

    def body(i: Any, rows: Any) -> Any:
        return i + 1, rows.index_copy(0, (i - 1).reshape(1), ONES(1, 2))

    with pytest.raises(IndexError, match="index -1 is outside"):
        torch.while_loop(lambda i, rows: i < 3, body, (torch.tensor(0), torch.zeros(3, 2)))[1].tolist()


def test_a_mask_of_another_shape_is_an_index_error() -> None:
    with pytest.raises(IndexError, match=r"a mask of shape \(4,\)"):
        torch.zeros(3, 4)[ONES(4) > 0]
    with pytest.raises(IndexError, match=r"a mask of shape \(3,\)"):
        torch.zeros(3, 4)[:, ONES(3) > 0]


def test_other_arguments_that_gave_a_number() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match="All input tensors should have same dimension"):
        F.margin_ranking_loss(ONES(3), ONES(3, 1), ONES(3))
    with pytest.raises(RuntimeError, match="alpha cannot be 0 for CELU"):
        F.celu(x, 0.0)
    with pytest.raises(RuntimeError, match="Lower bound should be less"):
        F.rrelu(x, 0.3, 0.1)
    with pytest.raises(RuntimeError, match="label_smoothing must be between 0.0 and 1.0"):
        F.cross_entropy(x, torch.tensor([0, 1]), label_smoothing=1.5)
    with pytest.raises(TypeError, match="target is int64, not floating"):
        F.kl_div(x, torch.zeros(2, 3).long())
    with pytest.raises(TypeError, match=r"such as with .to\(float32\)"):
        x @ torch.zeros(3, 2).long()
    with pytest.raises(
        RuntimeError, match=r"^in-place: a result of float32\[2\] cannot be stored in int64\[2\]"
    ):
        torch.tensor([1, 2]).div_(2)
