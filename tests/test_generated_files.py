"""The index and the stubs are those that the operation entries give, and so are pages of reference."""

from __future__ import annotations

import ast
import re
import subprocess
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


@pytest.mark.parametrize("writer", [index, stubs], ids=lambda module: module.__name__)
def test_files_are_as_the_entries_give_them(writer: object) -> None:
    assert not differing(writer.files()), "out of date: run make generated"  # type: ignore[attr-defined]


def test_pages_of_reference_tell_of_all_functions_and_lead_to_each_other() -> None:
    pages = reference.files()
    readme = pages[reference.FOLDER / "README.md"]
    for path, text in pages.items():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert path.parent / target in pages or (path.parent / target).exists(), (path.name, target)
    assert all(f"[{name}](" in readme for name in ("matmul", "softmax", "linalg.svd", "where"))


def test_stubs_of_a_build_are_these(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "tools" / "build_stubs.py", twofold._core.__file__, tmp_path]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        path.name: text for path, text in stubs.files().items()
    }


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
