"""Leaves made of detached handles, and values that are written over between their use and the backward pass."""

import gc
import weakref

import pytest

import twofold as torch

WRITTEN = "has been modified by an inplace operation"


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def detached(x):
    t = x.detach()
    t.requires_grad = True
    return t


def data(x):
    t = x.data
    t.requires_grad = True
    return t


@pytest.mark.parametrize("made", [detached, data, lambda x: torch.autograd.Variable(x, requires_grad=True)])
@pytest.mark.parametrize("kept", [False, True])
def test_a_detached_handle_that_became_a_leaf_is_trained(made, kept):
    x = torch.tensor([1.0, 2.0])
    t = made(x if kept else x.clone())
    optimizer = torch.optim.SGD([t], lr=0.25)
    for _ in range(3):
        optimizer.zero_grad()
        (t * t).sum().backward()
        optimizer.step()
    assert t.requires_grad and t.is_leaf and t.grad.tolist() == [0.5, 1.0]
    assert t.tolist() == [0.125, 0.25] and x.tolist() == ([0.125, 0.25] if kept else [1.0, 2.0])


def test_old_programs_change_parameters_through_data():
    w = torch.autograd.Variable(torch.tensor([1.0, 2.0]), requires_grad=True)
    for _ in range(2):
        (w * w).sum().backward()
        w.data.sub_(0.25 * w.grad.data)
        w.grad.data.zero_()
    assert w.tolist() == [0.25, 0.5] and w.requires_grad and w.grad.tolist() == [0.0, 0.0]


def test_a_view_may_be_a_leaf():
    x = torch.zeros(3)
    t = x[1:].requires_grad_()
    (t * 3).sum().backward()
    with torch.no_grad():
        t.sub_(t.grad)
    assert t.tolist() == [-3.0, -3.0] and t.requires_grad and t.is_leaf
    assert x.tolist() == [0.0, -3.0, -3.0] and not x.requires_grad
    with pytest.raises(
        RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"
    ):
        t[0].add_(1)


def test_a_leaf_shows_what_is_written_to_its_storage():
    x = torch.zeros(3)
    t = detached(x)
    x.add_(2)
    assert t.tolist() == [2.0, 2.0, 2.0] and t.requires_grad
    (t * t).sum().backward()
    assert t.grad.tolist() == [4.0, 4.0, 4.0]


def test_a_detached_handle_takes_the_graph_of_what_it_is_given():
    w, x = leaf(5.0, 6.0), torch.ones(2)
    d = x.detach()
    d.mul_(w)
    d.sum().backward()
    assert d.requires_grad and not x.requires_grad
    assert x.tolist() == [5.0, 6.0] and w.grad.tolist() == [1.0, 1.0]


def write_without_graph(y):
    with torch.no_grad():
        y.fill_(7.0)


def write_detached(y):
    y.detach().fill_(7.0)


def write_data(y):
    y.data.fill_(7.0)


@pytest.mark.parametrize("write", [write_without_graph, write_detached, write_data])
@pytest.mark.parametrize("look", [False, True])
def test_a_write_that_no_graph_records_keeps_the_position_in_the_graph(write, look):
    x = leaf(1.0, 2.0)
    for _ in range(3):
        x.grad = None
        y = x + 1
        if look:
            y.tolist()
        write(y)
        assert y.requires_grad and not y.is_leaf and y.tolist() == [7.0, 7.0]
        (y * y).sum().backward()
        assert x.grad.tolist() == [14.0, 14.0]


@pytest.mark.parametrize("write", [write_without_graph, write_detached])
@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize(
    "used",
    [
        lambda x: (x.exp(),) * 2,
        lambda x: (lambda y: (y, y * y))(x + 1),
        lambda x: (lambda y: (y, y[0] * y[1]))(x + 1),
        lambda x: (lambda b: (b, b * x))(torch.tensor([3.0, 4.0])),
        lambda x: (lambda b: (b, b[1] * x))(torch.tensor([3.0, 4.0])),
        lambda x: (lambda y: (y.detach(), y * y))(x + 1),
        lambda x: (x, x * x),
    ],
)
def test_a_value_that_the_gradient_reads_was_written_over(write, look, used):
    for step in range(4):
        x = leaf(1.0, 2.0)
        y, z = used(x)
        total = z.sum()
        if look:
            total.item()
            y.tolist()
        if step % 2:
            write(y)
            with pytest.raises(RuntimeError, match=WRITTEN):
                total.backward()
        else:
            total.backward()


def test_a_value_that_no_gradient_reads_may_be_written_over():
    w = leaf(1.0, 2.0)
    total = (w + 1).sum()
    write_without_graph(w)
    total.backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_an_optimiser_writes_over_parameters():
    w, x = leaf(1.0, 2.0), leaf(3.0, 4.0)
    total = (w * x).sum()
    w.sum().backward()
    torch.optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match=WRITTEN):
        total.backward()


def test_what_is_written_through_data_is_what_gradients_read():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.data.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    w, b = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])
    total = (w * b[0]).sum()
    b.data.mul_(10)
    b.data.add_(1)
    total.backward()
    assert w.grad.tolist() == [31.0, 31.0]
    w, x = leaf(1.0, 2.0), leaf(3.0, 4.0)
    for step in range(4):
        w.grad = x.grad = None
        y = w * x
        total = (y * y).sum()
        if step > 1:
            y.data.fill_(1.0)
        total.backward()
        assert x.grad.tolist() == ([2.0, 4.0] if step > 1 else [6.0, 32.0])


@pytest.mark.parametrize("reads", [False, True])
def test_what_is_written_through_data_has_second_derivatives(reads):
    w, c = leaf(2.0), leaf(3.0)
    y = w * 5
    loss = (y * c).sum()
    if reads:
        loss.item()
    c.data.mul_(0.5)
    (slope,) = torch.autograd.grad(loss, w, create_graph=True)  # 5 c
    (slope * slope).sum().backward()
    assert slope.tolist() == [7.5] and c.grad.tolist() == [75.0]
    y = w * 3
    total = (y * y).sum()
    y.data.mul_(2)
    (slope,) = torch.autograd.grad(total, w, create_graph=True)
    assert slope.tolist() == [72.0] and torch.autograd.grad(slope, w)[0].tolist() == [18.0]


def test_a_write_that_the_graph_records_is_right():
    x = leaf(1.0, 2.0)
    y = x * x
    z = y * y
    y.add_(1)
    (z.sum() + y.sum()).backward()
    assert x.grad.tolist() == [6.0, 36.0]


def test_versions_count_writes_but_those_through_data():
    x = torch.zeros(3)
    counts = [x._version]
    for write in (
        lambda: x.add_(1),
        lambda: x[0].mul_(2),
        lambda: x.data.add_(1),
        lambda: x.detach().add_(1),
    ):
        write()
        counts.append(x._version)
    assert counts == [0, 1, 2, 2, 3]
    d = x.data
    d.add_(1)
    assert d._version == 1 and x._version == 3
    x.data = torch.ones(3)
    assert x._version == 3


OTHER_SHAPES = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "as_strided_": lambda x: x.as_strided_((2, 2), (1, 1)),
    "resize_": lambda x: x.resize_(3, 2),
    "resize_ to more": lambda x: x.resize_(8),
    "set_": lambda x: x.set_(torch.zeros(2)),
}


@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_versions_count_changes_of_the_shape(name):
    """Counts of PyTorch 2.13, which the base of a view has, too."""
    x = torch.zeros(2, 3)
    OTHER_SHAPES[name](x)
    assert x._version == 1
    x.add_(1)
    assert x._version == 2
    base = torch.zeros(6)
    view = base.view(2, 3)
    if "more" not in name:
        OTHER_SHAPES[name](view)
        assert view._version == 1 and (base._version == 1 or name in ("resize_", "set_"))


def test_a_write_that_is_counted_by_hand_is_refused_where_a_gradient_reads():
    x = leaf(1.0, 2.0)
    y, z = x * x, torch.zeros(2)
    loss = (y * y).sum() + z.sum()
    torch.autograd.graph.increment_version([y, z])
    assert (y._version, z._version, y.tolist()) == (1, 1, [1.0, 4.0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with pytest.raises(TypeError, match="int is no tensor"):
        torch.autograd.graph.increment_version([3])


def test_a_saved_tensor_that_got_another_shape_is_refused():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            return 2 * ctx.saved_tensors[0] * gradient

    x = leaf(1.0, 2.0) * 1
    y = Square.apply(x)
    x.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_kept_gradients_are_those_of_what_became_of_the_value():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0] and x.grad.tolist() == [30.0, 30.0]
    x, seen = leaf(1.0, 2.0), []
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    before = y * 3
    write_without_graph(y)
    (before + y * 4).sum().backward()
    assert y.grad.tolist() == [7.0, 7.0] and x.grad.tolist() == [14.0, 14.0] and seen == [[7.0, 7.0]]


def test_detaching_in_place():
    w = leaf(1.0, 2.0)
    y = w * 2
    y.detach_()
    assert not y.requires_grad and y.is_leaf and w.requires_grad
    w.detach_()
    assert not w.requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (leaf(1.0, 2.0) * 2)[0].detach_()


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize("change", ["set", "write"])
def test_a_tensor_whose_data_is_set_keeps_its_gradient(computed, looked_at, change):
    a = leaf(1.0, 1.0)
    x = a * 3 if computed else a
    y = x * x
    if looked_at:
        assert y.tolist()
    if change == "set":
        x.data = x.data * 2
    else:
        x.data.mul_(2)
    assert x.requires_grad and x.is_leaf is not computed
    (x.sum() + y.sum()).backward()
    factor, value = (3, 6) if computed else (1, 2)
    assert a.grad.tolist() == [factor * (1 + 2 * value)] * 2


def set_twice(a):
    a.data = a.data * 10
    a.data = a.data + 1


def set_and_write(a):
    a.data = a.data * 10
    assert a.tolist()
    a.data.add_(1)


def write_and_set(a):
    a.data.mul_(10)
    assert a.tolist()
    a.data = a.data + 1


def write_to_what_was_set(a):
    other = a.data * 10
    a.data = other
    other.add_(1)


# What gradients of PyTorch read: the tensor itself has what it holds now, views of it and other handles what they were.
READERS = {
    "itself": (lambda w, a: w * a, [21.0, 31.0]),
    "a view": (lambda w, a: w * a.view(2), [2.0, 3.0]),
    "another handle": (lambda w, a: w * a.detach(), [2.0, 3.0]),
    "linear": (lambda w, a: torch.nn.functional.linear(w.reshape(2, 1), a.view(2, 1)).diagonal(), [2.0, 3.0]),
    "einsum": (lambda w, a: torch.einsum("i,i->i", w, a), [2.0, 3.0]),
}


@pytest.mark.parametrize("change", [set_twice, set_and_write, write_and_set, write_to_what_was_set])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("reads", [False, True])
def test_data_that_is_set_reaches_gradients_that_read_the_tensor_itself(change, reader, reads):
    a, w = leaf(2.0, 3.0), leaf(1.0, 1.0)
    call, expected = READERS[reader]
    loss = call(w, a).sum()
    if reads:
        loss.item()
    change(a)
    loss.backward()
    if change is write_and_set and reader != "itself":
        expected = [20.0, 30.0]  # the views saw the write
    assert w.grad.tolist() == expected


def test_a_layer_whose_weight_is_set_before_the_pass_has_the_gradient_of_its_call():
    layer, x = torch.nn.Linear(2, 2, bias=False), leaf(1.0, 1.0)
    layer.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    loss = layer(x).sum()
    layer.weight.data = torch.zeros(2, 2)
    loss.backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_write_after_data_was_set_is_noticed():
    a, w = leaf(2.0, 3.0), leaf(1.0, 1.0)
    loss = (w * a).sum()
    a.data = a.data * 10
    with torch.no_grad():
        a.add_(1)
    with pytest.raises(RuntimeError, match=WRITTEN):
        loss.backward()


def test_data_of_another_type_is_refused_for_a_computed_tensor():
    x = leaf(1.0, 1.0) * 2
    with pytest.raises(RuntimeError, match=r"data: float32\[3\] for a computed tensor float32\[2\]"):
        x.data = torch.zeros(3)
    x.detach().data = torch.zeros(2)


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("write", [lambda v: v.copy_(torch.full((2,), 3.0)), lambda v: v.mul_(3)])
def test_a_leaf_in_the_memory_of_another_is_used_anew_after_a_write(write, used, array):
    w = torch.nn.Parameter(torch.ones(2))
    w.data.mul_(1.0)
    v = torch.nn.Parameter(w.data)
    before = v * 2 if used else None
    held = v.detach().numpy() if array else None
    with torch.no_grad():
        write(v)
    (v * v).sum().backward()
    assert v.grad.tolist() == [6.0, 6.0]
    assert before is None or before.tolist() == [2.0, 2.0]
    assert held is None or held.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("reads", [False, True])
def test_a_graph_ends_with_its_last_value_though_data_was_written(reads):
    class Held:
        pass

    held, x = Held(), leaf(1.0, 2.0)
    alive = weakref.ref(held)
    y = x * 2
    y.register_hook(lambda gradient, held=held: gradient)
    y.data.mul_(2)
    shown = y.data
    shown.add_(1)
    total = (y * 3).sum() + (shown * 2).sum()
    if reads:
        assert total.item() == 3 * 14 + 2 * 14
    del held, y, shown, total
    assert (torch.ones(1) + 1).item() == 2  # which runs what is recorded
    gc.collect()
    assert alive() is None


def test_second_derivatives_read_what_was_written_through_data():
    x, w = leaf(0.5, 1.0), leaf(2.0, 3.0)
    y = x * w
    square = y * y
    y.data.fill_(5.0)
    (first,) = torch.autograd.grad(square.sum(), w, create_graph=True)
    assert first.tolist() == [5.0, 10.0]  # 2 y x
    of_x, of_w = torch.autograd.grad(first.sum(), [x, w])
    assert of_x.tolist() == [2 * (5.0 + 0.5 * 2), 2 * (5.0 + 3.0)] and of_w.tolist() == [0.5, 2.0]
