"""Softmax, losses, normalisation, attention and update rules against hand-written formulas."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from on_nodes import gradients, run, same
from scipy import special

import twofold as torch
from twofold.dtypes import float32, float64, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.interpret import evaluate
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.ops.loss.class_losses import REDUCTIONS
from twofold.transforms.reverse import closed_graph, vjp_of

G = numpy.random.default_rng(4)
X = G.normal(size=(4, 5))
T = numpy.array([1, 4, 0, 2])


def own_gradient(name: str, attrs: tuple[Any, ...], arrays: list[Any]) -> list[Any]:
    """Gradients of the sum of a call by the entry's own rule."""
    types = [
        tensor_type(int64 if a.dtype.kind == "i" else float64, a.shape) for a in map(numpy.asarray, arrays)
    ]
    op: Any = REGISTRY[name]
    graph = closed_graph(op, attrs, types)
    value = evaluate(graph, arrays)[0]
    result = []
    for index, type in enumerate(types):
        found = vjp_of(op, attrs, graph, index) if type.dtype is float64 and type.shape else None
        if found is None:
            result.append(None)
            continue
        known = {"cotangent": numpy.ones(value.shape), "output": value}
        given = [known[what] if isinstance(what, str) else arrays[what] for what in found[1]]
        result.append(evaluate(found[0], given)[0])
    return result


def test_softmax_survives_large_scores() -> None:
    x = numpy.array([[1000.0, 0.0, -1000.0], [-1e30, -1e30, -1e30], [-numpy.inf, 1.0, 2.0]])
    same(lambda x: ops.softmax(x, -1), lambda x: special.softmax(x, -1), x)
    same(lambda x: ops.log_softmax(x, dim=1), lambda x: special.log_softmax(x, 1), x)


@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax, ops.softmin, ops.glu])
def test_softmax_gradients(function: Any) -> None:
    gradients(lambda x: function(x, 1), G.normal(size=(3, 4)))
    gradients(lambda x: function(x, 0), G.normal(size=(4, 3)))


def log_p(x: Any) -> Any:
    return special.log_softmax(x, 1)


def rows(x: Any, t: Any, w: Any, ignore: int, smoothing: float) -> tuple[Any, Any]:
    keep = t != ignore
    safe = numpy.where(keep, t, 0)
    each = -log_p(x)[numpy.arange(len(t)), safe] * w[safe]
    even = -(log_p(x) * w).sum(1) / x.shape[1]
    return numpy.where(keep, (1 - smoothing) * each + smoothing * even, 0), numpy.where(keep, w[safe], 0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction: str, weighted: bool, smoothing: float) -> None:
    weight = numpy.array([0.5, 1.0, 2.0, 0.1, 3.0]) if weighted else None
    target = numpy.array([1, -100, 0, 4])
    each, weights = rows(X, target, numpy.ones(5) if weight is None else weight, -100, smoothing)
    wanted = {"none": each, "sum": each.sum(), "mean": each.sum() / weights.sum()}[reduction]

    def call(x: Any, t: Any, *w: Any) -> Any:
        return ops.cross_entropy(x, t, *w, reduction=reduction, label_smoothing=smoothing)

    arrays = [X, target] + ([weight] if weighted else [])
    numpy.testing.assert_allclose(run(call, *arrays), wanted, rtol=1e-12)
    gradients(lambda x, t: call(x, t, *([weight_node(x, weight)] if weighted else [])), X, target)


def weight_node(like: Any, weight: Any) -> Any:
    """A vector of constants."""
    return ops.stack([constant(float(value), like.dtype) for value in weight])


def test_cross_entropy_gradient_is_softmax_minus_target() -> None:
    plain = [X, T, numpy.array(-100), numpy.array(0.0)]
    got = own_gradient("cross_entropy", ("mean", False, False), plain)[0]
    numpy.testing.assert_allclose(got, (special.softmax(X, 1) - numpy.eye(5)[T]) / 4, atol=1e-15)
    ignored = [X, numpy.array([1, -100, 0, -100]), numpy.array(-100), numpy.array(0.0)]
    got = own_gradient("cross_entropy", ("mean", False, False), ignored)[0]
    assert not got[1].any() and not got[3].any()
    numpy.testing.assert_allclose(got[0], (special.softmax(X, 1) - numpy.eye(5)[T])[0] / 2, atol=1e-15)


def test_cross_entropy_of_more_axes_and_probabilities() -> None:
    x, t = G.normal(size=(2, 3, 4)), G.integers(0, 3, (2, 4))
    wanted = -numpy.take_along_axis(special.log_softmax(x, 1), t[:, None], 1)[:, 0]
    same(lambda x, t: ops.cross_entropy(x, t, reduction="none"), lambda x, t: wanted, x, t)
    q = special.softmax(G.normal(size=(2, 3, 4)), 1)
    same(ops.cross_entropy, lambda x, q: -(q * special.log_softmax(x, 1)).sum() / 8, x, q)
    gradients(ops.cross_entropy, x, q)
    same(lambda x, t: ops.nll_loss(ops.log_softmax(x, 1), t), lambda x, t: wanted.mean(), x, t)


def test_a_number_that_is_no_class_is_an_error() -> None:
    for number in (5, -1, -100000):
        with pytest.raises(IndexError, match=f"class {number} does not exist"):
            run(ops.cross_entropy, X, numpy.array([0, 1, number, 2]))
    assert numpy.isfinite(
        run(lambda x, t: ops.cross_entropy(x, t, ignore_index=-1), X, numpy.array([0, 1, -1, 2]))
    )


def test_cross_entropy_is_built_quickly() -> None:
    types = [
        tensor_type(float32, (64, 10)),
        tensor_type(int64, (64,)),
        tensor_type(int64, (), True),
        tensor_type(float64, (), True),
    ]
    op = REGISTRY["cross_entropy"]
    keep = [closed_graph(op, ("mean", False, False), types)]
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        keep.append(closed_graph(op, ("mean", False, False), types))
        best = min(best, time.perf_counter() - start)
    assert best < 1.5e-3  # 0.25 ms on an idle core


def test_tensorflow_faces() -> None:
    same(ops.sparse_softmax_cross_entropy_with_logits, lambda t, x: -log_p(x)[numpy.arange(4), t], T, X)
    q = special.softmax(G.normal(size=(4, 5)), 1)
    same(ops.softmax_cross_entropy_with_logits, lambda q, x: -(q * log_p(x)).sum(1), q, X)


def test_half_types_are_computed_in_float32() -> None:
    x = numpy.full((1, 70000), 1.0, numpy.float16)  # the sum of exponentials overflows float16
    assert run(lambda x: ops.log_softmax(x, 1), x).dtype == numpy.float16
    numpy.testing.assert_allclose(run(lambda x: ops.log_softmax(x, 1), x)[0, 0], -numpy.log(70000), rtol=1e-3)


A, B = G.uniform(0.05, 0.95, (3, 4)), G.uniform(0.05, 0.95, (3, 4))
LOSSES: list[tuple[Any, Any]] = [
    (ops.mse_loss, lambda x, t: ((x - t) ** 2).mean()),
    (ops.l1_loss, lambda x, t: abs(x - t).mean()),
    (lambda x, t: ops.huber_loss(x, t, delta=0.3), lambda x, t: special.huber(0.3, x - t).mean()),
    (lambda x, t: ops.smooth_l1_loss(x, t, beta=0.3), lambda x, t: (special.huber(0.3, x - t) / 0.3).mean()),
    (lambda x, t: ops.smooth_l1_loss(x, t, beta=0), lambda x, t: abs(x - t).mean()),
    (ops.binary_cross_entropy, lambda x, t: -(t * numpy.log(x) + (1 - t) * numpy.log(1 - x)).mean()),
    (
        ops.binary_cross_entropy_with_logits,
        lambda x, t: -(t * numpy.log(special.expit(x)) + (1 - t) * numpy.log(special.expit(-x))).mean(),
    ),
    (lambda x, t: ops.kl_div(ops.log(x), t, reduction="sum"), lambda x, t: special.rel_entr(t, x).sum()),
    (
        lambda x, t: ops.cosine_similarity(x, t),
        lambda x, t: (x * t).sum(1) / numpy.linalg.norm(x, axis=1) / numpy.linalg.norm(t, axis=1),
    ),
    (
        lambda x, t: ops.normalize(x + t, dim=1),
        lambda x, t: (x + t) / numpy.linalg.norm(x + t, axis=1, keepdims=True),
    ),
]


@pytest.mark.parametrize("case", range(len(LOSSES)))
def test_losses(case: int) -> None:
    mine, exact = LOSSES[case]
    same(mine, exact, A, B)
    gradients(mine, A, B)


def test_binary_cross_entropy_at_the_ends() -> None:
    x, t = numpy.array([0.0, 1.0, 0.0, 1.0]), numpy.array([0.0, 1.0, 1.0, 0.0])
    same(
        lambda x, t: ops.binary_cross_entropy(x, t, reduction="none"),
        lambda x, t: numpy.array([0, 0, 100, 100.0]),
        x,
        t,
    )
    got = run(lambda x, t: ops.binary_cross_entropy_with_logits(x, t, reduction="none"), x * 2000 - 1000, t)
    numpy.testing.assert_allclose(got, [0, 0, 1000, 1000])


def standard(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + eps)


def test_normalisations() -> None:
    x, w, b = G.normal(size=(3, 4, 5)), G.normal(size=5), G.normal(size=5)
    same(lambda x, w, b: ops.layer_norm(x, 5, w, b), lambda x, w, b: standard(x, -1) * w + b, x, w, b)
    same(lambda x: ops.layer_norm(x, (4, 5)), lambda x: standard(x, (1, 2)), x)
    same(
        lambda x, w: ops.rms_norm(x, (5,), w, 1e-5),
        lambda x, w: x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w,
        x,
        w,
    )
    gradients(lambda x, w, b: ops.layer_norm(x, (5,), w, b), x, w, b, second=False)
    gradients(lambda x, w: ops.rms_norm(x, (5,), w), x, w, second=False)
    c, d = G.normal(size=4), G.normal(size=4)
    train = lambda x, c, d: ops.batch_norm(x, None, None, c, d, True)
    same(train, lambda x, c, d: standard(x, (0, 2)) * c[:, None] + d[:, None], x, c, d)
    gradients(train, x, c, d, second=False)
    mean, var = G.normal(size=4), G.uniform(0.5, 2, 4)
    same(
        lambda x, m, v, c, d: ops.batch_norm(x, m, v, c, d),
        lambda x, m, v, c, d: (x - m[:, None]) / numpy.sqrt(v + 1e-5)[:, None] * c[:, None] + d[:, None],
        x,
        mean,
        var,
        c,
        d,
    )
    same(lambda x: ops.group_norm(x, 2), lambda x: standard(x.reshape(3, 2, 10), 2).reshape(x.shape), x)
    same(ops.instance_norm, lambda x: standard(x, 2), x)
    gradients(lambda x, c: ops.group_norm(x, 2, c), x, c, second=False)


@pytest.mark.parametrize(
    "name,attrs,shapes",
    [
        ("layer_norm", ((1,), True, True), [(3, 4), (4,), (4,), ()]),
        ("rms_norm", ((1,), True, False), [(3, 4), (4,), ()]),
        ("batch_norm_train", (None, True, True), [(4, 3), (3,), (3,), ()]),
        ("scaled_dot_product_attention", (True, False, False), [(2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5), ()]),
        ("scaled_dot_product_attention", (False, True, False), [(3, 4), (3, 4), (3, 2), ()]),
    ],
)
def test_own_gradients(name: str, attrs: Any, shapes: Any) -> None:
    """Rules of composites against the derivatives of their parts."""
    arrays = [G.normal(size=shape) if shape else numpy.array(0.3) for shape in shapes]
    op: Any = REGISTRY[name]
    mine = own_gradient(name, attrs, arrays)
    for index, got in enumerate(mine[:-1]):
        step = 1e-6 * numpy.eye(arrays[index].size).reshape(arrays[index].size, *arrays[index].shape)
        graph = closed_graph(op, attrs, [tensor_type(float64, array.shape) for array in arrays])

        def total(value: Any) -> float:
            changed = [*arrays[:index], value, *arrays[index + 1 :]]  # noqa: B023
            return float(evaluate(graph, changed)[0].sum())  # noqa: B023

        numeric = [(total(arrays[index] + d) - total(arrays[index] - d)) / 2e-6 for d in step]
        numpy.testing.assert_allclose(got.ravel(), numeric, rtol=1e-5, atol=1e-7)


def test_attention() -> None:
    q, k, v = G.normal(size=(2, 3, 4)), G.normal(size=(2, 5, 4)), G.normal(size=(2, 5, 6))
    mask = G.uniform(size=(3, 5)) > 0.4
    mask[:, 0] = True

    def exact(scores: Any) -> Any:
        return special.softmax(scores, -1) @ v

    scores = q @ k.swapaxes(1, 2) / 2
    attend = ops.scaled_dot_product_attention
    same(attend, lambda q, k, v: exact(scores), q, k, v)
    same(attend, lambda q, k, v, m: exact(numpy.where(mask, scores, -numpy.inf)), q, k, v, mask)
    causal = numpy.where(numpy.tri(3, 5, dtype=bool), scores, -numpy.inf)
    same(lambda q, k, v: attend(q, k, v, is_causal=True), lambda q, k, v: exact(causal), q, k, v)
    gradients(attend, q, k, v, second=False)


def test_adam_as_published() -> None:
    p, m, v = G.normal(size=3), numpy.zeros(3), numpy.zeros(3)
    mine, lr, b1, b2, eps = (p, m, v), 0.01, 0.9, 0.999, 1e-8
    for step in range(1, 4):
        g = G.normal(size=3)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p - lr * (m / (1 - b1**step)) / (numpy.sqrt(v / (1 - b2**step)) + eps)

        def update(g: Any, p: Any, m: Any, v: Any, step: int = step) -> Any:
            mean, square = apply("adam_mean", g, m, b1), apply("adam_square", g, v, b2)
            return apply("adam_parameter", p, mean, square, lr, 1 - b1**step, 1 - b2**step, eps), mean, square

        mine = run(update, g, *mine)
    numpy.testing.assert_allclose(mine[0], p, rtol=1e-12)


ERRORS: list[tuple[Any, list[Any], type[Exception], str]] = [
    (ops.cross_entropy, [X, T[:3]], ShapeError, "targets of shape (3,) for scores of shape (4, 5)."),
    (
        lambda x, t: ops.cross_entropy(x, t, reduction="avg"),
        [X, T],
        ArgumentError,
        "reduction 'avg'. Use 'mean', 'sum' or 'none'.",
    ),
    (ops.nll_loss, [X, X[:, 0]], DTypeError, "class targets of float64."),
    (
        ops.cross_entropy,
        [X, X[:, :4]],
        ShapeError,
        "target probabilities of shape (4, 4) for scores of shape (4, 5).",
    ),
    (lambda x: ops.softmax(x, 2), [X], IndexError, "axis 2 "),
    (lambda x: ops.softmax(x, 1), [T.reshape(2, 2)], DTypeError, "takes floating dtypes, not int64."),
    (lambda x: ops.layer_norm(x, (4,)), [X], ShapeError, "normalized_shape (4,) for input of shape (4, 5)."),
    (lambda x: ops.glu(x), [X], ShapeError, "size 5 of axis 1 has no two halves. Use an even size."),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case: int) -> None:
    function, arrays, kind, text = ERRORS[case]
    with pytest.raises(kind) as caught:
        run(function, *arrays)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("dim", [(0, 1), [-1, -2], None])
def test_normalize_over_several_axes(dim: Any) -> None:
    found = torch.nn.functional.normalize(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), dim=dim)
    numpy.testing.assert_allclose(found.numpy(), [[0.6, 0.0], [0.0, 0.8]], rtol=1e-6)
