"""Memory that processes share: what one of them writes in place, the others read."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
from twofold import nn
from twofold.errors import ArgumentError


def in_a_process(function: Any, *args: Any) -> None:
    process = torch.multiprocessing.get_context("fork").Process(target=function, args=args)
    process.start()
    process.join(120)
    assert process.exitcode == 0


def test_a_process_writes_what_another_reads() -> None:
    x = torch.arange(3.0).share_memory_()
    in_a_process(lambda: x.add_(10))
    assert x.tolist() == [10.0, 11.0, 12.0]


def test_a_tensor_that_is_not_shared_stays() -> None:
    x = torch.arange(3.0)
    in_a_process(lambda: x.add_(10).tolist())
    assert x.tolist() == [0.0, 1.0, 2.0] and not x.is_shared()


def test_a_shared_model_is_trained_by_another_process() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).share_memory()
    assert all(parameter.is_shared() for parameter in model.parameters())
    before = [parameter.detach().clone() for parameter in model.parameters()]

    def train() -> None:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 2)).square().sum().backward()
            optimizer.step()

    in_a_process(train)
    changed = [
        not torch.equal(a, b) for a, b in zip(before, [p.detach() for p in model.parameters()], strict=True)
    ]
    assert any(changed) and model[1].num_batches_tracked.item() == 3


def test_gradients_go_to_a_shared_model_under_their_older_name() -> None:
    """As programs with many actors do: the gradients of a copy are put in ``_grad`` of the shared parameters."""
    shared, local = nn.Linear(2, 1).share_memory(), nn.Linear(2, 1)
    local.load_state_dict(shared.state_dict())
    local(torch.ones(1, 2)).sum().backward()
    for a, b in zip(local.parameters(), shared.parameters(), strict=True):
        b._grad = a.grad
    assert shared.bias.grad is not None and shared.bias.grad.tolist() == [1.0]
    bias = shared.bias.item()
    torch.optim.SGD(shared.parameters(), lr=0.5).step()
    assert shared.bias.item() == pytest.approx(bias - 0.5)


def test_views_and_types_without_arrays_are_refused() -> None:
    x = torch.ones(4)
    with pytest.raises(ArgumentError, match="view"):
        x[1:].share_memory_()
    with pytest.raises(ArgumentError, match="bfloat16"):
        torch.ones(2, dtype=torch.bfloat16).share_memory_()


def test_processes_are_spawned_and_joined() -> None:
    found = [torch.zeros(1).share_memory_() for _ in range(3)]

    def fill(rank: int, offset: int) -> None:
        found[rank].fill_(rank + offset)

    torch.multiprocessing.start_processes(fill, (5,), nprocs=3, start_method="fork")
    assert [x.item() for x in found] == [5.0, 6.0, 7.0]

    def fail(rank: int) -> None:
        raise SystemExit(rank)

    with pytest.raises(RuntimeError, match="process 1"):
        torch.multiprocessing.start_processes(fail, (), nprocs=2, start_method="fork")


def add_in_place(x: Any, part: Any, model: Any) -> None:
    assert x.is_shared() and part.is_shared() and model.weight.is_shared()
    with torch.no_grad():
        x.add_(10)
        model.weight.fill_(3)
        model.bias.fill_(4)
    assert part.tolist() == [11.0, 12.0] and model.weight.requires_grad


def test_a_spawned_process_writes_what_its_parent_reads() -> None:
    x, model = torch.arange(3.0).share_memory_(), nn.Linear(2, 1).share_memory()
    before = x.clone()
    process = torch.multiprocessing.get_context("spawn").Process(target=add_in_place, args=(x, x[1:], model))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert x.tolist() == [10.0, 11.0, 12.0] and before.tolist() == [0.0, 1.0, 2.0]
    assert model.weight.tolist() == [[3.0, 3.0]] and model.bias.tolist() == [4.0]


def send(queue: Any) -> None:
    x = torch.arange(2.0).share_memory_()
    queue.put(x)
    queue.put(torch.ones(2))
    while x[0].item() == 0:
        pass
    queue.put(x.tolist())


def test_a_shared_tensor_is_one_on_both_sides_of_a_queue() -> None:
    context = torch.multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=send, args=(queue,))
    process.start()
    x, copied = queue.get(timeout=120), queue.get(timeout=120)
    assert x.is_shared() and not copied.is_shared()
    x.fill_(5)
    x.tolist()
    assert queue.get(timeout=120) == [5.0, 5.0]
    process.join(120)
