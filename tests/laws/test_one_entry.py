"""Law 2: no list of operation names anywhere but in the entries. Law 10: the core names no operation."""

import ast
import re
from pathlib import Path

import pytest

import twofold
from twofold.ir.op import REGISTRY
from twofold.ops.base import FUNCTIONS

PACKAGE = Path(twofold.__file__).parent
CORE = PACKAGE.parent / "csrc"
ENOUGH = 5
"""So many names of operations in one literal are a list of operations."""


COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
COMBINATIONS = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"}
"""Vocabulary of the code generator: ways to compare and to combine, which operations refer to."""


def is_of_exports(node):
    """Whether an assignment lists what the module itself defines under names that operations happen to have."""
    return isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [
        "__all__"
    ]


def literals(tree):
    exports = {node.value for node in ast.walk(tree) if is_of_exports(node)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and node not in exports:
            yield node.lineno, [item.value for item in node.elts if isinstance(item, ast.Constant)]


def test_no_list_of_operation_names():
    names = set(REGISTRY) | set(FUNCTIONS)
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, values in [] if "ops" in path.parts else literals(ast.parse(path.read_text())):
            found = [value for value in values if isinstance(value, str) and value in names]
            if set(found) <= COMBINATIONS | COMPARISONS:
                continue
            assert len(found) < ENOUGH, f"{path.name}:{line} lists operations: {found}"


def is_name(node):
    """Whether an expression is a name: of something, or in a variable that says so."""
    said = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return said == "name" or said.endswith("_name")


def texts(node):
    """The strings that an expression is, or that a collection written there holds."""
    if isinstance(node, ast.Call):  # frozenset((...))
        return [text for item in node.args for text in texts(item)]
    items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node])
    return [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def compared_names(tree):
    """Names of operations that a name is compared with, or looked up among, each with its line."""
    known = set(REGISTRY)
    collections = {
        target.id: texts(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        sides = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            sides = [node.slice, node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            sides = [node.func.value, *node.args]  # name.startswith("log"), TABLE.get(name)
        if any(map(is_name, sides)):
            found = {
                text
                for side in sides
                for text in (collections.get(side.id, []) if isinstance(side, ast.Name) else texts(side))
            }
            yield from ((node.lineno, name) for name in sorted(found & known))


ATOMS = {"input", "real"}
"""Names in expressions of sizes and in guards that an entry happens to have, too."""


def test_passes_ask_properties_of_entries():
    for folder in ("ir", "transforms", "compiler", "runtime", "debug"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            compared = compared_names(ast.parse(path.read_text()))
            found = [(line, name) for line, name in compared if name not in ATOMS]
            assert not found, f"{path.name} tells operations by name: {found}. Use or add a property of Op."


def test_a_comparison_with_a_name_is_found():
    text = """
CHANGING = frozenset(("add", "scatter_sum"))
if node.op.name in ("add", "exp") and kind.name == "other": pass
if name == "divide" or op.name in CHANGING or op_name.startswith("log"): pass
said = {"multiply": "product"}[op.name]
"""
    assert sorted(compared_names(ast.parse(text))) == [
        (3, "add"), (3, "exp"), (4, "add"), (4, "divide"), (4, "log"), (4, "scatter_sum"), (5, "multiply"),
    ]  # fmt: skip


@pytest.mark.skipif(not CORE.is_dir(), reason="needs the sources of the core")
def test_the_core_names_no_operation():
    quoted = {f'"{name}"' for name in set(REGISTRY) | set(FUNCTIONS)}
    for path in CORE.glob("*.cc"):
        text = path.read_text()
        # A hook may be called like an operation; hooks are what Python installs, not operations.
        hooks = {f'"{name}"' for name in re.findall(r'\{"(\w+)", &hooks\.', text)}
        found = {name for name in quoted if name in text} - hooks
        assert not found, f"{path.name} names operations: {sorted(found)}"


def test_primitives_without_a_function_are_not_public():
    """``functions = ()`` of a base class holds for the entries made from it."""
    internal = [name for name in REGISTRY if name.startswith(("batched_", "window_", "scatter_", "random_"))]
    assert len(internal) > 10
    shared = {"scatter_add", "scatter_reduce"}
    assert [name for name in internal if hasattr(twofold, name) and name not in shared] == []
