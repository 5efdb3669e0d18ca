"""Programs that may crash run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import twofold

ROOT = Path(twofold.__file__).parents[1]
UNDER_ADDRESS_SANITIZER = "libasan" in os.environ.get("LD_PRELOAD", "")


def run(program: str, *arguments: str, timeout: float = 300, **environment: str) -> str:
    """What a program prints; fails with its messages unless it ends by itself without an error."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, (
        f"exit status {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout
