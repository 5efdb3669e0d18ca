"""The Cholesky factorisation of positive definite matrices, and what is solved with it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes
from twofold.ir.types import TensorType
from twofold.ops import kernels
from twofold.ops.base import apply, composite, custom, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.cholesky_kernel import Factorisation
from twofold.ops.linear_algebra.matrices import (
    MatrixKernel,
    Packed,
    Pieces,
    Unpacked,
    adjoint,
    as_int32,
    by_kernel,
    check_matrix,
    common_batch,
    identity_like,
    linalg_function,
    observed,
    raise_first,
    scaled_diagonal,
    with_batch,
)
from twofold.ops.linear_algebra.triangular import (
    check_system,
    complex_matrices,
    solve_left,
    solve_right,
    well_conditioned,
)
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample
from twofold.ops.shape.movement import sum_to


class CholeskyInfo(NamedTuple):
    """The factor, and the order of the first leading minor that is not positive definite (0: none)."""

    L: Any
    info: Any


_LINALG_CHOLESKY_EX = return_type("linalg_cholesky_ex", CholeskyInfo)


def positive_definite(shape: tuple[int, ...]) -> Any:
    """Symmetric matrices with positive eigenvalues."""
    x = numpy.random.default_rng(len(shape)).standard_normal(shape)
    return gram(x, numpy.float32) + numpy.eye(shape[-1], dtype=numpy.float32)


def complex_positive() -> Any:
    """A Hermitian matrix with positive eigenvalues."""
    return gram(complex_matrices((3, 3)), numpy.complex64)


def gram(x: Any, dtype: Any) -> Any:
    """``x @ x^H``, Hermitian to the last bit: the rounding of the two triangles depends on the processor's BLAS."""
    product = x @ x.swapaxes(-1, -2).conj()
    return ((product + product.swapaxes(-1, -2).conj()) / 2).astype(dtype)


_FIX = "Add a small multiple of the identity, or use linalg.cholesky_ex and look at info."


def _failure(which: str, order: int) -> str:
    return f"{which} is not positive definite: its leading minor of order {order} is not"


def _by_numpy(a: Any, upper: bool, check: bool) -> Any:
    """The factors and info of NumPy arrays."""
    lower, info = matrix_routines.cholesky(a.swapaxes(-1, -2).conj() if upper else a)
    if check:
        raise_first(info, _failure, _FIX)
    return lower.swapaxes(-1, -2).conj() if upper else lower, info


class Factor(Unpacked):
    """The triangular factor and info of each matrix; attributes ``(upper, whether to raise on failure)``.

    The gradient follows Murray, Differentiation of the Cholesky decomposition (2016), equation 10.
    """

    autograd_name = "LinalgCholeskyExBackward0"
    title = "linalg.cholesky"

    def pieces(self, attrs: Any, shape: Any) -> Pieces:
        """The factor, and one number."""
        return (shape[-2:], ())

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        """The gradient of a symmetric argument."""
        (ct, _), (factor, _), (_, upper, _) = ct, y, rest
        if upper:
            factor, ct = adjoint(factor), adjoint(ct)
        inner = scaled_diagonal(ops.tril(adjoint(factor) @ ct), 0.5)
        inner = (inner + adjoint(inner)) * 0.5
        share = solve_right(factor, solve_left(adjoint(factor), inner, True), False)
        return (share,)


@custom
class cholesky_packed(Factor, MatrixKernel):
    """The Cholesky factor and info of each real matrix."""

    checks = True
    fix = _FIX
    wrong = staticmethod(_failure)

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (inputs[0].shape[-1],)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        size = inputs[0].shape[-1]
        return prod(output.shape[:-1]), kernels.grain(32768, size * size)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, (upper, check) = builder, attrs
        with b.loop(b.begin, b.end) as matrix:
            code = Factorisation(b, output.dtype, upper, matrix)
            code.copied(b.const(0, int64))
            info = code.factored()
            with b.if_(b.cmp("ne", info, 0)):
                if check:
                    self.report(b, matrix, code.size, info)
                else:  # what was computed before it was met
                    code.copied(b.sub(info, 1))
            code.finished()
            b.store(b.buffer(1), code.at(code.size, 0), b.cast(info, output.dtype))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        factor, info = _by_numpy(*arrays, *attrs)
        flat = factor.reshape(*info.shape, prod(factor.shape[-2:]))
        return numpy.concatenate([flat, info[..., None].astype(factor.dtype)], -1)

    def samples(self) -> Sequence[Sample]:
        # one triangle is read, the gradient is that of a symmetric argument: no finite differences here
        shapes = ((3, 3), (2, 4, 4), (1, 1), (6, 6), (0, 0), (0, 2, 2))
        return [
            example((upper, True), positive_definite(shape), smooth=False)
            for shape in shapes
            for upper in (False, True)
        ]


@host
class cholesky_by_numpy(Factor, Packed):
    """The same by NumPy: of complex and of large matrices."""

    gradient = Factor.gradient

    compute = staticmethod(_by_numpy)

    def samples(self) -> Sequence[Sample]:
        matrices = complex_positive(), positive_definite((3, 3))
        return [
            example((upper, True), matrix, smooth=False) for matrix in matrices for upper in (False, True)
        ]


def _factored(input: Any, upper: bool, check: bool) -> Any:
    """The factor and info."""
    operation = cholesky_packed if by_kernel(input) else cholesky_by_numpy
    return operation.results(input, attrs=(bool(upper), check))


@linalg_function()
@autocast("float32")
def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """The Cholesky factor of each matrix, and info: 0, or the order of the first minor that is not positive.

    >>> import twofold as torch
    >>> torch.linalg.cholesky_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    twofold.return_types.linalg_cholesky_ex(
    L=tensor([[2., 0.],
            [1., 2.]]),
    info=tensor(0, dtype=twofold.int32))
    """
    factor, info = _factored(input, upper, bool(check_errors))
    return _LINALG_CHOLESKY_EX(factor, as_int32(info))


@linalg_function()
@observed
@autocast("float32")
def cholesky(input: Any, *, upper: bool = False) -> Any:
    """The lower triangular L with ``A = L L^H`` for positive definite A; ``upper``: U with ``A = U^H U``.

    Raises LinAlgError for a matrix that is not positive definite.

    >>> import twofold as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return _factored(input, upper, True)[0]


@public("cholesky", methods=("cholesky",))
@observed
@autocast("float32")
def cholesky_(input: Any, upper: bool = False) -> Any:
    """The Cholesky factor; see ``linalg.cholesky``.

    >>> import twofold as torch
    >>> torch.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _factored(input, upper, True)[0]


def _solve(factor: Any, b: Any, upper: bool) -> Any:
    first, second = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
    return solve_left(second, solve_left(first, b, False), True)


def _factor_gradient(of_product: Any, factor: Any, upper: bool) -> Any:
    """The cotangent of a factor from that of the product, as if the factor were a full matrix (PyTorch's choice)."""
    both = of_product + adjoint(of_product)
    return sum_to(factor @ both if upper else both @ factor, factor.shape)


@composite
class cholesky_solve:
    """X with ``A X = B``, from the Cholesky factor ``L`` of A (``upper``: the upper one).

    >>> import twofold as torch
    >>> torch.cholesky_solve(torch.tensor([[8.0], [12.0]]), torch.tensor([[2.0, 0.0], [1.0, 2.0]]))
    tensor([[1.],
            [2.]])
    """

    autocast = "float32"
    memory = (3, "two systems are solved in turn")

    signature = "B, L"
    complex_rule = True
    call = staticmethod(lambda B, L, upper=False: apply("cholesky_solve", B, L, attrs=(bool(upper),)))

    @staticmethod
    def compute(b: Any, factor: Any, upper: bool) -> Any:
        check_system(factor, b)
        batch = common_batch(factor, b)
        return _solve(with_batch(factor, batch), with_batch(b, batch), upper)

    @staticmethod
    def vjp(ct: Any, y: Any, b: Any, factor: Any, upper: bool) -> Any:
        share = apply("cholesky_solve", ct, factor, attrs=(upper,))
        return sum_to(share, b.shape), _factor_gradient(-share @ adjoint(y), factor, upper)

    samples = lambda: [
        example((False,), (3, 2), well_conditioned((3, 3)), smooth=False),
        example((True,), (2, 3, 1), well_conditioned((3, 3)), smooth=False),
    ]


@composite
class cholesky_inverse:
    """The inverse of the matrix with the Cholesky factor ``L`` (``upper``: the upper one).

    >>> import twofold as torch
    >>> torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 0.0625]])
    """

    autocast = "float32"
    memory = (3, "two systems are solved in turn")

    signature = "L"
    complex_rule = True
    call = staticmethod(lambda L, upper=False: apply("cholesky_inverse", L, attrs=(bool(upper),)))

    @staticmethod
    def compute(factor: Any, upper: bool) -> Any:
        check_matrix(factor, square=True)
        return _solve(factor, with_batch(identity_like(factor), factor.shape[:-2]), upper)

    @staticmethod
    def vjp(ct: Any, y: Any, factor: Any, upper: bool) -> Any:
        return (_factor_gradient(-y @ ct @ y, factor, upper),)

    samples = lambda: [
        example((False,), well_conditioned((3, 3)), smooth=False),
        example((True,), well_conditioned((2, 2, 2)), smooth=False),
    ]
