"""The example programs run, learn, and stay short."""

from __future__ import annotations

import gzip
import importlib
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = ["--train", "80", "--test", "30", "--epochs", "2", "--size", "16"]


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("trees", "training"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("trees")
    for name in ("trees", "training"):
        sys.modules.pop(name, None)


def run(name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> list[float]:
    """The accuracies that an example prints."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return [float(one) for one in re.findall(r"accuracy ([\d.]+)", capsys.readouterr().out)]


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [
        ("tagger", [], 0.4),
        ("tagger", ["--declared", "--batch", "2"], 0.4),
        ("treelstm", [], 0.5),
        ("parser", [], 0.8),
        ("graph_network", [], 0.7),
    ],
)
def test_examples_learn(
    name: str,
    options: list[str],
    least: float,
    trees: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run(name, [*SMALL, *options], monkeypatch, capsys)
    assert len(found) == 2 and found[-1] >= least


@pytest.mark.parametrize("name", ["graph_network", "treelstm"])
def test_both_ways_agree(
    name: str, trees: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    by_run = run(name, SMALL, monkeypatch, capsys)
    declared = run(name, [*SMALL, "--declared"], monkeypatch, capsys)
    assert declared == pytest.approx(by_run, abs=0.03)


def test_a_structure_that_depends_on_values_is_not_declared(
    trees: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run("parser", [*SMALL, "--declared"], monkeypatch, capsys)
    assert "cannot be declared" in capsys.readouterr().err


def test_sentences_of_a_file(trees: Any, tmp_path: Path) -> None:
    text = "1\tA\tDET\t2\tdet\n2\tdog\tNOUN\t0\troot\n\n1\tYes\tINTJ\t0\troot\n\n"
    (tmp_path / "plain.tsv").write_text(text)
    with gzip.open(tmp_path / "packed.tsv.gz", "wt") as file:
        file.write(text)
    for name in ("plain.tsv", "packed.tsv.gz"):
        first, second = trees.read(str(tmp_path / name))
        assert [tuple(word) for word in first] == [("A", "DET", 2, "det"), ("dog", "NOUN", 0, "root")]
        assert second[0].form == "Yes"
    assert [len(part) for part in trees.sentences(str(tmp_path / "plain.tsv"), 5, 1)] == [1, 1]
    with pytest.raises(ValueError, match="2 sentences"):
        trees.sentences(str(tmp_path / "plain.tsv"), 5, 2)


def test_generated_sentences_are_trees(trees: Any) -> None:
    for sentence in trees.generate(50, seed=3):
        assert sum(word.head == 0 for word in sentence) == 1
        for position in range(len(sentence)):
            seen = set()
            while position >= 0 and position not in seen:
                seen.add(position)
                position = sentence[position].head - 1
            assert position == -1


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 120
