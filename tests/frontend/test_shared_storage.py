"""Handles that share a storage: `data`, `Parameter`, `set_`, and what each of them keeps of its own."""

import copy
import sys

import numpy
import pytest

import twofold as torch


def test_data_shares_the_storage_it_is_given():
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    first.weight.data = second.weight.data
    assert first.weight.untyped_storage() == second.weight.untyped_storage()
    assert first.weight.data_ptr() == second.weight.data_ptr()
    with torch.no_grad():
        second.weight.fill_(3)
        assert first.weight.tolist() == [[3.0, 3.0]] * 2
        first.weight[0, 1] = 7
    assert second.weight.tolist() == [[3.0, 7.0], [3.0, 3.0]]
    first.weight.sum().backward()
    assert first.weight.grad.tolist() == [[1.0, 1.0]] * 2 and second.weight.grad is None
    assert first.weight.requires_grad and first.weight.is_leaf


def test_both_of_two_leaves_on_one_storage_train():
    first, second = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    first.data = second.data
    optimizer = torch.optim.SGD([first, second], lr=1.0)
    for _ in range(3):
        optimizer.zero_grad()
        (first * 2 + second).sum().backward()
        optimizer.step()
    assert first.tolist() == second.tolist() == [-9.0, -9.0]
    assert first.grad.tolist() == [2.0, 2.0] and second.grad.tolist() == [1.0, 1.0]


def test_a_parameter_shares_the_storage_of_its_data():
    b = torch.zeros(2, 3)
    row = b[1]
    p = torch.nn.Parameter(b)
    b.fill_(2)
    assert p.tolist() == [[2.0] * 3] * 2 and p.is_leaf and p.requires_grad and not b.requires_grad
    with torch.no_grad():
        p.mul_(5)
    assert b.tolist() == [[10.0] * 3] * 2 and row.tolist() == [10.0] * 3
    row.zero_()
    assert p[1].tolist() == [0.0] * 3
    (p * p).sum().backward()
    assert p.grad.tolist() == [[20.0] * 3, [0.0] * 3] and b.grad is None
    assert torch.nn.Buffer(b).untyped_storage() == b.untyped_storage() == p.untyped_storage()


@pytest.mark.parametrize(
    "make",
    [lambda: torch.zeros(6).reshape(2, 3), lambda: torch.zeros(3, 2).t(), lambda: torch.zeros(4, 3)[1:3]],
)
def test_a_parameter_made_of_a_view_shares_with_it(make):
    b = make()
    p = torch.nn.Parameter(b)
    assert p.stride() == b.stride() and p.untyped_storage() == b.untyped_storage()
    optimizer = torch.optim.SGD([p], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * 4).sum().backward()
        optimizer.step()
        assert p.tolist() == b.tolist()
    assert p.tolist() == [[-4.0] * 3] * 2
    b.fill_(1)
    assert p.tolist() == [[1.0] * 3] * 2


def test_a_parameter_alone_on_its_storage_is_no_view():
    whole = torch.nn.Parameter(torch.zeros(2, 3))
    reshaped = torch.nn.Parameter(torch.zeros(6).reshape(2, 3))
    assert whole._base is None and reshaped._base is None
    p = torch.nn.Parameter(torch.zeros(2))
    for _ in range(3):
        p.data = p.data * 2 + 1
        assert p._base is None
    assert p.tolist() == [7.0, 7.0]
    p.data = p.data
    assert p._base is None and p.tolist() == [7.0, 7.0]


def test_parameters_share_memory_with_arrays():
    n = numpy.zeros((2, 3), numpy.float32)
    p = torch.nn.Parameter(torch.from_numpy(n.T))
    n[0, 1] = 4
    assert p[1, 0].item() == 4.0 and p.stride() == (1, 3)
    with torch.no_grad():
        p.add_(1)
    assert n.tolist() == [[1.0, 5.0, 1.0], [1.0, 1.0, 1.0]]
    p.detach().numpy()[2] = 9
    assert n[:, 2].tolist() == [9.0, 9.0] and p[2].tolist() == [9.0, 9.0]


def test_storages_are_exchanged():
    a, b = torch.zeros(2), torch.ones(2)
    of_a, of_b = a[0], b[0]
    kept = a.data
    a.data = b.data
    b.data = kept
    a.fill_(5)
    b.fill_(6)
    assert (a.tolist(), b.tolist()) == ([5.0, 5.0], [6.0, 6.0])
    assert (of_a.item(), of_b.item()) == (6.0, 5.0)


def test_detached_handles_share():
    x = torch.ones(2, requires_grad=True)
    for alias in (x.data, x.detach(), torch.detach(x)):
        alias.mul_(2)
        assert alias.untyped_storage() == x.untyped_storage()
    assert x.tolist() == [8.0, 8.0]
    y = torch.zeros(2, 2)
    alias = y.detach()
    alias.t()[0, 1] = 3
    assert y.tolist() == [[0.0, 0.0], [3.0, 0.0]]


def test_set_shows_another_storage():
    x, y = torch.zeros(2), torch.arange(6.0).reshape(2, 3).clone()
    old = x[:1]
    assert x.set_(y.t()) is x and x.stride() == (1, 3) and x.untyped_storage() == y.untyped_storage()
    x[0, 1] = 30
    assert y[1, 0].item() == 30.0 and old.tolist() == [0.0]
    x.set_(y, 1, (2, 2), (3, 1))
    assert x.tolist() == [[1.0, 2.0], [4.0, 5.0]] and x.storage_offset() == 1
    x.set_(y.untyped_storage(), 2, (2,))
    assert x.tolist() == [2.0, 30.0] and x.is_set_to(y.view(-1)[2:4])
    assert x.set_().shape == (0,)
    with pytest.raises(ValueError, match="size"):
        x.set_(y, 1)
    for alone in ({"size": (2,)}, {"stride": (1,)}, {"storage_offset": 1}):
        with pytest.raises(ValueError, match="source"):
            x.set_(**alone)


def test_a_view_given_as_data_of_its_own_base():
    x = torch.arange(4.0)
    half = x[1:3]
    x.data = half
    half[0] = 9
    assert x.tolist() == half.tolist() == [9.0, 2.0]
    x.data = x.detach()
    assert x.tolist() == [9.0, 2.0]


def test_many_exchanges_leave_nothing_behind():
    a, b = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.ones(2))
    for _ in range(20):
        kept = a.data
        a.data = b.data
        b.data = kept
        with torch.no_grad():
            a.add_(1)
    total = a.tolist()[0] + b.tolist()[0]
    assert total == 21.0


def test_elements_of_a_storage():
    x = torch.arange(6.0).reshape(2, 3)
    own = x.t()[1].storage()
    assert (len(own), own.size(), own.nbytes(), own.element_size()) == (6, 6, 24, 4)
    assert own.tolist() == list(own) == [0, 1, 2, 3, 4, 5] and own[2] == 2.0 and own.dtype is torch.float32
    assert own.data_ptr() == x.data_ptr() and own == x.storage() and own.untyped() == x.untyped_storage()
    assert repr(x[:1, :1].clone().storage()).startswith(" 0.0\n[torch.storage.TypedStorage(dtype=")
    own[1] = 7.0
    assert x[0, 1] == 7
    own.fill_(2)
    assert (x == 2).all()
    assert x.view(torch.int32).storage().tolist() == [2**30] * 6


def test_plus_gives_the_tensor_itself():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    assert +x is x and torch.positive(x) is x and x.positive() is x
    y = torch.zeros(2)
    z = +y
    z += 1
    assert y.tolist() == [1.0, 1.0]
    for plus in (torch.positive, lambda x: +x):
        with pytest.raises(RuntimeError, match="bool tensor is not supported"):
            plus(torch.tensor([True]))


@pytest.mark.parametrize(
    "name", ["uint8", "int8", "int16", "int32", "int64", "float64", "complex64", "complex128", "float32"]
)
def test_memory_is_read_as_elements_of_any_size_like_numpy(name):
    array = numpy.array([[1.5, -2.0, 3e38, 7.0], [0.0, 1.0, 2.0, 3.0]], "float32")
    x = torch.from_numpy(array.copy())
    for rows, whole in ((x, array), (x[1:], array[1:])):
        found = rows.view(getattr(torch, name))
        assert found.numpy().tobytes() == whole.tobytes() and found.shape == whole.view(name).shape
        assert found.data_ptr() == rows.data_ptr() and found.stride()[-1] == 1
        back = found.view(torch.float32)
        assert back.tolist() == whole.tolist() and back.shape == whole.shape


def test_writes_through_elements_of_another_size_are_seen():
    x, array = torch.tensor([[1.5, -2.0], [7.0, 9.0]]), numpy.array([[1.5, -2.0], [7.0, 9.0]], "float32")
    x.view(torch.uint8)[0, 3] = array.view("uint8")[0, 3] = 0
    x.view(torch.int64)[1, 0] += 1 << 40
    array.view("int64")[1, 0] += 1 << 40
    assert x.tolist() == array.tolist()
    small, wide = torch.arange(8, dtype=torch.uint8), torch.tensor([1 + 2j])
    small.view(torch.int32).add_(1)
    assert small.tolist() == [1, 1, 2, 3, 5, 5, 6, 7]
    wide.view(torch.float64).zero_()
    assert wide.tolist() == [0j]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "bool"])
def test_halves_and_bools_are_read_as_other_elements_bit_by_bit(name):
    dtype = getattr(torch, name)
    bits = (
        numpy.arange(65536, dtype=numpy.uint16)
        if name != "bool"
        else numpy.array([[0, 1, 1, 0] * 2] * 8, "uint8")
    )
    x = torch.from_numpy(bits).view(dtype)
    assert x.dtype is dtype and x.shape == bits.shape
    for other in ("uint8", "int16", "int32", "float32", "int64", "complex64"):
        found = x.view(getattr(torch, other))
        assert found.numpy().tobytes() == bits.tobytes() and found.data_ptr() == x.data_ptr()
        assert found.view(dtype).view(getattr(torch, bits.dtype.name)).numpy().tobytes() == bits.tobytes()
    if name == "float16":
        assert numpy.array_equal(x.numpy(), bits.view("float16"), equal_nan=True)
    wide = torch.tensor([1.5, -2.0]).view(torch.bfloat16)
    assert wide.tolist() == [0.0, 1.5, 0.0, -2.0]
    number = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    number.view(torch.int16)[0] |= -0x8000
    assert number.tolist() == [-1.0, 2.0]
    assert ((number * 3).view(torch.uint16).to(torch.int32) << 16).view(torch.float32).tolist() == [-3.0, 6.0]


def test_bytes_read_as_bools_are_true_unless_zero():
    assert torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool).tolist() == [
        False,
        True,
        True,
        True,
    ]


def test_memory_that_does_not_fit_is_not_read_as_larger_elements():
    x = torch.arange(16, dtype=torch.uint8)
    for wrong in (
        lambda: x[1:9].view(torch.int32),
        lambda: x[:6].view(torch.int32),
        lambda: x[::2].view(torch.int16),
        lambda: torch.zeros(4, 4).t().view(torch.int16),
        lambda: torch.tensor(1.0).view(torch.uint8),
        lambda: torch.zeros(4)[1:3].view(torch.complex64),
    ):
        with pytest.raises(RuntimeError):
            wrong()


@pytest.mark.parametrize(
    "share",
    [
        lambda x: x.set_(x.expand(3)),
        lambda x: x.set_(x.view(3)),
        lambda x: setattr(x, "data", x.data[:]),
        lambda x: setattr(x, "data", x.data.view(3)),
        lambda x: setattr(x, "data", x.data),
    ],
)
def test_a_loop_that_shares_what_is_shared_already_makes_no_chain_of_views(share):
    x, other = torch.zeros(3), torch.zeros(3)
    seen = x[1:]
    for _ in range(1200):
        share(x)
        x.add_(1)
    assert x.tolist() == [1200.0] * 3 and seen.tolist() == [1200.0] * 2
    x.data = other[:]
    x.add_(1)
    assert other.tolist() == [1.0] * 3 and seen.tolist() == [1200.0] * 2
    whole = torch.arange(4.0)
    part = whole[1:]
    part.data = whole[:3]
    assert part.tolist() == [0.0, 1.0, 2.0]


VIEWS = {
    "transposed": lambda w: w.T,
    "row": lambda w: w[1],
    "part": lambda w: w[:, 1:],
    "long": lambda w: w.reshape(-1),
    "further_axis": lambda w: w[None],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("kind", ["parameter", "tensor", "view"])
@pytest.mark.parametrize("taken", ["data", "detached"])
def test_data_may_be_a_view_of_the_tensor_itself(name, kind, taken):
    # reading the tensor did not end: it was a view of itself
    base = torch.arange(12.0).view(4, 3).clone()
    w = torch.nn.Parameter(base) if kind == "parameter" else base if kind == "tensor" else base[1:3]
    first = w.detach()
    array = w.detach().numpy().copy()
    w.data = VIEWS[name](w.data if taken == "data" else w.detach())
    shown = VIEWS[name](array)
    assert w.detach().clone().tolist() == copy.deepcopy(w).tolist() == shown.tolist()
    with torch.no_grad():
        w.mul_(2)
    shown *= 2
    assert w.tolist() == shown.tolist() and first.tolist() == array.tolist()
    w.data = w.data[..., None]
    assert w.detach().clone().tolist() == shown[..., None].tolist()


def test_the_size_of_a_storage_counts_its_elements():
    # programs find out the memory of a tensor so
    none, many = torch.zeros(0), torch.zeros(3, 50, dtype=torch.float64)
    for storage in (torch.Tensor.storage, torch.Tensor.untyped_storage):
        assert sys.getsizeof(storage(many)) - sys.getsizeof(storage(none)) == 1200
    assert sys.getsizeof(many[0].storage()) == sys.getsizeof(many.storage())


def test_what_is_a_view():
    x, w = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    assert x.t()._is_view() and x[0]._is_view() and x.view(6)._is_view() and w.expand(2, 2, 3)._is_view()
    for other in (x, w, w.detach(), w.data, x.t().detach(), w * 2, torch.nn.Parameter(x), x.contiguous()):
        assert not other._is_view()
