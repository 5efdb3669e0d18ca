"""Any value of a session's last run, by the name of its variable, by its line, and by the number of its call."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.debug as debug
import twofold.static as tf
from tests.debug import stepped_control
from twofold.errors import ArgumentError


def declared() -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [3])
    w = tf.Variable([1.0, 2.0, 3.0])
    product = x * w
    shifted = product + 1.0
    return x, tf.reduce_sum(tf.square(shifted)), w


def test_values_that_were_not_fetched() -> None:
    line = declared.__code__.co_firstlineno + 4
    with tf.Graph().as_default(), tf.Session() as session:
        x, loss, w = declared()
        with pytest.raises(ArgumentError, match="has not run"):
            debug.value("product", session)
        session.run(w.initializer)
        for scale in (1.0, 2.0):  # the first run of its kind, and a later one
            fed = numpy.array([1.0, -1.0, 0.5], "float32") * numpy.float32(scale)
            session.run(loss, {x: fed})
            product = fed * numpy.array([1.0, 2.0, 3.0], "float32")
            for where, wanted, calls in (
                ("product", product, 1),
                (f"test_values.py:{line}", product + 1, 2),
                (0, product, 1),
                ("x", fed, 0),
            ):
                found = debug.value(where, session)
                assert found.value.tolist() == wanted.tolist() and found.calls == calls
        session.run(w.assign([0.0, 0.0, 0.0]))
        with pytest.raises(ArgumentError, match="nothing at 'product'"):
            debug.value("product", session)


def test_a_run_is_seen_with_the_variables_that_it_started_with() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable(1.0)
        session.run(w.initializer)
        doubled = w * 2.0
        update = w.assign(doubled)
        session.run(update)
        assert debug.value("doubled", session).value.item() == 2.0
        assert session.run(w) == 2.0


@pytest.mark.parametrize("what", ["assigned", "trained", "differentiated"])
def test_variables_that_no_line_of_the_run_reads_by_name(what: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [2]), tf.get_variable("weights", initializer=[1.0, 2.0])
        if what == "assigned":
            fetched: Any = tf.assign_add(w, x)
        elif what == "trained":
            fetched = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * x))
        else:
            fetched = tf.gradients(tf.reduce_sum(w * w * x), w)
        session.run(w.initializer)
        session.run(fetched, {x: [3.0, 4.0]})
        assert debug.value("w", session).value.tolist() == [1.0, 2.0]


def network(x: Any, w: Any) -> Any:
    hidden = x @ w
    bounded = torch.tanh(hidden)
    return (bounded * bounded).sum()


LINE = network.__code__.co_firstlineno + 2


@pytest.mark.parametrize("way", ["plain", "compiled", "block", "backward"])
def test_values_of_define_by_run_and_of_compiled_functions(way: str) -> None:
    x, w = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, -1.0], [0.25, 2.0]])
    w.requires_grad_(way == "backward")
    function = torch.compile(network) if way == "compiled" else network
    for scale in (1.0, 2.0, 3.0):
        scaled = (x * scale).detach()
        hidden = scaled @ w.detach()
        run: list[Any] = [function, scaled, w]
        if way in ("block", "backward"):
            with debug.record() as block:
                loss = function(scaled, w)
                if way == "backward":
                    loss.backward()
            run = [block]
        bounded = torch.tanh(hidden)
        for where, wanted, calls in (
            ("hidden", hidden, 1),
            ("bounded", bounded, 2),
            (f"test_values.py:{LINE}", bounded, 2),
            (0, hidden, 1),
        ):
            found = debug.value(where, *run)
            assert found.value.tolist() == wanted.tolist() and found.calls == calls
        with pytest.raises(ArgumentError, match="nothing at 'absent'"):
            debug.value("absent", *run)


def test_values_inside_a_module() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 2)

    class Doubled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            inner = layer(x)
            return torch.relu(inner)

    x = torch.ones(1, 2)
    assert debug.value("inner", Doubled(), x).value.tolist() == layer(x).tolist()


def test_a_view_of_what_was_written_to() -> None:
    def written(x: Any) -> Any:
        z = x * 2
        v = z[1:]
        y = v * 1
        z.add_(1)
        return z + y

    assert debug.value("v", written, torch.tensor([1.0, 2.0])).value.tolist() == [5.0]


def test_an_argument_and_a_variable_that_nothing_reads() -> None:
    def called(x: Any, w: Any) -> Any:
        double = lambda v: v * 2
        y = double(x + w)
        return y

    given = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    for name, wanted in (("x", [1.0, 2.0]), ("w", [3.0, 4.0]), ("y", [8.0, 12.0]), ("v", [4.0, 6.0])):
        assert debug.value(name, called, *given).value.tolist() == wanted


def test_the_value_that_a_variable_held_last_where_rounds_were_left_early() -> None:
    given = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    found = debug.value("total", stepped_control.nested_break, *given)
    assert found.value.tolist() == stepped_control.nested_break(*given).tolist()


def test_fed_arrays_are_those_of_the_run_where_it_was_recorded() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, loss, w = declared()
        session.run(w.initializer)
        fed = numpy.array([1.0, -1.0, 0.5], "float32")
        product = (fed * [1.0, 2.0, 3.0]).tolist()
        for _ in range(3):  # the first run of its kind, and later ones
            with debug.record():
                session.run(loss, {x: fed})
            fed += 1.0
            assert debug.value("product", session).value.tolist() == product
            assert "[4.  , 1.  , 6.25], from 1" in str(debug.story(session))  # (product + 1) ** 2
            fed -= 1.0
        session.run(loss, {x: fed})
        fed += 1.0
        assert debug.value("x", session).value.tolist() == fed.tolist()  # as it is now


def test_what_is_no_session() -> None:
    class Loop:
        _last = None

    with pytest.raises(ArgumentError, match="Loop is no run"):
        debug.value("x", Loop())
    with pytest.raises(ArgumentError, match="Loop cannot be"):
        debug.story(Loop())


def test_the_last_run_of_a_monitored_session() -> None:
    with tf.Graph().as_default():
        x, loss, _ = declared()
        with tf.train.MonitoredSession() as session:
            session.run(loss, {x: [1.0, 1.0, 1.0]})
            assert debug.value("product", session).value.tolist() == [1.0, 2.0, 3.0]
            assert "multiply" in str(debug.story(session))


def test_arrays_of_another_dtype_than_their_placeholder() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, loss, w = declared()
        session.run(w.initializer)
        for _ in range(3):  # the first run of its kind, and later ones
            session.run(loss, {x: numpy.ones(3)})
            found = debug.value("product", session).value
            assert found.dtype == torch.float32 and found.tolist() == [1.0, 2.0, 3.0]
            assert "float32[3] [1., 2., 3.]" in str(debug.story(session))
            assert torch.explain(session).bodies


def test_the_story_of_a_loop_calls_it_by_its_name() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        body = lambda i, h: (i + 1, h * 2.0)
        found = tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), x])[1]
        session.run([found, tf.gradients(found, x)], {x: [1.0, 2.0]})
        told = str(debug.story(session))
        assert "= loop(" in told and "gradient of loop(" in told and "program_results" not in told


def test_a_value_in_bodies_is_that_of_the_last_iteration() -> None:
    def body(i: Any, h: Any) -> Any:
        squared = h * h

        def more() -> Any:
            added = squared + 1.0
            return added

        def less() -> Any:
            taken = squared - 1.0
            return taken

        return i + 1, tf.cond(i > 0, more, less)

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = tf.while_loop(lambda i, h: i < 3, body, (0, x))[1]
        session.run(y, {x: [1.0, 2.0]})
        line = body.__code__.co_firstlineno + 1
        for where in ("squared", f"test_values.py:{line}"):
            assert debug.value(where, session).value.tolist() == [1.0, 100.0]  # of 1, of 9 + 1
        assert debug.value("added", session).value.tolist() == [2.0, 101.0]
        assert debug.value("taken", session).value.tolist() == [0.0, 3.0]  # of the first iteration

    def repeated(x: Any) -> Any:
        def body(i: Any, h: Any) -> Any:
            grown = h * 2
            return i + 1, grown + 1

        return torch.while_loop(lambda i, h: i < 2, body, (torch.tensor(0), x))[1]

    assert debug.value("grown", torch.compile(repeated), torch.ones(2)).value.tolist() == [6.0, 6.0]


def collected(x: Any) -> Any:
    grown: list[Any] = []
    for k in range(3):
        grown.append(x * (k + 1))
    powers = [one * one for one in grown]
    pair = (powers[0], grown[2])
    named = {"sum": pair[0] + pair[1], "sine": torch.sin(x)}
    return named["sum"].sum() + powers[1].sum()


@pytest.mark.parametrize("way", ["plain", "compiled", "block"])
def test_variables_that_hold_several_tensors(way: str) -> None:
    x = torch.tensor([1.0, 2.0])
    run: list[Any] = [torch.compile(collected) if way == "compiled" else collected, x]
    if way == "block":
        with debug.record() as block:
            collected(x).item()
        run = [block]
    grown = debug.value("grown", *run)
    assert isinstance(grown.value, list) and grown.calls == 3
    assert [one.tolist() for one in grown.value] == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    powers = debug.value("powers", *run).value
    assert [one.tolist() for one in powers] == [[1.0, 4.0], [4.0, 16.0], [9.0, 36.0]]
    pair = debug.value("pair", *run).value
    assert isinstance(pair, tuple) and [one.tolist() for one in pair] == [[1.0, 4.0], [3.0, 6.0]]
    if way != "block":  # where nobody held the sine
        named = debug.value("named", *run).value
        assert set(named) == {"sum", "sine"} and named["sum"].tolist() == [4.0, 10.0]


def test_a_list_of_declared_tensors_and_one_of_the_body_of_a_loop() -> None:
    def body(i: Any, h: Any) -> Any:
        both = [h * 2.0, h + 1.0]
        return i + 1, both[0] + both[1]

    def program() -> tuple[Any, Any]:
        x = tf.placeholder(tf.float32, [4])
        halves = tf.split(x * 3.0, 2)
        loop = tf.while_loop(lambda i, h: i < 2, body, (0, x))[1]
        return x, tf.reduce_sum(halves[0] * halves[1]) + tf.reduce_sum(loop)

    with tf.Graph().as_default(), tf.Session() as session:
        x, y = program()
        session.run(y, {x: [1.0, 2.0, 3.0, 4.0]})
        halves = debug.value("halves", session).value
        assert [one.tolist() for one in halves] == [[3.0, 6.0], [9.0, 12.0]]
        both = debug.value("both", session).value  # of 3 x + 1
        assert [one.tolist() for one in both] == [[8.0, 14.0, 20.0, 26.0], [5.0, 8.0, 11.0, 14.0]]
