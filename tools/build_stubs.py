"""Writes the type stubs while the package is built, when nothing is installed yet: CMake runs it.

python tools/build_stubs.py CORE FOLDER       # the built extension module, and where the stubs go
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TOOLS = Path(__file__).resolve().parent


def use_core(path: str) -> None:
    """Import the package of this tree, with the extension module from where it was built."""
    _load(
        "without_install", TOOLS / "without_install" / "sitecustomize.py"
    )  # an installed one has other files
    _load("twofold._core", path)


def _load(name: str, path: str | Path) -> None:
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    use_core(sys.argv[1])
    import stubs

    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in stubs.files().items():
        target = folder / path.name
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
