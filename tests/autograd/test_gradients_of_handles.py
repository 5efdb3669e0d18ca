"""Whose ``.grad`` it is where handles share memory, stop requiring gradients, or have their gradients set to 0."""

import numpy
import pytest

import twofold as torch


def trained(*values):
    w = torch.tensor(list(values), requires_grad=True)
    (w * w).sum().backward()
    return w


@pytest.mark.parametrize("share", [lambda x: x.detach(), lambda x: x.data])
def test_a_detached_handle_has_a_gradient_of_its_own(share):
    x = trained(1.0, 2.0)
    other = share(x)
    assert other.grad is None
    other.grad = None
    assert x.grad.tolist() == [2.0, 4.0]
    other.grad = torch.tensor([7.0, 7.0])
    assert x.grad.tolist() == [2.0, 4.0] and other.grad.tolist() == [7.0, 7.0]
    other.mul_(3)
    assert x.tolist() == [3.0, 6.0]


CHANGES = {
    "in place": lambda w: w.mul_(2),
    "data": lambda w: setattr(w, "data", w.data * 2),
    "through data": lambda w: w.data.mul_(2),
    "array": lambda w: w.numpy().__imul__(2),
    "array and in place": lambda w: (w.numpy(), w.mul_(2)),
    "step": lambda w: torch.optim.SGD([w], lr=0.5, maximize=True).step(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_leaf_that_requires_no_gradient_any_more_keeps_the_one_it_has(change):
    w = trained(1.0, 2.0)
    w.requires_grad_(False)
    held = CHANGES[change](w)
    assert w.grad.tolist() == [2.0, 4.0]
    w.requires_grad_(True)
    assert w.is_leaf and w.grad.tolist() == [2.0, 4.0] and w.tolist() == [2.0, 4.0]
    w.sum().backward()
    assert w.grad.tolist() == [3.0, 5.0] and held is not w.grad


@pytest.mark.parametrize("make", [torch.zeros, lambda n: torch.nn.Parameter(torch.zeros(n), False)])
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("source", [lambda v: v, lambda v: v.data, lambda v: v[:], lambda v: v[:].data])
def test_a_tensor_does_not_require_gradients_because_its_data_does(make, computed, source):
    v = torch.tensor([1.0, 2.0], requires_grad=True)
    vector = v * 2 if computed else v
    p = make(2)
    p.data = source(vector)
    assert not p.requires_grad and p.is_leaf and p.tolist() == vector.tolist()
    (p * v).sum().backward()
    assert v.grad.tolist() == vector.tolist() and p.grad is None
    p.requires_grad_(True)
    assert p.is_leaf
    torch.optim.SGD([p], lr=0.1)


@pytest.mark.parametrize("frozen_before", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_a_frozen_parameter_in_shared_memory_stays_a_leaf_when_it_is_written(frozen_before, times):
    w = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    p = torch.nn.Parameter(torch.zeros(2), requires_grad=not frozen_before)
    for _ in range(times):
        vector = w * 2
        p.data = vector[:2].view(2).data
    if not frozen_before:
        (p * p).sum().backward()
        p.requires_grad_(False)
    with torch.no_grad():
        p.copy_(torch.tensor([5.0, 6.0]))
    assert p.tolist() == [5.0, 6.0] and vector.tolist() == [5.0, 6.0, 6.0, 8.0]
    assert p.is_leaf and not p.requires_grad
    (p * w[:2]).sum().backward()
    assert w.grad.tolist() == [5.0, 6.0, 0.0, 0.0]
    assert (p.grad is None) if frozen_before else p.grad.tolist() == [4.0, 8.0]
    vector.detach().mul_(2)
    assert p.tolist() == [10.0, 12.0] and not (p * 1).requires_grad


def test_parameters_that_are_frozen_stay_so_when_a_vector_is_assigned():
    model = torch.nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    vector = torch.nn.utils.parameters_to_vector(model.parameters())
    torch.nn.utils.vector_to_parameters(vector * 0.5, model.parameters())
    assert not model.bias.requires_grad and model.bias.is_leaf and model.weight.is_leaf
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    model.double()
    assert model.bias.grad is None and model.weight.grad.tolist() == [[2.0, 2.0]] * 2


@pytest.mark.parametrize(
    "owner", [lambda p: torch.optim.SGD([p], lr=0.1), lambda p: torch.nn.ParameterList([p])]
)
def test_gradients_are_set_to_zero_in_place_whatever_they_were(owner):
    p = torch.nn.Parameter(torch.tensor([0.0, 1.0]))
    (p.log() * 2).sum().backward()
    held = p.grad
    assert held.tolist() == [float("inf"), 2.0]
    owner(p).zero_grad(set_to_none=False)
    assert held is p.grad and held.tolist() == [0.0, 0.0]
    (p * 3).sum().backward()
    assert held.tolist() == [3.0, 3.0]
    (p**3).sum().backward(create_graph=True)
    owner(p).zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0] and not p.grad.requires_grad


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("retained", [False, True])
def test_equal_gradients_that_are_shown_have_memory_of_their_own(shape, retained):
    a, b = (torch.ones(shape, requires_grad=True) for _ in range(2))
    shown = [a, b]
    c, d = (one.exp() for one in shown) if retained else shown
    e = c + d
    for one in (c, d, e) if retained else ():
        one.retain_grad()
        shown.append(one)
    (3 * e).sum().backward()
    arrays = [one.grad.numpy() for one in shown]
    assert not any(numpy.shares_memory(x, y) for k, x in enumerate(arrays) for y in arrays[:k])
    expected = [3 * numpy.e, 3 * numpy.e, 3.0, 3.0, 3.0] if retained else [3.0, 3.0]
    for array, value in zip(arrays, expected, strict=True):
        numpy.testing.assert_allclose(array, numpy.full(shape, value), rtol=1e-6)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_a_gradient_that_passes_through_a_call_is_no_call(shape):
    x = torch.ones(shape, requires_grad=True)
    with torch.no_batching(), torch.profile() as profile:
        y = x.exp() + x.tanh()
        (y + y.sin()).sum().backward()
        x.grad.tolist()
    backward = [call.name for call in profile.recording.calls() if call.is_backward]
    # the sums are those of the gradients of y and of x, the ones the first cotangent
    assert sorted(backward) == ["add", "add", "exp", "ones", "sin", "sum", "tanh"]


@pytest.mark.parametrize("observed", [False, True])
def test_a_gradient_that_is_asked_for_twice_is_the_same_both_times(observed):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    total = (y * y).sum()
    if observed:
        total.item()
    first, other, second = torch.autograd.grad(total, (y, x, y), retain_graph=True)
    assert first.tolist() == second.tolist() == [4.0, 8.0] and other.tolist() == [8.0, 16.0]
    total.backward(inputs=[y, x, y, x])
    assert y.grad.tolist() == [4.0, 8.0] and x.grad.tolist() == [8.0, 16.0]


def test_hooks_of_a_leaf_run_once_for_a_gradient_that_is_asked_for_twice():
    x, seen = torch.tensor([1.0, 2.0], requires_grad=True), []
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    torch.autograd.grad((x * x).sum(), (x, x))
    assert seen == [[2.0, 4.0]]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1.5])
def test_a_cotangent_that_is_given_is_not_the_gradient(make):
    x = torch.zeros(2, requires_grad=True)
    root, given = make(x), torch.ones(2)
    root.retain_grad()
    root.backward(given)
    root.grad.numpy()[:] = 7.0
    assert given.tolist() == [1.0, 1.0]


def test_a_gradient_that_nothing_leads_to_is_zero_also_of_what_is_not_finite():
    x = torch.tensor([float("inf"), float("nan"), 1.0], requires_grad=True)
    y = torch.ones(1, requires_grad=True)
    assert torch.autograd.grad(y.sum(), x, materialize_grads=True)[0].tolist() == [0.0, 0.0, 0.0]


def test_gradients_that_keep_their_graph_are_accumulated_into_another_tensor():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for looked in (False, True):
        x.grad = None
        (x**3).sum().backward(create_graph=True)
        first = x.grad
        if looked:
            first.tolist()
        (x**3).sum().backward(create_graph=True)
        assert first.tolist() == [3.0, 12.0] and x.grad.tolist() == [6.0, 24.0]
        (second,) = torch.autograd.grad((first * x.grad).sum(), x)  # of 18 x**4
        assert second.tolist() == [72.0, 576.0]
        x.grad = kept = torch.zeros(2)
        (x * 2).sum().backward()
        assert x.grad is kept and kept.tolist() == [2.0, 2.0]


VIEWS = {
    "slice": lambda w: w[1:3],
    "column": lambda w: w.view(2, 2)[:, 1],
    "of a computed tensor": lambda w: (w * 1)[1:3],
}


@pytest.mark.parametrize("look", [repr, torch.Tensor.tolist, lambda view: view._base.detach().numpy()])
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_that_is_looked_at_has_one_gradient(name, reads, look):
    w = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    view, seen = VIEWS[name](w), []
    view.register_hook(lambda gradient: seen.append(gradient.tolist()))
    before = view * 3
    if reads:
        before.sum().item()
    look(view)
    after = view * 5
    view.register_hook(lambda gradient: gradient * 0.5)
    total = before.sum() + after.sum()
    assert torch.autograd.grad(total, view, retain_graph=True)[0].tolist() == [4.0, 4.0]
    view.retain_grad()
    total.backward()
    assert seen == [[8.0, 8.0]] * 2 and view.grad.tolist() == [4.0, 4.0]
    assert sorted(w.grad.tolist()) == [0.0, 0.0, 4.0, 4.0]


def test_a_view_sees_what_an_array_of_its_memory_is_given():
    w = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    array = w.detach().numpy()
    view = w.view(2, 2).t()[1]
    assert (view * 2).tolist() == [4.0, 8.0]
    array[1] = 7.0
    total = (view * view).sum()
    array[3] = 5.0
    assert total.item() == 65.0 and (view * 2).tolist() == [14.0, 10.0]


def test_a_kept_gradient_that_later_gradients_read_is_not_written_to():
    w = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    hidden = w * w
    hidden.retain_grad()
    (slope,) = torch.autograd.grad((hidden.sin() * hidden).sum(), w, create_graph=True)
    kept, total = hidden.grad, (slope * slope).sum()
    first = kept.tolist()
    expected = torch.autograd.grad(total, w, retain_graph=True)[0].tolist()
    for _ in range(2):
        assert torch.autograd.grad(total, w, retain_graph=True)[0].tolist() == expected
    assert kept.tolist() == first != hidden.grad.tolist()


def test_whether_a_gradient_is_retained():
    x = torch.tensor(3.0, requires_grad=True)
    y, z = x * 2, x * 3
    y.retain_grad()
    x.retain_grad()
    found = (x.retains_grad, y.retains_grad, z.retains_grad, y.detach().retains_grad)
    assert found == (False, True, False, False)
    y.mul_(2)
    assert y.retains_grad and not torch.ones(1).retains_grad
