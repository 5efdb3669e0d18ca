"""What programs ask of the compiler by PyTorch's names."""

from __future__ import annotations

import pytest

import twofold as torch


def test_what_is_disabled_runs_in_every_call_of_a_compiled_function():
    calls = []

    def noted(x):
        calls.append(1)
        return x + 1

    disabled = torch.compiler.disable(noted, reason="it counts")
    add = torch.compile(lambda x: disabled(x) * 2)
    assert [add(torch.ones(1)).item() for _ in range(3)] == [4.0] * 3 and len(calls) == 3
    assert torch.compiler.disable(recursive=False)(noted).__name__ == "noted"
    layer = torch.nn.Linear(1, 1)
    assert torch.compiler.disable(layer) is layer


def test_results_are_the_same_after_a_reset():
    x = torch.arange(5.0, requires_grad=True)

    def step():
        x.grad = None
        (x * x).exp().sum().backward()
        return x.grad.tolist()

    found = [step() for _ in range(3)]
    torch.compiler.reset()
    assert torch.stats().caches["traces"].count == 0
    assert [step() for _ in range(3)] == found


def test_nothing_is_traced_in_another_way_than_it_runs():
    asked = []

    def asks(x):
        asked.append(torch.compiler.is_compiling())
        return x * 2

    assert torch.compile(asks)(torch.ones(1)).item() == 2.0 and not any(asked)
    assert not torch.compiler.is_dynamo_compiling() and not torch.compiler.is_exporting()
    assert torch.compiler.list_backends(None) == ["eager", "inductor"]
    for name in torch.compiler.list_backends(()):
        assert torch.compile(asks, backend=name)(torch.ones(1)).item() == 2.0
    assert torch.compiler.allow_in_graph(asks) is torch.compiler.assume_constant_result(asks) is asks
    assert torch.compiler.nested_compile_region(asks) is torch.compiler.nested_compile_region()(asks) is asks
    with pytest.raises(AttributeError, match="wrap_numpy"):
        torch.compiler.wrap_numpy(asks)
