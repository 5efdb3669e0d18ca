"""Training programs with one bug planted in a line each."""

from __future__ import annotations

from typing import Any

import numpy

import twofold as torch
from twofold import nn, optim
from twofold.nn import functional as F
from twofold.utils.data import DataLoader, Dataset, TensorDataset

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.rnn = nn.Embedding(10, 4), nn.LSTM(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)


def wrong_train_vocab_second_epoch() -> Any:
    net = Net()
    opt = optim.Adam(net.parameters())
    data = [torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5, 9]]), torch.tensor([[4, 10, 9]])]

    def forward(words: Any) -> Any:
        h, _ = net.rnn(
            net.emb(words)  # bug
        )
        return net.head(h[:, -1])

    for words in data:
        opt.zero_grad()
        loss = forward(words).logsumexp(1).sum()
        loss.backward()
        opt.step()
    float(loss)


def wrong_label_last_batch() -> Any:
    lin = nn.Linear(3, 2)
    opt = optim.SGD(lin.parameters(), lr=0.1)
    ds = TensorDataset(torch.randn(7, 3), torch.tensor([0, 1, 0, 1, 0, 1, 2]))
    total = 0.0
    for x, y in DataLoader(ds, batch_size=2):
        loss = F.cross_entropy(lin(x), y)  # bug
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()


def wrong_module_backward_hook() -> Any:
    lin = nn.Linear(3, 2)

    def hook(m: Any, gi: Any, go: Any) -> Any:
        return (go[0] @ torch.ones(3, 3),)  # bug

    lin.register_full_backward_hook(hook)
    lin(torch.tensor(X).requires_grad_()).sum().backward()


def wrong_custom_function_late_index() -> Any:
    class Pick(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, i: Any) -> Any:
            ctx.save_for_backward(i)
            ctx.shape = x.shape
            return x[i]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (i,) = ctx.saved_tensors
            z = torch.zeros(ctx.shape)
            return z.index_add(0, i + 1, g), None  # bug

    x = torch.tensor(X, requires_grad=True)
    Pick.apply(x, torch.tensor([0, 1])).sum().backward()
    x.grad.tolist()


def wrong_nan_forward_var() -> Any:
    with torch.detect_anomaly():
        x = torch.tensor(X)
        v = x.var(0, keepdim=True) - x.var(0, keepdim=True)
        z = (x - x.mean(0)) * v.rsqrt()  # bug
        print(z.sum().item())


def wrong_nan_backward_autograd() -> Any:
    with torch.autograd.set_detect_anomaly(True):
        e = torch.zeros(2, 3, requires_grad=True)
        d = torch.sqrt(((e[0] - e[1]) ** 2).sum())  # bug
        d.backward()
        e.grad.tolist()


def wrong_nan_acos_backward() -> Any:
    with torch.detect_anomaly():
        a = torch.tensor([1.0, 0.0], requires_grad=True)
        ang = torch.acos((a * torch.tensor([1.0, 0.0])).sum())  # bug
        ang.backward()
        a.grad.tolist()


def wrong_nan_log_softmax_prob() -> Any:
    with torch.detect_anomaly():
        logits = torch.tensor([[200.0, -200.0]], requires_grad=True)
        p = logits.softmax(1)
        ce = -(torch.tensor([[0.0, 1.0]]) * p.log()).sum()  # bug
        ce.backward()
        logits.grad.tolist()


def wrong_nan_half() -> Any:
    with torch.detect_anomaly():
        x = torch.tensor([300.0, 400.0])
        s = (x.half() * x.half()).sum()  # bug
        s.item()


def wrong_nan_div_count() -> Any:
    with torch.detect_anomaly():
        mask = torch.zeros(3)
        v = torch.ones(3)
        mean = (v * mask).sum() / mask.sum()  # bug
        mean.item()


def wrong_nan_module_of_module() -> Any:
    class A(nn.Module):
        def forward(self, x: Any) -> Any:
            return x / x.sum(1, keepdim=True)  # bug

    class B(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = A()
            self.l = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.l(self.a(x))

    with torch.detect_anomaly():
        B()(torch.tensor([[1.0, -1.0, 0.0]])).sum().item()


def wrong_captured_shape_compile() -> Any:
    h = torch.zeros(2, 3)

    @torch.compile
    def cell(x: Any) -> Any:
        return torch.tanh(x + h)  # bug

    cell(torch.ones(2, 3)).tolist()
    cell(torch.ones(4, 3)).tolist()


def wrong_vmap_late() -> Any:
    def one(row: Any, k: Any) -> Any:
        return row[k + 2]  # bug

    torch.vmap(one)(torch.tensor(X), torch.tensor([0, 1])).tolist()


def wrong_grad_of_int() -> Any:
    torch.tensor([1, 2], requires_grad=True)  # bug


def wrong_state_dict_shape() -> Any:
    a = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    b = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    a.load_state_dict(b.state_dict())  # bug


def wrong_numpy_then_index() -> Any:
    w = torch.ones(2, 3, requires_grad=True)
    (w * 2).numpy()  # bug


def wrong_dataset_getitem_oob() -> Any:
    class D(Dataset):
        def __init__(self) -> None:
            self.x = torch.randn(4, 3)

        def __len__(self) -> Any:
            return 5

        def __getitem__(self, k: Any) -> Any:
            return self.x[k]  # bug

    for b in DataLoader(D(), batch_size=5):
        b.sum().item()


def wrong_collate_ragged() -> Any:
    class D(Dataset):
        def __len__(self) -> Any:
            return 4

        def __getitem__(self, k: Any) -> Any:
            return torch.ones(k + 1)

    for b in DataLoader(D(), batch_size=2):  # bug
        b.sum().item()


def wrong_lr_sched() -> Any:
    w = torch.ones(2, requires_grad=True)
    o = optim.SGD([w], lr=0.1)
    s = optim.lr_scheduler.LambdaLR(o, lambda e: 1.0 / (3 - e))  # bug
    for _ in range(5):
        o.step()
        s.step()


def wrong_functional_jacobian() -> Any:
    f = lambda x: (x @ torch.ones(2, 2)).sum()  # bug
    torch.autograd.functional.jacobian(f, torch.tensor(X))


def wrong_double_backward_hook() -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    z = g @ torch.ones(3)  # bug
    z.backward()


def wrong_lstm_padded() -> Any:
    nn.utils.rnn.pack_padded_sequence(torch.ones(2, 3, 4), [2, 3], batch_first=True)  # bug


def wrong_transformer_heads() -> Any:
    nn.TransformerEncoderLayer(10, 3)  # bug


def wrong_attn_mask_late() -> Any:
    m = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.ones(2, 3, 4)
    m(x, x, x, attn_mask=torch.zeros(2, 2))  # bug


def wrong_generator_data() -> Any:
    def stream() -> Any:
        for k in range(3):
            yield torch.ones(3 + (k == 2))

    w = torch.ones(3, 2)
    for row in stream():
        row @ w  # bug


def wrong_item_many() -> Any:
    loss = F.mse_loss(torch.ones(3), torch.zeros(3), reduction="none")
    loss.item()  # bug


def wrong_loss_not_scalar_step() -> Any:
    lin = nn.Linear(3, 2)
    loss = F.cross_entropy(lin(torch.tensor(X)), torch.tensor([0, 1]), reduction="none")
    loss.backward()  # bug


def wrong_deferred_err_in_print_far() -> Any:
    idx = torch.tensor([5])
    t = torch.arange(3)
    v = t[idx]  # bug
    w = v + 1

    def far() -> Any:
        return w * 2

    str(far())


def wrong_deferred_del() -> Any:
    def make() -> Any:
        return torch.arange(3)[torch.tensor([4])]  # bug

    ys = [make() for _ in range(3)]
    sum(ys).tolist()


def wrong_deferred_bool() -> Any:
    t = torch.arange(3.0)
    flag = t.gather(0, torch.tensor([7])) > 1  # bug
    if flag:
        pass


def wrong_deferred_numpy() -> Any:
    t = torch.arange(3.0).gather(0, torch.tensor([7]))  # bug
    numpy.asarray(t)


def wrong_deferred_save() -> Any:
    t = torch.arange(3.0).gather(0, torch.tensor([7]))  # bug
    torch.save(t, "t.pt")


def wrong_deferred_opt() -> Any:
    lin = nn.Linear(3, 2)
    opt = optim.Adam(lin.parameters())
    for k in range(5):
        y = torch.tensor([0, 1 if k < 3 else 2])
        loss = F.nll_loss(F.log_softmax(lin(torch.tensor(X)), -1), y)  # bug
        opt.zero_grad()
        loss.backward()
        opt.step()
    lin.weight.tolist()


def wrong_deferred_no_read() -> Any:
    # many lines; error appears at clip_grad_norm
    lin = nn.Linear(3, 2)
    emb = nn.Embedding(4, 3)
    h = emb(torch.tensor([[1, 4]]))  # bug
    loss = lin(h).sum()
    loss.backward()
    n = nn.utils.clip_grad_norm_(lin.parameters(), 1.0)
    float(n)


LOOPS: list[Any] = [
    wrong_train_vocab_second_epoch,
    wrong_label_last_batch,
    wrong_module_backward_hook,
    wrong_custom_function_late_index,
    wrong_nan_forward_var,
    wrong_nan_backward_autograd,
    wrong_nan_acos_backward,
    wrong_nan_log_softmax_prob,
    wrong_nan_half,
    wrong_nan_div_count,
    wrong_nan_module_of_module,
    wrong_captured_shape_compile,
    wrong_vmap_late,
    wrong_grad_of_int,
    wrong_state_dict_shape,
    wrong_numpy_then_index,
    wrong_dataset_getitem_oob,
    wrong_collate_ragged,
    wrong_lr_sched,
    wrong_functional_jacobian,
    wrong_double_backward_hook,
    wrong_lstm_padded,
    wrong_transformer_heads,
    wrong_attn_mask_late,
    wrong_generator_data,
    wrong_item_many,
    wrong_loss_not_scalar_step,
    wrong_deferred_err_in_print_far,
    wrong_deferred_del,
    wrong_deferred_bool,
    wrong_deferred_numpy,
    wrong_deferred_save,
    wrong_deferred_opt,
    wrong_deferred_no_read,
]
