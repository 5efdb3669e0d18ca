"""Public functions are repeated for arguments of the same types without Python, and only where that gives the same."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fitting_arguments import fitting
from public_names import names_of

import twofold as torch
import twofold.nn.functional as F
from twofold import _core

A, B, C = (torch.arange(12.0 * k, 12.0 * k + 12).reshape(3, 4).clone() for k in range(3))
INDEX, LABELS = torch.tensor([2, 0]), torch.tensor([0, 1, 2])

REPEATED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "sum over an axis": lambda x: x.sum(1),
    "sum by keywords": lambda x: torch.sum(x, dim=0, keepdim=True),
    "softmax": lambda x: F.softmax(x, dim=-1),
    "reshape": lambda x: x.reshape(4, 3),
    "view": lambda x: x.view(-1),
    "transpose": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "flatten": lambda x: x.flatten(),
    "expand": lambda x: x.unsqueeze(0).expand(2, 3, 4),
    "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack((x, C), 1),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split([1, 2])[1],
    "a row": lambda x: x[1],
    "a part": lambda x: x[1:, ::2],
    "an axis and an ellipsis": lambda x: x[None, ..., 0],
    "rows by indices": lambda x: x[INDEX],
    "gather": lambda x: x.gather(0, INDEX[:, None]),
    "argmax": lambda x: x.argmax(1),
    "standard deviation": lambda x: x.std(1),
    "cross entropy": lambda x: F.cross_entropy(x, LABELS),
    "mean squared error": lambda x: F.mse_loss(x, C),
    "layer norm": lambda x: F.layer_norm(x, (4,)),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "matmul": lambda x: x @ C.T,
    "dtype": lambda x: x.sum(dtype=torch.float64),
}


def functions_called(function: Callable[[], Any]) -> list[str]:
    """The Python functions of the package that a call runs."""
    names: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "/twofold/" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("name", REPEATED)
def test_the_second_call_runs_no_python(name: str) -> None:
    call = REPEATED[name]
    _core.forget_calls_by_types()
    assert call(A).shape == call(A).shape
    assert functions_called(lambda: call(B)) == []


@pytest.mark.parametrize("name", REPEATED)
def test_the_result_and_its_gradient_are_those_of_the_python_function(name: str) -> None:
    call = REPEATED[name]
    found = []
    for forgets in (True, False):
        x = (B * 0.5).requires_grad_()
        call(A)
        if forgets:
            _core.forget_calls_by_types()
        y = call(x)
        gradient = torch.autograd.grad(y.sum(), [x])[0].numpy() if y.dtype.kind == "f" else None
        found.append((y.detach().numpy(), gradient))
    for one, other in zip(*found):
        numpy.testing.assert_array_equal(one, other)


def public() -> dict[str, Any]:
    """The public functions that the core may repeat, by name."""
    found: dict[str, Any] = {}
    for module in (F, torch, torch.linalg, torch.special):
        for name, function in names_of(module).items():
            if isinstance(function, type(torch.sum)) and not name.startswith("_"):
                found[f"{module.__name__}.{name}"] = function
    return found


PUBLIC = public()


def values_of(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    return (
        [value for one in result for value in values_of(one)]
        if isinstance(result, (tuple, list))
        else [result]
    )


def copied(argument: Any) -> Any:
    if isinstance(argument, list):
        return [copied(one) for one in argument]
    return argument.clone() if isinstance(argument, torch.Tensor) else argument


def moved(argument: Any) -> Any:
    """Another argument of the same type."""
    if isinstance(argument, list):
        return [moved(one) for one in argument]
    if not isinstance(argument, torch.Tensor):
        return argument
    return argument.flip(0).clone() if argument.dtype is not torch.int64 else argument.clone() * 0 + 1


@pytest.mark.parametrize("name", PUBLIC)
def test_repeated_on_other_values_it_gives_what_python_gives(name: str) -> None:
    function = PUBLIC[name]
    needed = [
        part.name for part in inspect.signature(function).parameters.values() if part.default is part.empty
    ]
    first = [fitting(part) for part in needed if part not in ("args", "kwargs")]

    def ran(change: Callable[[Any], Any]) -> list[Any]:
        torch.manual_seed(3)
        return values_of(function(*[change(argument) for argument in first]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ran(copied)
            _core.forget_calls_by_types()
            expected = ran(moved)
        except Exception as error:
            pytest.skip(f"takes other arguments: {error}")
        _core.forget_calls_by_types()
        ran(copied)
        found = ran(moved)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        if isinstance(one, numpy.ndarray):
            numpy.testing.assert_array_equal(one, other)


def test_one_tensor_twice_is_not_two_tensors() -> None:
    assert torch.stack([A, A])[1].tolist() == A.tolist()
    assert torch.stack([A, B])[1].tolist() == B.tolist()


def test_equal_numbers_of_other_types_are_other_arguments() -> None:
    x = torch.tensor([1, 2])
    assert [torch.full_like(x, n).dtype for n in (1, 1, 1)] == [torch.int64] * 3
    assert torch.pow(x, 2).dtype is torch.int64 and torch.pow(x, 2.0).dtype is torch.float32
    assert A.sum(1, True).shape == (3, 1) and A.sum(1, False).shape == (3,)


def test_values_decide_in_every_call() -> None:
    counts = []
    for limit in (3, 8):
        counts.append(len(A[limit < A]))
    assert counts == [8, 3]
    assert [torch.narrow(A, 1, torch.tensor(k), 2)[0, 0].item() for k in (0, 1, 2)] == [0, 1, 2]
    assert [A[torch.tensor(k)][0].item() for k in (0, 1, 2)] == [0, 4, 8]
    assert [len(torch.nonzero(torch.tensor(bits))) for bits in ([1, 0], [1, 1], [0, 0])] == [1, 2, 0]


def test_random_numbers_are_new_in_every_call() -> None:
    draws = {tuple(F.dropout(torch.ones(64), 0.5).tolist()) for _ in range(4)}
    assert len(draws) == 4


def test_strides_decide_in_every_call() -> None:
    for _ in range(2):
        x = torch.arange(6.0).reshape(2, 3)
        assert x.contiguous() is x
        assert x.t().contiguous().data_ptr() != x.data_ptr()
        assert x.view(3, 2).shape == (3, 2)
        with pytest.raises(RuntimeError):
            x.t().view(6)
        x.reshape(6)[0] = 9
        x.t().reshape(6)[1] = 5
        assert x[0, 0] == 9 and x[0, 1] == 1


def test_settings_count() -> None:
    def dtypes() -> set[Any]:
        return {made.dtype for made in (torch.full((2,), 1.0), torch.arange(3.0), torch.full((1,), 1j).real)}

    assert dtypes() == {torch.float32}
    torch.set_default_dtype(torch.float64)
    try:
        assert dtypes() == {torch.float64} and torch.full((2,), 1).dtype is torch.int64
    finally:
        torch.set_default_dtype(torch.float32)
    assert dtypes() == {torch.float32}


def test_an_autocast_region_is_another_call() -> None:
    x = torch.ones(4, 4)
    outside = [F.linear(x, x).dtype, torch.mm(x, x).dtype]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = [F.linear(x, x).dtype, torch.mm(x, x).dtype]
    assert outside == [torch.float32] * 2 == [F.linear(x, x).dtype, torch.mm(x, x).dtype]
    assert inside == [torch.bfloat16] * 2


def test_every_call_warns() -> None:
    for _ in range(3):
        with pytest.warns(UserWarning, match="broadcasting"):
            F.mse_loss(torch.ones(3, 1), torch.ones(3))


def test_gradients_are_recorded_where_they_are_asked_for() -> None:
    x = torch.ones(3, 4, requires_grad=True)
    assert x.sum(1).requires_grad
    with torch.no_grad():
        assert not x.sum(1).requires_grad
    assert not x.detach().sum(1).requires_grad and x.sum(1).requires_grad
    views = [x.t() for _ in range(2)]
    assert all(view.requires_grad and view._base is x for view in views)


def test_a_view_is_written_through() -> None:
    for k in range(3):
        x = torch.zeros(2, 2)
        x[1].add_(k)
        x.t()[0] += 1
        assert x.tolist() == [[1, 0], [k + 1, k]]


def test_a_list_that_holds_itself_is_refused() -> None:
    axes: list[Any] = [0]
    axes.append(axes)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        torch.sum(A, axes)  # type: ignore[arg-type]


def test_functions_that_can_never_be_repeated_are_watched_seldom() -> None:
    for _ in range(200):
        F.dropout(A, 0.5)
    assert F.dropout(A, 0.0).tolist() == A.tolist()


def test_calls_that_always_differ_keep_nothing_for_ever() -> None:
    for k in range(2000):
        assert A.narrow(1, k % 3, 1).shape == (3, 1)
        assert A[k % 3].shape == (4,)
        torch.full_like(A, float(k))
    assert torch.full_like(A, 1999.0)[0, 0].item() == 1999


SHAPE = (4, 5, 3)


def positions(size: int) -> Any:
    whole = st.integers(-size, size - 1)
    part = st.tuples(whole, whole).map(lambda ends: slice(*ends))
    return st.one_of(whole, whole.map(numpy.int32), part, st.just(slice(None)), st.just(slice(None, None, 2)))


@st.composite
def indices(draw: Any) -> Any:
    items = [draw(positions(size)) for size in SHAPE[: draw(st.integers(0, len(SHAPE)))]]
    for extra in (None, Ellipsis) if draw(st.booleans()) else ():
        items.insert(draw(st.integers(0, len(items))) if extra is None else len(items), extra)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@settings(deadline=None, max_examples=200)
@given(indices(), st.sampled_from([2.5, 7, "row"]))
def test_parts_are_read_and_written_like_numpy_whichever_were_before(index: Any, value: Any) -> None:
    array = numpy.arange(60.0, dtype=numpy.float32).reshape(SHAPE)
    x = torch.tensor(array)
    assert x[index].tolist() == array[index].tolist()
    if value != "row":
        x[index] = array[index] = value
    elif array[index].shape[-1:] == (3,):
        x[index] = 100 + torch.arange(3.0)
        array[index] = 100 + numpy.arange(3.0)
    assert x.tolist() == array.tolist()


def test_each_position_is_not_another_recipe() -> None:
    x = torch.zeros(500, 3)
    _ = x[1], x[2:4], x[1, 2]
    x[1] = 1.5
    before = torch.stats().caches["calls"].count
    for k in range(500):
        assert functions_called(lambda k=k: x[k - 250]) == []  # type: ignore[misc]
        _ = x[k % 498 : k % 498 + 2], x[k, k % 3]
        x[k] = k / 4
    assert torch.stats().caches["calls"].count == before
    assert x[:, 0].tolist() == [k / 4 for k in range(500)]


@pytest.mark.parametrize("name", ["zeros", "ones", "eye", "arange"])
def test_what_is_made_without_tensors_is_made_anew(name: str) -> None:
    make = getattr(torch, name)
    first, second = make(3), make(3)
    first += 1
    assert second.tolist() == make(3).tolist() != first.tolist()
    assert functions_called(lambda: make(3)) == []
    torch.set_default_dtype(torch.float64)
    try:
        assert make(3).dtype is (torch.int64 if name == "arange" else torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)
    assert make(3, requires_grad=True).requires_grad if name != "arange" else True
    assert not make(3).requires_grad


def test_a_function_is_loaded_under_another_name_while_it_runs() -> None:
    runs = []

    def doubled(x: Any) -> Any:
        runs.append(x)
        if len(runs) == 1:
            lazy(x)
        return x * 2

    function = _core.operation_callable(None, -1, doubled, "", False, True)
    lazy = _core.deferred_callable(lambda name: function, "doubled")
    assert function(A).tolist() == lazy(A).tolist() == (A * 2).tolist()


def test_operands_in_a_list_that_changes_while_a_rule_is_asked() -> None:
    from twofold.ir.op import REGISTRY

    concatenate = REGISTRY["concatenate"]
    operands = [torch.ones(3, 1 + k) for k in range(4)]

    def clear(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            sys.setprofile(None)
            operands.clear()

    sys.setprofile(clear)
    try:
        joined = _core.record(concatenate, (1,), operands)
    finally:
        sys.setprofile(None)
    assert not operands and joined.shape == (3, 10) and joined.sum().item() == 30
