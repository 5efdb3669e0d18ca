"""Masked reductions against NumPy's masked arrays."""

import numpy
import pytest

import twofold as torch

X = numpy.random.default_rng(0).normal(size=(4, 5))
MASK = numpy.random.default_rng(1).random((4, 5)) < 0.6
MASKED = numpy.ma.array(X, mask=~MASK)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "var", "std", "median"])
@pytest.mark.parametrize("dim", [0, 1])
def test_as_numpy(name, dim):
    found = getattr(torch.masked, name)(torch.tensor(X), dim, mask=torch.tensor(MASK)).numpy()
    function = {"amax": "max", "amin": "min"}.get(name, name)
    if name == "median":
        lines = [numpy.sort(line.compressed()) for line in (MASKED if dim else MASKED.T)]
        expected = [line[(len(line) - 1) // 2] for line in lines]
    elif name in ("var", "std"):
        expected = getattr(MASKED, name)(dim, ddof=1)
    else:
        expected = getattr(MASKED, function)(dim)
    numpy.testing.assert_allclose(found, numpy.asarray(expected), rtol=1e-12)


def test_what_is_left_out_gets_no_gradient():
    x = torch.tensor(X, requires_grad=True)
    torch.masked.softmax(x, 1, mask=torch.tensor(MASK)).square().sum().backward()
    assert not x.grad.numpy()[~MASK].any()
    assert numpy.abs(x.grad.numpy()[MASK]).max() > 1e-3


def test_a_mean_of_integers_is_an_error():
    with pytest.raises(TypeError, match="takes floating dtypes, not int64"):
        torch.masked.mean(torch.arange(3))
