"""Training programs with one bug planted in a line each: data, hooks, optimizers, schedules, states, gradients."""

from __future__ import annotations

import contextvars
import itertools
from collections.abc import Iterator
from typing import Any

import numpy

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.nn.utils import parametrize
from twofold.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset


def rows() -> Any:
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def stepped_network() -> tuple[nn.Module, Any]:
    net = nn.Linear(3, 2)
    return net, optim.SGD(net.parameters(), lr=0.1)


def bug_pre_hook_result() -> Any:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    net[1].register_forward_pre_hook(lambda module, given: given[0][:, :2])
    net(rows())  # bug


def bug_forward_hook_late() -> Any:
    def picked(module: Any, given: Any, result: Any) -> Any:
        return result[torch.tensor([0, 4])]  # bug

    net = nn.Linear(3, 2)
    net.register_forward_hook(picked)
    net(rows()).sum().item()


def bug_full_backward_hook() -> Any:
    def scaled(module: Any, inward: Any, outward: Any) -> Any:
        return (inward[0] @ torch.ones(2),)  # bug

    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    net[1].register_full_backward_hook(scaled)
    net(rows()).sum().backward()


def bug_gradient_accumulated() -> Any:
    def clipped(parameter: Any) -> None:
        parameter.grad.mul_(torch.ones(4))  # bug

    weight = nn.Parameter(torch.ones(3))
    weight.register_post_accumulate_grad_hook(clipped)
    (rows() * weight).sum().backward()


def bug_saved_tensors() -> Any:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors  # bug
            return g * b, g * a

    x = rows().requires_grad_()
    Product.apply(x, rows()).sum().backward()


def bug_custom_gradient_dtype() -> Any:
    class Masked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mask = x > 2
            return x * ctx.mask

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g - ctx.mask.bool() @ g  # bug

    Masked.apply(rows().requires_grad_()).sum().backward()


def bug_nan_of_a_mean() -> Any:
    x = rows().requires_grad_()
    with torch.detect_anomaly():
        kept = x[x > 9]
        loss = kept.mean()  # bug
        loss.backward()
        loss.item()


def bug_nan_of_a_distance() -> Any:
    points = torch.zeros(2, 3, requires_grad=True)
    with torch.detect_anomaly():
        apart = points.unsqueeze(0) - points.unsqueeze(1)
        length = apart.square().sum(2).sqrt()  # bug
        length.sum().backward()
        points.grad.tolist()  # type: ignore[union-attr]


def bug_nan_of_a_power() -> Any:
    x = torch.tensor([-1.0, 2.0])
    with torch.detect_anomaly():
        scale = [torch.pow(x, k / 2) for k in range(2)]  # bug
        sum(scale).tolist()  # type: ignore[union-attr, attr-defined]


def bug_nan_in_a_dataset() -> Any:
    class Standardised(Dataset):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, k: int) -> Any:
            row = rows()[k] * k
            return (row - row.mean()) / row.std()  # bug

    with torch.detect_anomaly():
        for batch in DataLoader(Standardised(), batch_size=2):
            batch.sum().item()


def bug_inf_of_a_schedule() -> Any:
    net, optimizer = stepped_network()
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (2 - epoch))  # bug
    for _ in range(3):
        net(rows()).sum().backward()
        optimizer.step()
        schedule.step()


def bug_schedule_of_a_list() -> Any:
    _, optimizer = stepped_network()
    optim.lr_scheduler.LambdaLR(optimizer, [lambda epoch: 0.5, lambda epoch: 0.1])  # bug


def bug_sequential_schedules() -> Any:
    _, optimizer = stepped_network()
    parts = [optim.lr_scheduler.ConstantLR(optimizer), optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]
    optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[3, 5])  # bug


def bug_optimizer_of_a_group() -> Any:
    net, _ = stepped_network()
    groups = [{"params": net.weight, "lr": 0.1}, {"params": [net.weight, net.bias]}]  # type: ignore[union-attr]
    optim.SGD(groups, lr=0.01)  # bug


def bug_step_of_other_gradients() -> Any:
    net, optimizer = stepped_network()
    net(rows()).sum().backward()
    for parameter in net.parameters():
        parameter.grad = parameter.grad.sum(0)  # type: ignore[union-attr]  # bug
    optimizer.step()


def bug_closure_of_a_step() -> Any:
    net = nn.Linear(3, 2)
    optimizer = optim.LBFGS(net.parameters(), max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(net(rows()), torch.zeros(2, 2), reduction="none")
        loss.backward()  # bug
        return loss

    optimizer.step(closure)


def bug_state_of_an_inner_module() -> Any:
    class Wrapped(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, size), nn.BatchNorm1d(size))

    Wrapped(4).load_state_dict(Wrapped(6).state_dict())  # bug


def bug_state_of_a_buffer() -> Any:
    net = nn.BatchNorm1d(3)
    state = {name: value[..., None] if value.ndim else value for name, value in net.state_dict().items()}
    net.load_state_dict(state)  # bug


def bug_optimizer_state_groups() -> Any:
    net, optimizer = stepped_network()
    other = optim.SGD([{"params": [one]} for one in net.parameters()], lr=0.1)
    other.load_state_dict(optimizer.state_dict())  # bug


def bug_parametrization() -> Any:
    class Symmetric(nn.Module):
        def forward(self, w: Any) -> Any:
            return w + w.T  # bug

    parametrize.register_parametrization(nn.Linear(3, 2), "weight", Symmetric())


def bug_transformed_data() -> Any:
    class Cropped(Dataset):
        def __init__(self, transform: Any) -> None:
            self.transform = transform

        def __len__(self) -> int:
            return 3

        def __getitem__(self, k: int) -> Any:
            return self.transform(torch.arange(12.0).reshape(3, 4)[k])

    data = Cropped(lambda row: row.reshape(2, 3))  # bug
    next(iter(DataLoader(data)))


def bug_iterable_data() -> Any:
    class Stream(IterableDataset):
        def __iter__(self) -> Iterator[Any]:
            for k in itertools.count(1):
                yield torch.ones(k, 2) @ torch.ones(k, 2)  # bug

    for batch in DataLoader(Stream()):
        batch.sum().item()


def bug_batch_sampler() -> Any:
    data = TensorDataset(torch.ones(4, 2))
    for (batch,) in DataLoader(data, batch_sampler=BatchSampler([0, 3, 4], 2, False)):  # bug
        batch.sum().item()


def bug_collated_labels() -> Any:
    def collate(items: Any) -> Any:
        xs, labels = zip(*items)
        return torch.stack(xs), F.one_hot(torch.stack(labels), 3)  # bug

    pairs = [(torch.ones(2), torch.tensor(k)) for k in range(4)]
    for x, labels in DataLoader(pairs, batch_size=4, collate_fn=collate):
        (x.sum() + labels.sum()).item()


def bug_numpy_in_a_transform() -> Any:
    def standardised(row: Any) -> Any:
        return torch.from_numpy(numpy.dot(row.numpy(), numpy.ones(4, "float32")))  # bug

    torch.stack(list(map(standardised, rows())))


def bug_captured_size() -> Any:
    size = {"rows": 2}

    @torch.compile
    def shaped(x: Any) -> Any:
        return x.reshape(size["rows"], 3)  # bug

    shaped(rows())
    size["rows"] = 4
    shaped(torch.ones(3, 3))


def bug_compiled_third_call() -> Any:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = torch.zeros(2, 3)

        def forward(self, x: Any) -> Any:
            self.state = self.state * 0.5 + x  # bug
            return self.state.sum()

    cell = torch.compile(Cell())
    for size in (2, 2, 3):
        cell(torch.ones(size, 3)).item()


def bug_context_variable() -> Any:
    scale: contextvars.ContextVar[Any] = contextvars.ContextVar("scale")
    scale.set(torch.ones(3))

    def scaled(x: Any) -> Any:
        return x * scale.get()  # bug

    scaled(rows())
    contextvars.copy_context().run(lambda: (scale.set(torch.ones(2)), scaled(rows())))


def bug_iterator_with_an_end() -> Any:
    state = [rows()]

    def grown() -> int:
        state[0] = torch.cat([state[0], state[0].T], 0)  # bug
        return len(state[0])

    list(iter(grown, 8))


def bug_gradient_penalty() -> Any:
    x = rows().requires_grad_()
    net = nn.Linear(3, 1)
    (g,) = torch.autograd.grad(net(x).sum(), x)
    penalty = (g.norm(dim=1) - 1).square().mean()
    penalty.backward()  # bug


def bug_gradient_of_a_row() -> Any:
    x = rows().requires_grad_()
    row = x[0]
    torch.autograd.grad((row * 2).sum(), [x, row.detach()])  # bug


def bug_clipped_generator() -> Any:
    net, optimizer = stepped_network()
    net(rows()).sum().backward()
    nn.utils.clip_grad_norm_((one.data for one in net.parameters() if one.ndim > 1), "two")  # type: ignore[arg-type]  # bug
    optimizer.step()


def bug_averaged_weights() -> Any:
    first, second = nn.Linear(3, 2), nn.Linear(3, 4)
    states = [first.state_dict(), second.state_dict()]
    mean = {name: sum(one[name] for one in states) / 2 for name in states[0]}  # bug
    first.load_state_dict(mean)


STEPS = [one for name, one in list(globals().items()) if name.startswith("bug_")]
