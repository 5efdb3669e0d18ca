"""In-place methods that change the shape or write elements, and results written to ``out=``."""

import numpy
import pytest

import twofold as torch


def test_a_shape_changes_in_place_and_the_handle_keeps_its_gradient():
    x = torch.arange(6.0).requires_grad_()
    y = x * 2
    same = y
    y.unsqueeze_(0).transpose_(0, 1).squeeze_(1).unsqueeze_(-1).swapaxes_(0, 1)
    assert same is y and tuple(y.shape) == (1, 6)
    (y * torch.arange(6.0)).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_writing_after_a_change_of_shape_reaches_the_base():
    x = torch.arange(6.0).reshape(2, 3).clone()
    row = x[0]
    row.unsqueeze_(1)
    row.mul_(10)
    assert x.tolist() == [[0.0, 10.0, 20.0], [3.0, 4.0, 5.0]]
    x.t_().add_(1)
    assert x.tolist() == [[1.0, 4.0], [11.0, 5.0], [21.0, 6.0]]


def test_the_shape_of_a_leaf_that_requires_grad_stays():
    with pytest.raises(
        RuntimeError,
        match="a leaf Variable that requires grad is being used in an in-place operation that changes its shape",
    ):
        torch.ones(3, requires_grad=True).unsqueeze_(0)


def test_resize_keeps_the_first_elements():
    x = torch.arange(6.0)
    x.resize_(2, 2)
    assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    x.resize_as_(torch.zeros(6))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).resize_(1)


def test_resize_of_a_view_shows_what_follows_in_its_storage():
    x = torch.arange(6)
    view = x[1:].reshape(5, 1).resize_(2, 2)
    view[0, 0] = 7
    assert x.tolist() == [0, 7, 2, 3, 4, 5] and view.tolist() == [[7, 2], [3, 4]]
    assert x.view(2, 3).t().resize_(6).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="view of too few elements"):
        x[4:].resize_(3)


def test_views_show_what_is_written_to_a_tensor_that_became_smaller():
    x = torch.arange(6.0)
    view = x[1:3]
    x.resize_(2, 2)[0, 1] = 9
    assert view.tolist() == [9.0, 2.0] and x.tolist() == [[0.0, 9.0], [2.0, 3.0]]
    view.zero_()
    assert x.tolist() == [[0.0, 0.0], [0.0, 3.0]]


def test_parameters_that_share_memory_are_detached_in_place():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.data = torch.ones(4)[1:3]
    parameter = torch.nn.Parameter(torch.ones(4)[1:])
    for one in (weight, parameter):
        assert one.detach_() is one and not one.requires_grad
    with pytest.raises(RuntimeError, match="detach views"):
        (weight.requires_grad_() * 2)[1:].detach_()


def test_writing_elements_in_place():
    x = torch.zeros(3, 3)
    x.fill_diagonal_(1.0).index_fill_(0, torch.tensor([2]), 5.0)
    assert x.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [5.0, 5.0, 5.0]]
    x.masked_scatter_(x > 1, torch.tensor([7.0, 8.0, 9.0])).put_(torch.tensor([1]), torch.tensor([4.0]))
    assert x.tolist() == [[1.0, 4.0, 0.0], [0.0, 1.0, 0.0], [7.0, 8.0, 9.0]]
    x.scatter_(1, torch.tensor([[2]]), -1.0).scatter_reduce_(
        0, torch.tensor([[0, 0]]), torch.ones(1, 2), "sum"
    )
    assert x[0].tolist() == [2.0, 5.0, -1.0]
    tall = torch.zeros(7, 3, dtype=torch.int64).fill_diagonal_(1, wrap=True)
    assert tall.nonzero()[:, 0].tolist() == [0, 1, 2, 4, 5, 6]
    assert torch.tensor([1.0, 2.0]).apply_(lambda value: value + 1).tolist() == [2.0, 3.0]


def test_comparisons_write_numbers():
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x.ge_(2).tolist() == [0.0, 1.0, 1.0]


def test_out_takes_the_result_and_its_shape():
    x = torch.arange(6.0).reshape(2, 3)
    out = torch.empty(0)
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == (x + 1).tolist()
    whole = torch.empty(2, 3, dtype=torch.float64)
    torch.mul(x, 2, out=whole)
    assert whole.dtype is torch.float64 and whole.tolist() == (x * 2).tolist()
    values, positions = torch.empty(2), torch.empty(2, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, positions))
    assert found.values is values and values.tolist() == [2.0, 5.0] and positions.tolist() == [2, 2]
    assert torch.sum(x, 0, out=None).tolist() == [3.0, 5.0, 7.0]


def test_out_takes_no_gradient_and_no_floats_for_integers():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradient flows into a given tensor"):
        torch.exp(x, out=torch.empty(2))
    with torch.no_grad():
        assert torch.exp(x, out=torch.empty(2)).shape == (2,)
    with pytest.raises(RuntimeError, match="cannot be stored in int64"):
        torch.exp(torch.ones(2), out=torch.empty(0, dtype=torch.int64))


def test_new_tensors_are_written_to_out_in_its_dtype():
    found = torch.zeros(3, dtype=torch.float64)
    assert torch.arange(3, out=found) is found and found.tolist() == [0.0, 1.0, 2.0]
    torch.linspace(0, 1, 2, out=found)
    assert found.tolist() == [0.0, 1.0] and found.dtype is torch.float64
    assert torch.eye(2, out=torch.zeros(2, 2, dtype=torch.int64)).tolist() == [[1, 0], [0, 1]]


def test_zeros_flow_back_through_what_was_overwritten():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y[1:].fill_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    z = (x * 2).zero_()
    assert z.requires_grad
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(3,), (5, 2), (2, 4), (2, 1, 4)])
def test_a_value_that_does_not_fit_is_not_written(shape):
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError, match="does not broadcast"):
        x[0] = torch.ones(*shape)
    assert x.sum().item() == 0.0


def test_data_takes_other_storage_and_views_stay_with_the_old():
    layer = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    backup, row = layer.weight.data, layer.weight[0]
    backup.add_(1)
    layer.weight.data = torch.full((2, 2), 5.0)
    assert layer.weight.sum().item() == 20.0
    assert backup.tolist() == [[2.0, 2.0], [2.0, 2.0]] and row.tolist() == [2.0, 2.0]
    backup[0, 0] = 7.0
    assert row.tolist() == [7.0, 2.0] and layer.weight.sum().item() == 20.0
    layer.weight.data = backup
    assert layer.weight.tolist() == [[7.0, 2.0], [2.0, 2.0]] and layer.weight.requires_grad


def test_each_step_may_take_new_storage():
    p, kept = torch.nn.Parameter(torch.ones(2)), []
    for step in range(5):
        old = p.data
        if step % 2:
            kept.append((old[0], 0.5**step))
        p.data = old * 0.5
        (p * p).sum().backward()
    assert p.tolist() == [0.5**5] * 2 and old.tolist() == [0.5**4] * 2
    assert [shown.item() for shown, _ in kept] == [wanted for _, wanted in kept]
    assert p.grad.tolist() == [2 * (1 - 0.5**5)] * 2
    view = p.data[1]
    view.data = torch.tensor(3.0)
    assert p.tolist() == [0.5**5] * 2 and view.item() == 3.0


def test_a_view_that_takes_other_storage_leaves_its_own_views_behind():
    x = torch.zeros(2, 2)
    alias = x.data
    row = alias[0]
    alias.data = torch.ones(2, 2)
    row.add_(3)
    x[0, 1] = 5.0
    assert row.tolist() == [3.0, 5.0] and x.tolist() == [[3.0, 5.0], [0.0, 0.0]]
    assert alias.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_views_keep_their_shape_when_that_of_their_base_changes_in_place():
    x = torch.arange(6.0).reshape(2, 3).clone()
    row, alias = x[1], x.detach()
    x.t_()
    x[0, 1] = 9.0
    row.add_(1)
    assert row.tolist() == [10.0, 5.0, 6.0] and alias.tolist() == [[0.0, 1.0, 2.0], [10.0, 5.0, 6.0]]
    assert x.tolist() == [[0.0, 10.0], [1.0, 5.0], [2.0, 6.0]]


def aliased(x):
    y = x.clone()
    same = y
    y += 1
    return same


def through_a_view(x):
    y = x.clone()
    row = y[0]
    row += 1
    row[1:].mul_(2)
    return y


def through_a_loop(x):
    y = x.clone()
    for row in (y[0], y.t()[0]):
        row *= 3
    return y * x


@pytest.mark.parametrize("function", [aliased, through_a_view, through_a_loop])
@pytest.mark.parametrize("transform", [torch.compile, lambda f: lambda x: torch.vmap(f)(x[None])[0]])
def test_declared_functions_write_in_place_as_plain_ones_do(function, transform):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert transform(function)(x).tolist() == function(x).tolist()


def widened(x):
    y = x.clone()
    y += torch.ones(3, 1, 1)
    return y


def rounded(x):
    y = x.long()
    y += 0.5
    return y


@pytest.mark.parametrize("function", [widened, rounded])
def test_declared_functions_refuse_what_plain_ones_do(function):
    with pytest.raises(RuntimeError, match="in-place"):
        torch.compile(function)(torch.ones(2, 2))


def test_shifts_write_through_views_in_the_tensors_dtype():
    x = torch.tensor([1, 2, 7], dtype=torch.int16)
    alias, view = x, x[1:]
    x <<= torch.tensor([2, 2, 2])
    assert x is alias and x.dtype is torch.int16 and x.tolist() == [4, 8, 28] and view.tolist() == [8, 28]
    view >>= 1
    assert x.tolist() == [4, 4, 14]


def test_a_view_says_at_once_that_its_base_was_given_a_gradient():
    weights, base = torch.ones(3, requires_grad=True), torch.zeros(2, 3)
    view = base[1]
    assert not view.requires_grad and view.is_leaf
    base[1] = weights
    assert view.requires_grad and not view.is_leaf


def test_parts_of_complex_numbers_are_set():
    z = torch.tensor([1 + 2j, 3 - 1j])
    pairs = torch.view_as_real(z)
    z.imag = torch.tensor([0.0, 5.0])
    z.real = z.imag + 1
    assert z.tolist() == [1 + 0j, 6 + 5j] and pairs.tolist() == [[1.0, 0.0], [6.0, 5.0]]


@pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.t(), lambda x: x[:, 1:].reshape(-1)])
def test_a_detached_view_of_a_view_shows_what_was_written_through_it(view):
    base = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) + 1
    shown = view(base)
    detached = shown.detach()
    wanted = detached.clone() * 3 + 1
    detached.mul_(3.0)
    detached += 1
    assert (detached + 0).tolist() == (shown + 0).tolist() == wanted.tolist()
    assert view(base * 1).tolist() == wanted.tolist()
    detached.mul_(shown.clone())
    assert (detached + 0).tolist() == (shown * 1).tolist() == (wanted**2).tolist()


def test_copy_takes_numbers() -> None:
    x = torch.zeros(2, dtype=torch.complex64)
    assert x.copy_(2.5) is x and x.tolist() == [2.5, 2.5]
    assert x.copy_(1 - 2j).tolist() == [1 - 2j, 1 - 2j]
    assert torch.zeros(2).copy_(True).tolist() == [1.0, 1.0]
    assert torch.zeros(1, dtype=torch.int64).copy_(numpy.float32(3.7)).tolist() == [3]
    with pytest.raises(TypeError, match="a tensor or a number, not list"):
        x.copy_([1, 2])


@pytest.mark.parametrize("name, n", [("mvlgamma", 2), ("polygamma", 1)])
def test_functions_of_a_number_have_forms_in_place(name: str, n: int) -> None:
    x = torch.tensor([2.5, 3.0])
    y = x.clone()
    assert getattr(y, f"{name}_")(n) is y
    assert y.tolist() == getattr(x, name)(n).tolist()


def test_what_is_copied_into_a_leaf_stays_a_tensor_without_gradients():
    for target in (lambda leaf: leaf, lambda leaf: leaf.data, lambda leaf: leaf.detach()):
        leaf, source = torch.ones(3, requires_grad=True), torch.zeros(3) + 2
        with torch.no_grad():
            target(leaf).copy_(source)
        (leaf * leaf).sum().backward()
        assert leaf.grad.tolist() == [4.0] * 3 and not source.requires_grad and source.grad is None
        source += 1
        assert source.tolist() == [3.0] * 3 and leaf.tolist() == [2.0] * 3
    state = {name: value + 1 for name, value in torch.nn.Linear(2, 1).state_dict().items()}
    torch.nn.Linear(2, 1).load_state_dict(state)
    assert not any(value.requires_grad for value in state.values())


def test_a_detached_leaf_takes_another_shape_in_place():
    leaf = torch.nn.Parameter(torch.ones(2))
    for flat in (leaf.data, leaf.detach()):
        flat.unsqueeze_(0)
        assert tuple(flat.shape) == (1, 2) and tuple(leaf.shape) == (2,)
        flat[0, 1] = 3.0
        assert leaf.tolist() == [1.0, 3.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.unsqueeze_(0)


@pytest.mark.parametrize("key", [..., slice(None), 0, (None, ..., slice(0, 2)), (-1, ...), True])
@pytest.mark.parametrize("with_graph", [False, True])
def test_zeros_flow_back_where_an_assignment_replaces_all_elements(key, with_graph):
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    z = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * 2
    y[key] = z if with_graph else 5.0
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]
    assert z.grad is None if not with_graph else z.grad.tolist() == [1.0, 1.0]
