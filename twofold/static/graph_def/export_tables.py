"""Nodes of tables, and of examples that are parsed."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import int64, string
from twofold.static.graph_def.node_writer import Writer, exports, of, row
from twofold.static.protobuf.graph_def import shape_message


def _handle(writer: Writer) -> tuple[Any, str]:
    """The table of an operation, and what it is called as an input."""
    table = writer.operation.keywords["table"]
    if table not in writer.handles:
        attrs = {
            "key_dtype": table.key_dtype,
            "value_dtype": table.value_dtype,
            "use_node_name_sharing": True,
        }
        attrs |= {"container": "", "shared_name": ""}
        writer.handles[table] = writer.node("HashTableV2", [], "hash_table", string, **attrs)
    return table, writer.handles[table]


@exports("InitializeTable")
def _initialize(writer: Writer) -> None:
    table, handle = _handle(writer)
    pairs, refs = table.initializer_of_pairs, writer.sources()
    if not hasattr(pairs, "delimiter"):
        writer.last("LookupTableImportV2", [handle, *refs], Tin=table.key_dtype, Tout=table.value_dtype)
        return
    attrs = {"key_index": pairs.key_index, "value_index": pairs.value_index, "delimiter": pairs.delimiter}
    size = -1 if pairs.vocab_size is None else pairs.vocab_size
    writer.last("InitializeTableFromTextFileV2", [handle, *refs], vocab_size=size, **attrs)


@exports("LookupTableFind")
def _find(writer: Writer) -> None:
    table, handle = _handle(writer)
    (keys,) = writer.sources()
    if writer.dtype_of(keys) is not table.key_dtype:
        keys = writer.cast(keys, table.key_dtype)
    default = writer.constant(writer.argument("default_value"), table.value_dtype, "default_value")
    refs, attrs = [handle, keys, default], {"Tin": table.key_dtype, "Tout": table.value_dtype}
    if not table.buckets:
        writer.last("LookupTableFindV2", refs, **attrs)
        return
    found = writer.node("LookupTableFindV2", refs, "LookupTableFindV2", int64, **attrs)
    if table.key_dtype is not string:
        keys = writer.node("AsString", [keys], "AsString", string)
    bucket = writer.node("StringToHashBucketFast", [keys], "hash_bucket", int64, num_buckets=table.buckets)
    count = writer.node("LookupTableSizeV2", [handle], "hash_table_Size", int64)
    known = writer.node("NotEqual", [found, default], "NotEqual", int64)
    other = writer.node("AddV2", [bucket, count], "Add", int64)
    writer.last("SelectV2", [known, found, other], T=int64)


@exports("LookupTableSize")
def _size(writer: Writer) -> None:
    table, handle = _handle(writer)
    if not table.buckets:
        writer.last("LookupTableSizeV2", [handle])
        return
    count = writer.node("LookupTableSizeV2", [handle], "hash_table_Size", int64)
    writer.last("AddV2", [count, writer.constant(table.buckets, int64, "buckets")])


@exports("ParseExample")
def _parse(writer: Writer) -> None:
    sparse, dense = writer.operation.keywords["sparse"], writer.operation.keywords["dense"]
    (examples,) = writer.sources()
    defaults = [
        writer.constant(_default(one), one.dtype, f"dense_defaults_{k}") for k, one in enumerate(dense)
    ]
    sizes = [one.shape if one.fixed else [-1, *one.shape] for one in dense]
    attrs: dict[str, Any] = {"dense_shapes": [shape_message(one) for one in sizes]}
    attrs |= {"sparse_types": [one.dtype for one in sparse], "Tdense": [one.dtype for one in dense]}
    names = [[one.name.encode() for one in held] for held in (sparse, dense)]
    if writer.rank() == 0:
        attrs |= {"num_sparse": len(sparse), "sparse_keys": names[0], "dense_keys": names[1]}
        writer.last("ParseSingleExample", [examples, *defaults], **attrs)
        return
    attrs |= {"Nsparse": len(sparse), "Ndense": len(dense)}
    refs = [examples, writer.constant([], string, "names")]
    for kind, held in zip(("sparse_keys", "dense_keys"), names):
        refs += [writer.constant(one, string, f"{kind}_{k}") for k, one in enumerate(held)]
    writer.last("ParseExample", [*refs, *defaults], **attrs)


def _default(column: Any) -> Any:
    """What a dense feature is where it is missing: nothing for one that must be there."""
    if not column.fixed and column.feature.default_value is None:
        return b"" if column.dtype is string else 0
    if column.feature.default_value is None:
        return numpy.empty([0], object if column.dtype is string else column.dtype.numpy)
    given = numpy.asarray(column.feature.default_value, object if column.dtype is string else None)
    return given if not column.fixed or given.size != 1 else numpy.full(column.shape, given.ravel()[0])


row("StringToHashBucketFast", "*", num_buckets=1)
row("Where", "*", T=of(0))
