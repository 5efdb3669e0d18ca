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


@pytest.mark.parametrize(
    "path", [p for p in sorted(PACKAGE.rglob("*.py")) if "ops" not in p.parts], ids=lambda p: p.name
)
def test_no_list_of_operation_names(path):
    names = set(REGISTRY) | set(FUNCTIONS)
    for line, values in literals(ast.parse(path.read_text())):
        found = [value for value in values if isinstance(value, str) and value in names]
        if set(found) <= COMBINATIONS | COMPARISONS:
            continue
        assert len(found) < ENOUGH, f"{path.name}:{line} lists operations: {found}"


def compared_names(tree):
    """Names of operations that the ``name`` of something is compared with, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr == "name" for side in sides):
                literal = [item for side in sides for item in getattr(side, "elts", [side])]
                found = {item.value for item in literal if isinstance(item, ast.Constant)}
                yield from ((node.lineno, name) for name in found & set(REGISTRY))


@pytest.mark.parametrize(
    "path",
    [p for folder in ("transforms", "compiler") for p in sorted((PACKAGE / folder).rglob("*.py"))],
    ids=lambda p: p.name,
)
def test_passes_ask_properties_of_entries(path):
    found = list(compared_names(ast.parse(path.read_text())))
    assert not found, f"{path.name} tells operations by name: {found}. Use or add a property of Op."


def test_a_comparison_with_a_name_is_found():
    tree = ast.parse('if node.op.name in ("add", "exp") and kind.name == "other": pass')
    assert sorted(compared_names(tree)) == [(1, "add"), (1, "exp")]


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
