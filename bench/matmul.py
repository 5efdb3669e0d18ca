"""Matrix products against the peak of the processor, NumPy and (if installed) PyTorch.

    python bench/matmul.py --threads 1,2

Times are medians over rounds in which all contestants take turns. Packing is inside the time. Generated code
is repeated by generated code, the libraries by Python, whose call (about half a microsecond) is counted with
them. Threads wait for each other by spinning, so two threads need two idle cores, or ``--best``.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from twofold import dtypes
from twofold.compiler.jit import compile_kernels
from twofold.compiler.lower.gemm import MatmulProblem, Operand, plan_matmul
from twofold.compiler.lower.target import vector_bits

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
VECTOR = "<16 x float>"

# the two letters say which of the operands are transposed views, as in x @ W.T ("nt") or dY.T @ X ("tn")
SHAPES = [
    *[("nn", 1, size, size, size) for size in (32, 64, 72, 77, 80, 96, 112, 128, 256, 512, 1024, 2048)],
    *[("nt", 1, rows, n, k) for rows in (64, 1024) for n, k in ((256, 784), (128, 256), (10, 128))],
    *[("nn", 1, rows, n, k) for rows in (64, 1024) for n, k in ((256, 128), (128, 10))],
    *[("tn", 1, m, n, rows) for rows in (64, 1024) for m, n in ((256, 784), (128, 256), (10, 128))],
    ("nn", 1, 1280, 1024, 256),
    ("nt", 1, 1280, 1024, 256),
    ("nt", 1, 1024, 1024, 1024),
    ("tn", 1, 1024, 1024, 1024),
    ("nn", 1, 1, 1024, 1024),
    ("nn", 1, 1, 2048, 2048),
    ("nn", 1, 7, 2048, 2048),
    ("nn", 1, 7, 256, 784),
    ("nt", 1, 1, 1024, 1024),
    ("nt", 48, 128, 128, 64),
    ("nn", 48, 128, 64, 128),
    ("nn", 1, 4, 20, 10),
]

DRIVER = """define i64 @driver(ptr %buffers, ptr %params, i64 %begin, i64 %end) {
entry:
  %calls = load ptr, ptr %buffers
  %second = getelementptr ptr, ptr %buffers, i64 1
  %counter = load ptr, ptr %second
  %count = load i64, ptr %params
  %second_param = getelementptr i64, ptr %params, i64 1
  %threads = load i64, ptr %second_param
  %shared = icmp ugt i64 %threads, 1
  br label %turn
turn:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %turned ]
  br label %step
step:
  %j = phi i64 [ 0, %turn ], [ %j.next, %stepped ]
  %at = getelementptr [5 x i64], ptr %calls, i64 %j
  %function = load ptr, ptr %at
  %at1 = getelementptr i64, ptr %at, i64 1
  %b = load ptr, ptr %at1
  %at2 = getelementptr i64, ptr %at, i64 2
  %p = load ptr, ptr %at2
  %at3 = getelementptr i64, ptr %at, i64 3
  %low = load i64, ptr %at3
  %at4 = getelementptr i64, ptr %at, i64 4
  %high = load i64, ptr %at4
  %code = call i64 %function(ptr %b, ptr %p, i64 %low, i64 %high)
  br i1 %shared, label %barrier, label %stepped
barrier:
  %old = atomicrmw add ptr %counter, i64 1 seq_cst
  %round = udiv i64 %old, %threads
  %following = add i64 %round, 1
  %goal = mul i64 %following, %threads
  br label %spin
spin:
  %now = load atomic i64, ptr %counter seq_cst, align 8
  %ready = icmp uge i64 %now, %goal
  br i1 %ready, label %stepped, label %spin
stepped:
  %j.next = add i64 %j, 1
  %more = icmp ult i64 %j.next, %count
  br i1 %more, label %step, label %turned
turned:
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, %end
  br i1 %again, label %turn, label %done
done:
  ret i64 0
}
"""
"""Runs a list of calls many times over; threads meet after every call."""


_CHAINS = 24 if vector_bits() == 512 else 6
"""Independent sums of sixteen lanes that registers hold: too few wait for each other, too many go through memory."""

PEAK_FLOPS = 32 * _CHAINS * 1000
"""Floating-point operations of one unit of work of ``peak_program`` on one thread."""


def peak_text(chains: int) -> str:
    """A kernel of nothing but independent multiply-adds: 32 * ``chains`` operations each turn."""
    fma = f"@llvm.fma.v16f32({VECTOR}, {VECTOR}, {VECTOR})"
    lines = [
        f"declare {VECTOR} {fma}",
        "define i64 @peak(ptr %buffers, ptr %params, i64 %begin, i64 %end) {",
        "entry:",
        "  %p = load ptr, ptr %buffers",
        f"  %x = load {VECTOR}, ptr %p, align 4",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]",
    ]
    for c in range(chains):
        lines.append(f"  %s{c} = phi {VECTOR} [ %x, %entry ], [ %t{c}, %loop ]")
    for c in range(chains):
        lines.append(f"  %t{c} = call {VECTOR} @llvm.fma.v16f32({VECTOR} %x, {VECTOR} %x, {VECTOR} %s{c})")
    lines += ["  %next = add i64 %i, 1", "  %more = icmp ult i64 %next, %end"]
    lines += ["  br i1 %more, label %loop, label %done", "done:"]
    for c in range(chains):
        lines.append(f"  %q{c} = getelementptr i8, ptr %p, i64 {64 * c}")
        lines.append(f"  store {VECTOR} %t{c}, ptr %q{c}, align 4")
    return "\n".join([*lines, "  ret i64 0", "}"]) + "\n"


class Program:
    """Kernel calls that threads repeat together."""

    def __init__(self, steps: Sequence[tuple[int, Any, Any, int]], threads: int) -> None:
        self.driver = KERNEL(compile_kernels({"driver": DRIVER})["driver"])
        self.counter = numpy.zeros(8, numpy.int64)
        self.steps = steps
        # the memory that the pointers in the steps point to
        self.keep: object = None
        self.shares = []
        for t in range(threads):
            table = numpy.zeros((len(steps), 5), numpy.int64)
            for row, (address, buffers, params, work) in zip(table, steps):
                bounds = work * t // threads, work * (t + 1) // threads
                row[:] = address, ctypes.addressof(buffers), ctypes.addressof(params), *bounds
            pointers = (ctypes.c_void_p * 2)(table.ctypes.data, self.counter.ctypes.data)
            self.shares.append((pointers, (ctypes.c_int64 * 2)(len(steps), threads), table))

    def seconds(self, repeats: int) -> float:
        """Wall time of one repetition."""
        self.counter[:] = 0
        others = [
            threading.Thread(target=self.driver, args=(share[0], share[1], 0, repeats))
            for share in self.shares[1:]
        ]
        for thread in others:
            thread.start()
        begin = time.perf_counter()
        self.driver(self.shares[0][0], self.shares[0][1], 0, repeats)
        elapsed = time.perf_counter() - begin
        for thread in others:
            thread.join()
        return elapsed / repeats


def peak_program(threads: int) -> Program:
    """One unit of work is 1000 turns of the peak kernel on each thread."""
    memory = [numpy.full(_CHAINS * 16, 1e-3, numpy.float32) for _ in range(threads)]
    address = compile_kernels({"peak": peak_text(_CHAINS)})["peak"]
    pointers = (ctypes.c_void_p * 1)(memory[0].ctypes.data)
    program = Program([(address, pointers, (ctypes.c_int64 * 1)(), 1000 * threads)], threads)
    own = [(ctypes.c_void_p * 1)(x.ctypes.data) for x in memory]
    for share, mine in zip(program.shares, own):
        share[2][0, 1] = ctypes.addressof(mine)
    program.keep = (memory, own)
    return program


def strides(x: numpy.ndarray) -> Operand:
    """The strides of a batch of matrices in elements."""
    batch, row, column = (step // x.itemsize for step in x.strides)
    return Operand(batch, row, column)


def generated(a: numpy.ndarray, b: numpy.ndarray, c: numpy.ndarray, threads: int) -> Program:
    """The plan of a product, ready to run."""
    problem = MatmulProblem(
        c.shape[0], c.shape[1], c.shape[2], a.shape[2], strides(a), strides(b), strides(c), dtypes.float32
    )
    plan = plan_matmul(problem)
    arrays = {"a": a, "b": b, "c": c}
    for i, size in enumerate(plan.scratch_bytes):
        memory = numpy.empty(size + 64, numpy.uint8)
        arrays[f"scratch{i}"] = memory[-memory.ctypes.data % 64 :]
    steps = []
    for call in plan.calls:
        pointers = (ctypes.c_void_p * len(call.buffers))(*[arrays[role].ctypes.data for role in call.buffers])
        numbers = (ctypes.c_int64 * len(call.params))(*call.params)
        address = compile_kernels({call.text_key: call.text})[call.text_key]
        steps.append((address, pointers, numbers, call.work))
    program = Program(steps, threads)
    program.keep = arrays
    program.seconds(1)
    numpy.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
    return program


def library(call: Callable[[], Any]) -> Callable[[int], float]:
    """Seconds of one call, of that many in a row."""

    def seconds(repeats: int) -> float:
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - begin) / repeats

    return seconds


def contestants(
    a: numpy.ndarray, b: numpy.ndarray, c: numpy.ndarray, threads: int, torch: Any
) -> dict[str, Callable[[int], float]]:
    """Name and timer of each."""
    plain = tuple(x[0] if len(x) == 1 else x for x in (a, b, c))
    out = numpy.empty_like(plain[2])
    found: dict[str, Callable[[int], float]] = {"generated": generated(a, b, c, threads).seconds}
    found["numpy"] = library(lambda: numpy.matmul(plain[0], plain[1], out=out))
    if torch is not None:
        x, y, z = (torch.from_numpy(value) for value in (*plain[:2], out))
        found["torch"] = library(lambda: torch.matmul(x, y, out=z))
    return found


def race(
    timers: dict[str, Callable[[int], float]], rounds: int, seconds: float, best: bool
) -> dict[str, float]:
    """Median (or least) seconds of each; all take turns."""
    repeats = {}
    for name, timer in timers.items():
        timer(1)
        repeats[name] = max(1, int(seconds / max(timer(1), 1e-8)))
    times: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            times[name].append(timer(repeats[name]))
    choose = min if best else statistics.median
    return {name: choose(values) for name, values in times.items()}


def measure(threads: int, rounds: int, seconds: float, only: str, best: bool) -> None:
    """Print the table for one number of threads."""
    try:
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
    except ImportError:
        torch = None
    generator = numpy.random.default_rng(0)
    peak = peak_program(threads)
    work, top = PEAK_FLOPS * threads, 0.0
    print(f"\n{threads} thread(s), GFLOP/s; peak is a loop of multiply-adds timed in the same rounds")
    print(
        f"{'product':>22} {'us':>10} {'generated':>9} {'% peak':>6} {'numpy':>7} {'torch':>7} {'x numpy':>7}"
    )
    for kind, batch, m, n, k in SHAPES:
        name = f"{kind} {'' if batch == 1 else f'{batch}x'}{m}x{n}x{k}"
        if only not in name:
            continue
        a, b = (
            generator.standard_normal(
                (batch, columns, rows) if letter == "t" else (batch, rows, columns)
            ).astype(numpy.float32)
            for letter, rows, columns in ((kind[0], m, k), (kind[1], k, n))
        )
        a, b = (x.swapaxes(1, 2) if letter == "t" else x for letter, x in zip(kind, (a, b)))
        c = numpy.empty((batch, m, n), numpy.float32)
        timers = {**contestants(a, b, c, threads, torch), "peak": peak.seconds}
        times = race(timers, rounds, seconds, best)
        rate = {who: 2e-9 * batch * m * n * k / value for who, value in times.items()}
        top = max(work / times["peak"] * 1e-9, top if best else 0.0)
        print(
            f"{name:>22} {times['generated'] * 1e6:10.2f} {rate['generated']:9.1f}"
            f" {100 * rate['generated'] / top:6.0f} {rate['numpy']:7.1f}"
            f" {rate.get('torch', float('nan')):7.1f} {rate['generated'] / rate['numpy']:7.2f}",
            flush=True,
        )


def main() -> None:
    """Run once for each number of threads, in own processes, as OpenBLAS reads its number at start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.01, help="of each contestant in each round")
    parser.add_argument("--only", default="", help="part of a product's name, such as 'nt 64'")
    parser.add_argument("--best", action="store_true", help="least times, for a machine with other work")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        measure(int(chosen.threads), chosen.rounds, chosen.seconds, chosen.only, chosen.best)
        return
    for threads in chosen.threads.split(","):
        command = [sys.executable, __file__, "--inside", "--threads", threads, "--rounds", str(chosen.rounds)]
        command += ["--seconds", str(chosen.seconds), "--only", chosen.only]
        command += ["--best"] if chosen.best else []
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
