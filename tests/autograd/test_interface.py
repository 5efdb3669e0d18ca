"""Hooks after accumulation and for saved tensors, the search for NaN, attributes and copies of tensors."""

import copy
import math
import warnings

import pytest

import twofold as torch
from twofold.autograd import detect_anomaly, set_detect_anomaly
from twofold.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_hooks_after_accumulation():
    w, seen = leaf(1.0, 2.0), []
    w.register_hook(lambda gradient: gradient.clamp(max=3.0))
    handle = w.register_post_accumulate_grad_hook(lambda p: seen.append((p is w, p.grad.tolist())))
    for _ in range(2):
        (w * w).sum().backward()
    torch.autograd.grad((w * w).sum(), w)
    handle.remove()
    (w * w).sum().backward()
    assert seen == [(True, [2.0, 3.0]), (True, [4.0, 6.0])]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (w * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)


def test_a_step_may_be_taken_in_the_backward_pass():
    layer = torch.nn.Linear(2, 1)
    plain = copy.deepcopy(layer)
    own = {p: torch.optim.SGD([p], lr=0.1) for p in layer.parameters()}

    def step(p):
        own[p].step()
        p.grad = None

    for p in layer.parameters():
        p.register_post_accumulate_grad_hook(step)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(4):
        (layer(torch.ones(1, 2)) ** 2).sum().backward()
        optimizer.zero_grad()
        (plain(torch.ones(1, 2)) ** 2).sum().backward()
        optimizer.step()
    assert [p.tolist() for p in layer.parameters()] == [p.tolist() for p in plain.parameters()]
    assert all(p.grad is None for p in layer.parameters())


def test_saved_tensors_are_packed_and_unpacked():
    a, b, seen = leaf(1.0, 2.0), leaf(3.0, 4.0), []

    def pack(x):
        seen.append(x.tolist())
        return x.numpy().copy()

    with saved_tensors_hooks(pack, torch.from_numpy):
        z = (a * b).relu()
    assert seen == [[1.0, 2.0], [3.0, 4.0], [3.0, 8.0]]
    z.sum().backward()
    assert a.grad.tolist() == [3.0, 4.0] and b.grad.tolist() == [1.0, 2.0]


def test_what_is_unpacked_is_what_the_gradient_reads():
    for _ in range(3):
        a = leaf(1.0, 2.0)
        with saved_tensors_hooks(lambda x: x * 2, lambda x: x * 10):
            y = a * a
        y.sum().backward()
        assert a.grad.tolist() == [40.0, 80.0]
        a.grad = None
        (a * a).sum().backward()
        assert a.grad.tolist() == [2.0, 4.0]


def test_packed_values_have_second_derivatives():
    a = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        y = (a**3).sum()
    (first,) = torch.autograd.grad(y, a, create_graph=True)
    assert torch.autograd.grad(first.sum(), a)[0].tolist() == [6.0, 12.0]


def test_hooks_for_saved_tensors_are_nested_and_refused():
    a, seen = leaf(1.0, 2.0), []
    with saved_tensors_hooks(lambda x: seen.append("outer") or x, lambda x: x):
        with saved_tensors_hooks(lambda x: seen.append("inner") or x, lambda x: x):
            a.exp()
        a.exp()
    a.exp().tolist()
    assert seen == ["inner", "outer"]
    with save_on_cpu():
        y = a.exp().sum()
    y.backward()
    assert torch.allclose(a.grad, a.exp())
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        save_on_cpu().__enter__()
    with saved_tensors_hooks(lambda x: x, lambda x: 3):
        y = (a * a).sum()
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        y.backward()
    with saved_tensors_hooks(lambda x: x, lambda x: x[:1]):
        y = (a * a).sum()
    with pytest.raises(RuntimeError, match="was packed and"):
        y.backward()


def test_the_first_gradient_that_is_nan_is_found():
    x = leaf(0.0, 1.0)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), detect_anomaly():
        y = (x * 0).sqrt() * 0
        with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward' returned nan .*test_interface\.py"):
            y.sum().backward()
    x = leaf(4.0, 1.0)
    with set_detect_anomaly(True):
        assert torch.autograd.anomaly.is_anomaly_enabled()
        for _ in range(2):
            (x.sqrt().sum() * x.sum()).backward()
    assert not torch.autograd.anomaly.is_anomaly_enabled()
    assert x.grad.tolist() == [8.5, 11.0]
    (x * float("nan")).sum().backward()


@pytest.mark.parametrize("uses", ["difference", "product", "branch"])
def test_a_gradient_that_is_nan_is_found_where_a_leaf_sums_several(uses):
    x = leaf(1.0, 2.0)
    made = {
        "difference": lambda: (x - x).sqrt() * 0,
        "product": lambda: (x * x - x * x).sqrt() * 0 + x,
        "branch": lambda: torch.where(x > 5, (x - x).log(), x),
    }[uses]
    with set_detect_anomaly(True):
        y = made().sum()
        name = "Log" if uses == "branch" else "Sqrt"
        with pytest.raises(RuntimeError, match=f"Function '{name}Backward' returned nan"):
            y.backward()


def test_a_sum_of_infinite_gradients_is_the_anomaly_of_no_function():
    x = leaf(1.0, 2.0)
    with set_detect_anomaly(True):
        (x - x).sqrt().sum().backward()  # infinity less infinity, as in PyTorch
    assert all(math.isnan(one) for one in x.grad.tolist())


def test_a_pass_from_before_is_not_searched():
    x, y = leaf(4.0, 1.0), leaf(1.0)
    (x * float("nan")).sum().backward()
    with set_detect_anomaly(True):
        y.sqrt().sum().backward()
    assert y.grad.tolist() == [0.5]


def test_the_gradient_of_a_value_on_the_way_warns():
    x = leaf(2.0, 1.0)
    y = x * 2
    with pytest.warns(UserWarning, match="that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None and y.detach().grad is None
        y.retain_grad()
        y.sum().backward()
        assert y.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        torch.zeros(2).retain_grad()


def test_attributes_of_tensors():
    t = torch.zeros(2)
    t.name, t.notes = "t", [1]
    t.add_(1)
    p = torch.nn.Parameter(t)
    p.tag = "p"
    with torch.no_grad():
        p.add_(1)
    assert (t.name, p.tag, t.__dict__) == ("t", "p", {"name": "t", "notes": [1]})
    assert not hasattr(t * 1, "name") and not hasattr(torch.zeros(2), "name")
    made = copy.deepcopy(t)
    made.notes.append(2)
    assert t.notes == [1] and made.notes == [1, 2] and copy.deepcopy(p).tag == "p"
    del t.name
    with pytest.raises(AttributeError, match="name"):
        _ = t.name
    for _ in range(600):
        x = torch.zeros(1)
        assert not hasattr(x, "mark")
        x.mark = 1


def test_attributes_have_the_names_of_declared_tensors_too():
    import twofold.static  # gives declared tensors a name, an operation and a graph

    assert twofold.static
    t = torch.zeros(2)
    assert not hasattr(t, "name")
    t.name, t.graph = "t", 3
    assert (t.name, t.graph) == ("t", 3)
    del t.name
    assert not hasattr(t, "name")


def test_copies_have_gradients_of_their_own():
    w = leaf(1.0, 2.0)
    (w * w).sum().backward()
    made = copy.deepcopy(w)
    made.grad.add_(1)
    assert made.grad.tolist() == [3.0, 5.0] and w.grad.tolist() == [2.0, 4.0]
    assert made.requires_grad and made.is_leaf


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("size", [1, 6])
def test_a_gradient_that_is_given_has_the_dtype_of_its_output(dtype, size):
    x = torch.full((size,), 3.0, requires_grad=True)
    seed = torch.ones(size, dtype=dtype)
    (found,) = torch.autograd.grad(x * x, x, seed)
    torch.autograd.backward(x * x, seed)
    (x * x).backward(seed)
    assert found.dtype is torch.float32 and found.tolist() == [6.0] * size
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [12.0] * size
    (rows,) = torch.autograd.grad(x * x, x, torch.stack([seed, seed]), is_grads_batched=True)
    assert rows.tolist() == [[6.0] * size] * 2


@pytest.mark.parametrize("seed", [torch.ones(3), torch.ones(2, dtype=torch.complex64), 1.0])
def test_a_gradient_of_another_shape_or_kind_is_refused(seed):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"gradient of float32\[2\] .* is given as .* Give a tensor of that shape"
    ):
        (x * x).backward(seed)
