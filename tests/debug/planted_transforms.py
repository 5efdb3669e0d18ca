"""One bug planted in a line each: in transformed functions, bodies, masks, labels and writes to elements."""

from __future__ import annotations

from typing import Any

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


def wrong_view_backward(x: Any, i: Any) -> Any:
    y = x.transpose(0, 1)
    z = y.reshape(6)
    w = z.as_strided((2, 2), (1, 5), 3)  # bug
    return w * 2


def wrong_mask_attention(x: Any, i: Any) -> Any:
    q = x.reshape(1, 1, 2, 3)
    mask = torch.ones(3, 3, dtype=torch.bool)
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)  # bug


def wrong_key_padding(x: Any, i: Any) -> Any:
    m = nn.MultiheadAttention(3, 1, batch_first=True)
    q = x.reshape(1, 2, 3)
    return m(q, q, q, key_padding_mask=torch.zeros(2, 1, dtype=torch.bool))[0]  # bug


def wrong_conv_padding(x: Any, i: Any) -> Any:
    return F.conv1d(x.reshape(1, 2, 3), torch.ones(2, 2, 3), padding=-1)  # bug


def wrong_conv_padding_same_stride(x: Any, i: Any) -> Any:
    return F.conv1d(x.reshape(1, 2, 3), torch.ones(2, 2, 3), stride=2, padding="same")  # bug


def wrong_label_negative(x: Any, i: Any) -> Any:
    return F.cross_entropy(x, i - 1)  # bug


def wrong_vmap_late(x: Any, i: Any) -> Any:
    def one(row: Any, k: Any) -> Any:
        return row[k + 5]  # bug

    return torch.vmap(one)(x, i)


def wrong_vmap_in_dims(x: Any, i: Any) -> Any:
    return torch.vmap(lambda a: a * 2, in_dims=3)(x)  # bug


def wrong_vmap_bool(x: Any, i: Any) -> Any:
    def one(row: Any) -> Any:
        if row.sum() > 3:  # bug
            return row
        return row * 2

    return torch.vmap(one)(x)


def wrong_grad_late(x: Any, i: Any) -> Any:
    def loss(v: Any) -> Any:
        e = v.index_select(1, i + 2)  # bug
        return (e * e).sum()

    return torch.func.grad(loss)(x)


def wrong_grad_in_vmap(x: Any, i: Any) -> Any:
    def loss(row: Any) -> Any:
        w = torch.ones(4)
        return (row * w).sum()  # bug

    return torch.vmap(torch.func.grad(loss))(x)


def wrong_jacrev(x: Any, i: Any) -> Any:
    def f(v: Any) -> Any:
        return v @ torch.ones(2)  # bug

    return torch.func.jacrev(f)(x)


def wrong_hessian_late(x: Any, i: Any) -> Any:
    def f(v: Any) -> Any:
        return torch.take(v, i + 6).pow(2).sum()  # bug

    return torch.func.hessian(f)(x)


def wrong_jvp_late(x: Any, i: Any) -> Any:
    def f(v: Any) -> Any:
        return F.embedding(i + 4, v)  # bug

    return torch.func.jvp(f, (x,), (torch.ones(2, 3),))[1]


def wrong_cond_branch_late(x: Any, i: Any) -> Any:
    def yes(v: Any) -> Any:
        return torch.take(v, i + 6).sum()  # bug

    return torch.cond(x.sum() > 0, yes, lambda v: v.sum(), (x,))


def wrong_cond_shapes(x: Any, i: Any) -> Any:
    def yes(v: Any) -> Any:
        return v @ v  # bug

    return torch.cond(x.sum() > 0, yes, lambda v: v, (x,))


def wrong_scan_late(x: Any, i: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = c + torch.take(row, i + 2).sum()  # bug
        return c, c

    return torch.scan(step, torch.tensor(0.0), x)[1]


def wrong_scan_carry(x: Any, i: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        return c + row, c  # bug

    return torch.scan(step, torch.tensor(0.0), x)[1]


def wrong_scan_carry_that_goes_on(x: Any, i: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        wide = torch.cat([c, row])  # bug
        bent = wide.tanh()
        return bent * 2, row

    return torch.scan(step, x[0], x)[1]


def wrong_carry_that_goes_on(x: Any, i: Any) -> Any:
    def body(k: Any, h: Any) -> Any:
        exact = h.double()  # bug
        return k + 1, (exact * 2).sin()

    return torch.while_loop(lambda k, h: k < 3, body, (torch.tensor(0), x))[1]


def wrong_map_late(x: Any, i: Any) -> Any:
    def one(row: Any) -> Any:
        return row.gather(0, i + 2)  # bug

    return torch.func.vmap(one, chunk_size=1)(x)


def wrong_index_put_shape(x: Any, i: Any) -> Any:
    y = x.clone()
    y[:, i] = torch.ones(3, 2)  # bug
    return y


def wrong_masked_scatter(x: Any, i: Any) -> Any:
    y = x * 1
    y[x > 2] = torch.ones(7)  # bug
    return y


def wrong_max_pair(x: Any, i: Any) -> Any:
    where = x.max(1)[1]
    return x.gather(1, where)  # bug


def wrong_batchnorm_one(x: Any, i: Any) -> Any:
    return nn.BatchNorm1d(3)(x[:1])  # bug


def wrong_deep_module(x: Any, i: Any) -> Any:
    class Block(nn.Module):
        def __init__(self) -> Any:
            super().__init__()
            self.gate = nn.Linear(3, 3)
            self.table = nn.Embedding(2, 3)

        def forward(self, v: Any, k: Any) -> Any:
            h = torch.sigmoid(self.gate(v))
            return h * self.table(k + 1)  # bug

    class Net(nn.Module):
        def __init__(self) -> Any:
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])

        def forward(self, v: Any, k: Any) -> Any:
            for block in self.blocks:
                v = block(v, k)
            return v

    return Net()(x, i)


TRANSFORMS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
