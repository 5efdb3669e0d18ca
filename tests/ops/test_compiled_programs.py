"""Random programs of any registered operations, with their gradients: equal bits on every tier and thread count."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import samples as sampled
from test_compiled import tensor_of, tier

import twofold as torch
from twofold import _core
from twofold.errors import ArgumentError, IndexRangeError, LinAlgError
from twofold.ir.op import REGISTRY
from twofold.ops.samples import Sample


@functools.cache
def samples() -> dict[str, list[Sample]]:
    """Small sample calls by name of the operation."""
    names = [name for name in sampled.operations_with_samples() if REGISTRY[name].kind != "host"]
    small = {
        name: [s for s in REGISTRY[name].samples() if all(a.size <= 400 for a in s.arrays)] for name in names
    }
    return {name: found for name, found in small.items() if found}


class Step(NamedTuple):
    """A sample call of an operation; each operand is an earlier value in the shape that is needed, or new."""

    name: str
    number: int
    operands: tuple[int | None, ...]

    @property
    def sample(self) -> Sample:
        return samples()[self.name][self.number]


@st.composite
def programs(draw: Any, most: int = 24) -> list[Step]:
    """Sample calls in a row, most operands being results of earlier ones."""
    steps: list[Step] = []
    for _ in range(draw(st.integers(2, most))):
        name = draw(st.sampled_from(list(samples())))
        number = draw(st.integers(0, len(samples()[name]) - 1))
        # the bits of a NaN that was computed are not fixed, so bits are only taken of new values
        connected = steps and not REGISTRY[name].exact_reference
        back = st.one_of(st.integers(1, min(4, len(steps))), st.none()) if connected else st.none()
        count = len(samples()[name][number].arrays)
        steps.append(Step(name, number, tuple(draw(back) for _ in range(count))))
    return steps


def fitted(value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The elements of ``value`` in another shape: the first ones or, where there are too few, the first one."""
    if tuple(value.shape) == shape:
        return value
    count = prod(shape)
    flat = value.reshape(-1)
    if flat.shape[0] >= count:
        return flat[:count].reshape(shape)
    return flat[:1].expand(shape) if flat.shape[0] else torch.zeros(shape, dtype=value.dtype)


def run(steps: Sequence[Step]) -> list[Any]:
    """Values and gradients of a program, as arrays."""
    values: list[torch.Tensor] = []
    leaves: list[torch.Tensor] = []
    for step in steps:
        operands = []
        for back, array, dtype in zip(step.operands, step.sample.arrays, step.sample.dtypes):
            earlier = None if back is None else values[-back]
            # an integer may be an index, which must fit
            if earlier is not None and dtype.kind in "bf" and earlier.dtype.kind == dtype.kind:
                operands.append(fitted(earlier, array.shape).to(dtype))
                continue
            leaf = tensor_of(array, dtype)
            if dtype.kind == "f":
                leaf.requires_grad = True
                leaves.append(leaf)
            operands.append(leaf)
        op: Any = REGISTRY[step.name]
        for position in getattr(op, "without_gradient", ()):
            operands[position] = operands[position].detach()
        values.append(_core.record(op, step.sample.attrs, operands))
    roots = [value for value in values if value.requires_grad]
    if roots:
        total = sum(
            (root.to(torch.float64).tanh().sum() for root in roots[-3:]), torch.zeros((), dtype=torch.float64)
        )
        total.backward()
    grads = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return [value.detach()._numpy().copy() for value in [*values, *grads]]


def same(found: Sequence[Any], wanted: Sequence[Any]) -> list[int]:
    """The numbers of the results that differ in more than the payload of a NaN."""
    differ = []
    assert len(found) == len(wanted)
    for number, (one, other) in enumerate(zip(found, wanted)):
        assert one.shape == other.shape and one.dtype == other.dtype
        if one.tobytes() != other.tobytes():
            bits = one.view(f"u{one.itemsize}") != other.view(f"u{one.itemsize}")
            if one.dtype.kind == "f":
                bits &= ~(numpy.isnan(one) & numpy.isnan(other))
            elif one.dtype == numpy.uint16:
                bits &= ~(((one & 0x7FFF) > 0x7F80) & ((other & 0x7FFF) > 0x7F80))
            if bits.any():
                differ.append(number)
    return differ


@settings(
    max_examples=int(os.environ.get("TWOFOLD_TEST_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_any_program_has_the_same_bits_fused(steps: list[Step]) -> None:
    threads = _core.threads()
    try:
        with tier("unfused"):
            plain = run(steps)
    except (ArgumentError, IndexRangeError, LinAlgError):
        reject()  # an operand may lie outside what an operation takes, as the result of another
    try:
        for count in (1, 2):
            _core.set_threads(count)
            with tier("fused"):
                assert not same(run(steps), plain)
    finally:
        _core.set_threads(threads)


def both_tiers(program: Any) -> list[list[Any]]:
    found = []
    for name in ("unfused", "fused"):
        with tier(name):
            found.append([value.detach()._numpy().copy() for value in program()])
    return found


def test_a_reduction_reads_the_empty_result_of_a_custom_operation() -> None:
    x = torch.tensor(numpy.ones((5, 17), numpy.float32), requires_grad=True)
    nothing = torch.tensor(numpy.zeros((0,), numpy.int64))

    def program() -> list[torch.Tensor]:
        x.grad = None
        total = torch.exp(x.index_select(0, nothing) * 2).sum()
        total.backward()
        return [total, x.grad]

    for found in both_tiers(program):
        assert found[0] == 0
        assert not found[1].any()


def test_a_view_is_read_in_place_by_a_product_and_whole_by_a_custom_operation() -> None:
    number = torch.tensor(numpy.float32(1.5))
    left = torch.tensor(numpy.ones((2, 3), numpy.float32))

    def program() -> list[torch.Tensor]:
        wide = (number - 1.0).reshape(1).expand(3, 5)
        return [left @ wide, torch.cumsum(wide, 0), torch.cat([wide, wide * 2])]

    plain, fused = both_tiers(program)
    assert not same(fused, plain)
    numpy.testing.assert_array_equal(fused[1], numpy.cumsum(numpy.full((3, 5), 0.5), 0))


def test_sums_of_columns_of_values_kept_from_an_earlier_phase() -> None:
    x = torch.tensor(numpy.random.default_rng(0).normal(size=(40, 30)).astype(numpy.float32))

    def program() -> list[torch.Tensor]:
        half = (x + 1).to(torch.bfloat16)
        return [half, half.std(0), half.var(0)]

    plain, fused = both_tiers(program)
    assert not same(fused, plain)


def test_a_computed_nan_is_positive_until_its_sign_is_changed() -> None:
    zero = torch.tensor(numpy.zeros(3, numpy.float32))

    def program() -> list[torch.Tensor]:
        nan = zero / zero
        return [torch.signbit(nan), torch.copysign(zero + 1, nan), torch.copysign(zero + 1, -nan)]

    plain, fused = both_tiers(program)
    assert not same(fused, plain)
    assert not plain[0].any()
    assert (plain[1] == 1).all()
    assert (plain[2] == -1).all()
