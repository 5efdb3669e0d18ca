"""Functions of several results name them as PyTorch does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch

X = torch.tensor([[3.0, 1.0], [2.0, 5.0]])

NAMED: dict[str, tuple[Callable[[], Any], str]] = {
    "aminmax": (lambda: torch.aminmax(X), "min max"),
    "aminmax along an axis": (lambda: X.aminmax(dim=1), "min max"),
    "histogram": (lambda: X.histogram(3), "hist bin_edges"),
    "histogramdd": (lambda: torch.histogramdd(X, [2, 2]), "hist bin_edges"),
    "max": (lambda: X.max(1), "values indices"),
    "median": (lambda: X.median(1), "values indices"),
    "mode": (lambda: X.mode(1), "values indices"),
    "sort": (lambda: X.sort(), "values indices"),
    "topk": (lambda: X.topk(1), "values indices"),
    "kthvalue": (lambda: X.kthvalue(1), "values indices"),
    "cummax": (lambda: X.cummax(0), "values indices"),
    "frexp": (lambda: X.frexp(), "mantissa exponent"),
    "slogdet": (lambda: X.slogdet(), "sign logabsdet"),
    "svd": (lambda: torch.linalg.svd(X), "U S Vh"),
    "eigh": (lambda: torch.linalg.eigh(X), "eigenvalues eigenvectors"),
    "lstsq": (lambda: torch.linalg.lstsq(X, X), "solution residuals rank singular_values"),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_results_have_names(name: str) -> None:
    compute, names = NAMED[name]
    found = compute()
    assert isinstance(found, tuple)
    for value, one in zip(found, names.split(), strict=True):
        assert getattr(found, one) is value


def test_the_results_print_as_those_of_the_function() -> None:
    found = torch.max(torch.tensor([[1.0, 3.0], [2.0, 4.0]]), 1)
    assert (
        repr(found)
        == str(found)
        == ("twofold.return_types.max(\nvalues=tensor([3., 4.]),\nindices=tensor([1, 1]))")
    )
    assert isinstance(found, torch.return_types.max) and not isinstance(X.min(1), torch.return_types.max)
    assert type(torch.linalg.eigh(X)) is torch.return_types.linalg_eigh
    copied = pickle.loads(pickle.dumps(X.sort()))
    assert type(copied) is torch.return_types.sort and torch.equal(copied.values, X.sort().values)
    with pytest.raises(AttributeError, match="relu"):
        torch.return_types.relu  # noqa: B018
