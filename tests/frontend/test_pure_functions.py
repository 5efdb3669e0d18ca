"""Compiled functions that use more than their arguments give what the function gives, in every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold import _core

X = [[1.0, 2.0], [3.0, 5.0]]


def test_captured_tensors_have_gradients_and_their_present_values() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    function = torch.compile(lambda x: (x * w).sum())
    for _ in range(3):
        w.grad = None
        function(torch.tensor(X)).backward()
        assert w.grad.tolist() == [4.0, 7.0]
    with torch.no_grad():
        w += 1
        assert function(torch.ones(2)).item() == 5.0
        w[0] = 10.0
        assert function(torch.ones(2)).item() == 13.0


def trained(net: Any, called: Any) -> list[float]:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (called(torch.tensor(X)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    "wrap", [torch.compile, lambda net: torch.compile(lambda x: net(x))], ids=["module", "function"]
)
def test_a_compiled_model_trains_as_the_model(wrap: Callable[[Any], Any]) -> None:
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)
        )
        losses = trained(net, wrap(net) if compiled else net)
        found.append((losses, net[1].running_mean.tolist(), net[1].num_batches_tracked.item()))
    assert found[0] == found[1] and found[0][0][-1] < found[0][0][0]


def test_the_mode_of_a_module_is_that_of_the_call() -> None:
    dropout = torch.nn.Dropout(0.5)
    function, ones = torch.compile(lambda x: dropout(x) + 1), torch.ones(100)
    dropout.eval()
    assert function(ones).tolist() == [2.0] * 100
    dropout.train()
    masks = [function(ones).tolist() for _ in range(2)]
    assert masks[0] != masks[1] and set(masks[0]) == {1.0, 3.0}
    dropout.eval()
    assert function(ones).tolist() == [2.0] * 100


def test_random_numbers_writes_and_values_looked_at() -> None:
    noisy = torch.compile(lambda x: x + torch.rand(3))
    torch.manual_seed(3)
    found = [noisy(torch.zeros(3)).tolist() for _ in range(2)]
    torch.manual_seed(3)
    assert found == [torch.rand(3).tolist() for _ in range(2)]

    count = torch.zeros(())

    def counted(x: Any) -> Any:
        count.add_(1)
        return x * 2

    compiled = torch.compile(counted)
    for _ in range(3):
        compiled(torch.ones(2))
    assert count.item() == 3

    switch = torch.tensor(True)
    choice = torch.compile(lambda x: x * 2 if switch.item() else x * 3)
    assert choice(torch.ones(1)).item() == 2
    switch.fill_(False)
    assert choice(torch.ones(1)).item() == 3

    kept = torch.ones(2)
    assert torch.compile(lambda x: kept)(torch.zeros(2)) is kept


def test_functions_of_their_arguments_are_declared_once() -> None:
    def function(x: Any, y: Any) -> Any:
        z = torch.softmax(x * 2 + y.exp(), -1)
        z[0] = 0
        return z.sum(), torch.where(x > y, x, 1.0)

    compiled = torch.compile(function)
    wanted = function(torch.ones(2, 3), torch.zeros(2, 3))
    for _ in range(3):
        found = compiled(torch.ones(2, 3), torch.zeros(2, 3))
        assert [one.tolist() for one in found] == [one.tolist() for one in wanted]
    assert len(compiled.graphs) == 1


def test_the_next_function_is_not_held_to_it() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        torch.compile(fails)(torch.ones(1))
    assert _core.refuse_impure(None) is None
    assert torch.nn.Linear(2, 1)(torch.ones(2)).shape == (1,) and torch.nn.Module._hooked is False


def test_arguments_are_written_to_and_shown_as_without_compiling() -> None:
    def written(x: Any, y: Any) -> Any:
        x[0] = y[1]
        flat = x.view(-1)
        flat.mul_(2)
        y.detach().add_(1)
        return flat

    def turned(x: Any, y: Any) -> Any:
        x.t_()
        return x, (y + 1).t()

    def same(x: Any, y: Any) -> Any:
        return x[0], y

    for function in (written, turned, same):
        found = []
        for called in (function, torch.compile(function)):
            arguments = torch.tensor(X), torch.tensor(X) + 1
            for _ in range(3):
                result = called(*arguments)
                for one in result if isinstance(result, tuple) else (result,):
                    one += 1
            found.append([(one.tolist(), one.stride()) for one in (*arguments, *result)])
        assert found[0] == found[1], function.__name__


def test_values_that_a_try_statement_hides() -> None:
    @torch.compile
    def function(x: Any) -> Any:
        try:
            if x[0] > 0:
                raise ValueError
            return x + 1
        except ValueError:
            return x * 2
        finally:
            x.mul_(3)

    for first in (1.0, -1.0, 4.0):
        x = torch.tensor([first, 2.0])
        assert function(x).tolist() == ([2 * first, 4.0] if first > 0 else [first + 1, 3.0])
        assert x.tolist() == [3 * first, 6.0]


FACTOR = 2


def test_names_that_get_other_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    factors, calls, shift = [2.0], 0, 1

    class Settings:
        factor = 2

    def helper(x: Any) -> Any:
        return x * FACTOR

    def counted(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * calls

    def told(x: Any) -> Any:
        print("called")
        return x * 2

    listed = torch.compile(lambda x: x * factors[0])
    global_read = torch.compile(lambda x: helper(x) + shift)
    by_class = torch.compile(lambda x: x * Settings.factor)
    printing, counting = torch.compile(told), torch.compile(counted)
    ones = torch.ones(1)
    for n in range(2, 6):
        factors[0], Settings.factor, shift = float(n), n, n // 3
        monkeypatch.setitem(globals(), "FACTOR", n)
        assert listed(ones).item() == by_class(ones).item() == n
        assert global_read(ones).item() == n + n // 3
        assert counting(ones).item() == n - 1
        assert printing(ones).item() == 2
    assert capsys.readouterr().out == "called\n" * 4 and calls == 4
    assert len(global_read.graphs) == 1


def test_a_compiled_module_is_a_module() -> None:
    net = torch.nn.Linear(2, 1)
    assert next(iter(torch.compile(net).parameters())) is net.weight
    assert torch.compile(lambda x: [x * 2, {"a": x + 1}])(torch.ones(1))[1]["a"].item() == 2


def test_a_function_that_differentiates_inside_runs_as_plain_python() -> None:
    @torch.compile
    def penalty(x: Any) -> Any:
        v = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad((v * v).sum(), [v])
        return gradient.sum()

    assert [penalty(torch.tensor([1.0, 2.0])).item() for _ in range(2)] == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="matmul"):
        torch.compile(lambda x: x @ torch.ones(3))(torch.ones(2))
