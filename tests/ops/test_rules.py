"""Promotion, broadcasting, public calls and error texts of element-wise operations and reductions."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import dtypes
from twofold.dtypes import bool_, float16, float32, float64, int8, int32, int64, uint8
from twofold.errors import AxisError, DTypeError, GradientError, ShapeError, TwofoldError
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate, narrow, widen
from twofold.ir.node import topological
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.base import METHODS, ops
from twofold.transforms.reverse import closed_graph, grad_graph, vjp_graph, vjp_of


def node(dtype: Any = float32, *shape: int, index: int = 0) -> Any:
    return input_node(index, tensor_type(dtype, shape))


def weak(kind: Any, index: int = 1) -> Any:
    return input_node(index, tensor_type(kind, (), True))


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (float32, float64, float64), (float16, float32, float32), (int32, float16, float16), (int8,
         uint8, dtypes.int16),
        (bool_, int8, int8), (bool_, bool_, bool_), (int64, float32, float32), (uint8, uint8, uint8),
    ],
)  # fmt: skip
def test_promotion_of_tensors(a: Any, b: Any, result: Any) -> None:
    assert ops.add(node(a, 3), node(b, 3, index=1)).dtype is result
    assert ops.where(node(bool_, 3, index=2), node(a, 3), node(b, 3, index=1)).dtype is result


@pytest.mark.parametrize(
    ("a", "scalar", "result"),
    [
        (float16, float64, float16), (int32, float64, float32), (int32, int64, int32), (bool_, int64, int64),
        (float32, bool_, float32), (uint8, int64, uint8), (bool_, float64, float32),
    ],
)  # fmt: skip
def test_promotion_of_scalars(a: Any, scalar: Any, result: Any) -> None:
    found = ops.multiply(node(a, 3), weak(scalar))
    assert found.dtype is result and not found.type.weak


def test_an_entry_has_the_rules_of_its_kind_and_no_others() -> None:
    for name, op in REGISTRY.items():
        kind = type(op)
        missing = [one for one in dir(kind) if getattr(getattr(kind, one), "__isabstractmethod__", False)]
        assert not missing, name
        known = {
            one for base in kind.__mro__ for one in (*vars(base), *vars(base).get("__annotations__", ()))
        }
        assert vars(op).keys() <= known, f"{name} has fields of another kind, or of none"


def test_scalars_among_themselves_stay_weak() -> None:
    found = ops.subtract(weak(float64), weak(int64, 2))
    assert found.type is tensor_type(float64, (), True)
    assert ops.multiply(node(float16, 2), found).dtype is float16
    assert ops.exp(weak(int64)).type is tensor_type(float64, (), True)


def test_the_result_of_a_call_on_scalars_alone_is_a_tensor() -> None:
    graph = closed_graph(REGISTRY["exp"], (), [tensor_type(float64, (), True)])
    assert graph.outputs[0].type is tensor_type(float32, ())


def test_result_dtypes() -> None:
    integers = node(int32, 2)
    assert ops.exp(integers).dtype is float32
    assert ops.divide(integers, integers).dtype is float32
    assert ops.sum(integers).dtype is int64 and ops.prod(node(bool_, 2)).dtype is int64
    assert ops.less(integers, 1.5).dtype is bool_
    assert ops.logical_and(integers, integers).dtype is bool_
    assert ops.argmax(integers).dtype is int64
    assert ops.floor(integers).dtype is int32
    assert ops.sum(node(float16, 2)).dtype is float16


def test_no_node_is_inserted_where_none_is_needed() -> None:
    x, y = node(float32, 2, 3), node(float32, 2, 3, index=1)
    assert ops.add(x, y).inputs == (x, y)
    assert [n.op.name for n in topological([ops.add(x, 1)])] == ["input", "constant", "broadcast_to", "add"]
    assert ops.cast(x, float32) is x
    assert constant(1, float32) in topological([ops.add(x, 1)])


def test_operators_on_nodes() -> None:
    x, y = node(float32, 3), node(float32, 3, index=1)
    assert (x + y) is ops.add(x, y) and (2 - x) is ops.subtract(constant(2), x)
    assert (x < y) is ops.less(x, y) and (-x) is ops.negative(x) and abs(x) is ops.abs(x)
    assert (x**2) is ops.square(x) and (x**-1) is ops.reciprocal(x) and (x**0.5) is ops.sqrt(x)
    assert (x == y) is False and "__eq__" in METHODS
    assert (2**x).op.name == "pow"


@pytest.mark.parametrize("exponent", [-1, 0.5, 1, 2, 3, 2.5, -2, 0])
def test_powers(exponent: float) -> None:
    values = numpy.array([0.5, 2.0, 3.0])
    graph = Graph([tensor_type(float64, (3,))], [node(float64, 3) ** exponent])
    numpy.testing.assert_allclose(evaluate(graph, [values])[0], values**exponent, rtol=1e-15)


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 1.0, 2.0, 3.0, 2.5])
def test_integers_to_a_fractional_power_are_floats(exponent: float) -> None:
    assert (node(int64, 3) ** exponent).dtype is float32
    assert (node(int64, 3) ** 2).dtype is (node(bool_, 3) ** 1).dtype is int64


@pytest.mark.parametrize("exponent", [0, numpy.zeros(3)])
def test_the_power_0_has_no_slope_even_at_0(exponent: Any) -> None:
    x = torch.tensor([0.0, 2.0, -1.0], requires_grad=True)
    torch.pow(x, exponent if isinstance(exponent, int) else torch.tensor(exponent)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_public_forms_of_max() -> None:
    x = node(float32, 2, 3)
    found = ops.max(x, 1, keepdim=True)
    assert found.values.shape == found.indices.shape == (2, 1)
    assert ops.max(x).shape == () and ops.max(x, node(float32, 3, index=1)).op.name == "maximum"
    assert ops.sum(x, axis=0, keepdims=True).shape == (1, 3)
    assert ops.sum(x, (0, 1)).shape == () and ops.sum(x, dtype=float64).dtype is float64


def test_extremes_share_or_select_the_gradient() -> None:
    values = numpy.array([[1.0, 3.0, 3.0]])
    for name, attrs, expected in (
        ("amax", ((1,), False), [0, 0.5, 0.5]),
        ("select_extreme", (1, False, True), [0, 1, 0]),
    ):
        op = REGISTRY[name]
        graph = closed_graph(op, attrs, [tensor_type(float64, (1, 3))])
        found = vjp_of(op, attrs, graph, 0)
        assert found is not None
        known = {"cotangent": numpy.ones(1), "output": numpy.full(1, 3.0), 0: values}
        got = evaluate(found[0], [known[what] for what in found[1]])[0]
        numpy.testing.assert_array_equal(got, [expected])


def test_gradients_at_kinks() -> None:
    zero = tensor_type(float64, ())
    for name, expected in (("relu", 0), ("abs", 0), ("square", 0)):
        found = vjp_graph(closed_graph(REGISTRY[name], (), [zero]), 0)
        assert found is not None
        known = {"cotangent": numpy.array(1.0), "output": numpy.array(0.0), 0: numpy.array(0.0)}
        assert evaluate(found[0], [known[what] for what in found[1]])[0] == expected


def test_gradient_uses_the_output_and_skips_what_it_does_not_read() -> None:
    f = tensor_type(float32, (3,))
    assert vjp_graph(closed_graph(REGISTRY["tanh"], (), [f]), 0)[1] == ["cotangent", "output"]  # type: ignore[index]
    assert vjp_graph(closed_graph(REGISTRY["add"], (), [f, f]), 1)[1] == ["cotangent"]  # type: ignore[index]
    assert vjp_graph(closed_graph(REGISTRY["less"], (), [f, f]), 0) is None
    integers = tensor_type(int32, (3,))
    assert vjp_graph(closed_graph(REGISTRY["multiply"], (), [f, integers]), 1) is None


def test_gradients_of_several_inputs_and_broadcasting() -> None:
    types = [tensor_type(float32, (2, 3)), tensor_type(float32, (3,))]
    found = vjp_graph(closed_graph(REGISTRY["multiply"], (), types), (0, 1))
    assert found is not None and [o.type for o in found[0].outputs] == types


def test_grad_graph_and_deep_chains() -> None:
    x = node(float64)
    value = x
    for _ in range(20_000):
        value = value * 1.0001
    graph = grad_graph(Graph([x.type], [value]), [0])
    got = evaluate(graph, [numpy.array(2.0)])[0]
    assert got == pytest.approx(1.0001**20_000, rel=1e-9)
    with pytest.raises(GradientError, match="no single number"):
        grad_graph(Graph([tensor_type(float32, (2,))], [node(float32, 2)]), [0])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: ops.add(node(float32, 2, 3), node(float32, 4)), ShapeError,

                 "sizes on axis -1 differ, 3 against 4. "
                 "Make them equal, or one of them 1 (unsqueeze adds such an axis)."),
        (lambda: ops.sum(node(float32, 2, 3), 2), AxisError,
         "axis 2 is outside a tensor with 2 axes. Use an axis from -2 to 1."),
        (lambda: ops.amax(node(float32, 0, 3), 0), ShapeError,
         "the largest of no elements does not exist. Reduce an axis that has elements."),
        (lambda: ops.mean(node(int64, 3)), DTypeError,
         "takes floating dtypes, not int64. Cast with .to() first."),
        (lambda: ops.bitwise_and(node(float32), 1), DTypeError,
         "takes bool and signed integers and unsigned integers, not float32. Cast with .to() first."),
        (lambda: ops.subtract(node(bool_), node(bool_)), DTypeError,
         "takes signed integers and unsigned integers and floating dtypes, not bool. Cast with .to() first."),
        (lambda: ops.add(node(int64), node(dtypes.uint64)), DTypeError,
         "int64 and uint64 have no common dtype. Cast one of them first with .to()."),
        (lambda: ops.gelu(node(), approximate="no"), TwofoldError,
         "approximate='no' is unknown. Use 'none' or 'tanh'."),
        (lambda: ops.clamp(node()), TwofoldError, "neither min nor max is given. Give at least one limit."),
        (lambda: ops.sum(node(float32, 2, 3), (0, -2)), TwofoldError,
         "an axis is named twice in (0, -2). Name each axis once."),
    ],
)  # fmt: skip
def test_errors_say_what_and_how_to_fix_it(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == text


def test_storage_of_bfloat16_rounds_once_and_to_even() -> None:
    values = numpy.array([1.0, 1 + 2**-8, 1 + 2**-8 + 2**-40, 1 + 3 * 2**-8, -0.0, math.inf, 3.4e38])
    got = widen(narrow(values, dtypes.bfloat16), dtypes.bfloat16)
    numpy.testing.assert_array_equal(got, [1.0, 1.0, 1 + 2**-7, 1 + 2**-6, -0.0, math.inf, math.inf])
    assert math.isnan(widen(narrow(numpy.array(math.nan), dtypes.bfloat16), dtypes.bfloat16))


def test_building_one_call_is_quick() -> None:
    types = [tensor_type(float32, (64, 64)), tensor_type(float32, (64,))]
    closed_graph(REGISTRY["add"], (), types)
    best = min(_seconds(types) for _ in range(5))
    assert best < 100e-6 * 5  # leaves room for a slow machine


def _seconds(types: Any) -> float:
    start = time.perf_counter()
    for _ in range(100):
        closed_graph(REGISTRY["add"], (), types)
    return (time.perf_counter() - start) / 100
