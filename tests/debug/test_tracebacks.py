"""Errors of runs end at the line of the call that failed, with its operands as locals."""

from __future__ import annotations

import contextlib
import io
import pdb
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import _core


@pytest.fixture(params=["unfused", "fused", "auto"])
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    _core.set_tier(request.param)
    yield request.param
    _core.set_tier("auto")


def raised(action: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as caught:
        action()
    return caught.value


def chosen(table: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    rows = table[picks]
    return rows.sum() * 2


def wrong_index() -> float:
    table, picks = torch.arange(6.0).reshape(3, 2), torch.tensor([1, 7])
    made = chosen(table, picks)
    return made.item()


def frames(error: BaseException) -> list[tuple[str, str | None]]:
    return [(frame.name, frame.line) for frame in traceback.extract_tb(error.__traceback__)]


def test_the_last_frame_is_the_line_that_failed_and_its_callers_stand_above(tier: str) -> None:
    found = frames(raised(wrong_index))
    assert found[-2:] == [("wrong_index", "made = chosen(table, picks)"), ("chosen", "rows = table[picks]")]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="lines have no columns")
def test_carets_stand_under_the_call(tier: str) -> None:
    text = "".join(traceback.format_exception(raised(wrong_index)))
    assert "    rows = table[picks]\n           " in text
    assert text.count("^^^^^^^") >= 1


def test_operands_are_shown_with_types_values_and_the_lines_that_made_them(tier: str) -> None:
    (note,) = raised(wrong_index).__notes__  # type: ignore[attr-defined]
    assert "rows = table[picks]\n           ^^^^^^^^^^^^" in note
    assert "table: float32[3,2] [[0. 1.] [2. 3.] [4. 5.]], made at test_tracebacks.py:" in note
    assert "picks: int64[2] [1 7], made at test_tracebacks.py:" in note


def debugged(error: BaseException, *commands: str) -> str:
    out = io.StringIO()
    shell = pdb.Pdb(
        stdin=io.StringIO("\n".join([*commands, "q", ""])), stdout=out, nosigint=True, readrc=False
    )
    shell.use_rawinput = False
    shell.reset()
    shell.interaction(None, error.__traceback__)  # as pdb.post_mortem
    return out.getvalue()


def test_post_mortem_lands_at_the_line_with_the_values(tier: str) -> None:
    shown = debugged(raised(wrong_index), "p picks.tolist()", "p table.shape", "p torch.__name__", "up", "w")
    assert "rows = table[picks]" in shown
    assert "[1, 7]" in shown
    assert "Size([3, 2])" in shown
    assert "'twofold'" in shown
    assert "> " in shown.split("made = chosen(table, picks)")[0][-200:]


def test_attributes_are_attributes_there() -> None:
    class Model:
        def __init__(self) -> None:
            self.table = torch.arange(3.0)

        def __call__(self, picks: torch.Tensor) -> torch.Tensor:
            return torch.take(self.table, picks)

    error = raised(lambda: Model()(torch.tensor([5])).tolist())
    assert "[0.0, 1.0, 2.0]" in debugged(error, "p self.table.tolist()")


def test_a_backward_pass_names_both_lines() -> None:
    x = torch.zeros(2, 2, requires_grad=True)

    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(gradient * 0)  # no inverse

    def run() -> None:
        y = Raises.apply(x)
        y.sum().backward()
        assert x.grad is not None
        x.grad.tolist()

    assert frames(raised(run))[-1][1] == "return torch.linalg.inv(gradient * 0)  # no inverse"


def test_errors_met_at_once_end_at_the_frame_of_the_user() -> None:
    def shape() -> Any:
        left, right = torch.ones(2, 3), torch.ones(4, 5)
        return left @ right

    error = raised(shape)
    assert frames(error)[-1] == ("shape", "return left @ right")
    assert not any("twofold/" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    assert "left: float32[2,3]" in error.__notes__[0]  # type: ignore[attr-defined]
    assert "4" in debugged(error, "p right.shape[0]")


def test_a_session_ends_at_the_line_that_declared_the_operation() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.placeholder(tf.float32, [None, 2])
        z = x + y
        total = tf.reduce_sum(z)
        fed = {x: [[1, 2]] * 3, y: [[1, 2]] * 2}
        assert frames(raised(lambda: session.run(total, fed)))[-1][1] == "z = x + y"


def test_a_loop_ends_at_the_line_of_its_body() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.constant([1.0, 2.0, 3.0])

        def body(i: Any, total: Any) -> Any:
            taken = tf.gather(table, i * 2)
            return i + 1, total + taken

        made = tf.while_loop(lambda i, total: i < 4, body, [tf.constant(0), tf.constant(0.0)])
        found = frames(raised(lambda: session.run(made)))
        assert found[-1] == ("body", "taken = tf.gather(table, i * 2)")
        assert "tf.while_loop" in str(found[-2][1])


def looked_up(k: Any, total: Any) -> Any:
    position = k * 2
    taken = torch.take(TABLE, position)
    return k + 1, total + taken


TABLE = torch.tensor([1.0, 2.0, 3.0])


def in_a_loop() -> Any:
    start = torch.tensor(0), torch.tensor(0.0)
    return torch.while_loop(lambda k, total: k < 4, looked_up, start)[1].item()


def in_a_loop_of_loops() -> Any:
    def body(k: Any, total: Any) -> Any:
        return torch.while_loop(lambda k, total: k < 4, looked_up, (k, total))

    return torch.while_loop(lambda k, total: k < 4, body, (torch.tensor(0), torch.tensor(0.0)))[1].item()


def in_a_branch() -> Any:
    return torch.cond(
        TABLE.sum() > 0, lambda k: looked_up(k, k)[1], lambda k: k * 1.0, (torch.tensor(2),)
    ).item()


def in_a_session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        k, total = tf.constant(0), tf.constant(0.0)
        made = tf.while_loop(lambda k, total: k < 4, looked_up, [k, total])
        return session.run(made)


@pytest.mark.parametrize("run", [in_a_loop, in_a_loop_of_loops, in_a_branch, in_a_session])
def test_operands_inside_of_loops_and_branches(run: Any) -> None:
    error = raised(run)
    assert frames(error)[-1] == ("looked_up", "taken = torch.take(TABLE, position)")
    assert "position: int" in error.__notes__[0] and "] 4, made at" in error.__notes__[0]  # type: ignore[attr-defined]
    assert "4" in debugged(error, "p position.tolist()")
    assert "3" in debugged(error, "p TABLE.shape[0]")


def test_the_operand_of_a_first_bad_value_inside_of_a_loop() -> None:
    def body(k: Any, h: Any) -> Any:
        lower = h - 1
        return k + 1, torch.log(lower)

    def run() -> None:
        with torch.detect_anomaly():
            torch.while_loop(lambda k, h: k < 4, body, (torch.tensor(0), torch.tensor(3.0)))[1].item()

    error = raised(run)
    assert frames(error)[-1] == ("body", "return k + 1, torch.log(lower)")
    assert "lower: float32[] -0.306" in error.__notes__[0]  # type: ignore[attr-defined]


class Picks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(table, k)
        return table * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        table, k = ctx.saved_tensors
        return gradient * torch.take(table, k + 9), None


def test_operands_inside_of_the_gradient_of_a_loop() -> None:
    def run() -> None:
        x = torch.arange(3.0).requires_grad_()
        start = torch.tensor(0), x
        torch.while_loop(lambda k, h: k < 3, lambda k, h: (k + 1, Picks.apply(h, k)), start)[
            1
        ].sum().backward()
        assert x.grad is not None
        x.grad.tolist()

    error = raised(run)
    assert frames(error)[-1] == ("backward", "return gradient * torch.take(table, k + 9), None")
    assert "  k + 9 (index): int64[] 9" in error.__notes__[0]  # type: ignore[attr-defined]
    shown = debugged(error, "p table.tolist()", "p index.item()")
    assert "[0.0, 4.0, 8.0]" in shown or "[0.0, 1.0, 2.0]" in shown
    assert "9" in shown.splitlines()[-2]


def test_operands_of_sizes_that_a_run_brings_into_a_body() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [None, None]), tf.ones([3])

        def step(total: Any, row: Any) -> Any:
            return total + row * w

        total = tf.scan(step, x, tf.zeros([3]))
        error = raised(lambda: session.run(total, {x: [[1.0, 2.0]]}))
    assert frames(error)[-1] == ("step", "return total + row * w")
    assert "row: float32[2]" in error.__notes__[0]  # type: ignore[attr-defined]
    assert "Size([2])" in debugged(error, "p row.shape")


def test_the_parameters_of_a_module_are_not_named_after_the_line_that_calls_it() -> None:
    class Lookup(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(2, 3)

        def forward(self, k: torch.Tensor) -> torch.Tensor:
            return self.table(k + 1)

    (note,) = raised(lambda: Lookup()(torch.tensor([0, 1])).tolist()).__notes__  # type: ignore[attr-defined]
    assert "k + 1 (index): int64[2] [1 2]" in note and "weight: float32[2,3]" in note and "self:" not in note


def test_what_is_written_to_elements_has_the_names_of_the_assignment() -> None:
    def written() -> None:
        y = torch.zeros(2, 3)
        rows = torch.ones(2, 3)
        y[:, 1:] = rows

    (note,) = raised(written).__notes__  # type: ignore[attr-defined]
    assert "  y: float32[2,3]" in note and "  rows: float32[2,3]" in note and "  :" not in note


@pytest.mark.parametrize("backward", [False, True])
def test_sizes_that_a_loop_computes_inside(backward: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])

        def summed(value: Any, k: Any) -> Any:
            return value + tf.reduce_sum(tf.gather(x, k))

        @tf.custom_gradient
        def scaled(value: Any) -> Any:
            return value * 2.0, lambda g: g * summed(g, tf.size(x))

        def body(k: Any, total: Any) -> Any:
            return k + 1, scaled(total) if backward else summed(total, k + 1)

        start = tf.constant(1.0)
        found = tf.while_loop(lambda k, total: k < tf.size(x), body, [tf.constant(0), start])[1]
        fetch = tf.gradients(found, [start])[0] if backward else found
        error = raised(lambda: session.run(fetch, {x: [1.0, 2.0]}))
    assert "index 2 is outside an axis of size 2" in str(error)
    assert frames(error)[-1] == ("summed", "return value + tf.reduce_sum(tf.gather(x, k))")
    assert backward or ("index_select: " in str(error) and "input float32[2]" in str(error))


def test_the_operands_of_stack_are_named_with_their_lines() -> None:
    first, second = torch.ones(3), torch.ones(4)
    with pytest.raises(RuntimeError) as caught:
        torch.stack([first, second])
    text = "\n".join(caught.value.__notes__)
    assert "  first: float32[3], made at" in text and "  second: float32[4], made at" in text


def notes_of(run: Callable[[], Any]) -> str:
    with pytest.raises(torch.errors.TwofoldError) as caught:
        run()
    return "\n".join(caught.value.__notes__)


def test_elements_of_a_list_and_arguments_by_keyword_have_their_names() -> None:
    parts, x, w = [torch.ones(2, 3), torch.ones(2, 4)], torch.ones(2, 4), torch.ones(3)
    text = notes_of(lambda: torch.stack(parts))
    assert "parts[0] (operand_0): float32[2,3]" in text and "parts[1] (operand_1): float32[2,4]" in text
    text = notes_of(lambda: torch.nn.functional.layer_norm(x, (4,), weight=w))
    assert "  x: float32[2,4]" in text and "  w: float32[3]" in text
    text = notes_of(lambda: torch.nn.functional.group_norm(x, 2, w))
    assert "  w: float32[3]" in text and "2: 1e-05" not in text


def test_keyword_arguments_are_matched_with_parameters_not_in_order() -> None:
    x, y = torch.zeros(2, 4), torch.tensor([0, 9])
    text = notes_of(lambda: torch.nn.functional.cross_entropy(target=y, input=x).item())
    assert "  x: float32[2,4]" in text and "  y: int64[2] [0 9]" in text
    text = notes_of(lambda: torch.nn.functional.embedding(weight=x, input=y).sum().item())
    assert "  y: int64[2] [0 9]" in text and "  x: float32[2,4]" in text
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int32, [None])
        scores = tf.ones([2, 3]) * 2.0
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=scores)
        text = notes_of(lambda: session.run(loss, {ids: [0, 3]}))
        assert "  scores: float32[2,3]" in text and "  ids: int32[2] [0 3]" in text


def test_a_value_that_an_object_made_inside_has_not_the_name_of_the_object() -> None:
    with tf.Graph().as_default():
        model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(2,))])
        model.compile("sgd", "mse")
        text = notes_of(lambda: model.fit(numpy.ones((4, 2)), numpy.ones((4, 5)), verbose=0))
    assert "  input: float32[4,3]" in text and "model: float32" not in text


def test_an_operand_that_is_not_known_has_its_type() -> None:
    def look_up(index: Any) -> Any:
        return table[index]

    table = torch.ones(4, 2, requires_grad=True)
    checkpoint, index = torch.utils.checkpoint.checkpoint, torch.tensor([0, 7])
    checkpoint(look_up, index, use_reentrant=False).sum().backward()  # whose forward pass nobody reads
    error = raised(lambda: table.grad.tolist())  # type: ignore[union-attr]
    assert "index 7 is outside an axis of size 4: input float32[4,2], operand 1" in str(error)
    assert frames(error)[-1] == ("look_up", "return table[index]")


def test_what_runs_blocks_of_context_managers_is_no_caller() -> None:
    @contextlib.contextmanager
    def doubled(x: Any) -> Iterator[Any]:
        yield x.reshape(2, 2)

    def run() -> None:
        with doubled(torch.ones(3)):
            pass

    (note,) = raised(run).__notes__  # type: ignore[attr-defined]
    assert "in doubled, called at test_tracebacks.py" in note and "contextlib" not in note


def test_operands_of_what_a_line_calls_have_not_the_names_of_its_other_arguments() -> None:
    layer, held, x = (
        torch.nn.Linear(3, 2),
        {"weight": torch.ones(2, 4), "bias": torch.ones(2)},
        torch.ones(5, 3),
    )
    text = notes_of(lambda: torch.func.functional_call(layer, held, (x,)))
    assert "  held['weight'] (weight): float32[2,4]" in text
    assert "  layer: float32" not in text and "  held: float32" not in text


def test_an_operand_that_a_module_is_given_has_its_name_once() -> None:
    layer, given = torch.nn.Linear(3, 2), torch.ones(2, 4)
    text = notes_of(lambda: layer(given))
    assert text.count("float32[2,4]") == 1 and "  given: float32[2,4]" in text


def test_options_that_the_line_does_not_name_are_no_operands() -> None:
    scores, targets = torch.ones(3, 4), torch.tensor([1, 2])
    with pytest.raises(RuntimeError) as caught:
        torch.nn.functional.cross_entropy(scores, targets)
    text = "\n".join(caught.value.__notes__)
    assert "  scores: " in text and "  targets: " in text and "operand_" not in text


def test_a_hook_that_returns_no_gradient_stands_below_the_line_that_registered_it() -> None:
    def doubled(gradient: Any) -> Any:
        return torch.cat([gradient, gradient])

    def wrong() -> None:
        y = torch.ones(2, requires_grad=True) * 2
        y.register_hook(doubled)
        y.exp().sum().backward()

    assert frames(raised(wrong))[-2:] == [
        ("wrong", "y.register_hook(doubled)"),
        ("doubled", "return torch.cat([gradient, gradient])"),
    ]


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.sum() * torch.ones(3)


def test_a_function_whose_gradient_does_not_fit_stands_below_the_line_that_applied_it() -> None:
    def wrong() -> None:
        y = Tripled.apply(torch.ones(2, requires_grad=True))
        y.exp().sum().backward()

    assert frames(raised(wrong))[-2:] == [
        ("wrong", "y = Tripled.apply(torch.ones(2, requires_grad=True))"),
        ("backward", "return gradient.sum() * torch.ones(3)"),
    ]


def test_an_attribute_that_is_asked_for_in_vain_costs_no_look_at_the_values_of_its_line() -> None:
    layer = torch.nn.Linear(2, 2)
    assert getattr(layer, "missing", None) is None
    with pytest.raises(AttributeError) as caught:
        layer.missing  # noqa: B018
    assert not hasattr(caught.value, "__notes__")
