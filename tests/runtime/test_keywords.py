"""Keywords that PyTorch takes under NumPy's names."""

from __future__ import annotations

import pytest

import twofold as torch


@pytest.mark.parametrize(
    ("call", "same"),
    [
        (lambda x: torch.cumprod(x, axis=0), lambda x: x.cumprod(0)),
        (lambda x: torch.max(x, axis=1, keepdims=True).values, lambda x: x.max(1, True).values),
        (lambda x: x.unsqueeze(axis=1), lambda x: x.unsqueeze(1)),
        (lambda x: torch.exp(a=x), torch.exp),
        (lambda x: torch.add(x1=x, x2=x), lambda x: x + x),
        (lambda x: torch.maximum(x, x2=x + 1), lambda x: x + 1),
        (lambda x: torch.max(x, other=x + 1), lambda x: x + 1),
        (lambda x: x.split(split_size=1)[1], lambda x: x[1:]),
        (lambda x: torch.zeros(2, 3).copy_(src=x), lambda x: x),
        (lambda x: torch.linalg.vector_norm(x, axis=1), lambda x: torch.linalg.vector_norm(x, dim=1)),
    ],
)
def test_names_of_numpy(call, same):
    x = torch.arange(6.0).reshape(2, 3)
    for _ in range(2):  # the second call is found by its types
        assert call(x).tolist() == same(x).tolist()


def test_other_names_are_refused():
    x = torch.ones(2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'way'"):
        torch.cumsum(x, way=0)
    with pytest.raises(TypeError, match="'axis'"):
        torch.cumsum(x, dim=0, axis=0)
    with pytest.raises(TypeError, match="'axis'"):
        torch.exp(x, axis=0)
