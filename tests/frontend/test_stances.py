"""``torch.compiler.set_stance``: whether compiled functions run as graphs."""

from __future__ import annotations

import pytest

import twofold as torch


def test_which_calls_are_graphs():
    function = torch.compile(lambda x: x * 2)

    def declared(size):
        before, x = len(function.graphs), torch.ones(size)
        assert torch.equal(function(x), x + x)
        return len(function.graphs) - before

    @torch.compiler.set_stance("force_eager")
    def eagerly(size):
        return declared(size)

    assert declared(1) == 1 and eagerly(2) == 0 and declared(2) == 1
    function.declare((torch.ones(3),), lambda x: "graph")
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(function(torch.ones(3)), torch.full((3,), 2.0)) and declared(4) == 0
    assert function(torch.ones(3)) == "graph"
    with torch.compiler.set_stance(force_backend="eager"):
        assert declared(4) == 0
    for stance in ("eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile"):
        with torch.compiler.set_stance(stance):
            assert function(torch.ones(3)) == "graph"
    torch.compiler.set_stance("force_eager")
    assert declared(4) == 0
    torch.compiler.set_stance("default")
    assert declared(4) == 1


def test_wrong_stances():
    with pytest.raises(ValueError, match="no stance"):
        torch.compiler.set_stance("never")
    with pytest.raises(ValueError, match="guards"):
        torch.compiler.set_stance(skip_guard_eval_unsafe=True)
    with pytest.raises(RuntimeError, match="force_backend"):
        torch.compiler.set_stance("force_eager", force_backend="eager")
