"""Whole programs with one bug planted in a line each: training, loading, callbacks, gradients and states."""

from __future__ import annotations

import contextlib
import functools
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.utils import checkpoint
from twofold.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def rows() -> Any:
    return torch.tensor(X)


class Clip(torch.autograd.Function):
    """The gradient is wrong where the input is wide."""

    @staticmethod
    def forward(ctx: Any, x: Any, most: float) -> Any:
        ctx.save_for_backward(x)
        ctx.most = most
        return x.clamp(-most, most)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        inside = (x.abs() < ctx.most).float()
        return (g * inside)[:, :2], None  # bug of bug_custom_gradient_shape


def bug_custom_gradient_shape() -> Any:
    x = rows().requires_grad_()
    Clip.apply(x, 3.0).sum().backward()


def bug_custom_gradient_late_index() -> Any:
    class Pick(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            ctx.save_for_backward(x, k)
            return x[k]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, k = ctx.saved_tensors
            return torch.zeros_like(x).index_add(0, k + 1, g), None  # bug

    x = rows().requires_grad_()
    Pick.apply(x, torch.tensor([0, 1])).sum().backward()
    x.grad.tolist()


def bug_nan_of_normalised_rows() -> Any:
    def unit(v: Any) -> Any:
        return v / v.norm(dim=1, keepdim=True)  # bug

    table = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    with torch.detect_anomaly():
        (unit(table) @ torch.ones(2, 3)).sum().item()


def bug_nan_of_a_variance_of_one() -> Any:
    with torch.detect_anomaly():
        x = torch.tensor([[2.0]], requires_grad=True)
        spread = x.std(1)  # bug
        (spread * 2).sum().backward()


def bug_nan_backward_of_a_power() -> Any:
    base = torch.tensor([0.0, 2.0], requires_grad=True)
    exponent = torch.tensor([0.5, 0.5])
    with torch.detect_anomaly():
        y = base**exponent  # bug
        y.sum().backward()
        base.grad.tolist()


def bug_nan_backward_of_masked_log() -> Any:
    p = torch.tensor([0.0, 0.5], requires_grad=True)
    with torch.detect_anomaly():
        entropy = torch.where(p > 0, p * p.log(), torch.zeros(2))  # bug
        entropy.sum().backward()
        p.grad.tolist()


def bug_nan_in_a_hook() -> Any:
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    y = x * 2
    with torch.detect_anomaly():
        y.register_hook(lambda g: g / x.detach())  # bug
        y.sum().backward()
        x.grad.tolist()


def bug_nan_in_an_optimizer() -> Any:
    w = nn.Parameter(torch.zeros(2))
    w.grad = torch.tensor([0.0, 1.0])

    class Normalised(optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"lr": 0.1})

        def step(self, closure: Any = None) -> Any:
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(group["lr"] * p.grad / p.grad.abs())  # bug

    with torch.detect_anomaly():
        Normalised([w]).step()
        w.tolist()


def bug_optimizer_of_other_shape() -> Any:
    class Momentum(optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"lr": 0.1})

        def step(self, closure: Any = None) -> Any:
            for p in self.param_groups[0]["params"]:
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros(p.shape[0])
                state["velocity"] = state["velocity"] * 0.9 + p.grad  # bug
                p.data.add_(state["velocity"], alpha=-0.1)

    model = nn.Linear(3, 2)
    optimizer = Momentum(model.parameters())
    model(rows()).sum().backward()
    optimizer.step()


def bug_optimizer_of_a_restored_state() -> Any:
    small, large = nn.Linear(3, 2), nn.Linear(3, 4)
    first = optim.Adam(small.parameters())
    small(rows()).sum().backward()
    first.step()
    second = optim.Adam(large.parameters())
    second.load_state_dict(first.state_dict())
    large(rows()).sum().backward()
    second.step()  # bug


def bug_gradient_of_a_clipped_list() -> Any:
    model = nn.Linear(3, 2)
    model(rows()).sum().backward()
    norms = torch.stack([p.grad for p in model.parameters()])  # bug
    norms.norm()


def bug_pre_hook_of_a_block() -> Any:
    block = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def shift(module: Any, args: Any) -> Any:
        (x,) = args
        return (x - x.mean(1),)  # bug

    block[1].register_forward_pre_hook(shift)
    block(torch.ones(4, 3))


def bug_full_backward_hook() -> Any:
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))

    def scale(module: Any, inputs: Any, outputs: Any) -> Any:
        return (inputs[0] @ torch.ones(3, 3),)  # bug

    model[1].register_full_backward_hook(scale)
    model(rows()).sum().backward()


def bug_multi_grad_hook() -> Any:
    a, b = rows().requires_grad_(), rows().requires_grad_()

    def compare(gradients: Any) -> None:
        torch.dot(gradients[0], gradients[1])  # bug

    torch.autograd.graph.register_multi_grad_hook((a, b), compare)
    (a * b).sum().backward()


def bug_saved_tensor_hook() -> Any:
    x = rows().requires_grad_()

    def pack(t: Any) -> Any:
        return t.half().reshape(7)  # bug

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        (x * x).sum().backward()


def bug_checkpoint_of_a_late_index() -> Any:
    table = nn.Parameter(torch.ones(3, 2))

    def look_up(k: Any) -> Any:
        return F.embedding(k, table) * 2  # bug

    k = torch.tensor([0, 3])
    checkpoint.checkpoint(look_up, k, use_reentrant=False).sum().backward()
    table.grad.tolist()


class Windows(Dataset):
    def __init__(self, size: int) -> None:
        self.series, self.size = torch.arange(10.0), size

    def __len__(self) -> int:
        return 10 - self.size

    def __getitem__(self, k: int) -> Any:
        window = self.series[k : k + self.size]
        return window.reshape(2, 2), self.series[k + self.size]  # bug of bug_dataset_of_windows


def bug_dataset_of_windows() -> Any:
    for _ in DataLoader(Windows(5), batch_size=2):
        pass


def bug_dataset_read_late() -> Any:
    class Words(Dataset):
        def __init__(self) -> None:
            self.table = torch.eye(3)

        def __len__(self) -> int:
            return 4

        def __getitem__(self, k: int) -> Any:
            return self.table[torch.tensor(k)]  # bug

    for batch in DataLoader(Words(), batch_size=4):
        batch.sum().item()


def bug_stream_of_records() -> Any:
    class Stream(IterableDataset):
        def __iter__(self) -> Iterator[Any]:
            for width in (3, 3, 4):
                yield torch.ones(width)

    list(DataLoader(Stream(), batch_size=3))  # bug


def bug_collate_with_padding() -> Any:
    def pad(batch: Any) -> Any:
        longest = max(len(one) for one in batch)
        return torch.stack([torch.cat([one, torch.zeros(longest)]) for one in batch])  # bug

    data = [torch.ones(2), torch.ones(3)]
    list(DataLoader(data, batch_size=2, collate_fn=pad))


def bug_last_batch_is_smaller() -> Any:
    data = TensorDataset(torch.ones(5, 3), torch.ones(5))
    model, targets = nn.Linear(3, 1), torch.zeros(2)
    for x, _ in DataLoader(data, batch_size=2):
        loss = (model(x).squeeze(1) - targets).square().mean()
        weights = loss * torch.ones(2)
        (weights @ x.sum(1)).backward()  # bug


def bug_teacher_forcing() -> Any:
    cell, words = nn.GRUCell(3, 4), nn.Embedding(6, 3)
    h = torch.zeros(2, 4)
    for token in torch.tensor([[1, 2], [3, 6], [0, 1]]):
        embedded = words(token)  # bug
        h = cell(embedded, h)
    h.sum().item()


def bug_state_of_another_batch() -> Any:
    lstm = nn.LSTM(3, 4)
    state = None
    for size in (2, 2, 1):
        _, state = lstm(torch.ones(5, size, 3), state)  # bug


def bug_custom_cell() -> Any:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gates = nn.Linear(7, 12)

        def forward(self, x: Any, h: Any, c: Any) -> Any:
            i, f, o = self.gates(torch.cat([x, h], 1)).chunk(3, 1)
            c = f.sigmoid() * c + i.sigmoid() * torch.tanh(x)  # bug
            return o.sigmoid() * c.tanh(), c

    cell, h, c = Cell(), torch.zeros(2, 4), torch.zeros(2, 4)
    for x in torch.ones(2, 2, 3):
        h, c = cell(x, h, c)


def bug_beam_search() -> Any:
    scores, steps = torch.zeros(2), []
    table = torch.arange(12.0).reshape(3, 4)
    for _ in range(3):
        best = (scores[:, None] + table[:2]).reshape(-1).topk(2)
        scores, steps = best.values, [*steps, table[best.indices]]  # bug
    torch.stack(steps).sum().item()


def bug_critic_of_a_gan() -> Any:
    generator, critic = nn.Linear(2, 3), nn.Linear(4, 1)
    real, noise = torch.ones(5, 4), torch.randn(5, 2)
    scores = [critic(sample) for sample in (real, generator(noise).detach())]  # bug
    (scores[0] - scores[1]).mean().backward()


def bug_gradient_penalty() -> Any:
    critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    mixed = rows().requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed), mixed, create_graph=True)  # bug
    (slope.norm(2, 1) - 1).square().mean().backward()


def bug_reparameterisation() -> Any:
    encoder = nn.Linear(3, 4)
    mean, deviation = encoder(rows()).chunk(2, 1)
    code = mean + deviation.exp() * torch.randn(2, 3)  # bug
    code.sum().backward()


def bug_kl_of_shapes() -> Any:
    prior = torch.distributions.Normal(torch.zeros(4), torch.ones(4))
    posterior = torch.distributions.Normal(torch.zeros(2, 3), torch.ones(2, 3))
    torch.distributions.kl_divergence(posterior, prior).sum()  # bug


def bug_log_prob_of_support() -> Any:
    policy = torch.distributions.Categorical(logits=rows())
    actions = torch.tensor([0, 3])
    policy.log_prob(actions).sum().item()  # bug


def bug_running_average() -> Any:
    class Average:
        def __init__(self) -> None:
            self.value: Any = None

        def update(self, new: Any) -> None:
            self.value = new if self.value is None else 0.9 * self.value + 0.1 * new  # bug

    average = Average()
    for width in (3, 3, 2):
        average.update(torch.ones(width))


def bug_cached_keys() -> Any:
    @functools.cache
    def keys(length: int) -> Any:
        return torch.ones(1, length, 8)

    queries = torch.ones(1, 3, 8)
    for length in (3, 4):
        scores = queries @ keys(length).mT
        scores + torch.ones(3, 3)  # bug


def bug_in_a_thread_pool() -> Any:
    model = nn.Linear(3, 2)

    def serve(x: Any) -> Any:
        return model(x).tolist()  # bug

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(serve, [torch.ones(2, 3), torch.ones(2, 4)]))


def bug_in_a_timer() -> Any:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            torch.ones(2).index_select(0, torch.tensor([2])).item()  # bug
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise failed[0]


def bug_suppressed_and_raised_again() -> Any:
    def risky(x: Any) -> Any:
        return x.view(4)  # bug

    with contextlib.suppress(KeyError):
        try:
            risky(rows())
        except RuntimeError as error:
            raise error.with_traceback(error.__traceback__) from None


def bug_of_numpy_in_between() -> Any:
    x = rows()
    mask = numpy.array([True, False, True])
    x[:, torch.from_numpy(mask)] @ x.T  # bug


def bug_shuffled_labels() -> Any:
    random.seed(0)
    order = list(range(4))
    random.shuffle(order)
    scores = nn.Linear(3, 3)(rows().repeat(2, 1))
    loss = F.cross_entropy(scores, torch.tensor(order))  # bug
    loss.backward()
    loss.item()


def bug_compiled_with_other_labels() -> Any:
    @torch.compile
    def step(scores: Any, labels: Any) -> Any:
        return F.nll_loss(F.log_softmax(scores, 1), labels)  # bug

    for labels in ([0, 1], [2, 0], [1, 3]):
        step(rows(), torch.tensor(labels)).item()


def bug_compiled_module_of_a_module() -> Any:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x / x.sum(1)  # bug

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return self.inner(x) + 1

    model = torch.compile(Outer())
    model(torch.ones(3, 3))
    model(rows())


def bug_captured_state_of_a_closure() -> Any:
    def counter() -> Any:
        history: list[Any] = []

        @torch.compile
        def step(x: Any) -> Any:
            history.append(x)
            return torch.stack(history).sum()  # bug

        return step

    step = counter()
    step(torch.ones(2))
    step(torch.ones(3))


def bug_written_after_it_was_saved() -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors  # bug
            return 2 * g * x

    x = rows().requires_grad_()
    y = x * 1
    z = Square.apply(y)
    y.add_(1)
    z.sum().backward()


TASKS: list[Any] = [found for name, found in dict(globals()).items() if name.startswith("bug_")]
