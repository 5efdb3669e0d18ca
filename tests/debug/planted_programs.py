"""Programs in plain define-by-run with one bug planted in a line each."""

from __future__ import annotations

from tempfile import NamedTemporaryFile
from typing import Any

import numpy

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.utils.data import DataLoader, Dataset, TensorDataset

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def tensor() -> Any:
    return torch.tensor(X)


def integers(*values: int) -> Any:
    return torch.tensor(list(values))


def wrong_backward_twice() -> Any:
    x = tensor().requires_grad_()
    y = (x * x).sum()
    y.backward()
    y.backward()  # bug


def wrong_backward_nonscalar() -> Any:
    x = tensor().requires_grad_()
    (x * 2).backward()  # bug


def wrong_backward_nograd() -> Any:
    tensor().sum().backward()  # bug


def wrong_backward_shape() -> Any:
    x = tensor().requires_grad_()
    (x * 2).backward(torch.ones(4))  # bug


def wrong_inplace_leaf() -> Any:
    x = tensor().requires_grad_()
    x += 1  # bug


def wrong_inplace_leaf2() -> Any:
    x = tensor().requires_grad_()
    x.mul_(2)  # bug


def wrong_inplace_leaf3() -> Any:
    x = tensor().requires_grad_()
    x[0] = 1.0  # bug


def wrong_inplace_shape() -> Any:
    x = tensor()
    x.add_(torch.ones(5, 2, 3))  # bug


def wrong_inplace_dtype() -> Any:
    x = integers(1, 2)
    x.add_(0.5)  # bug


def wrong_numpy_grad() -> Any:
    tensor().requires_grad_().numpy()  # bug


def wrong_optim_empty() -> Any:
    optim.Adam([])  # bug


def wrong_optim_lr() -> Any:
    optim.SGD([tensor().requires_grad_()], lr=-1.0)  # bug


def wrong_optim_betas() -> Any:
    optim.Adam([tensor().requires_grad_()], betas=(2.0, 0.1))  # bug


def wrong_optim_nonleaf() -> Any:
    x = tensor().requires_grad_()
    optim.SGD([x * 2], lr=0.1)  # bug


def wrong_optim_type() -> Any:
    optim.SGD([1.0], lr=0.1)  # bug


def wrong_optim_grad_shape() -> Any:
    w = tensor().requires_grad_()
    o = optim.SGD([w], lr=0.1)
    w.grad = torch.ones(5)  # bug
    o.step()


def wrong_optim_grad_type() -> Any:
    w = tensor().requires_grad_()
    w.grad = 3  # bug


def wrong_optim_state() -> Any:
    w = tensor().requires_grad_()
    o = optim.Adam([w])
    o.load_state_dict({"param_groups": [], "state": {}})  # bug


def wrong_optim_state2() -> Any:
    w = tensor().requires_grad_()
    o = optim.Adam([w])
    o.load_state_dict({"a": 1})  # bug


def wrong_optim_closure() -> Any:
    w = tensor().requires_grad_()
    o = optim.LBFGS([w])
    o.step()  # bug


def wrong_sched2() -> Any:
    optim.lr_scheduler.StepLR(3, 1)  # bug


def wrong_state_dict() -> Any:
    nn.Linear(3, 2).load_state_dict(nn.Linear(3, 4).state_dict())  # bug


def wrong_state_missing() -> Any:
    nn.Linear(3, 2).load_state_dict({"weight": torch.ones(2, 3)})  # bug


def wrong_state_type() -> Any:
    nn.Linear(3, 2).load_state_dict(3)  # bug


def wrong_state_value() -> Any:
    nn.Linear(3, 2).load_state_dict({"weight": "a", "bias": 3})  # bug


def wrong_load_missing() -> Any:
    torch.load("/nonexistent/file.pt")  # bug


def wrong_load_garbage() -> Any:
    with NamedTemporaryFile(suffix=".pt") as f:
        f.write(b"hello world, no pickle")
        f.flush()
        torch.load(f.name)  # bug


def wrong_save_lambda() -> Any:
    with NamedTemporaryFile(suffix=".pt") as f:
        torch.save(lambda x: x, f.name)  # bug


def wrong_save_dir() -> Any:
    torch.save(tensor(), "/nonexistent/file.pt")  # bug


def wrong_hook() -> Any:
    x = tensor().requires_grad_()
    y = x * 2

    def hook(g: Any) -> Any:
        return g @ torch.ones(7)  # bug

    y.register_hook(hook)
    y.sum().backward()


def wrong_hook_py() -> Any:
    x = tensor().requires_grad_()
    y = x * 2
    y.register_hook(lambda g: g["a"])  # bug
    y.sum().backward()


def wrong_hook_shape() -> Any:
    x = tensor().requires_grad_()
    y = x * 2
    y.register_hook(lambda g: g.sum())  # bug
    y.sum().backward()


def wrong_forward_hook() -> Any:
    m = nn.Linear(3, 2)

    def hook(mod: Any, args: Any, out: Any) -> Any:
        return out.reshape(7)  # bug

    m.register_forward_hook(hook)
    m(tensor())


def wrong_pre_hook() -> Any:
    m = nn.Linear(3, 2)
    m.register_forward_pre_hook(lambda mod, args: args[3])  # bug
    m(tensor())


def wrong_backward_hook() -> Any:
    m = nn.Linear(3, 2)

    def hook(mod: Any, gi: Any, go: Any) -> Any:
        return gi[0].reshape(99)  # bug

    m.register_full_backward_hook(hook)
    m(tensor().requires_grad_()).sum().backward()


def wrong_custom_forward() -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.reshape(99)  # bug

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Twice.apply(tensor().requires_grad_())


def wrong_custom_backward() -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors  # bug
            return g * a * b

    Twice.apply(tensor().requires_grad_()).sum().backward()


def wrong_custom_count() -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g  # bug

    x = tensor().requires_grad_()
    Twice.apply(x, x).sum().backward()


def wrong_custom_shape() -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.sum(0)  # bug

    x = tensor().requires_grad_()
    Twice.apply(x).sum().backward()
    x.grad.tolist()


def wrong_custom_nobackward() -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    x = tensor().requires_grad_()
    Twice.apply(x).sum().backward()  # bug


def wrong_dataset() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return torch.ones(3)[k + 2]  # bug

    for _ in DataLoader(D(), batch_size=2):
        pass


def wrong_dataset_py() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return {"a": 1}["b"]  # bug

    for _ in DataLoader(D(), batch_size=2):
        pass


def wrong_collate() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return torch.ones(k + 1)

    for _ in DataLoader(D(), batch_size=2):  # bug
        pass


def wrong_collate_type() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return object()

    for _ in DataLoader(D(), batch_size=2):  # bug
        pass


def wrong_collate_user() -> Any:
    def collate(items: Any) -> Any:
        return torch.stack(items).reshape(77)  # bug

    for _ in DataLoader(torch.ones(4, 2), batch_size=2, collate_fn=collate):
        pass


def wrong_nolen() -> Any:
    class D(Dataset):
        def __getitem__(self, k: Any) -> Any:
            return 1

    DataLoader(D(), batch_size=2, shuffle=True)  # bug


def wrong_batch_size() -> Any:
    DataLoader([1, 2], batch_size=0)  # bug


def wrong_tensordataset() -> Any:
    TensorDataset(torch.ones(3), torch.ones(4))  # bug


def wrong_random_split() -> Any:
    torch.utils.data.random_split([1, 2, 3], [1, 1])  # bug


def wrong_batch_mismatch() -> Any:
    m = nn.Linear(3, 2)
    out = m(torch.ones(4, 3))
    loss = nn.CrossEntropyLoss()(out, integers(0, 1, 0))  # bug
    loss.item()


def wrong_class_range_loss_module() -> Any:
    m = nn.Linear(3, 2)
    out = m(torch.ones(2, 3))
    loss = nn.CrossEntropyLoss()(out, integers(0, 5))  # bug
    loss.backward()
    loss.item()


def wrong_class_range_step() -> Any:
    m = nn.Linear(3, 2)
    o = optim.SGD(m.parameters(), lr=0.1)
    for t in (integers(0, 1), integers(1, 0), integers(0, 2)):
        out = m(torch.ones(2, 3))
        loss = F.cross_entropy(out, t)  # bug
        o.zero_grad()
        loss.backward()
        o.step()


def wrong_clip() -> Any:
    torch.nn.utils.clip_grad_norm_([3], 1.0)  # bug


def wrong_init() -> Any:
    nn.init.xavier_uniform_(torch.ones(3))  # bug


def wrong_autograd_grad() -> Any:
    x = tensor().requires_grad_()
    torch.autograd.grad((x * 2).sum(), torch.ones(2))  # bug


def wrong_nan_backward() -> Any:
    with torch.detect_anomaly():
        x = torch.tensor([1.0, 0.0], requires_grad=True)
        y = torch.sqrt(x)  # bug
        y.sum().backward()
        x.grad.tolist()


def wrong_nan_norm() -> Any:
    with torch.detect_anomaly():
        x = torch.zeros(3, requires_grad=True)
        y = x.pow(2).sum().sqrt()  # bug
        (y * 3).backward()


def wrong_nan_div() -> Any:
    with torch.detect_anomaly():
        x = torch.zeros(3)
        y = x / x.sum()  # bug
        y.tolist()


def wrong_nan_module() -> Any:
    class N(nn.Module):
        def forward(self, x: Any) -> Any:
            return x / x.std(0)  # bug

    with torch.detect_anomaly():
        nn.Sequential(nn.Linear(3, 2), N(), nn.ReLU())(torch.ones(4, 3)).sum().item()


def wrong_getattr_module() -> Any:
    return nn.Linear(3, 2).weigth  # bug


def wrong_register() -> Any:
    nn.Linear(3, 2).register_parameter("w", 3)  # bug


def wrong_setattr() -> Any:
    m = nn.Linear(3, 2)
    m.weight = torch.ones(2, 3)  # bug


def wrong_noinit() -> Any:
    class M(nn.Module):
        def __init__(self) -> Any:
            self.a = nn.Linear(2, 2)  # bug

    M()


def wrong_seq() -> Any:
    nn.Sequential(3)  # bug


def wrong_linear_float() -> Any:
    nn.Linear(3.5, 2)  # bug


def wrong_conv_arg() -> Any:
    nn.Conv2d(3, 4, 3, padding_mode="mirror")  # bug


def wrong_conv_groups() -> Any:
    nn.Conv2d(3, 4, 3, groups=2)  # bug


def wrong_dist() -> Any:
    torch.distributions.Normal(0.0, -1.0)  # bug


def wrong_dist_log() -> Any:
    torch.distributions.Categorical(torch.tensor([0.5, 0.5])).log_prob(torch.tensor(7))  # bug


def wrong_from_numpy() -> Any:
    torch.from_numpy([1, 2])  # bug


def wrong_from_numpy_obj() -> Any:
    torch.from_numpy(numpy.array(["a"]))  # bug


def wrong_device() -> Any:
    torch.ones(2, device="gpu")  # bug


def wrong_checkpoint() -> Any:
    def f(x: Any) -> Any:
        return x.reshape(7)  # bug

    torch.utils.checkpoint.checkpoint(f, tensor().requires_grad_(), use_reentrant=False)


def wrong_jvp() -> Any:
    torch.func.jvp(lambda x: x * 2, (tensor(),), (torch.ones(4),))  # bug


def wrong_functional_call() -> Any:
    torch.func.functional_call(nn.Linear(3, 2), {"weight": torch.ones(5, 5)}, (tensor(),))  # bug


def wrong_pack() -> Any:
    nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [2, 9])  # bug


def wrong_padseq() -> Any:
    nn.utils.rnn.pad_sequence([torch.ones(2, 3), torch.ones(2, 4)])  # bug


def wrong_iter0d() -> Any:
    for _ in torch.tensor(3.0):  # bug
        pass


def wrong_float_many() -> Any:
    float(torch.ones(3))  # bug


def wrong_freed_grad() -> Any:
    x = tensor().requires_grad_()
    y = (x * x).sum()
    torch.autograd.grad(y, x)
    torch.autograd.grad(y, x)  # bug


def wrong_captured_state() -> Any:
    state = torch.ones(4)

    @torch.compile
    def f(x: Any) -> Any:
        return x + state  # bug

    f(tensor())


def wrong_compiled_second() -> Any:
    @torch.compile
    def f(x: Any) -> Any:
        y = x * 2
        return y @ torch.ones(3, 1)  # bug

    f(tensor())
    f(tensor())
    f(torch.ones(2, 4))


def wrong_compiled_module() -> Any:
    m = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    m(tensor())
    m(torch.ones(2, 4))  # bug


def wrong_safetensors() -> Any:
    torch.safetensors.load_file("/nonexistent")  # bug


def wrong_to_module() -> Any:
    nn.Linear(2, 2).to("float33")  # bug


def wrong_apply_user() -> Any:
    def f(m: Any) -> Any:
        m.weight.reshape(77)  # bug

    nn.Linear(2, 2).apply(f)


def wrong_closure_step() -> Any:
    w = tensor().requires_grad_()
    o = optim.LBFGS([w])

    def closure() -> Any:
        return (w @ torch.ones(9)).sum()  # bug

    o.step(closure)


def wrong_lambda_lr() -> Any:
    w = tensor().requires_grad_()
    o = optim.SGD([w], lr=0.1)
    optim.lr_scheduler.LambdaLR(o, lambda e: 1 / e)  # bug


def wrong_sampler() -> Any:
    class S(torch.utils.data.Sampler):
        def __iter__(self) -> Any:
            yield from [0, 99]

        def __len__(self) -> Any:
            return 2

    for _ in DataLoader(torch.arange(4.0), sampler=S(), batch_size=2):  # bug
        pass


PROGRAMS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
