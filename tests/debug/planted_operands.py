"""Programs with one bug planted in a line each, whose error has to name the operands that the line's comment lists."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy

import twofold as torch
import twofold.static as tf
from twofold import dynet as dy
from twofold import nn
from twofold.nn import functional as F
from twofold.utils import checkpoint

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def rows() -> Any:
    return torch.tensor(X)


def bug_three_functions_deep(x: Any) -> Any:
    def inner(left: Any, right: Any) -> Any:
        def deeper() -> Any:
            return left @ right  # bug with left, right

        return deeper()

    return inner(x, x * 2)


def bug_in_a_module_of_a_module(x: Any) -> Any:
    class Inner(nn.Module):
        def forward(self, v: Any) -> Any:
            scale = torch.ones(2)
            return v * scale  # bug with v, scale

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Identity(), Inner())

        def forward(self, v: Any) -> Any:
            return self.inner(v)

    return Outer()(x)


def bug_in_a_generator(x: Any) -> Any:
    def parts() -> Any:
        ones = torch.ones(2)
        for row in x:
            yield row @ ones  # bug with row, ones

    return sum(parts())


def bug_in_a_recursion(x: Any) -> Any:
    def down(v: Any, n: int) -> Any:
        where = torch.tensor([0, 5])
        return v.index_select(1, where) if n == 0 else down(v * 2, n - 1)  # bug with v, where

    return down(x, 3)


def bug_in_a_checkpoint(x: Any) -> Any:
    def part(v: Any) -> Any:
        return v @ v  # bug with v

    return checkpoint.checkpoint(part, x, use_reentrant=False)


def bug_of_an_attention(x: Any) -> Any:
    q = x.reshape(1, 2, 3)
    k = q[:, :, :2]
    return F.scaled_dot_product_attention(q, k, q)  # bug with q, k


def bug_in_a_classes_loss(x: Any) -> Any:
    scores, targets = F.log_softmax(x, 1), torch.tensor([0, 5])
    return F.nll_loss(scores, targets)  # bug with scores, targets


def bug_of_a_mask(x: Any) -> Any:
    attention, q = nn.MultiheadAttention(3, 1, batch_first=True), x[None]
    return attention(q, q, q, attn_mask=torch.zeros(3, 3))[0]  # bug with (3, 3), (2, 2), q: float32[1,2,3]


def bug_inside_a_loss(x: Any) -> Any:
    signs = [torch.ones(2), torch.ones(3)]
    return F.cosine_embedding_loss(x, x, signs[1])  # bug with x: float32[2,3], signs[1]: float32[3]


def bug_of_integers_dropped(x: Any) -> Any:
    counts = x.long()
    return F.dropout(counts, 0.5)  # bug with dropout, int64, counts: int64[2,3]


def bug_of_a_reduction_by_a_function(x: Any) -> Any:
    parts = [x, x * 2, x[:, :2]]
    return functools.reduce(operator.add, parts)  # bug with parts[2], input: float32[2,3]


def bug_of_what_a_loop_goes_over(x: Any) -> Any:
    words, total = nn.Embedding(6, 3), x.sum()
    for token in torch.tensor([[1, 2], [3, 6]]):
        total = total + words(token).sum()  # bug with token: int64[2] [3 6]
    return total


CALLS = [
    bug_of_a_reduction_by_a_function,
    bug_of_what_a_loop_goes_over,
    bug_three_functions_deep,
    bug_in_a_module_of_a_module,
    bug_in_a_generator,
    bug_in_a_recursion,
    bug_in_a_checkpoint,
    bug_of_an_attention,
    bug_in_a_classes_loss,
    bug_of_a_mask,
    bug_inside_a_loss,
    bug_of_integers_dropped,
]


def bug_a_gradient_assigned() -> None:
    parameter = nn.Parameter(torch.ones(2, 3))
    wrong = torch.ones(3)
    parameter.grad = wrong  # bug with float32[3], float32[2,3], planted_operands.py


def bug_features_of_an_lstm() -> None:
    net = nn.LSTM(3, 4)
    net(torch.ones(5, 2, 7))  # bug with input float32[5,2,7], weight float32[16,3], planted_operands.py


def bug_in_a_custom_backward() -> None:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g @ b, a.T @ g  # bug with g, b

    Product.apply(rows().requires_grad_(), torch.ones(3, 4, requires_grad=True)).sum().backward()


def bug_in_a_hook_of_an_inner_module() -> None:
    def hook(module: Any, given: Any, out: Any) -> Any:
        square = torch.ones(2, 2)
        return out @ square  # bug with out, square

    net = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3)))
    net[1][0].register_forward_hook(hook)  # type: ignore[index]
    net(rows())


def bug_of_columns() -> None:
    a, b = dy.inputVector([1, 2, 3]), dy.inputVector([1, 2])
    dy.concatenate_cols([a, b]).npvalue()  # bug with concatenate_cols, (3,), (2,), planted_operands.py


def bug_of_a_builder() -> None:
    state = dy.LSTMBuilder(1, 3, 4, dy.ParameterCollection()).initial_state()
    x = dy.inputVector([1, 2])
    state.add_input(x).output().npvalue()  # bug with (2,), (3,), x: float32 (2,), VanillaLSTMBuilder


def bug_of_a_state() -> None:
    rnn, h = nn.GRU(3, 4), torch.zeros(1, 5, 4)
    rnn(torch.ones(5, 2, 3), h)  # bug with (1, 2, 4), [1, 5, 4], h: float32[1,5,4]


def bug_of_a_rate_of_a_group() -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    optimizer.param_groups[0]["lr"] = "0.1"
    weight.sum().backward()
    optimizer.step()  # bug with lr='0.1' is of type str


def bug_of_a_product() -> None:
    matrix, weights = dy.inputTensor(X), dy.transpose(dy.inputVector([0.5, 0.5, 0]))
    mixed = matrix * weights  # bug with matrix: float32 (2, 3) [[1. 2. 3.], weights: float32 (1, 3)
    mixed.npvalue()


def bug_of_an_affine_transform() -> None:
    b, w, x = dy.inputVector([0, 0]), dy.inputTensor(X), dy.inputVector([1, 2])
    dy.affine_transform(
        [b, w, x]
    ).npvalue()  # bug with 3 columns against 2 rows, w: float32 (2, 3), x: float32 (2,)


def bug_of_an_initial_state() -> None:
    builder, h = dy.GRUBuilder(1, 3, 4, dy.ParameterCollection()), dy.inputVector([1, 2])
    builder.initial_state([h])  # bug with (4,), h: float32 (2,) [1. 2.]


PROGRAMS = [
    bug_a_gradient_assigned,
    bug_features_of_an_lstm,
    bug_in_a_custom_backward,
    bug_in_a_hook_of_an_inner_module,
    bug_of_columns,
    bug_of_a_builder,
    bug_of_a_state,
    bug_of_a_rate_of_a_group,
    bug_of_a_product,
    bug_of_an_affine_transform,
    bug_of_an_initial_state,
]


def bug_in_a_loop_in_a_loop() -> Any:
    x = tf.placeholder(tf.float32, [3])

    def inner(j: Any, s: Any) -> Any:
        where = j + 2
        return j + 1, s + tf.gather(x, where)  # bug with x, where

    def outer(i: Any, s: Any) -> Any:
        _, s = tf.while_loop(lambda j, s: j < 2, inner, [0, s])
        return i + 1, s

    return tf.while_loop(lambda i, s: i < 2, outer, [0, 0.0]), {x: [1, 2, 3]}


def bug_in_a_scan() -> Any:
    x = tf.placeholder(tf.float32, [3, 2])

    def step(carry: Any, row: Any) -> Any:
        weights, wide = tf.ones([3, 2]), carry[None]
        mixed = tf.matmul(wide, weights)  # bug with ones:0, float32[1,2], float32[3,2]
        return mixed[0] + row

    return tf.scan(step, x, initializer=tf.zeros([2])), {x: numpy.ones((3, 2))}


def bug_in_a_custom_gradient() -> Any:
    x = tf.placeholder(tf.float32, [2, 3])

    @tf.custom_gradient
    def doubled(v: Any) -> Any:
        def gradient(g: Any) -> Any:
            square = tf.ones([2, 2])
            return g @ square  # bug with g, square

        return v * 2.0, gradient

    return tf.gradients(doubled(x), [x]), {x: X}


def bug_of_sizes_of_a_run() -> Any:
    x, w = tf.placeholder(tf.float32, [None, None]), tf.constant([[1.0], [2.0]])
    h = x * 2.0
    y = tf.matmul(h, w)  # bug with h, w
    return y, {x: X}


def bug_of_a_declared_product() -> Any:
    class Net:
        def __init__(self) -> None:
            self.w = tf.get_variable("w", [4, 2])

        def __call__(self, x: Any) -> Any:
            return tf.matmul(x, self.w)  # bug with x: float32[?,3], self.w: float32[4,2]

    return Net()(tf.placeholder(tf.float32, [None, 3])), {}


def bug_of_two_dtypes() -> Any:
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [3])
    return x + n, {}  # bug with x: float32[3], n: int32[3]


def bug_of_a_loss() -> Any:
    y, labels = tf.placeholder(tf.float32, [None, 1]), tf.ones([2, 3])
    return tf.losses.mean_squared_error(labels, y), {}  # bug with labels: float32[2,3], y: float32[?,1]


def bug_of_a_feed() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    tf.get_default_session().run(x, {x: numpy.ones((2, 4))})  # bug with float64[2,4], x: float32[?,3]


def bug_of_a_reshape_of_a_run() -> Any:
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.reshape(x, [-1, 3]), {x: numpy.ones((2, 4))}  # bug with 8 elements, (-1, 3), x: float32[2,4]


def bug_of_a_depth_of_a_run() -> Any:
    classes, depth = tf.placeholder(tf.int32, [1]), tf.placeholder(tf.int32, [])
    row = tf.one_hot(classes, depth)  # bug with one_hot, a size is negative in (-2,)
    return row, {classes: [1], depth: -2}


def bug_of_a_size_of_a_run() -> Any:
    n = tf.placeholder(tf.int32, [])
    return tf.random_normal([n]), {n: -2}  # bug with a size is negative in (-2,)


def bug_of_one_gradient() -> Any:
    gradient = tf.ones([2])
    tf.clip_by_global_norm(gradient, 1.0)  # bug with sequence of tensors, gradient: float32[2]


GRAPHS = [
    one for name, one in list(globals().items()) if name.startswith("bug_") and one not in CALLS + PROGRAMS
]
