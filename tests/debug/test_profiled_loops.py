"""Profiles of loops of the graph: their time and operations stand at the lines of their bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.debug.tiers import tier

SIZE = 16
PRODUCT = 2 * SIZE**3
X = numpy.full((SIZE, SIZE), 0.01, "float32")


def rows_of(run: Callable[[], Any]) -> dict[tuple[int, str], Any]:
    """Rows of this file by line and direction."""
    run()
    with torch.profile() as p:
        run()
        run()
    rows = {}
    for row in p.by_line():
        file, _, rest = row.what.partition(":")
        if file == "test_profiled_loops.py":
            rows[int(rest.split()[0]), row.direction] = row
    assert sum(row.seconds for row in p.by_line()) == pytest.approx(p.wall.kernels)
    return rows


def line_of(function: Callable[..., Any], offset: int) -> int:
    return function.__code__.co_firstlineno + offset


@pytest.mark.parametrize("name", ("unfused", "fused", "auto"))
def test_a_loop_by_run(name: str) -> None:
    w = torch.tensor(X)

    def body(k: Any, x: Any) -> Any:
        y = x @ w
        return k + 1, y.tanh()

    def looped(x: Any) -> Any:
        return torch.while_loop(lambda k, x: k < 10, body, (torch.tensor(0), x))[1]

    with tier(name):
        rows = rows_of(lambda: looped(torch.tensor(X)).tolist())
    product = rows[line_of(body, 1), "forward"]
    assert product.flops == 2 * 10 * PRODUCT and product.times == 2 * 10
    assert product.nbytes >= 2 * 10 * 2 * X.nbytes
    assert (line_of(body, 2), "forward") in rows and product.seconds > 0


@pytest.mark.parametrize("name", ("unfused", "fused", "auto"))
def test_a_declared_loop_and_its_gradient(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session, tier(name):
        x, limit = tf.placeholder(tf.float32, [None, SIZE]), tf.placeholder(tf.int32, [])
        w = tf.Variable(X)

        def body(k: Any, x: Any) -> Any:
            y = tf.matmul(x, w)
            return k + 1, tf.tanh(y)

        y = tf.while_loop(lambda k, _: k < limit, body, [tf.constant(0), x])[1]
        gradient = tf.gradients(tf.reduce_sum(y), [w])
        session.run(w.initializer)
        for count in (3, 7):
            rows = rows_of(lambda: session.run([y, gradient], {x: X, limit: count}))  # noqa: B023
            forward, backward = (rows[line_of(body, 1), way] for way in ("forward", "backward"))
            assert forward.flops == 2 * count * PRODUCT and forward.times == 2 * count
            assert 2 * forward.flops * 0.9 <= backward.flops <= 3 * forward.flops * 1.1


def test_a_loop_in_a_loop_and_the_elements_of_a_scan() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, SIZE, SIZE])

        def inner(k: Any, y: Any) -> Any:
            return k + 1, tf.matmul(y, x[0])

        def outer(k: Any, y: Any) -> Any:
            return k + 1, tf.while_loop(lambda j, _: j < 3, inner, [tf.constant(0), y])[1]

        nested = tf.while_loop(lambda k, _: k < 5, outer, [tf.constant(0), x[1]])[1]

        def element(carry: Any, part: Any) -> Any:
            return tf.matmul(carry, part)

        scanned = tf.scan(element, x)
        fed = numpy.stack([X] * 4)
        rows = rows_of(lambda: session.run(nested, {x: fed}))
        assert rows[line_of(inner, 1), "forward"].flops == 2 * 15 * PRODUCT
        rows = rows_of(lambda: session.run(scanned, {x: fed}))
        assert rows[line_of(element, 1), "forward"].flops == 2 * 3 * PRODUCT


def test_loops_over_open_sizes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, SIZE])
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(SIZE), x, dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        for batch, steps in ((2, 5), (3, 4)):
            fed = numpy.ones((batch, steps, SIZE), "float32")
            session.run(outputs, {x: fed})
            with torch.profile() as p:
                session.run(outputs, {x: fed})
            flops = sum(row.flops for row in p.by_operation() if row.what == "matmul")
            assert flops == steps * 2 * batch * (2 * SIZE) * SIZE


def test_kernels_and_pictures_know_the_loop() -> None:
    def looped(x: Any) -> Any:
        return torch.while_loop(lambda k, x: k < 4, lambda k, x: (k + 1, (x @ x).tanh()), (0, x))[1]

    x = torch.tensor(X)
    looped(x).tolist()
    with torch.profile() as p:
        looped(x).tolist()
    assert any("loop" in one.operations and one.lines for one in p.kernels())
    steps = torch.draw(looped, x, times=True, stages=False).picture.views[0].steps
    assert any(step.name == "loop" and step.seconds > 0 for step in steps)
