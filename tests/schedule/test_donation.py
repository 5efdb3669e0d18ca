"""Outputs that take over the memory of dying inputs, where a later kernel may fail."""

import re

import pytest

import twofold as torch
from twofold import _core


def test_what_failed_is_run_again_on_whole_inputs():
    data = torch.arange(6.0)._realise()
    _core.set_tier("fused")
    try:
        index = torch.full((40,), 5)._realise()
        shifted = index + 1  # may take over the memory of index, which dies with the run
        picked = data[shifted]
        del index
        with pytest.raises(IndexError, match=re.escape("index 6 is outside")):
            picked.sum().item()
    finally:
        _core.set_tier("auto")
