"""Machine code that comes with the package: found by text, and enough for the first step of a common program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler.test_jit import check, texts
from twofold import _core
from twofold.compiler.disk_cache import Archive, archive_of, write_archive
from twofold.compiler.jit import Jit, key_of_text

PROGRAM = """
import sys
import twofold as torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(11, 40), torch.nn.ReLU(), torch.nn.Linear(40, 7))
optimizer = torch.optim.Adam(net.parameters(), 0.1)
x = torch.arange(9 * 11).reshape(9, 11) / 50.0
losses = []
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(net(x), torch.arange(9) % 7)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if len(losses) == 1:
        found = torch.stats()
        print(found.prebuilt > 10, "llvmlite" in sys.modules, found.plans_found > found.plans)
print(*[number.hex() for number in (*losses, *(p.sum().item() for p in net.parameters()))])
"""


def archived(tmp_path: Path, count: int) -> Archive:
    """An archive of the first kernels of ``texts``."""
    jit = Jit(tmp_path / "built")
    jit.made = []
    for text in texts(count).values():
        jit.compile_kernels({"one": text})
    objects = {payload.split(b"\n", 1)[0].decode(): payload for payload in jit.made}
    assert list(objects) == [key_of_text(text) for text in texts(count).values()]
    write_archive(str(tmp_path / "archive"), [([key], payload) for key, payload in objects.items()])
    return Archive(str(tmp_path / "archive"))


def test_what_an_archive_holds_is_not_compiled(tmp_path: Path) -> None:
    jit = Jit(tmp_path / "cache", archive=archived(tmp_path, 2))
    found = jit.compile_kernels(texts(3))
    for number in range(3):
        check(found[f"n{number}"], number)
    counts = jit.counts()
    assert (counts.prebuilt, counts.compiled, counts.disk_misses) == (2, 1, 1)
    assert len(jit.disk.keys()) == 2  # the object of the third kernel, and its index


def test_other_processors_have_their_own_archive(tmp_path: Path) -> None:
    assert archive_of("another processor") is None
    (tmp_path / "archive").write_bytes(b"something else")
    with pytest.raises(ValueError, match="holds no kernels"):
        Archive(str(tmp_path / "archive"))


DAMAGES = {
    "empty": lambda content: b"",
    "cut in the header": lambda content: content[:12],
    "cut in the table": lambda content: content[:40],
    "cut in an object": lambda content: content[:-100],
    "random": lambda content: bytes(range(256)) * 9,
    "a large count": lambda content: content[:8] + b"\xff" * 8 + content[16:],
    "another place": lambda content: content[:50] + b"\xff" * 4 + content[54:],
    "flipped": lambda content: content[:-200] + bytes(255 - byte for byte in content[-200:]),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    archived(tmp_path, 1)
    file = tmp_path / "archive"
    file.write_bytes(DAMAGES[name](file.read_bytes()))
    monkeypatch.setattr("twofold.compiler.disk_cache.archive_path", lambda level: str(file))
    jit = Jit(tmp_path / "cache", archive=archive_of("any"))
    check(jit.compile_kernels(texts(1))["n0"], 0)
    assert (jit.counts().prebuilt, jit.counts().compiled) == (0, 1)


def test_an_object_that_does_not_load_is_compiled(tmp_path: Path) -> None:
    key = key_of_text(texts(1)["n0"])
    payloads = [b"no object", b"%s\n\nno code" % key.encode(), b"%s\n%s\n" % (key.encode(), b"00" * 32)]
    for number, payload in enumerate(payloads):
        write_archive(str(tmp_path / "archive"), [([key], payload)])
        jit = Jit(tmp_path / f"cache{number}", archive=Archive(str(tmp_path / "archive")))
        check(jit.compile_kernels(texts(1))["n0"], 0)
        assert (jit.counts().prebuilt, jit.counts().compiled) == (0, 1)


def run(tmp_path: Path, **settings: str) -> list[str]:
    environment = (
        os.environ | {"TWOFOLD_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)} | settings
    )
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(not _core.processor_level(), reason="no code is compiled ahead for this processor")
def test_the_first_step_of_a_common_program_compiles_nothing_and_has_the_same_bits(tmp_path: Path) -> None:
    first, bits = run(tmp_path / "archive")
    assert first.startswith("True False")
    without, same = run(tmp_path / "none", TWOFOLD_TARGET_CPU=_core.processor_level())
    assert without == "False True False"
    assert bits == same


@pytest.mark.skipif(_core.processor_level() != "x86-64-v4", reason="the processor has one level")
def test_code_for_lower_levels_has_the_same_bits(tmp_path: Path) -> None:
    assert run(tmp_path / "lower", TWOFOLD_TARGET_CPU="x86-64-v3")[1] == run(tmp_path / "own")[1]
