"""``tf.linalg.LinearOperator*``: batches of matrices as linear maps, which compute no more than their kind needs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import linalg, math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.debugging import Assert
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import name_scope
from twofold.static.graph.tensor_shape import TensorShape


def _adjoint(x: Any) -> Any:
    return linalg.adjoint(x)


def _composed() -> Any:
    """The module of the operators that are made of others."""
    return import_module("twofold.static.composed_operators")


def _column(x: Any) -> Any:
    return shape_ops.expand_dims(x, -1)


class LinearOperator:
    """Base of linear maps: of a batch of matrices, with what is known of them.

    A class of a program's own writes ``_shape`` and ``_to_dense``, or ``_matmul``, and what it computes faster than by
    dense matrices.

    Args:
        dtype: That of the elements.
        graph_parents: What the operator is made of.
        is_non_singular: Whether the matrices have inverses; None where it is not known.
        is_self_adjoint: Whether they equal their adjoints.
        is_positive_definite: Whether they are positive definite.
        is_square: Whether they have as many rows as columns.
        name: The name of the operator.
        parameters: The arguments of the subclass.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: Any = None,
    ) -> None:
        if is_self_adjoint or is_positive_definite:
            if is_square is False:
                raise ValueError(
                    f"{type(self).__name__}: self-adjoint and positive definite matrices are square, at {here()}. "
                    "Leave is_square out."
                )
            is_square = True
        self.dtype = as_dtype(dtype)
        self.graph_parents = list(graph_parents or [])
        self.is_non_singular = True if is_positive_definite else is_non_singular
        self.is_self_adjoint, self.is_positive_definite = is_self_adjoint, is_positive_definite
        self.is_square, self.name = is_square, name or type(self).__name__
        self.parameters = parameters

    # what subclasses write

    def _shape(self) -> TensorShape:
        raise NotImplementedError(f"{type(self).__name__} does not say its shape. Write _shape.")

    def _shape_tensor(self) -> Any:
        return shape_ops.shape(self.to_dense())

    def _to_dense(self) -> Any:
        size = self.domain_dimension_tensor()
        eye = linalg.eye(size, batch_shape=self.batch_shape_tensor(), dtype=self.dtype)
        return self._matmul(eye, False)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        dense = self.to_dense()
        return _batched(math.matmul, _adjoint(dense) if adjoint else dense, x)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if self.is_self_adjoint and self.is_positive_definite:
            return _batched(linalg.cholesky_solve, linalg.cholesky(self.to_dense()), rhs)
        dense = self.to_dense()
        return _batched(linalg.matrix_solve, _adjoint(dense) if adjoint else dense, rhs)

    def _diag_part(self) -> Any:
        return linalg.diag_part(self.to_dense())

    def _determinant(self) -> Any:
        return linalg.det(self.to_dense())

    def _log_abs_determinant(self) -> Any:
        if self.is_self_adjoint and self.is_positive_definite:
            diagonal = linalg.diag_part(linalg.cholesky(self.to_dense()))
            return 2.0 * math.reduce_sum(math.log(diagonal), -1)
        return linalg.slogdet(self.to_dense())[1]

    def _inverse(self) -> LinearOperator:
        return LinearOperatorFullMatrix(linalg.inv(self.to_dense()), is_non_singular=True)

    # what programs call

    @property
    def shape(self) -> TensorShape:
        """The batch's shape, the rows and the columns, as far as they are known."""
        return self._shape()

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """The shape as a tensor of int32."""
        with self._scope(name):
            known = self.shape
            return (
                convert_to_tensor(known.as_list(), "int32")
                if known.is_fully_defined()
                else self._shape_tensor()
            )

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without rows and columns."""
        return self.shape[:-2]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape without rows and columns, as a tensor."""
        return self.shape_tensor(name)[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of axes."""
        return self.shape.ndims

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """The number of axes, as a tensor."""
        return shape_ops.size(self.shape_tensor(name))

    @property
    def domain_dimension(self) -> Any:
        """The columns."""
        return self.shape[-1]

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """The columns, as a tensor."""
        return self.shape_tensor(name)[-1]

    @property
    def range_dimension(self) -> Any:
        """The rows."""
        return self.shape[-2]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """The rows, as a tensor."""
        return self.shape_tensor(name)[-2]

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The products with matrices ``x``, or the composition with another operator.

        ``adjoint``: of the adjoint; ``adjoint_arg``: with the adjoint of ``x``.
        """
        if isinstance(x, LinearOperator):
            first = self.adjoint() if adjoint else self
            return _composed().LinearOperatorComposition([first, x.adjoint() if adjoint_arg else x])
        with self._scope(name):
            x = convert_to_tensor(x, self.dtype)
            return self._matmul(_adjoint(x) if adjoint_arg else x, adjoint)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The products with vectors ``x``."""
        return shape_ops.squeeze(
            self.matmul(_column(convert_to_tensor(x, self.dtype)), adjoint, name=name), [-1]
        )

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The matrices whose products are ``rhs``; raises NotImplementedError where the hints say there are none."""
        self._need_inverse("solve")
        with self._scope(name):
            rhs = convert_to_tensor(rhs, self.dtype)
            return self._solve(_adjoint(rhs) if adjoint_arg else rhs, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The vectors whose products are ``rhs``."""
        return shape_ops.squeeze(
            self.solve(_column(convert_to_tensor(rhs, self.dtype)), adjoint, name=name), [-1]
        )

    def determinant(self, name: str = "det") -> Any:
        """The determinant of each matrix."""
        self._need_square("determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithm of the size of each determinant."""
        self._need_square("log_abs_determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def trace(self, name: str = "trace") -> Any:
        """The sum of each diagonal."""
        with self._scope(name):
            return math.reduce_sum(self.diag_part(), -1)

    def diag_part(self, name: str = "diag_part") -> Any:
        """The diagonals."""
        with self._scope(name):
            return self._diag_part()

    def to_dense(self, name: str = "to_dense") -> Any:
        """The matrices."""
        with self._scope(name):
            return self._to_dense()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """The sums of the matrices and ``x``."""
        with self._scope(name):
            return convert_to_tensor(x, self.dtype) + self.to_dense()

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the adjoint matrices."""
        return self if self.is_self_adjoint else _composed().LinearOperatorAdjoint(self)

    @property
    def H(self) -> LinearOperator:
        """The operator of the adjoint matrices."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverse matrices."""
        self._need_inverse("inverse")
        with self._scope(name):
            return self._inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator of the lower triangular factors; raises ValueError unless the hints say that there are such."""
        if not (self.is_self_adjoint and self.is_positive_definite):
            raise ValueError(
                f"Cannot take the Cholesky decomposition: {self.name} is not said to be self-adjoint and positive "
                f"definite, at {here()}. Say so where it is made."
            )
        with self._scope(name):
            return LinearOperatorLowerTriangular(linalg.cholesky(self.to_dense()), is_non_singular=True)

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that raises where a determinant is zero."""
        return Assert(
            math.reduce_all(math.not_equal(self.determinant(), 0.0)), ["Singular operator"], name=name
        )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that raises where an eigenvalue is not positive."""
        dense = self.to_dense()
        values = linalg.eigvalsh((dense + _adjoint(dense)) / 2)
        return Assert(
            math.reduce_all(math.greater(values, 0.0)), ["Operator is not positive definite"], name=name
        )

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that raises where a matrix differs from its adjoint."""
        dense = self.to_dense()
        equal = math.reduce_all(math.equal(dense, _adjoint(dense)))
        return Assert(equal, ["Operator is not self-adjoint"], name=name)

    def _scope(self, name: str) -> Any:
        return name_scope(f"{self.name}/{name}" if get_default_graph() is not None else name)

    def _need_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{self.name}.{what}: the matrices are not square, at {here()}.")

    def _need_inverse(self, what: str) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError(
                f"{self.name}.{what}: the matrices are said to be singular, at {here()}."
            )
        self._need_square(what)


def _batched(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """A function of batches of matrices, of batches that are broadcast together."""
    first, second = left.shape, right.shape
    if first.ndims == second.ndims == 2 or (
        first.is_fully_defined() and second.is_fully_defined() and first[:-2] == second[:-2]
    ):
        return function(left, right)
    sizes, others = shape_ops.shape(left), shape_ops.shape(right)
    batch = shape_ops.broadcast_dynamic_shape(sizes[:-2], others[:-2])
    left = creation.broadcast_to(left, shape_ops.concat([batch, sizes[-2:]], 0))
    return function(left, creation.broadcast_to(right, shape_ops.concat([batch, others[-2:]], 0)))


def _shown(arguments: str, result: str) -> Any:
    return example(f"tf.linalg.LinearOperator{arguments}", result)


@_shown("FullMatrix([[2.0, 1.0], [0.0, 4.0]]).matvec([1.0, 1.0])", "[3. 4.]")
class LinearOperatorFullMatrix(LinearOperator):
    """A batch of matrices, ``matrix``, with the hints of ``LinearOperator``."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = convert_to_tensor(matrix)
        sizes = self._matrix.shape[-2:].as_list()
        if is_square is None and None not in sizes:
            is_square = sizes[0] == sizes[1]
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(self._matrix.dtype, [self._matrix], *hints, name)

    @property
    def matrix(self) -> Any:
        """The matrices."""
        return self._matrix

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _to_dense(self) -> Any:
        return self._matrix


@_shown("LowerTriangular(tf.ones([2, 2])).to_dense()", "[[1. 0.]\n [1. 1.]]")
class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangles of matrices; what ``tril`` holds above the diagonal does not count."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError(
                f"{name}: lower triangular operators are square, at {here()}. Leave is_square out."
            )
        self._tril = linalg.band_part(convert_to_tensor(tril), -1, 0)
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, True)
        super().__init__(self._tril.dtype, [self._tril], *hints, name)

    @property
    def tril(self) -> Any:
        """The lower triangles."""
        return self._tril

    def _shape(self) -> TensorShape:
        return self._tril.shape

    def _to_dense(self) -> Any:
        return self._tril

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        def solved(matrix: Any, right: Any) -> Any:
            return linalg.matrix_triangular_solve(matrix, right, adjoint=adjoint)

        return _batched(solved, self._tril, rhs)

    def _determinant(self) -> Any:
        return math.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        return math.reduce_sum(math.log(math.abs(self._diag_part())), -1)


@_shown("Diag([2.0, 4.0]).solvevec([2.0, 2.0])", "[1.  0.5]")
class LinearOperatorDiag(LinearOperator):
    """Diagonal matrices, of the diagonals ``diag``."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        self._diag = convert_to_tensor(diag)
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError(f"{name}: a real diagonal operator is self-adjoint, at {here()}.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError(f"{name}: diagonal operators are square, at {here()}. Leave is_square out.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, True)
        super().__init__(self._diag.dtype, [self._diag], *hints, name)

    @property
    def diag(self) -> Any:
        """The diagonals."""
        return self._diag

    def _shape(self) -> TensorShape:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _shape_tensor(self) -> Any:
        sizes = shape_ops.shape(self._diag)
        return shape_ops.concat([sizes, sizes[-1:]], 0)

    def _to_dense(self) -> Any:
        return linalg.diag(self._diag)

    def _factors(self, adjoint: bool) -> Any:
        return _column(math.conj(self._diag) if adjoint and self.dtype.is_complex else self._diag)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._factors(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / self._factors(adjoint)

    def _diag_part(self) -> Any:
        return self._diag

    def _determinant(self) -> Any:
        return math.reduce_prod(self._diag, -1)

    def _log_abs_determinant(self) -> Any:
        return math.reduce_sum(math.log(math.abs(self._diag)), -1)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1.0 / self._diag, True, None, self.is_positive_definite)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator of the roots of the diagonals."""
        if not self.is_positive_definite:
            return super().cholesky(name)
        return LinearOperatorDiag(math.sqrt(self._diag), is_positive_definite=True)


@_shown("ScaledIdentity(2, multiplier=3.0).to_dense()", "[[3. 0.]\n [0. 3.]]")
class LinearOperatorScaledIdentity(LinearOperatorDiag):
    """Identities of ``num_rows`` rows times ``multiplier``, a number for each matrix of the batch."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self._multiplier = convert_to_tensor(multiplier)
        batch = shape_ops.shape(self._multiplier)
        rows = shape_ops.concat([batch, shape_ops.reshape(convert_to_tensor(num_rows, "int32"), [1])], 0)
        diagonals = _column(self._multiplier) * creation.ones(
            _known(self._multiplier, num_rows, rows), self._multiplier.dtype
        )
        super().__init__(diagonals, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    @property
    def multiplier(self) -> Any:
        """The number of each matrix."""
        return self._multiplier


def _known(multiplier: Any, rows: Any, sizes: Any) -> Any:
    """The shape of diagonals, as numbers where these are known."""
    known = isinstance(rows, int) and multiplier.shape.is_fully_defined()
    return [*multiplier.shape.as_list(), rows] if known else sizes


@_shown("Identity(2).matvec([1.0, 2.0])", "[1. 2.]")
class LinearOperatorIdentity(LinearOperatorScaledIdentity):
    """Identities of ``num_rows`` rows, of a batch of ``batch_shape``."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for hint in (is_non_singular, is_self_adjoint, is_positive_definite, is_square):
            if not hint:
                raise ValueError(f"{name}: an identity has all properties, at {here()}. Leave the hints out.")
        ones = creation.ones([] if batch_shape is None else batch_shape, as_dtype(dtype or "float32"))
        super().__init__(num_rows, ones, True, True, True, True, assert_proper_shapes, name)
