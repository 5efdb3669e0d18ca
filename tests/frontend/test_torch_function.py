"""Classes of tensors and modes handle calls by ``__torch_function__``, as PyTorch's protocol says."""

from __future__ import annotations

import copy
import operator
import threading
from typing import Any

import pytest

import twofold as torch
from twofold import nn


class Plain(torch.Tensor):
    pass


class Further(Plain):
    pass


class Logged(torch.Tensor):
    calls: list[Any] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def plain(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float32).as_subclass(Plain)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: 1 + x,
        lambda x: torch.ones(2) - x,
        lambda x: 2 - x,
        lambda x: 2 / x,
        lambda x: x**2,
        lambda x: 2**x,
        lambda x: torch.ones(2) ** x,
        lambda x: x // 2,
        lambda x: 7 % x,
        lambda x: -x,
        lambda x: abs(x),
        lambda x: x < 1,
        lambda x: torch.ones(2) == x,
        lambda x: x @ torch.ones(2),
        lambda x: nn.Parameter(torch.ones(2)) * x,
        lambda x: x[0],
        lambda x: x.T if x.ndim == 2 else x.data,
        lambda x: x.detach(),
        lambda x: x.sum(),
        lambda x: x.to(torch.float64),
        lambda x: x.new_zeros(3),
        lambda x: torch.add(torch.ones(2), x),
        lambda x: torch.stack([torch.ones(2), x]),
        lambda x: torch.zeros_like(x),
        lambda x: torch.einsum("i,i->i", x, torch.ones(2)),
        lambda x: torch.nn.functional.softmax(x, 0),
        lambda x: nn.Linear(2, 3)(x),
        lambda x: torch.linalg.norm(x),
        lambda x: torch.fft.fft(x),
        lambda x: x.max(0).values,
        lambda x: x.unbind()[0],
        lambda x: next(iter(x)),
        lambda x: copy.deepcopy(x),
    ],
)
def test_results_have_the_class_of_the_argument(call):
    made = call(plain(1, 2))
    assert type(made) is Plain
    expected = call(torch.tensor([1.0, 2.0]))
    assert made.shape == expected.shape and made.dtype is expected.dtype


def test_values_and_gradients_are_those_of_plain_tensors():
    x = plain(1, 2).requires_grad_()
    y = (x * x).sum() + torch.ones(2) @ x
    y.backward()
    assert y.item() == 8 and x.grad.tolist() == [3, 5] and type(x.grad) is torch.Tensor
    x = plain(1, 2)
    x += 1
    x.mul_(2)
    assert type(x) is Plain and x.tolist() == [4, 6]
    y = torch.zeros(2)
    y[:] = x
    assert y.tolist() == [4, 6] and float(x[0]) == 4 and len(x) == 2 and "[4., 6.]" in repr(x)


def test_a_class_is_asked_before_those_it_derives_from():
    assert type(plain(1, 2) + torch.ones(2).as_subclass(Further)) is Further
    with pytest.raises(TypeError, match="no implementation found"):
        plain(1, 2) + torch.ones(2).as_subclass(Logged)


def test_constructors_take_no_class():
    x = plain(1, 2)
    assert type(torch.tensor(x)) is torch.Tensor and torch.as_tensor(x) is x
    assert (
        type(Plain([1.0, 2.0])) is Plain and type(torch.Tensor._make_subclass(Plain, torch.ones(2))) is Plain
    )


def test_a_class_of_the_program_sees_the_functions_that_it_names():
    Logged.calls.clear()
    x = torch.ones(2).as_subclass(Logged)
    x + 1
    torch.mean(x)
    nn.Linear(2, 2)(x)
    assert x.shape == (2,)
    assert Logged.calls == [
        torch.Tensor.add,
        torch.mean,
        torch.nn.functional.linear,
        torch.Tensor.shape.__get__,
    ]


def test_a_class_may_compute_something_else():
    class Masked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.mean:
                return "mean"
            if func in (torch.Tensor.add_, torch.Tensor.mul):
                return args[1]
            return NotImplemented

    x = torch.ones(2).as_subclass(Masked)
    assert torch.mean(x) == "mean" and x * 5 == 5 and operator.iadd(x, 3) == 3
    with pytest.raises(TypeError, match="no implementation found"):
        torch.exp(x)


def test_members_of_the_program_stay_its_own():
    class Mixin:
        @property
        def shape(self):
            return "mixed"

        def detach(self):
            return "mixed"

    class Own(torch.Tensor):
        def tolist(self):
            return "own"

    class Both(Own, Mixin):
        def item(self):
            return super().item() + 1

    x = torch.ones(1).as_subclass(Both)
    assert x.tolist() == "own" and x.item() == 2
    assert type(x.data) is Both

    class First(Mixin, Own):
        pass

    y = torch.ones(1).as_subclass(First)
    assert y.shape == "mixed" and y.detach() == "mixed" and y.tolist() == "own"


def test_classes_may_handle_no_calls():
    class Silent(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Silent)
    assert type(x + 1) is torch.Tensor and not torch.overrides.has_torch_function((x,))
    with torch._C.DisableTorchFunctionSubclass():
        assert type(plain(1, 2) + 1) is torch.Tensor
    assert type(plain(1, 2) + 1) is Plain


def test_parameters_keep_a_class_that_handles_calls():
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(torch.ones(2, 2).as_subclass(Plain))
    assert type(layer.weight) is Plain and isinstance(layer.weight, nn.Parameter)
    assert len(list(layer.parameters())) == 2 and layer.weight.requires_grad and layer.weight.is_leaf
    assert type(layer(torch.ones(1, 2))) is Plain
    assert not isinstance(plain(1), nn.Parameter)
    layer(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(layer.parameters(), 0.5).step()
    assert layer.weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]


class Doubling(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        return found * 2 if isinstance(found, torch.Tensor) else found


def test_modes_handle_all_calls_of_their_thread_alone():
    with Doubling():
        x = torch.ones(2)
        y = x + 1
        with Doubling():
            assert torch.zeros(1).exp().tolist() == [8]
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).tolist()))
        thread.start()
        thread.join()
    assert x.tolist() == [2, 2] and y.tolist() == [6, 6] and seen == [[1]]
    assert torch.ones(1).tolist() == [1]


def test_programs_let_classes_handle_their_functions():
    @torch.overrides.wrap_torch_function(lambda x, by=1: (x,))
    def shift(x, by=1):
        return x + by

    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func is shift, types, kwargs

    assert shift(Answer(), by=2) == (True, (Answer,), {"by": 2})
    assert shift(torch.ones(1)).tolist() == [2]
    with pytest.raises(TypeError, match="no implementation found"):
        torch.overrides.handle_torch_function(shift, (1,), 1)


def test_functions_are_found_by_name():
    found = torch.overrides.get_overridable_functions()
    assert torch.sum in found[torch] and torch.Tensor.add in found[torch.Tensor]
    assert torch.overrides.resolve_name(torch.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert torch.overrides.resolve_name(torch.ones) == "torch.ones"
    assert torch.overrides.resolve_name(len) is None
    assert torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not torch.overrides.is_tensor_method_or_property(torch.nn.functional.conv2d)
