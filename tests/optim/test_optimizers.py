"""Trajectories of optimisers against float64 references, their state, and the texts of errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import optim

STEPS = 6
State = dict[str, Any]


def sgd(p: Any, g: Any, s: State, lr: float, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, maximize: bool = False) -> Any:  # fmt: skip
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        s["b"] = momentum * s["b"] + (1 - dampening) * g if "b" in s else g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return p - lr * g


def adam(p: Any, g: Any, s: State, lr: float, betas: Any = (0.9, 0.999), eps: float = 1e-8,
         weight_decay: float = 0, amsgrad: bool = False, decoupled: bool = False) -> Any:  # fmt: skip
    t = s["t"] = s.get("t", 0) + 1
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    s["top"] = numpy.maximum(s.get("top", 0), s["v"])
    v = s["top"] if amsgrad else s["v"]
    return p - lr * (s["m"] / (1 - betas[0] ** t)) / (numpy.sqrt(v / (1 - betas[1] ** t)) + eps)


def adamw(*args: Any, weight_decay: float = 0.01, **options: Any) -> Any:
    return adam(*args, weight_decay=weight_decay, decoupled=True, **options)


def adagrad(p: Any, g: Any, s: State, lr: float, lr_decay: float = 0) -> Any:
    s["t"] = s.get("t", 0) + 1
    s["v"] = s.get("v", 0) + g * g
    return p - lr / (1 + (s["t"] - 1) * lr_decay) * g / (numpy.sqrt(s["v"]) + 1e-10)


def rmsprop(p: Any, g: Any, s: State, lr: float, alpha: float = 0.99, momentum: float = 0,
            centered: bool = False) -> Any:  # fmt: skip
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
    root = numpy.sqrt(s["v"] - s["m"] ** 2 if centered else s["v"]) + 1e-8
    s["b"] = momentum * s.get("b", 0) + g / root
    return p - lr * s["b"]


def adadelta(p: Any, g: Any, s: State, lr: float, rho: float = 0.9) -> Any:
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    delta = numpy.sqrt(s.get("d", 0) + 1e-6) / numpy.sqrt(s["v"] + 1e-6) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * delta * delta
    return p - lr * delta


CASES: list[tuple[Any, Callable[..., Any], dict[str, Any]]] = [
    (optim.SGD, sgd, {"lr": 0.05}),
    (optim.SGD, sgd, {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    (optim.SGD, sgd, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    (optim.SGD, sgd, {"lr": 0.02, "maximize": True}),
    (optim.Adam, adam, {"lr": 0.05}),
    (optim.Adam, adam, {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "amsgrad": True}),
    (optim.AdamW, adamw, {"lr": 0.05}),
    (optim.AdamW, adamw, {"lr": 0.05, "weight_decay": 0.2}),
    (optim.Adagrad, adagrad, {"lr": 0.1, "lr_decay": 0.1}),
    (optim.RMSprop, rmsprop, {"lr": 0.02}),
    (optim.RMSprop, rmsprop, {"lr": 0.02, "momentum": 0.5, "centered": True}),
    (optim.Adadelta, adadelta, {"lr": 0.9}),
]


def start(dtype: Any = torch.float64) -> list[Any]:
    random = numpy.random.default_rng(3)
    shapes: list[tuple[int, ...]] = [(4, 3), (5,), ()]
    return [torch.nn.Parameter(torch.tensor(random.normal(size=shape), dtype=dtype)) for shape in shapes]


def loss_of(parameters: list[Any]) -> Any:
    return sum(((p * p * p).sum() * 0.3 + p.sin().sum()) for p in parameters)


def run(optimizer: Any, parameters: list[Any], steps: int = STEPS) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(parameters).backward()
        optimizer.step()


@pytest.mark.parametrize("make, reference, options", CASES)
def test_trajectory(make: Any, reference: Callable[..., Any], options: dict[str, Any]) -> None:
    parameters = start()
    exact = [p.detach().numpy().copy() for p in parameters]
    states: list[State] = [{} for _ in exact]
    run(make(parameters, **options), parameters)
    for _ in range(STEPS):
        exact = [reference(p, 0.9 * p * p + numpy.cos(p), s, **options) for p, s in zip(exact, states)]
    for parameter, expected in zip(parameters, exact):
        numpy.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make, reference, options", CASES)
def test_state_round_trip(make: Any, reference: Any, options: dict[str, Any]) -> None:
    whole, halves = start(torch.float32), start(torch.float32)
    run(make(whole, **options), whole)
    first = make(halves, **options)
    run(first, halves, 3)
    state = copy.deepcopy(first.state_dict())
    second = make(halves, **{**options, "lr": 9.0})
    second.load_state_dict(state)
    run(second, halves, STEPS - 3)
    for one, other in zip(whole, halves):
        assert torch.equal(one, other)


def test_state_names() -> None:
    parameters = start()
    optimizer = optim.Adam(parameters, amsgrad=True)
    run(optimizer, parameters, 1)
    state = optimizer.state_dict()
    assert sorted(state["state"][0]) == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
    assert state["param_groups"][0]["params"] == [0, 1, 2]
    assert optimizer.state[parameters[1]]["exp_avg"].shape == (5,)


def test_groups_and_learning_rate() -> None:
    a, b = start()[:2]
    optimizer = optim.SGD([{"params": [a], "lr": 0.0}, {"params": b}], lr=0.5)
    before = [a.detach().clone(), b.detach().clone()]
    loss_of([a, b]).backward()
    optimizer.step()
    assert torch.equal(a, before[0]) and torch.allclose(b, before[1] - 0.5 * b.grad)
    optimizer.add_param_group({"params": [start()[2]]})
    assert optimizer.param_groups[2]["lr"] == 0.5


def test_a_group_is_the_dictionary_that_was_given() -> None:
    a, b = start()[:2]
    groups = [{"params": a, "own": 1}, {"params": [b], "lr": 0.25}]
    optimizer = optim.SGD(groups, lr=0.5)
    assert [one is other for one, other in zip(optimizer.param_groups, groups)] == [True, True]
    assert list(groups[0])[:4] == ["params", "own", "lr", "momentum"] and groups[0]["params"][0] is a
    groups[0]["lr"] = 0.0  # as programs change the rates of groups that they keep
    before = a.detach().clone()
    loss_of([a, b]).backward()
    optimizer.step()
    assert torch.equal(a, before)


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW, optim.Adagrad, optim.RMSprop, optim.SGD])
def test_the_weight_decay_of_a_group_needs_no_default(kind: Any) -> None:
    parameters = [start()[0] for _ in range(2)]
    whole, without = (kind([one], lr=0.25, weight_decay=0.5) for one in parameters)
    del without.defaults["weight_decay"]  # as of programs that make the groups of an optimizer themselves
    for optimizer, one in zip((whole, without), parameters):
        loss_of([one]).backward()
        optimizer.step()
    assert torch.equal(*parameters)


def test_names_are_given_to_all_parameters_or_to_none() -> None:
    a, b = start()[:2]
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("a", a), b], lr=0.5)
    with pytest.raises(ValueError, match="cannot add param group with names"):
        optim.SGD([{"params": [a]}, {"params": [("b", b)]}], lr=0.5)
    named = optim.SGD([{"params": [("a", a)]}, {"params": [("b", b)]}], lr=0.5)
    assert [group["param_names"] for group in named.param_groups] == [["a"], ["b"]]


def test_parameters_without_gradient_stay() -> None:
    a, b, _ = start()
    optimizer = optim.Adam([a, b])
    a.sum().backward()
    kept = b.detach().clone()
    optimizer.step()
    assert torch.equal(b, kept) and b not in optimizer.state


def test_closure() -> None:
    parameters = start()
    optimizer = optim.SGD(parameters, lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = loss_of(parameters)
        loss.backward()
        return loss

    with torch.no_grad():
        first = optimizer.step(closure)
    assert optimizer.step(closure).item() < first.item()


def test_zero_grad() -> None:
    parameters = start()
    optimizer = optim.SGD(parameters, lr=0.1)
    loss_of(parameters).backward()
    optimizer.zero_grad(set_to_none=False)
    assert not parameters[0].grad.numpy().any()
    optimizer.zero_grad()
    assert parameters[0].grad is None


def test_gradients_are_still_recorded_after_a_step() -> None:
    parameters = start()
    run(optim.SGD(parameters, lr=0.1), parameters, 1)
    assert torch.is_grad_enabled() and loss_of(parameters).requires_grad
    assert all(p.is_leaf and p.requires_grad for p in parameters)


def test_the_first_step_is_one_trace() -> None:
    layers = [torch.nn.Linear(3, 3) for _ in range(3)]
    optimizer = optim.SGD([parameter for layer in layers for parameter in layer.parameters()], 0.1)
    hidden = torch.ones(2, 3)
    for number, layer in enumerate(layers):
        hidden = layer(hidden)
        assert torch._core.pending() > number
    hidden.sum().backward()
    optimizer.step()
    assert torch._core.pending() == 0


def test_repr() -> None:
    assert repr(optim.SGD(start(), lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda w: optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
        (lambda w: optim.SGD([w], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda w: optim.SGD([w], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda w: optim.Adam([w], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda w: optim.Adam([w], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda w: optim.Adam([w], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (
            lambda w: optim.SGD([w], nesterov=True),
            ValueError,
            "Nesterov momentum requires a momentum and zero",
        ),
        (lambda w: optim.Adam([w * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda w: optim.Adam(w), TypeError, "should be an iterable of Tensors or dicts, but got"),
        (
            lambda w: optim.Adam([3]),
            TypeError,
            "optimizer can only optimize Tensors, but one of the params is int",
        ),
        (
            lambda w: optim.Adam([{"params": [w]}, {"params": [w]}]),
            ValueError,
            "some parameters appear in more than one parameter group",
        ),
    ],
)
def test_errors(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        make(start()[0])
    assert text in str(caught.value)


def test_states_that_do_not_fit() -> None:
    parameters = start()
    state = optim.SGD(parameters).state_dict()
    with pytest.raises(ValueError, match="parameter group that doesn't match the size of optimizer's group"):
        optim.SGD(parameters[:2]).load_state_dict(state)


def test_a_parameter_that_comes_twice_is_warned_of_and_changed_twice() -> None:
    twice, once = torch.nn.Parameter(torch.tensor([1.0, 2.0])), torch.nn.Parameter(torch.tensor([3.0]))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.SGD([twice, once, twice], lr=0.25)
    (twice.sum() * 2 + once.sum()).backward()
    optimizer.step()
    assert twice.tolist() == [0.0, 1.0] and once.tolist() == [2.75]


def test_the_first_step_of_a_parameter_that_comes_twice_starts_its_momentum_twice() -> None:
    twice = torch.nn.Parameter(torch.tensor(1.0))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.SGD([twice, twice], lr=0.25, momentum=0.5)
    (twice * 2).backward()
    optimizer.step()
    assert twice.item() == 1.0 - 2 * 0.25 * 2
    optimizer.step()  # the buffer goes on from 2 by 3 to 3.5
    assert twice.item() == -0.25 * (3 + 3.5)


def test_adagrad_has_its_state_before_the_first_step() -> None:
    weight = torch.ones(2, requires_grad=True)
    state = optim.Adagrad([weight], initial_accumulator_value=0.5).state[weight]
    assert state["step"] == 0 and state["sum"].tolist() == [0.5, 0.5]
