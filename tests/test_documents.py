"""Examples on the pages of docs/ run, and links between the pages lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_differences_are_as_the_page_says() -> None:
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    assert program.count("assert") >= 5
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    for name in re.findall(r"`((?:csrc|tests|twofold|tools|bench)/[\w/]+(?:\.\w+)?)`", text):
        assert (ROOT / name).exists() or name == "twofold/ops/page_example.py", name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_function_stands_in_the_file_that_a_page_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, file in re.findall(r"`([\w:<>.]+)`\s+(?:in|of)\s+`([\w/]+\.(?:py|cc|h))`", text):
        path = next(one for one in (ROOT / file, ROOT / "twofold" / file) if one.exists())
        last = re.split(r"[.:]+", name.partition("<")[0])[-1]
        assert re.search(rf"\b{last}\b", path.read_text(encoding="utf-8")), f"{name} in {file}"
