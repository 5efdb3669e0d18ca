"""A package imports only what stands before it; every import of the package is parsed."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent / "twofold"

# Parts on one line are equals: they may import one another, but not in a circle.
ORDER = [
    {"_core"},
    {
        "index",
        "names",
        "lazy",
        "dtypes",
        "errors",
        "tracebacks",
        "config",
        "files",
        "plain_objects",
        "hashing",
        "progress",
        "signatures",
        "cache",
        "crc32c",
        "protobuf",
        "event_files",
        "event_plugins",
    },
    {"ir"},
    {"ops"},
    {"transforms"},
    {"compiler.lower"},
    {"compiler.schedule"},
    {"compiler"},
    {"runtime"},
    {"frontend"},
    {
        "_C",
        "__config__",
        "_VF",
        "_dynamo",
        "_inductor",
        "_subclasses",
        "storage",
        "_utils",
        "_vmap_internals",
        "accelerator",
        "amp",
        "array_api",
        "autograd",
        "backends",
        "cpu",
        "cuda",
        "distributed",
        "distributions",
        "dynet",
        "dynet_config",
        "fft",
        "func",
        "functional",
        "futures",
        "fx",
        "hub",
        "jit",
        "library",
        "linalg",
        "masked",
        "return_types",
        "multiprocessing",
        "onnx",
        "random",
        "safetensors",
        "serialization",
        "sparse",
        "special",
        "testing",
        "signal",
        "utils",
        "torch_version",
        "types",
        "xpu",
        "version",
        "nn",
        "optim",
        "overrides",
        "quasirandom",
        "data",
        "static",
    },
    {"debug"},
    {"profiler"},
    {"autograd.profiler"},
    {"demo"},
    {"__main__"},
]
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}

# What a program does not need to be imported, and what it may never need.
LATE_IMPORTS = {
    ("frontend/options.py", "twofold.frontend.operand_casts"),
    ("frontend/gradients.py", "twofold.frontend.transforms"),
    ("frontend/function.py", "twofold.frontend.captures"),
    ("static/session/config.py", "twofold.event_files"),
    ("compiler/lower/loops.py", "twofold.compiler.lower.columns"),
    ("compiler/lower/loops.py", "twofold.compiler.lower.tiles"),
    ("compiler/lower/target.py", "llvmlite.binding"),
    ("transforms/derived.py", "twofold.transforms.vmap"),
    ("runtime/closure_conversion.py", "twofold.transforms.derived"),
    ("compiler/batches.py", "twofold.compiler.log"),
    ("compiler/batches.py", "twofold.compiler.requests"),
    ("compiler/fusing.py", "twofold.compiler.linking"),
    ("compiler/fusing.py", "twofold.compiler.log"),
    ("compiler/fusing.py", "twofold.ir.text"),
    ("compiler/portable_trace.py", "twofold.compiler.linking"),
    ("compiler/process.py", "subprocess"),
    ("compiler/requests.py", "twofold.compiler.fusing"),
    ("compiler/requests.py", "twofold.compiler.log"),
    ("compiler/jit.py", "llvmlite.binding"),
    ("compiler/templates.py", "twofold.compiler.compile"),
    ("compiler/trace_templates.py", "twofold.compiler.symbolic_programs"),
    ("compiler/templates.py", "twofold.compiler.log"),
    ("compiler/templates.py", "twofold.compiler.planned"),
    ("runtime/instances.py", "twofold.compiler"),
    ("runtime/instances.py", "twofold.ir.shape_inference"),
    ("runtime/instances.py", "twofold.transforms.sparse_rows"),
    ("runtime/instances.py", "twofold.compiler.compile"),
    ("runtime/instances.py", "twofold.compiler.recompute"),
    ("runtime/instances.py", "twofold.transforms.derived"),
    ("runtime/tracing.py", "twofold.compiler"),
    ("runtime/failures.py", "twofold.runtime.line_values"),
    ("ops/shape/contiguity.py", "twofold.ops.shape.reinterpreting"),
    ("compiler/schedule/schedule.py", "twofold.compiler.lower.convolution"),
    ("compiler/schedule/schedule.py", "twofold.compiler.lower.epilogue"),
    ("compiler/schedule/schedule.py", "twofold.compiler.lower.gemm"),
}

FILES = sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return ranked(path.relative_to(ROOT).with_suffix("").parts)


def ranked(parts: Sequence[str]) -> str:
    """The part of the order that a module belongs to."""
    inner = ".".join(parts[:2])
    return inner if inner in RANK else parts[0]


def imported_modules(node: ast.Import | ast.ImportFrom, path: Path) -> list[str]:
    """Full names of the modules that an import statement names, relative ones resolved."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = node.module or ""
    if node.level:
        package = ["twofold", *path.relative_to(ROOT).parent.parts]
        package = package[: len(package) - node.level + 1]
        module = ".".join([*package, module]).rstrip(".")
    if module == "twofold":
        return [f"twofold.{alias.name}" for alias in node.names]
    return [module]


class Imported(NamedTuple):
    """A module that a statement imports, and whether the statement is in a function."""

    line: int
    module: str
    is_late: bool

    @property
    def part(self) -> str | None:
        first, *rest = self.module.split(".")
        return None if first != "twofold" else ranked(rest) if rest else ""


def statements(parent: ast.AST, is_late: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All statements below one, and whether they are in a function; expressions have none."""
    is_late = is_late or isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef))
    for _, value in ast.iter_fields(parent):
        for node in value if isinstance(value, list) else ():
            if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
                yield node, is_late
                yield from statements(node, is_late)


@functools.cache
def imports_of(path: Path) -> list[Imported]:
    return [
        Imported(node.lineno, module, is_late)
        for node, is_late in statements(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in imported_modules(node, path)
    ]


def imports_of_the_package() -> list[tuple[Path, int, str]]:
    return [(path, one.line, one.part) for path in FILES for one in imports_of(path) if one.part is not None]


def test_there_is_something_to_check() -> None:
    assert imports_of_the_package()


def test_every_part_has_a_position_in_the_order() -> None:
    unplaced = {part_of(path) for path in FILES} - set(RANK) - {"__init__"}
    assert not unplaced, f"give these parts a position in ORDER: {sorted(unplaced)}"


def test_nothing_imports_to_its_right() -> None:
    wrong = []
    for path, line, part in imports_of_the_package():
        if part_of(path) == "__init__" or part == "_core":
            continue
        where = f"{path.relative_to(ROOT.parent)}:{line}"
        if part not in RANK:
            # The programs of the demo use the public names alone, as a user's program does.
            if part_of(path) not in ("demo", "__main__"):
                wrong.append(f"{where} imports the name {part!r} of the whole package")
        elif RANK[part] > RANK[part_of(path)]:
            wrong.append(f"{where} imports {part}, which stands right of {part_of(path)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("parts", ORDER, ids=lambda parts: "-".join(sorted(parts)))
def test_equals_do_not_import_in_a_circle(parts: set[str]) -> None:
    edges: dict[str, set[str]] = {part: set() for part in parts}
    for path, _, part in imports_of_the_package():
        if part_of(path) in parts and part in parts and part != part_of(path):
            edges[part_of(path)].add(part)
    while free := [part for part, needs in edges.items() if not needs]:
        for part in free:
            del edges[part]
        for needs in edges.values():
            needs.difference_update(free)
    assert not edges, f"these import one another in a circle: {edges}"


def late_imports(path: Path) -> list[str]:
    file = path.relative_to(ROOT)
    return [
        f"{path.relative_to(ROOT.parent)}:{one.line} imports {one.module} in a function"
        for one in imports_of(path)
        if one.is_late and (file.as_posix(), one.module) not in LATE_IMPORTS
    ]


def test_imports_stand_at_the_top_of_their_file() -> None:
    found = [line for path in FILES for line in late_imports(path)]
    assert not found, "\n".join(found)


def test_a_wrong_import_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "twofold"
    (package / "ir").mkdir(parents=True)
    bad = package / "ir" / "bad.py"
    bad.write_text("from ..frontend import tensor\n\ndef f():\n    import twofold.nn\n")
    monkeypatch.setitem(globals(), "ROOT", package)
    monkeypatch.setitem(globals(), "FILES", [bad])
    with pytest.raises(AssertionError, match="imports frontend, which stands right of ir"):
        test_nothing_imports_to_its_right()
    with pytest.raises(AssertionError, match=r"imports twofold\.nn in a function"):
        test_imports_stand_at_the_top_of_their_file()
