"""Writes the type stubs while the package is built, when nothing is installed yet: CMake runs it.

python tools/build_stubs.py CORE FOLDER       # the built extension module, and where the stubs go
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TOOLS = Path(__file__).resolve().parent


def load(name: str, path: str | Path) -> None:
    """Import a module from a file."""
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    load(
        "without_install", TOOLS / "without_install" / "sitecustomize.py"
    )  # it knows the files of an earlier version
    load("twofold._core", sys.argv[1])  # from where it was built, so that the package finds it loaded
    import stubs

    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in stubs.files().items():
        target = folder / path.name
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
