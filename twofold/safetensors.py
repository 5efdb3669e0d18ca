"""Files in the safetensors format, which hold named tensors and nothing that could run.

The names are those of the package ``safetensors.torch``; either reads the other's files. The format: eight bytes with
the length of a header, the header in JSON (name, dtype, shape and offsets of each tensor), and the elements in
row-major order, little-endian, without gaps.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType
from twofold.errors import ArgumentError
from twofold.files import atomic_write
from twofold.frontend.creation import check_device
from twofold.nn.module import Module

Tensor = _core.Tensor

_NAMES = {
    dtypes.bool_: "BOOL",
    dtypes.uint8: "U8",
    dtypes.int8: "I8",
    dtypes.uint16: "U16",
    dtypes.int16: "I16",
    dtypes.float16: "F16",
    dtypes.bfloat16: "BF16",
    dtypes.uint32: "U32",
    dtypes.int32: "I32",
    dtypes.float32: "F32",
    dtypes.complex64: "C64",
    dtypes.uint64: "U64",
    dtypes.int64: "I64",
    dtypes.float64: "F64",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_METADATA = "__metadata__"
_LENGTH = 8
_LONGEST_HEADER = 100_000_000


class SafetensorError(Exception):
    """A file is not in the safetensors format, or does not hold what was asked for."""


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[bytes, list[Tensor]]:
    """The header, and the tensors in the order of the file: wide elements first, so that all are aligned."""
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ArgumentError("metadata with keys or values that are no strings", "Give strings.")
        header[_METADATA] = dict(metadata)
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"{name!r:.80}: {type(tensor).__name__} in a file of tensors", "Give tensors by name."
            )
        if tensor.dtype not in _NAMES or name == _METADATA:
            raise ArgumentError(f"{name!r} of dtype {tensor.dtype.name}, which the format lacks", "Cast it.")
    order = sorted(tensors, key=lambda name: (-list(_NAMES).index(tensors[name].dtype), name))
    offset = 0
    for name in order:
        dtype, shape = tensors[name].dtype, tuple(tensors[name].shape)
        end = offset + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(_LENGTH, "little") + text, [tensors[name] for name in order]


def _elements(tensor: Tensor) -> memoryview:
    array = numpy.ascontiguousarray(tensor.detach()._numpy()).reshape(-1)
    return array.view(numpy.uint8).data


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a file with ``tensors``.

    >>> import twofold as torch
    >>> from twofold import safetensors
    >>> safetensors.load(safetensors.save({"w": torch.ones(2)}))
    {'w': tensor([1., 1.])}
    """
    header, ordered = _header(tensors, metadata)
    return b"".join([header, *(_elements(tensor) for tensor in ordered)])


def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write ``tensors`` to a file, which gets its new content at once, or keeps the old one.

    Tensors that share memory are written each for itself, and views as their elements in order; the package refuses
    both.

    Args:
        tensors: Tensors by name, such as a ``state_dict``.
        filename: The path.
        metadata: Strings by name, kept in the header.

    Raises:
        ArgumentError: Something is no tensor, or of a dtype that the format lacks (complex128).

    >>> import tempfile
    >>> import twofold as torch
    >>> from twofold import safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     safetensors.save_file(torch.nn.Linear(2, 1).state_dict(), folder + "/model.safetensors")
    ...     sorted(safetensors.load_file(folder + "/model.safetensors"))
    ['bias', 'weight']
    """
    header, ordered = _header(tensors, metadata)
    with atomic_write(filename) as file:
        file.write(header)
        for tensor in ordered:
            file.write(_elements(tensor))


class _Entry:
    """Where one tensor lies in a file; raises SafetensorError for a header that says something else."""

    def __init__(self, name: str, given: Any) -> None:
        if not isinstance(given, dict) or set(given) != {"dtype", "shape", "data_offsets"}:
            raise SafetensorError(f"header: tensor {name!r:.80} needs dtype, shape and data_offsets")
        shape, offsets = given["shape"], given["data_offsets"]
        for numbers in (shape, offsets):
            if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
                raise SafetensorError(f"header: shape and data_offsets of {name!r:.80} are numbers from 0")
        if not isinstance(given["dtype"], str) or given["dtype"] not in _DTYPES:
            raise SafetensorError(f"header: tensor {name!r:.80} has the unknown dtype {given['dtype']!r:.40}")
        self.dtype: DType = _DTYPES[given["dtype"]]
        self.shape = tuple(shape)
        size = math.prod(shape) * self.dtype.itemsize
        if math.prod(max(n, 1) for n in shape) * self.dtype.itemsize > sys.maxsize:
            raise SafetensorError(f"header: shape {shape!r:.80} of {name!r:.80} is too large for any memory")
        if len(offsets) != 2 or offsets[1] - offsets[0] != size or len(shape) > 32:
            raise SafetensorError(
                f"header: {name!r:.80} of shape {shape} has {size} bytes, not those at {offsets}"
            )
        self.start, self.end = offsets


def _read_header(file: Any) -> tuple[dict[str, _Entry], dict[str, str], int]:
    """Entries and metadata of a file, and where its elements start; all offsets are checked."""
    total = file.seek(0, os.SEEK_END)
    file.seek(0)
    prefix = file.read(_LENGTH)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < _LENGTH or length > _LONGEST_HEADER or length > total - _LENGTH:
        raise SafetensorError("the file is truncated or no safetensors file: it is shorter than its header")
    text = file.read(length)
    try:
        header = json.loads(text.decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"header: {error}") from None
    if not text.startswith(b"{") or not isinstance(header, dict):
        raise SafetensorError("header: it is no JSON object")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise SafetensorError("header: metadata are strings by name")
    entries = {name: _Entry(name, given) for name, given in header.items()}
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != position:
            raise SafetensorError(
                f"header: the elements of {name!r:.80} start at {entry.start}, not at {position}"
            )
        position = entry.end
    if position != total - _LENGTH - length:
        raise SafetensorError(
            f"the file holds {total - _LENGTH - length} bytes of elements where its header says {position}"
        )
    return entries, metadata, _LENGTH + length


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


class safe_open:
    """A file that is open for reading tensors one at a time, in a ``with`` block.

    Args:
        filename: The path.
        framework: "pt", as in the package.
        device: The CPU.

    Raises:
        SafetensorError: The file is not in the format.

    >>> import tempfile
    >>> import twofold as torch
    >>> from twofold import safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/model.safetensors"
    ...     safetensors.save_file({"w": torch.arange(3)}, path, {"made": "today"})
    ...     with safetensors.safe_open(path, "pt") as file:
    ...         file.keys(), file.metadata(), file.get_tensor("w")
    (['w'], {'made': 'today'}, tensor([0, 1, 2]))
    """

    def __init__(self, filename: Any, framework: str = "pt", device: Any = "cpu") -> None:
        check_device(device)
        if framework not in ("pt", "torch", "pytorch"):
            raise ArgumentError(f"framework {framework!r}", "Use 'pt': these are tensors of this library.")
        self._file = filename if hasattr(filename, "read") else open(filename, "rb")  # noqa: SIM115
        try:
            self._entries, self._metadata, self._start = _read_header(self._file)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The names of all tensors."""
        return list(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def metadata(self) -> dict[str, str] | None:
        """The strings in the header; None if there are none."""
        return self._metadata or None

    def get_tensor(self, name: str) -> Tensor:
        """One tensor; raises SafetensorError where there is none of that name."""
        if name not in self._entries:
            raise SafetensorError(f"the file has no tensor {name!r:.80}")
        entry = self._entries[name]
        memory = numpy.empty(entry.end - entry.start, numpy.uint8)
        self._file.seek(self._start + entry.start)
        view, position = memory.data, 0
        while position < len(memory):
            count = self._file.readinto(view[position:])
            if not count:
                raise SafetensorError(f"the file ends within tensor {name!r:.80}")
            position += count
        array = memory != 0 if entry.dtype.kind == "b" else memory.view(entry.dtype.numpy)
        return _core.from_array(array.reshape(entry.shape), False, entry.dtype.code)


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """All tensors of a file, by name.

    Args:
        filename: The path.
        device: The CPU.

    Raises:
        SafetensorError: The file is not in the format.
    """
    with safe_open(filename, "pt", device) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def load(data: bytes) -> dict[str, Tensor]:
    """All tensors in the content of a file, by name; raises SafetensorError where it is not in the format."""
    with safe_open(io.BytesIO(data)) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def save_model(
    model: Module, filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write the state of ``model`` to a file; a parameter with several names is written under the first.

    >>> import tempfile
    >>> import twofold as torch
    >>> from twofold import safetensors
    >>> model = torch.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     safetensors.save_model(model, folder + "/model.safetensors")
    ...     safetensors.load_model(model, folder + "/model.safetensors")
    ([], [])
    """
    save_file(_named_once(model)[0], filename, metadata)


def load_model(
    model: Module, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu"
) -> tuple[list[str], list[str]]:
    """Copy the tensors of a file into ``model``; returns the names that are missing, and those that are unexpected.

    Raises RuntimeError for either, unless ``strict`` is False.
    """
    others = _named_once(model)[1]
    found = load_file(filename, device)
    missing, unexpected = model.load_state_dict(found, strict=False)
    missing = [name for name in missing if name not in others or others[name] not in found]
    unexpected = list(unexpected)
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}: missing {missing}, unexpected {unexpected}"
        )
    return missing, unexpected


def _named_once(model: Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The state with each tensor under its first name, and for the further names the first."""
    state: dict[str, Tensor] = {}
    first: dict[int, str] = {}
    others: dict[str, str] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in first:
            others[name] = first[id(tensor)]
        else:
            first[id(tensor)] = name
            state[name] = tensor
    return state, others
