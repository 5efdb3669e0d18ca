"""First training step with an empty and a filled cache on disk, compiling in the background, and peak memory.

    python bench/compile_time.py [--only NAME] [--rounds 3] [--peer PYTHON]

Every figure comes from a process of its own: wall and CPU milliseconds from after the building of the model to the
end of the first step; CPU milliseconds that fusing its trace takes the program and its compiler; milliseconds of a
step while the compiler works; the most memory that the process had at once, over what it had after its imports.
PYTHON is an interpreter that has PyTorch. Lines of `beside` mean nothing on a machine that does other work.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy

RNG = numpy.random.default_rng(0)


def normal(torch: Any, *shape: int) -> Any:
    return torch.from_numpy(RNG.normal(size=shape).astype(numpy.float32))


def classes(torch: Any, high: int, *shape: int) -> Any:
    return torch.from_numpy(RNG.integers(0, high, shape))


def trained(torch: Any, net: Any, x: Any, y: Any) -> Callable[[], float]:
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step() -> float:
        scores = net(x)
        loss = torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def perceptron(torch: Any, inputs: int, batch: int) -> Callable[[], float]:
    """inputs-256-256-10."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return trained(torch, net, normal(torch, batch, inputs), classes(torch, 10, batch))


def mlp(torch: Any) -> Callable[[], float]:
    """784-256-256-10, batch 64."""
    return perceptron(torch, 784, 64)


def deep_mlp(torch: Any) -> Callable[[], float]:
    """400 layers of 32, batch 16."""
    nn = torch.nn
    layers = [layer for _ in range(400) for layer in (nn.Linear(32, 32), nn.Tanh())]
    return trained(torch, nn.Sequential(*layers), normal(torch, 16, 32), classes(torch, 10, 16))


def blocks(torch: Any, layers: int, width: int, batch: int, length: int) -> Callable[[], float]:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            parts = self.qkv(self.first(x)).reshape(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
            q, k, v = parts[0], parts[1], parts[2]
            weights = torch.softmax(q @ k.transpose(-2, -1) / (d // 4) ** 0.5, -1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, d))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    net = nn.Sequential(
        nn.Embedding(1000, width),
        *[Block() for _ in range(layers)],
        nn.LayerNorm(width),
        nn.Linear(width, 1000),
    )
    return trained(torch, net, classes(torch, 1000, batch, length), classes(torch, 1000, batch, length))


def transformer24(torch: Any) -> Callable[[], float]:
    """24 layers of 128, batch 4, 32 tokens."""
    return blocks(torch, 24, 128, 4, 32)


def transformer6(torch: Any) -> Callable[[], float]:
    """6 layers of 256, batch 8, 256 tokens."""
    return blocks(torch, 6, 256, 8, 256)


def residual(torch: Any, kind: str, depths: list[int], batch: int, side: int) -> Callable[[], float]:
    nn = torch.nn

    def conv(a: int, b: int, k: int, stride: int = 1) -> list[Any]:
        return [nn.Conv2d(a, b, k, stride, padding=k // 2, bias=False), nn.BatchNorm2d(b)]

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, given: int, width: int, stride: int) -> None:
            super().__init__()
            if kind == "bottleneck":
                made = 4 * width
                layers = [*conv(given, width, 1), nn.ReLU(), *conv(width, width, 3, stride), nn.ReLU()]
                layers += conv(width, made, 1)
            else:
                made = width
                layers = [*conv(given, width, 3, stride), nn.ReLU(), *conv(width, width, 3)]
            self.body = nn.Sequential(*layers)
            same = given == made and stride == 1
            self.short = nn.Sequential() if same else nn.Sequential(*conv(given, made, 1, stride))
            self.width = made

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.short(x))

    layers = [*conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    given = 64
    for stage, depth in enumerate(depths):
        for number in range(depth):
            layers.append(Block(given, 64 << stage, 2 if stage and not number else 1))
            given = layers[-1].width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 10))
    return trained(torch, net, normal(torch, batch, 3, side, side), classes(torch, 10, batch))


def resnet50(torch: Any) -> Callable[[], float]:
    """Bottlenecks as in ResNet-50, batch 2 of 32 by 32."""
    return residual(torch, "bottleneck", [3, 4, 6, 3], 2, 32)


def resnet18(torch: Any) -> Callable[[], float]:
    """ResNet-18, batch 32 of 64 by 64."""
    return residual(torch, "basic", [2, 2, 2, 2], 32, 64)


def cell60(torch: Any) -> Callable[[], float]:
    """60 steps of an LSTM cell of 64, written as a loop, batch 16."""
    cell, head = torch.nn.LSTMCell(32, 64), torch.nn.Linear(64, 10)
    x, y = normal(torch, 60, 16, 32), classes(torch, 10, 16)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)

    def step() -> float:
        h, c = torch.zeros(16, 64), torch.zeros(16, 64)
        for t in range(60):
            h, c = cell(x[t], (h, c))
        loss = torch.nn.functional.cross_entropy(head(h), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


PROGRAMS = {f.__name__: f for f in (mlp, transformer24, resnet50, deep_mlp, transformer6, resnet18, cell60)}
MEASURES = {
    "first": ("mlp", "transformer24", "resnet50"),
    "fusing": ("deep_mlp", "transformer24", "resnet50", "cell60"),
    "beside": ("deep_mlp", "transformer24", "resnet50"),
    "peak": ("transformer6", "resnet18"),
}


def first(library: Any, name: str) -> str:
    step = PROGRAMS[name](library)
    start, cpu = time.perf_counter(), time.process_time()
    step()
    return f"{1000 * (time.perf_counter() - start):.1f} {1000 * (time.process_time() - cpu):.1f}"


def fusing(library: Any, name: str) -> str:
    """CPU milliseconds that fusing takes the program, and its compiler's process."""
    from twofold.compiler import fusing as module

    spent, elsewhere = [], []
    fuse, call = module.fuse, module._process.call

    def timed(*given: Any) -> None:
        start = time.thread_time()
        fuse(*given)
        spent.append(time.thread_time() - start)

    def counted(function: Any, *given: Any, **options: Any) -> Any:
        found = call(function, *given, **options)
        if function is module.compiled and found is not None:
            elsewhere.append(found[1] / 1e6)
        return found

    module.fuse, module._process.call = timed, counted
    step = PROGRAMS[name](library)
    for _ in range(3):
        step()
    library.wait_for_compiler()
    return f"{1000 * sum(spent):.1f} {sum(elsewhere):.1f}"


def beside(library: Any, name: str) -> str:
    """Median wall milliseconds of a step before the compiler works, and while it does."""
    library._core.set_tier("unfused")
    step = PROGRAMS[name](library)

    def milliseconds() -> float:
        start = time.perf_counter()
        step()
        return 1000 * (time.perf_counter() - start)

    step()
    alone = [milliseconds() for _ in range(20)]
    library._core.set_tier("auto")
    fused = library.stats().fused
    milliseconds()
    both = []
    while library.stats().fused == fused or not both:
        both.append(milliseconds())
    return f"{statistics.median(alone):.1f} {statistics.median(both):.1f} {max(both):.1f} {len(both)}"


def peak(library: Any, name: str) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = PROGRAMS[name](library)
    for _ in range(10):
        step()
        if library.__name__ == "twofold":
            library.wait_for_compiler()
    return f"{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f}"


def measured(python: str, library: str, measure: str, name: str, **environment: str) -> list[float]:
    command = [python, __file__, "--run", library, "--measure", measure, "--only", name]
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=inherited | environment)
    return [float(part) for part in done.stdout.split()]


def medians(found: list[list[float]]) -> str:
    return " ".join(f"{statistics.median(part):8.1f}" for part in zip(*found, strict=True))


def report(measure: str, name: str, rounds: int, peer: str | None) -> None:
    own: dict[str, list[list[float]]] = {}
    other = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "warm") if measure in ("first", "fusing") else ("cold",):
                found = measured(sys.executable, "twofold", measure, name, TWOFOLD_CACHE_DIR=cache)
                own.setdefault(state, []).append(found)
            if measure == "peak":
                found = measured(sys.executable, "twofold", measure, name, TWOFOLD_TIER="unfused")
                own.setdefault("op by op", []).append(found)
        if peer and measure in ("first", "peak"):
            other.append(measured(peer, "torch", measure, name))
    parts = [f"{state} {medians(found)}" for state, found in own.items()]
    parts += [f"torch {medians(other)}"] if other else []
    print(f"{measure:8}{name:16}" + "   ".join(parts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=sorted(PROGRAMS))
    parser.add_argument("--measure", action="append", choices=sorted(MEASURES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer")
    parser.add_argument("--run", choices=("twofold", "torch"))
    options = parser.parse_args()
    if options.run:
        library = __import__(options.run)
        print(globals()[options.measure[0]](library, options.only[0]))
        return
    print(
        "first: wall and CPU ms of the first step; fusing: CPU ms here and in the compiler; beside: ms of a step\n"
        "alone, while the compiler works and at most then, and how many those were; peak: MB above the imports"
    )
    for measure in options.measure or MEASURES:
        for name in MEASURES[measure]:
            if not options.only or name in options.only:
                report(measure, name, options.rounds, options.peer)


if __name__ == "__main__":
    main()
