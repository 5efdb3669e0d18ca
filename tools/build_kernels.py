"""Compiles the kernels that come with the package while it is built: CMake runs it.

python tools/build_kernels.py CORE FOLDER       # the built extension module, and where the archives go

For each level of processors that this one reaches, a process runs ``tools/kernel_programs.py`` with machine code for
that level and writes what LLVM made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from build_stubs import use_core

LEVELS = "x86-64-v3", "x86-64-v4"
_TURNS = 3
"""The first call, which runs operations one by one, and the ones that run them fused."""


def build(level: str, folder: Path) -> None:
    """Write the archive for one level; the environment says that code is generated for it."""
    import kernel_programs

    from twofold.compiler import jit
    from twofold.compiler.disk_cache import archive_path, write_archive

    class Collecting(jit.Jit):
        """A jit that keeps the objects of all kernels: one for each, so that a process maps what it needs."""

        objects: dict[str, bytes]

        def compile_kernels(self, texts: Mapping[str, str]) -> dict[str, jit.Kernel]:
            found = {}
            for name, text in texts.items():
                found |= super().compile_kernels({name: text})
            return found

        def _load(self, image: bytes, keys: list[str], called: Sequence[jit.Kernel]) -> jit._Code:
            self.objects |= {
                key: jit.payload_of(keys, [kernel.key for kernel in called], image) for key in keys
            }
            return super()._load(image, keys, called)

    collecting = Collecting(processor=level, name="machine code")
    collecting.objects = {}
    jit._Shared.jit = collecting
    for step in kernel_programs.programs():
        for _ in range(_TURNS):
            step()
    write_archive(
        archive_path(level, str(folder)), [([key], made) for key, made in collecting.objects.items()]
    )


def main() -> None:
    sys.dont_write_bytecode = True
    core, folder, *level = sys.argv[1:]
    use_core(core)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    if level:
        build(level[0], Path(folder))
        return
    from twofold import _core

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in LEVELS[: LEVELS.index(_core.processor_level()) + 1] if _core.processor_level() else ():
        settings = {"TWOFOLD_TARGET_CPU": name, "TWOFOLD_BACKGROUND": "0", "TWOFOLD_THREADS": "1"}
        subprocess.run([sys.executable, __file__, core, folder, name], check=True, env=os.environ | settings)


if __name__ == "__main__":
    main()
