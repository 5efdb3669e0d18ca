"""Python indexing against NumPy, for reading and for writing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from on_nodes import Calls, gradients, run, same

import twofold as torch
from twofold.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from twofold.ir.interpret import evaluate
from twofold.ops.base import ops
from twofold.ops.indexing.keys import getitem, normalize_key, setitem
from twofold.transforms.reverse import vjp_graph

X = numpy.arange(120.0).reshape(2, 3, 4, 5)
I = numpy.array([1, 0, -1])
KEYS: list[Any] = [
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    Ellipsis,
    (Ellipsis, 2),
    (0, Ellipsis, slice(1, 3)),
    slice(None, None, -1),
    (slice(None), slice(None, None, 2), slice(3, None, -2)),
    None,
    (None, 0, None),
    (slice(1, 1),),
    (slice(5, 9),),
    (slice(None), slice(-2, None), Ellipsis, slice(None, None, -3)),
    (1, 2, 3, 4),
    (),
    (slice(None, None, -1), 1),
    [0, 1, 0],
    (slice(None), I),
    (slice(None), I, I),
    (I % 2, slice(None), I),
    (Ellipsis, I),
    (slice(None), [[0], [2]]),
    (slice(None), [[0], [2]], [0, 1]),
    (slice(0, 1), I, slice(1, 3), [0, 1, 4]),
    (None, I % 2, None),
    X > 60,
    X[..., 0] % 2 == 0,
    (slice(None), X[0, :, 0, 0] > 10),
    (numpy.array([True, False]), I % 3),
    numpy.zeros((0,), numpy.int64),
    numpy.array(1),
    True,
    False,
    (Ellipsis, slice(4, 0, -1), None),
]


@pytest.mark.parametrize("case", range(len(KEYS)))
def test_reading_as_numpy(case: int) -> None:
    calls, key = Calls(), KEYS[case]
    x = calls.lift(X)
    got = getitem(x, key, lift=calls.lift)
    numpy.testing.assert_array_equal(calls.value(got), X[key])


@pytest.mark.parametrize("case", range(len(KEYS)))
def test_writing_as_numpy(case: int) -> None:
    key = KEYS[case]
    shape = X[key].shape
    for value in (
        numpy.array(-7.0),
        -1.0 - numpy.arange(X[key].size).reshape(shape),
        numpy.full((1, *shape), 3.0),
    ):
        calls, wanted = Calls(), X.copy()
        wanted[key] = value.reshape(shape) if value.ndim > X[key].ndim else value
        got = setitem(calls.lift(X), key, calls.lift(value), lift=calls.lift)
        numpy.testing.assert_array_equal(calls.value(got), wanted)


@pytest.mark.parametrize("case", [0, 3, 8, 17, 19, 20, 26])
def test_adding_with_repeated_indices(case: int) -> None:
    calls, wanted, key = Calls(), X.copy(), KEYS[case]
    numpy.add.at(wanted, key, 2.0)
    got = setitem(calls.lift(X), key, calls.lift(numpy.array(2.0)), lift=calls.lift, accumulate=True)
    numpy.testing.assert_array_equal(calls.value(got), wanted)


def test_an_integer_selects_before_arrays_apply() -> None:
    calls = Calls()
    got = getitem(calls.lift(X), (0, slice(None), I[:2]), lift=calls.lift)
    numpy.testing.assert_array_equal(calls.value(got), X[0][:, I[:2]])
    assert X[0, :, I[:2]].shape != got.shape  # where NumPy differs from PyTorch


def test_a_moving_slice_keeps_its_signature() -> None:
    first, second = normalize_key((100, 3), slice(0, 10)), normalize_key((100, 3), slice(57, 67))
    assert first.attrs == second.attrs and (first.starts, second.starts) == ([0], [57])


def test_a_tensor_mask_is_observed() -> None:
    calls = Calls()
    x = calls.lift(X)
    mask = calls.lift(X > 60)
    got = getitem(x, mask, observe=lambda node: X > 60, lift=calls.lift)
    numpy.testing.assert_array_equal(calls.value(got), X[X > 60])
    with pytest.raises(ArgumentError, match="whose size depends on values"):
        getitem(x, mask)


@pytest.mark.parametrize(
    "key,kind,text",
    [
        (2, IndexRangeError, "index 2 of axis 0 with size 2. Use an index from -2 to 1."),
        ((0, -4), IndexRangeError, "index -4 of axis 1 with size 3. Use an index from -3 to 2."),
        ((0,) * 5, IndexRangeError, "5 indices for a tensor with 4 axes. Use at most 4."),
        ((Ellipsis, Ellipsis), IndexRangeError, "more than one '...' in an index. Keep one."),
        (1.5, DTypeError, "an index of type float."),
        (numpy.array([1.5]), DTypeError, "an index of float64. Use integers, or bools as a mask."),
        (numpy.ones(3, bool), ShapeError, "a mask of shape (3,) for axes of shape (2,)."),
        (slice(None, None, 0), ArgumentError, "a slice with step 0. Use another step."),
    ],
)
def test_errors(key: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        normalize_key(X.shape, key)
    assert str(caught.value).startswith(text)


def test_gradients_of_reading_and_writing() -> None:
    x, v = numpy.random.default_rng(0).normal(size=(3, 4)), numpy.random.default_rng(1).normal(size=(3, 2))
    positions = numpy.array([1, 1, -1])
    gradients(lambda x, i: getitem(x, (slice(None, None, -1), i)) * 2.0, x, positions)
    gradients(lambda x, v: setitem(x, (slice(None), slice(3, None, -2)), v * v), x, v)
    gradients(lambda x, v, i: setitem(x, i, ops.concatenate([v, v], 1)), x, v, positions)
    gradients(lambda x, v, i: setitem(x, i, ops.concatenate([v, v], 1), accumulate=True), x, v, positions)
    gradients(lambda x, i: ops.gather(ops.exp(x), 1, i), x, numpy.array([[0, 0], [3, -1]]))
    gradients(lambda x, v, i: ops.scatter(x, 1, i, v), x, v, numpy.array([[0, 0], [3, 1], [2, -1]]))
    gradients(lambda x, v, i: ops.scatter_add(x, 1, i, v), x, v, numpy.array([[0, 0], [3, 1], [2, -1]]))


def test_padding_row_of_an_embedding_has_no_gradient() -> None:
    weight, positions = numpy.ones((4, 2)), numpy.array([1, 2, 2])
    same(lambda i, w: ops.embedding(i, w, padding_idx=2), lambda i, w: w[i], positions, weight)
    calls = Calls()
    i, w = calls.lift(positions), calls.lift(weight)
    found = vjp_graph(calls.graph(ops.embedding(i, w, padding_idx=-2)), 1)
    assert found is not None
    given = [numpy.ones((3, 2)) if what == "cotangent" else calls.arrays[what] for what in found[1]]
    numpy.testing.assert_array_equal(evaluate(found[0], given)[0], [[0, 0], [1, 1], [0, 0], [0, 0]])


def test_gradient_of_a_product_with_zeros() -> None:
    gradients(lambda x: ops.cumprod(x, 0), numpy.array([2.0, 0.0, 3.0, 0.0, 1.5]), second=False)
    gradients(lambda x: ops.cumprod(x, 1), numpy.array([[2.0, -1.0, 3.0], [0.5, 0.2, -0.3]]))
    gradients(lambda x: ops.cumsum(x * x, 0), numpy.array([2.0, 0.5, 3.0]))


def test_sorting() -> None:
    x = numpy.random.default_rng(0).permutation(24).reshape(4, 6).astype(float)
    same(lambda x: ops.sort(x, 1).values, lambda x: numpy.sort(x, 1), x)
    same(lambda x: ops.sort(x, 0, descending=True).values, lambda x: -numpy.sort(-x, 0), x)
    same(lambda x: tuple(ops.topk(x, 2)), lambda x: (-numpy.sort(-x)[:, :2], numpy.argsort(-x)[:, :2]), x)
    gradients(lambda x: ops.sort(x * x, 1).values, x)
    assert run(ops.median, x) == 11


def test_masked_fill_keeps_the_dtype() -> None:
    got = run(
        lambda x, m: ops.masked_fill(x, m, -1e9),
        numpy.ones(3, numpy.float32),
        numpy.array([True, False, True]),
    )
    assert got.dtype == numpy.float32 and got.tolist() == [-1e9, 1, -1e9]
    with pytest.raises(DTypeError, match="a mask of int64"):
        run(lambda x, m: ops.masked_fill(x, m, 0), X, numpy.arange(5))


@pytest.mark.parametrize("size", [1, 16, 40, 9000])
@pytest.mark.parametrize("wrong", [50, -51, -1, 1 << 40])
def test_the_first_wrong_index_of_many_is_named(size: int, wrong: int) -> None:
    """Of single elements sixteen are gathered at a time; ``take_along_dim`` alone counts from the end."""
    for rows in (1, 3):
        index = numpy.arange(rows * size).reshape(rows, size) % 50
        index[-1, -1] = wrong
        expected = min(wrong, 2**31 - 1)
        with pytest.raises(IndexError, match=f"index {expected} .* Use indices from 0 to 49"):
            torch.gather(torch.zeros(rows, 50), 1, torch.tensor(index)).numpy()
        if wrong != -1:
            with pytest.raises(IndexError, match=f"index {expected} .* Use indices from -50 to 49"):
                torch.take_along_dim(torch.zeros(rows, 50), torch.tensor(index), 1).numpy()
        index = numpy.arange(rows * size).reshape(rows, size) % 100 - 50
        data = numpy.random.default_rng(0).normal(size=(rows, 50))
        found = torch.take_along_dim(torch.tensor(data), torch.tensor(index), 1).numpy()
        numpy.testing.assert_array_equal(found, numpy.take_along_axis(data, index, 1))


@pytest.mark.parametrize("shape", [(4, 3), (0, 3)])
def test_the_gradient_of_an_empty_choice_is_zeros(shape: tuple[int, int]) -> None:
    choices: list[Any] = [
        lambda x: torch.gather(x, 1, torch.zeros(x.shape[0], 0, dtype=torch.int64)),
        lambda x: torch.topk(x, 0, 1)[0],
        lambda x: torch.take_along_dim(x, torch.zeros(x.shape[0], 0, dtype=torch.int64), 1),
        lambda x: torch.gather(x, 0, torch.zeros(0, 3, dtype=torch.int64)),
    ]
    for choose in choices:
        x = torch.ones(shape, requires_grad=True)
        choose(x).sum().backward()
        assert x.grad.tolist() == torch.zeros(shape).tolist() and x.grad.shape == shape


def test_masks_of_several_axes_alone_and_beside_other_keys() -> None:
    generator = numpy.random.default_rng(0)
    x, mask = generator.normal(size=(3, 70, 90, 2)), generator.random((70, 90)) < 0.5
    rows = numpy.array([2, 0, 1])
    for key in ((slice(None), mask), (mask[:3, :70],), (slice(1), mask, 1), (rows, mask[:, :1])[:1]):
        found = torch.tensor(x)[tuple(torch.tensor(k) if isinstance(k, numpy.ndarray) else k for k in key)]
        numpy.testing.assert_array_equal(found.numpy(), x[key])
    few = numpy.zeros((3, 70), bool)
    few[[0, 2, 1], [5, 69, 0]] = True
    mixed = few, slice(None), numpy.array([1, 0, 1])  # a mask beside an index has one array for each axis
    found = torch.tensor(x)[torch.tensor(few), :, torch.tensor([1, 0, 1])]
    numpy.testing.assert_array_equal(found.numpy(), x[mixed])
    written = torch.tensor(x)
    written[:, torch.tensor(mask)] = torch.arange(2.0).double()
    expected = x.copy()
    expected[:, mask] = numpy.arange(2.0)
    numpy.testing.assert_array_equal(written.numpy(), expected)


def test_positions_of_more_elements_than_a_chunk() -> None:
    for shape in ((3, 101, 170), (40_000,), (), (0, 3), (2, 20_000)):
        x = numpy.random.default_rng(1).random(shape).astype(numpy.float32) - 0.3
        x = numpy.maximum(x, 0)
        found = torch.nonzero(torch.tensor(x))
        numpy.testing.assert_array_equal(found.numpy(), numpy.argwhere(x))
        apart = torch.nonzero(torch.tensor(x), as_tuple=True)
        for one, expected in zip(apart, numpy.nonzero(numpy.atleast_1d(x)), strict=True):
            numpy.testing.assert_array_equal(one.numpy(), expected)


def test_index_put_takes_values_of_the_dtype_of_the_input_as_pytorch():
    i, mask = torch.tensor([0, 2]), torch.tensor([True, False, True])
    for indices in ((i,), (mask,)):
        for values in (torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int64)):
            for accumulate in (False, True):
                with pytest.raises(TypeError, match="for float32"):
                    torch.zeros(3).index_put_(indices, values, accumulate)
    with pytest.raises(TypeError, match="values of int64 for float32"):
        torch.index_put(torch.zeros(3), (i,), torch.tensor(2))
    # one number for a mask fills, whatever its dtype
    assert torch.zeros(3).index_put_((mask,), torch.tensor([2])).tolist() == [2.0, 0.0, 2.0]


def test_a_source_has_a_gradient_of_zeros_where_the_index_is_empty_as_in_pytorch():
    i, wide = torch.zeros(0, dtype=torch.int64), torch.zeros(0, 2, dtype=torch.int64)
    x = torch.tensor([[-0.0, 1.0], [2.0, -0.0]])
    for call in (
        lambda s: x.index_copy(0, i, s),
        lambda s: x.index_add(0, i, s),
        lambda s: x.clone().index_copy_(-2, i, s),
        lambda s: x.index_reduce(0, i, s, "mean"),
        lambda s: x.scatter(0, wide, s),
        lambda s: x.scatter_add(0, wide, s),
        lambda s: x.scatter_reduce(0, wide, s, "sum"),
        lambda s: x.put(i, s.reshape(-1)),
    ):
        source = torch.ones(0, 2, requires_grad=True)
        found = call(source)
        assert found.numpy(force=True).tobytes() == x.numpy().tobytes()
        found.sum().backward()
        assert source.grad.shape == (0, 2)
    linear = torch.nn.Linear(3, 2)
    torch.zeros(4, 2).index_copy(0, i, linear(torch.ones(4, 3)[i])).sum().backward()
    assert linear.weight.grad.tolist() == [[0.0] * 3] * 2 and linear.bias.grad.tolist() == [0.0, 0.0]
    more = torch.ones(3, 2, requires_grad=True)
    x.scatter(0, wide, more).sum().backward()
    assert more.grad.tolist() == [[0.0, 0.0]] * 3


def test_means_of_complex_numbers() -> None:
    """What PyTorch 2.13 gives: the mean of both parts, with the number that is there or without."""
    x, index = torch.tensor([1 + 1j, 2.0, 3.0]), torch.tensor([0, 0, 2])
    values = torch.tensor([1j, 2.0, 1 + 1j])
    found = x.scatter_reduce(0, index, values, "mean").numpy()
    numpy.testing.assert_allclose(found, [1 + 2j / 3, 2, 2 + 0.5j], rtol=1e-6)
    assert x.scatter_reduce(0, index, values, "mean", include_self=False).tolist() == [1 + 0.5j, 2, 1 + 1j]
