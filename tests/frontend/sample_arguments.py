"""Sample calls of public functions, and other values for one argument of them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "references")]

import every_one  # noqa: E402
import fitting_arguments  # noqa: E402
from compare import tensors  # noqa: E402
from declare import PUBLIC  # noqa: E402

import twofold as torch  # noqa: E402

assert every_one
G = numpy.random.default_rng(3)
Sample = tuple[list[Any], dict[str, Any]]


def real(*shape: int) -> Any:
    return torch.tensor(G.normal(size=shape))


def unit(*shape: int) -> Any:
    return torch.tensor(G.uniform(0.05, 0.95, shape))


def whole(high: int, *shape: int) -> Any:
    return torch.tensor(G.integers(0, high, shape))


def sample(*args: Any, **options: Any) -> Sample:
    return list(args), options


ZEROS, ONES = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
SORTED = torch.tensor([1.0, 2.0, 2.0, 3.0])
NAN = torch.tensor([1.0, float("nan"), 3.0])
ATTENTION = sample(
    real(4, 2, 6),
    real(5, 2, 6),
    real(5, 2, 6),
    6,
    2,
    real(18, 6),
    real(18),
    None,
    None,
    False,
    0.3,
    real(6, 6),
    real(6),
)


def recurrent(gates: int, states: int) -> Sample:
    """A call of a recurrent layer of three units on sequences of four steps, as a function of its weights."""
    weights = [real(3 * gates, 2), real(3 * gates, 3), real(3 * gates), real(3 * gates)]
    begun = [real(1, 4, 3) for _ in range(states)]
    return sample(real(4, 4, 2), begun if states > 1 else begun[0], weights, True, 1, 0.0, False, False)


SAMPLES: dict[str, list[Sample]] = {
    "lstm": [recurrent(4, 2)],
    "gru": [recurrent(3, 1)],
    "rnn_tanh": [recurrent(1, 1)],
    "rnn_relu": [recurrent(1, 1)],
    "allclose": [sample(SORTED, SORTED + 0.1), sample(NAN, NAN)],
    "isclose": [sample(SORTED, SORTED + 0.1), sample(NAN, NAN)],
    "arange": [sample(0, 7)],
    "range": [sample(0, 7)],
    "as_strided_scatter": [sample(real(9), real(2, 2), (2, 2), (3, 1))],
    "array_api.arange": [sample(0, 7)],
    "array_api.concat": [sample([real(3, 3), real(3, 3)])],
    "array_api.cumulative_prod": [sample(real(3, 3), axis=0)],
    "array_api.cumulative_sum": [sample(real(3, 3), axis=0)],
    "array_api.sort": [sample(real(3, 3))],
    "array_api.take": [sample(real(3, 3), torch.tensor([0, 2]), axis=0)],
    "array_api.take_along_axis": [sample(real(3, 3), whole(3, 3, 3))],
    "segment_reduce": [
        sample(real(2, 6), "sum", lengths=torch.tensor([[2, 4], [3, 3]]), axis=1),
        sample(real(6, 2), "sum", lengths=torch.tensor([2, 4])),
    ],
    "set": [sample(real(3), real(9), 2, (2, 2), (2, 1))],
    "take_along_axis": [sample(real(3, 3), whole(3, 3, 3), 0)],
    "embedding": [sample(real(4, 3), torch.tensor([0, 2, 2]))],
    "linalg.qr": [sample(real(4, 3))],
    "array_api.meshgrid": [sample(real(3), real(2))],
    "empty_permuted": [sample((2, 3), (1, 0))],
    "empty_strided": [sample((2, 3), (3, 1))],
    "new_empty_strided": [sample(real(2), (2, 3), (3, 1))],
    "sparse_coo_tensor": [
        sample(torch.tensor([[0, 2, 2]]), real(3)),
        sample(torch.tensor([[0, 2]]), whole(5, 2), requires_grad=False, is_coalesced=False),
    ],
    "nn.functional.fractional_max_pool2d_with_indices": [sample(real(1, 2, 8, 8), 2, 3, return_indices=True)],
    "nn.functional.fractional_max_pool3d_with_indices": [
        sample(real(1, 2, 8, 8, 8), 2, 3, return_indices=True)
    ],
    "nn.functional.max_pool3d_with_indices": [sample(real(1, 2, 5, 5, 5), 2)],
    "nn.functional.multi_head_attention_forward": [ATTENTION],
    "view": [sample(real(2, 6), 3, 4)],
    "multilabel_margin_loss": [sample(real(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]]))],
    "native_batch_norm": [sample(real(5, 3), None, None, ZEROS, ONES, True, 0.1, 1e-5)],
    "nll_loss": [sample(real(5, 4), torch.tensor([0, 2, 1, 3, 2]), ignore_index=2)],
    "one_hot": [sample(torch.tensor([0, 2, 1]), 5)],
    "array_api.linalg.cholesky": [sample(torch.eye(3) * 4)],
    "array_api.linalg.qr": [sample(real(4, 3))],
    "array_api.linalg.svd": [sample(real(4, 3))],
    "array_api.astype": [sample(torch.ones(3), torch.float32)],
    "array_api.linspace": [sample(0.0, 1.0, 5)],
    "array_api.roll": [sample(real(3, 4), 1)],
    "associative_scan": [sample(lambda a, b: a * 0.5 + b, real(3, 4))],
    "as_strided": [sample(real(9), (2, 2), (3, 1))],
    "addbmm": [sample(real(3, 4), real(2, 3, 5), real(2, 5, 4))],
    "addmv": [sample(real(3), real(3, 4), real(4))],
    "affine_grid": [sample(real(2, 2, 3), (2, 1, 3, 3))],
    "col2im": [sample(real(1, 8, 9), (4, 4), 2)],
    "batch_norm": [sample(real(5, 3), None, None, ZEROS, ONES, True, 0.1, 1e-5)],
    "grid_sample": [sample(real(1, 2, 4, 4), real(1, 3, 3, 2), mode="bilinear")],
    "instance_norm": [sample(real(2, 3, 4), None, None, ZEROS, ONES, True, 0.1, 1e-5)],
    "local_response_norm": [sample(real(2, 5, 3), 3)],
    "multinomial": [sample(unit(5), 3)],
    "multi_margin_loss": [sample(real(5, 4), whole(4, 5))],
    "ormqr": [sample(*torch.geqrf(real(3, 3)), real(3, 3))],
    "randint": [sample(0, 90, (5,))],
    "broadcast_to": [sample(real(1, 4), (3, 4))],
    "expand": [sample(real(1, 4), 3, 4)],
    "permute": [sample(real(2, 3), 1, 0)],
    "reshape": [sample(real(2, 3), 3, 2)],
    "expand_copy": [sample(real(1, 4), 3, 4)],
    "sum_to_size": [sample(real(3, 4), 1, 4)],
    "Tensor.repeat": [sample(real(3), 2, 1)],
    "randint_like": [sample(real(5), 0, 90)],
    "svd_lowrank": [sample(real(9, 8), 6)],
    "moveaxis": [sample(real(2, 3, 4), 0, 2)],
    "signal.windows.general_cosine": [sample(7, a=[0.4, 0.3, 0.2])],
    "glu": [sample(real(4, 4))],
    "hardtanh": [sample(real(9) * 3)],
    "huber_loss": [sample(real(9) * 9, real(9))],
    "smooth_l1_loss": [sample(real(9) * 9, real(9))],
    "linalg.matrix_rank": [sample(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))],
    "linalg.pinv": [sample(real(3, 3))],
    "max_unpool1d": [sample(real(1, 1, 3), torch.tensor([[[0, 3, 5]]]), 2)],
    "numpy": [sample(torch.ones(3, requires_grad=True), force=True)],
    "softplus": [sample(torch.tensor([-3.0, 12.0, 15.0], dtype=torch.float64))],
    "to_sparse": [sample(real(3, 4))],
    "binary_cross_entropy": [sample(unit(3, 3), unit(3, 3))],
    "clamp": [sample(real(3, 3), min=-0.3, max=0.2)],
    "conv_tbc": [sample(real(7, 2, 4), real(3, 4, 5), real(5), 1)],
    "conv1d": [sample(real(2, 4, 7), real(4, 4, 3))],
    "conv2d": [sample(real(2, 4, 7, 6), real(4, 4, 3, 2))],
    "conv3d": [sample(real(1, 2, 5, 5, 6), real(2, 2, 2, 3, 2))],
    "conv_transpose1d": [sample(real(2, 4, 7), real(4, 4, 3), stride=2)],
    "conv_transpose2d": [sample(real(2, 4, 5, 6), real(4, 4, 3, 2), stride=2)],
    "conv_transpose3d": [sample(real(1, 2, 3, 3, 3), real(2, 2, 2, 2, 2), stride=2)],
    "cosine_similarity": [sample(real(3, 4) * 1e-3, real(3, 4) * 1e-3)],
    "cross_entropy": [sample(real(6, 4), whole(4, 6), ignore_index=2)],
    "diagonal_scatter": [sample(real(3, 3, 3), real(3, 3))],
    "fill_diagonal": [sample(real(7, 3), 5.0)],
    "gather": [sample(real(3, 3), 0, whole(3, 2, 3))],
    "index_add": [sample(real(3, 3), 0, torch.tensor([0, 2, 0]), real(3, 3))],
    "index_copy": [sample(real(3, 3), 0, torch.tensor([2, 0, 1]), real(3, 3))],
    "index_fill": [sample(real(3, 3), 0, torch.tensor([2, 0]), 4.0)],
    "index_reduce": [sample(real(3, 3), 0, torch.tensor([0, 2, 0]), real(3, 3), "prod")],
    "index_select": [sample(real(3, 3), 0, torch.tensor([2, 0]))],
    "interpolate": [
        sample(real(1, 2, 5, 6), scale_factor=1.7, mode="bilinear"),
        sample(real(1, 2, 9, 9), (4, 4), mode="bilinear"),
    ],
    "istft": [
        sample(
            torch.stft(real(40), 8, window=unit(8), return_complex=True), 8, window=unit(8), onesided=True
        ),
        sample(torch.stft(real(40), 8, window=unit(8), return_complex=True), 8, window=unit(8)),
    ],
    "linalg.cholesky_ex": [sample(-torch.eye(3))],
    "linalg.inv_ex": [sample(torch.zeros(3, 3))],
    "linalg.ldl_factor_ex": [sample(torch.zeros(3, 3))],
    "linalg.lu_factor_ex": [sample(torch.zeros(3, 3))],
    "linalg.solve_ex": [sample(real(3, 3), real(3, 3)), sample(torch.zeros(3, 3), torch.ones(3, 3))],
    "linalg.svd": [sample(real(4, 3))],
    "linalg.solve": [sample(real(3, 3), real(3, 3))],
    "linalg.lu_solve": [sample(*torch.linalg.lu_factor(real(3, 3)), real(3, 3))],
    "linalg.solve_triangular": [sample(real(3, 3), real(3, 3), upper=True)],
    "linalg.tensorinv": [sample(real(4, 2, 2), 1)],
    "layer_norm": [sample(real(3, 3, 3), (3,))],
    "rms_norm": [sample(real(3, 3, 3), (3,))],
    "native_layer_norm": [sample(real(3, 3, 3), (3,), None, None, 1e-5)],
    "masked_scatter": [sample(real(3, 3), real(3, 3) > 0, real(9))],
    "nn.functional.alpha_dropout": [sample(real(4, 5), 0.4, True)],
    "nn.functional.feature_alpha_dropout": [sample(real(4, 5, 2), 0.4, True)],
    "nn.functional.batch_norm": [sample(real(5, 3), ZEROS, ONES, training=True)],
    "nn.functional.instance_norm": [
        sample(real(5, 3, 4), ZEROS, ONES),
        sample(real(5, 3, 4), ZEROS, ONES, use_input_stats=False),
    ],
    "nn.functional.binary_cross_entropy": [sample(unit(3, 3), unit(3, 3))],
    "nn.functional.embedding": [
        sample(torch.tensor([[1, 1], [0, 2]]), real(3, 3) * 3, max_norm=1.0),
        sample(torch.tensor([1, 1, 0]), real(3, 3)),
    ],
    "nn.functional.lookup": [sample(torch.tensor([0, 2, 2]), real(4, 3))],
    "nn.functional.embedding_bag": [
        sample(torch.tensor([[1, 1], [0, 2]]), real(3, 3), max_norm=0.5),
        sample(torch.tensor([1, 1, 0, 2]), real(3, 3), torch.tensor([0, 2, 4])),
    ],
    "nn.functional.ctc_loss": [
        sample(
            real(6, 2, 4).log_softmax(2),
            torch.tensor([[1, 3], [3, 1]]),
            torch.tensor([6, 5]),
            torch.tensor([2, 2]),
        ),
        sample(real(2, 1, 4).log_softmax(2), torch.tensor([[1, 1]]), torch.tensor([2]), torch.tensor([2])),
    ],
    "nn.functional.fractional_max_pool2d": [sample(real(1, 2, 8, 8), 2, 3)],
    "nn.functional.fractional_max_pool3d": [sample(real(1, 2, 8, 8, 8), 2, 3)],
    "nn.functional.cosine_embedding_loss": [sample(real(4, 3), real(4, 3), -torch.ones(4))],
    "nn.functional.multi_margin_loss": [sample(real(5, 4), whole(4, 5))],
    "nn.functional.multilabel_margin_loss": [
        sample(real(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]]))
    ],
    "nn.functional.nll_loss": [sample(real(5, 4), whole(4, 5))],
    "nn.functional.normalize": [sample(real(3, 4) * 1e-3)],
    "nn.functional.one_hot": [sample(torch.tensor([0, 2, 1]), 5)],
    "nn.functional.poisson_nll_loss": [sample(unit(3, 3), unit(3, 3), log_input=False, full=True)],
    "nn.functional.rrelu": [sample(real(4, 5), training=True)],
    "nn.functional.scaled_dot_product_attention": [
        sample(real(2, 4, 3, 3), real(2, 2, 3, 3), real(2, 2, 3, 3), enable_gqa=True)
    ],
    "scaled_dot_product_attention": [
        sample(real(2, 4, 3, 3), real(2, 2, 3, 3), real(2, 2, 3, 3), enable_gqa=True)
    ],
    "nn.functional.triplet_margin_with_distance_loss": [
        sample(real(4, 3), real(4, 3), real(4, 3), margin=9.0)
    ],
    "normalize": [sample(real(3, 4) * 1e-3)],
    "pinv": [sample(real(3, 3))],
    "put": [sample(real(3, 3), torch.tensor([1, 1, 5]), real(3))],
    "scatter_add": [sample(real(3, 3), 0, whole(3, 2, 3), real(3, 3))],
    "scatter_reduce": [sample(real(3, 3), 0, whole(3, 2, 3), real(3, 3), "sum")],
    "slice_scatter": [sample(real(3, 3), real(2, 3), dim=0, start=0, end=2)],
    "std_mean": [sample(real(3, 3), 0)],
    "stft": [sample(real(40), 8, window=unit(8), return_complex=True)],
    "take_along_dim": [sample(real(3, 3), whole(3, 2, 3), 0)],
    "var_mean": [sample(real(3, 3), 0)],
}
"""Calls for functions whose arguments depend on each other, or matter for some values only."""

ELSE: dict[str, list[Any]] = {
    "dtype": [torch.float64, torch.float32, torch.int64, torch.complex128],
    "dim": [1, 0, -1, (0, 1), None],
    "axis": [1, 0, -1],
    "axes": [(1, 0), (0,), 0],
    "dims": [(1, 0), 1, (0,), 0],
    "norm": ["ortho", "forward"],
    "s": [(2, 2), (5,)],
    "ord": [1, float("inf"), 0, "nuc", 3],
    "p": [1, 1.0, 3, 0.0, 0.9],
    "mode": ["sum", "mean", "max", "complete", "r", "reflect", "nearest", "bicubic", "tanh"],
    "reduction": ["sum", "none"],
    "reduce": ["prod", "amax", "mean", "add", "max", False],
    "rounding_mode": ["floor", "trunc"],
    "side": ["right", "left"],
    "indexing": ["xy", "ij"],
    "approximate": ["tanh"],
    "padding": [1, "same", 2],
    "padding_mode": ["border", "reflection"],
    "pad_mode": ["constant", "replicate"],
    "interpolation": ["lower", "nearest"],
    "UPLO": ["U"],
    "size_average": [False],
    "unbiased": [False],
    "output_size": [(7,), (5, 5)],
    "onesided": [False],
    "scale_factor": [0.5, 2.3],
    "distance_function": [lambda a, b: (a - b).abs().sum(-1)],
}  # fmt: skip
"""Other values for parameters of these names."""


def others(name: str, given: Any, first: Any) -> Iterator[Any]:
    """Values that a parameter could have in place of ``given``, of its kind or of its name; ``first``: a tensor."""
    yield from ELSE.get(name, ())
    if isinstance(given, bool):
        yield not given
    elif isinstance(given, int):
        yield from (given + 1, given + 2, given - 1, given * 2 + 3)
    elif isinstance(given, float):
        yield from (given * 1.7 + 0.3, given * 0.5, given * 1e6)
    elif isinstance(given, torch.Tensor):
        yield moved(given)
    elif isinstance(given, (tuple, list)) and given:
        yield (
            [moved(one) for one in given] if isinstance(given[0], torch.Tensor) else type(given)(given[::-1])
        )
        yield type(given)(given[:-1])
        if all(isinstance(one, int) for one in given):
            yield type(given)(one + 1 for one in given)
    elif given is None:
        yield from (0.25, 2, True)
        yield from optional(first)


def moved(x: Any) -> Any:
    """Another tensor of this dtype and shape."""
    if x.dtype is torch.bool:
        return ~x
    if x.is_floating_point() or x.is_complex():
        return x * 0.75 + 0.125
    return (x + 1) % (x.max() + 1) if x.numel() and x.min() >= 0 else x + 1


def optional(first: Any) -> Iterator[Any]:
    """Tensors for parameters that may be left out."""
    if not isinstance(first, torch.Tensor):
        return
    dtype = torch.float64 if first.dtype is torch.float64 else torch.float32
    for shape in {tuple(first.shape), *((n,) for n in first.shape[::-1])}:
        yield torch.arange(1.0, 1 + float(numpy.prod(shape, dtype=int)), dtype=dtype).reshape(shape) / 7
    yield torch.zeros(first.shape[-1:] or (1,), dtype=torch.int64)


def mapped(change: Any, args: list[Any]) -> list[Any]:
    return [change(one) if isinstance(one, torch.Tensor) else one for one in args]


def fitted(signature: inspect.Signature) -> Iterator[list[Any]]:
    """Arguments that fit most functions with these parameters, as matrices, vectors, batches and integers."""
    required = [
        key
        for key, one in signature.parameters.items()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    plain = [fitting_arguments.fitting(key) for key in required]
    yield mapped(lambda x: x - 0.9 if x.is_floating_point() else x, plain)
    yield plain
    yield mapped(lambda x: x[0] if x.ndim > 1 else x, plain)
    yield mapped(lambda x: x.double().unsqueeze(0) if x.is_floating_point() else x, plain)
    yield mapped(lambda x: x.long(), plain)
    yield mapped(lambda x: x.to(torch.complex128), plain)
    yield mapped(lambda x: x.reshape(1, 1, 3, 3) if x.numel() == 9 else x, plain)
    yield mapped(lambda x: x.reshape(3, 3)[:, :2] if x.numel() == 9 else x, plain)
    yield [5 for _ in required]


def sample_calls(name: str, signature: inspect.Signature) -> Iterator[Sample]:
    """Calls of a public function: those of its own, those that references check, and fitting ones."""
    short = name.removeprefix("nn.functional.").removeprefix("Tensor.").removesuffix("_")
    yield from SAMPLES.get(name, SAMPLES.get(short, ()))
    for check in PUBLIC.get(name, PUBLIC.get(short, ())):
        for made in list(check.calls())[:3]:
            yield list(tensors(made.args)), {key: tensors(value) for key, value in made.options.items()}
    for args in fitted(signature):
        yield args, {}
