"""docs/adding_an_operation.md is followed in a copy of the tree: the file, the index, the programs, the tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding_an_operation.md"
GENERATED = ("test_generated.py", "test_compiled.py", "test_compiled_gradients.py", "test_accuracy.py")
LEAST_TESTS = 20


def blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def ran(tree: Path, *command: str) -> str:
    """What a Python program prints that imports the package of ``tree``."""
    path = os.pathsep.join([str(ROOT / "tools" / "without_install"), str(tree)])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the page's entries in its index."""
    root = tmp_path_factory.mktemp("tree")
    for name in ("twofold", "tools", "tests/ops"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "docs").symlink_to(ROOT / "docs")
    shutil.copy(ROOT / "pyproject.toml", root)
    (root / "twofold" / "ops" / "page_example.py").write_text(blocks("python")[0])
    ran(root, "tools/index.py")
    return root


def test_both_ways_of_declaring_have_the_operations(tree: Path) -> None:
    assert "grad" not in ran(tree, "-c", blocks("python")[1])


def test_its_examples_and_the_tests_made_from_its_entries_pass(tree: Path) -> None:
    names = re.search(r'-k "(.*)"', blocks("sh")[1])
    assert names
    files = [f"tests/ops/{name}" for name in GENERATED]
    out = ran(
        tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
        "twofold/ops/page_example.py", *files, "-k", f"{names[1]} or page_example",
    )  # fmt: skip
    passed = re.search(r"(\d+) passed", out)
    assert passed and int(passed[1]) >= LEAST_TESTS
