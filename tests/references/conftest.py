"""The modules here import each other by name; only the tests are collected."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "ops")]
collect_ignore = [path.name for path in HERE.glob("*.py") if not path.name.startswith("test_")]
