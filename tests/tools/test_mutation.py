"""The mutation tool changes what it says, selects by its seed, and sees which changes tests notice."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import mutate
from mutation_tests import Stage, Suite
from mutations import Mutation, chosen, mutations_of

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''\
"""A module."""

LIMIT = 3

def area(width: float, height: float = 1.0, *, unit: bool = True) -> float:
    """The area; 2 + 2 in a docstring is no code."""
    if width < 0 or height < 0:
        raise ValueError(f"{width + 1} is {'ä'} too small")
    size = scaled(width, height, factor=2) if unit else -width
    notice(zip(size, strict=True))
    return size * 2


def samples():
    return [1 + 1]


class entry:
    reference = lambda x: x + 1
    compute = lambda x, y: x + y
'''


@pytest.fixture
def found(tmp_path: Path) -> list[Mutation]:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "module.py").write_text(SOURCE, encoding="utf-8")
    return mutations_of(tmp_path / "pack" / "module.py", tmp_path)


def of_kind(found: list[Mutation], kind: str) -> set[tuple[str, str]]:
    return {(one.old, one.new) for one in found if one.kind == kind}


def test_every_kind_of_change(found: list[Mutation]) -> None:
    assert of_kind(found, "comparison") == {("width < 0", "width <= 0"), ("height < 0", "height <= 0")}
    assert of_kind(found, "arithmetic") == {("size * 2", "(size / 2)"), ("x + y", "(x - y)")}
    assert of_kind(found, "boolean") == {("width < 0 or height < 0", "(width < 0 and height < 0)")}
    assert of_kind(found, "constant") == {("0", "1"), ("2", "3")}
    assert of_kind(found, "dropped operator") == {("-width", "(width)")}
    assert of_kind(found, "dropped statement") == {("notice(zip(size, strict=True))", "pass")}
    assert of_kind(found, "returned nothing") == {("return size * 2", "return None")}
    call = "scaled(width, height, factor=2)"
    assert of_kind(found, "dropped keyword") == {(call, "scaled(width, height)")}
    assert of_kind(found, "swapped arguments") == {(call, "scaled(height, width, factor=2)")}
    branches = f"(-width if unit else {call})"
    assert of_kind(found, "swapped branches") == {(f"{call} if unit else -width", branches)}


def test_a_changed_source_is_python_and_differs_in_one_position(found: list[Mutation]) -> None:
    assert len(found) > 10
    for one in found:
        changed = one.applied(SOURCE)
        ast.parse(changed)
        assert changed != SOURCE
        assert changed.startswith(SOURCE[: one.start]) and changed.endswith(SOURCE[one.end :])


def test_texts_references_and_samples_are_left_alone(found: list[Mutation]) -> None:
    lines = {one.line for one in found}
    texts = [k for k, line in enumerate(SOURCE.splitlines(), 1) if "raise" in line or "docstring" in line]
    assert not lines & {*texts, 3, SOURCE.splitlines().index("    return [1 + 1]") + 1}
    assert not any("reference" in one.scope for one in found)


def test_a_seed_selects_the_same_of_all_kinds(found: list[Mutation]) -> None:
    assert chosen(found, 4, 8) == chosen(found, 4, 8) != chosen(found, 5, 8)
    assert len({one.kind for one in chosen(found, 4, 8)}) == 8
    assert sorted(map(id, chosen(found, 1, 10**6))) == sorted(map(id, found))


def test_tests_that_speak_of_a_change_come_first() -> None:
    change = Mutation(
        "twofold/ops/linear_algebra/lu.py", 1, "constant", 0, 1, "0", "1", ("lu_packed", "gradient")
    )
    stages = Suite(ROOT).stages(change, far=False)
    assert stages[0].paths[-1] == "twofold/ops/linear_algebra/lu.py"
    assert "lu_packed" in stages[1].names and "lu_factor" in stages[1].names
    assert any("linalg" in path for path in stages[2].paths)


def test_a_change_is_caught_by_a_test_that_reads_it_and_survives_one_that_does_not(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("def double(x):\n    return x * 2\n\n\ndef triple(x):\n    return x * 3\n")
    test = "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\nimport module\n\n\n"
    (tmp_path / "test_module.py").write_text(test + "def test_double():\n    assert module.double(2) == 4\n")
    stages = [Stage(("test_module.py",))]
    results = {}
    for one in mutations_of(source, tmp_path):
        result = mutate.examine(tmp_path, one, stages, 60)
        results[one.scope, one.kind] = result["caught"]
    assert results == {
        (("double",), "returned nothing"): True,
        (("double",), "arithmetic"): True,
        (("double",), "constant"): True,
        (("triple",), "returned nothing"): False,
        (("triple",), "arithmetic"): False,
        (("triple",), "constant"): False,
    }
    assert "x * 2" in source.read_text()
    text = mutate.report([{**vars(one), "caught": False} for one in mutations_of(source, tmp_path)[:1]])
    assert "module.py:2" in text and "0 of 1 changes were caught" in text
