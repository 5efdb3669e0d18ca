"""Calls on tensors with one bug planted in a line each: functions of a matrix and of two indices."""

from __future__ import annotations

from typing import Any

import twofold as torch
from twofold import nn
from twofold.nn import functional as F

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 5)
        self.b = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        h = torch.relu(self.a(x))
        return self.b(h)  # bug of wrong_deep


def wrong_linear(x: Any, i: Any) -> Any:
    m = nn.Linear(4, 2)
    return m(x)  # bug


def wrong_deep(x: Any, i: Any) -> Any:
    return Deep()(x)


def wrong_mm_vec(x: Any, i: Any) -> Any:
    return torch.mv(x, i.float())  # bug


def wrong_bmm(x: Any, i: Any) -> Any:
    return torch.bmm(x, x)  # bug


def wrong_stack(x: Any, i: Any) -> Any:
    return torch.stack([x, x[0]])  # bug


def wrong_view(x: Any, i: Any) -> Any:
    return x.view(4, -1)  # bug


def wrong_squeeze(x: Any, i: Any) -> Any:
    return x.squeeze(5)  # bug


def wrong_unsqueeze(x: Any, i: Any) -> Any:
    return x.unsqueeze(9)  # bug


def wrong_expand(x: Any, i: Any) -> Any:
    return x.expand(3, 3)  # bug


def wrong_transpose(x: Any, i: Any) -> Any:
    return x.transpose(0, 2)  # bug


def wrong_index_list(x: Any, i: Any) -> Any:
    return x[[0, 1, 2]]  # bug


def wrong_index_int(x: Any, i: Any) -> Any:
    return x[5]  # bug


def wrong_index_many(x: Any, i: Any) -> Any:
    return x[0, 0, 0]  # bug


def wrong_index_str(x: Any, i: Any) -> Any:
    return x["a"]  # bug


def wrong_index_float(x: Any, i: Any) -> Any:
    return x[1.5]  # bug


def wrong_mask(x: Any, i: Any) -> Any:
    return x[torch.tensor([True, False, True])]  # bug


def wrong_setitem(x: Any, i: Any) -> Any:
    y = x * 1
    y[0] = torch.ones(4)  # bug
    return y


def wrong_setitem_index(x: Any, i: Any) -> Any:
    y = x * 1
    y[torch.tensor([0, 8])] = 1.0  # bug
    return y


def wrong_add_str(x: Any, i: Any) -> Any:
    return x + "a"  # bug


def wrong_add_none(x: Any, i: Any) -> Any:
    return x * None  # bug


def wrong_add_list(x: Any, i: Any) -> Any:
    return x + [1, 2]  # bug


def wrong_attr(x: Any, i: Any) -> Any:
    return x.foo  # bug


def wrong_typo(x: Any, i: Any) -> Any:
    return torch.softmaxx(x, 1)  # bug


def wrong_kwarg(x: Any, i: Any) -> Any:
    return torch.sum(x, axes=1)  # bug


def wrong_missing_arg(x: Any, i: Any) -> Any:
    return torch.gather(x, 0)  # bug


def wrong_method_kwarg(x: Any, i: Any) -> Any:
    return x.mean(dimm=0)  # bug


def wrong_forward_args(x: Any, i: Any) -> Any:
    m = nn.Linear(3, 2)
    return m(x, x)  # bug


def wrong_module_args(x: Any, i: Any) -> Any:
    class M(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    return M()(x)  # bug


def wrong_module_none(x: Any, i: Any) -> Any:
    m = nn.Linear(3, 2)
    return m(None)  # bug


def wrong_module_str(x: Any, i: Any) -> Any:
    return nn.Conv2d(1, 2, 3)("x")  # bug


def wrong_conv_kernel(x: Any, i: Any) -> Any:
    return F.conv2d(x.reshape(1, 1, 2, 3), torch.ones(1, 1, 5, 5))  # bug


def wrong_conv_groups(x: Any, i: Any) -> Any:
    return F.conv1d(x.reshape(1, 2, 3), torch.ones(3, 1, 1), groups=2)  # bug


def wrong_pool(x: Any, i: Any) -> Any:
    return F.max_pool2d(x.reshape(1, 1, 2, 3), 4)  # bug


def wrong_bn(x: Any, i: Any) -> Any:
    return nn.BatchNorm1d(5)(x)  # bug


def wrong_bn2(x: Any, i: Any) -> Any:
    return nn.BatchNorm2d(3)(x)  # bug


def wrong_ln(x: Any, i: Any) -> Any:
    return F.layer_norm(x, (4,))  # bug


def wrong_emb_float(x: Any, i: Any) -> Any:
    return nn.Embedding(4, 2)(x)  # bug


def wrong_ce_float(x: Any, i: Any) -> Any:
    return F.cross_entropy(x, torch.tensor([0.5, 1.0]))  # bug


def wrong_nll(x: Any, i: Any) -> Any:
    return F.nll_loss(x, torch.tensor([1, 2, 3]))  # bug


def wrong_bce(x: Any, i: Any) -> Any:
    return F.binary_cross_entropy(torch.sigmoid(x), torch.ones(2))  # bug


def wrong_mse(x: Any, i: Any) -> Any:
    return F.mse_loss(x, torch.ones(2, 4))  # bug


def wrong_kl(x: Any, i: Any) -> Any:
    return F.kl_div(x, torch.ones(5))  # bug


def wrong_reduction(x: Any, i: Any) -> Any:
    return F.mse_loss(x, x, reduction="average")  # bug


def wrong_cosine(x: Any, i: Any) -> Any:
    return F.cosine_embedding_loss(x, x, torch.ones(5))  # bug


def wrong_onehot(x: Any, i: Any) -> Any:
    return F.one_hot(i + 3, 3)  # bug


def wrong_einsum(x: Any, i: Any) -> Any:
    return torch.einsum("ij,jk->ik", x, x)  # bug


def wrong_einsum_str(x: Any, i: Any) -> Any:
    return torch.einsum("ij,jk->il", x, x.T)  # bug


def wrong_topk(x: Any, i: Any) -> Any:
    return torch.topk(x, 7)[0]  # bug


def wrong_sort(x: Any, i: Any) -> Any:
    return torch.sort(x, dim=4)[0]  # bug


def wrong_split(x: Any, i: Any) -> Any:
    return torch.split(x, [1, 3])[0]  # bug


def wrong_chunk(x: Any, i: Any) -> Any:
    return torch.chunk(x, 0)[0]  # bug


def wrong_where_shape(x: Any, i: Any) -> Any:
    return torch.where(x > 0, x, torch.ones(4))  # bug


def wrong_clamp(x: Any, i: Any) -> Any:
    return torch.clamp(x)  # bug


def wrong_scatter(x: Any, i: Any) -> Any:
    return torch.scatter(x, 0, torch.tensor([[9, 0, 0]]), 1.0)  # bug


def wrong_index_add(x: Any, i: Any) -> Any:
    return x.index_add(0, torch.tensor([0, 7]), x)  # bug


def wrong_cholesky(x: Any, i: Any) -> Any:
    return torch.linalg.cholesky(-(x @ x.T))  # bug


def wrong_solve(x: Any, i: Any) -> Any:
    return torch.linalg.solve(x, x)  # bug


def wrong_logical(x: Any, i: Any) -> Any:
    return x & x  # bug


def wrong_shift(x: Any, i: Any) -> Any:
    return x << 2  # bug


def wrong_dtype(x: Any, i: Any) -> Any:
    return x.to("floaty")  # bug


def wrong_ambiguous(x: Any, i: Any) -> Any:
    if x > 0:  # bug
        return x
    return x + 1


def wrong_item(x: Any, i: Any) -> Any:
    return x * x.item()  # bug


def wrong_int(x: Any, i: Any) -> Any:
    return x * int(x)  # bug


def wrong_dropout(x: Any, i: Any) -> Any:
    return F.dropout(x, 1.5)  # bug


def wrong_pad(x: Any, i: Any) -> Any:
    return F.pad(x, (1,))  # bug


def wrong_roll(x: Any, i: Any) -> Any:
    return torch.roll(x, 1, 7)  # bug


def wrong_flatten(x: Any, i: Any) -> Any:
    return torch.flatten(x, 3)  # bug


def wrong_zeros(x: Any, i: Any) -> Any:
    return x + torch.zeros(-1)  # bug


def wrong_arange(x: Any, i: Any) -> Any:
    return torch.arange(0, 5, 0)  # bug


def wrong_full(x: Any, i: Any) -> Any:
    return torch.full((2,))  # bug


def wrong_tensor_ragged(x: Any, i: Any) -> Any:
    return x + torch.tensor([[1, 2], [3]])  # bug


def wrong_tensor_obj(x: Any, i: Any) -> Any:
    return torch.tensor(object())  # bug


def wrong_lstm(x: Any, i: Any) -> Any:
    return nn.LSTM(4, 2)(x)[0]  # bug


def wrong_lstm_hidden(x: Any, i: Any) -> Any:
    return nn.LSTM(3, 2)(x, (torch.zeros(1, 5), torch.zeros(1, 5)))[0]  # bug


def wrong_mha(x: Any, i: Any) -> Any:
    return nn.MultiheadAttention(4, 2)(x, x, x)[0]  # bug


def wrong_mha_heads(x: Any, i: Any) -> Any:
    m = nn.MultiheadAttention(5, 2)  # bug
    return m(x, x, x)


def wrong_sdpa(x: Any, i: Any) -> Any:
    return F.scaled_dot_product_attention(x, x, torch.ones(5, 3))  # bug


def wrong_seq_index(x: Any, i: Any) -> Any:
    return nn.Sequential(nn.Linear(3, 3))[4](x)  # bug


def wrong_modulelist(x: Any, i: Any) -> Any:
    return nn.ModuleList([nn.Linear(3, 3)])(x)  # bug


def wrong_noforward(x: Any, i: Any) -> Any:
    class M(nn.Module):
        pass

    return M()(x)  # bug


def wrong_loop_carry(x: Any, i: Any) -> Any:
    def body(k: Any, h: Any) -> Any:
        return k + 1, h[0]  # bug

    return torch.while_loop(lambda k, h: k < 3, body, (torch.tensor(0), x))[1]


def wrong_loop_index(x: Any, i: Any) -> Any:
    t = x[0]

    def body(k: Any, h: Any) -> Any:
        v = torch.take(t, k * 2)  # bug
        return k + 1, h + v

    return torch.while_loop(lambda k, h: k < 4, body, (torch.tensor(0), torch.tensor(0.0)))[1]


def wrong_loop_count(x: Any, i: Any) -> Any:
    def body(k: Any, h: Any) -> Any:
        return k + 1  # bug

    return torch.while_loop(lambda k, h: k < 3, body, (torch.tensor(0), x))[1]


def wrong_cond(x: Any, i: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), (x,))  # bug


def wrong_vmap(x: Any, i: Any) -> Any:
    return torch.vmap(lambda r: r @ torch.ones(4))(x)  # bug


def wrong_vmap_dim(x: Any, i: Any) -> Any:
    return torch.vmap(lambda a, b: a + b)(x, torch.ones(5, 3))  # bug


def wrong_grad_nonscalar(x: Any, i: Any) -> Any:
    return torch.func.grad(lambda x: x * 2)(x)  # bug


def wrong_py_error(x: Any, i: Any) -> Any:
    d = {"a": x}
    return d["b"]  # bug


def wrong_py_zero(x: Any, i: Any) -> Any:
    n = 0
    return x / (1 // n)  # bug


def wrong_late_then(x: Any, i: Any) -> Any:
    y = x.index_select(1, i + 5)  # bug
    z = torch.relu(y)
    for _ in range(4):
        z = z * 2 + 1
    return z.sum()


def wrong_late_helper(x: Any, i: Any) -> Any:
    def helper(t: Any, idx: Any) -> Any:
        a = t * 2
        return a.gather(1, idx)  # bug

    return helper(x, i.reshape(2, 1) + 7).sum()


def wrong_late_comp(x: Any, i: Any) -> Any:
    ys = [x[k][i + 9] for k in range(2)]  # bug
    return torch.stack(ys)


def wrong_int_div(x: Any, i: Any) -> Any:
    return i // (i - i)  # bug


def wrong_late_lambda(x: Any, i: Any) -> Any:
    f = lambda v: torch.take(v, i + 100)  # bug
    return f(x).exp()


def wrong_late_multiline(x: Any, i: Any) -> Any:
    y = F.embedding(  # bug
        i + 50,
        x,
    )
    return y


CALLS = [one for name, one in list(globals().items()) if name.startswith("wrong_")]
