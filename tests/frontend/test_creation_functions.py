"""Creation functions beside the operations, and questions about a tensor."""

from typing import Any
from unittest.mock import Mock

import numpy
import pytest

import twofold as torch
from twofold.errors import DTypeError


def test_scalars_and_ranges():
    assert torch.scalar_tensor(3).dtype is torch.float32 and torch.scalar_tensor(3).item() == 3
    assert torch.range(1, 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert torch.range(4, 1, -1.5).tolist() == [4.0, 2.5, 1.0]


def test_drawn_integers_have_the_shape_and_dtype_of_the_input():
    torch.manual_seed(0)
    found = torch.randint_like(torch.zeros(50, dtype=torch.float64), 2, 5)
    assert found.dtype is torch.float64 and set(found.tolist()) == {2.0, 3.0, 4.0}
    assert set(torch.randint_like(torch.zeros(50), 2).tolist()) == {0.0, 1.0}
    assert set(torch.randint_like(torch.zeros(50), high=2).tolist()) == {0.0, 1.0}
    with pytest.raises(TypeError, match="high"):
        torch.randint_like(torch.zeros(2))


def test_layouts_are_checked():
    assert tuple(torch.empty_strided((2, 3), (1, 2)).shape) == (2, 3)
    assert torch.zeros(1, dtype=torch.int64).new_empty_strided((2,), (1,)).dtype is torch.int64
    with pytest.raises(ValueError, match="one stride per size"):
        torch.empty_strided((2, 3), (1,))
    with pytest.raises(ValueError, match="every axis once"):
        torch.empty_permuted((2, 3), (0, 0))


def test_an_object_that_has_every_attribute_is_no_dtype():
    with pytest.raises(DTypeError, match="cannot work with these arguments"):
        torch.zeros_like(Mock())


def test_questions():
    x = torch.zeros(2, 3)
    assert x.nbytes == 24 and x.is_signed() and x.is_same_size(x + 1) and not torch.is_nonzero(x[0, 0])
    assert torch.ones(2).type_as(torch.tensor([1])).dtype is torch.int64


def test_a_range_of_integers_is_whole():
    found = torch.range(0, 5, 2, dtype=torch.int64)
    assert found.dtype is torch.int64 and found.tolist() == [0, 2, 4]
    assert torch.range(0, 3, dtype=torch.int64).tolist() == [0, 1, 2, 3]
    assert torch.range(0.0, 0.3, 0.1).numel() == 3  # 0.3 / 0.1 rounds below 3, as in PyTorch


def test_elements_with_a_dtype_keep_it_in_a_list():
    assert torch.tensor([numpy.float64(1), numpy.float64(2)]).dtype is torch.float64
    assert torch.tensor([[numpy.ones(2)], [numpy.zeros(2)]]).dtype is torch.float64
    assert torch.tensor([torch.tensor(1.0, dtype=torch.float64)]).dtype is torch.float64
    assert torch.tensor([1.0, 2]).dtype is torch.tensor([numpy.float32(1)]).dtype is torch.float32


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (lambda t: [t([1.0]), t([2.0])], (2,)),
        (lambda t: [[t([[1.0]])], [t(2.0)]], (2, 1)),
        (lambda t: [[t([1.0]), t([2.0])], t([3.0, 4.0])], (2, 2)),
        (lambda t: [[1.0, 2.0], t([3.0, 4.0])], (2, 2)),
        (lambda t: [[2.0], t([[1.0]])], (2, 1)),
        (lambda t: [numpy.array([1.0]), t([2.0])], (2, 1)),
        (lambda t: (t([1.0]), 2), (2,)),
    ],
)
def test_a_tensor_of_one_element_is_a_number_in_a_list(data, shape):
    values = [float(value) for value in numpy.arange(1.0, 5.0)]
    for make in (torch.tensor, torch.as_tensor, torch.Tensor, torch.zeros(1).new_tensor):
        made = make(data(torch.tensor))
        assert tuple(made.shape) == shape
        assert sorted(made.flatten().tolist()) == values[: made.numel()]


@pytest.mark.parametrize("data", [[[1.0, 2.0]], [[3.0], [1.0, 2.0]], [[]]])
def test_a_tensor_of_many_elements_is_no_number(data):
    with pytest.raises(ValueError, match="one number is expected"):
        torch.tensor([torch.tensor(values) for values in data])


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (lambda t: [2.0, t(1.0, dtype=torch.float64)], torch.float64),
        (lambda t: [1, t(2.0, dtype=torch.float16)], torch.float16),
        (lambda t: [t(2), 1.5], torch.float32),
        (lambda t: [t([1]), t([2.0])], torch.float32),
        (lambda t: [t(1.0, dtype=torch.bfloat16), 1], torch.bfloat16),
        (lambda t: [t(True), t(2, dtype=torch.int8)], torch.int8),
        (lambda t: [1j, t(2.0, dtype=torch.float64)], torch.complex128),
        (lambda t: [numpy.float32(2), 1.5], torch.float32),
        (lambda t: [1.5, numpy.float64(1)], torch.float64),
    ],
)
def test_the_elements_of_a_list_are_promoted(data, dtype):
    made = torch.tensor(data(torch.tensor))
    assert made.dtype is dtype
    assert made.tolist() == [
        complex(one).real if not made.is_complex() else complex(one) for one in data(torch.tensor)
    ]


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, torch.int64, ()),
        (-(2**63), torch.int64, ()),
        ([2**63 - 1, 0], torch.int64, (2,)),
        ((0.5, 1e300), torch.float32, (2,)),
        ([1, 2.5], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        (True, torch.bool, ()),
        ([], torch.float32, (0,)),
        ([1j], torch.complex64, (1,)),
    ],
)
def test_numbers_have_the_dtype_of_their_kind(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    made = torch.tensor(data)
    assert (made.dtype, tuple(made.shape)) == (dtype, shape)
    with numpy.errstate(over="ignore"):
        numpy.testing.assert_array_equal(made.numpy(), numpy.array(data).astype(dtype.numpy))


def test_numbers_beyond_int64_are_refused() -> None:
    with pytest.raises(ValueError, match="9223372036854775808"):
        torch.tensor([0, 2**63])


def test_floats_follow_the_default_dtype() -> None:
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float64, torch.float16):
            torch.set_default_dtype(dtype)
            assert torch.tensor(0.1).dtype is torch.tensor([0.1]).dtype is dtype
            assert torch.tensor([1]).dtype is torch.int64
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "full_like"])
def test_what_is_made_like_a_tensor_requires_no_gradient(name: str) -> None:
    x = torch.ones(2, requires_grad=True)
    more = (2.0,) if name == "full_like" else ()
    made = getattr(torch, name)(x, *more)
    assert not made.requires_grad and made.is_leaf
    assert getattr(torch, name)(x, *more, requires_grad=True).requires_grad


def test_types_of_python_are_dtypes_of_64_bits():
    for kind, dtype in (
        (float, torch.float64),
        (complex, torch.complex128),
        (int, torch.int64),
        (bool, torch.bool),
    ):
        x = torch.ones(2)
        for found in (
            torch.ones(2, dtype=kind),
            x.to(kind),
            x.sum(dtype=kind),
            torch.tensor([1], dtype=kind),
        ):
            assert found.dtype is dtype
    assert torch.nn.Linear(1, 1, dtype=float).to(torch.float32).to(float).weight.dtype is torch.float64


def test_what_is_no_dtype_is_refused():
    x = torch.ones(2)
    for wrong in (True, False, [1], 2.5):
        with pytest.raises(TypeError):
            x.type(wrong)
    for wrong in (True, False):
        with pytest.raises(TypeError, match="before non_blocking"):
            x.to(wrong)
        assert x.to(torch.float32, wrong).dtype is torch.float32
    with pytest.raises(TypeError):
        x.to_dense(True)


def test_the_class_of_tensors_is_the_default_type():
    assert torch.ones(2, dtype=torch.float64).type(torch.Tensor).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.ones(2, dtype=torch.float32).type(torch.Tensor).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("make", [int, numpy.int64, numpy.int32, torch.tensor])
def test_whole_numbers_make_whole_ranges(make):
    for found in (torch.arange(make(3)), torch.arange(0, make(3)), torch.arange(end=make(3))):
        assert found.dtype is torch.int64 and found.tolist() == [0, 1, 2]
    assert torch.arange(make(1), 2.5).dtype is torch.float32
    assert torch.arange(torch.tensor([2, 3]).max()).tolist() == [0, 1, 2]


def test_numpy_numbers_fill_as_python_numbers_do():
    assert torch.full((2,), numpy.float64(1.5)).dtype is torch.float32
    assert torch.full((2,), numpy.int64(3)).tolist() == [3, 3]
    torch.set_default_dtype(torch.float64)
    try:
        for made in (torch.full((2,), numpy.float32(1.5)), torch.arange(numpy.float32(2.5))):
            assert made.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_a_tensor_without_axes_is_a_size(name):
    two = torch.tensor([1, 2]).max()
    assert getattr(torch, name)(two).shape == (2,)
    assert getattr(torch, name)(two, 3).shape == getattr(torch, name)((two, 3)).shape == (2, 3)
    assert torch.ones(1).new_zeros(two).shape == torch.ones(1).new_empty(two).shape == (2,)


def test_tensors_without_axes_fill_as_numbers_do():
    assert torch.full((2,), torch.tensor(1.5, dtype=torch.float64)).dtype is torch.float32
    assert torch.full((2,), torch.tensor(3, dtype=torch.int8)).dtype is torch.int64
    assert torch.full((2,), torch.tensor(True)).dtype is torch.bool
    with pytest.raises(RuntimeError, match="one number"):
        torch.full((2,), torch.tensor([1.0, 2.0]))


def test_complex_ends_make_a_complex_line():
    found = torch.linspace(1, 1j, 3)
    assert found.dtype is torch.complex64 and found.tolist() == [1, 0.5 + 0.5j, 1j]
    assert torch.linspace(0, torch.tensor(2j), 2, dtype=torch.complex128).dtype is torch.complex128


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"])
def test_a_tensor_without_axes_is_a_model_of_others(name):
    model = torch.tensor(2, dtype=torch.float64)
    for made in (getattr(torch, name)(model), getattr(torch, name)(input=model)):
        assert made.shape == () and made.dtype is torch.float64
    assert torch.full_like(model, torch.tensor(3)).item() == 3.0
    assert torch.full_like(model, torch.tensor(3)).dtype is torch.float64
