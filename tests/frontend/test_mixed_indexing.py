"""Keys of every mix, and assignments of a tensor to parts of itself, against NumPy; gradients of what is assigned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch

SETTINGS = settings(max_examples=120, deadline=None, derandomize=True)
SIZES = (4, 3, 5, 2)


@st.composite
def slices(draw, size):
    """Slices of every step, backwards ones included."""
    ends = st.none() | st.integers(-size - 1, size + 1)
    return slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@st.composite
def keys(draw, shape):
    """Slices, integers, arrays that broadcast, at most one mask, new axes and at most one ellipsis, in any order."""
    common = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    kinds = ["slice", "integer", "new axis", "end", draw(st.sampled_from(["array", "mask"]))]
    items, axis, masked, made = [], 0, False, 0
    skipped = draw(st.integers(0, len(shape)))  # axes that the ellipsis stands for
    at = draw(st.integers(-1, len(shape) - skipped))
    may_end = at < 0  # before the last axis: an ellipsis would stand for the axes that are left
    while axis < len(shape):
        if axis == at and (not items or items[-1] is not Ellipsis):
            items.append(Ellipsis)
            axis, at = axis + skipped, -1
            continue
        kind = draw(st.sampled_from(kinds))
        if kind == "end" and may_end:
            break
        if kind == "slice" or kind == "end":
            items.append(draw(slices(shape[axis])))
        elif kind == "integer":
            items.append(draw(st.integers(-shape[axis], shape[axis] - 1)))
        elif kind == "array":
            own = tuple(1 if draw(st.booleans()) else size for size in common)
            numbers = st.integers(-shape[axis], shape[axis] - 1)
            items.append(np.array([draw(numbers) for _ in range(int(np.prod(own)))], np.int64).reshape(own))
        elif kind == "mask" and not masked:
            items.append(np.array([draw(st.booleans()) for _ in range(shape[axis])]))
            masked = True
        else:
            if made < 2:
                items.append(None)
                made += 1
                continue
            items.append(slice(None))
        axis += 1
    return tuple(items)


def cases():
    shapes = st.integers(1, 4).map(lambda count: SIZES[:count])
    return shapes.flatmap(lambda shape: st.tuples(st.just(shape), keys(shape)))


def lifted(key):
    return tuple(torch.tensor(item) if isinstance(item, np.ndarray) else item for item in key)


def integers_first(x, key):
    """What is left of a NumPy view, and of the key, once the integers have selected, as they do in PyTorch."""
    if not any(isinstance(item, np.ndarray) for item in key):
        return x, key
    consumed = sum(item is not None and item is not Ellipsis for item in key)
    whole = [slice(None)] * (x.ndim - consumed)
    items = [part for item in key for part in (whole if item is Ellipsis else [item])]
    if not any(item is Ellipsis for item in key):
        items += whole
    selected = tuple(item if isinstance(item, int) else slice(None) for item in items if item is not None)
    return x[selected], tuple(item for item in items if not isinstance(item, int))


def numbered(shape):
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


@SETTINGS
@given(cases())
def test_reading(case):
    shape, key = case
    x, rest = integers_first(numbered(shape), key)
    found = torch.tensor(numbered(shape))[lifted(key)]
    assert tuple(found.shape) == x[rest].shape
    np.testing.assert_array_equal(found.numpy(), x[rest])


@SETTINGS
@given(cases(), st.integers(0, 2))
def test_writing_what_broadcasts(case, dropped):
    shape, key = case
    expected = numbered(shape)
    part, rest = integers_first(expected, key)
    area = part[rest].shape
    value = -numbered(area)[(0,) * min(dropped, len(area))] if np.prod(area) else np.zeros(area[dropped:])
    x = torch.tensor(numbered(shape))
    x[lifted(key)] = torch.tensor(value)
    part[rest] = value
    np.testing.assert_array_equal(x.numpy(), expected)


@SETTINGS
@given(cases())
def test_gradients_of_both_sides_of_an_assignment(case):
    shape, key = case
    position = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    part, rest = integers_first(position, key)
    reached = part[rest]
    x = torch.tensor(numbered(shape), requires_grad=True)
    value = torch.tensor(-numbered(reached.shape), requires_grad=True)
    y = x * 1.0
    y[lifted(key)] = value
    weights = np.random.default_rng(2).integers(1, 9, shape).astype(float)
    (y * torch.tensor(weights)).sum().backward()
    # of several values for one position the last one stays, in both libraries
    last = {int(spot): number for number, spot in enumerate(reached.ravel())}
    of_value = [
        weights.ravel()[spot] if last[int(spot)] == n else 0.0 for n, spot in enumerate(reached.ravel())
    ]
    kept = weights.copy().ravel()
    kept[reached.ravel()] = 0.0
    if reached.size:
        np.testing.assert_array_equal(value.grad.numpy(), np.reshape(of_value, reached.shape))
    found = np.zeros(shape) if x.grad is None else x.grad.numpy()
    np.testing.assert_array_equal(found, kept.reshape(shape))


OVERLAPS = {
    "moved on": lambda x: (slice(1, None), slice(None, -1)),
    "moved back": lambda x: (slice(None, -1), slice(1, None)),
    "reversed": lambda x: (slice(None), slice(None, None, -1)),
    "half reversed": lambda x: (slice(None, None, 2), slice(None, None, -2)),
    "rotated by an array": lambda x: (np.arange(len(x)), np.roll(np.arange(len(x)), 2)),
    "an array that repeats": lambda x: (np.array([0, 1, 0]), np.array([1, 0, 2])),
    "a mask and its opposite": lambda x: (np.arange(len(x)) % 2 == 0, np.arange(len(x)) % 2 == 1),
    "a slice from an array": lambda x: (slice(1, 4), np.array([3, 2, 1])),
    "columns": lambda x: ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
}


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("tier", ["unfused", "fused"])
def test_parts_of_itself_are_read_before_they_are_written(name, tier):
    torch._core.set_tier(tier)
    try:
        expected, x = numbered((6, 4)), torch.tensor(numbered((6, 4)))
        to, source = OVERLAPS[name](expected)
        keys = [key if isinstance(key, tuple) else (key,) for key in (to, source)]
        for _ in range(2):
            expected[to] = expected[source].copy()
            x[lifted(keys[0])] = x[lifted(keys[1])]
            # the same through views that are made first
            base = torch.tensor(numbered((6, 4)))
            target, read = base[lifted(keys[0])], base[lifted(keys[1])]
            if not any(isinstance(item, np.ndarray) for key in keys for item in key):
                target.copy_(read)
                other = numbered((6, 4))
                other[to] = other[source].copy()
                np.testing.assert_array_equal(base.numpy(), other)
        np.testing.assert_array_equal(x.numpy(), expected)
    finally:
        torch._core.set_tier("auto")


def test_adding_to_itself_reads_the_old_values():
    expected, x = numbered((6,)), torch.tensor(numbered((6,)))
    expected[1:] += expected[:-1].copy()
    x[1:] += x[:-1]
    np.testing.assert_array_equal(x.numpy(), expected)
    mask = expected > 4
    expected[mask] *= expected[mask].copy()
    x[torch.tensor(mask)] *= x[torch.tensor(mask)]
    np.testing.assert_array_equal(x.numpy(), expected)
