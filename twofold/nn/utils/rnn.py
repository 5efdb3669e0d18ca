"""Sequences of unequal lengths: padded in one tensor, or packed step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.frontend.creation import tensor
from twofold.ops.base import FUNCTIONS
from twofold.runtime.tracing import message as _message

Tensor = _core.Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Steps of many sequences one after the other: all first steps, all second steps, and so on.

    ``batch_sizes`` says how many sequences have each step. Sequences lie by falling length;
    ``sorted_indices`` tells where each came from. Made by ``pack_padded_sequence`` and ``pack_sequence``.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """A packed sequence of given parts."""
        if batch_sizes is None:
            raise ValueError("PackedSequence: batch_sizes is missing. Use pack_padded_sequence to make one.")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> PackedSequence:
        """The same with ``data.to(...)``."""
        data = self.data.to(
            *args,
            dtype=dtype,
            device=device,
            non_blocking=non_blocking,
            copy=copy,
            memory_format=memory_format,
        )
        return self if data is self.data else type(self)(data, *self[1:])

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self.to(dtype="float64")

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self.to(dtype="float32")

    def half(self) -> PackedSequence:
        """The same in float16."""
        return self.to(dtype="float16")

    def long(self) -> PackedSequence:
        """The same in int64."""
        return self.to(dtype="int64")

    def int(self) -> PackedSequence:
        """The same in int32."""
        return self.to(dtype="int32")

    def short(self) -> PackedSequence:
        """The same in int16."""
        return self.to(dtype="int16")

    def char(self) -> PackedSequence:
        """The same in int8."""
        return self.to(dtype="int8")

    def byte(self) -> PackedSequence:
        """The same in uint8."""
        return self.to(dtype="uint8")

    def cuda(self, device: Any = "cuda", non_blocking: bool = False) -> PackedSequence:
        """Raises RuntimeError: there is no such device."""
        return self.to(device, non_blocking=non_blocking)

    def cpu(self) -> PackedSequence:
        """The same packed sequence."""
        return self

    def pin_memory(self) -> PackedSequence:
        """The same packed sequence."""
        return self

    @property
    def is_cuda(self) -> bool:
        """Always False."""
        return False

    def is_pinned(self) -> bool:
        """Always False."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one."""
    if permutation is None:
        return None
    order = permutation.numpy()
    inverse = numpy.empty_like(order)
    inverse[order] = numpy.arange(order.size)
    return tensor(inverse)


def _lengths(lengths: Any) -> numpy.ndarray:
    return numpy.asarray(lengths._read() if isinstance(lengths, Tensor) else lengths, numpy.int64)


def _checked(lengths: numpy.ndarray, batch: int, longest: int, enforce_sorted: bool) -> None:
    if lengths.ndim != 1 or lengths.size != batch:
        what = (
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} (batch_size={batch})"
        )
        raise RuntimeError(_message(what, "Give one length for each sequence."))
    if batch and lengths.min() <= 0:
        what = (
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
        raise RuntimeError(_message(what, "Leave empty sequences out."))
    if enforce_sorted and (numpy.diff(lengths) > 0).any():
        what = "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True"
        raise RuntimeError(_message(what, "Pass enforce_sorted=False."))
    if batch and lengths.max() > longest:
        what = f"a sequence of length {int(lengths.max())} in a tensor of {longest} steps"
        raise RuntimeError(_message(what, "Give lengths that fit."))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The first ``lengths[k]`` steps of each sequence of ``input`` ``(steps, batch, ...)``, packed.

    Without ``enforce_sorted`` the sequences may have any order. Raises RuntimeError for lengths that do not
    fit.

    >>> import twofold as torch
    >>> padded = torch.tensor([[1, 4], [2, 5], [3, 0]])
    >>> torch.nn.utils.rnn.pack_padded_sequence(padded, [3, 2]).data
    tensor([1, 4, 2, 5, 3])
    """
    counts = _lengths(lengths)
    axis = 0 if batch_first else 1
    _checked(counts, input.shape[axis], input.shape[1 - axis], enforce_sorted)
    sorted_indices = None
    if not enforce_sorted:
        order = numpy.argsort(-counts, kind="stable")
        sorted_indices = tensor(order)
        counts = counts[order]
        input = input.index_select(axis, sorted_indices)
    steps, batch = input.shape[1 - axis], input.shape[axis]
    sizes = (counts[None, :] > numpy.arange(counts.max(initial=0))[:, None]).sum(1)
    step = numpy.repeat(numpy.arange(sizes.size), sizes)
    position = numpy.arange(step.size) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)
    flat = input.reshape((steps * batch, *input.shape[2:]))
    rows = position * steps + step if batch_first else step * batch + position
    return PackedSequence(flat.index_select(0, tensor(rows)), tensor(sizes), sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences padded to one length ``(steps, batch, ...)``, and their lengths.

    Raises ValueError for a ``total_length`` below the longest sequence.

    >>> import twofold as torch
    >>> rnn = torch.nn.utils.rnn
    >>> packed = rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    sizes = sequence.batch_sizes.numpy()
    longest = sizes.size
    if total_length is not None and total_length < longest:
        raise ValueError(
            f"Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    steps, batch = total_length or longest, int(sizes[0])
    lengths = (sizes[:, None] > numpy.arange(batch)[None, :]).sum(0)
    data, order = sequence.data, numpy.arange(batch)
    if sequence.unsorted_indices is not None:
        order = sequence.unsorted_indices.numpy()
    # the row after all others holds the padding
    starts = numpy.cumsum(sizes) - sizes
    rows = numpy.full((steps, batch), data.shape[0])
    for t in range(longest):
        rows[t, : sizes[t]] = starts[t] + numpy.arange(sizes[t])
    rows = rows[:, order]
    rows = rows.T if batch_first else rows
    filler = FUNCTIONS["full"]((1, *data.shape[1:]), padding_value, dtype=data.dtype)
    padded = FUNCTIONS["cat"]([data, filler]).index_select(0, tensor(rows.reshape(-1)))
    return padded.reshape((*rows.shape, *data.shape[1:])), tensor(lengths[order])


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors of unequal first size in one tensor ``(longest, batch, ...)``, padded.

    Raises RuntimeError for a ``padding_side`` other than ``"right"`` and ``"left"``.

    >>> import twofold as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"padding_side {padding_side!r}. Use 'right' or 'left'.")
    given = list(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences. Give at least one tensor.")
    longest = max(one.shape[0] for one in given)
    padded = []
    for one in given:
        missing = longest - one.shape[0]
        ends = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(
            FUNCTIONS["pad"](one, (0, 0) * (one.ndim - 1) + ends, value=padding_value) if missing else one
        )
    return FUNCTIONS["stack"](padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each with its own length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [one[:length] for one, length in zip(padded_sequences, _lengths(lengths).tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors of unequal first size, packed; see ``pack_padded_sequence``."""
    lengths = [one.shape[0] for one in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that ``pack_sequence`` packed."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
