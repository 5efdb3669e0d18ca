"""The index, the stubs and the reference pages in the repository are those that the operation entries give."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import index
import reference
import stubs

import twofold
from twofold.frontend.install import PUBLIC

ROOT = Path(__file__).resolve().parent.parent


def differing(files: dict[Path, str]) -> list[str]:
    return [
        path.relative_to(ROOT).as_posix()
        for path, text in files.items()
        if not path.exists() or path.read_text() != text
    ]


@pytest.mark.parametrize("writer", [index, stubs, reference], ids=lambda module: module.__name__)
def test_files_are_as_the_entries_give_them(writer: object) -> None:
    assert not differing(writer.files()), "out of date: run make generated"  # type: ignore[attr-defined]


def test_no_page_is_left_over() -> None:
    assert set(reference.FOLDER.glob("*.md")) == set(reference.files())


def test_stubs_name_every_public_function_and_method() -> None:
    package, methods = (list(ast.walk(ast.parse(text))) for text in (stubs.package(), stubs.methods()))
    names = {node.name for node in package if isinstance(node, ast.FunctionDef)}
    names |= {node.asname for node in package if isinstance(node, ast.alias)}
    assert {name for name in dir(twofold) if name in PUBLIC and not name.startswith("_")} <= names
    found = {node.name for node in methods if isinstance(node, ast.FunctionDef)}
    rest = {name for name in dir(twofold.Tensor) if not name.startswith("_")} - found
    assert {name for name in rest if callable(getattr(twofold.Tensor, name))} == {
        "detach",
        "item",
    }


def test_signatures_keep_parameters_and_results() -> None:
    assert stubs.definition("relu", twofold.relu) == "def relu(input: Any, *, out: Any = None) -> Tensor: ..."
    made = stubs.definition("conv1d", twofold.conv1d)
    assert "weight: Any, bias: Any = None" in made and "groups: builtins.int = 1" in made
    assert (
        stubs.definition("add", twofold.add, True)
        == "def add(self, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor: ..."
    )
