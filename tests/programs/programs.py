"""Short programs as users of PyTorch write them; each takes the library and gives numbers."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy


def even(torch: Any, module: Any) -> Any:
    """The same weights in either library."""
    for index, param in enumerate(module.parameters()):
        values = numpy.sin(numpy.arange(param.numel()) * 1.7 + index).astype(numpy.float32) * 0.4
        param.data.copy_(torch.from_numpy(values).view(*param.shape))
    return module


def points(torch: Any, *shape: int) -> Any:
    """The same numbers in either library."""
    return torch.from_numpy(numpy.random.default_rng(7).normal(size=shape).astype(numpy.float32))


def sine_by_lbfgs(torch: Any) -> list[float]:
    x = torch.linspace(-3, 3, 40).unsqueeze(1)
    model = even(torch, torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), torch.sin(x))
        loss.backward()
        return loss

    for _ in range(3):
        losses.append(optimizer.step(closure).item())
    return losses


def one_cycle(torch: Any) -> list[float]:
    data, labels = points(torch, 32, 4), (points(torch, 32, 4).sum(1) > 0).long()
    model = even(torch, torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, epochs=3, steps_per_epoch=4)
    found = []
    for _ in range(3):
        for start in range(0, 32, 8):
            optimizer.zero_grad()
            loss = torch.nn.CrossEntropyLoss()(model(data[start : start + 8]), labels[start : start + 8])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        found += [loss.item(), schedule.get_last_lr()[0]]
    return found


def averaged_weights(torch: Any) -> list[float]:
    model = even(
        torch, torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    )
    batches = [(part, part.sum(1, keepdim=True)) for part in points(torch, 24, 3).split(6)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    utils = torch.optim.swa_utils
    averaged, schedule = utils.AveragedModel(model), utils.SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
    moving = utils.AveragedModel(model, multi_avg_fn=utils.get_ema_multi_avg_fn(0.9))
    for _ in range(4):
        for x, y in batches:
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
            moving.update_parameters(model)
        averaged.update_parameters(model)
        schedule.step()
    utils.update_bn(batches, averaged)
    averaged.eval()
    with torch.no_grad():
        shown = averaged(batches[0][0])[:2, 0].tolist()
    return [*shown, moving.module[0].weight.sum().item(), averaged.module[1].running_mean.sum().item()]


def groups_and_chained_schedules(torch: Any) -> list[float]:
    model = even(torch, torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)))
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters()}]
    optimizer = torch.optim.NAdam(groups, lr=0.01, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler
    chain = scheduler.ChainedScheduler(
        [scheduler.LinearLR(optimizer, 0.5, total_iters=3), scheduler.ExponentialLR(optimizer, 0.9)]
    )
    x = points(torch, 10, 3)
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        chain.step()
    return [loss.item(), *chain.get_last_lr()]


def two_players(torch: Any) -> list[float]:
    nn = torch.nn
    maker = even(torch, nn.Sequential(nn.Linear(2, 6), nn.LeakyReLU(0.2), nn.Linear(6, 2)))
    judge = even(torch, nn.Sequential(nn.Linear(2, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1)))
    first = torch.optim.RAdam(maker.parameters(), lr=0.02, betas=(0.5, 0.9))
    second = torch.optim.Adamax(judge.parameters(), lr=0.02)
    measure, noise, real = nn.BCEWithLogitsLoss(), points(torch, 16, 2), points(torch, 16, 2) * 0.5 + 2
    for _ in range(8):
        fake = maker(noise)
        second.zero_grad()
        judged = measure(judge(real), torch.ones(16, 1)) + measure(judge(fake.detach()), torch.zeros(16, 1))
        judged.backward()
        second.step()
        first.zero_grad()
        fooled = measure(judge(fake), torch.ones(16, 1))
        fooled.backward()
        first.step()
    return [judged.item(), fooled.item(), fake.mean().item()]


def gradient_penalty(torch: Any) -> list[float]:
    critic = even(
        torch, torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Softplus(), torch.nn.Linear(5, 1))
    )
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    found = []
    for _ in range(3):
        x = points(torch, 6, 3).requires_grad_()
        (slope,) = torch.autograd.grad(
            outputs=critic(x), inputs=x, grad_outputs=torch.ones(6, 1), create_graph=True, retain_graph=True
        )
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        found.append(penalty.item())
    return found


def logistic_regression_by_rprop(torch: Any) -> list[float]:
    x = points(torch, 30, 2)
    y = (x[:, 0] - 0.5 * x[:, 1] > 0).float()
    weight, bias = torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Rprop([weight, bias], lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ weight + bias, y)
        loss.backward()
        optimizer.step()
    right = ((x @ weight + bias > 0).float() == y).float().mean()
    return [loss.item(), right.item()]


def matrix_by_adafactor(torch: Any) -> list[float]:
    target = points(torch, 6, 2) @ points(torch, 2, 5)
    left = torch.nn.Parameter(torch.full((6, 2), 0.3) + torch.arange(12.0).view(6, 2) / 30)
    right = torch.nn.Parameter(torch.full((2, 5), 0.3) - torch.arange(10.0).view(2, 5) / 30)
    optimizer = torch.optim.Adafactor([left, right], lr=0.1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (left @ right - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[::10]


def one_hot_recurrent(torch: Any) -> list[float]:
    letters = "hello"
    seen = sorted(set(letters))
    inputs = torch.Tensor([[float(one == letter) for one in seen] for letter in letters]).unsqueeze(0)
    targets = torch.LongTensor([seen.index(letter) for letter in letters[1:]])
    model, head = even(torch, torch.nn.RNN(4, 5, batch_first=True)), even(torch, torch.nn.Linear(5, 4))
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.1)
    for _ in range(20):
        outputs, _ = model(inputs[:, :-1], torch.zeros(1, 1, 5))
        loss = torch.nn.functional.cross_entropy(head(outputs).view(-1, 4), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [loss.item(), *head(outputs).argmax(2).view(-1).tolist()]


def plateau(torch: Any) -> list[float]:
    w = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = torch.optim.SGD([w], lr=0.9)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    rates = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (w.abs() + 1).sum()
        loss.backward()
        optimizer.step()
        schedule.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    return [*rates[::3], w.item()]


def accumulated_gradients(torch: Any) -> list[float]:
    model = even(torch, torch.nn.Linear(4, 1))
    optimizer = torch.optim.ASGD(model.parameters(), lr=0.05, t0=2, lambd=0.01)
    data = points(torch, 24, 4)
    for step, part in enumerate(data.chunk(6)):
        (torch.nn.functional.smooth_l1_loss(model(part), part[:, :1] * 2) / 3).backward()
        if step % 3 == 2:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return [float(norm), model.weight.sum().item(), math.copysign(1, model.bias.item())]


def resumed(torch: Any) -> list[float]:
    def fresh() -> Any:
        model = even(
            torch, torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        )
        optimizer = torch.optim.NAdam(model.parameters(), lr=0.05)
        return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

    def train(model: Any, optimizer: Any, schedule: Any, steps: int) -> float:
        x = points(torch, 8, 3)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
            schedule.step()
        return float(loss.item())

    whole, parts = fresh(), fresh()
    first, _ = train(*whole, 6), train(*parts, 3)
    file = io.BytesIO()
    names = ("model", "optimizer", "schedule")
    torch.save({name: part.state_dict() for name, part in zip(names, parts)}, file)
    file.seek(0)
    states, again = torch.load(file, weights_only=True), fresh()
    for name, part in zip(names, again):
        part.load_state_dict(states[name])
    return [first, train(*again, 3), again[2].get_last_lr()[0]]


def renamed_and_partial_states(torch: Any) -> list[float]:
    old = even(torch, torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)))
    state = {key.replace("0.", "features."): value for key, value in old.state_dict().items()}

    class Renamed(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.features = torch.nn.Linear(2, 3)
            self.head = torch.nn.Linear(3, 1)

    model = Renamed()
    found = model.load_state_dict(state, strict=False)
    return [len(found.missing_keys), len(found.unexpected_keys), model.features.weight.sum().item()]


def shared_memory_of_a_file(torch: Any) -> list[float]:
    table = torch.arange(12.0).reshape(3, 4)
    file = io.BytesIO()
    torch.save({"table": table, "row": table[1], "column": table[:, 2], "turned": table.t()}, file)
    found = torch.load(io.BytesIO(file.getvalue()))
    found["table"][1, 2] = 100.0
    found["row"].mul_(2)
    return [*found["column"].tolist(), *found["turned"][:, 1].tolist()]


class Settings:
    """A class of the program's own in a checkpoint."""

    def __init__(self, width: int) -> None:
        self.width = width


def declared_classes(torch: Any) -> list[float]:
    file = io.BytesIO()
    torch.save({"settings": Settings(7), "weights": torch.ones(2)}, file)
    try:
        torch.load(io.BytesIO(file.getvalue()))
        refused = 0.0
    except Exception:
        refused = 1.0
    with torch.serialization.safe_globals([Settings]):
        found = torch.load(io.BytesIO(file.getvalue()))
    return [
        refused,
        found["settings"].width,
        found["weights"].sum().item(),
        float(Settings in torch.serialization.get_safe_globals()),
    ]


def padded_sequences(torch: Any) -> list[float]:
    rnn = torch.nn.utils.rnn

    class Words(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            return torch.arange(1, index % 4 + 2), index % 2

    def collate(batch: Any) -> Any:
        batch = sorted(batch, key=lambda pair: -len(pair[0]))
        sequences, labels = zip(*batch)
        lengths = torch.tensor([len(one) for one in sequences])
        return rnn.pad_sequence(sequences, batch_first=True), lengths, torch.tensor(labels)

    embed, model = (
        even(torch, torch.nn.Embedding(6, 3, padding_idx=0)),
        even(torch, torch.nn.GRU(3, 4, batch_first=True)),
    )
    found = []
    for words, lengths, labels in torch.utils.data.DataLoader(Words(), batch_size=3, collate_fn=collate):
        packed = rnn.pack_padded_sequence(embed(words), lengths, batch_first=True)
        outputs, last = model(packed)
        unpacked, sizes = rnn.pad_packed_sequence(outputs, batch_first=True)
        found += [last.sum().item(), unpacked.sum().item(), sizes.sum().item(), labels.sum().item()]
    return found


def endless_samples(torch: Any) -> list[float]:
    data = torch.utils.data.TensorDataset(torch.arange(10.0))
    sampler = torch.utils.data.RandomSampler(data, replacement=True, num_samples=int(1e10))
    batches = iter(torch.utils.data.DataLoader(data, sampler=sampler, batch_size=16))
    seen = torch.cat([next(batches)[0] for _ in range(20)])
    shares = [torch.utils.data.DistributedSampler(data, 3, rank, shuffle=False) for rank in range(3)]
    return [len(sampler), len(seen), len(seen.unique()), *(sum(share) for share in shares)]


def own_function(torch: Any) -> list[float]:
    class Clipped(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, limit: float) -> Any:
            ctx.save_for_backward(x)
            ctx.limit = limit
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (x,) = ctx.saved_tensors
            return gradient * (x.abs() < ctx.limit).float() * 2, None

    x = torch.tensor([-2.0, 0.5, 3.0, 0.1], requires_grad=True)
    y = Clipped.apply(x, 1.0)
    (y * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    return [*y.tolist(), *x.grad.tolist()]


def features_by_hooks(torch: Any) -> list[float]:
    model = even(
        torch,
        torch.nn.Sequential(
            torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 2)
        ),
    )
    kept: dict[str, Any] = {}
    handles = [
        child.register_forward_hook(
            lambda module, given, made, name=name: kept.__setitem__(name, made.detach())
        )
        for name, child in model.named_children()
    ]
    out = model(points(torch, 1, 1, 4, 4))
    for handle in handles:
        handle.remove()
    model(points(torch, 1, 1, 4, 4) * 2)
    return [*out[0].tolist(), kept["1"].sum().item(), len(kept), len(list(model.modules()))]


def masked_transformer(torch: Any) -> list[float]:
    layer = even(torch, torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True))
    x = points(torch, 2, 5, 8)
    mask = torch.triu(torch.ones(5, 5), diagonal=1).bool()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    out = layer(x, src_mask=mask, src_key_padding_mask=padding)
    loss = out[0].square().mean() + out[1, :3].square().mean()
    loss.backward()
    return [loss.item(), layer.linear1.weight.grad.abs().sum().item()]


def compared(torch: Any) -> list[float]:
    close = torch.testing.assert_close
    close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-6]))
    caught = 0
    for wrong in ((torch.ones(2), torch.ones(3)), (torch.ones(2), torch.ones(2).double()), ([1, 2], [1, 3])):
        try:
            close(*wrong)
        except AssertionError:
            caught += 1
    array = numpy.arange(4.0)
    shared = torch.utils.dlpack.from_dlpack(array)
    return [caught, shared.sum().item(), float(numpy.from_dlpack(torch.arange(3.0)).sum())]


PROGRAMS = [
    sine_by_lbfgs,
    one_cycle,
    averaged_weights,
    groups_and_chained_schedules,
    two_players,
    gradient_penalty,
    logistic_regression_by_rprop,
    matrix_by_adafactor,
    one_hot_recurrent,
    plateau,
    accumulated_gradients,
    resumed,
    renamed_and_partial_states,
    shared_memory_of_a_file,
    declared_classes,
    padded_sequences,
    endless_samples,
    own_function,
    features_by_hooks,
    masked_transformer,
    compared,
]
