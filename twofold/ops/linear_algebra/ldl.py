"""The LDL factorisation of symmetric (Hermitian) matrices that need not be definite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64
from twofold.errors import ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.base import apply, convert, host, strong
from twofold.ops.examples import example
from twofold.ops.linear_algebra import ldl_routines, matrix_routines
from twofold.ops.linear_algebra.matrices import (
    MatrixOperation,
    Packed,
    Pieces,
    as_int32,
    check_matrix,
    check_same_dtype,
    common_batch,
    linalg_function,
    observed,
    raise_first,
    with_batch,
)
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample


class LDLFactor(NamedTuple):
    """The multipliers and the block-diagonal factor in one matrix, and the exchanges of rows."""

    LD: Any
    pivots: Any


_LINALG_LDL_FACTOR = return_type("linalg_ldl_factor", LDLFactor)


class LDLFactorInfo(NamedTuple):
    """LD and pivots, and for each matrix the number of the first zero block (0: none)."""

    LD: Any
    pivots: Any
    info: Any


_LINALG_LDL_FACTOR_EX = return_type("linalg_ldl_factor_ex", LDLFactorInfo)


@host
class ldl_packed(Packed):
    """LD, pivots and info; attributes ``(hermitian, whether a zero block is an error)``. The lower triangle is read."""

    title = "linalg.ldl_factor"
    without_gradient = (0,)

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return (shape[-2:], shape[-1:], ())

    @staticmethod
    def compute(a: Any, hermitian: bool, check: bool) -> Any:
        if not a.size:
            return a, numpy.zeros(a.shape[:-1]), numpy.zeros(a.shape[:-2])
        found = matrix_routines.each(lambda matrix: ldl_routines.factor(matrix, hermitian), a)
        if check:
            raise_first(
                found[2],
                lambda which, order: f"{which} has a zero block, number {order}",
                "Use linalg.ldl_factor_ex and look at info.",
            )
        return found

    def samples(self) -> Sequence[Sample]:
        return [
            example((False, False), shape) for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2))
        ] + [example((hermitian, False), (4, 4), dtype=complex64) for hermitian in (False, True)]


@host
class ldl_system(MatrixOperation):
    """X with ``A X = B``: inputs LD, pivots and B with equal batch axes; attributes ``(hermitian,)``."""

    signature = "LD, pivots, B"
    title = "linalg.ldl_solve"
    without_gradient = (0, 2)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        packed, pivots, b = (strong(node) for node in inputs)
        check_matrix(packed, square=True, name="LD")
        check_matrix(b, name="B")
        check_same_dtype(packed, b)
        size = packed.shape[-1]
        if tuple(pivots.shape) != tuple(packed.shape[:-1]) or b.shape[-2] != size:
            raise ShapeError(
                f"LD of shape {packed.shape} with pivots of shape {pivots.shape} and B of shape {b.shape}",
                f"Pass LD and pivots as ldl_factor returned them, and B with {size} rows.",
            )
        batch = common_batch(packed, b)
        pivots = convert(pivots, packed.dtype)
        if batch != packed.shape[:-2]:
            pivots = apply("broadcast_to", pivots, attrs=((*batch, size),))
        values = (with_batch(packed, batch), pivots, with_batch(b, batch))
        return make_node(self, attrs, values, tensor_type(b.dtype, (*batch, *b.shape[-2:])))

    @staticmethod
    def compute(packed: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
        if not b.size:
            return b
        whole = pivots.real.astype(numpy.int64)

        def one(packed: Any, pivots: Any, b: Any) -> Any:
            return (ldl_routines.solve(packed, pivots, b, hermitian),)

        return matrix_routines.each(one, packed, whole, b)[0]

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return types[2]

    def samples(self) -> Sequence[Sample]:
        packed = numpy.array([[2, 0, 0], [0.5, 3, 0], [-1, 0.25, 1]], numpy.float32)
        pairs = numpy.array([[0.5, 0, 0], [3, 1, 0], [-1, 0.25, 2]], numpy.float32)
        return [
            example((False,), packed, numpy.array([1, 3, 3]), (3, 2)),
            example((False,), pairs, numpy.array([-3, -3, 3]), (2, 3, 1)),
            example((False,), (0, 0), numpy.zeros(0, numpy.int64), (0, 2)),
        ]


@linalg_function()
def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorInfo:
    """LD and pivots of ``ldl_factor``, and info: 0, or the number of the first zero block.

    >>> import twofold as torch
    >>> torch.linalg.ldl_factor_ex(torch.tensor([[2.0, 2.0], [2.0, 5.0]])).info
    tensor(0, dtype=twofold.int32)
    """
    packed, pivots, info = ldl_packed.results(A, attrs=(bool(hermitian), bool(check_errors)))
    return _LINALG_LDL_FACTOR_EX(packed, as_int32(pivots), as_int32(info))


@linalg_function()
@observed
def ldl_factor(A: Any, *, hermitian: bool = False) -> LDLFactor:
    """The factorisation ``A = L D L^T`` (``hermitian``: ``L D L^H``) in the compact form of LAPACK's ``sytrf``.

    Raises LinAlgError where a block of D is zero. There is no gradient.

    >>> import twofold as torch
    >>> torch.linalg.ldl_factor(torch.tensor([[5.0, 1.0], [1.0, 2.0]])).LD
    tensor([[5.0000, 0.0000],
            [0.2000, 1.8000]])
    """
    packed, pivots, _ = ldl_packed.results(A, attrs=(bool(hermitian), True))
    return _LINALG_LDL_FACTOR(packed, as_int32(pivots))


@linalg_function()
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Any:
    """X with ``A X = B`` from ``ldl_factor(A)``. There is no gradient.

    >>> import twofold as torch
    >>> factor = torch.linalg.ldl_factor(torch.tensor([[5.0, 1.0], [1.0, 2.0]]))
    >>> torch.linalg.ldl_solve(*factor, torch.tensor([[6.0], [3.0]]))
    tensor([[1.],
            [1.]])
    """
    return apply("ldl_system", LD, pivots, B, attrs=(bool(hermitian),))
