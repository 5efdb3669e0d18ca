"""What generated code depends on in the processor that it is made for; the bits of a result never do."""

from __future__ import annotations

import platform
from functools import cache

from twofold.config import config

try:
    from numpy._core._multiarray_umath import __cpu_features__ as _FEATURES  # type: ignore[import-not-found]
except ImportError:
    _FEATURES = {}

_PROBE = """define <16 x float> @probe(<16 x float> %x, <16 x half> %y) {
  %z = fpext <16 x half> %y to <16 x float>
  %sum = fadd <16 x float> %x, %z
  ret <16 x float> %sum
}"""


@cache
def _probed() -> str:
    """Assembly for the processor that is set by name, of which only LLVM knows the features."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=config.target_cpu, features="", opt=2)
    return str(machine.emit_assembly(llvm.parse_assembly(_PROBE)))


@cache
def converts_float16() -> bool:
    """Whether the processor has instructions between float16 and float32."""
    if config.target_cpu is None:
        return bool(_FEATURES.get("F16C") or _FEATURES.get("ASIMD"))
    # without the instructions code calls a library function
    return "__extendhfsf2" not in _probed()


@cache
def vector_bits() -> int:
    """Width of the widest vector registers that the tiles of matrix products know."""
    wide = _FEATURES.get("AVX512F") if config.target_cpu is None else "%zmm" in _probed()
    return 512 if wide else 256


@cache
def masks_stores() -> bool:
    """Whether some lanes of a vector are stored about as fast as all (with AVX2, AMD takes 12 cycles or more)."""
    return vector_bits() == 512


@cache
def scales_by_powers() -> bool:
    """Whether one instruction multiplies sixteen float32 by powers of two, rounding once."""
    return platform.machine() in ("x86_64", "AMD64") and vector_bits() == 512


@cache
def streams() -> bool:
    """Whether vectors can be written past the caches, in an order that a fence restores."""
    return platform.machine() in ("x86_64", "AMD64")
