"""What has no meaning for complex numbers, or no kernel, is refused; it never computes on their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.errors import DTypeError

INDEX = torch.tensor([0, 1, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.index_reduce(x, 0, INDEX, x, "prod"),
        lambda x: torch.index_reduce(x, 0, INDEX, x, "amax"),
        lambda x: torch.scatter_reduce(x, 0, INDEX, x, "prod"),
        lambda x: torch.scatter_reduce(x, 0, INDEX, x, "amin"),
        lambda x: torch.scatter(x, 0, INDEX, x, reduce="multiply"),
        lambda x: torch.cummax(x, 0),
        lambda x: torch.cummin(x, 0),
        lambda x: torch.histc(x, 2),
    ],
)
def test_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises(DTypeError, match="complex64"):
        call(torch.tensor([1 + 1j, 2 - 1j, 0.5j]))
