"""Features of tables as the first layer of a model: ``tf.feature_column``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.feature_column.declared import (
        bucketized_column,
        categorical_column_with_hash_bucket,
        categorical_column_with_identity,
        categorical_column_with_vocabulary_file,
        categorical_column_with_vocabulary_list,
        crossed_column,
        embedding_column,
        indicator_column,
        numeric_column,
        shared_embedding_columns,
        weighted_categorical_column,
    )
    from twofold.static.feature_column.layers import input_layer, linear_model, make_parse_example_spec

__getattr__, __dir__ = _attach(__name__, _prepared)
