"""Python code that runs in the middle of the core: finalisers, hooks, rules, and what operands do."""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import twofold as torch
from tests.core.in_child import run
from twofold import _core
from twofold.dtypes import float32
from twofold.ir.bind import input_node
from twofold.ir.types import tensor_type


class Finalised(np.ndarray):
    """An array that calls ``Finalised.action`` when it ends."""

    action: Callable[[], None] = staticmethod(lambda: None)

    def __del__(self) -> None:
        Finalised.action()


def end_a_tensor_of_an_array() -> None:
    """The memory of the tensor ends inside of the core."""
    torch.from_numpy(np.ones(3, np.float32).view(Finalised))


def test_what_a_finaliser_replaces_is_in_no_trace_that_it_runs() -> None:
    x, sums = torch.ones(3), list[float]()

    def overwrite_and_read() -> None:
        y = x * len(sums)
        y.copy_(x)  # the product ends while another value does
        sums.append((x + len(sums)).sum().item())

    Finalised.action = overwrite_and_read
    for _ in range(50):
        end_a_tensor_of_an_array()
    Finalised.action = staticmethod(lambda: None)
    assert sums == [3 + 3 * k for k in range(50)]
    many = [x * k for k in range(100)]  # in the memory of those that have ended
    assert [one[0].item() for one in many] == list(range(100))


class OnceCalled:
    """A hook that removes itself, so that nothing but its call refers to it; gives something that is no gradient."""

    def __init__(self, register: Callable[[Any], Any], result: Any = "wrong") -> None:
        self.handle = register(self)
        self.result = result

    def __call__(self, *gradients: Any) -> Any:
        self.handle.remove()
        return self.result


def test_the_error_of_a_hook_that_has_removed_itself() -> None:
    x = torch.ones(3, requires_grad=True)
    OnceCalled(x.register_hook)
    with pytest.raises(RuntimeError, match="returned str"):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_hooks_behind_one_that_removes_itself_are_called_as_in_pytorch() -> None:
    seen: list[str] = []
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    for where, register in (
        ("leaf", x.register_hook),
        ("after", x.register_post_accumulate_grad_hook),
        ("value", y.register_hook),
        ("call", y.grad_fn.register_hook),
    ):
        OnceCalled(register, None)
        register(lambda *gradients, where=where: seen.append(where))
    y.sum().backward()
    assert seen == ["value", "call", "leaf", "after"]


class Inside:
    """Does something once in the first, or the given, call or return of Python inside of a block when it may."""

    def __init__(
        self, action: Callable[[], Any], when: Callable[[], bool] = lambda: True, first: int = 0
    ) -> None:
        self._action, self._when, self._left = action, when, first
        self.done = False
        # CPython holds no reference while it calls a profiler, which a collection of garbage may reach before.
        self._profiler = self._step

    def _step(self, frame: Any, event: str, argument: Any) -> None:
        if self.done:
            return
        if self._when():
            self._left -= 1
        if self._left < 0:
            sys.setprofile(None)
            self.done = True
            self._action()

    def __enter__(self) -> Inside:
        sys.setprofile(self._profiler)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)


def is_running() -> bool:
    """Whether what was recorded has been taken to run."""
    return _core.pending() == 0


def test_a_handle_gets_a_value_while_the_readers_of_its_memory_run() -> None:
    tensor = torch.tensor([1.0, 2.0])
    order = torch.argsort(tensor)  # runs in Python
    with Inside(lambda: tensor.add_(1), is_running) as inside:
        array = tensor.numpy()
    assert inside.done and array.tolist() == [2, 3]
    assert order.tolist() == [0, 1]


def test_a_handle_gets_other_memory_while_what_is_written_to_it_runs() -> None:
    array = np.ones(2, np.float32)
    tensor = torch.from_numpy(array)
    written = torch.sort(torch.tensor([2.0, 0.0])).values

    def replace() -> None:
        tensor.data = torch.zeros(2)
        tensor.add_(5)

    with Inside(replace, is_running) as inside:
        tensor.add_(written)
    assert inside.done and array.tolist() == [1, 1]
    assert tensor.tolist() == [1, 3]  # the sum was computed before, and is written last


def test_a_flag_whose_truth_writes_to_the_tensor() -> None:
    tensor = torch.tensor([1.0, 2.0])

    class Flag:
        def __bool__(self) -> bool:
            tensor.add_(1)
            return True

    truth: Any = Flag()
    tensor.requires_grad = truth
    assert tensor.requires_grad and tensor.tolist() == [2, 3]


@pytest.mark.parametrize("use", ["write", "layout", "read"])
def test_a_view_gets_other_storage_while_it_is_used(use: str) -> None:
    """The view and its parent end inside of the rules of Python that are asked for them."""
    for first in range(30):
        base = torch.ones(3, 4 + first, 5)
        view = base.transpose(0, 1)[1:]
        base.add_(1)

        def replace(view: Any = view, first: int = first) -> None:
            view.data = torch.zeros(3 + first, 3, 5)

        del base
        with Inside(replace, first=first) as inside:
            if use == "write":
                view.mul_(torch.ones(5).cumsum(0))
            elif use == "layout":
                view.stride(), view._view, view.numpy()
            else:
                (view * 2).sum().item()
        assert view.sum().item() in (0, (3 + first) * 3 * 5 * 2, (3 + first) * 3 * 15 * 2)
        if not inside.done:
            break


def test_a_view_gets_storage_of_another_shape_while_its_layout_is_asked_for() -> None:
    shapes = [(5, 6), (9, 1), (3, 4, 6), (2, 3, 4, 5)]
    for first in range(100):
        base = np.arange(3 * (40 + first) * 5, dtype=np.float32).reshape(3, 40 + first, 5)
        expected = base.transpose(1, 0, 2)[1:, :, ::2]
        view = torch.tensor(base).transpose(0, 1)[1:, :, ::2]
        stored = torch.full(shapes[first % len(shapes)], 2.0).transpose(0, 1)

        def replace(view: Any = view, stored: Any = stored) -> None:
            view.data = stored

        with Inside(replace, first=first) as inside:
            copy = view.contiguous()
        assert inside.done and view.stride() == stored.stride()
        assert copy.tolist() in (expected.tolist(), stored.tolist()) and copy.is_contiguous()
        again = torch.tensor(base).transpose(0, 1)[1:, :, ::2]
        assert again.stride() == tuple(step // 4 for step in expected.strides)


def test_a_view_of_shared_memory_gets_other_storage_while_it_is_looked_at() -> None:
    for first in range(40):
        base = torch.from_numpy(np.ones((7 + first, 5), np.float32)).requires_grad_(True)
        view = base.transpose(0, 1)[1:]
        view.tolist()

        def replace(view: Any = view) -> None:
            with torch.no_grad():
                view.data = torch.zeros(view.shape)

        del base
        with Inside(replace, first=first) as inside:
            total = view.sum().item()
        assert total in (0, 4 * (7 + first))
        if not inside.done:
            break


def test_an_equal_node_is_made_while_one_ends() -> None:
    type = tensor_type(float32, (3,))
    made: list[Any] = []
    node = input_node(7001, type)
    ended = weakref.ref(node, lambda reference: made.append(input_node(7001, type)))
    del node
    later = [input_node(7002 + k, type) for k in range(20)]  # in the memory of what has ended
    assert ended() is None and made[0] is input_node(7001, type)
    assert made[0].type == type and made[0] not in later


@contextmanager
def at_collection(number: int, action: Callable[[], Any]) -> Iterator[None]:
    """Does something in the given collection of garbage, of which there is one for each two objects."""
    seen: list[str] = []

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            seen.append(phase)
            if len(seen) == number:
                action()

    before = gc.get_threshold()
    gc.freeze()  # a full collection, which leaves no free tuples, is quick then
    gc.collect()
    gc.callbacks.append(collected)
    gc.set_threshold(1, 1 << 30, 1 << 30)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)


def test_a_gradient_is_taken_away_while_another_one_is_added_to_it() -> None:
    for number in range(1, 40):
        w = torch.ones(3 + number, requires_grad=True)
        w.grad = torch.ones(3 + number, requires_grad=True)  # so that it is added behind the pass
        total = (w * 2).sum()
        with at_collection(number, functools.partial(setattr, w, "grad", None)):
            total.backward()
        assert w.grad is None or w.grad[0].item() in (2, 3)


def test_the_trace_of_a_value_runs_while_it_is_described() -> None:
    for number in range(1, 60, 4):
        x = torch.ones(3, requires_grad=True)
        y = x
        for k in range(30):
            y = y * float(k)
        with at_collection(number, y.tolist):
            found: Any = _core.trace_above([y])
        numbers, (_, entries, *_), lines, leaves = found
        assert numbers == [0] and len(entries) == len(lines) == 30
        assert len({line for line, _ in lines}) == 1 and not any(leaf is None for leaf in leaves)


def test_a_value_is_replaced_while_its_call_is_described() -> None:
    for number in range(1, 20):
        y = torch.ones(3, requires_grad=True) * 2

        def replace(y: Any = y) -> None:
            with torch.no_grad():
                y.mul_(2)

        with at_collection(number, replace):
            assert y.grad_fn.name().startswith("Mul") and len(y.grad_fn.next_functions) == 1


def test_a_table_gets_a_value_while_the_rows_that_are_written_to_it_run() -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    rows = torch.sort(torch.tensor([[6.0, 5.0]])).values
    with Inside(lambda: table.add_(1), is_running) as inside:
        _core.write_rows(table, np.array([1]), rows)
    assert inside.done and table.tolist() == [[2, 3], [5, 6]]


READS_WHERE_THE_CORE_ASKS_FOR_A_DEBUGGER = """
import sys

unread = []
def gettrace():
    if unread:
        unread.pop().item()
sys.gettrace = gettrace
import twofold as torch
sys.settrace(lambda *event: None)
sys.settrace(None)
x = torch.ones(4)
for step in range(12):
    y = x * 2.0 + 1.0
    total = y.sum()
    if step > 7:
        unread.append(total)
    assert ((y * 3.0 + x).sum() + total).item() == 52.0
"""


def test_the_predicted_trace_runs_while_the_core_asks_for_a_debugger() -> None:
    run(READS_WHERE_THE_CORE_ASKS_FOR_A_DEBUGGER)


GIVES_A_HANDLE_OTHER_STORAGE_WHILE_IT_IS_READ = """
import twofold as torch

class Finalised:
    def __init__(self, action):
        self.action = action
    def __del__(self):
        self.action()

def set_data(x):
    torch.ones(1).data = x

for read in (lambda x: x._numpy(), lambda x: x._values(), torch.nn.Parameter, set_data, lambda x: x + 1):
    ended = []
    def give_other_storage():
        shown.data = torch.zeros(5)
        ended.append(True)
    x = torch.ones(3)
    shown = x.detach()
    x.attribute = Finalised(give_other_storage)
    x.data = torch.ones(3)  # what is shown stays behind, and holds the handle until it is read
    del x
    read(shown)
    assert ended and shown.tolist() == [0.0] * 5
"""


def test_a_finaliser_of_a_former_handle_gives_what_is_read_other_storage() -> None:
    run(GIVES_A_HANDLE_OTHER_STORAGE_WHILE_IT_IS_READ)
