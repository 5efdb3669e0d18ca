"""``explain``, ``debug.value`` and ``story`` of runs that the recorder or a function of Python cuts into parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import _core, nn
from twofold.errors import ArgumentError


def steps(x: Any) -> Any:
    scaled = x * 3.0
    if scaled.sum().item() > 0.0:
        scaled = scaled.exp()
    return scaled.tanh()


def operations_of(explained: Any) -> list[set[str]]:
    return [set(kernel.operations) for body in explained.bodies for kernel in body.kernels]


def test_a_function_that_reads_a_value_in_the_middle() -> None:
    x = torch.tensor([1.0, 2.0])
    made = operations_of(torch.explain(steps, x))
    assert {"multiply", "sum"} <= made[0] and {"exp", "tanh"} <= set.union(*made[1:])
    told = torch.debug.story(steps, x).view
    assert [step.name for step in told.steps] == ["multiply", "sum", "exp", "tanh"]
    assert [told.data[step.outputs[0]].shown.split(",")[0] for step in told.steps[:2]] == ["[3.", "[9.]"]
    assert told.steps[2].inputs == told.steps[0].outputs  # one graph, not two
    drawn = torch.draw(steps, x, stages=False).picture.views[0]
    assert [step.name for step in drawn.steps] == ["multiply", "sum", "exp", "tanh"]


def test_nothing_is_there_twice_where_gradients_keep_what_ran() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    told = torch.debug.story(steps, x, backward=True).view
    forward = [step.name for step in told.steps if not step.backward]
    assert forward == ["multiply", "sum", "exp", "tanh"]
    assert [step.name for step in told.steps if step.backward][-1] == "multiply"


def test_parts_that_are_the_same_are_explained_once() -> None:
    def repeated(x: Any) -> Any:
        for _ in range(5):
            x = x.sin()
            x.tolist()
        return x

    (body,) = torch.explain(repeated, torch.tensor([1.0, 2.0])).bodies
    assert body.calls == 5 and [set(kernel.operations) for kernel in body.kernels] == [{"sin"}]


def test_what_nobody_holds_lets_nothing_run() -> None:
    def run(x: Any) -> Any:
        x.cos()
        return x.sin()

    for look in (torch.explain, torch.draw):
        before = _core.traced_runs()
        look(run, torch.tensor([1.0, 2.0], requires_grad=True)._realise())
        assert _core.pending() >= 1 and _core.traced_runs() == before
        _core.flush()


def test_calls_whose_results_nobody_reads_are_left_out() -> None:
    def run(x: Any) -> Any:
        x.cos()
        y = x * 2.0
        y.tolist()
        y.sin()
        return y.tanh()

    drawn = torch.draw(run, torch.tensor([1.0, 2.0]), stages=False).picture.views[0]
    assert [step.name for step in drawn.steps] == ["multiply", "tanh"]
    assert sorted(datum.kind for datum in drawn.data) == ["constant", "input", "value", "value"]


@pytest.mark.parametrize("is_read", (False, True))
def test_what_a_gradient_reads_is_what_the_forward_pass_made(is_read: bool) -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    def step(x: Any) -> None:
        w.grad = None
        y = (w * x).sin().exp()  # whose parts have no names
        loss = (y * y).sum()
        if is_read:
            loss.item()
        loss.backward()

    for drawn in (
        torch.debug.story(step, torch.ones(2)).view,
        torch.draw(step, torch.ones(2)).picture.views[0],
    ):
        names = [step.name for step in drawn.steps if not step.backward]
        assert names[:3] == ["multiply", "sin", "exp"] and names.count("sin") == 1
        kinds = [drawn.data[one].kind for step in drawn.steps for one in step.inputs]
        assert kinds.count("input") == 2  # x, in the product and in its gradient
        produced = {drawn.data[one].producer for step in drawn.steps if step.backward for one in step.inputs}
        assert {0, 2} <= produced  # of the product and the exponential


def trained() -> Callable[[Any], Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        hidden = model[1](model[0](x))
        loss = model[2](hidden).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("is_cut", (False, True))
def test_a_step_that_updates_parameters_is_known_whole(is_cut: bool) -> None:
    step, x = trained(), torch.ones(2, 4)

    def cut(x: Any) -> Any:
        loss = step(x)
        loss.item()
        return loss

    run = cut if is_cut else step
    told = torch.debug.story(run, x).view
    names = [(step.name, step.backward) for step in told.steps]
    assert names[0] == ("linear", False) and names.count(("sgd_parameter", False)) == 4
    assert ("square", True) in names and ("tanh", True) in names
    lines = {line for kernel in _kernels(torch.explain(run, x)) for line in kernel.lines}
    first = trained.__code__.co_firstlineno + 6
    assert {f"test_runs_in_parts.py:{first + k} in step" for k in (0, 1, 4)} <= lines
    assert f"test_runs_in_parts.py:{first + 1} in step (backward)" in lines


def _kernels(explained: Any) -> list[Any]:
    return [kernel for body in explained.bodies for kernel in body.kernels]


def test_a_block_is_told_explained_and_drawn() -> None:
    with torch.debug.record() as run:
        x = torch.tensor([1.0, 2.0])
        y = x * 3.0
        y.tolist()
        y.exp().tolist()
    assert [step.name for step in torch.debug.story(run).view.steps] == ["multiply", "exp"]
    assert [step.name for step in torch.draw(run).picture.views[0].steps] == ["multiply", "exp"]
    assert len(operations_of(torch.explain(run))) == 2
    with pytest.raises(ArgumentError, match="story: inputs or backward of a record block"):
        torch.debug.story(run, x)
    with pytest.raises(ArgumentError, match="draw: times of a record block"):
        torch.draw(run, times=True)
    with torch.debug.record() as empty:
        pass
    with pytest.raises(ArgumentError, match="explain: nothing ran in the record block"):
        torch.explain(empty)


def parted() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [3], "x")
    raised = tf.exp(x)
    host = tf.py_func(lambda v: v * 2, [raised], tf.float32)
    host.set_shape([3])
    return x, tf.tanh(host)


def test_all_parts_of_the_last_run_of_a_session() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, result = parted()
        for _ in range(2):  # the second is found at once
            session.run(result, {x: numpy.float32([0.0, 1.0, 2.0])})
            told = torch.debug.story(session).view
            assert [step.name for step in told.steps] == ["exp", "tanh"]
            assert operations_of(torch.explain(session)) == [{"exp"}, {"tanh"}]
            raised = torch.debug.value("raised", session)
            numpy.testing.assert_allclose(raised.value.numpy(), numpy.exp([0.0, 1.0, 2.0]), rtol=1e-6)
            first = torch.debug.value(0, session).value
            last = torch.debug.value(1, session).value
            assert first.tolist() == raised.value.tolist()
            numpy.testing.assert_allclose(last.numpy(), numpy.tanh(2 * first.numpy()), rtol=1e-6)
            line = f"test_runs_in_parts.py:{parted.__code__.co_firstlineno + 2}"
            assert torch.debug.value(line, session).value.tolist() == first.tolist()
        session.run(tf.constant(1.0) * x[0], {x: numpy.float32([5.0, 1.0, 2.0])})
        with pytest.raises(ArgumentError, match="the run computed nothing at 'raised'"):
            torch.debug.value("raised", session)


def test_all_parts_of_a_run_that_goes_on_and_the_last_of_iterations() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        first = tf.exp(a)
        second = tf.tanh(first * b)
        handle = session.partial_run_setup([first, second], [a, b])
        got = session.partial_run(handle, first, {a: 2.0})
        session.partial_run(handle, second, {b: got})
        names = [step.name for step in torch.debug.story(session).view.steps]
        assert names.count("exp") >= 1 and names[-1] == "tanh"

        def body(k: Any, total: Any) -> Any:
            grown = tf.py_func(lambda v: v + 1, [total], tf.float32)
            grown.set_shape([])
            return k + 1, grown * 2.0

        looped = tf.while_loop(lambda k, _: k < 3, body, [tf.constant(0), tf.constant(0.0)])[1]
        assert session.run(looped) == 14.0
        assert torch.debug.value("grown", session).value.item() == 7.0
