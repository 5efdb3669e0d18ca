"""Declared graphs as functions of tensors."""

import twofold as torch
from twofold import _core
from twofold.dtypes import float32
from twofold.ir.types import tensor_type


def test_outputs_that_are_inputs_or_bound_values():
    bound = torch.ones(3)
    x = _core.placeholder(tensor_type(float32, (3,)))
    function = _core.function((x,), (bound, x, x + bound), False, None)
    first, second, third = function(torch.arange(3.0))
    assert (first.tolist(), second.tolist(), third.tolist()) == ([1, 1, 1], [0, 1, 2], [1, 2, 3])
    assert _core.function((), (bound,), True, None)().tolist() == [1, 1, 1]


def test_compiled_function_equals_plain_python_bit_for_bit():
    def program(a, b):
        return (a @ b).softmax(-1).sum(0), a * 2

    compiled = torch.compile(program)
    for rows in (3, 5, 3):
        a, b = torch.randn(rows, 4), torch.randn(4, 6)
        for mine, theirs in zip(compiled(a, b), program(a, b), strict=True):
            assert mine.numpy().tobytes() == theirs.numpy().tobytes()
    assert compiled.__name__ == "program"


def test_compiled_function_with_gradient_runs_as_python():
    compiled = torch.compile(lambda a: (a * a).sum())
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    compiled(x).backward()
    assert x.grad.tolist() == [2, 4]


def test_a_branch_on_a_value_in_a_compiled_function_is_taken_in_each_call():
    compiled = torch.compile(lambda a: a * 2 if a.sum() > 0 else -a)
    for sign in (1, -1, 1):
        assert compiled(torch.ones(2) * sign).tolist() == ([2, 2] if sign > 0 else [1, 1])


def test_functions_of_tensors_are_no_methods_of_other_classes_as_in_pytorch():
    class Network(torch.nn.Module):
        activation, convolve = torch.tanh, torch.conv2d
        norm = torch.linalg.norm

    class Plain:
        function = torch.add
        make = torch.zeros

    x, network = torch.ones(1, 1, 2, 2), Network()
    assert network.activation(x).equal(torch.tanh(x)) and network.norm(x).item() == 2
    assert network.convolve(x, weight=x).item() == 4
    assert Plain().function(x, 2).equal(x + 2) and Plain().make(3).tolist() == [0.0, 0.0, 0.0]

    class Own(torch.Tensor):
        twice = torch.neg

    own = torch.ones(2).as_subclass(Own)
    assert own.twice().tolist() == [-1.0, -1.0] and own.add(1).tolist() == [2.0, 2.0]
