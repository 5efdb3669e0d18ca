"""NumPy's functions of tensors; the expected values are NumPy's own, of arrays."""

import numpy
import pytest

import twofold as torch

VALUES = numpy.array([[1.5, -2.0], [0.25, 4.0]], dtype=numpy.float32)


@pytest.mark.parametrize("name", ["abs", "exp", "floor", "sign", "square", "isnan", "positive"])
def test_functions_of_one_tensor_make_tensors(name):
    function = getattr(numpy, name)
    made, wanted = function(torch.tensor(VALUES)), function(VALUES)
    assert isinstance(made, torch.Tensor)
    assert made.dtype == (torch.uint8 if wanted.dtype == bool else torch.float32)
    numpy.testing.assert_array_equal(made.numpy(), wanted)


def test_functions_of_a_tensor_and_an_array():
    x, array = torch.tensor(VALUES), numpy.arange(4.0).reshape(2, 2)
    for made in (numpy.add(x, array), numpy.add(array, x)):
        assert isinstance(made, torch.Tensor) and made.dtype is torch.float64
        numpy.testing.assert_array_equal(made.numpy(), VALUES + array)
    assert numpy.greater(x, 0).tolist() == [[1, 0], [1, 1]]
    assert numpy.maximum(x, 0).tolist() == [[1.5, 0.0], [0.25, 4.0]]
    assert isinstance(numpy.exp(torch.tensor(2.0)), torch.Tensor)
    assert int(numpy.ceil(torch.tensor(2.3))) == 3


def test_operators_stay_with_the_tensor_and_its_gradients():
    x = torch.tensor(VALUES, requires_grad=True)
    made = numpy.full((2, 2), 3.0) * x
    made.sum().backward()
    assert isinstance(made, torch.Tensor) and x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert isinstance(numpy.float64(2) * x, torch.Tensor)
    assert (numpy.zeros((2, 2)) < x.detach()).dtype is torch.bool


def test_a_tensor_that_requires_grad_is_refused():
    with pytest.raises(RuntimeError, match="detach"):
        numpy.abs(torch.tensor(VALUES, requires_grad=True))
