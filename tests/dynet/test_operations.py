"""Values of DyNet's expressions against NumPy: dimensions first, the batch last."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.special

import twofold.dynet as dy
from twofold.dynet.graph import state

RANDOM = np.random.RandomState(0)


def drawn(*shape: int) -> Any:
    return RANDOM.uniform(-1, 1, shape)


DATA: dict[str, Any] = {
    "v": drawn(4),
    "w": drawn(4),
    "p": abs(drawn(4)) * 0.8 + 0.1,
    "k": drawn(3),
    "five": drawn(5),
    "W": drawn(3, 4),
    "M": drawn(4, 5),
    "N": drawn(4, 5),
    "S": drawn(4, 4) + 3 * np.eye(4),
    "T": drawn(3, 4, 5),
    "one": drawn(1),
    "bv": drawn(4, 6),
    "bM": drawn(4, 5, 6),
    "bW": drawn(3, 4, 6),
    "b1": drawn(1, 6),
    "Wx": drawn(8, 4),
    "Wh": drawn(8, 2),
    "g8": drawn(8),
    "h": drawn(2),
}
A = SimpleNamespace(**DATA)
IDS = [0, 1, 2, 3, 0, 1]


@pytest.fixture
def x() -> Iterator[SimpleNamespace]:
    dy.renew_cg()
    yield SimpleNamespace(**{n: dy.inputTensor(a, batched=n.startswith("b")) for n, a in DATA.items()})
    dy.renew_cg()


def softmax(a: Any, axis: int = 0) -> Any:
    return np.exp(a - scipy.special.logsumexp(a, axis, keepdims=True))


def same_padded(image: Any, filters: Any) -> Any:
    """The result for stride 1 of one channel in and out, by correlation."""
    return scipy.signal.correlate2d(image, filters, "same")


def hinge(scores: Any, right: int, margin: float) -> float:
    terms = np.maximum(0, margin - scores[right] + scores)
    return terms.sum() - margin


def gates(mask: Any = 1) -> Any:
    """The gates of an LSTM of two cells by their formula."""
    total = A.Wx @ (A.v * mask) + A.Wh @ A.h + A.g8
    shift = np.repeat([0, 1, 0], 2)
    return np.concatenate([scipy.special.expit(total[:6] + shift), np.tanh(total[6:])])


def normal(a: Any) -> Any:
    return (a - a.mean(0)) / a.std(0)


CASES: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("add", lambda x: x.v + x.w, A.v + A.w),
    ("add a column to a matrix", lambda x: x.M + x.v, A.M + A.v[:, None]),
    ("add a batch to a matrix", lambda x: x.M + x.bv, A.M[:, :, None] + A.bv[:, None, :]),
    ("add batches of two ranks", lambda x: x.bM + x.bv, A.bM + A.bv[:, None, :]),
    ("add a number of a batch", lambda x: x.v + x.b1, A.v[:, None] + A.b1),
    ("add 1", lambda x: 1 + x.v + 1, A.v + 2),
    ("subtract", lambda x: 1 - (x.bv - x.v) - 2, -1 - A.bv + A.v[:, None]),
    ("divide", lambda x: 2 / (x.v / x.p / 4), 8 * A.p / A.v),
    ("gates", lambda x: dy.vanilla_lstm_gates(x.v, x.h, x.Wx, x.Wh, x.g8), gates()),
    (
        "gates of two inputs",
        lambda x: dy.vanilla_lstm_gates_concat([x.v[:1], x.v[1:]], x.h, x.Wx, x.Wh, x.g8),
        gates(),
    ),
    (
        "gates, masked",
        lambda x: dy.vanilla_lstm_gates_dropout(x.v, x.h, x.Wx, x.Wh, x.g8, x.w, dy.ones(2)),
        gates(A.w),
    ),
    (
        "gates of two inputs, masked",
        lambda x: dy.vanilla_lstm_gates_dropout_concat(
            [x.v[:1], x.v[1:]], x.h, x.Wx, x.Wh, x.g8, x.w, dy.ones(2)
        ),
        gates(A.w),
    ),
    ("cell", lambda x: dy.vanilla_lstm_c(x.h, x.g8), A.g8[:2] * A.g8[6:] + A.g8[2:4] * A.h),
    ("output", lambda x: dy.vanilla_lstm_h(x.h, x.g8), A.g8[4:6] * np.tanh(A.h)),
    ("power", lambda x: x.v**2 - x.p**x.one, A.v**2 - A.p**A.one),
    ("negate", lambda x: -x.bv, -A.bv),
    ("matrix times vector", lambda x: x.W * x.v, A.W @ A.v),
    ("matrix times matrix", lambda x: x.W * x.M, A.W @ A.M),
    ("matrix times batch", lambda x: x.W * x.bv, A.W @ A.bv),
    ("matrix times batch of matrices", lambda x: x.W * x.bM, np.einsum("ij,jkb->ikb", A.W, A.bM)),
    ("batch of matrices times vector", lambda x: x.bW * x.v, np.einsum("ijb,j->ib", A.bW, A.v)),
    ("batch times batch", lambda x: x.bW * x.bv, np.einsum("ijb,jb->ib", A.bW, A.bv)),
    ("batch of matrices twice", lambda x: x.bW * x.bM, np.einsum("ijb,jkb->ikb", A.bW, A.bM)),
    ("vector times number", lambda x: x.v * x.one * 2, A.v * A.one * 2),
    ("vector times numbers of a batch", lambda x: x.v * x.b1, A.v[:, None] * A.b1),
    ("numbers of a batch", lambda x: x.b1 * x.b1, A.b1**2),
    ("column times row", lambda x: x.v * dy.transpose(x.k), np.outer(A.v, A.k)),
    ("cmult", lambda x: dy.cmult(x.M, x.bv), A.M[:, :, None] * A.bv[:, None, :]),
    ("cmult by a number", lambda x: dy.cmult(x.one, x.bM), A.one * A.bM),
    ("cdiv", lambda x: dy.cdiv(x.bM, x.p), A.bM / A.p[:, None, None]),
    ("colwise_add", lambda x: dy.colwise_add(x.M, x.v), A.M + A.v[:, None]),
    ("affine", lambda x: dy.affine_transform([x.k, x.W, x.v]), A.k + A.W @ A.v),
    (
        "affine of matrix and batch",
        lambda x: dy.affine_transform([x.k, x.W, x.bv, x.W, x.v]),
        (A.k + A.W @ A.v)[:, None] + A.W @ A.bv,
    ),
    ("affine of columns", lambda x: dy.affine_transform([x.k, x.W, x.M]), A.k[:, None] + A.W @ A.M),
    ("bmin", lambda x: dy.bmin(x.v, x.w), np.minimum(A.v, A.w)),
    ("bmax", lambda x: dy.bmax(x.v, x.w), np.maximum(A.v, A.w)),
    ("esum", lambda x: dy.esum([x.v, x.w, x.bv]), (A.v + A.w)[:, None] + A.bv),
    ("average", lambda x: dy.average([x.v, x.w]), (A.v + A.w) / 2),
    ("emax", lambda x: dy.emax([x.v, x.w, x.v]), np.maximum(A.v, A.w)),
    ("logsumexp", lambda x: dy.logsumexp([x.v, x.w, x.v]), np.log(2 * np.exp(A.v) + np.exp(A.w))),
    ("exp", lambda x: dy.exp(x.v), np.exp(A.v)),
    ("logistic", lambda x: dy.logistic(x.v), scipy.special.expit(A.v)),
    ("rectify", lambda x: dy.rectify(x.v), np.maximum(A.v, 0)),
    ("softsign", lambda x: dy.softsign(x.v), A.v / (1 + abs(A.v))),
    ("log_sigmoid", lambda x: dy.log_sigmoid(x.v), np.log(scipy.special.expit(A.v))),
    ("lgamma", lambda x: dy.lgamma(x.p), scipy.special.gammaln(A.p)),
    ("cube", lambda x: dy.cube(x.v), A.v**3),
    ("elu", lambda x: dy.elu(x.v, 0.7), np.where(A.v > 0, A.v, 0.7 * np.expm1(A.v))),
    ("silu", lambda x: dy.silu(x.v, 2.0), A.v * scipy.special.expit(2 * A.v)),
    ("erf", lambda x: dy.erf(x.v), scipy.special.erf(A.v)),
    ("round", lambda x: dy.round(x.v * 3, "zero_gradient"), np.round(A.v * 3)),
    ("argmax", lambda x: dy.argmax(x.bv, "zero_gradient"), (A.bv == A.bv.max(0)) * 1.0),
    ("pick", lambda x: dy.pick(x.v, 2), A.v[[2]]),
    ("pick a row", lambda x: dy.pick(x.M, 2), A.M[2]),
    ("pick a column", lambda x: dy.pick(x.bM, 2, 1), A.bM[:, 2]),
    ("pick from a batch", lambda x: dy.pick(x.bv, 1), A.bv[[1]]),
    ("pick_batch", lambda x: dy.pick_batch(x.bv, IDS), A.bv[IDS, range(6)][None]),
    ("pick_batch of columns", lambda x: dy.pick_batch(x.bM, IDS, 1), A.bM[:, IDS, range(6)]),
    ("pick_batch without a batch", lambda x: dy.pick_batch(x.M, [1, 2]), A.M[[1, 2]].T),
    ("index", lambda x: x.M[-1], A.M[-1]),
    ("slice", lambda x: x.M[1:3], A.M[1:3]),
    ("slices", lambda x: x.M[1:3, 0:4:2], A.M[1:3, 0:4:2]),
    ("slices of a batch", lambda x: x.bM[0:2, 1:3, 2:4], A.bM[0:2, 1:3, 2:4]),
    ("slice to one of a batch", lambda x: x.bv[1:3, 2:3], A.bv[1:3, 2]),
    ("strided_select", lambda x: dy.strided_select(x.M, [2, 1], [0, 1], [4, 5]), A.M[0:4:2, 1:5]),
    ("pick_range", lambda x: dy.pick_range(x.bM, 1, 3, 1), A.bM[:, 1:3]),
    ("pickrange", lambda x: dy.pickrange(x.v, 1, 3), A.v[1:3]),
    ("pick_batch_elem", lambda x: dy.pick_batch_elem(x.bM, 2), A.bM[:, :, 2]),
    ("pick_batch_elems", lambda x: dy.pick_batch_elems(x.bM, [2, 0]), A.bM[:, :, [2, 0]]),
    ("reshape", lambda x: dy.reshape(x.M, (2, 10)), A.M.reshape(2, 10, order="F")),
    ("reshape of a batch", lambda x: dy.reshape(x.bM, (20,)), A.bM.reshape(20, 6, order="F")),
    ("reshape to a batch", lambda x: dy.reshape(x.M, (5,), 4), A.M.reshape(5, 4, order="F")),
    ("transpose", lambda x: dy.transpose(x.bM), A.bM.transpose(1, 0, 2)),
    ("transpose of a vector", lambda x: dy.transpose(x.v), A.v[None]),
    ("transpose of three", lambda x: dy.transpose(x.T, [2, 0, 1]), A.T.transpose(2, 0, 1)),
    ("select_rows", lambda x: dy.select_rows(x.M, [2, 0]), A.M[[2, 0]]),
    ("select_cols", lambda x: dy.select_cols(x.M, [4, 0, 1]), A.M[:, [4, 0, 1]]),
    ("concatenate", lambda x: dy.concatenate([x.v, x.k, x.one]), np.concatenate([A.v, A.k, A.one])),
    ("concatenate columns", lambda x: dy.concatenate([x.M, x.N], 1), np.concatenate([A.M, A.N], 1)),
    (
        "concatenate with a batch",
        lambda x: dy.concatenate([x.v, x.bv]),
        np.concatenate([np.repeat(A.v[:, None], 6, 1), A.bv]),
    ),
    ("concatenate numbers", lambda x: dy.concatenate([x.v[1], dy.sum_elems(x.v)]), [A.v[1], A.v.sum()]),
    ("concatenate_cols", lambda x: dy.concatenate_cols([x.v, x.w]), np.stack([A.v, A.w], 1)),
    ("columns and a matrix", lambda x: dy.concatenate_cols([x.M, x.v]), np.column_stack([A.M, A.v])),
    ("concatenate_to_batch", lambda x: dy.concatenate_to_batch([x.v, x.bv]), np.column_stack([A.v, A.bv])),
    ("fold_rows", lambda x: dy.fold_rows(x.M, 2), A.M.reshape(2, 2, 5).sum(1)),
    ("kmh_ngram", lambda x: dy.kmh_ngram(x.M, 2), A.M[:, :-1] + A.M[:, 1:]),
    ("sum_elems", lambda x: dy.sum_elems(x.bM), A.bM.sum((0, 1))[None]),
    ("sum_dim", lambda x: dy.sum_dim(x.bM, [1]), A.bM.sum(1)),
    ("sum_dim over all", lambda x: dy.sum_dim(x.bM, [0, 1], True), [A.bM.sum()]),
    ("sum_batches", lambda x: dy.sum_batches(x.bM), A.bM.sum(2)),
    ("mean_dim", lambda x: dy.mean_dim(x.bM, [0], False, 3), A.bM.sum(0) / 3),
    ("mean_elems", lambda x: dy.mean_elems(x.M), [A.M.mean()]),
    ("mean_batches", lambda x: dy.mean_batches(x.bv), A.bv.mean(1)),
    ("moment_dim", lambda x: dy.moment_dim(x.bM, [0], 2, True), (A.bM**2).mean((0, 2))),
    ("moment_elems", lambda x: dy.moment_elems(x.v, 3), [(A.v**3).mean()]),
    ("moment_batches", lambda x: dy.moment_batches(x.bv, 2), (A.bv**2).mean(1)),
    ("std_dim", lambda x: dy.std_dim(x.bM, [1], False), A.bM.std(1)),
    ("std_elems", lambda x: dy.std_elems(x.bM), A.bM.std((0, 1))[None]),
    ("std_batches", lambda x: dy.std_batches(x.bv), A.bv.std(1)),
    ("squared_norm", lambda x: dy.squared_norm(x.bM), (A.bM**2).sum((0, 1))[None]),
    ("l2_norm", lambda x: dy.l2_norm(x.M), [np.linalg.norm(A.M)]),
    ("max_dim", lambda x: dy.max_dim(x.M, 1), A.M.max(1)),
    ("min_dim", lambda x: dy.min_dim(x.bM), A.bM.min(0)),
    ("cumsum", lambda x: dy.cumsum(x.bM, 1), A.bM.cumsum(1)),
    ("logsumexp_dim", lambda x: dy.logsumexp_dim(x.bM, 1), scipy.special.logsumexp(A.bM, 1)),
    ("softmax", lambda x: dy.softmax(x.bM), softmax(A.bM)),
    ("softmax of rows", lambda x: dy.softmax(x.M, 1), softmax(A.M, 1)),
    ("log_softmax", lambda x: dy.log_softmax(x.M), np.log(softmax(A.M))),
    ("sparsemax", lambda x: dy.sparsemax(dy.inputVector([1, 0.5, -3])), [0.75, 0.25, 0]),
    (
        "constrained_softmax",
        lambda x: dy.constrained_softmax(dy.log(dy.inputVector([6, 3, 1])), dy.inputVector([0.4, 1, 1])),
        [0.4, 0.45, 0.15],
    ),
    ("pickneglogsoftmax", lambda x: dy.pickneglogsoftmax(x.v, 2), [-np.log(softmax(A.v)[2])]),
    (
        "pickneglogsoftmax_batch",
        lambda x: dy.pickneglogsoftmax_batch(x.bv, IDS),
        -np.log(softmax(A.bv))[IDS, range(6)][None],
    ),
    ("hinge", lambda x: dy.hinge(x.v, 2, 0.5), [hinge(A.v, 2, 0.5)]),
    (
        "hinge_batch",
        lambda x: dy.hinge_batch(x.bv, IDS, 2.0),
        [[hinge(A.bv[:, i], one, 2.0) for i, one in enumerate(IDS)]],
    ),
    (
        "hinge_dim",
        lambda x: dy.hinge_dim(x.M, [0, 1, 2, 3, 0]),
        [hinge(A.M[:, i], one, 1.0) for i, one in enumerate([0, 1, 2, 3, 0])],
    ),
    (
        "hinge_dim of rows",
        lambda x: dy.hinge_dim(x.M, [4, 1, 2, 3], 1),
        [hinge(A.M[i], one, 1.0) for i, one in enumerate([4, 1, 2, 3])],
    ),
    ("squared_distance", lambda x: dy.squared_distance(x.v, x.bv), ((A.v[:, None] - A.bv) ** 2).sum(0)[None]),
    ("l1_distance", lambda x: dy.l1_distance(x.v, x.w), [abs(A.v - A.w).sum()]),
    (
        "huber_distance",
        lambda x: dy.huber_distance(x.v, x.w, 0.5),
        [scipy.special.huber(0.5, A.v - A.w).sum()],
    ),
    (
        "binary_log_loss",
        lambda x: dy.binary_log_loss(x.p, dy.inputVector([0, 1, 0.5, 1])),
        [-np.log([1 - A.p[0], A.p[1], np.sqrt(A.p[2] * (1 - A.p[2])), A.p[3]]).sum()],
    ),
    ("binary_log_loss at its ends", lambda x: dy.binary_log_loss(dy.ones(2), dy.ones(2)), [0]),
    ("pairwise_rank_loss", lambda x: dy.pairwise_rank_loss(x.v, x.w), np.maximum(0, 1 - A.v + A.w)),
    ("poisson_loss", lambda x: dy.poisson_loss(x.one, 3), np.exp(A.one) + np.log(6) - 3 * A.one),
    ("dot_product", lambda x: dy.dot_product(x.v, x.w), [A.v @ A.w]),
    ("dot_product of a batch", lambda x: dy.dot_product(x.v, x.bv), (A.v @ A.bv)[None]),
    ("trace_of_product", lambda x: dy.trace_of_product(x.M, x.N), [np.trace(A.M @ A.N.T)]),
    ("inverse", lambda x: dy.inverse(x.S), np.linalg.inv(A.S)),
    ("logdet", lambda x: dy.logdet(x.S), [np.linalg.slogdet(A.S)[1]]),
    ("circ_conv", lambda x: dy.circ_conv(x.v, x.w), np.fft.ifft(np.fft.fft(A.v) * np.fft.fft(A.w)).real),
    (
        "circ_corr",
        lambda x: dy.circ_corr(x.v, x.w),
        np.fft.ifft(np.fft.fft(A.v).conj() * np.fft.fft(A.w)).real,
    ),
    ("contract3d_1d", lambda x: dy.contract3d_1d(x.T, x.five), A.T @ A.five),
    ("contract3d_1d_bias", lambda x: dy.contract3d_1d_bias(x.T, x.five, x.W), A.T @ A.five + A.W),
    ("contract3d_1d_1d", lambda x: dy.contract3d_1d_1d(x.T, x.five, x.v), A.T @ A.five @ A.v),
    (
        "contract3d_1d_1d_bias",
        lambda x: dy.contract3d_1d_1d_bias(x.T, x.five, x.v, x.k),
        A.T @ A.five @ A.v + A.k,
    ),
    ("layer_norm", lambda x: dy.layer_norm(x.bv, x.p, x.w), normal(A.bv) * A.p[:, None] + A.w[:, None]),
    ("weight_norm", lambda x: dy.weight_norm(x.M, x.one), A.M / np.linalg.norm(A.M) * A.one),
    (
        "conv2d",
        lambda x: dy.conv2d(dy.reshape(x.M, (4, 5, 1)), dy.reshape(x.S[0:2, 0:3], (2, 3, 1, 1)), [1, 1]),
        scipy.signal.correlate2d(A.M, A.S[:2, :3], "valid")[:, :, None],
    ),
    (
        "conv2d with a border, strides and a bias",
        lambda x: dy.conv2d_bias(
            dy.reshape(x.M, (4, 5, 1)), dy.reshape(x.S[0:3, 0:3], (3, 3, 1, 1)), x.one, [1, 2], False
        ),
        (same_padded(A.M, A.S[:3, :3]) + A.one)[:, ::2, None],
    ),
    (
        "maxpooling2d",
        lambda x: dy.maxpooling2d(dy.reshape(x.M, (4, 5, 1)), [2, 3], [2, 2]),
        np.array([[A.M[i : i + 2, j : j + 3].max() for j in (0, 2)] for i in (0, 2)])[:, :, None],
    ),
    (
        "maxpooling2d with a border",
        lambda x: dy.maxpooling2d(dy.reshape(x.M, (4, 5, 1)), [2, 2], [2, 2], False),
        np.array([[A.M[i : i + 2, j : j + 2].max() for j in (0, 2, 4)] for i in (0, 2)])[:, :, None],
    ),
    (
        "filter1d_narrow",
        lambda x: dy.filter1d_narrow(x.M, x.S[0:4, 0:2]),
        scipy.signal.correlate2d(A.M, A.S[:4, :2], "valid"),
    ),
    (
        "kmax_pooling",
        lambda x: dy.kmax_pooling(x.M, 2),
        np.take_along_axis(A.M, np.sort(np.argsort(-A.M, 1)[:, :2], 1), 1),
    ),
    ("constant", lambda x: dy.constant((2, 3), 3.5, 2), np.full((2, 3, 2), 3.5)),
    ("zeros and ones", lambda x: dy.zeros(2) + dy.ones((2,)), np.ones(2)),
    ("one_hot", lambda x: dy.one_hot(4, [2, 1]), np.eye(4)[:, [2, 1]]),
    (
        "sparse_inputTensor",
        lambda x: dy.sparse_inputTensor([[0, 2], [1, 1]], [3, 4], (3, 2), batched=True, defval=1),
        [[1, 3], [1, 1], [1, 4]],
    ),
    ("inputMatrix", lambda x: dy.inputMatrix([1, 2, 3, 4], (2, 2)), [[1, 3], [2, 4]]),
    ("inputTensorTranspose", lambda x: dy.inputTensorTranspose([1, 2, 3, 4], (2,), 2), [[1, 3], [2, 4]]),
    ("inputTensor of a list", lambda x: dy.inputTensor([np.array([1, 2])] * 3), [[1] * 3, [2] * 3]),
]


@pytest.mark.parametrize(("build", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_value(x: SimpleNamespace, build: Callable[[Any], Any], expected: Any) -> None:
    made = build(x)
    expected = np.asarray(expected)
    dims, batch = made.dim()
    assert dims + ((batch,) if batch != 1 else ()) == expected.shape
    np.testing.assert_allclose(made.npvalue(), expected, rtol=1e-5, atol=2e-6)


def test_values_are_floats_lists_or_arrays(x: SimpleNamespace) -> None:
    assert isinstance(x.one.value(), float) and isinstance(dy.sum_elems(x.v).value(), float)
    assert x.v.value() == x.v.vec_value() and isinstance(x.v.value(), list)
    assert isinstance(x.M.value(), np.ndarray)
    np.testing.assert_allclose(x.bv.value(), A.bv.ravel(order="F"), rtol=1e-6)
    assert dy.sum_elems(x.v).npvalue().shape == (1,)
    assert [round(one, 5) for one in dy.values([x.one, x.one])] == [round(A.one[0], 5)] * 2


def test_tensor_values(x: SimpleNamespace) -> None:
    shown = x.bv.tensor_value()
    assert (shown.argmax().as_numpy()[0] == A.bv.argmax(0)).all()
    values, positions = shown.topk(num=2)
    np.testing.assert_allclose(values.as_numpy(), -np.sort(-A.bv, 0)[:2], rtol=1e-6)
    assert (positions.as_numpy() == np.argsort(-A.bv, 0)[:2]).all()
    certain = dy.log_softmax(x.v * 1e4).tensor_value()
    assert set(certain.categorical_sample_log_prob(num=5).as_numpy()) == {A.v.argmax()}


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x.v * x.w,
        lambda x: x.bv + dy.inputTensor(np.ones((4, 3)), batched=True),
        lambda x: dy.reshape(x.M, (3, 3)),
        lambda x: dy.affine_transform([x.v, x.W]),
        lambda x: dy.esum([]),
        lambda x: dy.pick_range(x.v, 3, 5),
        lambda x: dy.pick_batch(x.bv, [0, 1]),
        lambda x: dy.conv2d(x.M, x.M, [1]),
        lambda x: dy.round(x.v, "none"),
    ],
)
def test_what_does_not_fit_is_refused(x: SimpleNamespace, build: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError):
        build(x)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x.v[4],
        lambda x: x.v[-5],
        lambda x: dy.pickneglogsoftmax(x.v, 4).value(),
        lambda x: dy.pick(x.v, -1),
    ],
)
def test_an_index_outside_is_refused(x: SimpleNamespace, build: Callable[[Any], Any]) -> None:
    with pytest.raises(IndexError):
        build(x)


def test_there_is_one_device(x: SimpleNamespace) -> None:
    assert dy.to_device(x.v, "CPU") is x.v and dy.available_devices() == ["CPU"]
    with pytest.raises(RuntimeError, match="no device 'GPU:0'"):
        dy.inputVector([1], device="GPU:0")


def test_dropout(x: SimpleNamespace) -> None:
    ones = dy.ones((30, 40), 4)
    for made, axes in (
        (dy.dropout(ones, 0.25), ()),
        (dy.dropout_dim(ones, 1, 0.25), (1,)),
        (dy.dropout_batch(ones, 0.25), (0, 1)),
        (dy.block_dropout(ones, 0.25), (0, 1, 2)),
    ):
        value = made.npvalue()
        assert set(np.unique(value)) <= {0, np.float32(4 / 3)}
        assert all((value.min(axis) == value.max(axis)).all() for axis in axes)
    dropped = dy.dropout(ones, 0.25).npvalue()
    assert abs((dropped == 0).mean() - 0.25) < 0.03
    with pytest.raises(ValueError):
        dy.dropout(ones, 1.5)


def test_random_expressions() -> None:
    count = 4000
    dy.reset_random_seed(3)
    assert abs(dy.random_normal(count, 2, 3).npvalue().std() - 3) < 0.2
    assert dy.random_bernoulli(2, 0.5, scale=2).npvalue().dtype == np.float64
    assert abs(dy.random_bernoulli((count,), 0.2, 5).npvalue().mean() - 1) < 0.2
    uniform = dy.random_uniform((count // 2,), -1, 3, 2).npvalue()
    assert uniform.min() >= -1 and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.1
    assert abs(dy.random_gumbel(count, 1, 2).npvalue().mean() - (1 + 2 * np.euler_gamma)) < 0.2
    assert abs(dy.noise(dy.zeros(count), 0.5).npvalue().std() - 0.5) < 0.05
    dy.reset_random_seed(4)
    first = dy.random_normal(5).value()
    dy.reset_random_seed(4)
    assert first == dy.random_normal(5).value()


def test_noise_of_gates_is_of_the_weights() -> None:
    dy.renew_cg()
    x, h, w, u, b = dy.ones(1), dy.zeros(500), dy.zeros((2000, 1)), dy.zeros((2000, 500)), dy.zeros(2000)
    found = dy.vanilla_lstm_gates(x, h, w, u, b, weightnoise_std=0.01).npvalue()[1500:]
    assert abs(found.std() - 0.01 * 2**0.5) < 2e-3  # of the weights of the input and of the biases


@pytest.mark.parametrize("function", [dy.print_text_graphviz, dy.print_graphviz, dy.dump_cg])
def test_graph_dumps_say_where_to_look(function: Any) -> None:
    with pytest.raises(RuntimeError, match="check_validity=True"):
        function()


def test_sums_have_no_count() -> None:
    with pytest.raises(ValueError, match="mean_dim"):
        dy.sum_dim(dy.inputVector([1]), [0], n=2)


def test_assigned_inputs_note_operations_once() -> None:
    dy.renew_cg()
    x = dy.vecInput(2)
    loss = dy.squared_distance(x, x * 2)
    noted = len(state.watcher.calls)  # type: ignore[union-attr]
    for i in range(4):
        x.set([i, 1])
        assert loss.value() == i * i + 1
    assert len(state.watcher.calls) == noted  # type: ignore[union-attr]
    dy.renew_cg()


@pytest.mark.parametrize("index", [-1, 4, 7])
def test_losses_refuse_what_is_no_class(index: int) -> None:
    with pytest.raises(IndexError, match=f"element {index} of dimensions"):
        dy.pickneglogsoftmax(dy.inputVector(A.v), index)


def test_the_garbage_collector_does_not_visit_expressions() -> None:
    x = dy.inputVector(A.v)
    doubled = x * 2
    found = weakref.ref(y := doubled + dy.square(x))
    assert not any(gc.is_tracked(one) for one in (doubled, y))
    del y
    assert found() is None


@pytest.mark.parametrize("name", ["logsumexp", "esum", "emax", "average", "bmax", "bmin", "dot_product",
                                  "trace_of_product", "squared_distance", "l1_distance", "huber_distance",
                                  "binary_log_loss", "pairwise_rank_loss"])  # fmt: skip
def test_expressions_of_other_dimensions_are_not_broadcast(name: str) -> None:
    function = getattr(dy, name)
    call = (lambda *xs: function(list(xs))) if name in ("logsumexp", "esum", "emax", "average") else function
    vector, matrix = dy.inputVector([0.1, 0.2, 0.3]), dy.inputTensor(np.full((3, 2), 0.5))
    for other in (dy.inputVector([0.5]), dy.scalarInput(0.5), matrix):
        for pair in ((vector, other), (other, vector)):
            with pytest.raises(ValueError, match=name):
                call(*pair)
    with pytest.raises(ValueError, match=name):
        call(dy.inputTensor(np.full((3, 2), 0.5), batched=True), dy.inputVector([0.5]))
    assert call(vector, dy.inputTensor([[0.5], [0.5], [0.5]])).dim()[0][0] in (1, 3)
    assert call(vector, dy.inputTensor(np.full((3, 2), 0.5), batched=True)).dim()[1] == 2


@pytest.mark.parametrize("index", [1.5, 1.0, "a", None, [0], (0,), slice(0, 1.5), np.float32(1)])
def test_an_index_is_a_number_or_slices(index: Any) -> None:
    with pytest.raises(TypeError):
        dy.inputVector([1, 2, 3])[index]
