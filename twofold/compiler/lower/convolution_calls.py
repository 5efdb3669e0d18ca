"""Calls of the kernels of convolutions: their buffers, and their numbers in the order in which kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from twofold.compiler.lower.gemm import Epilogue, KernelCall, known_text

Text = tuple[Any, Callable[[], str]]
"""The key of a kernel's source, and what makes the source."""


class After(NamedTuple):
    """What becomes of the sums: the epilogue of the kernel, and its numbers."""

    epilogue: Epilogue | None
    params: Sequence[int]

    @property
    def streams(self) -> int:
        """How many values are read or written for each sum."""
        return 1 if self.epilogue is None else self.epilogue.streams

    def call(
        self,
        names: Sequence[str],
        numbers: Mapping[str, int],
        text: Text,
        work: int,
        grain: int,
        weight: str = "b",
    ) -> KernelCall:
        """The call that multiplies images "a" with the kernels in ``weight``.

        Args:
            names: The names of the run-time numbers that the kernel reads.
            numbers: These numbers.
            text: The kernel's source.
            work: The number of work items.
            grain: How many of them one thread takes at least.
            weight: The buffer of the kernels.
        """
        roles = tuple(f"epilogue{i}" for i in range(0 if self.epilogue is None else self.epilogue.buffers))
        buffers = (*roles, "a", weight, *(() if self.epilogue else ("c",)))
        key, made = known_text(*text)
        params = (*self.params, *(numbers[name] for name in names))
        return KernelCall(key, "convolution", made, buffers, params, work, grain)


def weight_call(
    names: Sequence[str],
    numbers: Mapping[str, int],
    text: Text,
    work: int,
    grain: int,
    accumulates: bool,
    read: Sequence[str] = (),
) -> KernelCall:
    """The call that sums images "a" times results "b" over all positions; it also reads the buffers ``read``.

    The rest is as in `After.call`; where it ``accumulates``, the sums begin with "start".
    """
    buffers = ("a", "b", *(("start",) if accumulates else ()), "c", *read)
    key, made = known_text(*text)
    params = tuple(numbers[name] for name in names)
    return KernelCall(key, "convolution_weight", made, buffers, params, work, grain)
