"""Hooks on the gradients of tensors, and gradients kept of tensors that are no leaves."""

import pytest

import twofold as torch


def doubled(x):
    return x * 2


def test_a_hook_on_the_way_changes_what_flows_on():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = doubled(x)
    total = (y * y).sum()
    y.register_hook(lambda gradient: gradient.clamp(-5, 5))
    total.backward()
    assert x.grad.tolist() == [8.0, -10.0] and y.grad is None


def test_hooks_of_a_handle_that_is_gone_and_of_computed_values_are_called():
    x = torch.tensor([1.0, -2.0], requires_grad=True)

    def hooked():
        y = doubled(x)
        y.register_hook(lambda gradient: -gradient)
        return y.sum()

    total = hooked()
    assert total.item() == -2.0
    total.backward()
    assert x.grad.tolist() == [-2.0, -2.0]


def test_hooks_may_ask_for_values():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    w = torch.tensor([2.0, 2.0], requires_grad=True)
    y, seen = doubled(x), []
    z = y * w
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    z.register_hook(lambda gradient: gradient / gradient.max().item())
    y.register_hook(lambda gradient: gradient * float(gradient.sum()))
    (z * torch.tensor([1.0, 4.0])).sum().backward()
    assert seen == [[0.5, 2.0]]
    assert x.grad.tolist() == [2.5, 10.0] and w.grad.tolist() == [0.5, 6.0]


def test_steps_with_and_without_a_hook_do_not_take_each_others_gradients():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    for step in range(8):
        y = doubled(x)
        if step % 3 == 0:
            y.register_hook(lambda gradient: gradient * 10)
        x.grad = None
        y.sum().backward()
        assert x.grad.tolist() == ([20.0, 20.0] if step % 3 == 0 else [2.0, 2.0])


def test_gradients_are_kept_of_values_that_were_looked_at():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = doubled(x)
    y.retain_grad()
    z = y * y
    assert z.tolist() == [4.0, 36.0]
    z.retain_grad()
    z.register_hook(lambda gradient: gradient * 2)
    z.sum().backward()
    assert z.grad.tolist() == [2.0, 2.0] and y.grad.tolist() == [8.0, 24.0]


def test_a_changed_gradient_has_gradients():
    x = torch.tensor([2.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda gradient: gradient * gradient)
    (first,) = torch.autograd.grad(y.sum() * x.sum(), x, create_graph=True)  # 2 x * x * x + x * x
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.item() == 20.0 and second.item() == 28.0


def test_hooks_of_leaves_are_called_by_grad():
    x = torch.tensor([2.0], requires_grad=True)
    x.register_hook(lambda gradient: gradient * 5)
    assert torch.autograd.grad(x.sum(), x)[0].item() == 5.0


def test_what_a_hook_returns_is_checked():
    x = torch.ones(3, requires_grad=True)
    y = doubled(x)
    handle = y.register_hook(lambda gradient: gradient[:1])
    total = y.sum()
    with pytest.raises(RuntimeError, match="register_hook: a hook was given a gradient of"):
        total.backward(retain_graph=True)
    handle.remove()
    total.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_the_gradient_of_a_result_to_itself_is_what_was_given():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y, given = doubled(x), torch.tensor([5.0, 6.0])
    assert torch.autograd.grad(y, y, given)[0].tolist() == [5.0, 6.0]


def test_each_output_has_its_own_cotangent():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="2 outputs and 1 grad_outputs"):
        torch.autograd.grad([x * 2, x * 3], x, [torch.ones(2)])


def test_a_gradient_that_a_hook_keeps_does_not_change():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    kept = []
    x.register_hook(kept.append)
    for factor in (3.0, 4.0):
        (x * factor).sum().backward()
    assert [one.tolist() for one in kept] == [[3.0, 3.0], [4.0, 4.0]]
    assert x.grad.tolist() == [7.0, 7.0]


def test_grad_gives_the_gradient_of_a_value_on_the_way_after_its_hooks():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: gradient * 3)
    y.register_hook(lambda gradient: gradient + 1)
    z = (y * y).sum()
    (alone,) = torch.autograd.grad(z, y, retain_graph=True)
    assert alone.tolist() == [13.0, 25.0]
    both = torch.autograd.grad(z, [x, y], retain_graph=True)
    assert [one.tolist() for one in both] == [[26.0, 50.0], [13.0, 25.0]]


@pytest.mark.parametrize("look", [False, True])
def test_asking_for_gradients_fills_those_that_are_retained_on_the_way(look):
    # the numbers are those of PyTorch 2.13, which adds to `.grad` of retained values in every pass that reaches them
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    w = torch.tensor([1.0, 1.0], requires_grad=True)
    y, beside = x * 2, w * 2
    y.retain_grad()
    beside.retain_grad()
    z = (y * y * beside).sum()
    z.retain_grad()
    if look:
        assert z.item() == 104.0
    (first,) = torch.autograd.grad(z, x, retain_graph=True)
    assert first.tolist() == [32.0, 48.0] and x.grad is None
    assert y.grad.tolist() == [16.0, 24.0] and beside.grad is None and z.grad.item() == 1.0
    (second,) = torch.autograd.grad(z, y, retain_graph=True)
    assert second.tolist() == [16.0, 24.0] and y.grad.tolist() == [32.0, 48.0]
    second.mul_(0)
    assert y.grad.tolist() == [32.0, 48.0]
    z.backward(inputs=[x])
    assert x.grad.tolist() == [32.0, 48.0] and y.grad.tolist() == [48.0, 72.0] and beside.grad is None


def test_retained_gradients_come_after_the_hooks_and_may_have_graphs():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda gradient: gradient * 10)
    (found,) = torch.autograd.grad(y * y, x, create_graph=True)
    assert found.item() == 160.0 and y.grad.item() == 80.0 and y.grad.requires_grad
    (again,) = torch.autograd.grad(y.grad, x)
    assert again.item() == 400.0  # the hook is called in this pass, too


def test_a_value_without_a_gradient_tells_its_hooks_so():
    # as PyTorch 2.13 does: None flows on from a backward that returns None, and through functions that see zeros
    seen = []

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y

        @staticmethod
        def backward(ctx, cotangent):
            return None, cotangent

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, cotangent):
            seen.append(("zeros", cotangent.item()))
            return cotangent + 3

    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(1.0, requires_grad=True)
    x.register_hook(lambda gradient: seen.append(("x", gradient)))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(("after", leaf.grad)))
    h = x * 3
    h.retain_grad()
    h.register_hook(lambda gradient: seen.append(("h", gradient)))
    Nothing.apply(h, y).backward()
    assert seen == [("h", None), ("x", None), ("after", None)]
    assert x.grad is None and h.grad is None and y.grad.item() == 1.0
    seen.clear()
    z = torch.tensor(2.0, requires_grad=True)
    Nothing.apply(Kept.apply(z), y).backward()
    assert seen == [("zeros", 0.0)] and z.grad.item() == 3.0
    (found,) = torch.autograd.grad(Nothing.apply(x * 1, y), x, allow_unused=True)
    assert found is None


def test_hooks_of_results_without_a_gradient_are_called_before_backward():
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append((first, second))
            return first * 2 if second is None else second * 3

    x = torch.tensor(2.0, requires_grad=True)
    for answer, gradient in ((None, 2.0), (torch.tensor(5.0), 15.0)):
        seen.clear()
        x.grad = None
        first, second = Two.apply(x)
        second.register_hook(lambda gradient, answer=answer: seen.append(gradient) or answer)
        first.backward()
        assert seen[0] is None and seen[1][1] is answer and x.grad.item() == gradient


@pytest.mark.parametrize(
    "write", [lambda v: v.mul_(2.0), lambda v: v.copy_(v * 2), lambda v: v.__setitem__(..., v * 2)]
)
@pytest.mark.parametrize("reads", [False, True])
def test_a_view_that_was_written_to_is_a_view_of_what_its_base_is_then(write, reads):
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = w * w
    view = base[1]
    write(view)
    if reads:
        assert view.tolist() == [18.0, 32.0]
    view.retain_grad()
    seen = []
    view.register_hook(lambda gradient: seen.append(gradient.tolist()))
    view.register_hook(lambda gradient: gradient * 0.5)
    (base.sum() * 3 + view.sum()).backward()  # what the base is read for is not the gradient of the view
    assert seen == [[1.0, 1.0]] and view.grad.tolist() == [0.5, 0.5]
    assert w.grad.tolist() == [[6.0, 12.0], [42.0, 56.0]]
