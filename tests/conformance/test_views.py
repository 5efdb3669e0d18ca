"""Random chains of views, copies and in-place operations, as PyTorch and NumPy have them."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from tests.conformance.view_programs import VIEWS, WRITES, overlaps

SETTINGS = settings(max_examples=200, deadline=None, derandomize=True)


def attempt(call: Any, *arguments: Any) -> Any:
    """What the call returns, or None where it raises."""
    try:
        return call(*arguments)
    except (RuntimeError, ValueError, IndexError):
        return None


def memory(array: Any) -> Any:
    """What owns the memory of an array."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


class Program:
    """Handles here and their counterparts, which go through the same calls."""

    def __init__(self, shape: tuple[int, ...], other: Any, by: int) -> None:
        count = int(numpy.prod(shape, dtype=int))
        self.ours = [twofold.arange(count, dtype=twofold.float32).reshape(shape).clone()]
        self.others = [other]
        self.by = by  # which of an entry's calls runs on the counterparts
        self.story: list[str] = []

    def step(self, data: Any) -> None:
        """One more call."""
        k = data.draw(st.integers(0, len(self.ours) - 1))
        x, y = self.ours[k], self.others[k]
        if data.draw(st.integers(0, 2)) == 0:
            if overlaps(tuple(x.shape), x.stride()):
                return
            write, number = data.draw(st.sampled_from(WRITES)), data.draw(st.integers(-3, 3))
            self.story.append(f"{write.__name__} h{k} {number}")
            write(x, number)
            write(y, number)
            return
        name = data.draw(st.sampled_from(sorted(VIEWS)))
        arguments = data.draw(VIEWS[name][0](tuple(x.shape)))
        if arguments is None:
            return
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        made, wanted = attempt(VIEWS[name][1], x, *arguments), attempt(VIEWS[name][self.by], y, *arguments)
        self.story.append(f"h{len(self.ours)} = h{k}.{name}{arguments}")
        assert (made is None) == (wanted is None), self.story
        if made is not None:
            self.ours.append(made)
            self.others.append(wanted)

    def compare(self) -> None:
        """All handles have the values of their counterparts."""
        for k, (x, y) in enumerate(zip(self.ours, self.others, strict=True)):
            assert tuple(x.shape) == tuple(y.shape), (self.story, k)
            assert x.tolist() == y.tolist(), (self.story, k)


@SETTINGS
@given(st.data())
def test_chains_are_those_of_numpy(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=3)))
    start = numpy.arange(numpy.prod(shape, dtype=int), dtype=numpy.float32).reshape(shape)
    program = Program(shape, start, 2)
    for _ in range(data.draw(st.integers(1, 8))):
        program.step(data)
        program.compare()
    for i, (x, y) in enumerate(zip(program.ours, program.others, strict=True)):
        if not y.size:
            continue
        pairs = [(a, b // 4) for a, b, size in zip(x.stride(), y.strides, y.shape) if size > 1]
        assert all(ours == theirs for ours, theirs in pairs), (program.story, i)
        assert x.is_contiguous() == y.flags.c_contiguous, (program.story, i)
        for z, other in zip(program.ours, program.others, strict=True):
            assert (z.untyped_storage() == x.untyped_storage()) == (memory(y) is memory(other)), program.story


@SETTINGS
@given(st.data())
def test_chains_are_those_of_pytorch(data: Any) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=3)))
    count = int(numpy.prod(shape, dtype=int))
    program = Program(shape, torch.arange(count, dtype=torch.float32).reshape(shape).clone(), 1)
    for _ in range(data.draw(st.integers(1, 8))):
        program.step(data)
        program.compare()
    for k, (x, y) in enumerate(zip(program.ours, program.others, strict=True)):
        layout = (y.stride(), y.storage_offset(), y.is_contiguous())
        assert (x.stride(), x.storage_offset(), x.is_contiguous()) == layout, (program.story, k)
        for z, other in zip(program.ours, program.others, strict=True):
            same = other.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
            if count:
                assert (z.untyped_storage() == x.untyped_storage()) == same, program.story
                assert (z.data_ptr() == x.data_ptr()) == (other.data_ptr() == y.data_ptr()), program.story
            assert z.is_set_to(x) == other.is_set_to(y) or not count, program.story
