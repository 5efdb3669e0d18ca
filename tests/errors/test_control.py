"""The texts of mistakes in choices and loops, frozen: which value, both types, the user's line, what to change."""

import re

import pytest

import twofold as torch


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_control\.py:\d+", "here.py:N", str(caught.value))


def carried_shape():
    def body(step, state):
        return step + 1, torch.cat([state["h"], state["h"]])

    torch.while_loop(lambda step, state: step < 3, lambda step, state: (step + 1, {"h": body(step, state)[1]}),
                     (torch.tensor(0), {"h": torch.zeros(2)}))  # fmt: skip


def carried_dtype():
    torch.scan(lambda total, x: (total + x.double(), x), torch.tensor(0.0), torch.ones(3))


def carried_count():
    torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1,), (0, torch.ones(2)))


def branches_differ():
    x = torch.ones(2)
    torch.cond(x.sum() > 0, lambda x: {"a": x * 2}, lambda x: {"a": x.sum()}, (x,))


def branches_of_other_structure():
    x = torch.ones(2)
    torch.cond(x.sum() > 0, lambda x: (x, x), lambda x: [x, x], (x,))


def branches_of_other_count():
    x = torch.ones(2)
    torch.cond(x.sum() > 0, lambda x: (x, x), lambda x: (x,), (x,))


def predicate_of_floats():
    torch.cond(torch.ones(1).sum(), lambda: torch.ones(1), lambda: torch.zeros(1))


def predicate_of_many():
    torch.while_loop(lambda x: x > 0, lambda x: (x - 1,), (torch.ones(3),))


def value_of_a_placeholder():
    torch.scan(lambda c, x: (c + 1 if x > 0 else c, x), torch.tensor(0.0), torch.ones(3))


def lengths_differ():
    torch.scan(lambda c, x: (c, x[0]), torch.tensor(0.0), (torch.ones(3), torch.ones(4)))


def no_axis():
    torch.map(lambda x: x, torch.tensor(1.0))


def no_pair():
    torch.scan(lambda c, x: c + x, torch.tensor(0.0), torch.ones(3))


def inside_the_body():
    torch.scan(lambda c, x: (c @ x, x), torch.ones(2, 2), torch.ones(3, 3, 3))


def index_in_an_iteration():
    table = torch.ones(4)
    torch.scan(lambda c, i: (c + torch.index_select(table, 0, i.reshape(1)).sum(), i), torch.tensor(0.0),
               torch.tensor([1, 2, 9]))[0].item()  # fmt: skip


MISTAKES = {
    carried_shape: (
        RuntimeError,
        "while_loop: state['h'] (carried_inputs[1]['h']) enters as float32[2] (here.py:N) and "
        "leaves the body as float32[4] (here.py:N), at here.py:N. Make the body return the typ"
        "e that it was given, such as with .reshape(...) or .expand(...).",
    ),
    carried_dtype: (
        TypeError,
        "scan: init enters as float32[] (here.py:N) and leaves the body as float64[] (here.py:"
        "N), at here.py:N. Make the body return the type that it was given, such as with .to(f"
        "loat32).",
    ),
    carried_count: (
        RuntimeError,
        "while_loop: the body returns 1 values for 2 that are carried, at here.py:N. Return a "
        "new value for each of them, in order.",
    ),
    branches_differ: (
        RuntimeError,
        "cond: result['a'] is float32[] (here.py:N) from false_fn and float32[2] (here.py:N) f"
        "rom true_fn, at here.py:N. Return the same type from both, such as with .reshape(...)"
        " or .expand(...).",
    ),
    branches_of_other_structure: (
        RuntimeError,
        "cond: false_fn returns [*, *]; true_fn returns (*, *), at here.py:N. Return the same "
        "structure from all.",
    ),
    branches_of_other_count: (
        RuntimeError,
        "cond: false_fn returns 1 tensors and true_fn returns 2, at here.py:N. Return as many from both.",
    ),
    predicate_of_floats: (
        TypeError,
        "cond: pred is float32[] (here.py:N), not bool, at here.py:N. Compare it with somethin"
        "g, such as x > 0.",
    ),
    predicate_of_many: (
        RuntimeError,
        "while_loop: what cond_fn returns is bool[3] (here.py:N), not one truth value, at here"
        ".py:N. Reduce it with all() or any().",
    ),
    value_of_a_placeholder: (
        RuntimeError,
        "bool(): bool[] (here.py:N) is not computed yet, as it depends on a placeholder, at he"
        "re.py:N. Fetch it with Session.run(tensor, feed_dict={...}); for a branch on its valu"
        "e use cond.",
    ),
    lengths_differ: (
        RuntimeError,
        "scan: xs[1] is float32[4], 4 long, and xs[0] is 3 long, at here.py:N. Give them one l"
        "ength along axis 0.",
    ),
    no_axis: (
        RuntimeError,
        "map: xs is float32[], which has no axis to go along, at here.py:N. Give a tensor with"
        " at least one axis.",
    ),
    no_pair: (
        RuntimeError,
        "scan: combine_fn returns Tensor, not (carry, y), at here.py:N. Return the next carry "
        "and this step's result.",
    ),
    inside_the_body: (
        RuntimeError,
        "matmul: inner sizes differ, 2 against 3: input float32[2,2] (here.py:N), other float3"
        "2[3,3] (here.py:N), at here.py:N. Make the first axis of other 2.",
    ),
    index_in_an_iteration: (
        IndexError,
        "index_select: index 9 is outside an axis of size 4: input float32[4] (here.py:N), index "
        "int64[1] (here.py:N), at here.py:N. Use indices from 0 to 3.",
    ),
}


@pytest.mark.parametrize("action", MISTAKES, ids=lambda action: action.__name__)
def test_text(action):
    error, expected = MISTAKES[action]
    assert message(error, action) == expected


def test_run_time_errors_name_the_line_in_the_body():
    table = torch.ones(4)

    def body(total, i):
        row = torch.index_select(table, 0, i.reshape(1))
        return total + row.sum(), i

    with pytest.raises(IndexError) as caught:
        torch.scan(body, torch.tensor(0.0), torch.tensor([1, 9]))[0].item()
    assert f"test_control.py:{body.__code__.co_firstlineno + 1}" in str(caught.value)
