"""Compiles the kernels that come with the package while it is built, and plans common operations: CMake runs it.

python tools/build_kernels.py CORE FOLDER [own]   # the built module; where archives go, for this processor alone

For each level of processors that this one reaches, processes run ``tools/kernel_programs.py`` with machine code for
that level: for what LLVM makes, and with symbols in place of all sizes, for the plans; and one runs
``tools/structure_programs.py`` in batches.
"""

from __future__ import annotations

import atexit
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from build_stubs import use_core

LEVELS = "x86-64-v3", "x86-64-v4"
_TURNS = 3
"""The first call, which runs operations one by one, and the ones that run them fused."""


def kernels(level: str, templates: str) -> dict[str, bytes]:
    """Objects of all kernels of the programs; the environment says that code is generated for ``level``.

    ``templates`` says which sizes are planned by themselves, see ``_core.set_templates``.
    """
    collecting = _collecting(level)
    from twofold import _core

    _core.set_templates(templates)
    for step in _steps():
        for _ in range(_TURNS):
            step()
    return collecting.objects


def batches(level: str, _: str) -> dict[str, bytes]:
    """Plans for symbolic sizes of launches of programs that run in batches, and objects of their kernels."""
    from twofold import _core

    def run() -> None:
        import structure_programs

        for mode in ("calls_at_once", "at_once"):  # single operations, then with bodies
            _core.set_batching(mode)
            for step in structure_programs.programs():
                for _ in range(_TURNS):
                    step()

    return _planned(level, run)


def plans(level: str, templates: str) -> dict[str, bytes]:
    """Plans for symbolic sizes of the operations of the programs, and objects of the kernels that these call."""
    from twofold import _core

    _core.set_tier("unfused")
    _core.set_batching("off")
    _core.set_templates(templates)

    def run() -> None:
        import structure_programs

        for step in itertools.chain(_steps(), structure_programs.programs()):
            step()

    return _planned(level, run)


def _planned(level: str, run: Callable[[], None]) -> dict[str, bytes]:
    """What ``run`` plans and compiles."""
    collecting = _collecting(level)
    from twofold.compiler import saved_plans
    from twofold.compiler.disk_cache import DiskCache

    with tempfile.TemporaryDirectory() as empty:
        made = saved_plans.SavedPlans(DiskCache(empty), "build", sys.maxsize, sys.maxsize)
        saved_plans._saved.append(made)
        run()
        atexit.unregister(made.flush)
        return collecting.objects | made.for_package()


_PARTS = {
    "second_size": kernels,
    "off": kernels,
    "batches": batches,
    "at_once": plans,
    "sizes_at_once": plans,
}
"""What is made in a process of its own, by how sizes are planned there; the longest come first."""


def _steps() -> Iterator[Callable[[], object]]:
    import kernel_programs

    return kernel_programs.programs()


def _collecting(level: str) -> Any:
    """A jit that keeps the objects of all kernels: one for each, so that a process maps what it needs."""
    from twofold.compiler import jit

    class Collecting(jit.Jit):
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
    return collecting


def build(level: str, core: str, folder: Path) -> None:
    """Write the archive for one level."""
    from twofold.compiler.disk_cache import archive_path, write_archive

    settings = {"TWOFOLD_TARGET_CPU": level, "TWOFOLD_BACKGROUND": "0", "TWOFOLD_THREADS": "1"}

    def part(templates: str) -> dict[str, bytes]:
        command = [sys.executable, __file__, core, str(folder), level, templates]
        done = subprocess.run(command, check=True, env=os.environ | settings, stdout=subprocess.PIPE)
        found: dict[str, bytes] = pickle.loads(done.stdout)
        return found

    made: dict[str, bytes] = {}
    with ThreadPoolExecutor(os.cpu_count()) as processes:
        for found in processes.map(part, _PARTS):
            made |= found
    write_archive(archive_path(level, str(folder)), [([key], payload) for key, payload in made.items()])


def main() -> None:
    sys.dont_write_bytecode = True
    core, folder, *asked = sys.argv[1:]
    use_core(core)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    if len(asked) == 2:
        level, templates = asked
        sys.stdout.buffer.write(pickle.dumps(_PARTS[templates](level, templates)))
        return
    from twofold import _core

    Path(folder).mkdir(parents=True, exist_ok=True)
    levels = LEVELS[: LEVELS.index(_core.processor_level()) + 1] if _core.processor_level() else ()
    for level in levels[-1:] if asked == ["own"] else levels:
        build(level, core, Path(folder))


if __name__ == "__main__":
    main()
