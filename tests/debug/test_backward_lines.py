"""The lines of a backward pass where calls of one line are alike: each goes with its own call of the forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
import twofold.static as tf
from tests.debug.step_recorder import StepRecorder, stepped, value_of
from twofold import debug, nn


def unused_last_state(x: Any) -> Any:
    state, total = x, 0.0
    for _ in range(3):
        p = torch.tanh(state * 3)
        total = total + p
        state = state * 0.9
    return total


def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.T * 0.5
    scores = scores.masked_fill(mask, float("-inf"))
    weights = torch.softmax(scores, -1)
    return weights @ v


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(2, 6)

    def forward(self, h: Any, mask: Any) -> Any:
        q, k, v = self.qkv(h).chunk(3, -1)
        return h * 0.5 + attend(q, k, v, mask)


def equal_blocks(x: Any) -> Any:
    torch.manual_seed(1)
    blocks = nn.ModuleList([Block() for _ in range(3)])
    h = torch.stack([x, x * 2])
    mask = torch.triu(torch.ones(2, 2), 1) > 0
    for block in blocks:
        h = block(h, mask)
    return h.mean(0)


def two_steps(x: Any) -> Any:
    w = torch.tensor([0.5, 2.0], requires_grad=True)
    for _ in range(2):
        loss = (torch.exp(w) * x).sum()
        loss.backward()
        with torch.no_grad():
            w -= w.grad
        w.grad = None
    return w.detach()


def differentiated(program: Callable[[Any], Any], x: Any) -> Any:
    result = program(x)
    result.sum().backward()
    return x.grad


def backward_lines(program: Callable[[Any], Any], function: Any) -> list[tuple[int, dict[str, Any]]]:
    """The lines of ``function`` in the backward pass, numbered in it, and the variables there."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    recorder = stepped(program, debug.run, differentiated, program, x)
    code = getattr(function, "__code__", function)
    return [
        (one.line - code.co_firstlineno, one.values)
        for one in recorder.seen
        if one.function == f"{code.co_name} (backward)"
    ]


def test_a_last_state_that_nothing_reads() -> None:
    found = backward_lines(unused_last_state, unused_last_state)
    lines = [line for line, _ in found if line != 2]
    assert lines == [4, 3, 5, 4, 3, 5, 4, 3]
    states = {state: None for line, values in found if line == 3 for state in map(str, [values["state"]])}
    x = torch.tensor([1.0, 2.0])
    assert list(states) == [str(value_of(one)) for one in (x * 0.9 * 0.9, x * 0.9, x)]


def test_equal_modules_with_products_of_two_activations() -> None:
    assert [line for line, _ in backward_lines(equal_blocks, attend)] == [4, 3, 2, 1] * 3


def test_each_step_of_a_training_loop() -> None:
    x = torch.tensor([1.0, 2.0])
    recorder = stepped(two_steps, debug.run, two_steps, x)
    first = two_steps.__code__.co_firstlineno
    found = [one for one in recorder.seen if one.function == "two_steps (backward)" and one.line == first + 3]
    plain = stepped(two_steps, two_steps, x)
    ahead = [one for one in plain.seen if one.line == first + 3]
    assert [one.values["w"] for one in found] == [one.values["w"] for one in ahead]


def loop_of_choices(x: Any) -> Any:
    def outer(i: Any, h: Any) -> Any:
        def inner(j: Any, g: Any) -> Any:
            g = g * x
            return j + 1, g

        _, h = tf.while_loop(lambda j, g: j < 2, inner, (tf.constant(0), h))

        def doubled() -> Any:
            return h * 2.0

        return i + 1, tf.cond(i > 0, doubled, lambda: h)

    return tf.while_loop(lambda i, h: i < 2, outer, (tf.constant(0), x))[1]


class GradientRecorder(StepRecorder):
    """Notes the gradient of ``g``, too."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.gradients: list[tuple[int, Any]] = []

    def interaction(self, frame: Any, tb_or_exc: Any) -> None:
        if frame.f_code.co_name.endswith(" (backward)"):
            share = eval("grad('g')", frame.f_globals, frame.f_locals) if "g" in frame.f_locals else None
            line = frame.f_lineno - loop_of_choices.__code__.co_firstlineno
            self.gradients.append((line, None if share is None else share.item()))
        super().interaction(frame, tb_or_exc)


def test_loops_and_branches_in_a_loop() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        y = loop_of_choices(x)
        fetched = [y, *tf.gradients(y, x)]
        recorder = GradientRecorder(__file__)
        recorder.run_steps(lambda: session.run(fetched, {x: 3.0}, debug=True))
        assert recorder.result == session.run(fetched, {x: 3.0}) == [2 * 3.0**5, 10 * 3.0**4]
    steps = [(line, share) for line, share in recorder.gradients if line in (3, 9)]
    # d y / d g before g = g * x, from the last iteration to the first, behind the branch of the last
    assert [line for line, _ in steps] == [9, 3, 3, 3, 3]
    assert [share for line, share in steps if line == 3] == [2.0, 6.0, 18.0, 54.0]


def branches(x: Any) -> Any:
    h = x
    for k in range(3):
        if k < 2:
            h = torch.sin(h)
        else:
            h = h * 3
    return h


def counted(x: Any) -> Any:
    h, k = x, 0
    while k < 3:
        if k == 1:
            h = torch.sin(h)
        elif k == 2:
            h = h * 2
        else:
            h = h + 1
        k += 1
    return h


def called(h: Any, k: int) -> Any:
    return h * 3 if k == 0 else h.exp()


def calls(x: Any) -> Any:
    h = x
    for k in range(2):
        if k == 0:
            h = called(h, 0)
        else:
            h = called(h, 1)
    return h


@pytest.mark.parametrize(
    ("program", "lines"), [(branches, [6, 2, 4, 2, 4]), (counted, [6, 2, 4, 2, 8]), (calls, [6, 2, 4])]
)
def test_the_header_of_a_loop_stands_between_iterations_that_go_different_ways(
    program: Callable[[Any], Any], lines: list[int]
) -> None:
    assert [line for line, _ in backward_lines(program, program)] == lines


def nested(x: Any) -> Any:
    h = x
    for _ in range(2):
        for _ in range(2):
            h = torch.sin(h)
    return h


def nested_behind(x: Any) -> Any:
    h = x
    for _ in range(2):
        h = torch.exp(h)
        for _ in range(2):
            h = torch.sin(h)
    return h


@pytest.mark.parametrize(
    ("program", "lines"),
    [(nested, [4, 3, 4, 2, 3, 4, 3, 4]), (nested_behind, [5, 4, 5, 3, 2, 4, 5, 4, 5, 3])],
)
def test_the_headers_of_both_loops_stand_between_iterations_of_the_outer_one(
    program: Callable[[Any], Any], lines: list[int]
) -> None:
    assert [line for line, _ in backward_lines(program, program)] == lines
