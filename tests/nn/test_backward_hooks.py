"""Hooks on the gradients of modules: what they see, when, and what their answers change."""

import copy
import gc
import weakref

import pytest

import twofold as torch
from twofold import nn


def values(gradients):
    return tuple(None if one is None else one.tolist() for one in gradients)


def linear():
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.fill_(0.5)
    return layer


def watched(module):
    seen = []
    module.register_full_backward_hook(lambda module, *found: seen.append(tuple(map(values, found))))
    return seen


def ones():
    return torch.ones(1, 2, requires_grad=True)


@pytest.mark.parametrize("look", [False, True])
def test_a_hook_sees_the_gradients_of_inputs_and_results(look):
    layer, x = linear(), ones()
    seen = watched(layer)
    for _ in range(3):
        y = layer(x)
        if look:
            y.tolist()
        (y**2).sum().backward()
    assert seen == [(([[52.0, 74.0]],), ([[7.0, 15.0]],))] * 3
    assert x.grad.tolist() == [[156.0, 222.0]]
    assert layer.weight.grad.tolist() == [[21.0, 21.0], [45.0, 45.0]]


def test_answers_replace_the_gradients():
    layer, x = linear(), ones()
    layer.register_full_backward_pre_hook(lambda layer, grad_output: (grad_output[0] * 10,))
    layer.register_full_backward_hook(lambda layer, grad_input, grad_output: (grad_input[0] * 2,))
    seen = watched(layer)
    layer(x).sum().backward()
    assert seen == [(([[80.0, 120.0]],), ([[10.0, 10.0]],))]
    assert x.grad.tolist() == [[80.0, 120.0]]
    assert layer.weight.grad.tolist() == [[10.0, 10.0], [10.0, 10.0]]


def test_without_an_input_that_requires_grad():
    layer = linear()
    seen = watched(layer)
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), ([[1.0, 1.0]],))]
    layer.register_full_backward_hook(lambda layer, grad_input, grad_output: (grad_output[0],))
    with pytest.raises(RuntimeError, match="where no input requires gradient"):
        layer(torch.ones(1, 2)).sum().backward()


def test_several_arguments_and_results():
    class Mixed(nn.Module):
        def forward(self, a, number, b, c):
            return a * b, number, b * 2

    module, a, b = Mixed(), *(torch.tensor(x, requires_grad=True) for x in ([1.0, 2.0], [3.0, 4.0]))
    module.register_full_backward_hook(lambda module, g, _: (g[0] * 2, None, g[2] * 3, g[3]))
    seen = watched(module)
    module(a, 5, b, torch.ones(2))[0].sum().backward()
    assert seen == [(([6.0, 8.0], None, [3.0, 6.0], [0.0, 0.0]), ([1.0, 1.0], None, None))]
    assert a.grad.tolist() == [6.0, 8.0] and b.grad.tolist() == [3.0, 6.0]


def test_modules_in_modules():
    net = nn.Sequential(linear(), nn.ReLU(), linear())
    seen = []
    for name, module in net.named_modules():
        module.register_full_backward_hook(
            lambda module, grad_input, _, name=name: seen.append((name, values(grad_input)))
        )
    net(ones()).sum().backward()
    inner, outer = ([[4.0, 6.0]],), ([[22.0, 32.0]],)
    assert seen == [("2", inner), ("1", inner), ("0", outer), ("", outer)]


def test_a_hook_is_called_in_every_pass_until_it_is_removed():
    layer = linear()
    seen = []
    handle = layer.register_full_backward_hook(lambda *found: seen.append(1))
    total = (layer(ones()) ** 2).sum()
    total.backward(retain_graph=True)
    total.backward()
    handle.remove()
    layer(ones()).sum().backward()
    assert seen == [1, 1]


def test_answers_of_the_wrong_number_are_refused():
    layer = linear()
    layer.register_full_backward_hook(lambda layer, grad_input, _: grad_input * 2)
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        layer(ones()).sum().backward()


def test_modules_with_hooks_and_parametrisations_are_copied():
    layer = nn.utils.parametrizations.weight_norm(linear())
    made = copy.deepcopy(layer)
    with torch.no_grad():
        made.parametrizations.weight.original0.mul_(2)
    assert torch.allclose(made.weight, layer.weight * 2) and type(made) is not type(layer)
    assert [name for name, _ in made.named_parameters()] == [name for name, _ in layer.named_parameters()]
    nn.utils.parametrize.remove_parametrizations(made, "weight")
    assert isinstance(made.weight, nn.Parameter) and nn.utils.parametrize.is_parametrized(layer, "weight")


def test_a_result_whose_gradients_no_hook_sees_is_warned_of():
    class Named(nn.Module):
        def forward(self, x):
            return {"x": x * 2}

    layer = Named()
    layer(ones())
    layer.register_full_backward_hook(lambda *found: pytest.fail("called"))
    with pytest.warns(UserWarning, match="Named returned a dict") as warned:
        layer(ones())["x"].sum().backward()
    assert warned[0].filename == __file__


def test_all_arguments_of_a_watched_module_have_gradients():
    # in PyTorch a hook makes zeros of what no gradient came to, before and behind the module
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(3.0))

        def forward(self, x, y):
            return x * 2, x * self.scale + y

    module = Two()
    seen = watched(module)
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    first, _ = module(x, y)
    first.backward()
    assert seen == [((2.0, 0.0), (1.0, None))]
    assert x.grad.item() == 2.0 and y.grad.item() == 0.0 and module.scale.grad.item() == 0.0


@pytest.mark.parametrize("differentiates", [False, True])
def test_a_graph_with_backward_hooks_of_a_module_ends(differentiates):
    class Held:
        pass

    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, inputs, outputs: None)
    layer.register_full_backward_pre_hook(lambda module, outputs: None)
    held, x = Held(), torch.ones(2, requires_grad=True)
    alive = weakref.ref(held)
    y = x * 2
    y.register_hook(lambda gradient, held=held: gradient)
    total = layer(y).sum()
    if differentiates:
        total.backward()
    del held, y, total
    assert (torch.ones(1) + 1).item() == 2  # which runs what is recorded
    gc.collect()
    assert alive() is None
