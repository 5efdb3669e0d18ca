"""Columns of ``tf.feature_column`` under the names of ``tf.contrib.layers``."""

from __future__ import annotations

from math import sqrt
from typing import Any

from twofold.dtypes import as_dtype, float32, int64, string
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.feature_column import declared
from twofold.static.feature_column.columns import HashedColumn
from twofold.static.feature_column.layers import make_parse_example_spec
from twofold.static.initializers import truncated_normal_initializer


def _summed(column: str, combiner: str | None) -> None:
    """Raise ValueError for another combiner than that of linear models, which these columns do not keep."""
    if combiner not in (None, "sum"):
        what = f"{column}: the combiner {combiner!r} is not kept by a column, at {here()}"
        raise ArgumentError(what, "Give sparse_combiner to the estimator, or a combiner to embedding_column.")


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = float32,
    normalizer: Any = None,
) -> Any:
    """``tf.feature_column.numeric_column`` of ``dimension`` numbers.

    >>> import twofold.static as tf
    >>> tf.contrib.layers.real_valued_column("age", 2).shape
    (2,)
    """
    return declared.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = string
) -> Any:
    """``tf.feature_column.categorical_column_with_hash_bucket``; raises ValueError for another ``combiner``."""
    _summed(column_name, combiner)
    return declared.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = string
) -> Any:
    """``tf.feature_column.categorical_column_with_vocabulary_list``; raises ValueError for another ``combiner``."""
    _summed(column_name, combiner)
    return declared.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = int64
) -> Any:
    """``tf.feature_column.categorical_column_with_identity``.

    Raises ValueError for another ``combiner``, and for a dtype that holds no integers.
    """
    _summed(column_name, combiner)
    if as_dtype(dtype).kind not in "iu":
        raise ValueError(
            f"sparse_column_with_integerized_feature: column {column_name} of {dtype}. Use int64."
        )
    return declared.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = string,
) -> Any:
    """``tf.feature_column.categorical_column_with_vocabulary_file``; raises ValueError for another ``combiner``."""
    _summed(column_name, combiner)
    missing = None if num_oov_buckets else default_value
    return declared.categorical_column_with_vocabulary_file(
        column_name, vocabulary_file, vocab_size, num_oov_buckets, missing, dtype
    )


def crossed_column(
    columns: Any, hash_bucket_size: int, combiner: str = "sum", hash_key: int | None = None
) -> Any:
    """``tf.feature_column.crossed_column``, of columns that hash, too; raises ValueError for another ``combiner``."""
    _summed("crossed_column", combiner)
    keys = [one.key if isinstance(one, HashedColumn) else one for one in columns]
    return declared.crossed_column(keys, hash_bucket_size, hash_key)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Any:
    """``tf.feature_column.embedding_column``; unless given, numbers of a standard deviation of 1 / sqrt(categories)."""
    first = initializer or truncated_normal_initializer(stddev=1 / sqrt(sparse_id_column.num_buckets))
    given = (ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)
    return declared.embedding_column(sparse_id_column, dimension, combiner, first, *given)


bucketized_column = declared.bucketized_column
one_hot_column = declared.indicator_column
weighted_sparse_column = declared.weighted_categorical_column
create_feature_spec_for_parsing = make_parse_example_spec
