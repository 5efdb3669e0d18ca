"""Programs with one bug planted in a line each: in gradients, hooks, closures, schedulers, collate functions."""

from __future__ import annotations

from typing import Any

import numpy

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.utils.data import DataLoader, Dataset


def tensor() -> Any:
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def wrong_loop_backward_index() -> Any:
    # the backward of a loop reads beyond
    class Pick(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any, k: Any) -> Any:
            ctx.save_for_backward(v, k)
            return v * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            v, k = ctx.saved_tensors
            return g * torch.take(v, k + 9), None  # bug

    x = tensor().requires_grad_()

    def body(k: Any, h: Any) -> Any:
        return k + 1, Pick.apply(h, k)

    y = torch.while_loop(lambda k, h: k < 3, body, (torch.tensor(0), x))[1]
    y.sum().backward()
    x.grad.tolist()


def wrong_nan_loop_backward() -> Any:
    def body(k: Any, h: Any) -> Any:
        s = h * h
        return k + 1, torch.sqrt(s)  # bug

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.detect_anomaly():
        torch.while_loop(lambda k, h: k < 2, body, (torch.tensor(0), x))[1].sum().backward()
        x.grad.tolist()


def wrong_hook_in_module() -> Any:
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))

    def grad_hook(module: Any, gi: Any, go: Any) -> Any:
        return (gi[0] * torch.ones(4),)  # bug

    m[2].register_full_backward_hook(grad_hook)
    m(tensor()).sum().backward()


def wrong_hook_late_index() -> Any:
    m = nn.Linear(3, 2)

    def hook(mod: Any, args: Any, out: Any) -> Any:
        return out[torch.tensor([0, 4])]  # bug

    m.register_forward_hook(hook)
    m(tensor()).tolist()


def wrong_double_backward_custom() -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            return v**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (v,) = ctx.saved_tensors
            return CubeGrad.apply(g, v)

    class CubeGrad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, g: Any, v: Any) -> Any:
            ctx.save_for_backward(g, v)
            return 3 * v**2 * g

        @staticmethod
        def backward(ctx: Any, gg: Any) -> Any:
            g, v = ctx.saved_tensors
            return gg * torch.ones(5), 6 * v * g * gg  # bug

    x = tensor().requires_grad_()
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    g.sum().backward()
    x.grad.tolist()


def wrong_view_of_leaf() -> Any:
    w = torch.zeros(4, requires_grad=True)
    v = w.view(2, 2)
    v[0] = 1.0  # bug


def wrong_optimizer_closure() -> Any:
    w = nn.Parameter(torch.ones(3))
    o = optim.LBFGS([w], max_iter=3)
    labels = torch.tensor([5])

    def closure() -> Any:
        o.zero_grad()
        loss = F.cross_entropy(w.reshape(1, 3), labels)  # bug
        loss.backward()
        return loss

    o.step(closure)


def wrong_closure_sgd() -> Any:
    w = nn.Parameter(torch.ones(3))
    o = optim.SGD([w], lr=0.1)

    def closure() -> Any:
        return (w * torch.ones(2)).sum()  # bug

    o.step(closure)


def wrong_scheduler_lambda() -> Any:
    w = nn.Parameter(torch.ones(3))
    o = optim.SGD([w], lr=0.1)
    s = optim.lr_scheduler.LambdaLR(o, lambda e: [1.0, 0.5][e])  # bug
    for _ in range(3):
        o.step()
        s.step()


def wrong_scheduler_chained() -> Any:
    o = optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1)
    p = optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1)
    optim.lr_scheduler.ChainedScheduler(
        [optim.lr_scheduler.StepLR(o, 1), optim.lr_scheduler.StepLR(p, 1)]
    )  # bug


def wrong_collate_pad() -> Any:
    def collate(items: Any) -> Any:
        xs = [a for a, b in items]
        return torch.stack(xs), torch.tensor([b for a, b in items])  # bug

    data = [(torch.ones(k + 1), k) for k in range(4)]
    for x, _ in DataLoader(data, batch_size=2, collate_fn=collate):
        x.sum().item()


def wrong_collate_late() -> Any:
    def collate(items: Any) -> Any:
        x = torch.stack(items)
        return x.index_select(1, torch.tensor([0, 2]))  # bug

    for b in DataLoader([torch.ones(2), torch.ones(2)], batch_size=2, collate_fn=collate):
        b.sum().item()


def wrong_collate_keys() -> Any:
    data = [{"a": torch.ones(1)}, {"b": torch.ones(1)}]
    for _ in DataLoader(data, batch_size=2):  # bug
        pass


def wrong_state_prefix() -> Any:
    m = nn.Linear(3, 2)
    saved = {"module." + k: v for k, v in m.state_dict().items()}
    m.load_state_dict(saved)  # bug


def wrong_device_module() -> Any:
    nn.Linear(3, 2).to("cuda:7")  # bug


def wrong_device_tensor() -> Any:
    tensor().to("cpux")  # bug


def wrong_arg_type_lr() -> Any:
    optim.Adam([nn.Parameter(torch.ones(2))], lr="0.1")  # bug


def wrong_arg_type_momentum() -> Any:
    optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1, momentum="high")  # bug


def wrong_parameters_forgot_call() -> Any:
    m = nn.Linear(3, 2)
    optim.Adam(m.parameters)  # bug


def wrong_numpy_matmul() -> Any:
    a = numpy.ones((2, 3))
    tensor() @ a  # bug


def wrong_dataloader_worker_index() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            x = torch.arange(3.0)
            return x.index_select(0, torch.tensor([k]))  # bug

    for b in DataLoader(D(), batch_size=2, num_workers=2):
        b.tolist()


def wrong_compiled_third_shape() -> Any:
    @torch.compile
    def f(x: Any, w: Any) -> Any:
        h = torch.relu(x)
        return (h @ w).sum()  # bug

    for k in (3, 3, 4):
        f(torch.ones(2, k), torch.ones(3, 2)).item()


def wrong_grad_outputs() -> Any:
    x = tensor().requires_grad_()
    y = x * 2
    torch.autograd.grad(y, x, grad_outputs=torch.ones(3, 2))  # bug


def wrong_ema() -> Any:
    m = nn.Linear(3, 2)
    e = optim.swa_utils.AveragedModel(m)
    e.update_parameters(nn.Linear(4, 2))  # bug


def wrong_nan_hook() -> Any:
    x = tensor().requires_grad_()
    y = x * 3

    def hook(g: Any) -> Any:
        return g / (g - g)  # bug

    y.register_hook(hook)
    with torch.detect_anomaly():
        y.sum().backward()
        x.grad.tolist()


def wrong_nan_double() -> Any:
    with torch.detect_anomaly():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = (x**1.5).sum()  # bug
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        g.sum().backward()
        x.grad.tolist()


def wrong_captured_list() -> Any:
    states = []
    m = nn.RNNCell(3, 4)
    h = torch.zeros(2, 4)
    for _ in range(3):
        h = m(tensor(), h)
        states.append(h)
    out = torch.stack(states)
    return nn.Linear(5, 2)(out)  # bug


GRADIENTS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
