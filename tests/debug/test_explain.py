"""What explain says of kernels, compared with what is known of small programs."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import nn
from twofold.errors import ArgumentError, GraphError, InvalidArgumentError


def test_one_kernel() -> None:
    found = torch.explain(lambda x: ((x + 1.0) * 2.0).tanh().sum(), torch.ones(8, 8)._realise())
    (body,) = found.bodies
    (kernel,) = body.kernels
    assert {"add", "multiply", "tanh", "sum"} <= set(kernel.operations) and not kernel.apart
    assert kernel.nbytes >= 4 * 64 + 4 and kernel.flops >= 4 * 64 and body.arena == 0
    assert "1 kernel a run" in str(found)


def test_why_not_more() -> None:
    def steps(x: Any) -> Any:
        product = x @ x
        return product.sum(1) @ x

    found = torch.explain(steps, torch.ones(32, 32)._realise())
    (body,) = found.bodies
    reasons = [reason for kernel in body.kernels for reason in kernel.apart]
    assert any("sum is apart: a reduction of a product" in reason for reason in reasons)
    assert any("a product has kernels of its own" in reason for reason in reasons)
    here = steps.__code__.co_firstlineno + 1
    assert any(f":{here} in steps" in line for line in body.memory) and body.arena > 0


def test_bodies_and_gradients() -> None:
    layers = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()) for _ in range(12)])
    found = torch.explain(layers, torch.ones(4, 8), backward=True)
    assert sum(body.calls * len(body.kernels) for body in found.bodies) >= 24
    assert any(
        "(backward)" in line for body in found.bodies for kernel in body.kernels for line in kernel.lines
    )


def test_what_was_compiled_meanwhile_and_why() -> None:
    def steps(x: Any) -> Any:
        return (x * 3.0 - 2.5).exp().sum().item()

    with torch.profile() as p:
        for _ in range(40):
            steps(torch.ones(16))
        torch.wait_for_compiler()
    assert any("operations in" in line and "kernel" in line for line in p.compiled)


def test_what_cannot_be_explained() -> None:
    with pytest.raises(ArgumentError, match="explain: str cannot be explained"):
        torch.explain("model")


def test_a_long_program_shows_its_calls_of_bodies() -> None:
    def steps(x: Any) -> Any:
        for _ in range(100):
            x = torch.cumsum(torch.sin(x), 0)
        return x

    found = torch.explain(steps, torch.ones(8))
    (calls,) = found.calls
    assert len(found.bodies) > 1 and calls in str(found)
    for number, body in enumerate(found.bodies):
        assert calls.count(f"call @{number}(") == body.calls
    assert not torch.explain(torch.sin, torch.ones(8)).calls


def trained(x: Any) -> tuple[Any, Any]:
    w = tf.get_variable("w", [8, 4])
    loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w))))
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def kernels_of(found: Any) -> list[Any]:
    return [kernel for body in found.bodies for kernel in body.kernels]


def test_fetches_of_a_declared_graph_are_explained_without_a_run() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 8])
        loss, step = trained(x)
        found = torch.explain([loss, step], {x: numpy.ones((32, 8))})
        first = trained.__code__.co_firstlineno
        lines = {line for kernel in kernels_of(found) for line in kernel.lines}
        assert {f"test_explain.py:{first + 2} in trained", f"test_explain.py:{first + 3} in trained"} <= lines
        assert any("(backward)" in line for line in lines)
        product = next(one for one in kernels_of(found) if "matmul" in one.operations)
        assert product.flops >= 2 * 32 * 8 * 4
        with pytest.raises(InvalidArgumentError, match="placeholder .* is not fed"):
            torch.explain(loss)
        with pytest.raises(GraphError, match="explain: the shape .* leaves sizes open"):
            torch.explain(loss, {x: None})
        with pytest.raises(ArgumentError, match="feed_dict of session.run"):
            torch.explain(loss, 3.0)
        with pytest.raises(ArgumentError, match="tf.gradients"):
            torch.explain(loss, {x: numpy.ones((3, 8))}, backward=True)
        with tf.Session() as session:
            with pytest.raises(ArgumentError, match="has not run"):
                torch.explain(session)
            session.run(tf.global_variables_initializer())
            session.run(loss, {x: numpy.ones((32, 8))})
            of_run, of_fetch = torch.explain(session), torch.explain(loss, {x: numpy.ones((32, 8))})
            assert str(of_run).split("\n")[1:] == str(of_fetch).split("\n")[1:]


def test_a_run_in_parts_is_explained_part_by_part() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])  # is taken as it was declared
        host = tf.py_func(lambda v: v * 2, [tf.exp(x)], tf.float32)
        host.set_shape([3])
        parts = [set(kernel.operations) for kernel in kernels_of(torch.explain({"y": tf.tanh(host)}))]
        assert [("exp" in one, "tanh" in one) for one in parts] == [(True, False), (False, True)]
        chosen = tf.placeholder(tf.int32, [])
        with pytest.raises(GraphError, match="needs numbers that only a run tells"):
            torch.explain(tf.zeros(tf.stack([tf.reduce_sum(tf.range(chosen)), 2])))
