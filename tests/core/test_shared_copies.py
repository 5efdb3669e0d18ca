"""Memory that NumPy shares is copied for what is recorded; the copy is kept while nobody has written to the memory."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import twofold as torch

COUNT = 1 << 17  # numbers: 512 KB
PAGE = mmap.PAGESIZE // 4


def kept() -> int:
    return torch.stats().caches["copies of shared memory"].count


def kept_bytes() -> int:
    return torch.stats().caches["copies of shared memory"].bytes


def is_read_as_it_is(array: numpy.ndarray, tensor: torch.Tensor) -> bool:
    return numpy.array_equal((tensor * 2).numpy(), array * 2)


def warmed(array: numpy.ndarray) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    assert all(is_read_as_it_is(array, tensor) for _ in range(4))
    return tensor


@pytest.mark.parametrize("where", [0, 1, PAGE, COUNT // 2, COUNT - PAGE, COUNT - 1])
@pytest.mark.parametrize("start", [0, 3])
def test_one_number_that_is_written_is_seen(start: int, where: int) -> None:
    array = numpy.arange(COUNT + start, dtype=numpy.float32)[start:]
    tensor = warmed(array)
    for step in range(12):
        array[where] = -step
        assert is_read_as_it_is(array, tensor)
        assert is_read_as_it_is(array, tensor)


def by_file(array: numpy.ndarray, path: Path) -> None:
    path.write_bytes(os.urandom(1000) * 200)
    with path.open("rb", buffering=0) as file:
        file.readinto(array.data.cast("B")[70_000:200_000])


def by_socket(array: numpy.ndarray, path: Path) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"\x01" * 4096)
        right.recv_into(array.data.cast("B")[300_000:], 4096)


def by_thread(array: numpy.ndarray, path: Path) -> None:
    thread = threading.Thread(target=array.__setitem__, args=(slice(5000, 6000), 7.0))
    thread.start()
    thread.join()


def by_view(array: numpy.ndarray, path: Path) -> None:
    array.view(numpy.uint8)[400_001:].reshape(-1)[3] ^= 1


@pytest.mark.parametrize("write", [by_file, by_socket, by_thread, by_view])
def test_writes_of_the_system_and_of_threads_are_seen(
    write: Callable[[numpy.ndarray, Path], None], tmp_path: Path
) -> None:
    array = numpy.ones(COUNT, numpy.float32)
    tensor = warmed(array)
    before = array.tobytes()
    write(array, tmp_path / "bytes")
    assert array.tobytes() != before
    numpy.testing.assert_array_equal((tensor * 2).numpy(), array * 2)


def test_two_tensors_of_one_array_both_see_a_write() -> None:
    array = numpy.ones(COUNT, numpy.float32)
    whole, part = warmed(array), warmed(array[PAGE * 4 :])
    for step in range(8):
        array[PAGE * 20 + step] = step
        first, second = (whole, part) if step % 2 else (part, whole)
        for tensor in (first, second, first):
            of = array if tensor is whole else array[PAGE * 4 :]
            assert is_read_as_it_is(of, tensor)


def test_a_write_between_two_calls_is_seen_by_the_second() -> None:
    array = numpy.ones(COUNT, numpy.float32)
    tensor = warmed(array)
    before = tensor * 2
    array[COUNT // 3] = 5
    after = tensor * 2
    assert (before.sum().item(), after.sum().item()) == (2 * COUNT, 2 * COUNT + 8)


def test_memory_that_another_process_writes_to_is_copied_anew() -> None:
    shared = mmap.mmap(-1, COUNT * 4)
    array = numpy.frombuffer(shared, numpy.float32)
    array[:] = 1
    tensor = warmed(array)
    child = os.fork()
    if child == 0:
        array[COUNT // 2] = 9
        os._exit(0)
    os.waitpid(child, 0)
    assert array[COUNT // 2] == 9
    assert is_read_as_it_is(array, tensor)


def test_a_forked_process_sees_its_own_writes() -> None:
    array = numpy.ones(COUNT, numpy.float32)
    tensor = warmed(array)
    child = os.fork()
    if child == 0:
        seen = is_read_as_it_is(array, tensor)
        for step in range(6):
            array[COUNT // 2 + step] = 9
            seen = seen and is_read_as_it_is(array, tensor)
        os._exit(0 if seen else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_read_as_it_is(array, tensor)


def test_pages_that_a_program_drops_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(numpy.ones(COUNT, numpy.float32).tobytes())
    array = numpy.memmap(path, numpy.float32, mode="c")  # each page becomes private when it is written to
    array[:] = 2
    tensor = warmed(array)
    array._mmap.madvise(mmap.MADV_DONTNEED)  # the pages hold what is in the file again
    assert is_read_as_it_is(array, tensor)
    assert (array == 1).all()
    array[5] = 3
    assert is_read_as_it_is(array, tensor)


def test_files_that_a_forked_process_opens_stay_open() -> None:
    array = numpy.ones(COUNT, numpy.float32)
    tensor = warmed(array)
    child = os.fork()
    if child == 0:  # a daemon closes all files that it was given
        os.closerange(3, 256)
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(40)]
        seen = all(is_read_as_it_is(array, tensor) for _ in range(4))
        for file in opened:
            try:
                os.close(file)
            except OSError:
                seen = False
        os._exit(0 if seen else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_result_that_is_written_to_leaves_the_copy_alone() -> None:
    array = numpy.ones(COUNT, numpy.float32)
    tensor = warmed(array)
    for made in (tensor + 0, tensor * 1, tensor.clone(), tensor.reshape(2, -1).contiguous().reshape(-1) + 0):
        made.numpy()[7] = 3
        made.mul_(5)
        assert is_read_as_it_is(array, tensor)


def test_copies_end_with_their_memory() -> None:
    before = kept()
    array = numpy.ones(COUNT, numpy.float32)
    tensor = warmed(array)
    assert kept() == before + 1
    del tensor
    assert kept() == before


def test_memory_is_copied_once_where_the_system_tells() -> None:
    array = numpy.ones(1 << 20, numpy.float32)
    tensor = torch.from_numpy(array)
    before = kept_bytes()
    for _ in range(3):
        (tensor * 2).sum().item()
    if kept_bytes() - before < array.nbytes:
        pytest.skip("this system does not tell which pages were written to")
    held = torch.stats().pool_in_use
    for _ in range(20):
        (tensor * 2).sum().item()
    assert torch.stats().pool_in_use == held
    for step in range(40):  # whoever writes each time has the pages left alone
        array[:] = step
        assert (tensor * 2).sum().item() == 2 * step * array.size
    assert kept_bytes() - before < array.nbytes
