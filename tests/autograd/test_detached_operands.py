"""Second derivatives of functions with detached parts: what is detached is constant in the gradient, too."""

import operator

import pytest

import twofold as torch

FUNCTIONS = {
    # with the gradients of the sum and of the sum of these, at 1 and 2
    "product": (lambda y: y.detach() * y, [1.0, 2.0], [0.0, 0.0]),
    "data": (lambda y: y.data * y, [1.0, 2.0], [0.0, 0.0]),
    "square": (lambda y: y.detach() * y * y, [2.0, 8.0], [2.0, 4.0]),
    "inside": (lambda y: (y * y).detach() * y * y, [2.0, 16.0], [2.0, 8.0]),
    "chosen": (lambda y: torch.where(y > 1, y.detach() * y, y * y), [2.0, 2.0], [2.0, 0.0]),
    "sum": (lambda y: y.sum().detach() * y * y, [6.0, 12.0], [6.0, 6.0]),
    "matrix": (lambda y: torch.stack([y.detach(), y]) @ y, [3.0, 6.0], [2.0, 2.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_pass_that_makes_a_graph(name, observed, inner):
    function, first, second = FUNCTIONS[name]
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0 if inner else x
    if observed:
        y.tolist()
    total = function(y).sum()
    if observed:
        total.item()
    (gradient,) = torch.autograd.grad(total, y, create_graph=True)
    assert gradient.tolist() == first
    if gradient.requires_grad:
        assert torch.autograd.grad(gradient.sum(), x)[0].tolist() == second
    else:
        assert not any(second)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functional_forms(name):
    function, first, second = FUNCTIONS[name]
    x = torch.tensor([1.0, 2.0])
    scalar = lambda y: function(y).sum()
    total = lambda y: torch.func.grad(scalar)(y).sum()
    assert torch.func.grad(scalar)(x).tolist() == first
    assert torch.func.grad(total)(x).tolist() == second
    assert torch.compile(torch.func.grad(total))(x).tolist() == second
    assert torch.func.hessian(scalar)(x).sum(0).tolist() == second
    assert torch.autograd.functional.hessian(scalar, x).sum(0).tolist() == second
    assert torch.func.vmap(torch.func.grad(total))(x.expand(3, 2)).tolist() == [second] * 3


@pytest.mark.parametrize(
    "cut", [lambda z: z.detach(), lambda z: z.data, lambda z: z.detach()[1:], lambda z: z.data[1:]]
)
@pytest.mark.parametrize(
    ("write", "slope"),
    [
        (lambda d, w: d.mul_(w), lambda c, w: c),
        (lambda d, w: d.add_(1).mul_(w), lambda c, w: c + 1),
        (lambda d, w: d.div_(w), lambda c, w: -c / w**2),
        (lambda d, w: d.pow_(w), lambda c, w: c**w * c.log()),
        (lambda d, w: operator.imul(d, w), lambda c, w: c),
        (lambda d, w: operator.imul(operator.iadd(d, 1), w), lambda c, w: c + 1),
        (lambda d, w: operator.itruediv(d, w), lambda c, w: -c / w**2),
        (lambda d, w: operator.imul(operator.imul(d, w), d), lambda c, w: 2 * c**2 * w),
        (lambda d, w: d.addcmul_(d, w), lambda c, w: c),
        (lambda d, w: d.addcdiv_(value=2, tensor1=d, tensor2=w), lambda c, w: -2 * c / w**2),
    ],
)
def test_a_detached_tensor_is_changed_by_what_requires_grad(cut, write, slope):
    """The gradient reads the elements from before the write, which was where the root requires grad, too."""
    values = torch.tensor([1.5, 2.0, 2.5, 3.0], dtype=torch.float64)
    z = values.clone().requires_grad_() * 1
    detached = cut(z)
    before = detached.clone()
    w = torch.tensor([2.0, 0.5, 1.5, 3.0], dtype=torch.float64)[: len(before)].requires_grad_()
    write(detached, w)
    detached.sum().backward()
    torch.testing.assert_close(w.grad, slope(before, w.detach()))


@pytest.mark.parametrize(
    "write", [lambda d, w: d.copy_(d * w), lambda d, w: d.sub_(d * w), lambda d, w: d.__setitem__(..., d * w)]
)
def test_what_was_computed_of_data_is_not_differentiated_after_data_was_written(write):
    """PyTorch refuses these, too: the product needs the elements that it replaced."""
    x = torch.tensor([1.5, 2.0]).requires_grad_()
    w = torch.tensor([2.0, 0.5]).requires_grad_()
    d = x.data
    write(d, w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        d.sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda d, w: operator.imul(d, w),
        lambda d, w: d.mul_(w),
        lambda d, w: d.copy_(d.detach() * 5),
        lambda d, w: d.copy_(w * torch.tensor([2.0, 3.0])),
    ],
)
def test_earlier_uses_of_a_root_read_what_is_written_through_data(write):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    w = torch.tensor([5.0, 5.0], requires_grad=True)
    total, d = (x * x).sum(), x.data
    write(d, w)
    total.backward()
    assert x.grad.tolist() == [20.0, 30.0]
