"""Entries that users reach only through programs: control flow, recurrent layers, gradients, batching, views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import scipy.linalg
from declare import internal, normal

import twofold as torch
from twofold import nn

Found = Iterator[tuple[Any, ...]]


def tensor(array: Any, grad: bool = False) -> Any:
    """A tensor of an array."""
    made = torch.tensor(numpy.asarray(array))
    return made.requires_grad_() if grad else made


def array(value: Any) -> Any:
    """The array of a tensor."""
    return value.detach().numpy()


@internal("constant", "input")
def _constant() -> Found:
    yield array(tensor(normal(3)) * 2.5), normal(3) * 2.5
    yield array(torch.full((2,), 7.0)), numpy.array([7.0, 7.0], numpy.float32)


@internal("write_view")
def _write_view() -> Found:
    for key in (numpy.s_[1], numpy.s_[:, 1:], numpy.s_[::2, 3]):
        expected, found = normal(3, 4), tensor(normal(3, 4))
        expected[key] = 5.0
        found[key] = 5.0
        yield array(found), expected
    found, expected = tensor(normal(3, 4)), normal(3, 4)
    found.t().select(0, 2).mul_(3.0)
    expected[:, 2] *= 3
    yield array(found), expected
    found, expected = tensor(normal(4, 4)), normal(4, 4)
    found.diagonal().zero_()
    numpy.fill_diagonal(expected, 0)
    yield array(found), expected


@internal("frequency_scaled")
def _frequency_scaled() -> Found:
    index, ct = numpy.array([[1, 2, 1], [0, 1, 1]]), normal(2, 3, 2)
    table = tensor(normal(5, 2), grad=True)
    found = nn.functional.embedding(tensor(index), table, scale_grad_by_freq=True)
    yield array(found), normal(5, 2)[index]
    (found * tensor(ct)).sum().backward()
    expected = numpy.zeros((5, 2))
    for at in numpy.ndindex(2, 3):
        expected[index[at]] += ct[at] / (index == index[at]).sum()
    yield array(table.grad), expected


@internal("branch", "get_output", "program_results", "result_block")
def _branch() -> Found:
    for sign in (1.0, -1.0):
        x = tensor(sign * abs(normal(3)), grad=True)
        found = torch.cond(x.sum() > 0, lambda x: (x * 2, x.sum()), lambda x: (x**2, x.min()), (x,))
        given = array(x)
        expected = (given * 2, given.sum()) if sign > 0 else (given**2, given.min())
        yield array(found[0]), expected[0]
        yield array(found[1]), expected[1]
        found[0].sum().backward()
        yield array(x.grad), numpy.full(3, 2.0) if sign > 0 else 2 * given


@internal("call")
def _call() -> Found:
    """A long trace is compiled as calls of bodies."""
    given = normal(5)
    for name in ("unfused", "fused"):
        torch._core.set_tier(name)
        try:
            x, calls = tensor(given), torch.stats().body_calls
            for _ in range(100):
                x = torch.cumsum(torch.sin(x), 0) * 0.25
            found = array(x)
        finally:
            torch._core.set_tier("auto")
        assert name == "unfused" or torch.stats().body_calls > calls + 2
        expected = given
        for _ in range(100):
            expected = numpy.cumsum(numpy.sin(expected)) * 0.25
        yield found, expected


@internal("loop", "sized")
def _loop() -> Found:
    x = tensor(normal(3), grad=True)
    count, found = torch.while_loop(
        lambda k, y: k < 5, lambda k, y: (k + 1, y * torch.cos(y)), (torch.tensor(0), x)
    )
    expected, slope = normal(3), numpy.ones(3)
    for _ in range(5):
        slope = slope * (numpy.cos(expected) - expected * numpy.sin(expected))
        expected = expected * numpy.cos(expected)
    yield array(count), numpy.array(5)
    yield array(found), expected
    found.sum().backward()
    yield array(x.grad), slope


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * x * 7  # not the derivative, so that it is seen to be used


@internal("user_link")
def _user_link() -> Found:
    x = tensor(normal(3), grad=True)
    y = _Cube.apply(x)
    yield array(y), normal(3) ** 3
    (y * y).sum().backward()
    yield array(x.grad), 2 * normal(3) ** 3 * normal(3) * 7


@internal("user_gradient", "pullback", "ruled")
def _user_gradient() -> Found:
    found = torch.func.vmap(torch.func.grad(lambda x: _Cube.apply(x).sum()))(tensor(normal(2, 3)))
    yield array(found), normal(2, 3) * 7
    x = tensor(normal(3), grad=True)
    y = _Cube.apply(x)
    yield array(y), normal(3) ** 3
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    yield array(first), 2 * normal(3) ** 3 * normal(3) * 7
    (second,) = torch.autograd.grad(first.sum(), x)
    # the derivative of 14 x y with y' = 7 x
    yield array(second), 14 * (normal(3) ** 3 + normal(3) * 7 * normal(3))
    x = tensor(normal(2, 3), grad=True)  # softmax is a composite with a rule of its own
    torch.softmax(x, 1)[:, 0].sum().backward()
    p = numpy.exp(normal(2, 3)) / numpy.exp(normal(2, 3)).sum(1, keepdims=True)
    yield array(x.grad), p[:, :1] * (numpy.eye(3)[0] - p)


@internal("pullback_rows")
def _rows_of_two_calls() -> Found:
    gain, x = tensor(normal(3), grad=True), tensor(normal(4, 3))
    ((x * gain).sum() + (x[:2] * gain * 2).sum()).backward()
    yield array(gain.grad), normal(4, 3).sum(0) + 2 * normal(4, 3)[:2].sum(0)


@internal("pullback_blocks")
def _parts_of_one_value() -> Found:
    x = tensor(normal(4, 6), grad=True)
    a, b, c = (x * 1.0).chunk(3, 1)
    (a * a + b.exp() + 3 * c).sum().backward()
    parts = numpy.split(normal(4, 6), 3, 1)
    yield array(x.grad), numpy.concatenate([2 * parts[0], numpy.exp(parts[1]), numpy.full((4, 2), 3.0)], 1)


@internal("pullback_chain")
def _chain_of_two_calls() -> Found:
    w, x = tensor(normal(3, 2), grad=True), tensor(normal(4, 3))
    (
        torch.addmm(torch.zeros(2, dtype=torch.float64), x, w).sum()
        + torch.addmm(torch.zeros(2, dtype=torch.float64), x[:2], w * 1.0).sum()
    ).backward()
    ones = numpy.ones((4, 2))
    yield array(w.grad), normal(4, 3).T @ ones + normal(4, 3)[:2].T @ ones[:2]
    w.grad = None
    for part in (x[:2], x[2:]):
        torch.addmm(torch.zeros(2, dtype=torch.float64), part, w).sum().backward()
    yield array(w.grad), normal(4, 3).T @ ones


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * 2 * x


@internal("differentiated_once")
def _once() -> Found:
    x = tensor(normal(3), grad=True)
    (first,) = torch.autograd.grad(_Once.apply(x).sum(), x, create_graph=True)
    yield array(first), 2 * normal(3)


@internal("vmap", "batched_view", "batched_host")
def _vmap() -> Found:
    x, y = normal(4, 3), normal(4, 3, seed=1)
    found = torch.func.vmap(lambda a, b: (a * b).flip(0).cumsum(0))(tensor(x), tensor(y))
    yield array(found), numpy.cumsum((x * y)[:, ::-1], 1)
    found = torch.func.vmap(lambda a: a.reshape(3, 2).t())(tensor(normal(4, 6)))
    yield array(found), normal(4, 6).reshape(4, 3, 2).swapaxes(1, 2)
    a, b = normal(3, 4, 2), normal(3, 4, 1)
    found = torch.func.vmap(lambda a, b: torch.linalg.lstsq(a, b).solution)(tensor(a), tensor(b))
    yield array(found), numpy.stack([scipy.linalg.lstsq(one, other)[0] for one, other in zip(a, b)])


@internal("observed")
def _observed() -> Found:
    x = tensor(normal(3), grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda ct: seen.append(array(ct).copy()))
    (y * tensor(normal(3, seed=1))).sum().backward()
    yield seen[0], normal(3, seed=1)
    yield array(x.grad), 2 * normal(3, seed=1)


# Recurrent layers, one step after another


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + numpy.exp(-x))


def lstm_step(x: Any, states: Any, weights: Any) -> Any:
    """One step of an LSTM with PyTorch's order of gates: input, forget, cell, output."""
    (h, c), (w, u, b, d) = states, weights
    i, f, g, o = numpy.split(x @ w.T + b + h @ u.T + d, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
    return sigmoid(o) * numpy.tanh(c), c


def gru_step(x: Any, states: Any, weights: Any) -> Any:
    """One step of a GRU with PyTorch's order of gates: reset, update, new."""
    (h,), (w, u, b, d) = states, weights
    given, before = numpy.split(x @ w.T + b, 3, -1), numpy.split(h @ u.T + d, 3, -1)
    r, z = (sigmoid(given[k] + before[k]) for k in range(2))
    n = numpy.tanh(given[2] + r * before[2])
    return ((1 - z) * n + z * h,)


def rnn_step(activation: Any) -> Any:
    """One step of an Elman network."""

    def step(x: Any, states: Any, weights: Any) -> Any:
        (h,), (w, u, b, d) = states, weights
        return (activation(x @ w.T + b + h @ u.T + d),)

    return step


CELLS: dict[str, tuple[Any, Any, int]] = {
    "lstm": (lambda: nn.LSTM(3, 4), lstm_step, 2),
    "gru": (lambda: nn.GRU(3, 4), gru_step, 1),
    "rnn_tanh": (lambda: nn.RNN(3, 4), rnn_step(numpy.tanh), 1),
    "rnn_relu": (lambda: nn.RNN(3, 4, nonlinearity="relu"), rnn_step(lambda x: numpy.maximum(x, 0)), 1),
}


def unrolled(step: Any, states: int, x: Any, weights: Any) -> Any:
    """The outputs of all steps from states of zeros."""
    now = tuple(numpy.zeros((x.shape[1], 4)) for _ in range(states))
    rows = []
    for frame in x:
        now = step(frame, now, weights)
        rows.append(now[0])
    return numpy.stack(rows)


def slope(function: Any, x: Any, ct: Any) -> Any:
    """The gradient of ``sum(ct * function(x))`` by central differences."""
    found = numpy.zeros_like(x)
    for at in numpy.ndindex(*x.shape):
        step = numpy.zeros_like(x)
        step[at] = 1e-6
        found[at] = (ct * (function(x + step) - function(x - step))).sum() / 2e-6
    return found


def check_cell(kind: str) -> Found:
    """A layer's outputs and gradients against the unrolled steps."""
    make, step, states = CELLS[kind]
    torch.manual_seed(3)
    layer = make().double()
    weights = [array(p) for p in layer.parameters()]
    x, ct = normal(5, 2, 3), normal(5, 2, 4)
    given = tensor(x, grad=True)
    found = layer(given)[0]
    yield array(found), unrolled(step, states, x, weights)
    (found * tensor(ct)).sum().backward()
    yield array(given.grad), slope(lambda x: unrolled(step, states, x, weights), x, ct), 1e-6
    for k, parameter in enumerate(layer.parameters()):

        def changed(value: Any, k: int = k) -> Any:
            return unrolled(step, states, x, [*weights[:k], value, *weights[k + 1 :]])

        yield array(parameter.grad), slope(changed, weights[k], ct), 1e-6


@internal("lstm_states", "lstm_cotangents", "recurrent_states", "recurrent_output")
def _lstm() -> Found:
    yield from check_cell("lstm")


@internal("gru_states", "gru_cotangents")
def _gru() -> Found:
    yield from check_cell("gru")


@internal("rnn_tanh_states", "rnn_tanh_cotangents")
def _rnn_tanh() -> Found:
    yield from check_cell("rnn_tanh")


@internal("rnn_relu_states", "rnn_relu_cotangents")
def _rnn_relu() -> Found:
    yield from check_cell("rnn_relu")
