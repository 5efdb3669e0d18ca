"""Calls of one line run as one batch, whatever numbers they have, also where a function of the package loops."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

import twofold as torch
import twofold.dynet as dy
from tests.core.test_batches import compared, weight


def test_numbers_that_differ_from_call_to_call_keep_no_calls_apart() -> None:
    xs = [torch.tensor(numpy.arange(5, dtype=numpy.float32) + k) for k in range(180)]

    def scaled() -> list[bytes]:
        made = [torch.tanh(x * float(k % 9)) for k, x in enumerate(xs)]
        return [one.numpy().tobytes() for one in made]

    before, after = compared(scaled)
    assert after.batched_calls - before.batched_calls >= 360
    assert after.batch_launches - before.batch_launches < 9


def outputs(builder: Any, lengths: list[int]) -> list[bytes]:
    """Outputs and gradients of sequences of these lengths through a loop of the package."""
    dy.renew_cg()
    model = builder.param_collection()
    inputs = [
        [dy.inputVector(numpy.sin(numpy.arange(6.0) + 7 * k + t)) for t in range(length)]
        for k, length in enumerate(lengths)
    ]
    ends = [builder.initial_state().transduce(xs) for xs in inputs]
    loss = dy.esum([dy.squared_norm(one) for made in ends for one in made])
    value = loss.value()
    loss.backward()
    gradients = [p.grad_as_array().tobytes() for p in model.parameters_list()]
    for p in model.parameters_list():
        p.scale_gradient(0)
    return [numpy.float32(value).tobytes(), *[end[-1].npvalue().tobytes() for end in ends], *gradients]


def test_each_pass_of_a_loop_of_the_package_is_a_body() -> None:
    lengths = [12] * 8 + [11] * 8 + [10] * 8
    for make in (dy.VanillaLSTMBuilder, dy.GRUBuilder, dy.CoupledLSTMBuilder):
        builder = make(1, 6, 5, dy.ParameterCollection())
        before, after = compared(partial(outputs, builder, lengths))
        assert after.batch_launches - before.batch_launches < 5 * 12


def test_sequences_alone_have_the_bits_of_many() -> None:
    builder = dy.VanillaLSTMBuilder(2, 6, 5, dy.ParameterCollection())
    compared(lambda: outputs(builder, [9] * 20))
    compared(lambda: outputs(builder, [9]))


def test_a_gradient_that_a_sum_hands_on_is_a_value_of_its_own() -> None:
    a, b = weight(0, 3), weight(1, 3)
    c = a + b
    c.retain_grad()
    d = c + 1
    d.retain_grad()
    (d * d).sum().backward()
    found = [one.grad.numpy() for one in (a, b, c, d)]
    expected = (2 * (a + b + 1)).detach().numpy().copy()
    for k, one in enumerate(found):
        assert numpy.array_equal(one, expected)
        one += 1 + k
    for k, one in enumerate(found):
        assert numpy.array_equal(one, expected + (1 + k))
