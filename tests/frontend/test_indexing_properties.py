"""Indexing against NumPy, on keys that Hypothesis makes up: reading, writing, adding, and gradients."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch

SETTINGS = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def shapes(draw):
    return tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))


@st.composite
def basic_items(draw, size):
    kind = draw(st.sampled_from(["integer", "slice"]))
    if kind == "integer":
        return draw(st.integers(-size, size - 1))
    ends = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3)))


@st.composite
def basic_keys(draw, shape):
    """Integers, slices, an ellipsis and new axes."""
    count = draw(st.integers(0, len(shape)))
    front = draw(st.integers(0, count))
    before = [draw(basic_items(shape[axis])) for axis in range(front)]
    after = [draw(basic_items(shape[axis])) for axis in range(len(shape) - (count - front), len(shape))]
    items = [*before, Ellipsis, *after]
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


@st.composite
def array_keys(draw, shape):
    """Index arrays that broadcast, whole slices, and a mask over some axes; no integers beside arrays.

    PyTorch lets an integer select before arrays apply, NumPy takes it for an array, so their results differ there.
    """
    common = tuple(draw(st.lists(st.integers(1, 3), min_size=0, max_size=2)))
    items, axis = [], 0
    while axis < len(shape):
        kind = draw(st.sampled_from(["array", "slice", "mask"]))
        size = shape[axis]
        if kind == "slice" or (kind == "mask" and any(isinstance(item, numpy.ndarray) for item in items)):
            items.append(slice(draw(st.integers(0, size)), None, draw(st.integers(1, 2))))
            axis += 1
        elif kind == "array":
            given_shape = tuple(1 if draw(st.booleans()) else length for length in common)
            numbers = st.integers(-size, size - 1)
            count = int(numpy.prod(given_shape))
            items.append(numpy.array([draw(numbers) for _ in range(count)], numpy.int64).reshape(given_shape))
            axis += 1
        else:
            width = draw(st.integers(1, len(shape) - axis))
            area = shape[axis : axis + width]
            flags = [draw(st.booleans()) for _ in range(int(numpy.prod(area)))]
            return (*items, numpy.array(flags).reshape(area))
    return tuple(items)


def cases():
    def both(shape):
        return st.tuples(st.just(shape), basic_keys(shape) | array_keys(shape))

    return shapes().flatmap(both)


def lifted(key):
    return tuple(torch.tensor(item) if isinstance(item, numpy.ndarray) else item for item in key)


def numbered(shape):
    return numpy.arange(float(numpy.prod(shape))).reshape(shape)


@SETTINGS
@given(cases())
def test_reading(case):
    shape, key = case
    x = numbered(shape)
    found = torch.tensor(x)[lifted(key)]
    assert tuple(found.shape) == x[key].shape
    numpy.testing.assert_array_equal(found.numpy(), x[key])


@SETTINGS
@given(cases(), st.booleans())
def test_writing(case, scalar):
    shape, key = case
    expected, x = numbered(shape), torch.tensor(numbered(shape))
    value = (
        numpy.array(-7.0) if scalar else -1.0 - numpy.arange(expected[key].size).reshape(expected[key].shape)
    )
    expected[key] = value
    x[lifted(key)] = -7.0 if scalar else torch.tensor(value)
    numpy.testing.assert_array_equal(x.numpy(), expected)


@SETTINGS
@given(cases())
def test_adding_reads_once_and_writes_once(case):
    shape, key = case
    expected, x = numbered(shape), torch.tensor(numbered(shape))
    expected[key] += 10.0
    x[lifted(key)] += 10.0
    numpy.testing.assert_array_equal(x.numpy(), expected)


@SETTINGS
@given(cases())
def test_gradient_of_reading_counts_every_use(case):
    shape, key = case
    x = torch.tensor(numbered(shape), requires_grad=True)
    found = x[lifted(key)]
    weights = 1.0 + numpy.arange(found.numel()).reshape(tuple(found.shape))
    (found * torch.tensor(weights)).sum().backward()
    expected = numpy.zeros(shape)
    numpy.add.at(expected, key, weights)
    numpy.testing.assert_array_equal(x.grad.numpy(), expected)


@SETTINGS
@given(cases())
def test_gradient_of_writing_is_zero_where_written(case):
    shape, key = case
    x = torch.tensor(numbered(shape), requires_grad=True)
    y = x * 1.0
    y[lifted(key)] = 3.0
    weights = 1.0 + numbered(shape)
    (y * torch.tensor(weights)).sum().backward()
    weights[key] = 0.0
    # nothing of x is left where the key shows all of it: the gradient then is absent, not a tensor of zeros
    found = numpy.zeros(shape) if x.grad is None else x.grad.numpy()
    numpy.testing.assert_array_equal(found, weights)


def test_overlapping_assignment_reads_before_it_writes():
    expected, x = numbered((6,)), torch.tensor(numbered((6,)))
    x[1:] = x[:-1]
    expected[1:] = expected[:-1].copy()
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("index", [5, -6, (0, 5)])
def test_an_index_outside_is_an_index_error(index):
    with pytest.raises(IndexError):
        torch.zeros(5, 5)[index]
