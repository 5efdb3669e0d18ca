"""Every public function has an example in its docstring, and every example shows what comes out."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

import twofold
from twofold.frontend.install import PUBLIC


def text_of(function: Any) -> str:
    return inspect.getdoc(function) or ""


def functions() -> dict[str, Any]:
    """Every public function once, under the first of its names."""
    found: dict[int, tuple[str, Any]] = {}
    for name, function in PUBLIC.items():
        found.setdefault(id(function), (name, function))
    return dict(found.values())


def layers() -> dict[str, Any]:
    """Every module of ``twofold.nn``."""
    found = {f"nn.{name}": value for name, value in vars(twofold.nn).items() if not name.startswith("_")}
    return {name: value for name, value in found.items() if isinstance(value, type)}


def methods() -> dict[str, Any]:
    """The tensor's own methods and properties, which are no public functions."""
    taken = {text_of(function) for function in PUBLIC.values()}
    own = [name for name in dir(twofold.Tensor) if not name.startswith("_")]
    found = {f"Tensor.{name}": getattr(twofold.Tensor, name) for name in own}
    return {name: method for name, method in found.items() if text_of(method) not in taken}


EXAMPLES = {
    name: text_of(function)
    for name, function in (functions() | layers() | methods()).items()
    if ">>>" in text_of(function)
}


def failures(name: str, text: str) -> str:
    """What the examples in ``text`` say wrongly; nothing if all is as they say."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(test, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_right(name: str) -> None:
    assert not failures(name, EXAMPLES[name])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_whole(name: str) -> None:
    lines = [line for line in EXAMPLES[name].splitlines() if line.startswith(">>>")]
    assert lines[0] == ">>> import twofold as torch"
    assert len(lines) > 1


def test_public_functions_and_layers_have_examples() -> None:
    without = [name for name, function in (functions() | layers()).items() if ">>>" not in text_of(function)]
    assert not without, f"without an example: {', '.join(without)}"


def test_a_wrong_example_would_be_seen() -> None:
    assert not failures("right", ">>> 1 + 1\n2\n")
    assert failures("wrong", ">>> 1 + 1\n3\n")
