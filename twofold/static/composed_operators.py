"""Linear operators that are made of others: adjoints and products, ``tf.linalg.LinearOperatorComposition``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import linalg, math
from twofold.static.arrays import shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.linear_operators import LinearOperator


@example(
    "tf.linalg.LinearOperatorAdjoint(tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0]])).to_dense()",
    "[[1.]\n [2.]]",
)
class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of an ``operator``."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            operator.is_non_singular if is_non_singular is None else is_non_singular,
            operator.is_self_adjoint if is_self_adjoint is None else is_self_adjoint,
            operator.is_positive_definite if is_positive_definite is None else is_positive_definite,
            operator.is_square if is_square is None else is_square,
            name or f"{operator.name}_adjoint",
        )
        self._operator = operator

    @property
    def operator(self) -> LinearOperator:
        """The operator of which this is the adjoint."""
        return self._operator

    def _shape(self) -> TensorShape:
        shape = self._operator.shape
        return shape[:-2].concatenate([shape[-1], shape[-2]])

    def _to_dense(self) -> Any:
        return linalg.adjoint(self._operator.to_dense())

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._operator.matmul(x, not adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._operator.solve(rhs, not adjoint)

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of which this is the adjoint."""
        return self._operator


@example(
    "first, second = tf.linalg.LinearOperatorDiag([2.0, 3.0]), tf.linalg.LinearOperatorIdentity(2)",
    "tf.linalg.LinearOperatorComposition([first, second]).determinant()",
    "6.0",
)
class LinearOperatorComposition(LinearOperator):
    """The product of ``operators``, of which the last is applied first."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._operators = list(operators)
        if not self._operators or len({one.dtype for one in self._operators}) > 1:
            what = f"LinearOperatorComposition: {len(self._operators)} operators, at {here()}"
            raise ArgumentError(what, "Give at least one, all of one dtype.")
        if is_non_singular is None and all(one.is_non_singular for one in self._operators):
            is_non_singular = True
        if is_square is None:
            sizes = [self._operators[0].shape[-2].value, self._operators[-1].shape[-1].value]
            is_square = sizes[0] == sizes[1] if None not in sizes else None
        parents = [parent for one in self._operators for parent in one.graph_parents]
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        label = name or "_o_".join(one.name for one in self._operators)
        super().__init__(self._operators[0].dtype, parents, *hints, label)

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _shape(self) -> TensorShape:
        batch = self._operators[0].batch_shape
        for one in self._operators[1:]:
            batch = shape_ops.broadcast_static_shape(batch, one.batch_shape)
        return batch.concatenate([self._operators[0].range_dimension, self._operators[-1].domain_dimension])

    def _to_dense(self) -> Any:
        found = self._operators[-1].to_dense()
        for one in reversed(self._operators[:-1]):
            found = one.matmul(found)
        return found

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        for one in self._operators if adjoint else reversed(self._operators):
            x = one.matmul(x, adjoint)
        return x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        for one in reversed(self._operators) if adjoint else self._operators:
            rhs = one.solve(rhs, adjoint)
        return rhs

    def _of_factors(self, found: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
        total = found[0]
        for one in found[1:]:
            total = combine(total, one)
        return total

    def _determinant(self) -> Any:
        if not all(one.is_square for one in self._operators):
            return super()._determinant()
        return self._of_factors([one.determinant() for one in self._operators], math.multiply)

    def _log_abs_determinant(self) -> Any:
        if not all(one.is_square for one in self._operators):
            return super()._log_abs_determinant()
        return self._of_factors([one.log_abs_determinant() for one in self._operators], math.add)
