"""Shapes as TensorFlow 1 shows them: of unknown rank, or with unknown sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import Shape, size_text
from twofold.runtime.tracing import here


def _size(
    function: Callable[[int, int], int], swapped: bool = False
) -> Callable[[Dimension, int | Dimension], Dimension]:
    """An operator that makes a size of two, the second of which is the object's if they are swapped."""

    def apply(self: Dimension, other: int | Dimension) -> Dimension:
        first, second = (Dimension(other), self) if swapped else (self, other)
        return Dimension(first._with(second, function))

    return apply


def _comparison(
    function: Callable[[int, int], bool],
) -> Callable[[Dimension, int | Dimension], bool | None]:
    """An operator that compares two sizes; None where one is unknown."""
    return lambda self, other: self._with(other, function)


class Dimension:
    """One size of a shape; ``value`` is None where it is unknown.

    >>> import twofold.static as tf
    >>> tf.Dimension(3).value, tf.Dimension(3) == 3, int(tf.Dimension(3)) + 1
    (3, True, 4)
    """

    __slots__ = ("value",)

    def __init__(self, value: int | Dimension | None) -> None:
        self.value: int | None = value.value if isinstance(value, Dimension) else value

    def __index__(self) -> int:
        if self.value is None:
            raise TypeError("the size is unknown until the graph is fed. Use tf.shape(tensor) instead.")
        return int(self.value)

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, Dimension) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def _with(self, other: int | Dimension | None, function: Callable[[int, int], Any]) -> Any:
        """What a function makes of two sizes; None where one is unknown."""
        size = Dimension(other).value
        return None if self.value is None or size is None else function(self.value, size)

    __mul__ = __rmul__ = _size(operator.mul)
    __add__ = __radd__ = _size(operator.add)
    __sub__, __rsub__ = _size(operator.sub), _size(operator.sub, swapped=True)
    __floordiv__, __rfloordiv__ = _size(operator.floordiv), _size(operator.floordiv, swapped=True)
    __mod__, __rmod__ = _size(operator.mod), _size(operator.mod, swapped=True)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    def is_compatible_with(self, other: int | Dimension | None) -> bool:
        """Whether the sizes are equal, or one is unknown."""
        return self._with(other, operator.ne) is not True

    def assert_is_compatible_with(self, other: int | Dimension | None) -> None:
        """Raise ValueError unless ``is_compatible_with(other)``."""
        if not self.is_compatible_with(other):
            raise ValueError(
                f"Dimensions {self} and {other} are not compatible, at {here()}. Give equal sizes."
            )

    def merge_with(self, other: int | Dimension | None) -> Dimension:
        """The size that either knows; raises ValueError where they differ."""
        self.assert_is_compatible_with(other)
        return Dimension(other if self.value is None else self)

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"


class TensorShape:
    """The shape of a declared tensor; ``ndims`` is None where even the rank is unknown.

    >>> import twofold.static as tf
    >>> shape = tf.TensorShape([None, 3])
    >>> shape.as_list(), shape.ndims, shape[1].value, str(shape)
    ([None, 3], 2, 3, '(?, 3)')
    """

    __slots__ = ("dims",)

    def __init__(self, dims: Any) -> None:
        self.dims: list[Dimension] | None
        if dims is None:
            self.dims = None
        elif isinstance(dims, TensorShape):
            self.dims = dims.dims
        elif isinstance(dims, (int, Dimension)):
            self.dims = [Dimension(dims)]
        else:
            self.dims = [
                Dimension(size if size is None or isinstance(size, Dimension) else int(size)) for size in dims
            ]

    @property
    def _dims(self) -> list[Dimension] | None:
        """``dims``, by the name that functions copied from Keras ask for."""
        return self.dims

    @property
    def ndims(self) -> int | None:
        """Number of axes, or None."""
        return None if self.dims is None else len(self.dims)

    rank = ndims

    def as_list(self) -> list[int | None]:
        """The sizes, None where unknown; raises ValueError for an unknown rank."""
        return [dim.value for dim in self._known()]

    def _known(self) -> list[Dimension]:
        if self.dims is None:
            raise ValueError("the shape has an unknown rank. Give the placeholder a shape.")
        return self.dims

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self.dims is not None and all(dim.value is not None for dim in self.dims)

    def num_elements(self) -> int | None:
        """Number of elements, or None."""
        if not self.is_fully_defined():
            return None
        total = 1
        for dim in self._known():
            total *= int(dim)
        return total

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one shape can stand where the other is expected."""
        other = TensorShape(other)
        if self.dims is None or other.dims is None:
            return True
        pairs = zip(self.dims, other.dims)
        return len(self.dims) == len(other.dims) and all(
            a.value is None or b.value is None or a.value == b.value for a, b in pairs
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError unless ``is_compatible_with(other)``."""
        if not self.is_compatible_with(other):
            raise self._trouble(f"Shapes {self} and {TensorShape(other)} are not compatible")

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError unless every size is known."""
        if not self.is_fully_defined():
            raise self._trouble(f"Shape {self} is not fully defined")

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError where the rank is known, and another."""
        if self.ndims not in (None, rank):
            raise self._trouble(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raise ValueError where both ranks are known, and differ."""
        rank = TensorShape(other).ndims
        if rank is not None and self.ndims not in (None, rank):
            raise self._trouble(f"Shapes {self} and {TensorShape(other)} must have the same rank")

    def _trouble(self, what: str) -> ValueError:
        return ValueError(f"{what}, at {here()}. Give a shape that does.")

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, or one of unknown sizes where it has no known rank; raises ValueError for another rank."""
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self.dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape; raises ValueError for a smaller rank."""
        if self.dims is not None and len(self.dims) < rank:
            raise self._trouble(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape; raises ValueError for a larger rank."""
        if self.dims is not None and len(self.dims) > rank:
            raise self._trouble(f"Shape {self} must have rank at most {rank}")
        return self

    def merge_with(self, other: Any) -> TensorShape:
        """The sizes that either knows; raises ValueError where they differ.

        >>> import twofold.static as tf
        >>> print(tf.TensorShape([None, 3]).merge_with([2, None]))
        (2, 3)
        """
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self.dims is None or other.dims is None:
            return other if self.dims is None else self
        return TensorShape([a.merge_with(b) for a, b in zip(self.dims, other.dims)])

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The sizes that both have; unknown where they differ."""
        other = TensorShape(other)
        if self.dims is None or other.dims is None or len(self.dims) != len(other.dims):
            return TensorShape(None)
        return TensorShape([a if a.value == b.value else None for a, b in zip(self.dims, other.dims)])

    def concatenate(self, other: Any) -> TensorShape:
        """The axes of both, one after the other; unknown where one is."""
        other = TensorShape(other)
        return TensorShape(None if self.dims is None or other.dims is None else [*self.dims, *other.dims])

    __add__ = concatenate

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __len__(self) -> int:
        return len(self._known())

    def __bool__(self) -> bool:
        return self.dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        if self.dims is None:
            return self._part_of_unknown(key)
        found = self._known()[key]
        return TensorShape(found) if isinstance(key, slice) else found

    def _part_of_unknown(self, key: Any) -> Any:
        """A size, or sizes, of a shape of unknown rank: as many unknown ones as a slice with both ends takes."""
        if not isinstance(key, slice):
            return Dimension(None)
        start, stop = key.start or 0, key.stop
        ends = key.step is None and stop is not None and start >= 0 and stop >= 0
        return TensorShape([None] * max(stop - start, 0) if ends else None)

    def __eq__(self, other: object) -> bool:
        if other is None:
            return self.dims is None
        return isinstance(other, (TensorShape, list, tuple)) and self.dims == TensorShape(other).dims

    def __hash__(self) -> int:
        return hash(tuple(self.dims or ()))

    def __str__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        inner = ", ".join(map(str, self.dims))
        return f"({inner},)" if len(self.dims) == 1 else f"({inner})"

    def __repr__(self) -> str:
        return f"TensorShape({'None' if self.dims is None else self.dims})"


def shape_of_sizes(sizes: Shape) -> TensorShape:
    """The shape for the sizes of a type, where unknown ones are negative."""
    return TensorShape(None if sizes == UNKNOWN_RANK else [None if size < 0 else size for size in sizes])


def sizes_of_shape(shape: Any) -> Shape:
    """The sizes of a type for a shape as users give it: None, or sizes of which some are None."""
    dims = TensorShape(shape).dims
    if dims is None:
        return UNKNOWN_RANK
    return tuple(new_unknown_size() if dim.value is None or dim.value < 0 else dim.value for dim in dims)


def narrowed_sizes(sizes: Shape, shape: Any) -> Shape:
    """The sizes of a type with those of a compatible shape instead of unknown ones."""
    if TensorShape(shape).dims is None:
        return sizes
    given = sizes_of_shape(shape)
    if sizes == UNKNOWN_RANK:
        return given
    return tuple([new if old < 0 <= new else old for old, new in zip(sizes, given, strict=True)])


def shape_text(sizes: Sequence[int]) -> str:
    """Sizes for a message: ``[?,3]``, or ``of unknown rank``."""
    if tuple(sizes) == UNKNOWN_RANK:
        return " of unknown rank"
    return "[" + ",".join(map(size_text, sizes)) + "]"


def fits(sizes: Shape, declared: Shape) -> bool:
    """Whether real sizes fit declared ones, of which some may be unknown."""
    if declared == UNKNOWN_RANK:
        return True
    return len(sizes) == len(declared) and all(b < 0 or a == b for a, b in zip(sizes, declared))


def as_shape(shape: Any) -> TensorShape:
    """A shape as a ``TensorShape``."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(ndims: int | None = None) -> TensorShape:
    """A shape of ``ndims`` unknown sizes, or of unknown rank."""
    return TensorShape(None if ndims is None else [None] * ndims)


def scalar() -> TensorShape:
    """The shape without axes."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """A shape of one axis."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """A shape of two axes."""
    return TensorShape([rows, cols])


def dimension_value(dimension: Any) -> int | None:
    """The size of a dimension, or a number itself; None for one that is unknown.

    >>> import twofold.static as tf
    >>> tf.dimension_value(tf.zeros([2, 3]).shape[1])
    3
    """
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """A dimension of a shape, which is unknown where the rank is.

    >>> import twofold.static as tf
    >>> tf.dimension_at_index(tf.TensorShape(None), 1).value is None
    True
    """
    dims = shape.dims
    return Dimension(None) if dims is None else dims[index]
