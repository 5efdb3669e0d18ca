"""``twofold.stats``: one object that counts what the library did, and prints as tables."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import threading
from pathlib import Path

import twofold as torch
from twofold import _core
from twofold.cache import Cache
from twofold.config import config
from twofold.runtime.statistics import CacheStats, Stats

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "inside.md"

PROGRAM = """
import twofold as torch
x = torch.ones(5, 3)
for _ in range(3):
    (torch.erfinv(torch.tanh(x) * 0.1) * 2 + 1).sum().item()
    torch.wait_for_compiler()
found = torch.stats()
print(found.fused, found.kernels, found.kernels_compiled, found.prebuilt, found.disk_hits, found.disk_misses)
"""


def test_counts_follow_what_a_program_does() -> None:
    x = torch.ones(3, 1719)  # of no other test, as plans of bodies are kept for the process
    x.sum().item()
    torch.wait_for_compiler()  # for what other tests left to it
    before = torch.stats()
    for _ in range(4):
        (x * 2.0 + 1.0).sum().item()
    torch.wait_for_compiler()
    after = torch.stats()
    assert after.recorded - before.recorded == 12
    observed = after.predicted + after.looked_up - before.predicted - before.looked_up
    assert observed == 4
    assert after.predicted - before.predicted >= 2
    assert after.fused - before.fused == 1
    # planned, or found on disk where an earlier process has done so
    assert after.plans + after.plans_found > before.plans + before.plans_found
    assert after.caches["traces"].misses > before.caches["traces"].misses
    assert after.caches["traces"].hits > before.caches["traces"].hits


def test_memory_of_the_pool() -> None:
    before = torch.stats().pool_in_use
    kept = torch.zeros(1 << 18) + 1.0
    kept.numpy()
    after = torch.stats()
    assert after.pool_in_use - before >= 1 << 20
    assert after.pool_peak >= after.pool_in_use
    del kept


def test_every_count_of_the_core_is_in_it() -> None:
    found = torch.stats()
    numbers = dataclasses.asdict(found)
    for name, value in _core.statistics().items():
        if name in found.caches:
            continue
        name = {"predicted_flushes": "predicted", "other_flushes": "looked_up"}.get(name, name)
        assert numbers[name.removesuffix("_bytes")] >= 0, (name, value)
    assert {name for name, *_ in _core.caches()} <= set(found.caches)


def test_it_prints_every_field_and_every_cache() -> None:
    found = torch.stats()
    lines = str(found).splitlines()
    for field in dataclasses.fields(found):
        if field.name != "caches":
            assert any(re.match(rf"{field.name} +[\d,.]+$", line) for line in lines), field.name
    lines = lines[lines.index("") + 2 :]
    for name, numbers in found.caches.items():
        (line,) = [line for line in lines if line.startswith(name + "  ")]
        assert line.split()[-6:] == [f"{number:,}" for number in dataclasses.astuple(numbers)]
    assert len(lines) == len(found.caches)
    assert max(map(len, lines)) <= 110


def test_every_field_and_every_cache_is_documented() -> None:
    text = DOCUMENT.read_text()
    for field in dataclasses.fields(Stats):
        assert f"`{field.name}`" in text, field.name
        assert f"{field.name}: " in (Stats.__doc__ or ""), field.name
    for name in torch.stats().caches:
        if not name.startswith("of a test"):
            assert f"| `{name}` |" in text, name


def test_parts_make_one_budget() -> None:
    # a cache is there from its first use on, so the page counts
    table = re.findall(r"^\| `([a-z ]+)` \| (\d+) \|", DOCUMENT.read_text(), re.MULTILINE)
    parts = {name: int(part) for name, part in table}
    assert sum(parts.values()) - parts["kept results"] - parts["copies of shared memory"] <= 32
    with config.scoped(cache_bytes=1 << 24):
        for name, found in torch.stats().caches.items():
            if not name.startswith("of a") and name != "kernels of another jit":
                assert found.budget == (1 << 24) * parts[name] // 32, name


def test_disk_cache_and_compiled_kernels(tmp_path: Path) -> None:
    def run() -> list[str]:
        environment = {"TWOFOLD_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
        output = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout
        return output.split()

    fused, kernels, compiled, prebuilt, hits, misses = run()
    assert (fused, hits) == ("1", "0")
    assert compiled == misses
    assert int(kernels) == int(compiled) + int(prebuilt)
    assert int(compiled) >= 2
    assert run() == ["1", kernels, "0", prebuilt, compiled, "0"]


def test_a_cache_drops_what_was_used_least_recently() -> None:
    with config.scoped(cache_bytes=32 * 1000):
        cache: Cache[int] = Cache("of a test", 1, lambda key, value: 100)
        for k in range(10):
            cache.keep(k, k)
        assert cache.numbers() == (10, 1000, 1000, 0, 0, 0)
        assert cache.get(0) == 0
        cache.keep(10, 10)
        assert cache.get(0) == 0
        assert cache.get(10) == 10
        assert cache.get(1) is None
        found = CacheStats(*cache.numbers())
        assert found.bytes <= found.budget == 1000
        assert (found.count, found.evictions, found.hits, found.misses) == (7, 4, 3, 1)
        assert cache.keep(10, 77) == 10


class _SlowKey:
    """A key that is hashed and compared by Python, so that other threads run inside of a look-up."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number % 7

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SlowKey) and self.number == other.number


def test_threads_share_a_cache_whose_keys_are_compared_by_python() -> None:
    cache: Cache[int] = Cache("of a test of threads", 1, lambda key, value: 1)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for k in range(1500):
                key = _SlowKey((k * 37 + seed * 101) % 90)
                found = cache.get(key)
                if (cache.keep(key, key.number) if found is None else found) != key.number:
                    wrong.append(key.number)
                if k % 50 == 0:
                    cache.replace(key, key.number)
        except Exception as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with config.scoped(cache_bytes=32 * 60):
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
