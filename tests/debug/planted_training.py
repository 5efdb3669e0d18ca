"""Training, loading and looking for NaN, with one bug planted in a line each."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.utils.data import DataLoader, Dataset, IterableDataset

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def tensor() -> Any:
    return torch.tensor(X)


def wrong_parameter_hook() -> Any:
    m = nn.Linear(3, 2)

    def hook(g: Any) -> Any:
        return g @ torch.ones(4, 2)  # bug

    m.weight.register_hook(hook)
    m(tensor()).sum().backward()


def wrong_accumulate_hook() -> Any:
    m = nn.Linear(3, 2)

    def hook(p: Any) -> None:
        p.grad = p.grad.reshape(5)  # bug

    m.weight.register_post_accumulate_grad_hook(hook)
    m(tensor()).sum().backward()


def wrong_hook_late() -> Any:
    x = tensor().requires_grad_()
    y = x * 2
    y.register_hook(lambda g: g.index_select(1, torch.tensor([0, 1, 5])))  # bug
    y.sum().backward()
    x.grad.tolist()


def wrong_hook_module_deep() -> Any:
    inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def hook(module: Any, args: Any, out: Any) -> Any:
        return out.gather(1, torch.tensor([[7], [0]]))  # bug

    inner[1].register_forward_hook(hook)
    nn.Sequential(nn.Linear(3, 3), inner)(tensor()).sum().item()


def wrong_custom_backward_late() -> Any:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * x.index_select(1, torch.tensor([0, 1, 8]))  # bug

    x = tensor().requires_grad_()
    Scale.apply(x).sum().backward()
    x.grad.tolist()


def wrong_custom_in_module() -> Any:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g * w, (g * x).sum(0) @ torch.ones(2)  # bug

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x: Any) -> Any:
            return Scale.apply(x, self.w)

    nn.Sequential(nn.Linear(3, 3), Scaled())(tensor()).sum().backward()


def wrong_custom_setup() -> Any:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            inputs[1].detach()  # bug

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Scale.apply(tensor().requires_grad_()).sum().backward()


def wrong_nan_scale() -> Any:
    def normalised(v: Any) -> Any:
        return v / v.norm()  # bug

    with torch.detect_anomaly():
        w = torch.zeros(3, requires_grad=True)
        loss = (normalised(w) ** 2).sum()
        loss.backward()


def wrong_nan_softmax() -> Any:
    def attend(scores: Any, mask: Any) -> Any:
        hidden = scores.masked_fill(mask, -torch.inf)
        return torch.softmax(hidden, -1)  # bug

    with torch.detect_anomaly():
        attend(tensor(), torch.tensor([[True, True, True], [False, False, True]])).sum().item()


def wrong_nan_exp() -> Any:
    with torch.detect_anomaly():
        x = tensor() * 50
        y = x.exp()  # bug
        (y / y.sum()).tolist()


def wrong_nan_loop() -> Any:
    def body(k: Any, h: Any) -> Any:
        return k + 1, torch.log(h - 1)  # bug

    with torch.detect_anomaly():
        torch.while_loop(lambda k, h: k < 3, body, (torch.tensor(0), torch.tensor(3.0)))[1].item()


def wrong_nan_scan() -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = carry / row.sum()  # bug
        return carry, carry

    with torch.detect_anomaly():
        torch.scan(step, torch.tensor(1.0), torch.tensor([[1.0, 1.0], [1.0, -1.0]]))[0].item()


def wrong_nan_vmap() -> Any:
    def one(v: Any) -> Any:
        s = torch.sqrt(v - 2)  # bug
        return s.sum()

    with torch.detect_anomaly():
        torch.vmap(one)(tensor()).tolist()


def wrong_nan_compiled() -> Any:
    @torch.compile
    def f(x: Any) -> Any:
        y = x - 1
        z = torch.log(y)  # bug
        return z * 2 + 1

    with torch.detect_anomaly():
        f(tensor()).tolist()


def wrong_nan_lstm() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4)

        def forward(self, x: Any) -> Any:
            out, _ = self.lstm(x)
            return torch.acos(out + 1.5)  # bug

    with torch.detect_anomaly():
        Net()(tensor().reshape(2, 1, 3)).sum().item()


def wrong_nan_optimizer() -> Any:
    w = torch.ones(3, requires_grad=True)
    o = optim.SGD([w], lr=1e38)
    with torch.detect_anomaly():
        (w * 100).sum().backward()
        o.step()  # bug
        w.tolist()


def wrong_nan_custom() -> Any:
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g / (2 * x.sqrt())  # bug

    with torch.detect_anomaly():
        x = torch.zeros(2, requires_grad=True)
        Root.apply(x).sum().backward()
        x.grad.tolist()


def wrong_nan_where() -> Any:
    def safe(x: Any) -> Any:
        return torch.where(x > 0, torch.sqrt(x), 0.0)  # bug

    with torch.autograd.set_detect_anomaly(True):
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        (safe(x) * 3).sum().backward()


def wrong_iterable() -> Any:
    class Stream(IterableDataset):
        def __iter__(self) -> Any:
            for k in range(4):
                yield torch.ones(3)[k]  # bug

    for _ in DataLoader(Stream(), batch_size=2):
        pass


def wrong_worker() -> Any:
    class Data(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return {"x": torch.ones(2)}["y"]  # bug

    for _ in DataLoader(Data(), batch_size=2, num_workers=1):
        pass


def wrong_transform() -> Any:
    def crop(image: Any) -> Any:
        return image[:, 2:4].reshape(2, 2)  # bug

    class Data(Dataset):
        def __init__(self, transform: Any) -> None:
            self.transform = transform

        def __len__(self) -> Any:
            return 2

        def __getitem__(self, k: Any) -> Any:
            return self.transform(tensor())

    next(iter(DataLoader(Data(crop))))


def wrong_subset() -> Any:
    part = torch.utils.data.Subset([1, 2, 3], [0, 5])
    part[1]  # bug


def wrong_group() -> Any:
    m = nn.Linear(3, 2)
    o = optim.SGD([m.weight], lr=0.1)
    o.add_param_group({"params": m.weight})  # bug


def wrong_group_key() -> Any:
    m = nn.Linear(3, 2)
    optim.Adam([{"parameters": m.weight}])  # bug


def wrong_one_cycle() -> Any:
    o = optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1)
    optim.lr_scheduler.OneCycleLR(o, max_lr=0.1)  # bug


def wrong_milestones() -> Any:
    o = optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1)
    s = optim.lr_scheduler.SequentialLR(  # bug
        o, [optim.lr_scheduler.StepLR(o, 1)], milestones=[1, 2]
    )
    s.step()


def wrong_plateau() -> Any:
    o = optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1)
    s = optim.lr_scheduler.ReduceLROnPlateau(o)
    s.step()  # bug


def wrong_state_other() -> Any:
    a, b = nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    o = optim.Adam(a.parameters())
    a(tensor()).sum().backward()
    o.step()
    optim.Adam(b.parameters()).load_state_dict(o.state_dict())  # bug


def wrong_nesterov() -> Any:
    optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1, nesterov=True)  # bug


def wrong_sparse_adam() -> Any:
    m = nn.Linear(3, 2)
    o = optim.SparseAdam(list(m.parameters()))
    m(tensor()).sum().backward()
    o.step()  # bug


def wrong_scaler() -> Any:
    s = torch.amp.GradScaler("cpu")
    s.update()  # bug


def wrong_checkpoint_nested() -> Any:
    class Net(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, size), nn.BatchNorm1d(size))

    path = "nested.pt"
    torch.save({"model": Net(4).state_dict()}, path)
    Net(5).load_state_dict(torch.load(path)["model"])  # bug


def wrong_checkpoint_key() -> Any:
    torch.save({"model": nn.Linear(3, 2).state_dict()}, "key.pt")
    found = torch.load("key.pt")
    nn.Linear(3, 2).load_state_dict(found)  # bug


def wrong_checkpoint_truncated() -> Any:
    torch.save(nn.Linear(300, 20).state_dict(), "short.pt")
    with open("short.pt", "r+b") as file:
        file.truncate(os.path.getsize("short.pt") // 2)
    torch.load("short.pt")  # bug


def wrong_checkpoint_unsafe() -> Any:
    torch.save({"net": nn.Linear(3, 2)}, "whole.pt")
    torch.load("whole.pt", weights_only=True)  # bug


def wrong_safetensors_shape() -> Any:
    torch.safetensors.save_file({"weight": torch.ones(2, 2)}, "w.safetensors")
    nn.Linear(3, 2, bias=False).load_state_dict(torch.safetensors.load_file("w.safetensors"))  # bug


def wrong_numpy_file() -> Any:
    numpy.save("a.npy", numpy.ones((2, 5)))
    x = torch.from_numpy(numpy.load("a.npy"))
    x @ tensor().double()  # bug


def wrong_lstm_module() -> Any:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 4)
            self.lstm = nn.LSTM(3, 6, batch_first=True)

        def forward(self, words: Any) -> Any:
            e = self.embed(words)
            out, _ = self.lstm(e)  # bug
            return out

    Tagger()(torch.tensor([[0, 1, 2]]))


def wrong_lstm_state() -> Any:
    lstm = nn.LSTM(3, 4, num_layers=2)
    state = torch.zeros(1, 4), torch.zeros(1, 4)
    lstm(tensor(), state)  # bug


def wrong_captured_loop() -> Any:
    total = torch.zeros(2)
    for row in tensor():
        total = total + row  # bug
    total.tolist()


def wrong_captured_closure() -> Any:
    scale = torch.ones(2)

    def outer() -> Any:
        def inner(v: Any) -> Any:
            return v * scale  # bug

        return inner

    outer()(tensor())


def wrong_compiled_method() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 4)
            self.b = nn.Linear(5, 2)

        def forward(self, x: Any) -> Any:
            h = torch.tanh(self.a(x))
            return self.b(h)  # bug

    torch.compile(Net())(tensor())


def wrong_compiled_late() -> Any:
    @torch.compile
    def look_up(table: Any, index: Any) -> Any:
        e = F.embedding(index, table)  # bug
        return (e * e).sum()

    look_up(tensor(), torch.tensor([0, 1])).item()
    look_up(tensor(), torch.tensor([0, 4])).item()


def wrong_compiled_backward() -> Any:
    @torch.compile
    def loss_of(x: Any) -> Any:
        y = torch.sqrt(x - 1)  # bug
        return (y * 0).sum()

    with torch.autograd.set_detect_anomaly(True):
        x = tensor().requires_grad_()
        loss_of(x).backward()


def wrong_training_third() -> Any:
    m = nn.Sequential(nn.Embedding(4, 3), nn.Linear(3, 2))
    o = optim.Adam(m.parameters())
    for k in range(5):
        words = torch.tensor([k, k + 1])
        out = m(words)  # bug
        loss = F.cross_entropy(out, torch.tensor([0, 1]))
        o.zero_grad()
        loss.backward()
        o.step()
    loss.item()


def wrong_training_labels() -> Any:
    def step(m: Any, x: Any, y: Any) -> Any:
        scores = m(x)
        picked = scores.gather(1, y[:, None])  # bug
        return -picked.mean()

    m = nn.Linear(3, 2)
    o = optim.SGD(m.parameters(), lr=0.1)
    for y in ([0, 1], [1, 0], [0, 1], [2, 0]):
        loss = step(m, tensor(), torch.tensor(y))
        loss.backward()
        o.step()
    m.weight.tolist()


def wrong_grad_unused() -> Any:
    a, b = tensor().requires_grad_(), tensor().requires_grad_()
    torch.autograd.grad((a * 2).sum(), [a, b])  # bug


def wrong_double_backward() -> Any:
    x = tensor().requires_grad_()
    (g,) = torch.autograd.grad((x**3).sum(), x)
    g.sum().backward()  # bug


def wrong_detach_in_place() -> Any:
    w = nn.Parameter(torch.ones(3))
    w.add_(1)  # bug


def wrong_parametrize() -> Any:
    class Twice(nn.Module):
        def forward(self, w: Any) -> Any:
            return w.reshape(5)  # bug

    m = nn.Linear(3, 2)
    nn.utils.parametrize.register_parametrization(m, "weight", Twice())
    m(tensor())


def wrong_prune() -> Any:
    nn.utils.prune.l1_unstructured(nn.Linear(3, 2), "kernel", 0.5)  # bug


def wrong_lazy() -> Any:
    m = nn.Sequential(nn.LazyLinear(4), nn.Linear(5, 2))
    m(tensor())  # bug


def wrong_init_gain() -> Any:
    nn.init.calculate_gain("swish")  # bug


def wrong_flow() -> Any:
    base = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    d = torch.distributions.TransformedDistribution(base, [torch.distributions.transforms.ExpTransform()])
    d.log_prob(torch.ones(4))  # bug


def wrong_dirichlet() -> Any:
    torch.distributions.Dirichlet(torch.tensor([1.0, 0.0]))  # bug


def wrong_independent() -> Any:
    base = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    torch.distributions.Independent(base, 2)  # bug


def wrong_rsample() -> Any:
    torch.distributions.Categorical(torch.ones(3)).rsample()  # bug


def wrong_profile_block() -> Any:
    with torch.profile():
        y = tensor() @ tensor()  # bug
    return y


def wrong_verify_block() -> Any:
    with torch.debug.verify():
        y = tensor().index_select(0, torch.tensor([3]))  # bug
        y.tolist()


def wrong_record_block() -> Any:
    with torch.debug.record():
        y = F.embedding(torch.tensor([3]), tensor())  # bug
        y.sum().item()


def wrong_debug_run() -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        return y.index_select(0, torch.tensor([5]))  # bug

    torch.debug.run(f, tensor())


def wrong_suppressed() -> Any:
    with contextlib.suppress(torch.errors.ShapeError):
        tensor() @ tensor()
    tensor() + torch.ones(7)  # bug


def wrong_view_stride() -> Any:
    tensor().t().view(6)  # bug


def wrong_storage() -> Any:
    torch.as_strided(tensor(), (4, 4), (1, 1), 0)  # bug


def wrong_out_argument() -> Any:
    torch.add(tensor(), 1, out=torch.empty(2, 3, dtype=torch.int64))  # bug


def wrong_numpy_write() -> Any:
    a = tensor().numpy()
    a[0, 7] = 1  # bug


def wrong_comparison() -> Any:
    x = tensor()
    assert x.sum() < 10, "too large"  # bug


def wrong_format() -> Any:
    format(tensor(), ".2f")  # bug


def wrong_range_tensor() -> Any:
    for _ in range(torch.tensor(2.5)):  # bug
        pass


def wrong_unpack() -> Any:
    first, second, third = tensor()  # bug
    return first, second, third


TRAINING = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
