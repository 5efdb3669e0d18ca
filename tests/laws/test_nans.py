"""A NaN that is computed has one bit pattern, whatever computed it; one that is moved keeps its own."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.laws.test_same_bits import run_with
from twofold.compiler.lower.builder import LANES, Builder, Val
from twofold.ir.op import REGISTRY
from twofold.transforms.reverse import closed_graph

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
WAYS = list(itertools.product(("unfused", "fused"), (1, 2)))
_INTEGERS = {2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}
_QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}
_SIGN = {2: 1 << 15, 4: 1 << 31, 8: 1 << 63}


def bits(x):
    """The bits of a tensor's elements."""
    array = x.detach().contiguous()._numpy()
    return array.view(_INTEGERS[array.dtype.itemsize])


def of_bits(raw, dtype):
    """The tensor with these bits."""
    return torch.frombuffer(bytearray(raw.tobytes()), dtype=dtype)


def with_payloads(dtype, count=40):
    """NaNs of both signs with payloads, and numbers, of which every pair of kinds meets between two such tensors."""
    generator = numpy.random.default_rng(3)
    size = dtype.itemsize
    words = generator.normal(size=count).astype(numpy.float32)
    x = torch.tensor(words).to(dtype)
    raw = bits(x).copy()
    for k in range(0, count, 3):
        raw[k] = _QUIET[dtype.name] + 1 + k
    for k in range(0, count, 5):
        raw[k] = _QUIET[dtype.name] + 2 + k + _SIGN[size]
    return of_bits(raw, dtype), of_bits(raw[::-1], dtype)


def bias_gradient(rows):
    """The sum of rows one after another."""
    bias = torch.zeros(rows.shape[1], dtype=rows.dtype, requires_grad=True)
    return torch.autograd.grad(rows + bias, bias, rows)[0]


PROGRAMS = {
    "sum of a negative": lambda x, y: (-x) + y,
    "difference": lambda x, y: x - y,
    "product by one": lambda x, y: x * 1.0,
    "quotient by one": lambda x, y: (x / 1.0).abs() * 1.0,
    "less nothing": lambda x, y: x - 0.0,
    "maximum": lambda x, y: torch.maximum(x, y),
    "minimum": lambda x, y: torch.minimum(y, x),
    "fmax of computed": lambda x, y: torch.fmax(x + y, y),
    "logaddexp": lambda x, y: torch.logaddexp(x, y),
    "clamp": lambda x, y: torch.clamp(x, y, y + 1),
    "limits of limits": lambda x, y: torch.clamp(torch.clamp(x + y, 0, 6), -1, 2),
    "a limit that is NaN": lambda x, y: torch.clamp(torch.clamp(x + y, min=math.nan), max=2.0),
    "limits of what is moved": lambda x, y: torch.nn.functional.relu6(x),
    "relu": lambda x, y: torch.relu(x),
    "relu of a sum": lambda x, y: torch.relu(x + y),
    "heaviside": lambda x, y: torch.heaviside(torch.zeros_like(x), y),
    "floor": lambda x, y: torch.floor(x),
    "square root": lambda x, y: torch.sqrt(x),
    "exponential": lambda x, y: torch.exp(x),
    "power": lambda x, y: x**y,
    "remainder": lambda x, y: torch.remainder(x, y),
    "atan2": lambda x, y: torch.atan2(x, y),
    "sum": lambda x, y: x.sum(),
    "sum over rows": lambda x, y: (x + y).reshape(8, 5).sum(0),
    "mean over columns": lambda x, y: (x - y).reshape(8, 5).mean(1),
    "amax": lambda x, y: x.reshape(8, 5).amax(1),
    "gradient of a bias": lambda x, y: bias_gradient(x.reshape(8, 5)),
    "gradient of a wide bias": lambda x, y: bias_gradient(torch.cat([x, y, y, x]).reshape(2, 80)),
    "cumsum": lambda x, y: x.cumsum(0),
    "cumprod": lambda x, y: (x * y).cumprod(0),
    "product of matrices": lambda x, y: x.reshape(8, 5) @ y.reshape(5, 8),
    "transposed product": lambda x, y: x.reshape(8, 5) @ y.reshape(8, 5).t(),
    "product and epilogue": lambda x, y: torch.relu(x.reshape(8, 5) @ y.reshape(5, 8)) - x[:8],
    "convolution": lambda x, y: torch.nn.functional.conv1d(x.reshape(1, 2, 20), y[:12].reshape(2, 2, 3)),
    "max pooling": lambda x, y: torch.nn.functional.max_pool1d(x.reshape(1, 2, 20), 2),
    "average pooling": lambda x, y: torch.nn.functional.avg_pool1d(x.reshape(1, 2, 20), 2),
    "softmax": lambda x, y: x.reshape(8, 5).softmax(1),
    "layer norm": lambda x, y: torch.nn.functional.layer_norm(x.reshape(8, 5), (5,)),
    "scatter add": lambda x, y: torch.zeros(4, dtype=x.dtype).index_add(0, torch.arange(40) % 4, x),
    "transform": lambda x, y: torch.real(torch.fft.fft(x.float())),
    "inverse": lambda x, y: torch.linalg.inv(x[:25].reshape(5, 5).float()),
    "triangular system": lambda x, y: torch.linalg.solve_triangular(
        x[:25].reshape(5, 5).float(), y[:25].reshape(5, 5).float(), upper=True
    ),
    "matrix exponential": lambda x, y: torch.matrix_exp(x[:25].reshape(5, 5).float()),
    "conversion": lambda x, y: x.to(torch.float64 if x.dtype is torch.float32 else torch.float32),
    "there and back": lambda x, y: x.to(torch.float64).to(x.dtype) if x.dtype is torch.float32 else x * 2,
    "complex product": lambda x, y: torch.real(torch.complex(x.float(), y.float()) ** 2),
}  # fmt: skip
"""What computes: every NaN in its result is the canonical one."""

MOVES = {
    "negative": (lambda x, y: -x, lambda a, b, sign: a ^ sign),
    "negative twice": (lambda x, y: (-x).neg(), lambda a, b, sign: a),
    "absolute value": (lambda x, y: x.abs(), lambda a, b, sign: a & ~sign),
    "copysign": (lambda x, y: torch.copysign(x, y), lambda a, b, sign: (a & ~sign) | (b & sign)),
    "transposition": (lambda x, y: x.reshape(8, 5).t().contiguous().t().reshape(40), lambda a, b, sign: a),
    "concatenation": (lambda x, y: torch.cat([x, y])[:40], lambda a, b, sign: a),
    "gather": (lambda x, y: x[torch.arange(39, -1, -1)], lambda a, b, sign: a[::-1]),
    "flip": (lambda x, y: x.flip(0), lambda a, b, sign: a[::-1]),
    "padding": (lambda x, y: torch.nn.functional.pad(x, (1, 1))[1:41], lambda a, b, sign: a),
    "choice": (
        lambda x, y: torch.where(torch.arange(40) % 2 == 0, x, y),
        lambda a, b, sign: numpy.where(numpy.arange(40) % 2 == 0, a, b),
    ),
    "detached": (lambda x, y: x.detach().clone(), lambda a, b, sign: a),
}
"""What moves, chooses or changes signs: NaNs keep their bits."""

MIXED = {
    "choice of computed": lambda x, y: torch.where(x > 0, x + y, y),
    "negative of computed": lambda x, y: -(x + y),
    "sign of computed": lambda x, y: torch.signbit(y - x),
    "sign of moved": lambda x, y: torch.signbit(-y),
    "copied sign of computed": lambda x, y: torch.copysign(x, x * y),
    "absolute value of computed": lambda x, y: (x * y).abs(),
    "largest of computed": lambda x, y: torch.maximum(x + y, -y),
    "bits of computed": lambda x, y: torch.bitcast(x.float() + y.float(), torch.int32),
    "parts of computed": lambda x, y: torch.imag(-torch.complex(x.float(), y.float() + x.float())),
    "deviations": lambda x, y: torch.where(x > 0, x - x.mean(), -y),
}
"""Both in one: the same bits in every tier."""


def observed(program, dtype, way):
    return run_with(*way, lambda: bits(program(*with_payloads(dtype))))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_computed_nan_is_the_canonical_one(name, dtype):
    for way in WAYS[1:3]:
        result = run_with(*way, lambda: PROGRAMS[name](*with_payloads(dtype)))
        nan = torch.isnan(result).numpy()
        assert nan.any()
        found = bits(result)[nan]
        assert (found == _QUIET[result.dtype.name]).all(), (way, [hex(k) for k in set(found.tolist())])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MOVES)
def test_a_moved_nan_keeps_its_bits(name, dtype):
    program, expected = MOVES[name]
    x, y = with_payloads(dtype)
    sign = bits(x).dtype.type(_SIGN[dtype.itemsize])
    for way in WAYS[1:3]:
        assert (observed(program, dtype, way) == expected(bits(x), bits(y), sign)).all(), way


def values(program, dtype, way):
    result = run_with(*way, lambda: program(*with_payloads(dtype)))
    return (bits(result) if result.dtype.kind == "f" else result.numpy()).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [*PROGRAMS, *MOVES, *MIXED])
def test_every_tier_has_the_same_nans(name, dtype):
    program = PROGRAMS.get(name) or MIXED.get(name) or MOVES[name][0]
    assert len({values(program, dtype, way) for way in (WAYS[0], WAYS[3])}) == 1


@pytest.mark.parametrize(
    "name", [*MIXED, "negative", "copysign", "sum of a negative", "maximum", "logaddexp"]
)
def test_both_ways_of_declaring_have_the_same_nans(name):
    program = PROGRAMS.get(name) or MIXED.get(name) or MOVES[name][0]
    x, y = with_payloads(torch.float32)
    direct = program(x, y)
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = (tf.placeholder(tf.float32, (40,)) for _ in range(2))
        declared = session.run(program(a, b), {a: x.numpy(), b: y.numpy()})
    assert direct.numpy().tobytes() == declared.tobytes()


PASSING = [op for op in REGISTRY.values() if op.kind == "elementwise" and op.keeps_nan]


@pytest.mark.parametrize("op", PASSING, ids=lambda op: op.name)
def test_what_an_entry_passes_on_no_arithmetic_has_touched(op):
    for sample in op.samples():
        node = closed_graph(op, sample.attrs, sample.types).outputs[0]
        if node.op is not op:
            continue  # complex numbers, part by part
        b = Builder()
        dtypes = [value.type.dtype if op.reads_bits else value.type.dtype.compute for value in node.inputs]
        operands = [Val(f"%x{k}", dtype, LANES) for k, dtype in enumerate(dtypes)]
        assert not op.lower(b, node.attrs, node.type.dtype, *operands).open_nan


def test_the_sign_of_a_nan_is_what_memory_holds():
    x = torch.tensor(numpy.array([numpy.nan, -numpy.nan, -1.0], numpy.float32))
    assert torch.signbit(x).tolist() == numpy.signbit(x.numpy()).tolist()
    assert torch.signbit(-x).tolist() == numpy.signbit(-x.numpy()).tolist()
    infinity = torch.tensor([numpy.inf])
    assert torch.signbit(infinity - infinity).tolist() == [False]
    assert torch.signbit(-(infinity - infinity)).tolist() == [True]
