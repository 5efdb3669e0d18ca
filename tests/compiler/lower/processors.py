"""Processors by name whose code this machine can run."""

from __future__ import annotations

_V2 = {"popcnt", "ssse3", "sse4_1", "sse4_2"}
_V3 = {*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}

EMULATED: dict[str, set[str]] = {"x86-64": {"sse2"}, "nehalem": _V2, "haswell": _V3, "znver3": _V3}
"""What kernels for each may use, by the names that Linux gives features; the others have instructions of their own."""


def runnable(name: str) -> bool:
    """Whether this processor has every feature that kernels for the one called ``name`` use."""
    try:
        with open("/proc/cpuinfo") as file:
            return EMULATED[name] <= set(file.read().split())
    except OSError:
        return False
