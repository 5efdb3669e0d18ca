"""One bug planted in a line each, in functions that are transformed, composed, mapped and called by others."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import deque
from collections.abc import Iterator
from typing import Any

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


def bug_mean_over_batches(x: Any, i: Any) -> Any:
    def centred(rows: Any) -> Any:
        means = torch.stack([row.mean() for row in rows])
        return rows - means[:, None].expand(2, 4)  # bug

    return centred(x)


def bug_late_pick_after_sort(x: Any, i: Any) -> Any:
    order = torch.argsort(x, 1)
    best = torch.gather(x, 1, order + 2)  # bug
    return best.sum()


def bug_deque_of_states(x: Any, i: Any) -> Any:
    states = deque([x[0]], maxlen=2)
    for row in x:
        states.append(states[-1] * row)
    joined = torch.cat([*states, torch.ones(1, 3)])  # bug
    return joined


def bug_reduce_with_operator(x: Any, i: Any) -> Any:
    parts = [x, x * 2, x[:, :2]]
    return functools.reduce(operator.add, parts)  # bug


def bug_pairs_of_rows(x: Any, i: Any) -> Any:
    wide = torch.ones(2, 4)
    return sum(a @ b for a, b in itertools.product(x, wide))  # bug


def bug_starmap(x: Any, i: Any) -> Any:
    def affine(w: Any, b: Any) -> Any:
        return F.linear(x, w, b)  # bug

    return sum(
        itertools.starmap(affine, [(torch.ones(2, 3), torch.ones(2)), (torch.ones(2, 3), torch.ones(4))])
    )


def bug_generator_expression_late(x: Any, i: Any) -> Any:
    table = x.T * 2
    return sum(table[i + k].sum() for k in range(4))  # bug


def bug_generator_of_blocks(x: Any, i: Any) -> Any:
    def blocks(width: int) -> Iterator[Any]:
        for start in range(0, 3, width):
            yield x[:, start : start + width]

    total = torch.zeros(2, 2)
    for block in blocks(2):
        total = total + block @ torch.ones(2, 2)  # bug
    return total


def bug_lambda_in_a_table(x: Any, i: Any) -> Any:
    activations = {
        "relu": F.relu,
        "gate": lambda v: v * torch.sigmoid(v[:, :2]),  # bug
    }
    for activation in activations.values():
        x = activation(x)
    return x


def bug_vmap_of_linear(x: Any, i: Any) -> Any:
    w = torch.ones(4, 2)

    def row_product(row: Any) -> Any:
        return row @ w  # bug

    return torch.vmap(row_product)(x)


def bug_vmap_out_dims(x: Any, i: Any) -> Any:
    scaled = torch.vmap(lambda row: row * 2, out_dims=2)
    return scaled(x)  # bug


def bug_vmap_over_two_axes(x: Any, i: Any) -> Any:
    def outer(a: Any) -> Any:
        return torch.vmap(lambda b: b.reshape(2))(a)  # bug

    return torch.vmap(outer)(x.reshape(2, 3, 1))


def bug_vmap_late_class(x: Any, i: Any) -> Any:
    def loss(scores: Any, label: Any) -> Any:
        return F.cross_entropy(scores, label + 3)  # bug

    return torch.vmap(loss)(x, i)


def bug_gradient_of_a_vector(x: Any, i: Any) -> Any:
    def energy(v: Any) -> Any:
        return v.square().sum(1)

    return torch.func.grad(energy)(x)  # bug


def bug_gradient_of_gradient_late(x: Any, i: Any) -> Any:
    def inner(v: Any) -> Any:
        chosen = v.reshape(-1)[i * 7]  # bug
        return (chosen**3).sum()

    return torch.func.grad(lambda v: torch.func.grad(inner)(v).sum())(x)


def bug_tangent_of_other_shape(x: Any, i: Any) -> Any:
    def double(v: Any) -> Any:
        return v * 2

    return torch.func.jvp(double, (x,), (torch.ones(3, 2),))[1]  # bug


def bug_cotangent_of_other_shape(x: Any, i: Any) -> Any:
    value, pull = torch.func.vjp(lambda v: v.sum(1), x)
    return pull(torch.ones(3))[0] + value.sum()  # bug


def bug_jacobian_inside_of_vmap(x: Any, i: Any) -> Any:
    def field(p: Any) -> Any:
        rotation = torch.ones(2, 2)
        return rotation @ p  # bug

    return torch.vmap(torch.func.jacfwd(field))(x)


def bug_ensemble_of_parameters(x: Any, i: Any) -> Any:
    model = nn.Linear(3, 2)
    stacked = {"weight": torch.ones(4, 2, 3), "bias": torch.ones(4, 3)}

    def one(parameters: Any) -> Any:
        return torch.func.functional_call(model, parameters, (x,))  # bug

    return torch.vmap(one)(stacked)


def bug_scan_of_a_cell(x: Any, i: Any) -> Any:
    w = torch.ones(3, 3)

    def cell(h: Any, row: Any) -> Any:
        fresh = torch.tanh(h @ w + row[:2])  # bug
        return fresh, fresh

    return torch.scan(cell, torch.zeros(3), x)[1]


def bug_scan_late(x: Any, i: Any) -> Any:
    def cell(h: Any, pair: Any) -> Any:
        row, k = pair
        h = h + row[k * 4]  # bug
        return h, h

    return torch.scan(cell, torch.tensor(0.0), (x, i))[1]


def bug_while_late(x: Any, i: Any) -> Any:
    def body(k: Any, h: Any) -> Any:
        step = torch.index_select(x, 1, k.reshape(1)).sum()  # bug
        return k + 1, h + step

    return torch.while_loop(lambda k, h: k < 5, body, (torch.tensor(0), torch.tensor(0.0)))[1]


def bug_cond_dtypes(x: Any, i: Any) -> Any:
    def counted(v: Any) -> Any:
        return v.sum().long()  # bug

    return torch.cond(x.sum() > 0, counted, lambda v: v.sum(), (x,))


def bug_dataclass_like_state(x: Any, i: Any) -> Any:
    class State:
        def __init__(self, hidden: Any) -> None:
            self.hidden = hidden

        def __matmul__(self, other: Any) -> State:
            return State(self.hidden @ other)  # bug

    state = State(x)
    for width in (3, 2):
        state = state @ torch.ones(3, width)
    return (state @ torch.ones(3, 1)).hidden


def bug_iterator_protocol(x: Any, i: Any) -> Any:
    class Windows:
        def __init__(self, rows: Any) -> None:
            self.rows, self.at = rows, 0

        def __iter__(self) -> Windows:
            return self

        def __next__(self) -> Any:
            if self.at == 3:
                raise StopIteration
            self.at += 1
            return self.rows.narrow(1, self.at - 1, 2)  # bug

    return sum(window.sum() for window in Windows(x))


def bug_memoised_table(x: Any, i: Any) -> Any:
    @functools.cache
    def positions(width: int) -> Any:
        return torch.arange(width).reshape(2, -1).float()  # bug

    return x + positions(4).sum() + positions(3)


def bug_mixture_weights(x: Any, i: Any) -> Any:
    experts = [nn.Linear(3, 4) for _ in range(3)]
    weights = torch.softmax(x @ torch.ones(3, 2), -1)
    return torch.einsum("be,ebo->bo", weights, torch.stack([expert(x) for expert in experts]))  # bug


def bug_positions_too_long(x: Any, i: Any) -> Any:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(2, 3)

        def forward(self, v: Any) -> Any:
            where = torch.arange(v.shape[-1])
            return v + self.table(where)[:2]  # bug

    return nn.Sequential(nn.Linear(3, 3), Positions())(x)


def bug_unet_skip(x: Any, i: Any) -> Any:
    down = nn.Conv2d(1, 2, 3, padding=1)
    up = nn.ConvTranspose2d(2, 2, 2, stride=2)
    image = x.repeat(3, 2)[None, None, :5, :5]
    low = F.max_pool2d(down(image), 2)
    return torch.cat([down(image), up(low)], 1)  # bug


def bug_tied_weights(x: Any, i: Any) -> Any:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Linear(3, 2, bias=False)

        def forward(self, v: Any) -> Any:
            code = torch.relu(self.encode(v))
            return F.linear(code, self.encode.weight)  # bug

    return Tied()(x)


def bug_squeeze_then_index(x: Any, i: Any) -> Any:
    scores = x.unsqueeze(1).squeeze()
    return scores[:, 0, :]  # bug


def bug_mask_of_the_other_axis(x: Any, i: Any) -> Any:
    keep = x.sum(0) > 6
    return x[keep]  # bug


def bug_masked_write(x: Any, i: Any) -> Any:
    out = x.detach().clone()
    out[out > 2] = torch.ones(3)  # bug
    return out


def bug_scatter_late(x: Any, i: Any) -> Any:
    counts = torch.zeros(4)
    counts = counts.scatter_add(0, i * 5, torch.ones(2))  # bug
    return counts * x.sum()


def bug_one_hot_late(x: Any, i: Any) -> Any:
    wanted = F.one_hot(i, 1)  # bug
    return (wanted.float() * x.sum()).sum()


def bug_bucketed(x: Any, i: Any) -> Any:
    edges = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    where = torch.searchsorted(edges, x)  # bug
    return where * x


def bug_triangular_solve(x: Any, i: Any) -> Any:
    a = torch.tril(torch.ones(3, 3))
    return torch.linalg.solve_triangular(a, x, upper=False)  # bug


def bug_cholesky_late(x: Any, i: Any) -> Any:
    covariance = x.T @ x - torch.eye(3) * 9
    factor = torch.linalg.cholesky(covariance)  # bug
    return factor.sum()


def bug_complex_compare(x: Any, i: Any) -> Any:
    spectrum = torch.fft.fft(x)
    return torch.where(spectrum > 1, spectrum, 0).abs()  # bug


def bug_split_sizes(x: Any, i: Any) -> Any:
    query, key, value = torch.split(x, [1, 1, 2], dim=1)  # bug
    return query + key + value


def bug_unpack_heads(x: Any, i: Any) -> Any:
    heads = x.reshape(2, 3, 1).unbind(1)
    query, key = heads  # bug
    return query * key


def bug_helper_in_a_loop_of_helpers(x: Any, i: Any) -> Any:
    def normalise(v: Any, width: int) -> Any:
        return F.layer_norm(v, (width,))  # bug

    def block(v: Any, width: int) -> Any:
        return normalise(v, width) + v

    for width in (3, 3, 4):
        x = block(x, width)
    return x


def bug_conditional_expression(x: Any, i: Any) -> Any:
    flat = x.reshape(-1)
    return flat[i] if x.requires_grad and not x.is_leaf else flat.view(4, 2)  # bug


def bug_in_a_setter(x: Any, i: Any) -> Any:
    class Cell:
        @property
        def state(self) -> Any:
            return self._state

        @state.setter
        def state(self, value: Any) -> None:
            self._state = value.expand(2, 3, 4)  # bug

    cell = Cell()
    cell.state = x
    return cell.state


def bug_in_new_style_class_call(x: Any, i: Any) -> Any:
    class Projector:
        def __init__(self, *widths: int) -> None:
            self.layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]

        def __call__(self, v: Any) -> Any:
            for layer in self.layers:
                v = layer(v)  # bug
            return v

    projector = Projector(3, 4, 5)
    projector.layers[1] = nn.Linear(3, 5)
    return projector(x)


def bug_pad_circular(x: Any, i: Any) -> Any:
    image = x.reshape(1, 1, 2, 3)
    return F.pad(image, (4, 4, 0, 0), mode="circular")  # bug


def bug_pixel_shuffle(x: Any, i: Any) -> Any:
    image = x.reshape(1, 3, 2, 1)
    return F.pixel_shuffle(image, 2)  # bug


def bug_grid_sample(x: Any, i: Any) -> Any:
    image = x.reshape(1, 1, 2, 3)
    grid = torch.zeros(1, 2, 2)
    return F.grid_sample(image, grid, align_corners=False)  # bug


def bug_gumbel_dimension(x: Any, i: Any) -> Any:
    logits = x.log()
    return F.gumbel_softmax(logits, dim=2)  # bug


COMPOSITIONS: list[Any] = [found for name, found in dict(globals()).items() if name.startswith("bug_")]
