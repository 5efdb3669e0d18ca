"""Which tests call a function is recorded, kept by file, and decides which tests a change meets first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from mutate import settings_of
from mutation_record import KEPT, condensed, recorded
from mutation_tests import Suite
from mutations import Mutation

LIBRARY = """
def double(x):
    return twice(x)

def twice(x):
    return (lambda y: y + y)(x)

def triple(x):
    return 3 * x

class Box:
    def size(self):
        return max([1], key=lambda n: triple(n))
"""
TESTS = """
import sys, pathlib
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from twofold.library import *

def test_double():
    assert double(2) == 4 and sys.gettrace() is None

def test_both():
    assert double(2) + triple(2) == 10

def test_box():
    assert Box().size() == 1
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("tests/part", "twofold"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "twofold" / "__init__.py").touch()
    (tmp_path / "twofold" / "library.py").write_text(LIBRARY)
    (tmp_path / "tests" / "part" / "test_library.py").write_text(TESTS)
    return tmp_path


def names(tree: Path, *scope: str) -> list[str]:
    suite = Suite(tree, recorded(tree, tree / "record", settings_of(tree), 1))
    change = Mutation("twofold/library.py", 1, "constant", 0, 1, "0", "1", scope)
    return [test.name.split("::")[1] for test in suite.calling(change)]


def test_tests_that_call_a_function_are_found_the_most_specific_first(tree: Path) -> None:
    assert names(tree, "double") == ["test_double", "test_both"]
    assert names(tree, "twice") == ["test_double", "test_both"]  # called by another function
    assert names(tree, "triple") == ["test_both", "test_box"] or names(tree, "triple") == [
        "test_box",
        "test_both",
    ]
    assert names(tree, "Box", "size") == ["test_box"]
    assert names(tree, "unknown") == []


def test_a_file_of_tests_is_recorded_again_when_it_has_changed(tree: Path) -> None:
    assert names(tree, "double")
    before = {path: path.stat().st_mtime_ns for path in (tree / "record").iterdir()}
    assert names(tree, "double")
    assert before == {path: path.stat().st_mtime_ns for path in (tree / "record").iterdir()}
    path = tree / "tests" / "part" / "test_library.py"
    path.write_text(path.read_text().replace("double(2) + ", "4 + "))
    assert names(tree, "double") == ["test_double"]
    assert not set(before) & set((tree / "record").iterdir())


def test_of_a_function_that_all_tests_call_some_are_kept() -> None:
    tests = {f"test_{k}": (0.1, {"common", *map(str, range(k))}) for k in range(100)}
    found = condensed(tests)
    kept = [found["tests"][number][0] for number in found["functions"]["common"]]
    assert len(kept) == KEPT and kept[:2] == ["test_0", "test_1"] and len(found["functions"]["98"]) == 1
