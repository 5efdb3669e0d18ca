"""Pullbacks are kept by keys that mean nothing else as long as they stand."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from twofold.dtypes import float32
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.transforms import derived


class Content:
    """An attribute whose text is its address."""


def test_attributes_live_as_long_as_a_key_has_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "stable_graph", lambda *call: None)
    monkeypatch.setattr(derived, "_build_pullbacks", lambda *call: {})
    content: Any = Content()
    alive = weakref.ref(content)
    found = derived.pullbacks_of(REGISTRY["add"], (content,), (tensor_type(float32, (2,)),), (0,))
    del content
    gc.collect()
    assert found == {} and alive() is not None
