"""Calls of every operation that runs on the host, on matrices large enough for a library to share among threads.

Run as a program it prints the hash of what each gives, for the settings of its environment.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy

import twofold as torch
from twofold.dtypes import float32
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply
from twofold.ops.linear_algebra.matrices import MatrixOperation
from twofold.ops.samples import Sample

GROWTH = 110
HOST = [op for op in REGISTRY.values() if op.kind == "host" and op.samples()]
# the operand of `tridiagonal_solution` is no matrix but its three diagonals
MATRICES = [op for op in HOST if isinstance(op, MatrixOperation) and op.name != "tridiagonal_solution"]


def matrices(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Matrices that every factorisation takes: nearly symmetric where square, the diagonal outweighing the rest."""
    x = numpy.random.default_rng(seed).standard_normal(shape)
    if shape[-1] == shape[-2]:
        x = x + x.swapaxes(-1, -2)
    return (x + 4 * max(shape[-2:]) * numpy.eye(*shape[-2:])).astype(numpy.float32)


def large(op: Any, batch: tuple[int, ...] = ()) -> Sample:
    """The first call of ``op`` on real matrices of three or more rows, with many times the rows and columns."""
    for sample in op.samples():
        first, *rest = sample.arrays
        rows = first.shape[-2]
        if min(first.shape[-2:]) >= 2 and sample.dtypes[0] is float32 and rows >= 3:
            break
    size = GROWTH * rows
    arrays = [matrices((*batch, size, GROWTH * first.shape[-1]))]
    for other, dtype in zip(rest, sample.dtypes[1:]):
        if dtype.kind in "iu":
            whole = numpy.arange(1, size + 1, dtype=other.dtype)
            arrays.append(numpy.broadcast_to(whole, (*batch, size)).copy())
        elif other.ndim >= 2:
            shape = (*batch, size, other.shape[-1])
            arrays.append(numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32))
        else:
            arrays.append(other)
    return Sample(sample.attrs, tuple(arrays), sample.dtypes, sample.smooth)


def observed(op: Any, sample: Sample) -> bytes:
    """The bits of the result of one call on tensors."""
    operands = [torch.tensor(array, dtype=dtype) for array, dtype in zip(sample.arrays, sample.dtypes)]
    return bytes(apply(op.name, *operands, attrs=sample.attrs).numpy().tobytes())


def calls() -> dict[str, list[Sample]]:
    """All calls by name of their operation."""
    found = {op.name: list(op.samples()) for op in HOST}
    for op in MATRICES:
        found[op.name] += [large(op), large(op, (3,))]
    return found


if __name__ == "__main__":
    hashes = {
        name: [hashlib.sha256(observed(REGISTRY[name], sample)).hexdigest() for sample in samples]
        for name, samples in calls().items()
    }
    print(json.dumps(hashes))
