"""Columns as the first layer of a model: ``tf.feature_column.input_layer``, ``linear_model`` and what they stand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import initializers, math
from twofold.static.arrays import shape_ops
from twofold.static.arrays.segments import unsorted_segment_sum
from twofold.static.arrays.shape_ops import concat
from twofold.static.feature_column.columns import CategoricalColumn, Column, DenseColumn, Features
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
from twofold.static.nn.embeddings import safe_embedding_lookup_sparse
from twofold.static.saving.warm_start import init_from_checkpoint
from twofold.static.variables.variable_scope import get_variable, variable_scope


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """How often each category is in a row."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:  # type: ignore[override]
        """``name_indicator``."""
        return f"{self.categorical_column.name}_indicator"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis, of the categories."""
        return (self.categorical_column.num_buckets,)

    def transformed(self, features: Features) -> Any:
        """The sums of weights, else counts; numbers that are no category count nowhere."""
        ids, weights = self.categorical_column.ids(features)
        rows = shape_ops.one_hot(ids.values, self.shape[0])
        if weights is not None:
            rows = rows * shape_ops.expand_dims(weights.values, -1)
        return unsorted_segment_sum(rows, ids.indices[:, 0], ids.dense_shape[0])

    def parses(self) -> dict[str, Any]:
        """Those of the categories."""
        return self.categorical_column.parses()


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """Rows of a table that is learned, combined; columns of one ``shared_name`` have one table."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: Any
    tensor_name_in_ckpt: str | None
    max_norm: Any
    trainable: bool
    shared_name: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """``name_embedding``, or ``name_shared_embedding``."""
        kind = "embedding" if self.shared_name is None else "shared_embedding"
        return f"{self.categorical_column.name}_{kind}"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis, of the table's columns."""
        return (self.dimension,)

    def transformed(self, features: Features) -> Any:
        """Nothing of its own: a table is in the scope of the layer that it is declared in."""
        return self.categorical_column.ids(features)

    def looked_up(self, features: Features, collections: Any, trainable: bool) -> tuple[Any, Any]:
        """The rows, and the table, which is a variable of the scope around."""
        ids, weights = features.of(self)
        shared = get_default_graph().get_collection_ref(f"__shared_embedding/{self.shared_name}")
        table = shared[0] if shared and self.shared_name is not None else None
        if table is None:
            table = get_variable(
                "embedding_weights",
                [self.categorical_column.num_buckets, self.dimension],
                float32,
                self.initializer,
                trainable=self.trainable and trainable,
                collections=collections,
            )
            if self.shared_name is not None:
                shared.append(table)
            if self.ckpt_to_load_from is not None:
                init_from_checkpoint(self.ckpt_to_load_from, {str(self.tensor_name_in_ckpt): table})
        found = safe_embedding_lookup_sparse(table, ids, weights, self.combiner, max_norm=self.max_norm)
        return found, table

    def parses(self) -> dict[str, Any]:
        """Those of the categories."""
        return self.categorical_column.parses()


def _in_order(columns: Any, kinds: Any, what: str) -> list[Any]:
    found = [columns] if isinstance(columns, Column) else list(columns)
    for column in found:
        if not isinstance(column, kinds):
            text = f"{what}: {column!r} is not dense"
            raise failed(what, ArgumentError(text, "Wrap it in embedding_column or indicator_column."))
    names = [column.name for column in found]
    if not found or len(set(names)) != len(names):
        text = f"columns of the names {names}"
        raise failed(what, ArgumentError(text, "Give columns, each name once."))
    return sorted(found, key=lambda column: str(column.name))


def _collections(weight_collections: Any) -> list[Any]:
    return list(
        dict.fromkeys([*(weight_collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES])
    )


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
    cols_to_output_tensors: Any = None,
) -> Any:
    """What dense columns make of a batch, side by side in the order of their names: [batch, width].

    Args:
        features: Tensors, or sparse tensors, by key.
        feature_columns: Dense columns, such as numeric, bucketized, embedding and indicator columns.
        weight_collections: Further collections for the variables.
        trainable: Whether tables of embeddings are trainable.
        cols_to_vars: A dict that gets the list of variables of each column.
        cols_to_output_tensors: A dict that gets what each column made.

    Raises:
        ValueError: For columns that are not dense, or that have one name.

    >>> import twofold.static as tf
    >>> age = tf.feature_column.numeric_column("age")
    >>> decade = tf.feature_column.bucketized_column(age, [10.0, 20.0])
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.feature_column.input_layer({"age": [[5.0], [20.0]]}, [decade, age])))
    [[ 5.  1.  0.  0.]
     [20.  0.  0.  1.]]
    """
    builder = features if isinstance(features, Features) else Features(features)
    parts = []
    with variable_scope(None, default_name="input_layer"):
        for column in _in_order(feature_columns, DenseColumn, "input_layer"):
            table: list[Any] = []
            with variable_scope(None, default_name=getattr(column, "shared_name", None) or column.name):
                if isinstance(column, EmbeddingColumn):
                    made, variable = column.looked_up(builder, _collections(weight_collections), trainable)
                    table.append(variable)
                else:
                    made = column.dense(builder)
                flat = shape_ops.reshape(made, [-1, prod(column.shape)])
            parts.append(flat)
            if cols_to_vars is not None:
                cols_to_vars[column] = table
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = flat
        return concat(parts, 1)


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
) -> Any:
    """A linear function of columns: a weight for each number and each category, and a bias; all begin with zero.

    Args:
        features: Tensors, or sparse tensors, by key.
        feature_columns: Numeric and categorical columns.
        units: How many results a row has.
        sparse_combiner: How the weights of several categories in a row are combined: "sum", "mean" or "sqrtn".
        weight_collections: Further collections for the variables.
        trainable: Whether the variables are trainable.
        cols_to_vars: A dict that gets the list of variables of each column, and of "bias".

    Raises:
        ValueError: For columns that are neither dense nor categorical, or that have one name.

    >>> import twofold.static as tf
    >>> letter = tf.feature_column.categorical_column_with_vocabulary_list("letter", ["a", "b"])
    >>> with tf.Graph().as_default():
    ...     print(tf.feature_column.linear_model({"letter": [["a"], ["b"]]}, [letter]).shape)
    ...     print([variable.name for variable in tf.trainable_variables()])
    (2, 1)
    ['linear_model/letter/weights:0', 'linear_model/bias_weights:0']
    """
    builder = features if isinstance(features, Features) else Features(features)
    common: dict[str, Any] = {
        "dtype": float32,
        "initializer": initializers.zeros_initializer(),
        "trainable": trainable,
        "collections": _collections(weight_collections),
    }
    parts = []
    with variable_scope(None, default_name="linear_model"):
        for column in _in_order(feature_columns, (DenseColumn, CategoricalColumn), "linear_model"):
            with variable_scope(None, default_name=column.name):
                if isinstance(column, CategoricalColumn):
                    weights = get_variable("weights", [column.num_buckets, units], **common)
                    ids, amounts = column.ids(builder)
                    parts.append(safe_embedding_lookup_sparse(weights, ids, amounts, sparse_combiner))
                else:
                    width = prod(column.shape)
                    weights = get_variable("weights", [width, units], **common)
                    parts.append(math.matmul(shape_ops.reshape(column.dense(builder), [-1, width]), weights))
            if cols_to_vars is not None:
                cols_to_vars[column] = [weights]
        bias = get_variable("bias_weights", [units], **common)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        return math.add_n(parts) + bias


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """The features of examples that columns read, as ``tf.parse_example`` takes them.

    >>> import twofold.static as tf
    >>> tf.feature_column.make_parse_example_spec([tf.feature_column.numeric_column("age")])["age"].shape
    (1,)
    """
    found: dict[str, Any] = {}
    for column in feature_columns:
        for key, feature in column.parses().items():
            if found.setdefault(key, feature) != feature:
                what = f"the feature {key!r} is read as {found[key]} and as {feature}"
                raise failed("make_parse_example_spec", ArgumentError(what, "Let columns agree on a key."))
    return found
