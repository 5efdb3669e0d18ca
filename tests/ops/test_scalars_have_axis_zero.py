"""A tensor without axes takes axis 0 or -1 where PyTorch's does, and no other one."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch

SAME = (
    "sum", "mean", "prod", "amax", "amin", "cumsum", "cumprod", "squeeze", "logsumexp", "logcumsumexp",
    "nansum", "nanmean", "flip",
)  # fmt: skip
PAIRS = ("max", "min", "sort", "median", "mode", "cummax", "cummin")
CALLS: dict[str, Any] = {
    **{name: lambda x, d, name=name: getattr(x, name)(d) for name in SAME},
    **{name: lambda x, d, name=name: getattr(x, name)(dim=d)[0] for name in PAIRS},
    "squeeze of several": lambda x, d: x.squeeze([d]),
    "transpose": lambda x, d: x.transpose(d, d),
    "swapaxes": lambda x, d: x.swapaxes(d, d),
    "movedim": lambda x, d: x.movedim(d, d),
    "topk": lambda x, d: x.topk(1, d)[0],
    "kthvalue": lambda x, d: x.kthvalue(1, d)[0],
    "unsqueeze": lambda x, d: x.unsqueeze(d).reshape(()),
    "softmax": lambda x, d: 3 * x.softmax(d),
    "log_softmax": lambda x, d: 3 + x.log_softmax(d),
    "argmax": lambda x, d: 3.0 + x.argmax(d),
    "gather": lambda x, d: x.gather(d, torch.tensor(0)),
    "index_select": lambda x, d: x.index_select(d, torch.tensor([0])),
}


@pytest.mark.parametrize("name", CALLS)
def test_axis_zero_of_a_scalar(name: str) -> None:
    for dim in (0, -1):
        found = CALLS[name](torch.tensor(3.0), dim)
        assert found.shape == () and found.item() == 3.0
    for dim in (1, -3):
        with pytest.raises(IndexError):
            CALLS[name](torch.tensor(3.0), dim)


def test_one_scalar_has_no_two_largest_elements() -> None:
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        torch.topk(torch.tensor(3.0), 2)
