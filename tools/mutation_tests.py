"""Which tests are the first to try for a changed function: those that call it, and those that speak of it."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from mutation_record import COMPILED, Test
from mutations import Mutation

WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")
GENERATED = (
    "tests/references/test_public.py",
    "tests/references/test_entries.py",
    "tests/ops/test_generated.py",
)
COMMON = (
    "add or sum or matmul or softmax or conv2d or cumsum or gather or where or amax or broadcast_to or cat"
)
"""Entries that together go through all of the compiler."""
BESIDE: dict[str, tuple[str, ...]] = {
    "transforms": (
        "tests/transforms",
        "tests/func",
        "tests/autograd",
        "tests/static/test_gradients.py",
        "tests/compiler/schedule",
        "tests/laws/test_same_bits.py",
    ),
    "compiler": ("tests/compiler", "tests/laws/test_same_bits.py", "tests/laws/test_memory.py"),
    "ops": ("tests/references", "tests/ops", "tests/errors", "tests/array_api"),
    "nn": ("tests/nn", "tests/frontend", "tests/errors"),
    "static": ("tests/static", "tests/errors"),
}
BUDGETS = (3.0, 12.0, 40.0)
"""Seconds of the runs of tests that call a changed function."""
MOST_TESTS = 200
MOST_NAMES = 12
FEW_NAMES = 3
"""Tests that compile take much longer, so they are run for the nearest names alone."""


@dataclass(frozen=True)
class Stage:
    """One run of pytest: what it is given, and the names it is narrowed to."""

    paths: tuple[str, ...]
    names: str = ""


class Suite:
    """The test files of a tree, the words in them, and which of their tests call a function."""

    def __init__(self, root: Path, calls: Mapping[str, Sequence[Sequence[Test]]] | None = None) -> None:
        self.root, self.calls = root, calls or {}
        files = sorted((root / "tests").rglob("test_*.py"))
        self.words = {path.relative_to(root).as_posix(): words_of(path) for path in files}
        seen = Counter(word for words in self.words.values() for word in set(words))
        self.weight = {word: math.log(len(files) / count) + 0.1 for word, count in seen.items()}

    def calling(self, mutation: Mutation) -> list[Test]:
        """The tests that call a changed function: of every file the most specific one, then the second of each."""
        groups: list[Sequence[Test]] = []
        for length in range(len(mutation.scope), 0, -1):
            name = f"{mutation.path}:{'.'.join(mutation.scope[:length])}"
            groups += [*self.calls.get(name, ()), *self.calls.get(f"{name}.<lambda>", ())]
            if groups:
                break
        else:
            groups = [*self.calls.get(f"{mutation.path}:<lambda>", ())]
        groups.sort(key=lambda tests: tests[0].functions)
        found = [test for tests in zip_longest(*groups) for test in tests if test is not None]
        return list({test.name: test for test in found}.values())

    def ranked(self, terms: dict[str, float]) -> list[str]:
        """The test files that speak of ``terms``, the likeliest first."""
        scores = {}
        for path, words in self.words.items():
            shares = [
                factor * self.weight.get(term, 0) * (1 + math.log(words[term]))
                for term, factor in terms.items()
                if words[term]
            ]
            if shares and path not in GENERATED + COMPILED:
                scores[path] = sum(shares)
        return sorted(scores, key=lambda path: -scores[path])

    def stages(self, mutation: Mutation, far: bool) -> list[Stage]:
        """The runs that a change has to survive, cheap and likely ones first."""
        package = mutation.path.split("/")[1]
        names, terms = names_around(self.root / mutation.path, mutation)
        ranked = self.ranked(terms)
        names = [name for name in names if len(name) > 2]
        keyword = " or ".join(names)
        found = [Stage(("twofold/__init__.py", mutation.path))]  # the package first, as users import it
        calling = self.calling(mutation)
        found += _within(calling, BUDGETS)
        if package == "ops" and keyword:
            found.append(Stage(GENERATED, keyword))
        found.append(Stage(tuple(ranked[:3])))
        if package == "ops" and keyword:
            found.append(Stage(COMPILED, " or ".join(names[:FEW_NAMES])))
        elif package not in ("nn", "static"):
            found.append(Stage(BESIDE[package]))
            found.append(Stage(COMPILED[:3], COMMON))
        found.append(Stage(tuple(ranked[3:8])))
        if far:
            found.append(Stage(tuple(path for path in BESIDE[package] if (self.root / path).exists())))
        return [stage for stage in found if stage.paths]


def _within(tests: Sequence[Test], budgets: Sequence[float]) -> list[Stage]:
    """Runs of the first ``tests``, each about as many seconds long as its budget."""
    stages: list[Stage] = []
    rest = list(tests)
    for budget in budgets:
        names, seconds = [], 0.0
        while rest and seconds < budget and len(names) < MOST_TESTS:
            test = rest.pop(0)
            names.append(test.name)
            seconds += test.seconds
        stages.append(Stage(tuple(names)))
    return stages


def words_of(path: Path) -> Counter[str]:
    """How often each name, and each part of a dotted name, occurs in a file."""
    return Counter(WORD.findall(path.read_text(encoding="utf-8")))


def names_around(path: Path, mutation: Mutation) -> tuple[list[str], dict[str, float]]:
    """Public names that lead to a change, nearest first, and the words that a test of it may use, with weights."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = mutation.scope[0] if mutation.scope else ""
    users = _users(tree, own)
    if not users and own:  # a helper of other files
        mention = re.compile(rf"\b{own}\b")
        others = [other for other in sorted(path.parent.glob("*.py")) if other != path]
        texts = {other: other.read_text(encoding="utf-8") for other in others}
        users = [
            user for text in texts.values() if mention.search(text) for user in _users(ast.parse(text), own)
        ]
    names = [name.strip("_") for name in (own, *users)][:MOST_NAMES]
    terms = {path.stem: 1.5}
    for name in users:
        terms[name.strip("_")] = 1.0
    for name in mutation.scope:
        terms[name.strip("_")] = 2.0
    return names, {term: factor for term, factor in terms.items() if len(term) > 1}


def _users(tree: ast.Module, name: str) -> list[str]:
    """Definitions of a module that mention ``name``, and those that mention these."""
    mentions: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inner = ast.walk(node)
            mentions[node.name] = {one.id for one in inner if isinstance(one, ast.Name)}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            mentions[node.targets[0].id] = {
                one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)
            }
    found: list[str] = []
    wave = [name]
    while wave:
        wave = [user for user, used in mentions.items() if used & set(wave) and user not in (name, *found)]
        found += wave
    return found
