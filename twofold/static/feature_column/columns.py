"""What a feature of a table means for a model: the columns of ``tf.feature_column``.

A column transforms the tensors of a batch to a dense tensor, or to a sparse tensor of category numbers.
``Features`` keeps what columns made, so that columns that stand on one another compute it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from twofold.dtypes import float32, int64, string
from twofold.errors import ArgumentError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static import lookup, math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.arrays.reordering import searchsorted
from twofold.static.arrays.selection import where
from twofold.static.data.example_parsing import FixedLenFeature, VarLenFeature
from twofold.static.functions.host_calls import py_func
from twofold.static.sparse import SparseTensor
from twofold.static.strings.hash_buckets import crossed, string_to_hash_bucket_fast
from twofold.static.strings.string_functions import as_string


class Features:
    """The tensors of a batch by key, and what columns made of them."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = tensors
        self._made: dict[Any, Any] = {}

    def raw(self, key: str) -> Any:
        """The tensor of a key; a vector as a matrix of one column."""
        if key not in self._tensors:
            what = f"no feature {key!r}"
            raise failed("feature_column", ArgumentError(what, f"There are {', '.join(self._tensors)}."))
        given = self._tensors[key]
        if isinstance(given, SparseTensor):
            return given
        tensor = convert_to_tensor(given)
        return shape_ops.expand_dims(tensor, -1) if tensor.get_shape().ndims == 1 else tensor

    def sparse(self, key: str) -> SparseTensor:
        """The tensor of a key as a sparse one: empty strings and the integer -1 stand for nothing."""
        tensor = self.raw(key)
        if isinstance(tensor, SparseTensor):
            return tensor
        indices = where(math.not_equal(tensor, "" if tensor.dtype is string else -1))
        size = shape_ops.shape(tensor, out_type=int64)
        return SparseTensor(indices, shape_ops.gather_nd(tensor, indices), size)

    def of(self, column: Any) -> Any:
        """What a column makes of the batch."""
        if column not in self._made:
            self._made[column] = column.transformed(self)
        return self._made[column]


class Column:
    """What all columns have: a ``name``, the tensor that they are ``transformed`` to, and what ``parses`` examples."""

    name: str

    def transformed(self, features: Features) -> Any:
        """The tensor of a batch."""
        raise NotImplementedError

    def parses(self) -> dict[str, Any]:
        """The features of examples that it reads, as ``tf.parse_example`` takes them."""
        raise NotImplementedError


class DenseColumn(Column):
    """A column of numbers of a ``shape``, with which layers may begin."""

    shape: tuple[int, ...]

    def dense(self, features: Features) -> Any:
        """The numbers, [batch, *shape]."""
        return features.of(self)


class CategoricalColumn(Column):
    """A column of numbers of categories below ``num_buckets``."""

    num_buckets: int

    def ids(self, features: Features) -> tuple[SparseTensor, SparseTensor | None]:
        """The numbers of categories in each row, and their weights if they have any."""
        return features.of(self), None


def need(given: Any, kinds: Any, what: str) -> None:
    """Raise ArgumentError for a column of another kind."""
    if not isinstance(given, kinds):
        text = f"{what}: {given!r} is not such a column"
        raise failed("feature_column", ArgumentError(text, "Give a column that this one may stand on."))


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers as they are."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The key."""
        return self.key

    def transformed(self, features: Features) -> Any:
        """The numbers as float32, normalised."""
        tensor = features.raw(self.key)
        if isinstance(tensor, SparseTensor):
            what = f"the feature {self.key!r} of a numeric column is sparse"
            raise failed("feature_column", ArgumentError(what, "Give a dense tensor."))
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        return math.cast(tensor, float32)

    def parses(self) -> dict[str, Any]:
        """A feature of a fixed length."""
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """Between which boundaries numbers are."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        """``key_bucketized``."""
        return f"{self.source_column.name}_bucketized"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """That of the source, with an axis of buckets."""
        return (*self.source_column.shape, len(self.boundaries) + 1)

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        """Buckets of all elements of the source."""
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def transformed(self, features: Features) -> Any:
        """The number of the bucket of each element; a boundary is in the bucket above it."""
        numbers = features.of(self.source_column)
        return searchsorted(list(self.boundaries), numbers, side="right", out_type=int64)

    def dense(self, features: Features) -> Any:
        """One in its bucket, zero in the others."""
        return shape_ops.one_hot(features.of(self), len(self.boundaries) + 1)

    def ids(self, features: Features) -> tuple[SparseTensor, None]:
        """Buckets counted on over the elements of a row."""
        count = self.source_column.shape[0]
        offsets = numpy.arange(count) * (len(self.boundaries) + 1)
        buckets = shape_ops.reshape(features.of(self), [-1, count]) + offsets
        indices = where(math.greater_equal(buckets, 0))
        size = shape_ops.shape(buckets, out_type=int64)
        return SparseTensor(indices, shape_ops.reshape(buckets, [-1]), size), None

    def parses(self) -> dict[str, Any]:
        """Those of the source."""
        return self.source_column.parses()


@dataclass(frozen=True)
class _Keyed(CategoricalColumn):
    key: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """The key."""
        return self.key

    def parses(self) -> dict[str, Any]:
        """A feature of any length."""
        return {self.key: VarLenFeature(as_dtype(getattr(self, "dtype", int64)))}

    def _checked(self, features: Features) -> SparseTensor:
        given = features.sparse(self.key)
        wanted = as_dtype(getattr(self, "dtype", int64))
        if (given.dtype is string) != (wanted is string):
            what = f"the feature {self.key!r} is of {given.dtype.name} for a column of {wanted.name}"
            raise failed("feature_column", ArgumentError(what, "Give both one kind of dtype."))
        return given


@dataclass(frozen=True)
class HashedColumn(_Keyed):
    """Strings, or integers, by a hash of theirs."""

    hash_bucket_size: int
    dtype: Any

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        """How many buckets there are."""
        return self.hash_bucket_size

    def transformed(self, features: Features) -> SparseTensor:
        """The buckets."""
        given = self._checked(features)
        text = given.values if given.dtype is string else as_string(given.values)
        return given.with_values(string_to_hash_bucket_fast(text, self.hash_bucket_size))


@dataclass(frozen=True)
class IdentityColumn(_Keyed):
    """Integers that are numbers of categories."""

    num_buckets: int
    default_value: int | None

    def transformed(self, features: Features) -> SparseTensor:
        """The integers; others than categories are the default value, or raise InvalidArgumentError."""
        given = self._checked(features)

        def checked(values: Any) -> Any:
            outside = (values < 0) | (values >= self.num_buckets)
            if self.default_value is None and outside.any():
                what = f"the value {values[outside][0]} of {self.key!r} is not in [0, {self.num_buckets})"
                raise InvalidArgumentError(what, "Feed other values, or give default_value.")
            return numpy.where(outside, self.default_value or 0, values).astype(numpy.int64)

        made = py_func(checked, [math.cast(given.values, int64)], int64)
        made.set_shape([None])
        return given.with_values(made)


@dataclass(frozen=True)
class VocabularyColumn(_Keyed):
    """Strings, or integers, by their positions in a list or a file; others by a default value or a hash."""

    source: Any
    dtype: Any
    default_value: int
    num_oov_buckets: int
    vocabulary_size: int

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        """Words, and buckets of others."""
        return self.vocabulary_size + self.num_oov_buckets

    def transformed(self, features: Features) -> SparseTensor:
        """The positions."""
        given = self._checked(features)
        rest: dict[str, Any] = {
            "num_oov_buckets": self.num_oov_buckets,
            "default_value": self.default_value,
            "name": f"{self.key}_lookup",
        }
        if isinstance(self.source, str):
            table = lookup.index_table_from_file(self.source, vocab_size=self.vocabulary_size, **rest)
            text = given.values if given.dtype is string else as_string(given.values)
            return given.with_values(table.lookup(text))
        kind = string if given.dtype is string else int64
        table = lookup.index_table_from_tensor(list(self.source), dtype=kind, **rest)
        return given.with_values(
            table.lookup(math.cast(given.values, int64) if kind is int64 else given.values)
        )


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Combinations of several features by a hash."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    def leaves(self) -> list[Any]:
        """Keys and columns that are combined, those of crossed columns taken apart."""
        each = [key.leaves() if isinstance(key, CrossedColumn) else [key] for key in self.keys]
        return [leaf for leaves in each for leaf in leaves]

    @property
    def name(self) -> str:  # type: ignore[override]
        """``one_X_two``."""
        return "_X_".join(sorted(leaf if isinstance(leaf, str) else leaf.name for leaf in self.leaves()))

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        """How many buckets there are."""
        return self.hash_bucket_size

    def transformed(self, features: Features) -> SparseTensor:
        """The buckets of all combinations in a row."""
        found = [
            features.raw(leaf) if isinstance(leaf, str) else leaf.ids(features)[0] for leaf in self.leaves()
        ]
        return crossed(found, self.hash_bucket_size, 0xDECAFCAFFE if self.hash_key is None else self.hash_key)

    def parses(self) -> dict[str, Any]:
        """Those of what is combined; keys are strings."""
        made: dict[str, Any] = {}
        for leaf in self.leaves():
            made.update({leaf: VarLenFeature(string)} if isinstance(leaf, str) else leaf.parses())
        return made


@dataclass(frozen=True)
class WeightedColumn(CategoricalColumn):
    """Categories with weights that another feature has."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: Any

    @property
    def name(self) -> str:  # type: ignore[override]
        """``name_weighted_by_key``."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        """Those of the categories."""
        return self.categorical_column.num_buckets

    def transformed(self, features: Features) -> tuple[SparseTensor, SparseTensor]:
        """Categories and weights."""
        weights = features.raw(self.weight_feature_key)
        if not isinstance(weights, SparseTensor):
            indices = where(math.not_equal(weights, 0))
            weights = SparseTensor(
                indices, shape_ops.gather_nd(weights, indices), shape_ops.shape(weights, out_type=int64)
            )
        return self.categorical_column.ids(features)[0], weights.with_values(
            math.cast(weights.values, float32)
        )

    def ids(self, features: Features) -> tuple[SparseTensor, SparseTensor]:
        """Categories and weights."""
        found: tuple[SparseTensor, SparseTensor] = features.of(self)
        return found

    def parses(self) -> dict[str, Any]:
        """Those of the categories, and of the weights."""
        return {
            **self.categorical_column.parses(),
            self.weight_feature_key: VarLenFeature(as_dtype(self.dtype)),
        }
