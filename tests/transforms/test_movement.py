"""What a call is said to move is what its graph computes, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from twofold.compiler.templates import template_of
from twofold.dtypes import float32, int32, int64
from twofold.ir.interpret import evaluate
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType, tensor_type
from twofold.transforms.derived import pullbacks_of, stable_graph
from twofold.transforms.movement import Movement, movement_in

NUMBER = tensor_type(int64, (), True)


def rows(*shape: int) -> TensorType:
    return tensor_type(float32, shape)


def laid(movement: Movement, arrays: list[Any]) -> bytes:
    """The bytes that a movement names; of a part, the rest of its operand from there on."""
    found = [arrays[k].tobytes() for k in movement.operands]
    if movement.joins:
        return b"".join(found)
    moved = movement.step * int(arrays[movement.number]) if movement.number >= 0 else 0
    return found[0][movement.offset + moved :]


@pytest.mark.parametrize(
    "name, attrs, types",
    [
        ("reshape", ((4, 3),), [rows(2, 6)]),
        ("squeeze", ((0,),), [rows(1, 6)]),
        ("copied", (), [rows(2, 3)]),
        ("slice", ((1, 5), (1, 1), (1,)), [rows(1, 20), NUMBER]),
        ("slice", ((2, 20), (1, 1), (0,)), [rows(7, 20), NUMBER]),
        ("slice", ((1, 2, 3), (1, 1, 1), (0, 1)), [rows(4, 5, 3), NUMBER, NUMBER]),
        ("slice", ((2, 5), (1, 1), (1,)), [rows(2, 20), NUMBER]),
        ("slice", ((2, 20), (2, 1), (0,)), [rows(7, 20), NUMBER]),
        ("slice", ((2, 20), (1, 1), (0,)), [rows(7, 20), tensor_type(int32, ())]),
        ("concatenate", (0,), [rows(2, 3), rows(1, 3), rows(2, 3)]),
        ("concatenate", (1,), [rows(1, 3), rows(1, 4)]),
        ("concatenate", (1,), [rows(2, 3), rows(2, 4)]),
        ("concatenate_rows", (1,), [rows(3), rows(2, 3)]),
        ("permute", ((1, 0),), [rows(2, 3)]),
        ("tanh", (), [rows(2, 3)]),
    ],
)
def test_a_movement_is_what_the_graph_computes(name: str, attrs: Any, types: list[TensorType]) -> None:
    graph = stable_graph(REGISTRY[name], attrs, types)
    found = movement_in(graph)
    computed = name in ("permute", "tanh")
    apart = types[0].shape[0] > 1 and attrs in [((2, 5), (1, 1), (1,)), ((2, 20), (2, 1), (0,)), (1,)]
    tensor_start = len(types) == 2 and types[1].dtype is int32
    two_numbers = len(types) == 3 and types[1] is NUMBER
    if name != "concatenate_rows" and (computed or apart or tensor_start or two_numbers):
        assert found is None
        return
    assert found is not None
    generator = numpy.random.default_rng(0)
    arrays: list[Any] = [
        numpy.int64(3) if type.weak else generator.normal(size=type.shape).astype(numpy.float32)
        for type in types
    ]
    (value,) = evaluate(graph, arrays)
    assert laid(found, arrays)[: value.nbytes] == value.tobytes()


def test_the_gradients_of_joined_values_are_parts() -> None:
    types = tuple(rows(size, 3) for size in (1, 2, 1))
    offsets = []
    for one in pullbacks_of(REGISTRY["concatenate"], (0,), types, (0, 1, 2)).values():
        assert not isinstance(one, NotImplementedError)
        found = movement_in(one.graph)
        assert found is not None and not found.joins
        offsets.append(found.offset)
    assert offsets == [0, 12, 36]


@pytest.mark.parametrize("attrs", [((150,), (1,), (0,)), ((1, 20), (1, 1), (0,)), ((2, 20), (1, 1), (0,))])
def test_a_slice_over_symbolic_sizes_is_a_movement(attrs: Any) -> None:
    types = [rows(450), NUMBER] if len(attrs[0]) == 1 else [rows(7, 20), NUMBER]
    op = REGISTRY["slice"]
    numbers = sum(map(len, attrs)) + len(types[0].shape)
    found = template_of(op, attrs, tuple(types), (True,) * numbers)
    assert found[-1] == movement_in(stable_graph(op, attrs, types))[:3] + (0, 0)
