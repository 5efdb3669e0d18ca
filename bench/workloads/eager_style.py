"""Define-by-run programs in PyTorch's style; the module to run them with is an argument."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy

from timing import Case
from workloads import inputs


def _tiny(torch: Any) -> list[Any]:
    return [torch.from_numpy(array).requires_grad_() for array in inputs.tiny()]


def record(torch: Any) -> Case:
    """``c = x * w`` on ten numbers that require a gradient; only the last result is read."""
    x, w, _ = _tiny(torch)

    def call() -> Any:
        for _ in range(inputs.LOOP):
            c = x * w
        return c.detach().numpy()

    return Case(call, inputs.LOOP, check=lambda: [float(call().sum())])


def record_deep(torch: Any) -> Case:
    """The same in the innermost of six functions."""
    plain = record(torch)

    def second() -> Any:
        return plain.call()

    def third() -> Any:
        return second()

    def fourth() -> Any:
        return third()

    def fifth() -> Any:
        return fourth()

    def sixth() -> Any:
        return fifth()

    return Case(sixth, plain.operations, check=plain.check)


def never_seen(torch: Any) -> Case:
    """A chain of 100 operations in an order not met before; its result is read."""
    x, w, b = _tiny(torch)
    operations: list[Callable[[Any], Any]] = [
        lambda c: c * w,
        lambda c: c + b,
        lambda c: torch.tanh(c),
        lambda c: c - b,
    ]
    endless = [operations[kind] for kind in inputs.recipes()]
    starts = itertools.count(0, inputs.SHIFT)

    def call() -> Any:
        start = next(starts)
        c = x
        for operation in endless[start : start + inputs.CHAIN]:
            c = operation(c)
        return c.detach().numpy()

    return Case(call, inputs.CHAIN, check=lambda: [float(call().sum())])


def chain(torch: Any, compile: Callable[[Any], Any]) -> Case:
    """100 element-wise operations on ten numbers, and their gradient; all results are read."""
    x, w, b = _tiny(torch)

    def loss(x: Any, w: Any, b: Any) -> Any:
        for _ in range(inputs.CHAIN // 4):
            x = torch.tanh(x * w + b) - b
        return x.sum()

    compiled = compile(loss)

    def call() -> list[Any]:
        x.grad = w.grad = b.grad = None
        value = compiled(x, w, b)
        value.backward()
        return [value.item(), x.grad.numpy(), w.grad.numpy(), b.grad.numpy()]

    return Case(call, check=lambda: [float(result.sum()) for result in map(numpy.asarray, call())])


def call_six(torch: Any, compile: Callable[[Any], Any]) -> Case:
    """A call of a compiled function of six small tensors, without a gradient; the result is read."""
    tensors = [torch.from_numpy(array) for array in inputs.six()]

    def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, r: Any) -> Any:
        return torch.relu(x @ w1 + b1) @ w2 + b2 + r

    compiled = compile(network)

    def call() -> Any:
        with torch.no_grad():
            return compiled(*tensors).numpy()

    return Case(call, check=lambda: [float(call().sum())])


def train(torch: Any, compile: Callable[[Any], Any], kind: str, size: int, **adam: Any) -> Case:
    """One step of training with Adam; the loss is read."""
    nn = torch.nn
    widths = inputs.WIDTHS[kind]
    linear = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    model = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2])
    with torch.no_grad():
        for parameter, array in zip(model.parameters(), inputs.network(kind)):
            parameter.copy_(torch.from_numpy(array))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=inputs.LEARNING_RATE, **adam)
    forward = compile(lambda x, y: criterion(model(x), y))
    pairs = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in inputs.batches(kind, size)]
    steps = itertools.cycle(pairs)

    def call() -> float:
        x, y = next(steps)
        optimizer.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Case(call, check=lambda: [call() for _ in range(5)])


def case(workload: str, torch: Any, compile: Callable[[Any], Any] | None, **adam: Any) -> Case | None:
    """The named workload, or None where it has no meaning; ``compile`` None means plain define-by-run."""
    plain = compile is None
    if workload == "record":
        return record(torch) if plain else None
    if workload == "record_deep":
        return record_deep(torch) if plain else None
    if workload == "never_seen":
        return never_seen(torch) if plain else None
    wrap = (lambda function: function) if compile is None else compile
    if workload == "chain":
        return chain(torch, wrap)
    if workload == "call_six":
        return call_six(torch, wrap)
    if workload.startswith("train"):
        _, kind, size = workload.split("_")
        return train(torch, wrap, kind, int(size), **adam)
    return None
