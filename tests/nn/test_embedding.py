"""Embeddings and bags: options, gradients, mistakes."""

from __future__ import annotations

import re
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn

F: Any = nn.functional
G = numpy.random.default_rng(29)


def test_gradients_over_frequencies() -> None:
    weight = torch.ones(4, 2, requires_grad=True)
    F.embedding(torch.tensor([[1, 1], [2, 1]]), weight, scale_grad_by_freq=True).sum().backward()
    numpy.testing.assert_allclose(weight.grad.numpy(), [[0, 0], [1, 1], [1, 1], [0, 0]], rtol=1e-6)


def test_rows_are_shrunk_in_place() -> None:
    layer = nn.Embedding(5, 3, max_norm=1.0)
    with torch.no_grad():
        layer.weight.mul_(10)
    before = layer.weight.detach().numpy().copy()
    found = layer(torch.tensor([1, 1, 4]))
    found.sum().backward()
    after = layer.weight.detach().numpy()
    numpy.testing.assert_allclose(numpy.linalg.norm(after[[1, 4]], axis=1), 1, rtol=1e-5)
    numpy.testing.assert_array_equal(after[[0, 2, 3]], before[[0, 2, 3]])
    numpy.testing.assert_array_equal(found.detach().numpy(), after[[1, 1, 4]])
    assert layer.weight.grad[:, 0].tolist() == [0, 2, 0, 0, 1]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(mode: str, padding: int | None) -> None:
    table = G.normal(size=(6, 3))
    index, offsets = [1, 2, 2, 5, 0, 2], [0, 3, 3, 5]
    layer = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=padding, _weight=torch.tensor(table))
    found = layer(torch.tensor(index), torch.tensor(offsets))
    for bag, (start, end) in enumerate(zip(offsets, [*offsets[1:], 6], strict=True)):
        rows = table[[k for k in index[start:end] if k != padding]]
        wanted = getattr(rows, mode)(0) if len(rows) else numpy.zeros(3)
        numpy.testing.assert_allclose(found[bag].detach().numpy(), wanted, rtol=1e-12)
    matrix = torch.tensor(index).reshape(2, 3)
    again = layer(torch.tensor(index), torch.tensor([0, 3]))
    numpy.testing.assert_allclose(layer(matrix).detach().numpy(), again.detach().numpy(), rtol=1e-12)
    weight = torch.tensor(table, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda w: F.embedding_bag(
            torch.tensor(index), w, torch.tensor(offsets), mode=mode, padding_idx=padding
        ),
        (weight,),
    )


def test_weights_of_samples() -> None:
    table = torch.tensor(G.normal(size=(6, 3)), requires_grad=True)
    weights = torch.tensor(G.normal(size=5), requires_grad=True)
    index, offsets = torch.tensor([1, 2, 2, 5, 0]), torch.tensor([0, 2, 4])

    def bag(table: Any, weights: Any) -> Any:
        more = {"per_sample_weights": weights, "include_last_offset": True}
        return F.embedding_bag(index, table, offsets, mode="sum", **more)

    assert bag(table, weights).shape == (2, 3)
    assert torch.autograd.gradcheck(bag, (table, weights))


def test_given_rows() -> None:
    table = torch.randn(4, 3)
    layer = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not layer.weight.requires_grad
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    assert (
        repr(nn.EmbeddingBag(4, 3, mode="sum", padding_idx=1))
        == "EmbeddingBag(4, 3, mode='sum', padding_idx=1)"
    )
    shown = "Embedding(4, 3, padding_idx=1, max_norm=1.0, scale_grad_by_freq=True)"
    assert repr(nn.Embedding(4, 3, 1, 1.0, scale_grad_by_freq=True)) == shown


TABLE = torch.ones(3, 2)
MISTAKES: dict[str, tuple[type[Exception], Any, str]] = {
    "outside": (
        IndexError,
        lambda: F.embedding(torch.tensor([1, 9]), TABLE).sum().item(),
        "embedding: index 9 is outside a table of 3 rows: index int64[2] (here.py:N), "
        "weight float32[3,2] (here.py:N), at here.py:N. Use indices from 0 to 2.",
    ),
    "negative": (
        IndexError,
        lambda: F.embedding(torch.tensor([1, -1]), TABLE).sum().item(),
        "embedding: index -1 is outside a table of 3 rows: index int64[2] (here.py:N), "
        "weight float32[3,2] (here.py:N), at here.py:N. Use indices from 0 to 2.",
    ),
    "floats": (
        TypeError,
        lambda: F.embedding(torch.tensor([1.0]), TABLE),
        "embedding: an index of float32: index float32[1] (here.py:N), weight float32[3,2] (here.py:N), "
        "at here.py:N. Cast it with .to(int64) first.",
    ),
    "padding": (
        AssertionError,
        lambda: F.embedding(torch.tensor([1]), TABLE, 3),
        "padding_idx must be within num_embeddings",
    ),
    "no offsets": (
        ValueError,
        lambda: F.embedding_bag(torch.tensor([1]), TABLE),
        "offsets has to be a 1D Tensor but got None: input int64[1] (here.py:N), at here.py:N. Give where each bag "
        "begins, or indices with a row for each bag.",
    ),
    "late start": (
        RuntimeError,
        lambda: F.embedding_bag(torch.tensor([1, 1]), TABLE, torch.tensor([1])),
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
        "However, got 1: offsets int64[1] (here.py:N), at here.py:N. Begin with 0.",
    ),
    "behind the end": (
        RuntimeError,
        lambda: F.embedding_bag(torch.tensor([1, 1]), TABLE, torch.tensor([0, 3])),
        "offsets[-1] can not be greater than input's length 2 but got offsets[-1] of 3: offsets int64[2] "
        "(here.py:N), at here.py:N. Use offsets of at most 2.",
    ),
    "mode": (
        ValueError,
        lambda: F.embedding_bag(torch.tensor([1]), TABLE, torch.tensor([0]), mode="median"),
        "mode has to be one of sum, mean or max",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    error, action, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        action()
    assert re.sub(r"[\w.]+\.py:\d+", "here.py:N", str(caught.value)) == text


def test_the_function_of_the_package_takes_the_table_first():
    weight = torch.arange(12.0).reshape(4, 3).requires_grad_()
    index = torch.tensor([1, 2, 1])
    assert torch.embedding(weight, index).tolist() == weight[index].tolist()
    assert torch.embedding(weight=weight, indices=index, padding_idx=-1).tolist() == weight[index].tolist()
    torch.embedding(weight, index, 2).sum().backward()
    assert weight.grad[:, 0].tolist() == [0.0, 2.0, 0.0, 0.0]
    weight.grad = None
    torch.embedding(weight, index, -1, True).sum().backward()
    assert weight.grad[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]
