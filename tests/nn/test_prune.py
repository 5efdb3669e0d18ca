"""Pruning: masks by hand-computed ranks, pruning again, training through masks, and going back."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold import nn
from twofold.nn.utils import prune


def layer(rows=((4.0, -3.0, 2.0), (-1.0, 6.0, 5.0))):
    made = nn.Linear(len(rows[0]), len(rows), bias=False)
    made.weight.data = torch.tensor([list(row) for row in rows])
    return made


def test_the_least_elements_are_pruned_by_number_and_by_share():
    for amount in (2, 1 / 3):
        found = prune.l1_unstructured(layer(), "weight", amount)
        assert found.weight_mask.tolist() == [[1, 1, 0], [0, 1, 1]]
        assert found.weight.tolist() == [[4, -3, 0], [0, 6, 5]]
        assert [name for name, _ in found.named_parameters()] == ["weight_orig"]
        assert "weight_mask" in found.state_dict() and prune.is_pruned(nn.Sequential(found))
    scores = torch.tensor([[0.0, 1, 2], [3, 4, 5]])
    assert prune.l1_unstructured(layer(), "weight", 1, scores).weight_mask.tolist() == [[0, 1, 1], [1, 1, 1]]


def test_slices_are_pruned_by_their_norms():
    columns = prune.ln_structured(layer(), "weight", 1, n=1, dim=1)  # norms 5, 9, 7
    assert columns.weight_mask.tolist() == [[0, 1, 1], [0, 1, 1]]
    rows = prune.ln_structured(layer(), "weight", 0.5, n=float("inf"), dim=-2)  # norms 4, 6
    assert rows.weight_mask.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_what_is_pruned_again_is_chosen_among_what_is_left():
    found = prune.ln_structured(layer(), "weight", 1, n=1, dim=1)
    prune.l1_unstructured(found, "weight", 0.5)  # of 3, 2, 6 and 5 that are left
    assert found.weight_mask.tolist() == [[0, 0, 0], [0, 1, 1]]
    prune.ln_structured(found, "weight", 1, n=1, dim=0)  # of one row, which is all that is left
    assert found.weight_mask.tolist() == [[0, 0, 0], [0, 0, 0]]
    ((_, (hook, *_)),) = found._forward_pre_hooks.items()
    assert isinstance(hook, prune.PruningContainer)
    assert [type(one) for one in hook] == [prune.LnStructured, prune.L1Unstructured, prune.LnStructured]
    assert len(hook) == 3 and hook[0].amount == 1


def test_random_methods_prune_as_many_as_they_are_asked_to():
    torch.manual_seed(0)
    one = prune.random_unstructured(layer(), "weight", 4)
    assert (one.weight_mask == 0).sum().item() == 4
    masks = {str(prune.random_structured(layer(), "weight", 1, 1).weight_mask.tolist()) for _ in range(20)}
    assert masks == {str([row, row]) for row in ([0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0])}


def test_several_parameters_are_pruned_as_one():
    one, two = layer(), layer(((0.5, 7.0), (1.5, 8.0)))
    prune.global_unstructured([(one, "weight"), (two, "weight")], prune.L1Unstructured, amount=3)
    assert one.weight_mask.tolist() == [[1, 1, 1], [0, 1, 1]]
    assert two.weight_mask.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(TypeError, match="unstructured"):
        prune.global_unstructured([(one, "weight")], prune.LnStructured, amount=1, n=1)


def test_what_is_pruned_is_not_trained_and_stays_zero_when_masks_are_removed():
    found = prune.l1_unstructured(layer(), "weight", 2)
    optimizer = torch.optim.SGD(found.parameters(), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        found(torch.ones(1, 3)).sum().backward()
        assert found.weight_orig.grad.tolist() == [[1, 1, 0], [0, 1, 1]]
        optimizer.step()
    found(torch.ones(1, 3))
    assert found.weight.tolist() == [[3, -4, 0], [0, 5, 4]]
    again = nn.Sequential(prune.identity(layer(), "weight"))
    again.load_state_dict(nn.Sequential(found).state_dict())
    assert again(torch.ones(1, 3)).tolist() == [[-1, 9]]
    parameter = found.weight_orig
    prune.remove(found, "weight")
    assert found.weight is parameter and isinstance(found.weight, nn.Parameter) and not prune.is_pruned(found)
    assert found.weight.tolist() == [[3, -4, 0], [0, 5, 4]] and not dict(found.named_buffers())
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(found, "weight")


def test_masks_of_the_user():
    found = prune.custom_from_mask(layer(), "weight", torch.tensor([[1, 0, 1], [0, 0, 1]]))
    prune.custom_from_mask(found, "weight", torch.tensor([[1, 1, 0], [0, 1, 1]]))
    assert found.weight.tolist() == [[4, 0, 0], [0, 0, 5]]
    with pytest.raises(AssertionError, match="does not fit"):
        prune.custom_from_mask(layer(), "weight", torch.ones(2))


@pytest.mark.parametrize(
    "amount, error", [("a", TypeError), (-1, ValueError), (1.5, ValueError), (7, ValueError)]
)
def test_amounts_that_make_no_sense(amount, error):
    whole = layer()
    with pytest.raises(error, match="amount"):
        prune.l1_unstructured(whole, "weight", amount)
    assert [name for name, _ in whole.named_parameters()] == ["weight"]


def test_axes_that_are_not_there():
    with pytest.raises(IndexError, match="Invalid index 2"):
        prune.random_structured(layer(), "weight", 1, 2)
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(nn.Linear(2, 2), "bias", 1, 1, 0)
