"""Matrix products and einsum against NumPy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from on_nodes import Calls, gradients, run, same

import twofold as torch
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import ops
from twofold.transforms.reverse import vjp_graph

G = numpy.random.default_rng(0)


def draw(*shape: int) -> Any:
    return G.normal(size=shape)


SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((4, 2, 3), (3, 5)),
    ((4, 2, 3), (4, 3, 5)),
    ((2, 1, 2, 3), (4, 3, 2)),
    ((3,), (2, 3, 4)),
    ((2, 4, 3), (3,)),
    ((2, 3), (5, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize("left,right", SHAPES)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = draw(*left), draw(*right)
    same(ops.matmul, numpy.matmul, a, b)
    gradients(ops.matmul, a, b)


def test_the_primitive_has_its_normal_form() -> None:
    calls = Calls()
    out = ops.matmul(calls.lift(draw(2, 1, 2, 3)), calls.lift(draw(4, 3, 2)))
    nodes = [node for node in calls.graph(out).nodes() if node.op.kind == "contraction"]
    assert [value.shape for value in nodes[0].inputs] == [(2, 4, 2, 3), (2, 4, 3, 2)]
    out = ops.matmul(calls.lift(draw(2, 5, 3)), calls.lift(draw(3, 4)))
    nodes = [node for node in calls.graph(out).nodes() if node.op.kind == "contraction"]
    assert [value.shape for value in nodes[0].inputs] == [(10, 3), (3, 4)]


def test_gradients_are_products_with_permuted_operands() -> None:
    calls = Calls()
    graph = calls.graph(ops.matmul(calls.lift(draw(2, 3)), calls.lift(draw(3, 4))))
    for index in (0, 1):
        found = vjp_graph(graph, index)
        assert found is not None
        assert sorted(node.op.name for node in found[0].nodes()) == ["input", "input", "matmul", "permute"]


def test_operands_of_products_have_one_dtype() -> None:
    square = numpy.ones((2, 2), numpy.int32)
    assert run(ops.matmul, square, square).dtype == numpy.int32
    for other in (numpy.float32, numpy.int64):
        with pytest.raises(DTypeError, match="same dtype"):
            run(ops.matmul, square, numpy.ones((2, 2), other))


CALLS: list[tuple[Any, Any, list[tuple[int, ...]]]] = [
    (ops.mm, numpy.matmul, [(2, 3), (3, 4)]),
    (ops.bmm, numpy.matmul, [(5, 2, 3), (5, 3, 4)]),
    (ops.mv, numpy.matmul, [(2, 3), (3,)]),
    (ops.dot, numpy.dot, [(3,), (3,)]),
    (ops.outer, numpy.outer, [(3,), (4,)]),
    (ops.linear, lambda x, w: x @ w.T, [(2, 5, 3), (4, 3)]),
    (ops.linear, lambda x, w, b: x @ w.T + b, [(5, 3), (4, 3), (4,)]),
    (
        lambda x, a, b: ops.addmm(x, a, b, beta=2, alpha=0.5),
        lambda x, a, b: 2 * x + 0.5 * (a @ b),
        [(4,), (2, 3), (3, 4)],
    ),
    (lambda a, b: ops.tensordot(a, b, 2), lambda a, b: numpy.tensordot(a, b, 2), [(2, 3, 4), (3, 4, 5)]),
    (
        lambda a, b: ops.tensordot(a, b, ([0], [2])),
        lambda a, b: numpy.tensordot(a, b, ([0], [2])),
        [(4, 3), (2, 3, 4)],
    ),
    (ops.kron, numpy.kron, [(2, 3), (3, 2)]),
    (ops.trace, numpy.trace, [(3, 4)]),
]


@pytest.mark.parametrize("case", range(len(CALLS)))
def test_products(case: int) -> None:
    mine, exact, shapes = CALLS[case]
    arrays = [draw(*shape) for shape in shapes]
    same(mine, exact, *arrays)
    gradients(mine, *arrays, second=False)


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("ij->", [(3, 2)]),
    ("ij->ji", [(3, 2)]),
    ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("...ij,...jk->...ik", [(2, 5, 3, 2), (5, 2, 4)]),
    ("i,i", [(3,), (3,)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ij,kj,lk->il", [(2, 3), (4, 3), (5, 4)]),
    ("ij,ij->i", [(2, 3), (2, 3)]),
    ("a...,a...->...", [(3, 2, 4), (3, 2, 4)]),
    ("ij,k->", [(2, 3), (4,)]),
    ("ijk,ilm,njm,nlk,abc->", [(2, 3, 2), (2, 2, 2), (2, 3, 2), (2, 2, 2), (1, 2, 1)]),
    ("ba", [(2, 3)]),
]


@pytest.mark.parametrize("equation,shapes", EQUATIONS)
def test_einsum(equation: str, shapes: Any) -> None:
    arrays = [draw(*shape) for shape in shapes]
    same(lambda *x: ops.einsum(equation, *x), lambda *x: numpy.einsum(equation, *x), *arrays)
    gradients(lambda *x: ops.einsum(equation, *x), *arrays, second=False)


ERRORS: list[tuple[Any, list[tuple[int, ...]], type[Exception], str]] = [
    (
        ops.matmul,
        [(2, 3), (4, 5)],
        ShapeError,
        "inner sizes differ, 3 against 4. Make the first axis of other 3.",
    ),
    (ops.matmul, [(), (4, 5)], ShapeError, "a matrix product with a scalar. Multiply with * instead."),
    (ops.mm, [(2, 2, 3), (3, 5)], ShapeError, "input has 3 axes, not 2. Use matmul, which takes any number."),
    (ops.bmm, [(2, 2, 3), (3, 3, 5)], ShapeError, "batch sizes differ, 2 against 3. Make them equal."),
    (
        ops.linear,
        [(2, 4), (5, 3)],
        ShapeError,
        "in_features differ, 4 against 3. Make the last axis of the input 3.",
    ),
    (
        lambda a, b: ops.einsum("ij,jk->iz", a, b),
        [(2, 3), (3, 4)],
        ArgumentError,
        "result 'iz' of 'ij,jk->iz'.",
    ),
    (lambda a, b: ops.einsum("ij,jk", a, b), [(2, 3), (4, 4)], ShapeError, "axis j has sizes 3 and 4."),
    (lambda a, b: ops.einsum("ij", a, b), [(2, 3), (4, 4)], ArgumentError, "'ij' names 1 operands, not 2."),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case: int) -> None:
    function, shapes, kind, text = ERRORS[case]
    with pytest.raises(kind) as caught:
        run(function, *[draw(*shape) for shape in shapes])
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("order", [1, 2, float("inf"), "nuc", "fro"])
@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0, 0)])
def test_a_matrix_without_elements_has_norm_zero(order: Any, shape: tuple[int, int]) -> None:
    assert torch.linalg.norm(torch.zeros(shape), order).item() == 0.0


def test_einsum_takes_the_numbers_of_axes() -> None:
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4)
    assert torch.einsum(a, [0, 1], b, [1, 5], [5, 0]).equal(torch.einsum("ij,jk->ki", a, b))
    assert torch.einsum(a, [..., 1], [...]).tolist() == [3.0, 12.0]
    assert torch.einsum(a, [7, 3]).equal(a.T)
    with pytest.raises(ArgumentError, match="axes 5"):
        torch.einsum(a, 5)


def test_the_exponential_of_half_types_is_computed_in_float32():
    x = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
    for dtype in (torch.bfloat16, torch.float16):
        found = torch.matrix_exp(x.to(dtype))
        assert found.dtype is dtype
        assert torch.equal(found, torch.matrix_exp(x.to(dtype).float()).to(dtype))


def test_outer_products_of_bools_are_ands_that_are_ored() -> None:
    """PyTorch's numbers; with integers on one side, bools count as 0 and 1."""
    x, v = torch.tensor([[True, False], [True, True]]), torch.tensor([True, False])
    whole, i = torch.tensor([[1, 0], [1, 1]]), torch.tensor([2, 3])
    for found, wanted in (
        (torch.addr(x, v, v), [[True, False], [True, True]]),
        (torch.addr(x, v, v, beta=False), [[True, False], [False, False]]),
        (torch.addr(~x, v, v), [[True, True], [False, False]]),
        (torch.addr(~x, v, v, alpha=False), [[False, True], [False, False]]),
        (torch.addr(x, i, i), [[5, 6], [7, 10]]),
        (torch.addr(x, i, i, beta=2, alpha=3), [[14, 18], [20, 29]]),
        (torch.addr(whole, v, v), [[2, 0], [1, 1]]),
        (torch.addr(whole.float(), v, v, beta=3), [[4.0, 0.0], [3.0, 3.0]]),
    ):
        assert found.tolist() == wanted
        assert type(found.tolist()[0][0]) is type(wanted[0][0])


PRODUCTS: dict[str, Any] = {
    "addmv": ((2,), [(2, 4), (4,)]),
    "addmm": ((2, 3), [(2, 4), (4, 3)]),
    "addr": ((2, 3), [(2,), (3,)]),
    "addbmm": ((2, 3), [(4, 2, 5), (4, 5, 3)]),
    "baddbmm": ((4, 2, 3), [(4, 2, 5), (4, 5, 3)]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_an_input_broadcasts_to_the_product_and_the_product_to_none(name: str) -> None:
    shape, factors = PRODUCTS[name]
    call, operands = getattr(torch, name), [torch.ones(*sizes) for sizes in factors]
    for fits in (shape, (1,) * len(shape), shape[1:], ()):
        assert tuple(call(torch.ones(*fits), *operands).shape) == shape
    for beyond in ((5, *shape), (1, *shape), (*shape[:-1], shape[-1] + 1), (shape[0] + 1, *shape[1:])):
        with pytest.raises(ShapeError, match=f"^{name}: .* broadcast"):
            call(torch.ones(*beyond), *operands)
    narrow = [torch.ones(*(1 if size == shape[-1] else size for size in sizes)) for sizes in factors]
    with pytest.raises(ShapeError, match=f"^{name}: .* broadcast"):
        call(torch.ones(*shape), *narrow)


def test_gradients_of_a_pseudo_inverse_are_summed_over_tolerances() -> None:
    matrix = torch.tensor([[2.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    tolerances = torch.tensor([0.0, 3.0, 9.0], dtype=torch.float64)
    leaf = matrix.clone().requires_grad_()
    found = torch.linalg.pinv(leaf, atol=tolerances)
    assert found.tolist() == [[[0.5, 0], [0, 0.25]], [[0, 0], [0, 0.25]], [[0, 0], [0, 0]]]
    found.sum().backward()
    each = torch.zeros_like(matrix)
    for tolerance in tolerances:
        one = matrix.clone().requires_grad_()
        torch.linalg.pinv(one, atol=tolerance).sum().backward()
        each += one.grad
    assert leaf.grad.shape == (2, 2) and torch.allclose(leaf.grad, each)


def test_the_driver_for_full_ranks_asks_no_tolerance() -> None:
    a, b = torch.tensor([[1.0, 0.0], [0.0, 0.1], [0.0, 0.0]]), torch.tensor([[1.0], [1.0], [0.0]])
    assert torch.linalg.lstsq(a, b, rcond=0.5, driver="gels").solution.flatten().tolist() == [1.0, 10.0]
    assert torch.linalg.lstsq(a, b, rcond=0.5, driver="gelsd").solution.flatten().tolist() == [1.0, 0.0]


def test_the_error_of_singular_matrices_has_its_names():
    assert torch._C._LinAlgError is torch.linalg.LinAlgError
    with pytest.raises(torch._C._LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2)).sum().item()
