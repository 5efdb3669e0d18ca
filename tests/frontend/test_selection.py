"""Functions whose result has a shape that depends on values."""

import numpy
import pytest

import twofold as torch


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 0), ()])
def test_nonzero_and_where_of_a_condition(shape):
    values = numpy.random.default_rng(0).integers(0, 2, shape)
    x = torch.tensor(values)
    expected = numpy.nonzero(numpy.atleast_1d(values))
    for found in (torch.where(x != 0), torch.nonzero(x, as_tuple=True), x.nonzero(as_tuple=True)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert one.dtype is torch.int64
            numpy.testing.assert_array_equal(one.numpy(), other)
    rows = numpy.argwhere(values)
    for found in (torch.nonzero(x), x.argwhere()):
        assert tuple(found.shape) == rows.shape
        numpy.testing.assert_array_equal(found.numpy(), rows)


def test_where_takes_one_or_three():
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="one tensor or three"):
        torch.where(x > 1, x)


def test_the_method_where_keeps_the_tensor():
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x.where(x > 1.5, 0.0).tolist() == [0.0, 2.0, 3.0]


def test_masked_select_broadcasts_and_has_a_gradient():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = torch.masked_select(x, torch.tensor([True, False]))
    assert found.tolist() == [1.0, 3.0]
    found.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_equal_compares_whole_tensors():
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(x, x.clone()) is True
    assert torch.equal(x, x[:1]) is False
    assert torch.equal(x, torch.tensor([1.0, float("nan")])) is False


@pytest.mark.parametrize("tier", ["unfused", "fused"])
@pytest.mark.parametrize("target", [[0, 5, 1], [0, -1, 1], [7, 8, -100]])
def test_a_target_that_is_no_class_is_an_error(tier, target):
    scores = torch.tensor(numpy.random.default_rng(1).normal(size=(3, 5)))
    torch._core.set_tier(tier)
    try:
        for loss in (torch.nn.functional.cross_entropy, torch.nn.functional.nll_loss):
            with pytest.raises(
                IndexError, match=r"class -?\d+ does not exist, there are 5 classes.*, at test_selection"
            ):
                loss(scores, torch.tensor(target)).item()
            assert numpy.isfinite(loss(scores, torch.tensor([0, 4, -100])).item())
    finally:
        torch._core.set_tier("auto")


def test_no_axes_are_all_axes_but_numpys_none():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.sum(()).item() == torch.sum(x, dim=[]).item() == 15.0
    assert x.mean(dim=()).item() == 2.5 and x.amax(()).item() == 5.0 and x.std(()).shape == ()
    assert x.sum((), keepdim=True).shape == (1, 1)
    assert x.sum(axis=()).equal(x) and torch.array_api.sum(x, axis=()).equal(x)
    assert torch.array_api.max(x, axis=()).equal(x) and torch.array_api.std(x, axis=()).shape == x.shape
