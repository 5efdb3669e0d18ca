"""Functions with one bug planted in a line each: in classes, transformed, of layers and distributions."""

from __future__ import annotations

import functools
from typing import Any

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


class Innermost(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: Any) -> Any:
        y = x * 2
        return self.norm(y)  # bug of wrong_innermost


class Middle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"one": nn.Sequential(nn.ReLU(), Innermost())})

    def forward(self, x: Any) -> Any:
        return self.inner["one"](x) + 1


def wrong_innermost(x: Any, i: Any) -> Any:
    return nn.Sequential(Middle(), nn.ReLU())(x)


class Wrapped:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __matmul__(self, other: Any) -> Any:
        return Wrapped(self.value @ other.value)  # bug of wrong_operator

    @property
    def scaled(self) -> Any:
        return self.value + torch.ones(7)  # bug of wrong_property

    @classmethod
    def made(cls, value: Any) -> Any:
        return cls(value.reshape(11))  # bug of wrong_classmethod


def wrong_operator(x: Any, i: Any) -> Any:
    return (Wrapped(x) @ Wrapped(x)).value


def wrong_property(x: Any, i: Any) -> Any:
    return Wrapped(x).scaled


def wrong_classmethod(x: Any, i: Any) -> Any:
    return Wrapped.made(x).value


def wrong_generator(x: Any, i: Any) -> Any:
    def rows() -> Any:
        for k in range(2):
            yield F.embedding(i + 3 * k, x)  # bug

    return sum(rows())


def wrong_partial(x: Any, i: Any) -> Any:
    def pick(table: Any, index: Any, dim: int) -> Any:
        return torch.index_select(table, dim, index)  # bug

    return functools.partial(pick, x, dim=0)(i + 1)


def wrong_map(x: Any, i: Any) -> Any:
    def shift(k: int) -> Any:
        return torch.take_along_dim(x, (i + k).reshape(2, 1), 1)  # bug

    return torch.stack(list(map(shift, [0, 2])))


def wrong_decorated(x: Any, i: Any) -> Any:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*arguments: Any) -> Any:
            return function(*arguments) * 2

        return wrapper

    @twice
    def inner(v: Any) -> Any:
        return v.scatter_add(1, torch.tensor([[5], [0]]), v)  # bug

    return inner(x)


def wrong_recursion(x: Any, i: Any) -> Any:
    def down(v: Any, depth: int) -> Any:
        if depth == 0:
            return v.index_select(0, i + 2)  # bug
        return down(v * 2, depth - 1) + 1

    return down(x, 3)


def wrong_in_try(x: Any, i: Any) -> Any:
    try:
        y = x * 2
    finally:
        z = y[:, i + 2]  # bug
    return z


def wrong_walrus(x: Any, i: Any) -> Any:
    if (y := x[i + 1]) is not None:  # bug
        return y * 2
    return x


def wrong_ternary(x: Any, i: Any) -> Any:
    return (
        torch.gather(x, 1, (i + 2).reshape(2, 1))  # bug
        if x.dim() == 2
        else x
    )


def wrong_with(x: Any, i: Any) -> Any:
    with torch.no_grad():
        return F.embedding(i + 2, x)  # bug


def wrong_enabled(x: Any, i: Any) -> Any:
    with torch.enable_grad():
        y = x.narrow(1, 2, 4)  # bug
    return y


def wrong_default(x: Any, i: Any) -> Any:
    def scale(v: Any, by: Any = None) -> Any:
        return v * by.exp()  # bug

    return scale(x)


def wrong_batch_product(x: Any, i: Any) -> Any:
    a = x.reshape(1, 2, 3)
    b = torch.ones(2, 2, 3)
    return torch.matmul(a, b)  # bug


def wrong_integer_product(x: Any, i: Any) -> Any:
    return x @ torch.ones(3, 2, dtype=torch.int64)  # bug


def wrong_conv_channels(x: Any, i: Any) -> Any:
    net = nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU(), nn.Conv2d(3, 2, 1))
    return net(x.reshape(1, 1, 2, 3))  # bug


def wrong_conv_dtype(x: Any, i: Any) -> Any:
    return F.conv1d(torch.ones(1, 1, 4, dtype=torch.int64), x.reshape(1, 1, 6)[:, :, :2])  # bug


def wrong_group_norm(x: Any, i: Any) -> Any:
    return F.group_norm(x, 2)  # bug


def wrong_broadcast_late(x: Any, i: Any) -> Any:
    column = x.sum(1)
    y = x - column  # bug
    return y.exp()


def wrong_assign_broadcast(x: Any, i: Any) -> Any:
    y = torch.zeros(2, 3)
    y[:, 1:] = x  # bug
    return y


def wrong_in_place_broadcast(x: Any, i: Any) -> Any:
    y = x.clone()
    y += torch.ones(3, 1, 1)  # bug
    return y


def wrong_func_grad_inside(x: Any, i: Any) -> Any:
    def loss(v: Any) -> Any:
        return F.cross_entropy(v, i + 2)  # bug

    return torch.func.grad(loss)(x)


def wrong_vjp_inside(x: Any, i: Any) -> Any:
    def inner(v: Any) -> Any:
        return v.reshape(4, 2)  # bug

    return torch.func.vjp(inner, x)[0]


def wrong_jacrev_inside(x: Any, i: Any) -> Any:
    return torch.func.jacrev(lambda v: v.index_select(1, i + 2))(x)  # bug


def wrong_hessian_inside(x: Any, i: Any) -> Any:
    def energy(v: Any) -> Any:
        return (v @ torch.ones(2)).sum()  # bug

    return torch.func.hessian(energy)(x)


def wrong_vmap_index(x: Any, i: Any) -> Any:
    def pick(row: Any, k: Any) -> Any:
        return torch.take(row, k + 2)  # bug

    return torch.vmap(pick)(x, i)


def wrong_vmap_nested(x: Any, i: Any) -> Any:
    def inner(a: Any) -> Any:
        return a + torch.ones(2, 2).reshape(3)  # bug

    return torch.vmap(torch.vmap(inner))(x)


def wrong_vmap_grad(x: Any, i: Any) -> Any:
    def loss(row: Any, k: Any) -> Any:
        return F.nll_loss(torch.log_softmax(row, 0), k * 7)  # bug

    return torch.vmap(torch.func.grad(loss))(x, i)


def wrong_linearize(x: Any, i: Any) -> Any:
    return torch.func.jvp(lambda v: v @ v, (x,), (x,))[0]  # bug


def wrong_scan_body(x: Any, i: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        picked = torch.index_select(row, 0, i + 2)  # bug
        return carry + picked.sum(), carry

    return torch.scan(step, torch.tensor(0.0), x)[0]


def wrong_scan_carry(x: Any, i: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return row.double(), carry  # bug

    return torch.scan(step, torch.zeros(3), x)[0]


def wrong_cond_inside(x: Any, i: Any) -> Any:
    def yes(v: Any) -> Any:
        return v[:, i + 2].sum()  # bug

    return torch.cond(x.sum() > 0, yes, lambda v: v.sum(), (x,))


def wrong_loop_dtype(x: Any, i: Any) -> Any:
    def body(k: Any, h: Any) -> Any:
        return k + 1, h.long()  # bug

    return torch.while_loop(lambda k, h: k < 2, body, (torch.tensor(0), x))[1]


def wrong_loop_helper(x: Any, i: Any) -> Any:
    def helper(v: Any, k: Any) -> Any:
        return torch.take(v, k + 4)  # bug

    def body(k: Any, h: Any) -> Any:
        return k + 1, h + helper(x, k)

    return torch.while_loop(lambda k, h: k < 3, body, (torch.tensor(0), torch.tensor(0.0)))[1]


def wrong_loop_condition(x: Any, i: Any) -> Any:
    return torch.while_loop(lambda k, h: h > 0, lambda k, h: (k + 1, h), (torch.tensor(0), x))[1]  # bug


def wrong_custom_twice(x: Any, i: Any) -> Any:
    class Pick(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any, k: Any) -> Any:
            ctx.save_for_backward(v, k)
            return v.index_select(0, k + 2)  # bug

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    return Pick.apply(x, i)


def wrong_gru_cell(x: Any, i: Any) -> Any:
    cell = nn.GRUCell(3, 4)
    h = torch.zeros(2, 5)
    return cell(x, h)  # bug


def wrong_lstm_cell(x: Any, i: Any) -> Any:
    cell = nn.LSTMCell(3, 4)
    h = None
    for _ in range(3):
        h = cell(x, h)  # bug
        x = h[0]
    return x


def wrong_transformer_layer(x: Any, i: Any) -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, batch_first=True)
    return layer(x.reshape(1, 2, 3))  # bug


def wrong_mask_shape(x: Any, i: Any) -> Any:
    layer = nn.MultiheadAttention(3, 1, batch_first=True)
    y = x.reshape(1, 2, 3)
    return layer(y, y, y, attn_mask=torch.zeros(4, 4))[0]  # bug


def wrong_embedding_bag(x: Any, i: Any) -> Any:
    bag = nn.EmbeddingBag(4, 2)
    return bag(torch.tensor([0, 9]), torch.tensor([0]))  # bug


def wrong_unfold(x: Any, i: Any) -> Any:
    return x.unfold(1, 5, 1)  # bug


def wrong_interpolate(x: Any, i: Any) -> Any:
    return F.interpolate(x, scale_factor=2)  # bug


def wrong_triplet(x: Any, i: Any) -> Any:
    return F.triplet_margin_loss(x, x[:, :2], x)  # bug


def wrong_ctc(x: Any, i: Any) -> Any:
    return F.ctc_loss(x, i, (3, 3), (1, 1))  # bug


def wrong_huber(x: Any, i: Any) -> Any:
    return F.huber_loss(x, x, delta=-1.0)  # bug


def wrong_weighted_entropy(x: Any, i: Any) -> Any:
    return F.cross_entropy(x, i, weight=torch.ones(5))  # bug


def wrong_bce_range(x: Any, i: Any) -> Any:
    return F.binary_cross_entropy(x * 3, torch.ones(2, 3))  # bug


def wrong_multinomial(x: Any, i: Any) -> Any:
    return torch.multinomial(-x, 1)  # bug


def wrong_normal(x: Any, i: Any) -> Any:
    return torch.normal(x, torch.tensor(-1.0))  # bug


def wrong_categorical(x: Any, i: Any) -> Any:
    return torch.distributions.Categorical(logits=x).log_prob(torch.tensor([0, 5]))  # bug


def wrong_multivariate(x: Any, i: Any) -> Any:
    d = torch.distributions.MultivariateNormal(torch.zeros(2), -torch.eye(2))  # bug
    return d.log_prob(torch.zeros(2))


def wrong_beta(x: Any, i: Any) -> Any:
    d = torch.distributions.Beta(torch.tensor(2.0), torch.tensor(3.0))
    return d.log_prob(torch.tensor(1.5))  # bug


def wrong_kl_pair(x: Any, i: Any) -> Any:
    a = torch.distributions.Normal(0.0, 1.0)
    b = torch.distributions.Bernoulli(0.5)
    return torch.distributions.kl_divergence(a, b)  # bug


def wrong_complex(x: Any, i: Any) -> Any:
    z = torch.complex(x, x)
    return z > 0  # bug


def wrong_bool_minus(x: Any, i: Any) -> Any:
    m = x > 2
    return m - m  # bug


def wrong_diag(x: Any, i: Any) -> Any:
    return torch.diagonal(x, 0, 1, 1)  # bug


def wrong_permute(x: Any, i: Any) -> Any:
    return x.permute(0, 0)  # bug


def wrong_movedim(x: Any, i: Any) -> Any:
    return torch.movedim(x, 0, 4)  # bug


def wrong_tile_axis(x: Any, i: Any) -> Any:
    return x.repeat_interleave(torch.tensor([1, 2, 3, 4]), dim=0)  # bug


def wrong_bincount(x: Any, i: Any) -> Any:
    return torch.bincount(i - 5)  # bug


def wrong_searchsorted(x: Any, i: Any) -> Any:
    return torch.searchsorted(x, torch.ones(5, 1))  # bug


def wrong_inverse(x: Any, i: Any) -> Any:
    square = x.T @ x * 0
    return torch.linalg.inv(square)  # bug


def wrong_eigh(x: Any, i: Any) -> Any:
    return torch.linalg.eigh(x)[0]  # bug


def wrong_fft_dim(x: Any, i: Any) -> Any:
    return torch.fft.rfft(x, dim=3).real  # bug


def wrong_stft(x: Any, i: Any) -> Any:
    return torch.stft(x, 16, return_complex=True).real  # bug


def wrong_cdist(x: Any, i: Any) -> Any:
    return torch.cdist(x, x[:, :2])  # bug


def wrong_late_division(x: Any, i: Any) -> Any:
    q = 7 // i  # bug
    return (x[0, 0] + q).sum()


def wrong_late_two_calls(x: Any, i: Any) -> Any:
    a, b = F.embedding(i, x), F.embedding(i + 3, x)  # bug
    return a + b


def wrong_late_put(x: Any, i: Any) -> Any:
    y = x.clone()
    y[i + 1, 0] = 5.0  # bug
    return y.sum()


def wrong_late_module(x: Any, i: Any) -> Any:
    class Lookup(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(3, 2)
            self.head = nn.Linear(2, 2)

        def forward(self, k: Any) -> Any:
            e = self.table(k)  # bug
            return self.head(e)

    return Lookup()(i + 2)


def wrong_buffer(x: Any, i: Any) -> Any:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.ones(5))

        def forward(self, v: Any) -> Any:
            return v + self.shift  # bug

    return Shifted()(x)


def wrong_checkpoint_inside(x: Any, i: Any) -> Any:
    def part(v: Any) -> Any:
        return v.index_select(1, i + 2).sum()  # bug

    return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)


def wrong_functional_call(x: Any, i: Any) -> Any:
    m = nn.Linear(3, 2)
    return torch.func.functional_call(m, {"weight": torch.ones(2, 4)}, (x,))  # bug


def wrong_autocast(x: Any, i: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x  # bug


def wrong_spectral(x: Any, i: Any) -> Any:
    m = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2))
    return m(x)  # bug


def wrong_pack_padded(x: Any, i: Any) -> Any:
    lstm = nn.LSTM(5, 2, batch_first=True)
    packed = nn.utils.rnn.pack_padded_sequence(x.reshape(1, 2, 3), [2], batch_first=True)
    return lstm(packed)[0].data  # bug


FUNCTIONS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
