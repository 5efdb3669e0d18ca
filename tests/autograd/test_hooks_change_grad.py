"""``.grad`` while a pass goes on from it: hooks that change it, leaves that share one tensor, passes that fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import twofold as torch

Step = Callable[[], None]


@pytest.fixture
def leaves() -> tuple[torch.nn.Parameter, torch.nn.Parameter, Step]:
    """Two leaves whose gradients are 2 and 5, and a pass; the second is reached first."""
    a, b = torch.nn.Parameter(torch.tensor([1.0, 2.0])), torch.nn.Parameter(torch.tensor([3.0, 4.0]))

    def step() -> None:
        ((a * 2).sum() + (b * 5).sum()).backward()

    return a, b, step


def grads(*leaves: torch.Tensor) -> list[list[float] | None]:
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


def zeroing(leaf: torch.Tensor) -> Callable[[torch.Tensor], None]:
    """A hook that writes to the gradient of a leaf."""

    def hook(_: torch.Tensor) -> None:
        leaf.grad.zero_()

    return hook


def clearing(*leaves: torch.Tensor) -> Callable[[torch.Tensor], None]:
    """A hook that takes away gradients."""

    def hook(_: torch.Tensor) -> None:
        for leaf in leaves:
            leaf.grad = None

    return hook


def test_leaves_share_a_gradient(leaves) -> None:
    a, b, step = leaves
    a.grad = b.grad = torch.tensor([100.0, 100.0])
    step()
    step()
    assert a.grad is b.grad and grads(a) == [[114.0, 114.0]]


@pytest.mark.parametrize(("start", "wanted"), [(1, [2.0, 7.0, 5.0, 0.0]), (2, [2.0, 2.0, 5.0, 5.0])])
def test_gradients_are_views_of_one_tensor(leaves, start, wanted) -> None:
    a, b, step = leaves
    flat = torch.zeros(4)
    a.grad, b.grad = flat[:2], flat[start : start + 2]
    step()
    step()
    assert flat.tolist() == [2 * value for value in wanted]


def test_weights_share_a_gradient() -> None:
    v, w = (torch.nn.Parameter(torch.ones(8, 8)) for _ in range(2))
    v.grad = w.grad = torch.zeros(8, 8)
    x = torch.ones(3, 8)
    ((x @ v).sum() + 2 * (x @ w).sum()).backward()
    assert v.grad is w.grad and (v.grad == 9).all()


def test_a_hook_writes_to_the_gradient_that_is_added_to(leaves) -> None:
    a, b, step = leaves
    step()
    a.register_hook(zeroing(a))
    for passes in (2, 3):
        step()
        assert grads(a, b) == [[2.0, 2.0], [5.0 * passes] * 2]


def test_a_hook_of_a_value_writes_to_a_gradient(leaves) -> None:
    a, _, step = leaves
    step()
    y = a * 1
    y.register_hook(zeroing(a))
    (y * 2).sum().backward()
    assert grads(a) == [[2.0, 2.0]]


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hook_takes_away_the_gradient_of_another_leaf(leaves, kind) -> None:
    a, b, step = leaves
    step()
    getattr(b, kind)(clearing(a))
    for passes in (2, 3):
        step()
        assert grads(a, b) == [[2.0, 2.0], [5.0 * passes] * 2]


def test_hooks_take_away_all_gradients(leaves) -> None:
    a, b, step = leaves
    step()
    for leaf in (a, b):
        leaf.register_post_accumulate_grad_hook(clearing(a, b))
    step()
    step()
    assert grads(a, b) == [None, None]


def test_an_update_in_a_hook(leaves) -> None:
    a, b, step = leaves
    optimizer = torch.optim.SGD([a], lr=0.5)

    def update(_: torch.Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()

    a.register_post_accumulate_grad_hook(update)
    for _ in range(3):
        step()
    assert a.tolist() == [-2.0, -1.0] and grads(a, b) == [None, [15.0, 15.0]]


def test_a_pass_in_which_a_bad_value_is_found_leaves_gradients_alone() -> None:
    w, b = torch.nn.Parameter(torch.ones(4, 4)), torch.nn.Parameter(torch.ones(4))

    def loss(z: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(z @ w + b).sum()

    loss(torch.ones(3, 4)).backward()
    before = grads(w, b)
    bad = torch.ones(3, 4)
    bad[1] = -1.0
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan values"):
        loss(bad).backward()
    assert grads(w, b) == before
