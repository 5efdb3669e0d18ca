"""What nodes of tables, strings, segments, parsed examples and checks mean."""

from __future__ import annotations

from typing import Any

import numpy

from twofold import static as tf
from twofold.dtypes import float32, int32, string
from twofold.static.data.example_parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    parse_example,
    parse_single_example,
)
from twofold.static.functions.bodies import source_of
from twofold.static.functions.host_calls import in_python
from twofold.static.graph_def.node_functions import Node, entered, imports, refused, several_named
from twofold.static.lookup import HashTable, KeyValueTensorInitializer, TextFileInitializer
from twofold.static.protobuf.graph_def import DTYPES, sizes_of_message
from twofold.static.python.tensor_util import constant_value
from twofold.static.sparse import SparseTensor


@imports("HashTableV2", "HashTable")
def _table(node: Node) -> Any:
    """A handle, which stands for the table as its name."""
    name = node.scope.rstrip("/")
    table = HashTable.unfilled(name, node.attr("key_dtype"), node.attr("value_dtype"))
    return in_python("HashTableV2", lambda: name.encode(), [], [(string, ())], node.name, table=table)[0]


def _of(node: Node) -> HashTable:
    table: HashTable = source_of(node[0])[0].keywords["table"]
    return table


@imports("LookupTableImportV2", "LookupTableImport", "InitializeTableV2", "InitializeTable")
def _filled(node: Node) -> Any:
    table = _of(node)
    pairs = KeyValueTensorInitializer(node[1], node[2], table.key_dtype, table.value_dtype)
    return table.filled_by(pairs, node.name)


@imports("InitializeTableFromTextFileV2", "InitializeTableFromTextFile")
def _filled_from_file(node: Node) -> Any:
    table, size = _of(node), node.attr("vocab_size", -1)
    pairs = TextFileInitializer(
        node[1],
        table.key_dtype,
        node.attr("key_index"),
        table.value_dtype,
        node.attr("value_index"),
        None if size == -1 else size,
        node.attr("delimiter", "\t"),
    )
    return table.filled_by(pairs, node.name)


@imports("LookupTableFindV2", "LookupTableFind")
def _found(node: Node) -> Any:
    owner = source_of(node[2])[0]
    if owner.constant is None:
        raise refused(node, "a default value that is no constant")
    default = constant_value(node[2])
    value = default.item() if isinstance(default, (numpy.ndarray, numpy.generic)) else default
    return _of(node).lookup(node[1], node.name, default_value=value)


@imports("LookupTableSizeV2", "LookupTableSize")
def _size(node: Node) -> Any:
    return _of(node).size(node.name)


def _text(node: Node, position: int) -> Any:
    """The strings of an input, which is a constant."""
    found = constant_value(node[position])
    if found is None:
        raise refused(node, f"the input {position}, which is no constant,")
    return [one.decode() for one in numpy.ravel(numpy.asarray(found, object)).tolist()]


def _features(node: Node, sparse: list[str], dense: list[str], first: int) -> dict[str, Any]:
    """Kinds of features by name; the defaults of dense ones are the inputs from ``first`` on."""
    found: dict[str, Any] = {}
    for name, kind in zip(sparse, node.attr("sparse_types", [])):
        found[name] = VarLenFeature(DTYPES[kind])
    for k, (name, kind) in enumerate(zip(dense, node.attr("Tdense", []))):
        dtype, shape = DTYPES[kind], sizes_of_message(node.attr("dense_shapes")[k]) or []
        default = numpy.asarray(constant_value(node[first + k]))
        if shape[:1] in ([-1], [None]):
            blank = default.ravel()[0] if default.size else None
            found[name] = FixedLenSequenceFeature(shape[1:], dtype, True, blank)
        else:
            found[name] = FixedLenFeature(shape, dtype, default if default.size else None)
    return found


def _parts(made: dict[str, Any], sparse: list[str], dense: list[str]) -> list[Any]:
    """All indices, all values and all shapes of sparse features, then the dense features."""
    each = [made[name].parts for name in sparse]
    return [one[part] for part in range(3) for one in each] + [made[name] for name in dense]


@imports("ParseExample", "ParseExampleV2")
def _parse(node: Node) -> Any:
    if node.op == "ParseExampleV2":
        if _text(node, 4):
            raise refused(node, "a ragged feature")
        sparse, dense, first = _text(node, 2), _text(node, 3), 5
    else:
        count, first = node.attr("Nsparse", 0), 2 + node.attr("Nsparse", 0) + node.attr("Ndense", 0)
        sparse = [name for k in range(2, 2 + count) for name in _text(node, k)]
        dense = [name for k in range(2 + count, first) for name in _text(node, k)]
    made = parse_example(node[0], _features(node, sparse, dense, first), name=node.name)
    return _parts(made, sparse, dense)


@imports("ParseSingleExample")
def _parse_one(node: Node) -> Any:
    sparse, dense = ([one.decode() for one in node.attr(key, [])] for key in ("sparse_keys", "dense_keys"))
    made = parse_single_example(node[0], _features(node, sparse, dense, 1), name=node.name)
    return _parts(made, sparse, dense)


@imports("Assert")
def _assert(node: Node) -> Any:
    return tf.Assert(node[0], node.inputs[1:], node.attr("summarize", 3), node.name)


@imports("Print")
def _print(node: Node) -> Any:
    options = node.attr("message", ""), node.attr("first_n", -1), node.attr("summarize", 3)
    return tf.Print(node[0], node.inputs[1:], *options, name=node.name)


@imports("IsVariableInitialized", "VarIsInitializedOp")
def _is_initialized(node: Node) -> Any:
    return tf.is_variable_initialized(source_of(node[0])[0].variable)


@imports("Where")
def _where(node: Node) -> Any:
    return tf.where(node[0], name=node.name)


@imports("Unique", "UniqueWithCounts")
def _unique(node: Node) -> Any:
    made = tf.unique_with_counts(node[0], node.attr("out_idx", int32), name=node.name)
    return list(made)


@imports("Bucketize")
def _bucketize(node: Node) -> Any:
    with tf.name_scope(node.scope):
        limits = tf.constant(node.attr("boundaries"), node[0].dtype)
        found = tf.searchsorted(limits, tf.reshape(node[0], [-1]), "right")
    return tf.reshape(found, tf.shape(node[0]), name=node.name)


@imports("SparseReshape")
def _sparse_reshape(node: Node) -> Any:
    with tf.name_scope(node.scope):
        zeros = tf.zeros(tf.shape(node[0])[:1])
        made = tf.sparse_reshape(SparseTensor(node[0], zeros, node[1]), node[2])
    return several_named([made.indices, made.dense_shape], node.name)


@imports("SparseFillEmptyRows")
def _fill_rows(node: Node) -> Any:
    with tf.name_scope(node.scope):
        made, empty = tf.sparse_fill_empty_rows(SparseTensor(node[0], node[1], node[2]), node[3])
    # the fourth output, read by gradients alone, is not offered
    return several_named([made.indices, made.values, empty], node.name)


@imports("SparseToDense")
def _to_dense(node: Node) -> Any:
    checked = node.attr("validate_indices", True)
    return tf.sparse_to_dense(node[0], node[1], node[2], node[3], checked, name=node.name)


for _kind in ("Sum", "Prod", "Max", "Min", "Mean"):
    if _kind != "Mean":
        entered(f"UnsortedSegment{_kind}", getattr(tf, f"unsorted_segment_{_kind.lower()}"), "0 1 #2")
    entered(f"Segment{_kind}", getattr(tf, f"segment_{_kind.lower()}"), "0 1")
entered("SparseSegmentSum", tf.sparse_segment_sum, "0 1 2")
entered("SparseSegmentMean", tf.sparse_segment_mean, "0 1 2")
entered("SparseSegmentSqrtN", tf.sparse_segment_sqrt_n, "0 1 2")
entered("StringToHashBucketFast", tf.strings.to_hash_bucket_fast, "0", num_buckets=None)
entered("AsString", tf.as_string, "0", precision=-1, scientific=False, shortest=False, width=-1, fill="")
entered("StringToNumber", tf.string_to_number, "0", out_type=float32)
entered("StringJoin", tf.string_join, "*", separator="")
