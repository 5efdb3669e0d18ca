"""The table of planted bugs: the last frame of the traceback is the planted line, in every way the bug can exist."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import twofold as torch
import twofold.static as tf
from tests.debug import planted_operands
from tests.debug.planted_bodies import BODIES, OF_DYNET
from tests.debug.planted_callbacks import CALLBACKS
from tests.debug.planted_calls import CALLS, X
from tests.debug.planted_compositions import COMPOSITIONS
from tests.debug.planted_declarations import BUILDERS_OF_DYNET, DECLARATIONS
from tests.debug.planted_declared_tasks import DECLARED
from tests.debug.planted_expressions import BUILDERS
from tests.debug.planted_feeds import FEEDS, OF_STATES
from tests.debug.planted_functions import FUNCTIONS
from tests.debug.planted_gradients import GRADIENTS
from tests.debug.planted_graphs import EXPRESSIONS, GRAPHS
from tests.debug.planted_layers import LAYERS
from tests.debug.planted_loops import LOOPS
from tests.debug.planted_places import PLACES
from tests.debug.planted_programs import PROGRAMS
from tests.debug.planted_runs import RUNS
from tests.debug.planted_sessions import SESSIONS
from tests.debug.planted_steps import STEPS
from tests.debug.planted_tasks import TASKS
from tests.debug.planted_training import TRAINING
from tests.debug.planted_transforms import TRANSFORMS
from tests.debug.planted_vectors import VECTORS
from tests.debug.planted_words import WORDS
from twofold import _core, debug, dynet

Bug = Callable[..., Any]
WAYS = ("deferred", "eager", "compile", "backward", "stepped")


def last_frame(action: Callable[[], Any]) -> traceback.FrameSummary:
    with pytest.raises(Exception) as caught:
        action()
    if isinstance(caught.value, torch.errors.TwofoldError):
        assert caught.value.fix and str(caught.value).endswith("."), "what to change"
        assert not re.search(r"operand \d+ -?[\d.]+(, |$)", str(caught.value)), "a number without a name"
    return traceback.extract_tb(caught.value.__traceback__)[-1]


def planted(bug: Any) -> set[int]:
    """The lines that are marked in a bug, or in what it stands for."""
    lines, first = inspect.getsourcelines(bug)
    found = {first + k for k, line in enumerate(lines) if "# bug" in line}
    whole = linecache.getlines(inspect.getsourcefile(bug) or "")
    return found or {k for k, line in enumerate(whole, 1) if line.endswith(f"# bug of {bug.__name__}\n")}


def is_there(frame: traceback.FrameSummary, bug: Any) -> bool:
    """Whether a frame stands at a marked line, the last one of an expression of several included."""
    last = getattr(frame, "end_lineno", None) or frame.lineno
    inside = any(frame.lineno <= line <= last for line in planted(bug))  # type: ignore[operator]
    return frame.filename == inspect.getsourcefile(bug) and inside


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    _core.set_eager(False)
    with contextlib.suppress(torch.errors.TwofoldError):
        _core.flush()


def observed(call: Bug, x: Any) -> Any:
    found = call(x, torch.tensor([0, 1]))
    found = found[0] if isinstance(found, (tuple, list)) else found
    if x.requires_grad and found.requires_grad:
        found.sum().backward()
    return found.tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "bug", [*CALLS, *FUNCTIONS, *TRANSFORMS, *LAYERS, *PLACES, *COMPOSITIONS], ids=lambda bug: bug.__name__
)
def test_calls(bug: Bug, way: str) -> None:
    _core.set_eager(way == "eager")
    call = torch.compile(bug) if way == "compile" else bug
    x = torch.tensor(X, requires_grad=way == "backward")
    run = debug.run if way == "stepped" else lambda function, *given: function(*given)
    assert is_there(last_frame(lambda: run(observed, call, x)), bug)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "bug",
    [*PROGRAMS, *TRAINING, *GRADIENTS, *CALLBACKS, *LOOPS, *STEPS, *TASKS],
    ids=lambda bug: bug.__name__,
)
def test_programs(bug: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_there(last_frame(bug), bug)


def run(build: Bug, steps: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fetch, feeds = build()
        session.run(tf.global_variables_initializer())
        session.run(fetch, feeds, debug=steps)  # where what was fed or fetched is wrong


@pytest.mark.parametrize("steps", [False, True], ids=["", "stepped"])
@pytest.mark.parametrize(
    "bug",
    [*GRAPHS, *SESSIONS, *BODIES, *DECLARATIONS, *RUNS, *FEEDS, *DECLARED],
    ids=lambda bug: bug.__name__,
)
def test_sessions(bug: Bug, steps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = last_frame(lambda: run(bug, steps))
    assert is_there(frame, bug) if planted(bug) else "where what was fed" in str(frame.line)


@pytest.mark.parametrize(
    "bug",
    [*EXPRESSIONS, *BUILDERS, *OF_DYNET, *BUILDERS_OF_DYNET, *VECTORS, *OF_STATES, *WORDS],
    ids=lambda bug: bug.__name__,
)
def test_dynet(bug: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dynet.renew_cg()
    assert is_there(last_frame(bug), bug)


def told(bug: Any, action: Callable[[], Any]) -> None:
    """An error ends at the planted line, and its text or note has what the comment there lists."""
    with pytest.raises(Exception) as caught:
        action()
    assert is_there(traceback.extract_tb(caught.value.__traceback__)[-1], bug)
    (wanted,) = re.findall(r"# bug with (.*)", inspect.getsource(bug))
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    for one in re.split(r", (?!\d)", wanted):
        assert re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text), (one, text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bug", planted_operands.CALLS, ids=lambda bug: bug.__name__)
def test_operands_of_calls(bug: Bug, way: str) -> None:
    _core.set_eager(way == "eager")
    call = torch.compile(bug) if way == "compile" else bug
    x = torch.tensor(X, requires_grad=way == "backward")
    told(bug, lambda: observed(lambda x, _: call(x), x))


@pytest.mark.parametrize("bug", planted_operands.PROGRAMS, ids=lambda bug: bug.__name__)
def test_operands_of_programs(bug: Bug) -> None:
    dynet.renew_cg()
    told(bug, bug)


@pytest.mark.parametrize("bug", planted_operands.GRAPHS, ids=lambda bug: bug.__name__)
def test_operands_of_graphs(bug: Bug) -> None:
    told(bug, lambda: run(bug, False))
