"""Types over sizes that are not known, against the rules for sizes that are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))

import samples as sampled

from twofold.dtypes import float32
from twofold.errors import ShapeError, TwofoldError
from twofold.ir import shape_inference
from twofold.ir.bind import input_node
from twofold.ir.op import REGISTRY
from twofold.ir.shape_inference import (
    UNKNOWN_RANK,
    OpenSizes,
    common_type,
    new_unknown_size,
    result_type,
    types_by,
    types_by_rank,
)
from twofold.ir.types import tensor_type


def with_names(type: Any, names: dict[int, int]) -> Any:
    """The type with a name for each size above 1, the same for equal ones."""
    shape = [size if size < 2 else names.setdefault(size, new_unknown_size()) for size in type.shape]
    return tensor_type(type.dtype, tuple(shape), type.weak)


def value_of(size: int, given: dict[int, int]) -> int | None:
    """What a size of a type is for given sizes; None for one that nothing is known of."""
    if size >= 0 or size in given:
        return given.get(size, size)
    formula = shape_inference._FORMULAS.get(size)
    if formula is None:
        return None
    assumed = {name: ((number, ()),) for name, number in given.items()}
    found = OpenSizes(unified=assumed).evaluate(formula)
    return found if isinstance(found, int) else None


@pytest.mark.parametrize("name", sampled.operations_with_samples())
def test_the_type_over_names_holds_for_the_sizes_of_the_sample(name):
    op: Any = REGISTRY[name]
    shaped = [sample for sample in op.samples() if any(array.ndim for array in sample.arrays)]
    for sample in shaped[:2]:
        true = op.build(sample.attrs, [input_node(k, type) for k, type in enumerate(sample.types)]).type
        names: dict[int, int] = {}
        types = [with_names(type, names) for type in sample.types]
        try:
            found = result_type(op, sample.attrs, types)
        except TwofoldError:
            pytest.fail(f"{sample.attrs} {types} is refused, {sample.types} is not")
        assert found.dtype is true.dtype
        if found.shape == UNKNOWN_RANK:
            continue
        given = {name: size for size, name in names.items()}
        sizes = [value_of(size, given) for size in found.shape]
        assert len(sizes) == len(true.shape)
        assert all(size in (None, real) for size, real in zip(sizes, true.shape)), (sample.attrs, types)


def sizes_of(*rules: Any) -> list[int]:
    """The size that a rule gives for two names, and the names."""
    n, m = new_unknown_size(), new_unknown_size()
    made = [
        types_by(lambda sizes, rule=rule: [tensor_type(float32, (rule(sizes.size(n), sizes.size(m)),))])
        for rule in rules
    ]
    return [n, m, *[types[0].shape[0] for types in made]]


def test_equal_expressions_have_one_name_and_others_another():
    n, _, one, same, other, back, four = sizes_of(
        lambda n, m: 2 * n + m,
        lambda n, m: m + n + n,
        lambda n, m: 2 * n,
        lambda n, m: (2 * n) // 2,
        lambda n, m: n - n + 4,
    )
    assert one == same < 0 and other < 0 and other not in (one, n)
    assert back == n and four == 4


def test_an_expression_of_a_named_expression_is_one_of_its_names():
    n, _, double = sizes_of(lambda n, m: 2 * n)
    found = types_by(lambda sizes: [tensor_type(float32, (sizes.size(double) // 2,))])
    assert found[0].shape == (n,)


def test_sizes_that_must_be_equal_are_and_a_multiple_is_solved():
    def equal(n: Any, m: Any) -> Any:
        if n != m:
            raise ShapeError("n is not m", "")
        return n + m

    def multiple(n: Any, m: Any) -> Any:
        if n != 3 * m:
            raise ShapeError("n is not 3 m", "")
        return n // 3

    n, m, both, third = sizes_of(equal, multiple)
    assert shape_inference._FORMULAS.get(both) in (((2, (("input", n),)),), ((2, (("input", m),)),))
    assert third == m


def test_a_size_that_depends_on_a_decision_is_unknown():
    n, m, bounded, fixed, joined, kept = sizes_of(
        lambda n, m: min(n, 10),
        lambda n, m: 7 + 0 * (n > 3),
        lambda n, m: 1 if n == 1 else n,
        lambda n, m: n + 0 * (m > n),
    )
    assert bounded < 0 and bounded not in (n, m)
    assert fixed == 7 and joined == n and kept == n


def test_a_rule_that_takes_no_sizes_raises_its_first_error():
    def never(n: Any, m: Any) -> Any:
        raise ShapeError("odd" if n % 2 == 1 else "even", "")

    with pytest.raises(ShapeError, match="even"):
        sizes_of(never)


def test_a_rule_that_counts_to_a_size_is_refused():
    def counted(n: Any, m: Any) -> Any:
        k = 0
        while k != n:
            k += 1
        return k

    with pytest.raises(ShapeError, match="loops up to an unknown size"):
        sizes_of(counted)


def test_a_rule_that_asks_for_a_number_leaves_other_names():
    n, m, asked = sizes_of(lambda n, m: len(range(n)))
    assert asked < 0 and asked not in (n, m)


def test_what_types_of_several_ranks_agree_on():
    assert common_type([tensor_type(float32, (2, 3)), tensor_type(float32, (2,))]).shape == UNKNOWN_RANK
    a, b = common_type([tensor_type(float32, (2, 3)), tensor_type(float32, (2, 4))]).shape
    assert a == 2 and b < -1


@pytest.mark.parametrize(
    ("accepts", "rank"),
    [
        (lambda rank: rank == 2, 2),
        (lambda rank: rank == 6, 6),
        (lambda rank: rank in (2, 3), None),
        (lambda rank: rank > 6, None),
        (lambda rank: True, None),
    ],
)
def test_the_rank_that_alone_fits_is_known(accepts: Any, rank: int | None) -> None:
    def rule(types: list[Any]) -> list[Any]:
        if not accepts(types[0].ndim):
            raise ShapeError("another rank", "")
        return types

    (found,) = types_by_rank([tensor_type(float32, UNKNOWN_RANK)], rule, (ShapeError,))
    assert found.shape == UNKNOWN_RANK if rank is None else found.ndim == rank


def test_a_tensor_of_unknown_rank_may_have_more_axes_than_the_others() -> None:
    wide = tensor_type(float32, (2,) * 6)
    unknown = tensor_type(float32, UNKNOWN_RANK)
    assert result_type(REGISTRY["add"], (), [unknown, wide]).shape == UNKNOWN_RANK
