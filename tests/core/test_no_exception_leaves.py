"""Whatever C calls in the core stands behind the guard that turns C++ exceptions into Python errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import twofold

SOURCES = sorted((Path(twofold.__file__).parents[1] / "csrc").glob("*.cc"))
TABLE = re.compile(r"(PyMethodDef|PyGetSetDef|PyType_Slot) \w+\[\] = \{(.*?)\n\};", re.S)
PLAIN = {
    "nullptr",
    "PyType_GenericNew",
    "PyVectorcall_Call",
    "members",
    "tensor_attributes",
    "tensor_methods",
    "methods",
    "attributes",
}


def unguarded(kind: str, body: str) -> list[str]:
    body = re.sub(r"//[^\n]*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', body))
    body = re.sub(r"reinterpret_cast<void\*>\((\w+)\)", r"\1", body)
    found = []
    for row in re.findall(r"\{([^{}]*)\}", body):
        for cell in row.split(",")[1:]:
            name = cell.strip()
            if not re.match(r"[A-Za-z_]", name) or name.startswith(
                ("METH_", "guarded<", "slot<", "method<", "spoiling<", "of_layout<")
            ):
                continue
            if name not in PLAIN:
                found.append(name)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_function_in_a_table_is_guarded(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for kind, body in TABLE.findall(text):
        assert not unguarded(kind, body), f"{path.name}: not behind guarded<>, slot<>() or method<>()"
    assert not re.findall(r"->vectorcall = (?!guarded<)\w+", text)
    for call in re.findall(r"(?:PyCapsule_New|PySys_AddAuditHook)\((.*)\)", text):
        assert "guarded<" in call, f"{path.name}: {call}"


def test_the_check_finds_what_is_not_guarded() -> None:
    assert unguarded(
        "PyMethodDef", '\n {"a", add, METH_O, "Adds."},\n {"b", guarded<b>, METH_O, "x, y."},'
    ) == ["add"]
    assert unguarded("PyType_Slot", "\n {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},") == ["dealloc"]
