"""Strings as numbers of buckets, by TensorFlow's fingerprints."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.sparse import SparseTensor
from twofold.static.strings.fingerprint import fingerprint64, joined64
from twofold.static.strings.string_functions import as_string_tensor, known_sizes

_WORDS = 1 << 64


@example('tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3)', "[0 2 2]")
def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """For each string the bucket in [0, num_buckets) of its fingerprint, that of TensorFlow's, as int64.

    Args:
        input: A tensor of strings.
        num_buckets: How many buckets there are, at least 1.
        name: Of the operation.
    """
    if num_buckets < 1:
        what = f"num_buckets is {num_buckets}"
        raise failed("string_to_hash_bucket_fast", ArgumentError(what, "Give a number above 0."))
    given = as_string_tensor("string_to_hash_bucket_fast", input)

    def buckets(array: Any) -> Any:
        flat = [fingerprint64(text) % num_buckets for text in numpy.asarray(array, object).ravel()]
        return numpy.asarray(flat, numpy.int64).reshape(numpy.shape(array))

    kinds = [(int64, known_sizes(given))]
    return in_python("StringToHashBucketFast", buckets, [given], kinds, name, num_buckets=num_buckets)[0]


def crossed(features: Sequence[Any], buckets: int, key: int) -> SparseTensor:
    """For each row the buckets of all combinations of one value of each feature, as TensorFlow's ``SparseCross``.

    Args:
        features: Matrices of strings or int64, or sparse tensors of them; sparse ones are combined first.
        buckets: How many buckets there are.
        key: What the fingerprints of combinations begin with.
    """
    sparse = [one for one in features if isinstance(one, SparseTensor)]
    dense = [one for one in features if not isinstance(one, SparseTensor)]

    def combined(*arrays: Any) -> list[Any]:
        columns = [_rows(*arrays[3 * k : 3 * k + 3]) for k in range(len(sparse))]
        columns += [
            [[_number(value) for value in row] for row in table] for table in arrays[3 * len(sparse) :]
        ]
        made = [
            [reduce(joined64, values, key) % buckets for values in itertools.product(*row)]
            for row in zip(*columns)
        ]
        indices = [(row, k) for row, values in enumerate(made) for k in range(len(values))]
        flat = [value for values in made for value in values]
        size = (len(made), max(map(len, made), default=0))
        return [
            numpy.asarray(indices, numpy.int64).reshape(-1, 2),
            numpy.asarray(flat, numpy.int64),
            numpy.asarray(size, numpy.int64),
        ]

    inputs = [part for one in sparse for part in one.parts] + dense
    return SparseTensor(
        *in_python(
            "SparseCross", combined, inputs, [(int64, (None, 2)), (int64, (None,)), (int64, (2,))], None
        )
    )


def _number(value: Any) -> int:
    return fingerprint64(value) if isinstance(value, bytes) else int(value) % _WORDS


def _rows(indices: Any, values: Any, shape: Any) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(int(shape[0]))]
    for index, value in zip(indices, values):
        rows[int(index[0])].append(_number(value))
    return rows
