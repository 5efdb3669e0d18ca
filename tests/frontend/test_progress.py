"""A bar appears where something takes long and somebody looks, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import twofold as torch
from twofold import progress
from twofold.compiler import jit
from twofold.progress import Progress


class Bar:
    """Stands for tqdm's."""

    made: list[Bar] = []

    def __init__(self, initial: int, **options: Any) -> None:
        self.done, self.options, self.closed = initial, options, False
        Bar.made.append(self)

    def update(self, parts: int) -> None:
        self.done += parts

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    """The bars that appear in a terminal where every part takes a second."""
    seconds = iter(range(10**6))
    module = ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(progress, "_is_seen", lambda: True)
    Bar.made = []
    return Bar.made


def test_a_bar_appears_after_two_seconds(looking: list[Bar]) -> None:
    with Progress("reading", 5, "file") as shown:
        for _ in range(2):
            shown.advance()
        assert not looking
        for _ in range(3):
            shown.advance()
    (bar,) = looking
    assert (
        bar.done == 5
        and bar.closed
        and bar.options
        == {
            "desc": "reading",
            "total": 5,
            "unit": "file",
            "leave": False,
        }
    )


def test_nothing_appears_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS", -1.0)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("reading", 5, "file") as shown:
        shown.advance()
    assert shown._bar is None


def test_loading_a_checkpoint_shows_its_tensors(looking: list[Bar], tmp_path: Path) -> None:
    path = tmp_path / "many.pt"
    torch.save([torch.ones(2) * k for k in range(6)], path)
    torch.load(path)
    (bar,) = looking
    assert bar.options["desc"] == "loading" and bar.options["total"] == 6 and bar.done == 6 and bar.closed


def test_compiling_many_kernels_shows_them(
    looking: list[Bar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "_BATCH", 1)
    compiler = jit.Jit(tmp_path)
    texts = {str(k): f"define i64 @kernel() {{ ret i64 {k} }}" for k in range(5)}
    monkeypatch.setattr(compiler, "_compile", lambda texts, shared: {key: object() for key in texts})
    assert len(compiler.compile_kernels(texts)) == 5
    (bar,) = looking
    assert bar.options["desc"] == "compiling" and bar.options["total"] == 5 and bar.done == 5 and bar.closed
