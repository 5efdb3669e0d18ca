"""Runs in steps: parts of the graph and functions of the host in order, found once and taken again."""

from random import Random
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.static.session import partition
from twofold.static.session import session as sessions
from twofold.static.session.cached_run import Executable


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


@pytest.fixture
def planned(monkeypatch):
    """The executables that are made."""
    made: list[Any] = []

    class Counted(Executable):
        def __init__(self, *args: Any) -> None:
            made.append(args)
            super().__init__(*args)

    monkeypatch.setattr(sessions, "Executable", Counted)
    return made


def test_steps_are_found_once(session, planned):
    calls: list[float] = []
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(1.0)
    session.run(tf.global_variables_initializer())
    noted = tf.py_func(lambda value: calls.append(float(value)) or value, [tf.reduce_sum(x)], tf.float32)
    up = tf.assign_add(v, noted)
    with tf.control_dependencies([up]):
        later = tf.py_func(lambda value: value * 2, [v], tf.float32) + noted
    assert session.run([later, up], {x: [1.0, 2.0]}) == [3.0 + 2 * 4.0, 4.0]
    del planned[:]
    assert session.run([later, up], {x: [3.0]}) == [3.0 + 2 * 7.0, 7.0]
    assert session.run({"later": later}, {x: [1.0, 1.0]}) == {"later": 2.0 + 2 * 9.0}
    count = len(planned)
    assert session.run({"later": later}, {x: [0.0]}) == {"later": 2 * 9.0}
    assert len(planned) == count  # only the new set of fetches had to be planned
    assert calls == [3.0, 3.0, 2.0, 0.0]


def test_steps_after_a_number_depend_on_it_alone(session, planned):
    n = tf.placeholder(tf.int32, [])
    filled = tf.fill([n], 2.0)
    for size in (2, 3, 2, 3):
        assert session.run(filled, {n: size}).tolist() == [2.0] * size
    count = len(planned)
    assert session.run(filled, {n: 3}).tolist() == [2.0] * 3
    assert len(planned) == count


def test_numbers_that_are_always_new_do_not_gather(session, monkeypatch):
    monkeypatch.setattr(sessions, "_MOST_EXECUTABLES", 8)
    shape = tf.placeholder(tf.int32, [2])
    rows = tf.reshape(tf.zeros([720]), shape)
    for size in (size for size in range(1, 721) if not 720 % size):
        assert session.run(rows, {shape: [-1, size]}).shape == (720 // size, size)
    assert session._executable_count <= 8
    seen: list[partition.Step] = []
    waiting = list(session._steps.values())
    while waiting:
        step = waiting.pop()
        seen.append(step)
        waiting += [*step._following.values(), *([] if step.first is None else [step.first])]
    assert len(seen) <= 2 * 8


def test_types_that_need_a_number_divide_a_run_that_was_whole(session):
    """Branches of one shape for some feeds and of two for others: the choice must then be known first."""
    x, short = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.bool, [])
    y = tf.cond(short, lambda: x[:2], lambda: x * 2.0)
    for size in (2, 3, 2, 4):
        for choice in (True, False):
            given = numpy.arange(size, dtype=numpy.float32)
            expected = given[:2] if choice else given * 2
            numpy.testing.assert_array_equal(session.run(y, {x: given, short: choice}), expected)


def test_a_failing_step_leaves_a_run_that_can_go_on(session):
    fails = [True]

    def check(value: Any) -> Any:
        if fails[0]:
            raise ValueError("not yet")
        return value

    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    session.run(tf.global_variables_initializer())
    up = tf.assign_add(v, a)
    y = tf.py_func(check, [up], tf.float32) * 1.0
    z = up + b
    handle = session.partial_run_setup([y, z], [a, b])
    with pytest.raises(ValueError, match="not yet"):
        session.partial_run(handle, y, {a: 2.0})
    fails[0] = False
    assert session.partial_run(handle, z, {b: 10.0}) == 13.0
    assert session.run(v) == 3.0


def test_nested_fetches_are_planned_and_parsed_once(session, planned, monkeypatch):
    x = tf.placeholder(tf.float32, [])
    y, z = x + 1.0, x * 2.0
    nests = [lambda: {"y": y, "z": (z, [y])}, lambda: (y, z), lambda: [y, [z]], lambda: {0: y, 1: z}]
    expected = [{"y": 2.0, "z": (2.0, [2.0])}, (2.0, 2.0), [2.0, [2.0]], {0: 2.0, 1: 2.0}]
    for make, result in zip(nests, expected):
        assert session.run(make(), {x: 1.0}) == result
    monkeypatch.setattr(session, "_prepare", None)
    for make, result in zip(nests, expected):
        found = session.run(make(), {x: 1.0})
        assert found == result and type(found) is type(result)
    assert session.run({"y": y, "z": (z, [y])}, {x: 2.0}) == {"y": 3.0, "z": (4.0, [3.0])}


def test_names_of_the_same_nest_are_told_apart(session):
    y, z = tf.constant(1.0), tf.constant(2.0)
    assert session.run({"a": y, "b": z}) == {"a": 1.0, "b": 2.0}
    assert session.run({"a": z, "b": y}) == {"a": 2.0, "b": 1.0}
    assert session.run({"b": y, "a": z}) == {"b": 1.0, "a": 2.0}
    assert session.run({"c": y, "b": z}) == {"c": 1.0, "b": 2.0}
    assert session.run([(y, z)]) == [(1.0, 2.0)]
    assert session.run(((y, z),)) == ((1.0, 2.0),)
    assert session.run((y, z)) == (1.0, 2.0)


class _Program:
    """Operations at random, in an order at random: effects, functions of the host, numbers that a run tells."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.calls: list[tuple[int, float]] = []
        self.x, self.n = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
        self.variables = [tf.Variable(float(k)) for k in range(2)]
        self.start = tf.global_variables_initializer()
        self.values = [tf.reduce_sum(self.x), tf.constant(1.0), *self.variables]
        self.counts = [self.n]
        self.operations: list[Any] = []
        for tag in range(random.randrange(4, 12)):
            waits = random.sample(self.operations, min(len(self.operations), random.randrange(3)))
            with tf.control_dependencies(waits):
                made = self.declare(tag, *random.choices(self.values, k=2))
            self.values.append(made)
            self.operations.append(made.op)

    def declare(self, tag: int, a: Any, b: Any) -> Any:
        variable = self.random.choice(self.variables)
        kind = self.random.randrange(8)
        if kind == 0:
            return a * 0.5 + b
        if kind == 1:
            return self.noted(tag, a)
        if kind == 2:
            return tf.assign_add(variable, tf.identity(a) * 0.25)
        if kind == 3:
            return tf.assign(variable, tf.identity(a) * 0.5)
        if kind == 4:
            return tf.reduce_sum(tf.fill([self.random.choice(self.counts)], 2.0)) + a
        if kind == 5:
            branches = [lambda: tf.assign_add(variable, 1.0) + 0.0, lambda: tf.identity(b) * 1.0]
            return tf.cond(tf.identity(a) > 2.0, *branches)
        if kind == 6:
            self.counts.append(tf.cast(tf.clip_by_value(tf.abs(tf.identity(a)), 0.0, 6.0), tf.int32))
            return tf.cast(self.counts[-1], tf.float32)
        start = [tf.constant(0), tf.identity(a)]
        return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, self.noted(tag, s)), start)[1]

    def noted(self, tag: int, value: Any) -> Any:
        def call(array: Any) -> Any:
            self.calls.append((tag, float(array)))
            return numpy.float32(array + 1)

        return tf.reshape(tf.py_func(call, [value], tf.float32), [])


def _history(seed: int, remembers: bool) -> list[Any]:
    """What runs of a program at random give, leave in variables, and call."""
    random = Random(seed)
    found: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        program = _Program(random)
        session.run(program.start)
        fetches = [
            [*random.choices(program.values, k=2), random.choice(program.operations)] for _ in range(2)
        ]
        for _ in range(8):
            feeds = {
                program.x: numpy.arange(random.randrange(1, 5), dtype="f"),
                program.n: random.randrange(5),
            }
            if not remembers:
                session._quick, session._steps = {}, {}
            found += session.run(random.choice(fetches), feeds)
            found += session.run(program.variables) + program.calls
            program.calls.clear()
    return found


@pytest.mark.parametrize("seed", range(12))
def test_steps_taken_again_do_what_steps_found_anew_do(seed):
    assert _history(seed, True) == _history(seed, False)
