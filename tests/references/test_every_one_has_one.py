"""Every operation entry and every public function has samples, and an independent reference or identities."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Any

import every_one
from declare import ENTRIES, INTERNAL, PUBLIC
from samples import has_samples

from twofold.ir.op import REGISTRY, Op
from twofold.ops.base import FUNCTIONS

assert every_one


def own_reference(op: Any) -> Any:
    """The rule that the entry itself states; None where it states none."""
    rule = getattr(op, "rule_reference", None)
    if rule is not None:
        return rule
    for base in type(op).__mro__:
        if base is not Op and base.__name__ != "Operation" and "reference" in vars(base):
            return vars(base)["reference"]
    return None


def names_called(rule: Any) -> Iterator[Any]:
    """The global values that a rule's code refers to."""
    code = [rule.__code__]
    while code:
        one = code.pop()
        code += [constant for constant in one.co_consts if isinstance(constant, types.CodeType)]
        for step in dis.get_instructions(one):
            if step.opname == "LOAD_GLOBAL" and step.argval in rule.__globals__:
                yield rule.__globals__[step.argval]


RUNS_OPERATIONS = (
    "twofold.ir.interpret",
    "twofold.ops.building_blocks",
    "twofold.ops.base",
    "twofold.ir.bind",
)


def is_independent(op: Any, rule: Any) -> bool:
    """Whether a rule neither runs operations of this library nor the entry's own implementation."""
    if not isinstance(rule, types.FunctionType):
        return True
    called = [value.__module__ for value in names_called(rule) if isinstance(value, types.FunctionType)]
    runs = any(name in RUNS_OPERATIONS for name in called)
    words = set(rule.__code__.co_names)
    return not runs and not words & {"host", "compute", "rule_compute", "sampled_by_arrays", "rule_lower"}


def test_entries_have_a_reference_and_samples() -> None:
    for name, op in REGISTRY.items():
        assert has_samples(op) == bool(op.samples()), name  # what the generated tests go by
        if name in INTERNAL:
            continue  # checked through the programs that make it
        assert op.samples(), f"{name} has no samples"
        if name in ENTRIES:
            continue
        rule = own_reference(op)
        assert rule is not None, f"{name} has neither reference nor identities"
        assert is_independent(op, rule), f"the reference of {name} runs the implementation"


def public_names() -> dict[Any, list[str]]:
    """All names of each public function."""
    found: dict[Any, list[str]] = {}
    for name, function in FUNCTIONS.items():
        found.setdefault(function, []).append(name)
    return found


OF_ENTRIES = {getattr(op, "call", None) for op in REGISTRY.values()}
COMPOSITES = [names for function, names in public_names().items() if function not in OF_ENTRIES]


def test_public_functions_have_a_reference_and_samples() -> None:
    for names in COMPOSITES:
        checks = [check for name in names for check in PUBLIC.get(name, ())]
        assert checks, f"{names[0]} has neither reference nor identities"
        assert all(check.calls() for check in checks), f"{names[0]} has no samples"


def test_what_is_stated_exists() -> None:
    assert sorted(set(PUBLIC) - set(FUNCTIONS)) == []
    assert sorted((set(ENTRIES) | set(INTERNAL)) - set(REGISTRY)) == []
