"""Scales given by position before their operands, as programs of older versions of PyTorch do."""

import numpy as np
import pytest

import twofold as torch

X = np.arange(4.0, dtype=np.float32).reshape(2, 2)
A = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
B = np.array([[7.0, 11.0], [13.0, 17.0]], np.float32)

CASES = [
    ("add", (A,), (3,), X + 3 * A),
    ("sub", (A,), (3,), X - 3 * A),
    ("addcmul", (A, B), (3,), X + 3 * A * B),
    ("addcdiv", (A, B), (3,), X + 3 * A / B),
    ("addmm", (A, B), (2, 3), 2 * X + 3 * A @ B),
    ("addmm", (A, B), (2,), 2 * X + A @ B),
    ("addr", (A[0], B[0]), (2, 3), 2 * X + 3 * np.outer(A[0], B[0])),
    ("addbmm", (A[None], B[None]), (2, 3), 2 * X + 3 * A @ B),
]


@pytest.mark.filterwarnings("ignore:.*before the operands")
@pytest.mark.parametrize("name, operands, scales, expected", CASES)
def test_each_form(name, operands, scales, expected):
    given = [torch.tensor(one) for one in operands]
    np.testing.assert_allclose(getattr(torch.tensor(X), name)(*scales, *given).numpy(), expected, rtol=1e-6)
    changed = torch.tensor(X)
    getattr(changed, f"{name}_")(*scales, *given)
    np.testing.assert_allclose(changed.numpy(), expected, rtol=1e-6)
    first = (torch.tensor(X), *scales) if len(operands) == 1 or name.startswith("addc") else None
    first = first or (scales[0], torch.tensor(X), *scales[1:])
    np.testing.assert_allclose(getattr(torch, name)(*first, *given).numpy(), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*before the operands")
def test_products_of_vectors_and_batches():
    vector, batch = torch.tensor(X[0]), torch.tensor(X[None])
    np.testing.assert_allclose(
        vector.addmv(2, 3, torch.tensor(A), torch.tensor(B[0])).numpy(), 2 * X[0] + 3 * A @ B[0], rtol=1e-6
    )
    found = batch.baddbmm(2, 3, torch.tensor(A[None]), torch.tensor(B[None]))
    np.testing.assert_allclose(found.numpy(), 2 * X[None] + 3 * (A @ B)[None], rtol=1e-6)


def test_warning_names_the_line_and_the_keyword():
    with pytest.warns(UserWarning, match="add: numbers before the operands are deprecated.*alpha=") as warned:
        torch.ones(2).add_(2, torch.ones(2))
    assert warned[0].filename == __file__


def test_step_of_an_older_optimizer():
    weight, moment = torch.ones(2, requires_grad=True), torch.zeros(2)
    with pytest.warns(UserWarning):
        (weight * 3).sum().backward()
        moment.mul_(0.9).addcmul_(0.1, weight.grad, weight.grad)
        weight.data.addcdiv_(-0.5, weight.grad, moment.sqrt().add_(1e-8))
    np.testing.assert_allclose(weight.detach().numpy(), 1 - 0.5 * 3 / np.sqrt(0.9), rtol=1e-6)


def test_other_numbers_of_arguments_are_told():
    with pytest.raises(TypeError, match="positional"):
        torch.ones(2).add(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="positional"):
        torch.ones(2, 2).addmm(1, 2, 3, torch.ones(2, 2), torch.ones(2, 2))
