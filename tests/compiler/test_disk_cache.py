"""The cache on disk trusts nobody: what others may have written, and what is damaged, is a miss."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import twofold
from twofold.compiler.disk_cache import DiskCache
from twofold.files import atomic_write

ROOT = Path(twofold.__file__).parents[1]

PROGRAM = """
import twofold as torch
torch.set_num_threads(1)
x = torch.linspace(-2, 2, 40)
for _ in range(3):
    y = (torch.exp(x) * x + 1).sum()
    value = y.item()
torch.wait_for_compiler()
print((torch.exp(x) * x + 1).sum().item().hex(), torch.matmul(x.reshape(4, 10), x.reshape(10, 4)).sum().item().hex())
"""


def run(directory: Path) -> str:
    environment = {**os.environ, "TWOFOLD_CACHE_DIR": str(directory)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done.stdout


def test_files_that_others_may_write_are_refused(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    for mode in (0o620, 0o602, 0o666):
        cache.write("key", b"code")
        assert cache.read("key") == b"code"
        (tmp_path / "key").chmod(mode)
        assert cache.read("key") is None
    cache.write("key", b"code")
    assert cache.read("key") == b"code"


def test_directory_and_files_are_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskCache(tmp_path / "cache").write("key", b"code")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "cache" / "key").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_files_of_others_are_refused(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.write("key", b"code")
    os.chown(tmp_path / "key", 12345, -1)
    assert cache.read("key") is None


def test_a_payload_counts_only_under_its_own_name(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.write("addition", b"machine code that adds")
    os.rename(tmp_path / "addition", tmp_path / "division")
    assert cache.read("division") is None


def test_links_pipes_and_directories_are_misses(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.write("key", b"code")
    os.rename(tmp_path / "cache" / "key", tmp_path / "elsewhere")
    (tmp_path / "cache" / "key").symlink_to(tmp_path / "elsewhere")
    assert cache.read("key") is None
    os.mkfifo(tmp_path / "cache" / "pipe")  # opened in the ordinary way it would block for ever
    assert cache.read("pipe") is None
    (tmp_path / "cache" / "folder").mkdir()
    assert cache.read("folder") is None


def test_writing_replaces_a_planted_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    cache = DiskCache(tmp_path / "cache")
    cache.write("other", b"code")
    (tmp_path / "cache" / "key").symlink_to(victim)
    cache.write("key", b"code")
    assert victim.read_bytes() == b"precious" and cache.read("key") == b"code"


def test_what_killed_writers_left_goes(tmp_path: Path) -> None:
    (tmp_path / ".twofold-00000000-0011223344556677").write_bytes(b"left")
    DiskCache(tmp_path).write("key", b"code")
    assert os.listdir(tmp_path) == ["key"]


def test_what_is_being_written_is_neither_checked_nor_deleted(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    with atomic_write(tmp_path / "key", private=True) as file:
        file.write(b"the first half, ")
        assert (cache.keys(), cache.verify(), cache.clear()) == ([], [], 0)
        file.write(b"the second")
    assert (tmp_path / "key").read_bytes() == b"the first half, the second"


def test_the_cache_stays_below_its_limit(tmp_path: Path) -> None:
    caches = [DiskCache(tmp_path, limit=4 << 20) for _ in range(3)]  # as of three processes
    for k in range(1500):
        caches[k % 3].write(f"key{k}", bytes(5000))
        if k % 100 == 0:
            taken = sum(8192 for _ in os.scandir(tmp_path))
            assert taken <= 5 << 20, k
    assert caches[0].read("key1499") and caches[0].read("key0") is None


def test_the_whole_cache_is_looked_at_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    shrink = DiskCache._shrink
    monkeypatch.setattr(DiskCache, "_shrink", lambda self: looks.append(1) or shrink(self))
    cache = DiskCache(tmp_path)
    for k in range(1000):
        cache.write(f"key{k}", b"code")
    assert len(looks) == 1


def test_an_index_that_names_anything_but_an_object_is_a_miss(tmp_path: Path) -> None:
    from twofold.compiler.jit import Jit, key_of_text
    from twofold.compiler.lower.builder import Builder

    text = {"nothing": Builder().finish()}
    first = Jit(tmp_path / "cache")
    first.compile_kernels(text)
    index = first._file(key_of_text(text["nothing"]))
    (tmp_path / "outside").write_bytes(b"no code")
    for content in (b"\xff\xfe not text", b"../outside", b"a" * 300, b"nul\0inside", b"", index.encode()):
        first.disk.write(index, content)
        again = Jit(tmp_path / "cache")
        assert again.compile_kernels(text) and again.compiled == 1


def test_any_damage_is_a_miss_and_never_a_crash(tmp_path: Path) -> None:
    fresh, damaged = tmp_path / "fresh", tmp_path / "damaged"
    expected = run(fresh)
    draw = random.Random(5)
    for attempt in range(6):
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(fresh, damaged)
        for path in damaged.iterdir():
            content = bytearray(path.read_bytes())
            kind = draw.randrange(4)
            if kind == 0:
                content = content[: draw.randrange(len(content))]
            elif kind == 1:
                for _ in range(draw.randrange(1, 20)):
                    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            elif kind == 2:
                content += draw.randbytes(draw.randrange(1, 100))
            if attempt == 5:  # everything exchanged
                content = bytearray(draw.choice(list(fresh.iterdir())).read_bytes())
            path.write_bytes(content)
        assert run(damaged) == expected


def test_two_processes_fill_one_directory(tmp_path: Path) -> None:
    environment = {**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path / "shared")}
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = {process.communicate(timeout=300)[0] for process in running}
    assert len(outputs) == 1 and not any(process.returncode for process in running)
    cache = DiskCache(tmp_path / "shared")
    names = os.listdir(tmp_path / "shared")
    assert names and all(cache.read(name) is not None for name in names)


def test_many_files_are_seldom_looked_at_and_stay_below_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    shrink = DiskCache._shrink
    monkeypatch.setattr(DiskCache, "_shrink", lambda self: looks.append(self) or shrink(self))
    limit, block = 12 << 20, 4096
    for k in range(1100):
        (tmp_path / f"earlier{k}").write_bytes(b"x")
    for k in range(4000):  # each as of a process of its own
        DiskCache(tmp_path, limit).write(f"key{k}", b"x")
        if k == 150:
            assert len(looks) < 30, "most write without a look at all files"
        if k % 200 == 0:
            assert len(os.listdir(tmp_path)) * block < 2 * limit
    assert looks
