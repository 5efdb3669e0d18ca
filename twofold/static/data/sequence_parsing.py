"""Serialised rows with sequences as tensors: ``tf.parse_single_sequence_example``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twofold.errors import ArgumentError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static.data.example_parsing import (
    Column,
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
)
from twofold.static.functions.host_calls import in_python
from twofold.static.protobuf.example import SequenceExample
from twofold.static.sparse import SparseTensor
from twofold.static.strings.string_functions import as_string_tensor

_WHAT = "parse_single_sequence_example"


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What one serialised ``tf.train.SequenceExample`` says of the row, and of its steps, as tensors by name.

    Args:
        serialized: A string.
        context_features: For each name of the context a ``FixedLenFeature`` or ``VarLenFeature``.
        sequence_features: For each sequence a ``FixedLenSequenceFeature`` (a tensor ``[steps, *shape]``) or a
            ``VarLenFeature`` (a ``SparseTensor`` of steps and values).
        example_name: A name for messages; it changes nothing else.
        name: The name of the operation.

    Raises:
        InvalidArgumentError: In a run, where a feature is missing or of another dtype or size; a sequence may be
            missing if ``allow_missing`` says so.

    >>> import twofold.static as tf
    >>> step = lambda n: tf.train.Feature(int64_list=tf.train.Int64List(value=[n]))
    >>> lists = tf.train.FeatureLists(feature_list={"n": tf.train.FeatureList(feature=[step(3), step(4)])})
    >>> row = tf.train.SequenceExample(feature_lists=lists).SerializeToString()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     wanted = {"n": tf.FixedLenSequenceFeature([], tf.int64)}
    ...     context, read = tf.parse_single_sequence_example(row, sequence_features=wanted)
    ...     print(session.run(read["n"]).tolist())
    [3, 4]
    """
    if not context_features and not sequence_features:
        raise ValueError("Missing features.")
    wanted = dict(sequence_features or {})
    context = _columns(context_features or {}, (FixedLenFeature, VarLenFeature))
    steps = _columns(wanted, (FixedLenSequenceFeature, VarLenFeature))
    text = as_string_tensor(_WHAT, serialized)
    if text.get_shape().ndims not in (None, 0):
        raise failed(_WHAT, ArgumentError(f"the rows are of shape {text.get_shape()}", "Give one string."))

    def read(given: Any) -> list[Any]:
        row = SequenceExample.FromString(given)
        found: list[Any] = []
        for column in context:
            found += column.arrays([column.values_of(row.context.feature.get(column.name))], True)
        for column in steps:
            found += column.arrays(_rows(column, row.feature_lists, wanted[column.name]), False)
        return found

    types = [type for column in context for type in column.types([])]
    types += [type for column in steps for type in column.types([None])]
    made = iter(in_python("ParseSingleSequenceExample", read, [text], types, name))
    return _named(context, made), _named(steps, made)


def _named(columns: list[Column], made: Iterator[Any]) -> dict[str, Any]:
    """The next tensors as values of features by name, three for each sparse one."""
    return {
        one.name: SparseTensor(next(made), next(made), next(made)) if one.sparse else next(made)
        for one in columns
    }


def _columns(features: Mapping[str, Any], offered: tuple[type, ...]) -> list[Column]:
    return [_column(key, features[key], offered) for key in sorted(features)]


def _column(key: str, feature: Any, offered: tuple[type, ...]) -> Column:
    if not isinstance(feature, offered):
        names = " or ".join(kind.__name__ for kind in offered)
        raise failed(_WHAT, ArgumentError(f"the feature {key!r} is {feature!r}", f"Use {names}."))
    if isinstance(feature, FixedLenSequenceFeature):
        if feature.default_value is not None:
            raise failed(_WHAT, ArgumentError(f"the sequence {key!r} has a default value", "Leave it out."))
        feature = FixedLenFeature(feature.shape, feature.dtype)
    return Column(_WHAT, key, feature)


def _rows(column: Column, lists: Any, feature: Any) -> list[list[Any] | None]:
    """The values of each step."""
    found = lists.feature_list.get(column.name)
    if found is None and isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
        what = f"the sequence {column.name!r} is missing"
        raise failed(_WHAT, InvalidArgumentError(what, "Write it, or set allow_missing=True."))
    return [column.values_of(step) for step in (found.feature if found is not None else [])]
