"""Checks of a program's own conditions, against what PyTorch 2.13 does."""

from __future__ import annotations

import pytest

import twofold as torch


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
        (lambda cond, message=None: torch._check_with(KeyError, cond, message), KeyError),
    ],
)
def test_checks_raise_their_error_with_the_message(check, error):
    assert check(True) is None and check(True, lambda: 1 / 0) is None
    with pytest.raises(error, match="told"):
        check(False, lambda: "told")
    with pytest.raises(error, match="Expected cond to be True"):
        check(False)
    for wrong in (lambda: check(1), lambda: check(torch.tensor(True)), lambda: check(False, "text")):
        with pytest.raises(TypeError, match="must be a"):
            wrong()


def test_checks_of_tensors_and_sizes():
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="told"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "told")
    with pytest.raises(KeyError):
        torch._check_tensor_all_with(KeyError, torch.tensor(False))
    with pytest.raises(TypeError, match="dtype"):
        torch._check_tensor_all(torch.ones(2))
    torch._check_is_size(0)
    for wrong in (lambda: torch._check_is_size(-1), lambda: torch._check_is_size(3, max=2)):
        with pytest.raises(RuntimeError):
            wrong()
    torch._assert_async(torch.tensor(3.0))
    with pytest.raises(RuntimeError, match="told"):
        torch._assert_async(torch.tensor(False), "told")
    with pytest.raises(RuntimeError):
        torch._assert_async(torch.ones(2))


def test_sizes_as_numbers():
    assert (torch.sym_max(2, 3.0), torch.sym_max(3, 2.0), torch.sym_min(2, 3)) == (3.0, 3.0, 2)
    assert isinstance(torch.sym_max(3, 2.0), float) and torch.sym_int(2.7) == 2 and torch.sym_int(-2.7) == -2
    assert torch.sym_float(2) == 2.0 and torch.sym_not(False) and torch.sym_ite(False, 1, 2) == 2
    assert torch.sym_sum([1, 2]) == 3


def test_layouts_that_no_tensor_has_can_be_asked_for_and_not_made():
    x = torch.ones(2, 2)
    for name in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"):
        one = getattr(torch, name)
        assert x.layout != one and x.to_sparse().layout != one and isinstance(one, torch.layout)
        with pytest.raises(RuntimeError, match="not available"):
            torch.zeros(2, layout=one)
