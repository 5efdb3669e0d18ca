"""What explain says of kernels, compared with what is known of small programs."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import nn
from twofold.errors import ArgumentError, FailedPreconditionError, GraphError, InvalidArgumentError


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
        rows = tf.zeros(tf.stack([tf.reduce_sum(tf.range(chosen)), 2]))
        with pytest.raises(GraphError, match="needs numbers of 'Placeholder_1:0' .* Feed values for it"):
            torch.explain(rows)
        found = kernels_of(torch.explain(rows, {chosen: 4}))
        assert found[-1].nbytes == 2 * (6 * 2 * 4)  # a copy of 0 + 1 + 2 + 3 rows of two numbers


def test_shapes_that_depend_on_values_are_computed_of_what_is_fed() -> None:
    with tf.Graph().as_default():
        x, fed = tf.placeholder(tf.float32, [None, 3]), numpy.float32([[1, 2, 3], [-1, 2, 3], [4, 5, 6]])
        product = tf.matmul(tf.boolean_mask(x, x[:, 0] > 0), tf.ones([3, 2]))
        (last,) = [one for one in kernels_of(torch.explain(product, {x: fed})) if "matmul" in one.operations]
        assert last.flops == 2 * 2 * 3 * 2  # two of the rows
        side = tf.Variable(4)
        square = tf.ones(tf.stack([side, side])) * 2.0
        with pytest.raises(FailedPreconditionError, match="has no value"):
            torch.explain(square)
        with tf.Session() as session:
            session.run([side.initializer])
            session.run(side)
            before = str(torch.explain(session))
            assert kernels_of(torch.explain(square))[-1].nbytes >= 4 * 4 * 4
            assert str(torch.explain(session)) == before  # what ran last is what the program ran


def test_functions_of_python_are_called_where_they_do_nothing_else() -> None:
    called: list[int] = []

    def count(values: Any) -> Any:
        called.append(len(values))
        return numpy.int32(len(values))

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        for stateful in (True, False):
            size = tf.py_func(count, [x], tf.int32, stateful=stateful)
            size.set_shape([])
            exponents = tf.exp(tf.fill([size], 1.0))
            if stateful:
                with pytest.raises(GraphError, match="Run it, and give the session"):
                    torch.explain(exponents, {x: [1.0, 2.0]})
            else:
                assert kernels_of(torch.explain(exponents, {x: [1.0, 2.0]}))[-1].nbytes >= 8
        assert called == [2]
        open_shape = tf.exp(tf.py_func(lambda v: v, [x], tf.float32))
        with pytest.raises(GraphError, match="set_shape"):
            torch.explain(open_shape, {x: [1.0]})
