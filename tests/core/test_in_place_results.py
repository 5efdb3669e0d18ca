"""Operations one by one hold no more than is still to be read, and write over operands that nobody reads afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy
import pytest

import twofold as torch
from twofold import _core

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def _unfused() -> Iterator[None]:
    _core.set_tier("unfused")
    yield
    _core.set_tier("auto")


def most_bytes(work: Callable[[], object]) -> int:
    """Bytes that ``work`` has in use at once, beside what was in use before."""
    before = int(_core.statistics()["pool_in_use_bytes"])
    _core.reset_peak()
    work()
    return int(_core.statistics()["pool_peak_bytes"]) - before


def test_a_chain_takes_the_memory_of_one_value() -> None:
    x = torch.ones(MEGABYTE)._realise()

    def chain() -> object:
        value = x
        for _ in range(6):
            value = (value * 1.5).tanh()
        return value._realise()

    chain()
    assert most_bytes(chain) < 5 * MEGABYTE
    assert x.numpy().min() == 1.0


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_an_update_writes_over_the_parameter(momentum: float) -> None:
    weight = torch.nn.Parameter(torch.ones(MEGABYTE))
    optimizer = torch.optim.SGD([weight], 0.5, momentum=momentum)
    scale = torch.full((MEGABYTE,), 2.0)._realise()

    def step() -> None:
        optimizer.zero_grad()
        (weight * scale).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    weight.grad = None
    # the gradient, and the values that the loss adds up
    assert most_bytes(step) < 9 * MEGABYTE
    velocity, expected = 0.0, 1.0
    for _ in range(4):
        velocity = momentum * velocity + 2.0
        expected -= 0.5 * velocity
    numpy.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-5)


def test_what_somebody_holds_is_not_written_over() -> None:
    weight = torch.nn.Parameter(torch.ones(MEGABYTE))
    optimizer = torch.optim.SGD([weight], 1.0)
    weight.sum().backward()
    old = weight + 0.0
    array = weight.detach().numpy()
    optimizer.step()
    assert old.detach().numpy().max() == 1.0
    assert array.max() == 0.0  # shares memory with the parameter


def test_gradients_of_weights_do_not_wait_for_the_end_of_the_pass() -> None:
    layers, rows, width = 8, 1 << 14, 64  # 4 MB of rows
    weights = [torch.nn.Parameter(torch.full((width, width), 1 / width)) for _ in range(layers)]
    x = torch.ones(rows, width)._realise()

    def step() -> None:
        value = x
        for weight in weights:
            value = value @ weight
            weight.grad = None
        value.sum().backward()
        weights[0].grad.numpy()

    step()
    # the rows that each layer reads, and a few more while one layer is computed
    assert most_bytes(step) < (layers + 4) * 4 * MEGABYTE
    numpy.testing.assert_allclose(weights[0].grad.numpy(), rows, rtol=1e-4)


def test_a_first_update_writes_over_what_it_reads() -> None:
    """The moments of Adam begin as zeros of the same trace, which the first update writes over."""
    weights = [torch.nn.Parameter(torch.full((MEGABYTE,), 1.0 + k)) for k in range(3)]
    optimizer = torch.optim.Adam(weights, 0.5)
    for weight in weights:
        weight._realise()
        weight.grad = torch.full((MEGABYTE,), 2.0)._realise()

    def update() -> None:
        optimizer.step()
        weights[0].detach().sum().item()

    # two moments for each parameter, and a few values while one is computed
    assert most_bytes(update) < (2 * 3 + 2) * 4 * MEGABYTE
    for k, weight in enumerate(weights):
        numpy.testing.assert_allclose(weight.detach().numpy(), 0.5 + k, rtol=1e-5)
    moments = optimizer.state[weights[1]]
    numpy.testing.assert_allclose(moments["exp_avg"].numpy(), 0.2, rtol=1e-5)
    numpy.testing.assert_allclose(moments["exp_avg_sq"].numpy(), 0.004, rtol=1e-5)


def test_a_value_that_is_read_twice_at_once_is_not_written_over() -> None:
    """Rows are added to a value in places that are read as rows in the same call."""
    parameter = torch.nn.Parameter(torch.zeros(1 << 12, 64))
    rows = numpy.random.default_rng(0).normal(size=(1 << 12, 64)).astype(numpy.float32)
    order = numpy.arange(1 << 12)[::-1].copy()
    x, index = torch.from_numpy(rows), torch.from_numpy(order)
    with torch.no_grad():
        parameter += 1.0
        value = x * 2.0
        parameter += value.index_add(0, index, value)
    numpy.testing.assert_array_equal(parameter.detach().numpy(), 1.0 + (2 * rows + 2 * rows[order]))


def test_an_input_that_is_read_twice_at_once_is_not_written_over() -> None:
    """The summand of a product is a factor of it: rows of the result were factors of later rows."""
    rows = numpy.random.default_rng(0).normal(size=(512, 512)).astype(numpy.float32)
    summand = torch.from_numpy(rows).clone()._realise()
    held = [summand]
    result = torch.addmm(held[0], held[0], held.pop())
    del summand
    numpy.testing.assert_allclose(result.numpy(), rows + rows @ rows, rtol=1e-3, atol=1e-3)
