"""Where a result depends on a floating operand, its gradient is computed or raises: none is left out in silence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from samples import in_float64, operations_with_samples

import twofold as torch
from twofold.errors import UndefinedGradientError
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply

F: Any = torch.nn.functional
OF_NUMBERS = "its public function takes numbers, which have no gradient"
INTERNAL = "only libraries of the package call it, with operands that require no gradient"
MODULES = {
    "twofold.ops.elementwise.optimizers": INTERNAL,
    "twofold.ops.spectral.signal_windows": OF_NUMBERS,
}
REASONS = {
    "bitcast": "bits have no gradient",
    "stop_gradient": "stops gradients: that is what it is for",
    "straight_through": "passes gradients to its input alone: that is what it is for",
    "resample": INTERNAL,  # weights that sizes give
    "interleave": INTERNAL,  # within loops over windows
    "depthwise_transposed": INTERNAL,  # within convolution_transposed
    "embedding_renorm": INTERNAL,
    "changed_rows": INTERNAL,
    "checked_weights": INTERNAL,
    "grid_counts": INTERNAL,
    "frequencies": OF_NUMBERS,
    "half_frequencies": OF_NUMBERS,
    "random_dropout": OF_NUMBERS,
    "random_exponential": OF_NUMBERS,
    "random_cauchy": OF_NUMBERS,
    "random_log_normal": OF_NUMBERS,
    "random_truncated_normal": OF_NUMBERS,
    "random_binomial": "samples are integers",
    "random_binomial_large": "samples are integers",
    "random_log_gamma": INTERNAL,  # ``distributions`` states the gradients of its samples itself
    "random_von_mises": "rejects samples, which has no gradient, as in PyTorch",
}


REFUSED = {
    "layer_norm": 0,
    "rms_norm": 0,
    "batch_norm_train": 0,
    "scaled_dot_product_attention": 0,
    "hardtanh": 9,
    "soft_cross_entropy": 0,
    "cross_entropy": 1,
}
"""Operands of at most so many axes behind the first: the public function refuses tensors that require a gradient."""


def called(name: str, arrays: Any, attrs: Any, wanted: bool) -> tuple[list[Any], Any]:
    given = [torch.tensor(array) for array in arrays]
    for one in given:
        if wanted and one.is_floating_point():
            one.requires_grad_()
    return given, apply(name, *given, attrs=attrs)


def weighed(y: Any) -> Any:
    """A sum of the result, or of its parts, in which no two elements cancel."""
    real = torch.view_as_real(y) if y.is_complex() else y
    return (real * torch.cos(torch.arange(real.numel(), dtype=real.dtype)).reshape(real.shape)).sum()


def dense(gradient: torch.Tensor) -> torch.Tensor:
    """A gradient with all its rows, also that of a table of which it has some."""
    return gradient.to_dense() if gradient.is_sparse else gradient


def left_out(name: str, sample: Any) -> list[int]:
    """The operands without a gradient, or with one of zeros, that nevertheless change the result."""
    given, y = called(name, sample.arrays, sample.attrs, True)
    if not isinstance(y, torch.Tensor) or not (y.is_floating_point() or y.is_complex()):
        return []
    if y.requires_grad:
        try:
            weighed(y).backward()
        except UndefinedGradientError:
            return []
    found, before = [], weighed(y.detach()).item()
    for k, one in enumerate(given):
        if k and one.ndim <= REFUSED.get(name, -1):
            continue
        if not one.is_floating_point() or (one.grad is not None and dense(one.grad).numpy().any()):
            continue
        moved = 1e-4 * numpy.cos(1 + numpy.arange(one.numel())).reshape(tuple(one.shape))
        arrays = [array + moved if n == k else array for n, array in enumerate(sample.arrays)]
        after = weighed(called(name, arrays, sample.attrs, False)[1]).item()
        if abs(after - before) > 1e-8:
            found.append(k)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(operations_with_samples()) - set(REASONS)))
def test_no_gradient_is_left_out(name: str) -> None:
    op: Any = REGISTRY[name]
    if op.call.__module__ in MODULES:
        pytest.skip(MODULES[op.call.__module__])
    with torch.config.scoped(tier="unfused"):  # else programs are compiled for calls that run a few times
        for sample in list(op.samples())[:4]:
            if "f" in {dtype.kind for dtype in sample.dtypes}:
                assert left_out(name, in_float64(sample)) == [], sample.attrs


@pytest.mark.parametrize(
    "call",
    [
        lambda x, s: F.scaled_dot_product_attention(x, x, x, scale=s),
        lambda x, s: F.layer_norm(x, (4,), eps=s),
        lambda x, s: F.rms_norm(x, (4,), eps=s),
        lambda x, s: F.batch_norm(x, None, None, training=True, eps=s),
        lambda x, s: F.hardtanh(x, -1.0, s),
        lambda x, s: F.cross_entropy(x, torch.zeros(3, dtype=torch.int64), label_smoothing=s),
        lambda x, s: F.cross_entropy(x, torch.zeros(3, dtype=torch.int64), s.expand(4)),
        lambda x, s: F.cross_entropy(x, torch.full((3, 4), 0.25), label_smoothing=s),
    ],
)
def test_a_number_that_requires_a_gradient_is_refused(call: Any) -> None:
    x, s = torch.ones(3, 4), torch.tensor(0.5)
    assert call(x, s).isfinite().all()
    with pytest.raises(UndefinedGradientError, match="no gradient with respect to"):
        call(x, s.requires_grad_())


@pytest.mark.parametrize("mode", ["r", "complete"])
def test_a_value_without_a_gradient_can_be_looked_at(mode: str) -> None:
    a = torch.randn(4, 3, requires_grad=True)
    r = torch.linalg.qr(a, mode=mode).R
    assert r.tolist() == torch.linalg.qr(a.detach(), mode=mode).R.tolist()
    with pytest.raises(UndefinedGradientError, match="Use mode='reduced'"):
        r.sum().backward()


def test_a_constant_is_found() -> None:
    (sample, *_) = REGISTRY["stop_gradient"].samples()
    assert left_out("stop_gradient", in_float64(sample)) == [0]
