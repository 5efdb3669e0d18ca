"""Large blocks lie in huge pages where the system has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import twofold as torch

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SMAPS = Path("/proc/self/smaps")


def huge_bytes(address: int) -> int:
    """Bytes in huge pages of the mapping that holds ``address``."""
    inside = False
    for line in SMAPS.read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("AnonHugePages:"):
            return int(line.split()[1]) << 10
    return 0


@pytest.mark.skipif(
    not SMAPS.exists() or not ENABLED.exists() or "[never]" in ENABLED.read_text(), reason="no huge pages"
)
def test_a_large_result_takes_few_pages() -> None:
    x = torch.full((16 << 20,), 3.0)
    values = x.numpy()
    assert values[-1] == 3.0
    assert huge_bytes(x.data_ptr() + values.nbytes // 2) >= values.nbytes // 2
