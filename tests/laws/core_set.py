"""The core of the suite as one program that prints the hash of what each part computes, in code for one processor.

The processor is that of ``TWOFOLD_TARGET_CPU``, or this machine's own.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy

import twofold as torch
from tests.laws.test_nans import MIXED, PROGRAMS, bits, with_payloads
from tests.laws.test_same_bits import run_with, train
from tests.ops.samples import weight
from twofold.ir.op import REGISTRY
from twofold.ops.base import apply

KINDS = ("elementwise", "reduction", "contraction", "custom")
LONGEST = 200
"""Instructions of an entry that is also compiled on vectors; longer ones, on scalars alone, have no others."""


def samples(dtype: Any, kinds: tuple[str, ...]) -> dict[str, Any]:
    """For every primitive entry of some kinds its first call with operands of ``dtype``."""
    found: dict[str, Any] = {}
    for op in REGISTRY.values():
        if op.kind in kinds:
            for sample in op.samples():
                if sample.arrays and dtype in sample.dtypes:
                    found.setdefault(op.name, sample)
    return found


def short(name: str, sample: Any) -> bool:
    """Whether the code of an element-wise call is not too long for vectors: without FMA they are slow to compile."""
    return weight(REGISTRY[name], sample) <= LONGEST


def observed(name: str, sample: Any) -> bytes:
    """The bits of one call on tensors."""
    operands = [torch.tensor(array, dtype=dtype) for array, dtype in zip(sample.arrays, sample.dtypes)]
    result = apply(name, *operands, attrs=sample.attrs)
    return bytes(numpy.ascontiguousarray(result._numpy()).tobytes())


def entries(dtype: Any, calls: dict[str, Any]) -> dict[str, bytes]:
    """What every call gives."""
    return {f"{name} {dtype.name}": observed(name, call) for name, call in calls.items()}


def products() -> dict[str, bytes]:
    """Matrix products and convolutions of sizes that meet whole tiles and rests."""
    generator = numpy.random.default_rng(5)
    found = {}
    for m, k, n in ((1, 70, 40), (17, 300, 35), (40, 20, 9), (70, 130, 90)):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            a, b = (torch.tensor(generator.normal(size=size)).to(dtype) for size in ((m, k), (k, n)))
            found[f"product {m} {k} {n} {dtype.name}"] = (a @ b)._numpy().tobytes()
    x = torch.tensor(generator.normal(size=(2, 8, 11, 13)).astype(numpy.float32), requires_grad=True)
    w = torch.tensor(generator.normal(size=(16, 8, 3, 3)).astype(numpy.float32), requires_grad=True)
    y = torch.nn.functional.conv2d(x, w, padding=1)
    (y * y).sum().backward()
    found |= {"convolution": y.detach().numpy().tobytes(), "its image": x.grad.numpy().tobytes()}
    return found | {"its weight": w.grad.numpy().tobytes()}


def fused() -> dict[str, bytes]:
    """Programs that are compiled whole: steps of training, and all that meets NaNs."""
    found = {}
    for dtype in (torch.float32, torch.float64):
        trained = run_with("fused", 2, lambda dtype=dtype: train(dtype=dtype))
        found[f"training {dtype.name}"] = b"".join(part.tobytes() for part in trained)
    for name, program in (PROGRAMS | MIXED).items():
        result = run_with("fused", 1, lambda program=program: program(*with_payloads(torch.bfloat16)))
        raw = bits(result) if result.dtype.kind == "f" else result.numpy()
        found[f"NaN {name}"] = raw.tobytes()
    return found


if __name__ == "__main__":
    halves = {
        name: call for name, call in samples(torch.bfloat16, ("elementwise",)).items() if short(name, call)
    }
    calls = entries(torch.float32, samples(torch.float32, KINDS)) | entries(torch.bfloat16, halves)
    computed = products() | fused() | calls
    print(json.dumps({name: hashlib.sha256(raw).hexdigest() for name, raw in computed.items()}))
