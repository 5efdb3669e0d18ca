"""The texts of errors of linear algebra, frozen, and when they come."""

import re

import pytest

import twofold as torch
import twofold.static as tf


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_linalg\.py:\d+", "here.py:N", str(caught.value))


LinAlgError = torch.linalg.LinAlgError
WHERE = "at here.py:N"
A = "A float32[2,2] (here.py:N)"

MISTAKES = {
    "not square": (
        RuntimeError,
        lambda: torch.linalg.inv(torch.ones(2, 3)),
        "linalg.inv: input holds matrices of 2 by 3, which are not square: A float32[2,3] (here.py:N), "
        f"{WHERE}. Give as many rows as columns.",
    ),
    "not a matrix": (
        RuntimeError,
        lambda: torch.linalg.det(torch.ones(3)),
        f"linalg.det: input has 1 axes, a matrix at least 2: A float32[3] (here.py:N), {WHERE}. "
        "Reshape or unsqueeze it.",
    ),
    "half": (
        RuntimeError,
        lambda: torch.linalg.svdvals(torch.ones(2, 2).half()),
        f"linalg.svdvals: input is float16: A float16[2,2] (here.py:N), {WHERE}. "
        "Cast it with .to() to float32 or float64 first.",
    ),
    "integers": (
        RuntimeError,
        lambda: torch.linalg.cholesky(torch.ones(2, 2).long()),
        f"linalg.cholesky: input is int64: A int64[2,2] (here.py:N), {WHERE}. "
        "Cast it with .to() to float32 or float64 first.",
    ),
    "dtypes differ": (
        RuntimeError,
        lambda: torch.linalg.solve(torch.ones(2, 2), torch.ones(2, 1, dtype=torch.float64)),
        f"linalg.solve: dtypes differ, float32 against float64: {A}, B float64[2,1] (here.py:N), {WHERE}. "
        "Cast one with .to().",
    ),
    "rows of a right-hand side": (
        RuntimeError,
        lambda: torch.linalg.solve(torch.ones(2, 2), torch.ones(3, 2)),
        f"linalg.solve: B has 3 rows, A is 2 by 2: {A}, B float32[3,2] (here.py:N), {WHERE}. Give B 2 rows.",
    ),
    "columns of a right-hand side": (
        RuntimeError,
        lambda: torch.linalg.solve_triangular(torch.ones(2, 2), torch.ones(3, 3), upper=True, left=False),
        f"linalg.solve_triangular: B has 3 columns, A is 2 by 2: {A}, B float32[3,3] (here.py:N), {WHERE}. "
        "Give B 2 columns.",
    ),
    "mode": (
        RuntimeError,
        lambda: torch.linalg.qr(torch.ones(2, 2), mode="full"),
        f"linalg.qr: mode='full': {A}, {WHERE}. Use 'reduced', 'complete' or 'r'.",
    ),
    "norm of three axes": (
        RuntimeError,
        lambda: torch.linalg.norm(torch.ones(2, 2, 2), 2),
        f"linalg.norm: a norm of order 2 of 3 axes: A float32[2,2,2] (here.py:N), {WHERE}. Say which with dim.",
    ),
    "cross of two elements": (
        RuntimeError,
        lambda: torch.linalg.cross(torch.ones(2), torch.ones(2)),
        "linalg.cross: axis 0 of input has size 2, not 3: input float32[2] (here.py:N), "
        f"other float32[2] (here.py:N), {WHERE}. Name another axis.",
    ),
    "singular": (
        LinAlgError,
        lambda: torch.linalg.inv(torch.ones(2, 2)),
        "linalg.inv: the matrix is singular: pivot 2 of its LU factorisation is 0: A float32[2,2] (here.py:N), "
        f"{WHERE}. Use linalg.pinv or linalg.lstsq, or add a small multiple of the identity.",
    ),
    "singular in a batch": (
        LinAlgError,
        lambda: torch.linalg.solve(torch.stack([torch.eye(2), torch.ones(2, 2)]), torch.ones(2, 2)),
        "linalg.solve: batch element 1 is singular: pivot 2 of its LU factorisation is 0: "
        "A float32[2,2,2] (here.py:N), "
        f"B float32[2,2] (here.py:N), {WHERE}. Use linalg.pinv or linalg.lstsq, or add a small multiple of "
        "the identity.",
    ),
    "not positive definite": (
        LinAlgError,
        lambda: torch.linalg.cholesky(torch.diag(torch.tensor([1.0, -1.0]))),
        "linalg.cholesky: the matrix is not positive definite: its leading minor of order 2 is not: "
        f"A float32[2,2] (here.py:N), {WHERE}. Add a small multiple of the identity, or use linalg.cholesky_ex and "
        "look at info.",
    ),
    "zero pivot": (
        LinAlgError,
        lambda: torch.linalg.lu_factor(torch.zeros(2, 2)),
        f"linalg.lu_factor: the matrix has a zero pivot, number 1: A float32[2,2] (here.py:N), {WHERE}. "
        "Use linalg.lu, or linalg.lu_factor_ex and look at info.",
    ),
    "not finite": (
        LinAlgError,
        lambda: torch.linalg.svd(torch.full((2, 2), float("nan"))).S.sum().item(),
        f"linalg.svd: an element is NaN or infinite: A float32[2,2] (here.py:N), {WHERE}. "
        "Look for values that are not finite, or of very different sizes.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, text = MISTAKES[name]
    assert message(error, action) == text


def test_a_singular_matrix_is_an_error_where_it_is_met():
    x = torch.ones(2, 2, requires_grad=True)
    doubled = x * -2
    with pytest.raises(LinAlgError):
        torch.linalg.cholesky(doubled)
    # what was recorded before goes on
    factor = torch.linalg.cholesky(-doubled + torch.eye(2))
    factor.sum().backward()
    assert x.grad is not None


def test_what_does_not_depend_on_the_failure_is_computed():
    x = torch.ones(2, 2) * 3
    factor, _ = torch.linalg.inv_ex(x, check_errors=True)
    after, beside = factor + 1, x + 1
    with pytest.raises(LinAlgError):
        after.sum().item()
    assert beside.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    with pytest.raises(RuntimeError, match="never computed"):
        factor.tolist()


def test_a_fused_run_names_the_line_too():
    def step(x):
        return (torch.linalg.inv_ex(x + 1, check_errors=True).inverse * 2).sum().item()

    for _ in range(4):
        step(torch.eye(2))
    torch.wait_for_compiler()
    step(torch.eye(2))
    with pytest.raises(LinAlgError, match=r"linalg\.inv: the matrix is singular.*test_linalg\.py:\d+"):
        step(torch.zeros(2, 2))


def test_a_declared_graph_names_the_line_of_the_declaration():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (2, 2))
        inverse = torch.linalg.inv(x)
        with tf.Session() as session:
            assert session.run(inverse, {x: [[2, 0], [0, 4]]}).tolist() == [[0.5, 0], [0, 0.25]]
            with pytest.raises(LinAlgError, match="singular"):
                session.run(inverse, {x: [[1, 1], [1, 1]]})
