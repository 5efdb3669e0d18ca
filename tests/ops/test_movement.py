"""Views and joining: values against NumPy, writes through views, errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from on_nodes import gradients, run, same

import twofold as torch
from twofold.errors import ArgumentError, AxisError, ShapeError
from twofold.ops.base import apply, ops

X = numpy.arange(24.0).reshape(2, 3, 4)

VIEWS: list[tuple[Any, Any]] = [
    (lambda x: ops.reshape(x, 4, -1), lambda x: x.reshape(4, -1)),
    (lambda x: ops.reshape(x, (24,)), lambda x: x.reshape(24)),
    (lambda x: ops.flatten(x, 1), lambda x: x.reshape(2, 12)),
    (lambda x: ops.flatten(x), lambda x: x.reshape(24)),
    (lambda x: ops.unflatten(x, 2, (2, -1)), lambda x: x.reshape(2, 3, 2, 2)),
    (lambda x: ops.permute(x, 2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    (lambda x: ops.permute_dims(x, (0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    (lambda x: ops.transpose(x, 0, -1), lambda x: x.swapaxes(0, -1)),
    (lambda x: ops.matrix_transpose(x), lambda x: x.swapaxes(-1, -2)),
    (lambda x: ops.movedim(x, (0, 1), (2, 0)), lambda x: numpy.moveaxis(x, (0, 1), (2, 0))),
    (lambda x: ops.unsqueeze(x, -1), lambda x: x[..., None]),
    (lambda x: ops.unsqueeze(x, 1), lambda x: x[:, None]),
    (lambda x: ops.squeeze(ops.unsqueeze(x, (0, 2))), lambda x: x),
    (lambda x: ops.squeeze(ops.unsqueeze(x, (0, 2)), 0), lambda x: x[:, None]),
    (lambda x: ops.expand(ops.unsqueeze(x, 0), 5, -1, -1, -1), lambda x: numpy.broadcast_to(x, (5, 2, 3, 4))),
    (lambda x: ops.flip(x, 0, 2), lambda x: numpy.flip(x, (0, 2))),
    (lambda x: ops.flip(x), lambda x: numpy.flip(x)),
    (lambda x: ops.narrow(x, 1, 1, 2), lambda x: x[:, 1:3]),
    (lambda x: ops.narrow(x, -1, -3, 2), lambda x: x[..., 1:3]),
    (lambda x: ops.select(x, 1, -1), lambda x: x[:, -1]),
    (lambda x: ops.diagonal(x, 1, 1, 2), lambda x: numpy.diagonal(x, 1, 1, 2)),
    (lambda x: ops.diagonal(x, -1, 2, 0), lambda x: numpy.diagonal(x, -1, 2, 0)),
]


@pytest.mark.parametrize("case", range(len(VIEWS)))
def test_view_values_and_gradients(case: int) -> None:
    mine, exact = VIEWS[case]
    same(mine, exact, X)
    gradients(mine, X, second=False)


OTHERS: list[tuple[Any, Any]] = [
    (lambda x: ops.split(x, 2, 2), lambda x: tuple(numpy.split(x, 2, 2))),
    (lambda x: ops.split(x, 3, 2), lambda x: (x[..., :3], x[..., 3:])),
    (lambda x: ops.split(x, [1, 3], 2), lambda x: (x[..., :1], x[..., 1:])),
    (lambda x: ops.chunk(x, 2, 1), lambda x: (x[:, :2], x[:, 2:])),
    (lambda x: ops.unbind(x, 1), lambda x: tuple(x[:, k] for k in range(3))),
    (lambda x: ops.stack([x, x], 1), lambda x: numpy.stack([x, x], 1)),
    (lambda x: ops.cat([x, x, x], -1), lambda x: numpy.concatenate([x, x, x], -1)),
    (lambda x: ops.vstack([x, x]), lambda x: numpy.vstack([x, x])),
    (lambda x: ops.hstack([x, x]), lambda x: numpy.hstack([x, x])),
    (lambda x: ops.roll(x, 5), lambda x: numpy.roll(x, 5)),
    (lambda x: ops.roll(x, (1, -1), (0, 2)), lambda x: numpy.roll(x, (1, -1), (0, 2))),
    (lambda x: ops.tile(x, (2, 1, 3)), lambda x: numpy.tile(x, (2, 1, 3))),
    (lambda x: ops.tile(x, 2, 1, 1, 3), lambda x: numpy.tile(x, (2, 1, 1, 3))),
    (lambda x: ops.repeat_interleave(x, 2, 1), lambda x: numpy.repeat(x, 2, 1)),
    (lambda x: ops.pad(x, (1, 2)), lambda x: numpy.pad(x, ((0, 0), (0, 0), (1, 2)))),
    (
        lambda x: ops.pad(x, (1, -1, 0, 2), value=3.0),
        lambda x: numpy.pad(x[..., :-1], ((0, 0), (0, 2), (1, 0)), constant_values=3.0),
    ),
    (
        lambda x: ops.pad(x, (2, 1), mode="reflect"),
        lambda x: numpy.pad(x, ((0, 0), (0, 0), (2, 1)), "reflect"),
    ),
    (
        lambda x: ops.pad(x, (3, 1, 1, 0), mode="replicate"),
        lambda x: numpy.pad(x, ((0, 0), (1, 0), (3, 1)), "edge"),
    ),
    (lambda x: ops.pad(x, (3, 2), mode="circular"), lambda x: numpy.pad(x, ((0, 0), (0, 0), (3, 2)), "wrap")),
    (lambda x: ops.triu(x, 1), lambda x: numpy.triu(x, 1)),
    (lambda x: ops.tril(x), lambda x: numpy.tril(x)),
]


@pytest.mark.parametrize("case", range(len(OTHERS)))
def test_values_and_gradients(case: int) -> None:
    mine, exact = OTHERS[case]
    same(mine, exact, X)

    def first(x: Any) -> Any:
        result = mine(x)
        return result[0] if isinstance(result, tuple) else result

    gradients(first, X, second=False)


def test_many_tensors_are_joined_in_stages() -> None:
    same(lambda x: ops.cat([x] * 70, 0), lambda x: numpy.concatenate([x] * 70, 0), numpy.arange(3.0))


def test_concatenation_promotes() -> None:
    got = run(lambda a, b: ops.cat([a, b]), numpy.arange(2), numpy.ones(2, numpy.float32))
    assert got.dtype == numpy.float32


WRITES: list[tuple[str, tuple[Any, ...], tuple[int, ...], Any]] = [
    ("reshape", ((6, 4),), (), lambda x: x.reshape(6, 4)),
    ("permute", ((2, 0, 1),), (), lambda x: x.transpose(2, 0, 1)),
    ("flip", ((1,),), (), lambda x: x[:, ::-1]),
    ("slice", ((2, 2, 4), (1, 1, 1), (1,)), (1,), lambda x: x[:, 1:3]),
    ("slice", ((2, 2, 2), (1, 2, 3), (1, 2)), (0, 0), lambda x: x[:, ::2, ::3]),
    ("diagonal", (1, 1, 2), (), lambda x: x.diagonal(1, 1, 2)),
    ("diagonal", (-1, 2, 0), (), lambda x: x.diagonal(-1, 2, 0)),
    ("basic_index", ((2, 1, 2), (1, 1, 2), (1, 2), (2,), (0, 2)), (2, 1), lambda x: x[:, 2, 3::-2]),
]


@pytest.mark.parametrize("name,attrs,starts,view", WRITES)
def test_write_through_a_view(name: str, attrs: Any, starts: tuple[int, ...], view: Any) -> None:
    value = -1.0 - numpy.arange(view(X).size).reshape(view(X).shape)
    wanted = X.copy()
    target = view(wanted)
    if target.flags.writeable:
        target[...] = value
    else:
        target.flags.writeable = True
        target[...] = value
    got = run(lambda x, v: apply("write_view", x, v, *starts, attrs=(name, attrs)), X, value)
    numpy.testing.assert_array_equal(got, wanted)


def test_tensor_starts_are_clamped() -> None:
    got = run(lambda x, k: apply("slice", x, k, attrs=((3,), (1,), (0,))), numpy.arange(5.0), numpy.array(9))
    numpy.testing.assert_array_equal(got, [2, 3, 4])
    got = run(
        lambda x, v, k: apply("slice_update", x, v, k, attrs=((1,), (0,))),
        X[0, 0],
        X[1, 0, :2],
        numpy.array(-7),
    )
    numpy.testing.assert_array_equal(got, [12, 13, 2, 3])


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x: ops.reshape(x, 5, 5), ShapeError, "24 elements do not fill shape (5, 5)."),
    (lambda x: ops.reshape(x, 6, 5), ShapeError, "24 elements do not fill shape (6, 5). Make axis 1 4."),
    (lambda x: ops.permute(x, 0, 1), ArgumentError, "2 axes in the order of 3. Name every axis once."),
    (
        lambda x: ops.permute(x, 0, 1, 1),
        ArgumentError,
        "an axis occurs twice in (0, 1, 1). Name each axis once.",
    ),
    (lambda x: ops.transpose(x, 0, 3), AxisError, "axis 3 "),
    (lambda x: ops.expand(x, 3, 3, 4), ShapeError, "size 2 of axis 0 does not broadcast to 3."),
    (lambda x: ops.narrow(x, 1, 2, 2), ShapeError, "elements 2 to 4 of axis 1 with size 3."),
    (lambda x: ops.select(x, 1, 3), IndexError, "index 3 of axis 1 with size 3. Use an index from -3 to 2."),
    (
        lambda x: ops.split(x, [1, 1], 2),
        ShapeError,
        "pieces (1, 1) do not add up to size 4 of axis 2. Make their sum 4.",
    ),
    (
        lambda x: ops.cat([x, ops.permute(x, 0, 2, 1)], 0),
        ShapeError,
        "tensor 1 of shape (2, 4, 3) beside (2, 3, 4) along axis 0. Make all axes but that one equal.",
    ),
    (lambda x: ops.t(x), ShapeError, "t of a tensor with 3 axes. Use mT or transpose(dim0, dim1)."),
    (
        lambda x: apply("write_view", ops.reshape(x, (24, 1)), x, attrs=("broadcast_to", ((24, 2),))),
        ShapeError,
        "",
    ),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case: int) -> None:
    function, kind, text = ERRORS[case]
    with pytest.raises(kind) as caught:
        run(function, X)
    assert str(caught.value).startswith(text)


def test_the_size_of_repeated_elements_is_checked() -> None:
    x, counts = torch.arange(3), torch.tensor([1, 0, 2])
    assert torch.repeat_interleave(x, counts, output_size=3).tolist() == [0, 2, 2]
    with pytest.raises(ShapeError, match="3 elements for output_size 4"):
        torch.repeat_interleave(x, counts, output_size=4)


@pytest.mark.parametrize("shape", [(5, 3), (2, 2), (2, 4), (3,), (2, 3, 1)])
def test_a_block_that_does_not_fit_is_refused(shape: Any) -> None:
    """It may be shorter along the axes on which it has a start, and is whole along the others."""
    base, block, start = torch.zeros(4, 3), torch.ones(*shape), torch.tensor(0)
    with pytest.raises(ShapeError, match="a block of"):
        apply("slice_update", base, block, start, attrs=((1, 1), (0,)))
    with pytest.raises(ShapeError, match="a block of"):
        apply("pad_block", block, torch.tensor(0.0), start, attrs=((4, 3), (1, 1), (0,)))


def test_a_block_in_steps_spans_more_than_its_size() -> None:
    start, filler = torch.tensor(0), torch.tensor(7.0)
    for size, step, count in ((5, 2, 3), (4, 3, 2), (4, 1, 4), (2, 2, 0)):
        fitted = apply("pad_block", torch.ones(count), filler, start, attrs=((size,), (step,), (0,)))
        wanted = numpy.full(size, 7.0)
        wanted[: count * step : step] = 1
        assert fitted.tolist() == wanted.tolist()
        with pytest.raises(ShapeError, match="a block of"):
            apply("pad_block", torch.ones(count + 2), filler, start, attrs=((size,), (step,), (0,)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1,), (5,), (16,), (17,), (3, 40), (40, 3), (2, 33, 65)])
def test_reversed_axes_of_all_sizes_and_dtypes(shape: tuple[int, ...], dtype: str) -> None:
    values = (numpy.random.default_rng(0).normal(size=shape) * 5).astype(dtype)
    for axis in range(len(shape)):
        for along in ((axis,), tuple(range(axis + 1))):
            found = torch.flip(torch.tensor(values), along)
            numpy.testing.assert_array_equal(found.numpy(), numpy.flip(values, along))
            turned = found.permute(tuple(reversed(range(len(shape))))).contiguous()
            numpy.testing.assert_array_equal(turned.numpy(), numpy.flip(values, along).T)


def test_negative_repetitions_are_refused():
    for call in (lambda x: x.repeat(-1), lambda x: torch.tile(x, (2, -1))):
        with pytest.raises(RuntimeError, match="negative"):
            call(torch.ones(2))


def test_tensors_without_axes_are_starts_and_lengths():
    x, one, two = torch.arange(4), torch.tensor(1), torch.tensor(2)
    assert torch.narrow(x, 0, one, two).tolist() == x.narrow(0, 1, two).tolist() == [1, 2]
    assert torch.index_select(torch.ones(3, 2), 0, one).shape == (1, 2)
    assert torch.take(torch.ones(3, 2), one).shape == () and torch.take(torch.ones(3, 2), one, 0).shape == (
        2,
    )
    assert torch.nn.functional.one_hot(one, torch.tensor(3)).tolist() == [0, 1, 0]


def test_a_scale_by_position_may_be_a_tensor():
    x, y, scale = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor(2.0)
    with pytest.warns(UserWarning, match="deprecated"):
        assert x.add(scale, y).tolist() == torch.add(x, scale, y).tolist() == [7.0, 10.0]
        assert x.sub(scale, y).tolist() == [-5.0, -6.0]
        assert x.clone().addcdiv_(scale, x, x).tolist() == [3.0, 4.0]
