"""Every public function has an example in its docstring, and every example shows what comes out."""

from __future__ import annotations

import doctest
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from public_names import names_of

import twofold
from twofold import nn, optim, static
from twofold.frontend.install import PUBLIC


def text_of(function: Any) -> str:
    return inspect.getdoc(function) or ""


def functions() -> dict[str, Any]:
    """Every public function once, under the first of its names."""
    found: dict[int, tuple[str, Any]] = {}
    for name, function in PUBLIC.items():
        found.setdefault(id(function), (name, function))
    return dict(found.values())


INNER = {
    "linear_with_bias",
    "linear_without_bias",
    "lookup",
    "stream",
    "apply",
    "sample_uniform",
    "Operation",
    "worded",
}
"""Names of ``nn.functional`` that are not meant for users."""


def members() -> dict[str, Any]:
    """What stands in the package and in ``nn``, ``optim`` and their parts beside the public functions."""
    known = {id(function) for function in PUBLIC.values()}
    found: dict[int, tuple[str, Any]] = {}
    for space in (twofold, nn, nn.functional, nn.init, nn.utils, optim, optim.lr_scheduler):
        for name, value in names_of(space).items():
            ours = (getattr(value, "__module__", None) or "").startswith("twofold")
            shown = not name.startswith("_") and not name.endswith("_") and name not in INNER
            if shown and ours and callable(value) and id(value) not in known and value is not twofold.Tensor:
                found.setdefault(id(value), (f"{space.__name__}.{name}", value))
    return dict(found.values())


STATIC_WITHOUT_EXAMPLE = 75
"""How many names of ``twofold.static`` may lack an example; the number may only fall."""


PARTS = "nn math linalg layers losses train image metrics random summary initializers data distributions"


def declarations() -> dict[str, Any]:
    """What stands in ``twofold.static`` and in its parts, such as ``tf.nn``."""
    spaces = {"static": static} | {f"static.{name}": getattr(static, name) for name in PARTS.split()}
    found: dict[int, tuple[str, Any]] = {}
    for title, space in spaces.items():
        for name, value in names_of(space).items():
            module = getattr(value, "__module__", None) or ""
            # what a part imports to declare its functions is not its own
            ours = module.startswith("twofold.static") and (
                space is static
                or not module.startswith(("twofold.static.api.", "twofold.static.graph.docstrings"))
            )
            if ours and callable(value) and not name.startswith("_"):
                found.setdefault(id(value), (f"{title}.{name}", value))
    return dict(found.values())


def methods() -> dict[str, Any]:
    """The tensor's own methods and properties, which are no public functions."""
    taken = {text_of(function) for function in PUBLIC.values()}
    own = [name for name in dir(twofold.Tensor) if not name.startswith("_")]
    found = {f"Tensor.{name}": getattr(twofold.Tensor, name) for name in own}
    return {name: method for name, method in found.items() if text_of(method) not in taken}


EXAMPLES = {
    name: text_of(function)
    for name, function in (functions() | members() | methods() | declarations()).items()
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


def test_examples_are_whole() -> None:
    for name, text in EXAMPLES.items():
        lines = [line for line in text.splitlines() if line.startswith(">>>")]
        assert {">>> import twofold as torch", ">>> import twofold.static as tf"} & {*lines}, name
        assert len(lines) > 1, name


def test_public_functions_and_classes_have_examples() -> None:
    without = [name for name, function in (functions() | members()).items() if ">>>" not in text_of(function)]
    assert not without, f"without an example: {', '.join(without)}"


def test_declarations_have_examples() -> None:
    without = [name for name, function in declarations().items() if ">>>" not in text_of(function)]
    assert len(without) <= STATIC_WITHOUT_EXAMPLE, f"without an example: {', '.join(without)}"


def test_a_wrong_example_would_be_seen() -> None:
    assert not failures("right", ">>> 1 + 1\n2\n")
    assert failures("wrong", ">>> 1 + 1\n3\n")
