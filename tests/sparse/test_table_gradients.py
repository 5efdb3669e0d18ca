"""Gradients of tables that were looked up with ``sparse=True``: what they show, and which optimisers take them."""

from __future__ import annotations

import copy

import numpy
import pytest

import twofold as torch
from twofold import nn

OTHERS = [
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "Adadelta",
    "RMSprop",
    "Rprop",
    "ASGD",
    "Adafactor",
    "Muon",
]


def table(sparse=True):
    made = nn.Embedding(5, 2, sparse=sparse)
    made.weight.data = torch.arange(10.0).reshape(5, 2)
    return made


def looked_up(sparse=True, indices=(3, 1, 3)):
    made = table(sparse)
    (made(torch.tensor(indices)) * torch.tensor([[1.0, 2.0]])).sum().backward()
    return made


def test_the_rows_that_were_looked_up_are_shown():
    gradient = looked_up().weight.grad
    assert gradient.is_sparse and gradient.layout is torch.sparse_coo and gradient.shape == (5, 2)
    found = gradient.coalesce()
    assert found.indices().tolist() == [[1, 3]] and found.values().tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert gradient.to_dense().tolist() == looked_up(sparse=False).weight.grad.tolist()
    bag = nn.EmbeddingBag(5, 2, mode="sum", sparse=True)
    bag(torch.tensor([[0, 4]])).sum().backward()
    assert bag.weight.grad.coalesce().indices().tolist() == [[0, 4]]
    weight = torch.ones(3, 2, requires_grad=True)
    (found,) = torch.autograd.grad(
        nn.functional.embedding(torch.tensor([1]), weight, sparse=True).sum(), weight
    )
    assert found.is_sparse and found.to_dense().tolist() == [[0, 0], [1, 1], [0, 0]] and weight.grad is None


def test_gradients_accumulate_and_are_forgotten():
    layer = looked_up()
    (layer(torch.tensor([0])) * 5).sum().backward()
    assert layer.weight.grad.coalesce().indices().tolist() == [[0, 1, 3]]
    layer.weight.grad.mul_(2)
    assert layer.weight.grad.coalesce().values().tolist() == [[10, 10], [2, 4], [4, 8]]
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad._nnz() == 0
    layer.zero_grad()
    assert layer.weight.grad is None
    layer.weight.grad = torch.sparse_coo_tensor([[2, 2]], [[1.0, 1.0], [2.0, 2.0]], (5, 2))
    assert layer.weight.grad.is_sparse and layer.weight.grad.to_dense()[2].tolist() == [3.0, 3.0]
    layer.weight.grad = torch.ones(5, 2)
    assert isinstance(layer.weight.grad, torch.Tensor)


def test_copies_and_casts_keep_the_gradient():
    weight = torch.ones(3, 2, requires_grad=True)
    nn.functional.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    wide = looked_up().double().weight
    assert wide.grad.dtype is torch.float64 and wide.grad.coalesce().indices().tolist() == [[1, 3]]
    copied = copy.deepcopy(weight)
    assert copied.grad.is_sparse and copied.grad.to_dense().tolist() == weight.grad.to_dense().tolist()


def test_a_dense_look_up_makes_the_gradient_dense():
    layer = table()
    nn.functional.embedding(torch.tensor([1]), layer.weight).sum().backward()
    assert isinstance(layer.weight.grad, torch.Tensor)


@pytest.mark.parametrize("name, options", [
    ("SGD", {"lr": 0.5}), ("SGD", {"lr": 0.5, "momentum": 0.9}), ("Adagrad", {"lr": 0.5}),
])  # fmt: skip
def test_steps_are_those_of_dense_gradients(name, options):
    ends = []
    for sparse in (True, False):
        layer = table(sparse)
        optimizer = getattr(torch.optim, name)(layer.parameters(), **options)
        for indices in ((3, 1, 3), (0, 1), (2, 2)):
            optimizer.zero_grad()
            (layer(torch.tensor(indices)) ** 2).sum().backward()
            assert nn.utils.clip_grad_norm_(layer.parameters(), 3.0).item() > 3.0
            optimizer.step()
        ends.append(layer.weight.detach().numpy())
    numpy.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("name", OTHERS)
def test_optimizers_that_take_dense_gradients_alone_say_so(name):
    layer = looked_up()
    optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1)
    before = layer.weight.tolist()
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
        optimizer.step()
    assert layer.weight.tolist() == before


def test_settings_that_move_all_rows_are_refused():
    for optimizer in (torch.optim.SGD, torch.optim.Adagrad):
        with pytest.raises(RuntimeError, match="weight_decay"):
            optimizer(looked_up().parameters(), lr=0.1, weight_decay=0.1).step()
    with pytest.raises(ValueError, match="max mode"):
        nn.EmbeddingBag(5, 2, mode="max", sparse=True)(torch.tensor([[1]]))


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("sparse_first", [True, False])
@pytest.mark.parametrize("with_hook", [True, False])
def test_a_table_that_is_used_densely_too_has_a_dense_gradient(rounds, sparse_first, with_hook):
    weight = torch.arange(10.0).reshape(5, 2).requires_grad_()
    if with_hook:
        weight.register_hook(lambda gradient: None)
    look = nn.functional.embedding
    rows, dense = torch.tensor([3, 1]), torch.full((5, 2), 0.5)
    uses = [lambda: look(rows, weight, sparse=True), lambda: look(rows, weight), lambda: weight * dense]
    for other in uses[1:]:
        for _ in range(rounds):  # later passes are replayed
            weight.grad = None
            parts = [uses[0]().sum(), other().sum()]
            sum(parts if sparse_first else parts[::-1]).backward()
            assert isinstance(weight.grad, torch.Tensor)
            expected = numpy.zeros((5, 2))
            expected[[3, 1]] = 1
            expected = 2 * expected if other is uses[1] else expected + 0.5
            assert weight.grad.tolist() == expected.tolist()
            (found,) = torch.autograd.grad(sum(use().sum() for use in (uses[0], other)), weight)
            assert isinstance(found, torch.Tensor)
    layer = torch.optim.Adam([weight])
    layer.step()  # which refuses sparse gradients
    weight.grad = None
    uses[0]().sum().backward()
    assert weight.grad.is_sparse


def test_gradients_of_several_passes_are_sparse_if_all_are():
    weight = torch.zeros(4, 1, requires_grad=True)
    look, rows = nn.functional.embedding, torch.tensor([2])
    kinds = {"sparse": lambda: look(rows, weight, sparse=True), "dense": lambda: weight * 1.0}
    for first, second in (("sparse", "sparse"), ("sparse", "dense"), ("dense", "sparse"), ("dense", "dense")):
        for _ in range(2):
            weight.grad = None
            for name in (first, second):
                kinds[name]().sum().backward()
            assert getattr(weight.grad, "is_sparse", False) is (first == second == "sparse")
    weight.grad = None
    dense = nn.functional.embedding_bag(torch.tensor([[0, 1]]), weight, mode="sum")
    (nn.functional.embedding_bag(torch.tensor([[0, 1]]), weight, mode="sum", sparse=True) + dense).backward()
    assert isinstance(weight.grad, torch.Tensor) and weight.grad.tolist() == [[2.0], [2.0], [0.0], [0.0]]
