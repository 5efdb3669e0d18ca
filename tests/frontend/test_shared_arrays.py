"""Memory shared with NumPy arrays of any strides, in both directions."""

import gc
import sys

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
from twofold import _core


def numbers():
    return numpy.arange(24.0).reshape(2, 3, 4)


SLICES = [
    lambda n: n.T,
    lambda n: n[::2],
    lambda n: n[:, 1:, ::2],
    lambda n: n.transpose(1, 0, 2),
    lambda n: n[1, :, 3],
    lambda n: n[:, 1],
    lambda n: n[0, 0, 0:1],
    lambda n: n.swapaxes(0, 2)[1:, ::2],
]


@pytest.mark.parametrize("position", range(len(SLICES)))
@pytest.mark.parametrize("make", [torch.from_numpy, torch.as_tensor, torch.asarray, torch.from_dlpack])
def test_an_array_of_any_strides_is_shared(position, make):
    n = numbers()
    array = SLICES[position](n)
    x = make(array)
    assert x.tolist() == array.tolist()
    steps = [
        (step, position // 8) for size, step, position in zip(x.shape, x.stride(), array.strides) if size > 1
    ]
    assert all(ours == theirs for ours, theirs in steps)
    array += 1
    assert x.tolist() == array.tolist()
    x.mul_(2)
    assert array.tolist() == x.tolist()
    x[0] = 5
    assert array.tolist() == x.tolist()
    n[...] = 3
    assert x.sum().item() == 3 * x.numel()


@pytest.mark.parametrize("position", range(len(SLICES)))
def test_the_array_of_a_view_shares_its_memory(position):
    key = SLICES[position]
    x = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4).clone()
    if position in (0, 3, 7):
        view = {0: x.permute(2, 1, 0), 3: x.permute(1, 0, 2), 7: x.transpose(0, 2)[1:, ::2]}[position]
    else:
        view = key(x)
    for array in (view.numpy(), numpy.asarray(view), numpy.from_dlpack(view), view.detach().numpy()):
        assert array.tolist() == key(x.numpy()).tolist() and array.strides == key(numbers()).strides
        array[...] = 7
        assert view.tolist() == array.tolist()
        x.add_(1)
        assert array.tolist() == view.tolist()
        view.mul_(3)
        assert array.tolist() == view.tolist() == key(x.numpy()).tolist()


def test_a_view_shows_what_was_written_to_the_array():
    n = numpy.zeros((2, 2))
    x = torch.from_numpy(n)
    row = x[1]
    assert row.tolist() == [0.0, 0.0]
    n[1, 0] = 5
    assert row.tolist() == [5.0, 0.0] and (row + 1).tolist() == [6.0, 1.0]
    assert x.t()[0].tolist() == [0.0, 5.0]


def test_negative_strides_and_elements_that_are_not_aligned_are_errors():
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(numpy.arange(3)[::-1])
    with pytest.raises(ValueError, match="negative"):
        torch.as_tensor(numbers()[:, ::-1])
    pairs = numpy.zeros(3, numpy.dtype([("a", numpy.int8), ("b", numpy.float32)]))
    with pytest.raises(ValueError, match="not aligned"):
        torch.from_numpy(pairs["b"])
    assert torch.from_numpy(numpy.zeros((0, 3))[::-1]).shape == (0, 3)


def test_memory_that_no_reference_count_shows_is_shared_for_good():
    data = bytearray(numpy.arange(4.0).tobytes())
    x = torch.from_numpy(numpy.frombuffer(data))
    data[:8] = numpy.float64(9).tobytes()
    assert x.tolist() == [9.0, 1.0, 2.0, 3.0]
    y = torch.zeros(3)
    z = torch.from_numpy(y.numpy())
    gc.collect()
    z.add_(1)
    assert y.tolist() == [1.0, 1.0, 1.0]
    y.mul_(5)
    assert z.tolist() == [5.0, 5.0, 5.0]
    torch.from_dlpack(y[1:]).zero_()
    assert y.tolist() == [5.0, 0.0, 0.0] == z.tolist()


def test_a_broadcast_array_keeps_its_strides():
    n = numpy.broadcast_to(numpy.arange(3.0), (2, 3))
    x = torch.from_numpy(n)
    assert x.stride() == (0, 1) and x.tolist() == [[0.0, 1.0, 2.0]] * 2


def test_gradients_flow_to_a_leaf_whose_memory_is_shared():
    n = numpy.arange(6.0).reshape(2, 3)
    x = torch.from_numpy(n).requires_grad_()
    y = (x.t()[1] * torch.tensor([1.0, 10.0])).sum()
    n[0, 1] = 100
    y.backward()
    assert y.item() == 41.0 and x.grad.tolist() == [[0.0, 1.0, 0.0], [0.0, 10.0, 0.0]]


def test_uses_of_an_array_that_nobody_writes_between_are_one_input():
    array = numpy.linspace(-1, 1, 36, dtype="f").reshape(6, 6)
    own, shared = torch.tensor(array, requires_grad=True), torch.from_numpy(array).requires_grad_()
    found = []
    for w in (own, shared):
        h = torch.ones(6)
        for _ in range(5):
            h = torch.tanh(w @ h)
        h.sum().backward()
        gradient = w.grad.tolist()
        inputs = _core.describe_executable(_core.last_executable())[0]
        found.append((gradient, inputs))
    assert found[0] == found[1]
    x, before = torch.from_numpy(array), array.copy()
    twice, once = x + x, x * 1
    array[...] = 2
    assert (once + x).tolist() == (before + 2).tolist() and twice.tolist() == (before * 2).tolist()


def test_a_part_of_a_large_array_is_read_without_copying_the_rest():
    n = numpy.arange(100_000, dtype=numpy.float32).reshape(1000, 100)
    x = torch.from_numpy(n)
    rows, corner = x[2:4], x[1:, ::7][:3, 2]
    torch._core.reset_peak()
    before = torch._core.statistics()["pool_peak_bytes"]
    assert x[5:6].sum().item() == n[5].sum() and (rows + 1).tolist() == (n[2:4] + 1).tolist()
    assert torch._core.statistics()["pool_peak_bytes"] - before < n.nbytes
    n[2] = 7
    assert rows[0].tolist() == [7.0] * 100 and corner[1].item() == 7.0 and x.view(-1)[200].item() == 7.0
    rows.zero_()
    assert not n[2:4].any() and corner.tolist() == n[1:4, 14].tolist()
    x.requires_grad_()
    (x[2] * torch.arange(100.0)).sum().backward()
    assert x.grad[2].tolist() == list(range(100)) and x.grad.sum().item() == 4950.0


CALLS = [
    lambda x, y: x.clone(),
    lambda x, y: x + y,
    lambda x, y: torch.zeros_like(x).copy_(x),
    lambda x, y: torch.cat([y[:1], x[1:]]),
    lambda x, y: x.sort()[0] * y.mean(),
    lambda x, y: y.index_add(0, torch.tensor([1, 1]), x[:2]),
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_a_write_to_an_array_changes_nothing_that_was_computed_before(data):
    """Steps of calls, of arrays taken of a tensor, and of writes to these, as NumPy copies would have them."""
    size = data.draw(st.sampled_from([3, 3000]))
    held = [torch.arange(float(size)), torch.ones(size), torch.full((size,), 3.0)]
    held.append(held[0].detach())
    wanted = [x.tolist() for x in held]
    shown = {}
    for _ in range(data.draw(st.integers(2, 8))):
        i, j = data.draw(st.integers(0, len(held) - 1)), data.draw(st.integers(0, len(held) - 1))
        step = data.draw(st.sampled_from(["call", "call", "write", "in place", "leaf"]))
        if step == "call":
            call = data.draw(st.sampled_from(CALLS))
            held.append(call(held[i], held[j]))
            wanted.append(call(torch.tensor(wanted[i]), torch.tensor(wanted[j])).tolist())
            continue
        alike = {0, 3} if i in (0, 3) else {i}
        change = data.draw(st.integers(2, 5))
        if step == "leaf":  # one more tensor on the same memory, with a graph of its own
            held[i] = held[i].detach().requires_grad_(False)
        elif step == "in place":
            held[i].mul_(change)
            scaled = (numpy.float32(wanted[i]) * numpy.float32(change)).tolist()
            for k in alike:
                wanted[k] = scaled
        else:
            array = shown.setdefault(i, held[i].numpy())
            array[...] += change
            for k in alike:
                wanted[k] = [value + change for value in wanted[k]]
    assert [x.tolist() for x in held] == wanted


@pytest.mark.parametrize(
    "take", [lambda x: x.numpy(), numpy.asarray, numpy.from_dlpack, lambda x: x.detach().numpy()]
)
@pytest.mark.parametrize("leaf", [False, True])
def test_calls_recorded_before_an_array_is_taken_read_what_was_there(take, leaf):
    x = torch.tensor([1.0, 2.0])
    used = x.detach().requires_grad_() if leaf else x
    y, part = used * 2, used[1:] * 1
    take(x)[...] = 7
    assert y.tolist() == [2.0, 4.0] and part.tolist() == [2.0] and x.tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    "read", [torch.Tensor.tolist, repr, torch.Tensor._repr_html_, torch.unique, torch.nonzero]
)
def test_what_reads_a_tensor_leaves_calls_recorded_on_it_pending(read):
    x = torch.arange(4.0) + 1
    assert x.tolist() == [1, 2, 3, 4]
    y = x * 2
    pending = _core.pending()
    assert pending
    read(x)
    assert _core.pending() == pending
    x.numpy()[...] = 0  # may be written to, at which the calls run
    assert not _core.pending() and y.tolist() == [2, 4, 6, 8]


def test_where_gradients_are_disabled_a_tensor_that_requires_grad_gives_its_array():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        x.numpy()[0] = 5
        assert numpy.asarray(x).tolist() == [5, 1] and (x * 2).numpy().tolist() == [10, 2]
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()


def test_views_see_what_an_array_wrote_that_is_gone():
    views = (
        torch.Tensor.t,
        lambda x: x[1],
        lambda x: x.view(4),
        torch.Tensor.detach,
        lambda x: x.t().detach(),
    )
    for make in views:
        for take in (
            lambda x, view: x.numpy(),
            lambda x, view: view.numpy(),
            lambda x, view: view.detach().numpy(),
        ):
            x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
            view = make(x)
            assert (view + 1).sum().item() > 5
            take(x, view)[...] = 7
            assert set((view + 1).flatten().tolist()) == {8.0}
    array = numpy.zeros((2, 2))
    row = torch.from_numpy(array)[0]
    assert (row + 1).tolist() == [1, 1]
    array[0] = 5
    del array
    assert (row + 1).tolist() == [6, 6]


@pytest.mark.parametrize("size", [3, 3000])  # views of a few bytes of many are read at once
@pytest.mark.parametrize("leaf", [lambda x: x, lambda x: x.requires_grad_(), torch.nn.Parameter])
def test_a_view_of_an_array_is_several_operands_of_one_call(size, leaf):
    array = numpy.arange(4.0 * size).reshape(size, 4)
    view = leaf(torch.from_numpy(array)[2])
    expected = array[2].copy()
    for _ in range(3):
        assert (view * view).tolist() == (expected * expected).tolist()
        assert torch.addcmul(view, view, view).tolist() == (expected + expected * expected).tolist()
        assert torch.stack([view, view]).sum().item() == 2 * expected.sum()
    array[2] = 1
    assert (view * view).tolist() == [1, 1, 1, 1]


def test_a_view_of_a_whole_array_and_a_part_of_it_are_operands_of_one_call():
    array = numpy.arange(6.0).reshape(2, 3)
    view = torch.from_numpy(array).T
    row = view[1]
    for k in range(3):
        array[0, 1] = k
        assert (view * view).tolist() == (array.T * array.T).tolist()
        assert (view + row[0]).tolist() == (row[0] + view).tolist() == (array.T + array[0, 1]).tolist()
        assert torch.stack([view, view, view]).sum().item() == 3 * array.sum()


STEPS = [
    lambda v, k: v[k % len(v), ...],  # without the dots NumPy gives a copy of one element
    lambda v, k: v[-1 - k % len(v), ...],
    lambda v, k: v[k % len(v) :],
    lambda v, k: v[: 1 + k % len(v) : 1 + k % 2],
    lambda v, k: v[..., k % v.shape[-1] :],
    lambda v, k: v.swapaxes(0, -1),
    lambda v, k: v[None],
    lambda v, k: v.reshape(-1, 1) if v.flags.c_contiguous else v,
    lambda v, k: numpy.diagonal(v) if v.ndim > 1 else v,
    lambda v, k: v.real if v.dtype.kind == "c" else v,
    lambda v, k: v.view(numpy.uint16) if v.dtype == numpy.float16 else v,
]
OURS = {
    7: lambda v, k: v.reshape(-1, 1) if v.is_contiguous() else v,
    8: lambda v, k: v.diagonal() if v.ndim > 1 else v,
    9: lambda v, k: v.real if v.is_complex() else v,
    10: lambda v, k: v.view(torch.uint16) if v.dtype is torch.float16 else v,
}


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_views_of_views_of_an_array_are_read_where_they_lie(data):
    dtype = data.draw(st.sampled_from([numpy.float32, numpy.complex64, numpy.uint8, numpy.float16]))
    array = (numpy.arange(120) % 100).reshape(4, 5, 6).astype(dtype)
    shown, view = array, torch.from_numpy(array)
    for number, k in data.draw(
        st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 5)), max_size=5)
    ):
        if shown.ndim == 0:
            break
        shown, view = STEPS[number](shown, k), OURS.get(number, STEPS[number])(view, k)
    for _ in range(2):
        assert (view + 0).numpy().tobytes() == (shown + numpy.zeros((), shown.dtype)).tobytes()
        assert view.tolist() == shown.tolist()
        array += 3  # and again, through the same handle


def names_of_functions_called(call):
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        return call(), called
    finally:
        sys.setprofile(None)


def test_elements_of_an_array_are_read_without_python():
    x, number = torch.from_numpy(numpy.arange(3000.0).reshape(100, 30)), torch.ones(30)
    read = lambda k: (x[k] * number, x[k : k + 4, 2:], x[:, k])
    read(3)  # the layouts of the views are asked for once
    (total, block, column), called = names_of_functions_called(lambda: read(5))
    assert total.tolist() == list(range(150, 180))
    assert block[1, 0].item() == 182 and column[2].item() == 65
    assert "<lambda>" in called and not {"view_array", "view_layout"} & set(called), called
