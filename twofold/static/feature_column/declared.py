"""The functions that make columns, with what they check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from twofold.dtypes import float32, int64, string
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import initializers
from twofold.static.api.op_functions import as_dtype
from twofold.static.feature_column.columns import (
    BucketizedColumn,
    CategoricalColumn,
    CrossedColumn,
    HashedColumn,
    IdentityColumn,
    NumericColumn,
    VocabularyColumn,
    WeightedColumn,
    need,
)
from twofold.static.feature_column.layers import EmbeddingColumn, IndicatorColumn


def _check(fine: Any, name: str, what: str, fix: str) -> None:
    if not fine:
        raise failed(name, ArgumentError(what, fix))


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> NumericColumn:
    """A column of numbers.

    Args:
        key: Of the feature.
        shape: Of the numbers of one row.
        default_value: For examples without the feature: a number, or nested lists of the shape.
        dtype: Of the feature in examples; the column is float32.
        normalizer_fn: A function of the tensor that is applied first.

    Raises:
        ValueError: For a shape with sizes below 1, or a dtype of no numbers.

    >>> import twofold.static as tf
    >>> tf.feature_column.numeric_column("age").name
    'age'
    """
    sizes = tuple(int(size) for size in (shape if isinstance(shape, Iterable) else (shape,)))
    kind = as_dtype(dtype)
    _check(all(size > 0 for size in sizes), "numeric_column", f"shape is {sizes}", "Give sizes above 0.")
    _check(kind.kind in "iuf", "numeric_column", f"dtype is {kind.name}", "Give a dtype of numbers.")
    if default_value is not None:
        filled = numpy.broadcast_to(numpy.asarray(default_value, kind.numpy), sizes)
        default_value = tuple(filled.ravel().tolist()) if len(sizes) == 1 else _tuples(filled.tolist())
    return NumericColumn(key, sizes, default_value, kind, normalizer_fn)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """A column of the buckets between boundaries that numbers are in; a boundary is in the bucket above it.

    Args:
        source_column: A numeric column with one axis.
        boundaries: Ascending numbers.

    >>> import twofold.static as tf
    >>> tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), [18, 65]).num_buckets
    3
    """
    need(source_column, NumericColumn, "bucketized_column")
    name, given = "bucketized_column", tuple(boundaries)
    _check(
        len(source_column.shape) == 1, name, f"shape is {source_column.shape}", "Give a column with one axis."
    )
    rising = given and list(given) == sorted(set(given))
    _check(rising, name, f"boundaries are {given}", "Give ascending numbers.")
    return BucketizedColumn(source_column, given)


def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = string) -> HashedColumn:
    """A column of strings, or integers, each in the bucket of its fingerprint.

    Args:
        key: Of the feature.
        hash_bucket_size: How many buckets there are.
        dtype: Of the feature: a string or an integer dtype.

    >>> import twofold.static as tf
    >>> tf.feature_column.categorical_column_with_hash_bucket("word", 100).num_buckets
    100
    """
    name = "categorical_column_with_hash_bucket"
    _check(hash_bucket_size >= 1, name, f"hash_bucket_size is {hash_bucket_size}", "Give a number above 0.")
    kind = as_dtype(dtype)
    _check(kind is string or kind.kind in "iu", name, f"dtype is {kind.name}", "Use string or integers.")
    return HashedColumn(key, hash_bucket_size, kind)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityColumn:
    """A column of integers in [0, num_buckets); others are ``default_value``, or raise InvalidArgumentError.

    >>> import twofold.static as tf
    >>> tf.feature_column.categorical_column_with_identity("day", 7).name
    'day'
    """
    name = "categorical_column_with_identity"
    _check(num_buckets >= 1, name, f"num_buckets is {num_buckets}", "Give a number above 0.")
    fine = default_value is None or 0 <= default_value < num_buckets
    _check(fine, name, f"default_value is {default_value}", f"Give one in [0, {num_buckets}).")
    return IdentityColumn(key, num_buckets, default_value)


def _vocabulary(
    name: str, key: str, source: Any, dtype: Any, default: int | None, buckets: int, size: int
) -> VocabularyColumn:
    _check(buckets >= 0, name, f"num_oov_buckets is {buckets}", "Give no negative number.")
    both = buckets and default not in (None, -1)
    _check(not both, name, "both default_value and num_oov_buckets", "Give one of them.")
    return VocabularyColumn(key, source, dtype, -1 if default is None else default, buckets, size)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyColumn:
    """A column of the positions of values in a list.

    Args:
        key: Of the feature.
        vocabulary_list: Different strings or integers.
        dtype: Of the feature; that of the list unless given.
        default_value: For other values; -1 leaves them out.
        num_oov_buckets: Or how many buckets behind the list they are hashed to.

    >>> import twofold.static as tf
    >>> tf.feature_column.categorical_column_with_vocabulary_list("letter", ["a", "b"]).num_buckets
    2
    """
    name, words = "categorical_column_with_vocabulary_list", tuple(vocabulary_list)
    _check(
        words and len(set(words)) == len(words), name, f"vocabulary_list is {words}", "Give different values."
    )
    of_strings = isinstance(words[0], (str, bytes))
    kind = as_dtype(dtype) if dtype is not None else string if of_strings else int64
    _check((kind is string) == of_strings, name, f"dtype is {kind.name}", "Give the dtype of the list.")
    return _vocabulary(name, key, words, kind, default_value, num_oov_buckets, len(words))


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> VocabularyColumn:
    """A column of the numbers of a file's lines; otherwise as ``categorical_column_with_vocabulary_list``.

    Only the first ``vocabulary_size`` lines count, if that is given.
    """
    if vocabulary_size is None:
        with open(vocabulary_file, "rb") as file:
            vocabulary_size = sum(1 for _ in file)
    name = "categorical_column_with_vocabulary_file"
    _check(vocabulary_size >= 1, name, f"vocabulary_size is {vocabulary_size}", "Give a number above 0.")
    kind = as_dtype(dtype)
    return _vocabulary(name, key, vocabulary_file, kind, default_value, num_oov_buckets, vocabulary_size)


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """A column of all combinations of a value of each feature, each in the bucket of its fingerprint.

    Args:
        keys: Keys of features of strings, bucketized columns, or categorical ones that do not hash.
        hash_bucket_size: How many buckets there are.
        hash_key: What the fingerprints begin with.

    Raises:
        ValueError: For fewer than two keys, or a column that cannot be crossed.

    >>> import twofold.static as tf
    >>> tf.feature_column.crossed_column(["town", "colour"], 100).name
    'colour_X_town'
    """
    given = tuple(keys)
    _check(len(given) > 1, "crossed_column", f"keys are {given}", "Give two of them at least.")
    for key in given:
        if not isinstance(key, str):
            need(key, CategoricalColumn, "crossed_column")
            hashes = isinstance(key, (HashedColumn, WeightedColumn))
            _check(not hashes, "crossed_column", f"{key!r} hashes or weighs", "Give its key, a string.")
    _check(
        hash_bucket_size >= 1,
        "crossed_column",
        f"hash_bucket_size is {hash_bucket_size}",
        "Give one above 0.",
    )
    return CrossedColumn(given, hash_bucket_size, hash_key)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = float32
) -> WeightedColumn:
    """Categories with weights: those of the feature ``weight_feature_key``, as many as there are categories.

    >>> import twofold.static as tf
    >>> letter = tf.feature_column.categorical_column_with_vocabulary_list("letter", ["a", "b"])
    >>> tf.feature_column.weighted_categorical_column(letter, "count").name
    'letter_weighted_by_count'
    """
    need(categorical_column, CategoricalColumn, "weighted_categorical_column")
    kind = as_dtype(dtype)
    _check(kind.kind in "iuf", "weighted_categorical_column", f"dtype is {kind.name}", "Give one of numbers.")
    return WeightedColumn(categorical_column, weight_feature_key, kind)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """A dense column that counts each category of a row.

    >>> import twofold.static as tf
    >>> letter = tf.feature_column.categorical_column_with_vocabulary_list("letter", ["a", "b"])
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     made = tf.feature_column.input_layer(
    ...         {"letter": [["a", "a"], ["b", "c"]]}, tf.feature_column.indicator_column(letter))
    ...     session.run(tf.tables_initializer())
    ...     print(session.run(made))
    [[2. 0.]
     [0. 1.]]
    """
    need(categorical_column, CategoricalColumn, "indicator_column")
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """A dense column of the rows of a table that is learned, combined over the categories of a row.

    Args:
        categorical_column: The categories.
        dimension: How many numbers a row of the table has.
        combiner: "mean", "sum" or "sqrtn".
        initializer: Of the table; truncated normal numbers of the deviation ``dimension ** -0.5`` unless given.
        ckpt_to_load_from: A checkpoint with the first values of the table.
        tensor_name_in_ckpt: The table's name there.
        max_norm: Rows are scaled down to this norm.
        trainable: Whether the table is.

    Raises:
        ValueError: For a dimension below 1, another combiner, or one of the two about a checkpoint without the other.

    >>> import twofold.static as tf
    >>> letter = tf.feature_column.categorical_column_with_vocabulary_list("letter", ["a", "b"])
    >>> tf.feature_column.embedding_column(letter, 4).name
    'letter_embedding'
    """
    return _embeddings(
        [categorical_column],
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
        None,
    )[0]


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> list[EmbeddingColumn]:
    """Embedding columns of several columns of equally many categories that share one table.

    The table is named ``shared_embedding_collection_name``; after the columns unless given.
    """
    columns = list(categorical_columns)
    counts = {column.num_buckets for column in columns}
    what = f"columns of {sorted(counts)} categories"
    _check(len(counts) == 1, "shared_embedding_columns", what, "Give columns of equally many.")
    names = "_".join(sorted(column.name for column in columns))
    shared = shared_embedding_collection_name or f"{names}_shared_embedding"
    return _embeddings(
        columns,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
        shared,
    )


def _embeddings(
    columns: list[Any],
    dimension: int,
    combiner: str,
    initializer: Any,
    path: Any,
    name: str | None,
    *rest: Any,
) -> list[EmbeddingColumn]:
    what = "embedding_column"
    _check(dimension >= 1, what, f"dimension is {dimension}", "Give a number above 0.")
    _check(combiner in ("mean", "sum", "sqrtn"), what, f"combiner is {combiner!r}", "Use mean, sum or sqrtn.")
    paired = (path is None) == (name is None)
    _check(paired, what, "one of ckpt_to_load_from and tensor_name_in_ckpt", "Give both or none.")
    start = initializer or initializers.truncated_normal_initializer(0.0, 1 / math.sqrt(dimension))
    for column in columns:
        need(column, CategoricalColumn, what)
    return [EmbeddingColumn(column, dimension, combiner, start, path, name, *rest) for column in columns]
