"""Programs with one bug planted in a line each: in closures, callbacks, decorators, threads, data sets, transforms."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.utils.data import DataLoader, Dataset, TensorDataset


def tensor() -> Any:
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(3, 4), "b": nn.Linear(5, 2)})

    def forward(self, x: Any) -> Any:
        for name in self.layers:
            x = self.layers[name](x)  # bug of wrong_moduledict
        return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = Head()

    def forward(self, x: Any) -> Any:
        return self.head(x.relu())


def wrong_moduledict() -> Any:
    Net()(tensor()).tolist()


def wrong_lambda_module() -> Any:
    fs = [lambda v: v + 1, lambda v: v @ v]  # bug
    y = tensor()
    for f in fs:
        y = f(y)
    y.tolist()


def wrong_comprehension() -> Any:
    rows = [torch.ones(k) for k in (2, 3, 3)]
    total = sum(
        row * tensor()[0]  # bug
        for row in rows
    )
    total.tolist()


def wrong_listcomp_late() -> Any:
    table = torch.ones(3, 2)
    idx = [torch.tensor([k]) for k in range(5)]
    out = [table[i] for i in idx]  # bug
    torch.stack(out).tolist()


def logged(f: Any) -> Any:
    @functools.wraps(f)
    def inner(*a: Any, **k: Any) -> Any:
        return f(*a, **k)

    return inner


@logged
@logged
def deco_inner(x: Any) -> Any:
    y = x.exp()
    return y.reshape(4, 2)  # bug of wrong_decorators


def wrong_decorators() -> Any:
    deco_inner(tensor())


def gen(x: Any) -> Any:
    h = x
    while True:
        h = h @ torch.ones(3, 3)
        yield h
        h = torch.cat([h, h], 1)
        yield h


def _l() -> Any:
    pass


class Model:
    @staticmethod
    def norm(x: Any) -> Any:
        return x / x.norm(dim=3)  # bug of wrong_static_method

    @classmethod
    def build(cls, x: Any) -> Any:
        return cls.norm(x)


def wrong_static_method() -> Any:
    Model.build(tensor())


def wrong_opt_state_shape() -> Any:
    w = nn.Parameter(torch.ones(3))
    o = optim.Adam([w])
    w.sum().backward()
    o.step()
    s = o.state_dict()
    v = nn.Parameter(torch.ones(4))
    p = optim.Adam([v])
    p.load_state_dict(s)
    v.sum().backward()
    p.step()  # bug
    v.tolist()


def wrong_loss_reduction() -> Any:
    x = tensor().requires_grad_()
    loss = F.mse_loss(x, torch.ones(2, 3), reduction="none")
    loss.backward()  # bug


def wrong_loader_mixed() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return torch.ones(k + 1), k

    for a, _ in DataLoader(D(), batch_size=2):  # bug
        a.sum().item()


def wrong_dataset_late() -> Any:
    t = torch.ones(3, 2)

    class D(Dataset):
        def __len__(self) -> Any:
            return 5

        def __getitem__(self, k: Any) -> Any:
            return t[torch.tensor(k)]  # bug

    for a in DataLoader(D(), batch_size=5):
        a.sum().item()


def wrong_custom_jvp_none() -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.T, g  # bug

    x = tensor().requires_grad_()
    Two.apply(x, tensor()).sum().backward()


def wrong_vmap_inner() -> Any:
    w = torch.ones(4)

    def f(row: Any) -> Any:
        h = row * 2
        return h @ w  # bug

    torch.vmap(f)(tensor())


def wrong_vmap_sizes() -> Any:
    torch.vmap(lambda a, b: a + b)(tensor(), torch.ones(3))  # bug


def wrong_vmap_item() -> Any:
    def f(row: Any) -> Any:
        if row.sum() > 2:  # bug
            return row
        return -row

    torch.vmap(f)(tensor())


def wrong_second_derivative_unused() -> Any:
    x = tensor().requires_grad_()
    y = (2 * x).sum()
    (g,) = torch.autograd.grad(y, x)
    torch.autograd.grad(g.sum(), x)  # bug


def wrong_hessian_vector() -> Any:
    def f(x: Any) -> Any:
        return (x**3).sum(0)  # result no scalar

    torch.func.hessian(f)
    torch.func.grad(f)(tensor())  # bug


def wrong_functional_call_missing() -> Any:
    m = nn.Linear(3, 2)
    torch.func.functional_call(m, {"weight": torch.ones(2, 4)}, (tensor(),))  # bug


def wrong_checkpoint_other_shape() -> Any:
    torch.save(nn.Sequential(nn.Linear(3, 4)).state_dict(), "ck.pt")
    m = nn.Sequential(nn.Linear(3, 5))
    m.load_state_dict(torch.load("ck.pt"))  # bug


def wrong_hook_grad_shape() -> Any:
    x = tensor().requires_grad_()
    y = x * 2
    y.register_hook(lambda g: g.sum(0))  # bug
    y.sum().backward()


def wrong_hook_return_type() -> Any:
    x = tensor().requires_grad_()
    y = x * 2
    y.register_hook(lambda g: "no")  # bug
    y.sum().backward()


def wrong_nan_custom_backward() -> Any:
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.sqrt()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g / (2 * y)  # bug

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.detect_anomaly():
        Root.apply(x).sum().backward()
        x.grad.tolist()


def wrong_nan_second() -> Any:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.detect_anomaly():
        y = (x**1.5).sum()  # bug
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        g.sum().backward()
        x.grad.tolist()


def wrong_optimizer_lr_tensor() -> Any:
    w = nn.Parameter(torch.ones(3))
    optim.SGD([w], lr="0.1")  # bug


def wrong_lr_lambda() -> Any:
    w = nn.Parameter(torch.ones(3))
    o = optim.SGD([w], lr=0.1)
    s = optim.lr_scheduler.LambdaLR(o, lambda e: [1.0, 0.5][e])  # bug
    for _ in range(4):
        o.step()
        s.step()


def wrong_embedding_module() -> Any:
    class M(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.e = nn.Embedding(4, 2)
            self.o = nn.Linear(2, 1)

        def forward(self, i: Any) -> Any:
            return self.o(self.e(i)).sum()  # bug

    M()(torch.tensor([[1, 2], [3, 4]])).item()


def wrong_gru_hidden() -> Any:
    g = nn.GRU(3, 4, num_layers=2)
    g(torch.ones(5, 2, 3), torch.zeros(1, 2, 4))  # bug


def wrong_dict_batch() -> Any:
    batch = {"x": tensor(), "y": torch.tensor([0, 3])}
    net = nn.Linear(3, 3)

    def step(b: Any) -> Any:
        return F.cross_entropy(net(b["x"]), b["y"])  # bug

    losses = [step(batch) for _ in range(2)]
    sum(losses).item()


def wrong_einsum_names() -> Any:
    torch.einsum("ij,jk->ik", tensor(), torch.ones(4, 2))  # bug


def wrong_property_chain() -> Any:
    class M(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(4, 3))

        @property
        def scaled(self) -> Any:
            return self.w * torch.ones(4)  # bug

        def forward(self, x: Any) -> Any:
            return x @ self.scaled.T

    M()(tensor())


def wrong_callback_apply() -> Any:
    m = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))

    def init(mod: Any) -> Any:
        nn.init.xavier_uniform_(mod.bias) if isinstance(mod, nn.Linear) else None  # bug

    m.apply(init)


def wrong_batchnorm_eval_channels() -> Any:
    m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(3), nn.ReLU())
    m(torch.ones(2, 1, 8, 8))  # bug


def wrong_sequential_lambda_loop() -> Any:
    steps = {"double": lambda v: v * 2, "drop": lambda v: v[:, 5]}  # bug
    y = tensor()
    for s in steps.values():
        y = s(y)


def wrong_reduce() -> Any:
    mats = [torch.ones(2, 3), torch.ones(3, 4), torch.ones(5, 1)]
    functools.reduce(lambda a, b: a @ b, mats)  # bug


def wrong_map_starmap() -> Any:
    list(itertools.starmap(torch.dot, [(torch.ones(2), torch.ones(3))]))  # bug


def wrong_context_manager() -> Any:
    @contextlib.contextmanager
    def scope() -> Any:
        yield torch.ones(7)

    with scope() as m:
        tensor() * m  # bug


def wrong_async() -> Any:
    async def work(x: Any) -> Any:
        await asyncio.sleep(0)
        return x + torch.ones(5)  # bug

    asyncio.run(work(tensor()))


def wrong_thread() -> Any:
    def work(x: Any) -> Any:
        t = torch.tensor([9])
        y = x[t]  # bug
        return y.sum().item()

    with ThreadPoolExecutor(1) as p:
        p.submit(work, tensor()).result()


def wrong_dataclass() -> Any:
    @dataclass
    class S:
        h: object
        c: object

        def step(self, x: Any) -> Any:
            return S(self.h + x, self.c * x)  # bug

    S(torch.ones(2, 3), torch.ones(2, 4)).step(tensor())


def wrong_late_scatter() -> Any:
    i = torch.tensor([[0, 5, 1]])
    y = torch.zeros(2, 3).scatter_add(0, i, tensor())  # bug
    z = y * 2
    z.sum().item()


def wrong_jacfwd() -> Any:
    def f(x: Any) -> Any:
        return (x @ torch.ones(2)).sum()  # bug

    torch.func.jacfwd(f)(tensor())


def wrong_vjp_cot() -> Any:
    _, pull = torch.func.vjp(lambda x: x * 2, tensor())
    pull(torch.ones(3))  # bug


def wrong_sampler_too() -> Any:
    class Odd(torch.utils.data.Sampler):
        def __iter__(self) -> Any:
            return iter([1, 3, 9])

        def __len__(self) -> Any:
            return 3

    ds = TensorDataset(torch.ones(5, 2))
    for (b,) in DataLoader(ds, sampler=Odd(), batch_size=3):  # bug
        b.sum().item()


def wrong_transformer_mask() -> Any:
    m = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    m(torch.ones(5, 2, 4), src_key_padding_mask=torch.zeros(5, 2).bool())  # bug


def wrong_compiled_generator() -> Any:
    @torch.compile
    def f(x: Any) -> Any:
        parts = [p * (k + 1) for k, p in enumerate(x.unbind(1))]
        return torch.stack([p + torch.ones(3) for p in parts])  # bug

    f(tensor())


def wrong_index_negative() -> Any:
    y = tensor()[:, torch.tensor([-4])]  # bug
    (y + 1).tolist()


def wrong_nested_func_transform() -> Any:
    f = torch.vmap(torch.func.grad(lambda r: (r * torch.ones(2, 3)).sum(2).sum()))  # bug
    f(tensor())


def wrong_uneven_pool() -> Any:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(17, 2))
    net(torch.ones(1, 1, 8, 8))  # bug


def wrong_multimargin_late() -> Any:
    loss = F.multi_margin_loss(tensor(), torch.tensor([0, 7]))  # bug
    total = loss + 1
    total.item()


def wrong_gather_gt() -> Any:
    lens = torch.tensor([3, 9])
    seq = torch.ones(2, 5, 4)
    last = seq[torch.arange(2), lens - 1]  # bug
    (last * 2).sum().item()


def wrong_register_grad_hook_nan() -> Any:
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    with torch.detect_anomaly():
        y = x * 3
        y.register_hook(lambda g: g / x.detach())  # bug
        y.sum().backward()
        x.grad.tolist()


def wrong_ema_copy() -> Any:
    a, b = nn.Linear(3, 2), nn.Linear(3, 4)
    with torch.no_grad():
        for p, q in zip(a.parameters(), b.parameters()):
            p.mul_(0.9).add_(q, alpha=0.1)  # bug


CALLBACKS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
