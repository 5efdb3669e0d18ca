"""A step that raises an error where its values are computed leaves parameters and states what they held."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import twofold as torch
from twofold import _core, nn


@pytest.fixture(params=["auto", "unfused", "fused"])
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    _core.set_tier(request.param)
    yield request.param
    _core.set_tier("auto")


OPTIMIZERS = [
    ("SGD", {"momentum": 0.9}),
    ("Adam", {}),
    ("AdamW", {}),
    ("RMSprop", {}),
    ("Adagrad", {}),
    ("NAdam", {}),
]


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_parameters_and_states_stay(name: str, settings: dict[str, float]) -> None:
    net = nn.Linear(4, 3)
    optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.1, **settings)
    x = torch.randn(5, 4)

    def step(target: list[int]) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), torch.tensor(target)).backward()
        optimizer.step()
        _core.flush()

    def held() -> list[bytes]:
        states = [
            value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)
        ]
        return [value.detach().numpy().tobytes() for value in [*net.parameters(), *states]]

    for _ in range(8):
        step([0, 1, 2, 0, 1])
    before = held()
    for _ in range(2):
        with pytest.raises(IndexError, match="class 7 does not exist"):
            step([0, 1, 7, 0, 1])
        assert held() == before
    step([0, 1, 2, 0, 1])
    assert held() != before


@pytest.mark.usefixtures("tier")
def test_what_another_tensor_shows_is_not_taken_for_it() -> None:
    x, index = torch.zeros(3), torch.tensor([5])
    bad = torch.ones(3)[index] + torch.arange(3)
    x.copy_(bad)
    with pytest.raises(IndexError):
        x.numpy()
    with pytest.raises(RuntimeError, match="never computed"):
        bad.numpy()
