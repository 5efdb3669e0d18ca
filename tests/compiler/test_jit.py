"""The jit and its cache on disk: damage, races and missing permissions cost time, never correctness."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy
import pytest

from twofold import _core, dtypes
from twofold.compiler import jit as jit_module
from twofold.compiler.disk_cache import DiskCache
from twofold.compiler.jit import Jit, key_of_text
from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.values import SHARED
from twofold.config import config

ROOT = Path(jit_module.__file__).parents[2]
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def kernel(number: int, name: str = "kernel") -> str:
    """A kernel that computes fmod(exp(x), 2) + number, so it has constants and calls the C library."""
    b = Builder(name)
    with b.loop(b.begin, b.end, 16) as i:
        x = b.math("exp", b.load(b.input(0), i, dtypes.float32, 16))
        b.store(b.buffer(1), i, b.add(b.fmod(x, 2.0), float(number)))
    return b.finish()


def calling(number: int) -> str:
    """A kernel that multiplies by ``number`` what a function makes that others call, too."""
    b = Builder("kernel")
    with b.loop(b.begin, b.end, 16) as i:
        b.store(b.buffer(1), i, b.mul(b.load(b.buffer(1), i, dtypes.float32, 16), float(number)))
    declaration = "declare i64 @shared(ptr, ptr, i64, i64)\n"
    call = "  call i64 @shared(ptr %buffers, ptr %params, i64 %begin, i64 %end)\n"
    text = b.finish().replace("start:\n", "start:\n" + call)
    return declaration + text + SHARED + kernel(0, "shared")


def check(address: int, number: int) -> None:
    """Run a kernel and compare."""
    x = numpy.linspace(-3, 3, 32, dtype=numpy.float32)
    out = numpy.zeros(32, numpy.float32)
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
    assert SIGNATURE(address)(ctypes.addressof(buffers), None, 0, 32) == 0
    numpy.testing.assert_allclose(out, numpy.fmod(numpy.exp(x), 2) + number, rtol=1e-5)


def texts(count: int) -> dict[str, str]:
    return {f"n{k}": kernel(k) for k in range(count)}


def check_all(found: dict[str, int], count: int) -> None:
    assert list(found) == [f"n{k}" for k in range(count)]
    for k in range(count):
        check(found[f"n{k}"], k)


def check_calling(address: int, number: int) -> None:
    x = numpy.linspace(-3, 3, 32, dtype=numpy.float32)
    out = numpy.zeros(32, numpy.float32)
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
    assert SIGNATURE(address)(ctypes.addressof(buffers), None, 0, 32) == 0
    numpy.testing.assert_allclose(out, numpy.fmod(numpy.exp(x), 2) * number, rtol=1e-5)


@pytest.mark.parametrize("loads", [True, False])
def test_what_several_kernels_call_is_compiled_once(
    tmp_path: Path, loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not loads:  # LLVM links what the small loader does not
        monkeypatch.setattr(_core, "LoadedObject", refuse)
    first = Jit(tmp_path)
    found = first.compile_kernels({"two": calling(2)})
    assert first.compiled == 2
    found |= first.compile_kernels({"three": calling(3)})
    assert first.compiled == 3
    check_calling(found["two"], 2)
    check_calling(found["three"], 3)
    code = weakref.ref(found["two"]._code)
    second = Jit(tmp_path)
    found = second.compile_kernels({"two": calling(2), "three": calling(3)})
    assert second.compiled == 0
    check_calling(found["two"], 2)
    check_calling(found["three"], 3)
    del first, second, found
    gc.collect()
    assert code() is None


def refuse(*_: object) -> None:
    raise RuntimeError("no loader for this machine")


def test_kernels_whose_function_is_gone_from_the_disk_are_compiled_again(tmp_path: Path) -> None:
    Jit(tmp_path).compile_kernels({"two": calling(2)})
    jit = Jit(tmp_path)
    jit.disk.delete(jit._file(key_of_text(kernel(0))))
    check_calling(jit.compile_kernels({"two": calling(2)})["two"], 2)
    assert jit.compiled == 2


def test_second_process_loads_without_compiling(tmp_path: Path) -> None:
    first = Jit(tmp_path)
    check_all(first.compile_kernels(texts(3)), 3)
    assert first.compiled == 3
    second = Jit(tmp_path)
    check_all(second.cached_only(texts(3)), 3)
    check_all(second.compile_kernels(texts(3)), 3)
    assert second.compiled == 0


def test_equal_kernels_are_compiled_once_whatever_their_name(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    found = jit.compile_kernels({"a": kernel(1, "one"), "b": kernel(1, "two")})
    assert found["a"] == found["b"] and jit.compiled == 1


def test_cached_only_compiles_nothing(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    assert jit.cached_only(texts(2)) == {}
    jit.compile_kernels({"n1": kernel(1)})
    assert list(jit.cached_only(texts(2))) == ["n1"]
    assert jit.compiled == 1


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "delete", "foreign"])
@pytest.mark.parametrize("kind", ["index", "object"])
def test_damaged_files_are_replaced(tmp_path: Path, kind: str, damage: str) -> None:
    Jit(tmp_path).compile_kernels(texts(2))
    files = [p for p in tmp_path.iterdir() if (p.stat().st_size > 200) == (kind == "object")]
    assert files
    for path in files:
        content = bytearray(path.read_bytes())
        if damage == "flip":
            content[-5] ^= 4
        replacement = {"truncate": content[:-7], "flip": content, "empty": b"", "foreign": b"GIF89a" * 20}
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes(replacement[damage])
    again = Jit(tmp_path)
    check_all(again.compile_kernels(texts(2)), 2)
    assert again.compiled == 2
    third = Jit(tmp_path)
    check_all(third.compile_kernels(texts(2)), 2)
    assert third.compiled == 0


def test_object_with_a_right_checksum_but_wrong_content_is_recompiled(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    jit.compile_kernels(texts(1))
    object_path = max(tmp_path.iterdir(), key=lambda p: p.stat().st_size)
    payload = jit.disk.read(object_path.name)
    assert payload is not None
    jit.disk.write(object_path.name, payload[: len(payload) // 2])
    again = Jit(tmp_path)
    check_all(again.compile_kernels(texts(1)), 1)
    assert again.compiled == 1


def test_unusable_directory_means_no_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    for directory in (blocked, blocked / "below"):
        jit = Jit(directory)
        check_all(jit.compile_kernels(texts(2)), 2)
    assert blocked.read_text() == "not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_unwritable_directory_means_no_cache(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    check_all(Jit(tmp_path).compile_kernels(texts(2)), 2)
    tmp_path.chmod(0o700)
    assert not list(tmp_path.iterdir())


def test_old_files_make_room(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=10 * 4096)
    for k in range(20):
        cache.write(f"{k:02}", b"x")
        os.utime(tmp_path / f"{k:02}", (1000 + k, 1000 + k))
    (tmp_path / ".twofold-0-ab").write_bytes(b"left by a crash")
    DiskCache(tmp_path, limit=10 * 4096).write("new", b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{k}" for k in range(13, 20)] + ["new"]


def test_processes_share_one_directory(tmp_path: Path) -> None:
    program = (
        "import sys, ctypes\n"
        "from twofold.compiler.jit import compile_kernels\n"
        "exec(open(sys.argv[1]).read())\n"
        "check_all(compile_kernels(texts(4)), 4)\n"
    )
    environment = {**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, __file__]
    running = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    warm = Jit(tmp_path / "cache")
    check_all(warm.compile_kernels(texts(4)), 4)
    assert warm.compiled == 0
    assert not [p for p in (tmp_path / "cache").iterdir() if p.name.startswith(".twofold-")]


def test_warm_start_does_not_import_the_code_generator(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from twofold.compiler.jit import compile_kernels\n"
        "from twofold.compiler.lower.builder import Builder\n"
        "compile_kernels({'k': Builder().finish()})\n"
        "print('llvmlite' in sys.modules)\n"
    )
    environment = {**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    assert [run.stdout.strip() for run in outputs] == ["True", "False"]


def test_threads_compile_at_the_same_time(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    results: list[dict[str, int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(jit.compile_kernels(texts(5)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(found == results[0] for found in results)
    assert jit.compiled == 5
    check_all(results[0], 5)


def test_an_interrupted_compile_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jit = Jit(tmp_path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jit, "_load", interrupt)
        with pytest.raises(KeyboardInterrupt):
            jit.compile_kernels(texts(2))
    assert jit.cached_only(texts(2)) == {}
    check_all(jit.compile_kernels(texts(2)), 2)


def test_a_forked_child_can_compile_while_the_parent_did(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    jit_module._Shared.jit, before = jit, jit_module._Shared.jit
    try:
        with jit._load_lock:
            child = os.fork()
            if child == 0:
                os._exit(0 if jit_module.cached_only(texts(1)) == {} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        jit_module._Shared.jit = before


def test_bad_text_is_an_error_not_a_crash(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    text = kernel(0)
    with pytest.raises(RuntimeError):
        jit.compile_kernels({"bad": text.replace("fadd", "nonsense")})
    with pytest.raises(RuntimeError):
        jit.compile_kernels({"bad": text.replace("  ret i64 0", "  ret i64 %nothing")})
    with pytest.raises(ValueError, match="define"):
        jit.compile_kernels({"bad": "not a module"})
    check_all(jit.compile_kernels(texts(1)), 1)


def test_linker_of_llvm_gives_the_same_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "LoadedObject", refuse)
    check_all(Jit(tmp_path).compile_kernels(texts(2)), 2)
    second = Jit(tmp_path)
    check_all(second.compile_kernels(texts(2)), 2)
    assert second.compiled == 0


@pytest.mark.skipif(not _core.host_cpu_identity().startswith("x86-64"), reason="the loader knows x86-64 only")
def test_loader_refuses_damaged_objects(tmp_path: Path) -> None:
    jit = Jit(tmp_path)
    jit.compile_kernels(texts(1))
    payloads = [jit.disk.read(p.name) or b"" for p in tmp_path.iterdir()]
    image = max(payloads, key=len).split(b"\n", 2)[2]
    _core.LoadedObject(image)
    generator = numpy.random.default_rng(0)
    refused = 0
    for turn in range(3000):
        damaged = bytearray(image)
        if turn % 2:
            for _ in range(int(generator.integers(1, 8))):
                damaged[int(generator.integers(len(image)))] = int(generator.integers(256))
        else:
            del damaged[int(generator.integers(len(image))) :]
        try:
            _core.LoadedObject(bytes(damaged))
        except RuntimeError:
            refused += 1
    assert refused > 1400


def test_code_is_unmapped_with_its_last_kernel(tmp_path: Path) -> None:
    with config.scoped(cache_bytes=0):
        jit = Jit(tmp_path)
        kept = jit.compile_kernels(texts(2))
        code = weakref.ref(kept["n0"]._code)
        jit.compile_kernels({"n2": kernel(2)})  # the cache has room for one only
        assert jit.counts().known == 1
        check_all(kept, 2)
        del kept["n0"]
        gc.collect()
        assert code() is not None  # both are one object
        del kept["n1"]
        gc.collect()
        assert code() is None
        check_all(jit.compile_kernels(texts(3)), 3)
        assert jit.compiled == 3


def test_a_program_keeps_its_code_mapped(tmp_path: Path) -> None:
    with config.scoped(cache_bytes=0):
        jit = Jit(tmp_path)
        made = jit.compile_kernels({"n1": kernel(1)})["n1"]
        code = weakref.ref(made._code)
        program = _core.Program([(made, (), (), 1, 1, 0, None)], [], [], True, None, 0, [])
        del made
        jit.compile_kernels({"n2": kernel(2)})
        gc.collect()
        assert code() is not None
        del program
        gc.collect()
        assert code() is None
