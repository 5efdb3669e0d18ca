"""PyTorch's own samples of its operations, run here: values, dtypes and gradients are PyTorch's.

Runs where PyTorch is installed. ``OP_DB_SAMPLES`` sets how many samples of an operation are taken, ``OP_DB_DTYPES``
which dtypes (comma-separated); by default two samples of the first dtype that an operation has. ``OP_DB_EVERY=n``
takes every n-th operation only, for a look that is quick.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold

sys.path.insert(0, str(Path(__file__).parent))

from bridge import Arguments, NoCounterpart, difference, name_of, tensors, to_array, torch, wanting_gradients

methods: Any = pytest.importorskip("torch.testing._internal.common_methods_invocations")
COUNT = int(os.environ.get("OP_DB_SAMPLES", "2"))
EVERY = int(os.environ.get("OP_DB_EVERY", "1"))
DTYPES = os.environ.get("OP_DB_DTYPES", "").split(",") if os.environ.get("OP_DB_DTYPES") else []
FIRST = ("float32", "complex64", "int64", "bool")
LOOKED_AT = 40
"""So many samples are made of an operation at most, when few of them are taken."""

WRAPPED = "PyTorch's entry calls it through a function that has no counterpart"
ORDER = "equal elements come in another order"
HERMITIAN = "PyTorch's gradient for a Hermitian matrix has a part that is not Hermitian"
NARROW = "PyTorch computes in the half type itself"
DIFFERENCES = {
    "argsort": ORDER,
    "kthvalue": ORDER,
    "msort": ORDER,
    "sort": ORDER,
    "topk": ORDER,
    "cholesky complex64": HERMITIAN,
    "linalg_cholesky complex64": HERMITIAN,
    "linalg_cholesky_ex complex64": HERMITIAN,
    "histc bfloat16": NARROW,
    "grid_sampler_2d bfloat16": NARROW,
    "logcumsumexp bfloat16": NARROW,
    "logcumsumexp complex64": "another one of the logarithms",
    "cov float64": "weights are float32 beside float64 observations, and divide by little",
    "_upsample_bilinear2d_aa uint8": "PyTorch rounds the weights to eight bits",
    "as_strided_scatter": "PyTorch's gradient for the input is that of the elements that are overwritten",
    "as_strided_partial_views": WRAPPED,
    "linalg_lstsq_grad_oriented": WRAPPED,
    "linalg_pinv_singular": WRAPPED,
    "max_pool2d_with_indices_backward": WRAPPED,
    "normal_in_place": WRAPPED,
    "pca_lowrank": WRAPPED,
    "svd_lowrank": WRAPPED,
}
"""Entries that are allowed to differ, in all dtypes or in one, and why."""

RANDOM = re.compile(
    r"dropout|bernoulli|rand|normal$|normal_number|multinomial|rrelu|poisson|uniform|attention|empty"
)
"""Entries whose results are drawn: they differ although PyTorch sets the seed."""

CALLED_ANOTHER_WAY: dict[str, Callable[..., Any]] = {
    "where": lambda x, condition, other: twofold.where(condition, x, other),
    "einsum": lambda operands, equation: twofold.einsum(equation, *operands),
    "polygamma": lambda x, n: twofold.polygamma(n, x),
    "special.polygamma": lambda x, n: twofold.special.polygamma(n, x),
    "nn.functional.embedding": lambda weight, index, **options: twofold.nn.functional.embedding(
        index, weight, **options
    ),
    "zero_": lambda x: x.clone().zero_(),
}
"""Operations that PyTorch's entry calls through a function of its own."""


def counterpart(name: str) -> Callable[..., Any] | None:
    """This library's function, or method, of a dotted name."""
    if name in CALLED_ANOTHER_WAY:
        return CALLED_ANOTHER_WAY[name]
    found: Any = twofold
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found
    method = getattr(twofold.Tensor, name, None)
    if method is None:
        return None
    return method if callable(method) else lambda x: getattr(x, name)


def dtypes_of(entry: Any) -> list[Any]:
    """The dtypes to run an entry in."""
    known = entry.supported_dtypes("cpu")
    found = [dtype for name in DTYPES or FIRST if (dtype := getattr(torch, name)) in known]
    return found if DTYPES else found[:1]


def samples_of(entry: Any, dtype: Any, grad: bool) -> Iterator[Any]:
    """Samples from all over those that an entry has."""
    made = list(itertools.islice(entry.sample_inputs("cpu", dtype, requires_grad=grad), LOOKED_AT * COUNT))
    step = max(1, len(made) // COUNT)
    return itertools.islice(made, 0, COUNT * step, step)


def weights(shape: tuple[int, ...], position: int) -> Any:
    """Numbers between -0.4 and 1 that make a loss of a result."""
    count = int(numpy.prod(shape, dtype=int))
    return (0.3 + 0.7 * numpy.cos(1.7 * numpy.arange(count) + position)).reshape(shape)


def loss(module: Any, results: list[Any], chosen: list[int]) -> Any:
    """The real parts of the chosen results, weighed and added up."""
    total = 0
    for position in chosen:
        real = results[position].real if results[position].is_complex() else results[position]
        scale = module.tensor(weights(tuple(real.shape), position)).to(real.dtype)
        total = total + (real * scale).sum()
    return total


def is_repeatable(first: list[Any], second: list[Any]) -> bool:
    """Whether two calls of PyTorch's function gave one result: random ones do not."""
    return all(
        numpy.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, second, strict=True)
    )


def processed(sample: Any, result: Any) -> Any:
    """A result without what is left open, such as signs of eigenvectors, as PyTorch's sample says."""
    try:
        return sample.output_process_fn_grad(result)
    except (TypeError, AttributeError):
        return result


def check_sample(entry: Any, function: Callable[..., Any], sample: Any, dtype: Any) -> None:
    """Compare results, and gradients where PyTorch's function has them."""
    given = (sample.input, *sample.args)
    theirs = processed(sample, entry(*given, **sample.kwargs))
    want = [to_array(one) for one in tensors(theirs)]
    again = [to_array(one) for one in tensors(processed(sample, entry(*given, **sample.kwargs)))]
    arguments = Arguments()
    ours = tensors(processed(sample, function(*arguments(given), **arguments(sample.kwargs))))
    got = [to_array(one) for one in ours]
    assert len(got) == len(want)
    if RANDOM.search(entry.formatted_name) or not is_repeatable(want, again):
        assert [one.shape for one in got] == [one.shape for one in want]
        return
    for expected, found in zip(want, got, strict=True):
        assert not (text := difference(expected, found, dtype)), text
    chosen = [
        k for k, one in enumerate(tensors(theirs)) if isinstance(one, torch.Tensor) and one.requires_grad
    ]
    leaves = wanting_gradients([given, sample.kwargs])
    if not chosen or not leaves:
        return
    expected = torch.autograd.grad(loss(torch, tensors(theirs), chosen), leaves, allow_unused=True)
    total = loss(twofold, ours, chosen)
    if total.requires_grad:
        total.backward()
    for want_gradient, leaf in zip(expected, arguments.leaves, strict=True):
        found = numpy.zeros(leaf.shape) if leaf.grad is None else to_array(leaf.grad)
        if want_gradient is None:
            assert not numpy.any(found)
        else:
            text = difference(to_array(want_gradient), found.astype(to_array(want_gradient).dtype), dtype)
            assert not text, f"gradient: {text}"


ENTRIES = [pytest.param(entry, id=entry.formatted_name) for entry in methods.op_db[::EVERY]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES)
def test_operation(entry: Any) -> None:
    function = counterpart(entry.name)
    if function is None:
        pytest.skip("not here")
    compared = 0
    for dtype in dtypes_of(entry):
        grad = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")
        for sample in samples_of(entry, dtype, grad):
            try:
                check_sample(entry, function, sample, dtype)
                compared += 1
            except NoCounterpart:
                continue
            except Exception:
                name = entry.formatted_name
                known = DIFFERENCES.get(name) or DIFFERENCES.get(f"{name} {name_of(dtype)}")
                if known is None:
                    raise
                pytest.xfail(known)
    if not compared:
        pytest.skip("no sample of this kind here")
