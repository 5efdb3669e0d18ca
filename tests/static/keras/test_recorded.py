"""Calls and programs of Keras return what TensorFlow returned for them (see ``recorded.py``)."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf

_SPEC = importlib.util.spec_from_file_location("recorded", Path(__file__).with_name("recorded.py"))
assert _SPEC is not None and _SPEC.loader is not None
recorded: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(recorded)

EXPECTED = json.loads(recorded.RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _cleared() -> Iterator[None]:
    yield
    tf.keras.backend.clear_session()


def compare(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            compare(found[key], value)
    elif not isinstance(expected, list):
        assert found == expected
    elif (
        expected
        and isinstance(expected[0], str)
        and len(expected) == 2
        and expected[0] in ("float", "int64", "bool", "int32")
    ):
        numpy.testing.assert_allclose(found[1], expected[1], rtol=5e-4, atol=5e-5)
    else:
        assert len(found) == len(expected)
        for one, value in zip(found, expected):
            compare(one, value)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, (rows, _) in recorded.KINDS.items() for name in rows]
)
def test_recorded(kind: str, name: str) -> None:
    compare(recorded.run(tf, kind, name), EXPECTED[kind][name])
