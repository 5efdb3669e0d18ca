"""Tensors of uint8 as indices: masks in PyTorch's interface, integers in the array API's."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
import twofold.array_api as xp
from twofold.errors import ShapeError

X = numpy.arange(6.0, dtype=numpy.float32).reshape(2, 3)
MASK = numpy.array([[1, 0, 2], [0, 1, 0]], numpy.uint8)
ROWS = numpy.array([0, 1], numpy.uint8)


@pytest.mark.filterwarnings("ignore:indexing with masks")
def test_they_are_masks() -> None:
    x, mask, rows = (torch.tensor(array) for array in (X, MASK, ROWS))
    assert torch.equal(x[mask], torch.tensor(X[MASK != 0]))
    assert torch.equal(x[rows], torch.tensor(X[ROWS != 0]))
    assert torch.equal(x[:, torch.tensor([1, 0, 1], dtype=torch.uint8)], torch.tensor(X[:, [0, 2]]))
    one = torch.tensor(1, dtype=torch.uint8)
    assert x[one].shape == x[torch.tensor(True)].shape == (1, 2, 3)
    x[mask] = -1
    assert torch.equal(x, torch.tensor(numpy.where(MASK != 0, -1, X)))
    x[rows] = torch.tensor([[7.0, 8.0, 9.0]])
    assert x[1].tolist() == [7.0, 8.0, 9.0]


def test_a_warning_says_so() -> None:
    with pytest.warns(UserWarning, match="masks of uint8"):
        torch.tensor(X)[torch.tensor(MASK)]


def test_masks_of_another_shape_are_refused() -> None:
    with pytest.raises(ShapeError, match="mask of shape"):
        torch.tensor(X)[torch.ones(3, dtype=torch.uint8)]


def test_they_are_integers_in_the_array_api() -> None:
    x, rows = xp.asarray(X), xp.asarray(ROWS)
    assert xp.all(x[rows, rows] == xp.asarray(X[ROWS, ROWS]))
    assert xp.all(xp.take(x, rows, axis=0) == x)
