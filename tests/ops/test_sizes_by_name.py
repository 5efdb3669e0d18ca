"""Sizes and axes by their names, as PyTorch's functions and methods take them."""

import pytest

import twofold as torch
from twofold.errors import ArgumentError

X = torch.arange(4.0)
CASES = [
    (lambda: X.reshape(shape=(2, -1)), (2, 2)),
    (lambda: torch.reshape(X, shape=[4, 1]), (4, 1)),
    (lambda: X.expand(size=(3, -1)), (3, 4)),
    (lambda: X[None].permute(dims=(1, 0)), (4, 1)),
    (lambda: torch.permute(X[None], dims=(1, 0)), (4, 1)),
    (lambda: X.repeat(repeats=(2, 1)), (2, 4)),
    (lambda: X.broadcast_to(size=(2, 4)), (2, 4)),
    (lambda: torch.broadcast_to(X, size=(2, 4)), (2, 4)),
    (lambda: X[None].expand(2, 4).sum_to_size(size=(1, 4)), (1, 4)),
    (lambda: X.clone().resize_(size=(2, 3)), (2, 3)),
]


@pytest.mark.parametrize("call, shape", CASES)
def test_by_name(call, shape):
    assert tuple(call().shape) == shape


def test_twice_or_never():
    with pytest.raises(ArgumentError, match="by position and by name"):
        X.reshape(4, shape=(4,))
    with pytest.raises(ArgumentError, match="by position and by name"):
        torch.broadcast_to(X, (2, 4), size=(2, 4))


def test_other_and_sparse_grad():
    assert X.to(other=torch.ones(1, dtype=torch.float64)).dtype is torch.float64
    index = torch.tensor([3])
    assert torch.gather(X, 0, index, sparse_grad=False).tolist() == [3]
    with pytest.raises(ArgumentError, match="dense"):
        torch.gather(X, 0, index, sparse_grad=True)
