"""Functions of tensors, as layers have them, with one bug planted in a line each."""

from __future__ import annotations

from typing import Any

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


def wrong_residual_broadcast(x: Any, i: Any) -> Any:
    h = torch.relu(x @ torch.ones(3, 4))
    return x + h  # bug


def wrong_dict_of_layers(x: Any, i: Any) -> Any:
    layers = nn.ModuleDict({"a": nn.Linear(3, 5), "b": nn.Linear(3, 2)})
    for _name, layer in layers.items():
        x = layer(x)  # bug
    return x


def wrong_reduce_keepdim(x: Any, i: Any) -> Any:
    m = x.mean(1)
    return x - m  # bug


def wrong_outer_index_late(x: Any, i: Any) -> Any:
    table = torch.arange(6.0).reshape(2, 3)
    rows = table.index_select(0, i + 1)  # bug
    return (rows * x).sum(0)


def wrong_advanced_index_late(x: Any, i: Any) -> Any:
    picked = x[i, i + 2]  # bug
    return picked.exp()


def wrong_chained(x: Any, i: Any) -> Any:
    return (
        x.relu()
        .reshape(3, 2)
        .matmul(torch.ones(3, 1))  # bug
        .sum()
    )


def wrong_slice_assign_late(x: Any, i: Any) -> Any:
    y = x * 1
    y[i + 1] = 0.0  # bug
    return y


def wrong_nested_closure(x: Any, i: Any) -> Any:
    def outer(k: Any) -> Any:
        def inner(v: Any) -> Any:
            return v.view(k, k)  # bug

        return inner

    return outer(4)(x)


def wrong_match_stmt(x: Any, i: Any) -> Any:
    match x.dim():
        case 2:
            y = x.softmax(5)  # bug
        case _:
            y = x
    return y


def wrong_star_args(x: Any, i: Any) -> Any:
    def add(*parts: Any) -> Any:
        total = parts[0]
        for p in parts[1:]:
            total = total + p  # bug
        return total

    return add(x, x * 2, x.T)


def wrong_zip_list(x: Any, i: Any) -> Any:
    ws = [torch.ones(3, 3), torch.ones(3, 2), torch.ones(3, 3)]
    for w, _ in zip(ws, range(3)):
        x = torch.tanh(x @ w)  # bug
    return x


def wrong_conv1d(x: Any, i: Any) -> Any:
    y = F.conv1d(x[None], torch.ones(4, 5, 2))  # bug
    return y


def wrong_bool_index_len(x: Any, i: Any) -> Any:
    return x[torch.tensor([True, False, True])]  # bug


def wrong_onehot_late(x: Any, i: Any) -> Any:
    codes = F.one_hot(i + 3, 4)  # bug
    return codes.float() @ torch.ones(4, 2)


def wrong_scatter_late(x: Any, i: Any) -> Any:
    z = torch.zeros(2, 3).scatter(1, (i + 2).reshape(2, 1), 1.0)  # bug
    return z + x


def wrong_nll_late(x: Any, i: Any) -> Any:
    logp = x.log_softmax(1)
    return F.nll_loss(logp, i + 2)  # bug


def wrong_gather_neg(x: Any, i: Any) -> Any:
    return x.gather(1, (i - 5).reshape(2, 1))  # bug


def wrong_cumsum_axis(x: Any, i: Any) -> Any:
    return x.cumsum(dim=-3)  # bug


def wrong_stack_mixed(x: Any, i: Any) -> Any:
    parts = [x[k] for k in range(2)] + [x.sum(1)]
    return torch.stack(parts)  # bug


def wrong_lazy_mask(x: Any, i: Any) -> Any:
    mask = x.sum(0) > 3
    return x.masked_fill(mask[:2], 0.0)  # bug


def wrong_int_matmul_float(x: Any, i: Any) -> Any:
    w = torch.arange(6).reshape(3, 2)
    return x @ w  # bug


def wrong_layernorm_module_inner(x: Any, i: Any) -> Any:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, v: Any) -> Any:
            return self.norm(v)  # bug

    class Mid(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, v: Any) -> Any:
            return self.inner(v) * 2

    class Top(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mid = nn.Sequential(Mid(), nn.ReLU())

        def forward(self, v: Any) -> Any:
            return self.mid(v)

    return Top()(x)


def wrong_unflatten(x: Any, i: Any) -> Any:
    return x.unflatten(1, (2, 2))  # bug


def wrong_repeat(x: Any, i: Any) -> Any:
    return x.repeat(2)  # bug


def wrong_lerp(x: Any, i: Any) -> Any:
    return torch.lerp(x, x.T, 0.5)  # bug


def wrong_take_late(x: Any, i: Any) -> Any:
    return torch.take(x, i + 5) * 2  # bug


def wrong_put_late(x: Any, i: Any) -> Any:
    y = x.clone()
    y.index_fill_(0, i + 1, 0.0)  # bug
    return y


def wrong_cat_dim(x: Any, i: Any) -> Any:
    return torch.cat((x, x), dim=2)  # bug


def wrong_embed_bag_off(x: Any, i: Any) -> Any:
    emb = nn.Embedding(2, 3)
    return emb(i * 2)  # bug


def wrong_dtype_where(x: Any, i: Any) -> Any:
    return torch.where(x, x, 0.0)  # bug


def wrong_bce_dtype(x: Any, i: Any) -> Any:
    return F.binary_cross_entropy_with_logits(x, (x > 2).double()[:, :2])  # bug


def wrong_rnn_module(x: Any, i: Any) -> Any:
    rnn = nn.RNN(4, 5)
    out, _h = rnn(x[None])  # bug
    return out


def wrong_scan_user(x: Any, i: Any) -> Any:
    total = torch.zeros(3)
    for row in x:
        total = total + row[:2]  # bug
    return total


def wrong_pow_int_neg(x: Any, i: Any) -> Any:
    return i**-1  # bug


def wrong_solve_late(x: Any, i: Any) -> Any:
    a = torch.ones(2, 2) * x[0, 0]
    s = torch.linalg.solve(a, x)  # bug
    return s.sum()


def wrong_chol_late(x: Any, i: Any) -> Any:
    cov = -(x @ x.T)
    l = torch.linalg.cholesky(cov)  # bug
    return l.diagonal().log().sum()


LAYERS: list[Any] = [
    wrong_residual_broadcast,
    wrong_dict_of_layers,
    wrong_reduce_keepdim,
    wrong_outer_index_late,
    wrong_advanced_index_late,
    wrong_chained,
    wrong_slice_assign_late,
    wrong_nested_closure,
    wrong_match_stmt,
    wrong_star_args,
    wrong_zip_list,
    wrong_conv1d,
    wrong_bool_index_len,
    wrong_onehot_late,
    wrong_scatter_late,
    wrong_nll_late,
    wrong_gather_neg,
    wrong_cumsum_axis,
    wrong_stack_mixed,
    wrong_lazy_mask,
    wrong_int_matmul_float,
    wrong_layernorm_module_inner,
    wrong_unflatten,
    wrong_repeat,
    wrong_lerp,
    wrong_take_late,
    wrong_put_late,
    wrong_cat_dim,
    wrong_embed_bag_off,
    wrong_dtype_where,
    wrong_bce_dtype,
    wrong_rnn_module,
    wrong_scan_user,
    wrong_pow_int_neg,
    wrong_solve_late,
    wrong_chol_late,
]
