"""What runs on the host has the bits that it has alone, whatever threads its library has, in both ways of declaring."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.laws.host_calls import HOST, MATRICES, large, observed
from twofold.ops import host_threads
from twofold.ops.base import FUNCTIONS, apply
from twofold.ops.host_threads import one_blas_thread

ROOT = Path(__file__).resolve().parents[2]
NAMES = [op.name for op in HOST]


def hashes(**environment: str) -> dict[str, list[str]]:
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    program = [sys.executable, str(ROOT / "tests" / "laws" / "host_calls.py")]
    run = subprocess.run(program, env=settings, capture_output=True, text=True, timeout=600, check=True)
    found: dict[str, list[str]] = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def settings() -> list[dict[str, list[str]]]:
    return [
        hashes(OPENBLAS_NUM_THREADS="1", TWOFOLD_THREADS="1"),
        hashes(OPENBLAS_NUM_THREADS="2", TWOFOLD_THREADS="2"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_threads(name: str, settings: list[dict[str, list[str]]]) -> None:
    one, two = settings
    assert one[name] == two[name]


@pytest.mark.parametrize("op", MATRICES, ids=lambda op: op.name)
def test_a_matrix_alone_has_its_bits_in_a_batch(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "_NANOSECONDS_A_THREAD", 1)
    whole = large(op, (2, 3))
    together = op.host(whole.attrs, *whole.arrays)
    for at in numpy.ndindex(2, 3):
        alone = [array[at] if array.shape[:2] == (2, 3) else array for array in whole.arrays]
        assert together[at].tobytes() == numpy.ascontiguousarray(op.host(whole.attrs, *alone)).tobytes()


# one without operands is no graph of a session but a value
@pytest.mark.parametrize("op", [op for op in HOST if op.samples()[0].arrays], ids=lambda op: op.name)
def test_both_ways_of_declaring_have_the_same_bits(op: Any) -> None:
    for sample in op.samples()[:3]:
        direct = observed(op, sample)
        with tf.Graph().as_default(), tf.Session() as session:
            positions = [
                tf.placeholder(dtype, array.shape) for array, dtype in zip(sample.arrays, sample.dtypes)
            ]
            declared = session.run(
                apply(op.name, *positions, attrs=sample.attrs), dict(zip(positions, sample.arrays))
            )
        assert direct == numpy.ascontiguousarray(declared).tobytes()


def test_functions_say_which_library_computes_for_them() -> None:
    noted = {
        name
        for name, function in FUNCTIONS.items()
        if "Computed by NumPy's library" in (function.__doc__ or "")
    }
    assert {"linalg.inv", "linalg.svdvals", "cholesky", "pinverse", "linalg.lstsq", "matrix_exp"} <= noted
    assert not {"matmul", "linalg.cross", "linalg.vector_norm", "sort", "einsum", "fft.fft"} & noted
    assert "Computed by numpy.fft" in FUNCTIONS["fft.rfft2"].__doc__


def blas_threads() -> int:
    counters = host_threads._counters()
    if counters is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    number: int = counters[0]()
    return number


def test_the_library_gets_its_threads_back() -> None:
    before = blas_threads()
    with one_blas_thread:
        assert blas_threads() == 1
        with one_blas_thread:
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == before


def test_the_library_keeps_one_thread_until_the_last_is_out() -> None:
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_blas_thread:
            inside.set()
            leave.wait(10)

    worker = threading.Thread(target=other)
    worker.start()
    inside.wait(10)
    with one_blas_thread:
        pass
    assert blas_threads() == 1
    leave.set()
    worker.join()
    assert blas_threads() == before


def test_many_threads_have_the_bits_of_one() -> None:
    a = torch.tensor(large(MATRICES[0]).arrays[0])
    expected = torch.linalg.inv(a).numpy().tobytes()
    found = []
    workers = [
        threading.Thread(target=lambda: found.append(torch.linalg.inv(a).numpy().tobytes())) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 4


def _inverse(queue: Any) -> None:
    queue.put(torch.linalg.inv(torch.eye(200).repeat(8, 1, 1) * 2).numpy().tobytes())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "_NANOSECONDS_A_THREAD", 1)
    expected = torch.linalg.inv(torch.eye(200).repeat(8, 1, 1) * 2).numpy().tobytes()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=_inverse, args=(queue,))
        child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)


def test_an_error_names_the_matrix_of_the_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "_NANOSECONDS_A_THREAD", 1)
    a = torch.eye(3).repeat(6, 1, 1).clone()
    a[4] = 0
    with pytest.raises(torch.linalg.LinAlgError, match="batch element 4"):
        torch.linalg.inv(a)
