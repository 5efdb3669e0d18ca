"""Under a debugger every line has run when the next one begins."""

import sys

import twofold as torch
from twofold import _core


def test_each_line_has_run_while_a_trace_function_is_set():
    pending = []

    def watch(frame, event, argument):
        if frame.f_code is program.__code__ and event == "line":
            pending.append(_core.pending())
        return watch

    def program():
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        z = y.exp().sum()
        z.backward()
        return x.grad

    _core.flush()  # what was recorded before
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        gradient = program()
    finally:
        sys.settrace(before)
    assert pending and set(pending) == {0}
    assert gradient.tolist() == program().tolist()


def test_eager_mode_runs_at_once():
    before = _core.set_eager(True)
    try:
        y = torch.ones(3) * 2
        assert _core.pending() == 0
        assert y.tolist() == [2, 2, 2]
    finally:
        _core.set_eager(before)
