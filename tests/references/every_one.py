"""Imports every module that states references, so that all of them are known."""

import importlib
from pathlib import Path

HELPERS = {"declare", "compare", "every_one"}

for _path in sorted(Path(__file__).parent.glob("*.py")):
    if _path.stem not in HELPERS and not _path.stem.startswith("test_"):
        importlib.import_module(_path.stem)
