"""Where entries stand: the lines and callers of the present run, predicted or not, and of the passes made of it."""

from __future__ import annotations

import gc
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import twofold as torch
from tests.core.in_child import run
from tests.core.test_out_of_memory import LIMITED
from twofold import _core

TIERS = ["unfused", "fused", "auto"]


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    _core.set_tier(request.param)
    yield request.param
    _core.set_tier("auto")


def line_in(function: Callable[..., Any], text: str) -> str:
    """``file.py:line`` of the line of ``function`` that holds ``text``."""
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + k for k, line in enumerate(lines) if text in line)
    return f"test_provenance.py:{number}"


def functions(tensor: torch.Tensor) -> list[str]:
    """The functions of this file on the way to the line of a tensor, innermost first."""
    return [name for file, _, _, name in tensor._location if file == __file__]


def one_more(y: torch.Tensor) -> torch.Tensor:
    return y + 1


def one_more_elsewhere(y: torch.Tensor) -> torch.Tensor:
    return y + 1  # elsewhere


def test_a_predicted_trace_shows_the_lines_of_its_own_run(tier: str) -> None:
    y = torch.ones(3)
    for call, line in [(one_more, "y + 1")] * 4 + [(one_more_elsewhere, "# elsewhere")] * 2:
        made = call(y)
        assert made._where == line_in(call, line)
        assert made.tolist() == [2, 2, 2]
        assert made._where == line_in(call, line)


def taken(x: torch.Tensor, index: torch.Tensor) -> list[float]:
    return torch.take(x, index).tolist()


def taken_elsewhere(x: torch.Tensor, index: torch.Tensor) -> list[float]:
    return torch.take(x, index).tolist()  # elsewhere


def test_an_error_of_a_run_names_the_line_of_this_run(tier: str) -> None:
    x = torch.arange(3.0)
    for _ in range(4):
        assert taken(x, torch.tensor([1])) == [1]
    torch.wait_for_compiler()
    with pytest.raises(IndexError) as caught:
        taken_elsewhere(x, torch.tensor([3]))
    assert f"at {line_in(taken_elsewhere, '# elsewhere')}" in str(caught.value)
    with pytest.raises(IndexError) as caught:
        taken(x, torch.tensor([3]))
    assert f"at {line_in(taken, 'take(')}" in str(caught.value)


def test_an_executable_shared_between_traces_names_the_line_of_the_trace_that_runs(tier: str) -> None:
    x = torch.arange(3.0)

    def with_a_dead_entry(index: torch.Tensor) -> list[float]:
        x * 5
        return torch.take(x, index).tolist()

    for _ in range(3):
        taken(x, torch.tensor([1]))
        executables = _core.statistics()["executables"]
        with_a_dead_entry(torch.tensor([1]))
    torch.wait_for_compiler()
    assert _core.statistics()["executables"] == executables
    with pytest.raises(IndexError) as caught:
        with_a_dead_entry(torch.tensor([7]))
    assert f"at {line_in(with_a_dead_entry, 'take(')}" in str(caught.value)


def test_an_error_of_a_host_operation_names_the_line_of_this_run(tier: str) -> None:
    def first(x: torch.Tensor) -> list[list[float]]:
        return torch.linalg.cholesky(x).tolist()

    def second(x: torch.Tensor) -> list[list[float]]:
        return torch.linalg.cholesky(x).tolist()  # second

    for _ in range(4):
        first(torch.eye(2))
    torch.wait_for_compiler()
    with pytest.raises(RuntimeError) as caught:
        second(-torch.eye(2))
    assert f"at {line_in(second, '# second')}" in str(caught.value)


OUT_OF_MEMORY = (
    LIMITED
    + """
torch._core.set_tier(sys.argv[1])
one = torch.ones(1, 1)

def first():
    return one.expand(100, 100000) + 1

def second():
    return one.expand(100, 100000) + 1

kept = []
for _ in range(5):
    kept.append(first()._realise())
    torch.wait_for_compiler()
limit(16)
for call in (second, first):
    try:
        call()._realise()
    except MemoryError as error:
        print(error)
"""
)


@pytest.mark.parametrize("tier", TIERS)
def test_an_error_for_want_of_memory_names_the_line_of_this_run(tier: str) -> None:
    second, first = run(OUT_OF_MEMORY, tier, TWOFOLD_THREADS="1").splitlines()
    at = [number for number, line in enumerate(OUT_OF_MEMORY.splitlines(), 1) if "expand" in line]
    assert f", at <string>:{at[0]} in first, called at " in first
    assert f", at <string>:{at[1]}. " in second


def changed(made: torch.Tensor) -> torch.Tensor:
    made += 1
    return made


def test_values_of_an_in_place_operation_and_of_a_graph_without_gradients() -> None:
    y = torch.ones(3, requires_grad=True)
    for _ in range(3):
        with torch.no_grad():
            made = one_more(y)
            made.tolist()
            assert made._where == line_in(one_more, "y + 1")
            made = one_more_elsewhere(y)
            assert made._where == line_in(one_more_elsewhere, "# elsewhere")
            made = changed(made)
            assert made._where == line_in(changed, "made += 1")
            assert made.tolist() == [3, 3, 3]


def test_lines_after_a_run_by_budget() -> None:
    _core.set_node_budget(4)
    try:
        y = torch.ones(3)
        for call, line in ((one_more, "y + 1"), (one_more_elsewhere, "# elsewhere")) * 3:
            made = [call(y) for _ in range(10)]
            assert {value._where for value in made} == {line_in(call, line)}
        assert taken(y, torch.tensor([1])) == [1]  # another caller: else the message need not name one
        with pytest.raises(IndexError) as caught:
            for _ in range(10):
                taken(y, torch.tensor([3]))
        assert f"at {line_in(taken, 'take(')} in taken" in str(caught.value)
    finally:
        _core.set_node_budget(250000)


def test_each_thread_has_the_lines_of_its_own_run() -> None:
    wrong: list[str] = []
    start = threading.Barrier(2)

    def work(call: Callable[[torch.Tensor], torch.Tensor], line: str) -> None:
        y = torch.ones(3)
        start.wait()
        for _ in range(300):
            made = call(y)
            made.tolist()
            if made._where != line or "work" not in functions(made):
                wrong.append(made._where)

    threads = [
        threading.Thread(target=work, args=(call, line_in(call, text)))
        for call, text in ((one_more, "y + 1"), (one_more_elsewhere, "# elsewhere"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_chain_of_calls() -> None:
    y = torch.ones(3)

    def outer() -> torch.Tensor:
        return one_more(y)

    (file, line, columns, name), (_, outer_line, _, outer_name), *rest = outer()._location
    source = inspect.getsource(one_more).splitlines()[1]
    assert (file, name, outer_name, rest[0][3]) == (__file__, "one_more", "outer", "test_the_chain_of_calls")
    assert f"test_provenance.py:{line}" == line_in(one_more, "y + 1")
    assert f"test_provenance.py:{outer_line}" == line_in(outer, "one_more(y)")
    assert columns is None or source[slice(*columns)] == "y + 1"
    assert len(rest) <= 14


def test_the_innermost_function_may_reuse_the_memory_of_its_frame() -> None:
    y = torch.ones(3)

    def first() -> torch.Tensor:
        return one_more(y)

    def second() -> torch.Tensor:
        return one_more(y)

    def through(call: Callable[[], torch.Tensor]) -> torch.Tensor:
        return call()

    for _ in range(50):
        for call in (first, second):
            for _ in range(2):
                assert functions(call())[:3] == ["one_more", call.__name__, functions(y)[0]]
                assert functions(through(call))[:3] == ["one_more", call.__name__, "through"]
        gc.collect(0)  # what this round left behind: a whole one takes long behind other tests


def test_frames_of_the_package_are_left_out() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return one_more(x)

    model = torch.nn.Sequential(Model(), torch.nn.Linear(3, 3))
    here = functions(torch.ones(1))[0]
    assert functions(model[0](torch.ones(3)))[:3] == ["one_more", "forward", here]
    assert functions(model(torch.ones(3)))[:2] == [here]
    assert not any("twofold/nn" in file for file, *_ in model(torch.ones(3))._location)


def test_the_caller_of_a_generator_is_who_resumes_it() -> None:
    def values(y: torch.Tensor) -> Iterator[torch.Tensor]:
        while True:
            yield y + 1

    def first(source: Iterator[torch.Tensor]) -> torch.Tensor:
        return next(source)

    def second(source: Iterator[torch.Tensor]) -> torch.Tensor:
        return next(source)

    source = values(torch.ones(2))
    for call in (first, second) * 4:
        assert functions(call(source))[:2] == ["values", call.__name__]


def test_recursion_bounds_chains_and_their_number() -> None:
    y = torch.ones(2)

    def down(path: int, depth: int) -> torch.Tensor:
        if depth == 0:
            return y * 3
        if path & 1:
            return down(path >> 1, depth - 1)
        return down(path >> 1, depth - 1)

    before = _core.location_count()
    for path in range(256):
        chain = functions(down(path, 8))
        assert chain == ["down"] * len(chain) and 2 <= len(chain) <= 16
    assert _core.location_count() - before < 60
    assert len(down(0, 300)._location) <= 16


def test_a_message_names_callers_where_several_lead_to_its_line() -> None:
    def helper(x: torch.Tensor, index: int) -> Any:
        return torch.take(x, torch.tensor([index])).item()

    def wrapped(x: torch.Tensor, index: int) -> Any:
        return helper(x, index)

    def message(call: Callable[[torch.Tensor, int], Any]) -> str:
        with pytest.raises(IndexError) as caught:
            call(torch.arange(3.0), 5)
        return str(caught.value)

    line = line_in(helper, "take(")
    assert f", at {line}. " in message(helper)
    assert f", at {line} in helper, called at {line_in(wrapped, 'helper(')} in wrapped. " in message(wrapped)
    assert f", at {line} in helper, called at {line_in(message, 'call(torch')} in message, called" in message(
        helper
    )


def test_a_chain_ends_at_the_code_of_a_module() -> None:
    here: dict[str, Any] = {"torch": torch}
    exec(compile("y = torch.ones(2) + 1", "module.py", "exec"), here)
    assert here["y"]._where == "module.py:1"
    assert [name for _, _, _, name in here["y"]._location] == ["<module>"]
