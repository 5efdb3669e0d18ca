"""The part of the HDF5 format that Keras's files use: groups, arrays stored in one piece, attributes.

Files have a superblock of version 0, object headers of version 1, and symbol tables, which every version of the HDF5
library reads; ``read`` takes what that library writes by default.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy

from twofold.errors import ArgumentError

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_NOWHERE = 2**64 - 1
_LARGEST_ATTRIBUTE = 64512
_INTERNAL = 16
"""Half of the entries of a B-tree node."""

_SPACE, _TYPE, _FILL, _LAYOUT, _ATTRIBUTE, _CONTINUATION, _TABLE = 1, 3, 5, 8, 12, 16, 17
"""Types of messages in object headers."""

_FLOATS = {2: (15, 10, 5, 15), 4: (31, 23, 8, 127), 8: (63, 52, 11, 1023)}
"""By size: sign bit, mantissa bits, exponent bits, bias."""


@dataclass
class Group:
    """What a file or a group holds: attributes, and groups and arrays by name."""

    attributes: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)

    def at(self, path: str) -> Any:
        """The group or array at a path with slashes; raises KeyError where there is none."""
        found: Any = self
        for part in filter(None, path.split("/")):
            found = found.members[part]
        return found

    def put(self, path: str, value: Any) -> Any:
        """Enter a group or an array at a path; the groups above it are made."""
        *above, last = path.split("/")
        group = self
        for part in above:
            group = group.members.setdefault(part, Group())
        group.members[last] = value
        return value


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 8)


def _type_message(dtype: numpy.dtype[Any]) -> bytes:
    size = dtype.itemsize
    if dtype.kind == "S":
        return struct.pack("<BBBBI", 0x13, 1, 0, 0, max(size, 1))
    if dtype.kind == "f":
        sign, mantissa, exponent, bias = _FLOATS[size]
        head = struct.pack("<BBBBI", 0x11, 0x20, sign, 0, size)
        return head + struct.pack("<HHBBBBI", 0, 8 * size, mantissa, exponent, 0, mantissa, bias)
    if dtype.kind in "iub":
        head = struct.pack("<BBBBI", 0x10, 8 if dtype.kind == "i" else 0, 0, 0, size)
        return head + struct.pack("<HH", 0, 8 * size)
    raise ArgumentError(f"an HDF5 file cannot hold arrays of {dtype}", "Give numbers or bytes.")


def _space_message(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f"<BBB5x{len(shape)}Q", 1, len(shape), 0, *shape)


def _little(value: Any) -> numpy.ndarray:
    array = numpy.asarray(value)
    if array.dtype.kind == "U":
        array = numpy.char.encode(array, "utf-8")
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


class _Writer:
    """A file that grows at its end."""

    def __init__(self, group: Group) -> None:
        self._data = bytearray(96)
        self._leaf = max(4, -(-max(len(one.members) for one in _groups(group)) // 2))
        header, tree, heap = self._group(group)
        start = struct.pack("<8s8B", _SIGNATURE, 0, 0, 0, 0, 0, 8, 8, 0)
        start += struct.pack("<HHI4Q", self._leaf, _INTERNAL, 0, 0, _NOWHERE, len(self._data), _NOWHERE)
        start += struct.pack("<QQII2Q", 0, header, 1, 0, tree, heap)
        self._data[:96] = start

    def file(self) -> bytes:
        """All of it."""
        return bytes(self._data)

    def _place(self, data: bytes) -> int:
        at = len(self._data)
        self._data += _padded(data)
        return at

    def _group(self, group: Group) -> tuple[int, int, int]:
        """The addresses of a group's header, tree and heap."""
        names = sorted(name.encode() for name in group.members)
        heap, offsets = b"\0" * 8, []
        for name in names:
            offsets.append(len(heap))
            heap += _padded(name + b"\0")
        entries = b""
        for name, offset in zip(names, offsets):
            member = group.members[name.decode()]
            if isinstance(member, Group):
                entries += struct.pack("<QQII2Q", offset, *self._scratched(member))
            else:
                entries += struct.pack("<QQII16x", offset, self._array(member), 0, 0)
        node = struct.pack("<4sBBH", b"SNOD", 1, 0, len(names)) + entries
        leaf = self._place(node.ljust(8 + 80 * self._leaf, b"\0"))
        tree = struct.pack("<4sBBHQQ", b"TREE", 0, 0, 1 if names else 0, _NOWHERE, _NOWHERE)
        if names:
            tree += struct.pack("<3Q", 0, leaf, offsets[-1])
        tree_at = self._place(tree.ljust(24 + 8 * (4 * _INTERNAL + 1), b"\0"))
        segment = self._place(heap)
        heap_at = self._place(struct.pack("<4sB3xQQQ", b"HEAP", 0, len(heap), 1, segment))
        messages = [(_TABLE, struct.pack("<QQ", tree_at, heap_at))]
        return self._header(messages, group.attributes), tree_at, heap_at

    def _scratched(self, group: Group) -> tuple[int, int, int, int, int]:
        """What an entry says of a group: the address of its header, and copies of those of tree and heap."""
        header, tree, heap = self._group(group)
        return header, 1, 0, tree, heap

    def _array(self, value: Any) -> int:
        array = _little(value)
        data = array.tobytes()
        at = self._place(data) if data else _NOWHERE
        messages = [
            (_SPACE, _space_message(array.shape)),
            (_TYPE, _type_message(array.dtype)),
            (_FILL, struct.pack("<BBBBI", 2, 2, 2, 1, 0)),
            (_LAYOUT, struct.pack("<BBQQ", 3, 1, at, len(data))),
        ]
        return self._header(messages, {})

    def _header(self, messages: list[tuple[int, bytes]], attributes: dict[str, Any]) -> int:
        messages = [
            *messages,
            *[(_ATTRIBUTE, self._attribute(key, value)) for key, value in attributes.items()],
        ]
        body = b"".join(
            struct.pack("<HHB3x", kind, len(_padded(data)), 0) + _padded(data) for kind, data in messages
        )
        return self._place(struct.pack("<BBHII4x", 1, 0, len(messages), 1, len(body)) + body)

    def _attribute(self, name: str, value: Any) -> bytes:
        array = _little(value)
        kind, data = _type_message(array.dtype), array.tobytes()
        if len(data) > _LARGEST_ATTRIBUTE:
            if array.shape or array.dtype.kind != "S":
                raise ArgumentError(f"attribute {name} has {len(data)} bytes", "Divide it.")
            kind = struct.pack("<BBBBI", 0x19, 1, 0, 0, 16) + struct.pack("<BBBBI", 0x13, 0, 0, 0, 1)
            data = struct.pack("<IQI", len(data), self._heap_object(data), 1)
        space, encoded = _space_message(array.shape), name.encode() + b"\0"
        head = struct.pack("<BBHHH", 1, 0, len(encoded), len(kind), len(space))
        return head + _padded(encoded) + _padded(kind) + _padded(space) + data

    def _heap_object(self, data: bytes) -> int:
        """The address of a global heap with one object."""
        body = struct.pack("<HHIQ", 1, 1, 0, len(data)) + _padded(data)
        size = max(4096, 16 + len(body) + 16)
        rest = size - 16 - len(body)
        body += struct.pack("<HHIQ", 0, 0, 0, rest)
        return self._place((struct.pack("<4sB3xQ", b"GCOL", 1, size) + body).ljust(size, b"\0"))


def _groups(group: Group) -> Iterator[Group]:
    yield group
    for member in group.members.values():
        if isinstance(member, Group):
            yield from _groups(member)


def write(path: Any, group: Group) -> None:
    """Write a group as a file."""
    data = _Writer(group).file()
    with open(path, "wb") as file:
        file.write(data)


class _Reader:
    """The bytes of a file."""

    def __init__(self, data: bytes, path: Any) -> None:
        self._data, self._path = data, path

    def _refuse(self, what: str) -> ArgumentError:
        return ArgumentError(f"{self._path}: {what}", "Write it with the HDF5 library's default settings.")

    def root(self) -> Group:
        """What the file holds."""
        if self._data[:8] != _SIGNATURE:
            raise ArgumentError(f"{self._path} is no HDF5 file", "Give one that a model was saved to.")
        if self._data[8] > 1 or self._data[13:15] != b"\x08\x08":
            raise self._refuse(f"a superblock of version {self._data[8]}")
        (address,) = struct.unpack_from("<Q", self._data, 24 + 32 + 8 + (4 if self._data[8] else 0))
        return self._object(address)

    def _messages(self, address: int) -> Iterator[tuple[int, bytes]]:
        if self._data[address] != 1:
            raise self._refuse("an object header of another version than 1")
        count, _, size = struct.unpack_from("<HII", self._data, address + 2)
        blocks = [(address + 16, size)]
        while blocks:
            at, size = blocks.pop(0)
            end = at + size
            while count and at + 8 <= end:
                kind, length = struct.unpack_from("<HH", self._data, at)
                body = self._data[at + 8 : at + 8 + length]
                at, count = at + 8 + length, count - 1
                if kind == _CONTINUATION:
                    blocks.append(struct.unpack_from("<QQ", body))
                else:
                    yield kind, body

    def _object(self, address: int) -> Any:
        found = dict(messages := list(self._messages(address)))
        attributes = dict(self._attribute(body) for kind, body in messages if kind == _ATTRIBUTE)
        if _TABLE in found:
            tree, heap = struct.unpack_from("<QQ", found[_TABLE])
            names = struct.unpack_from("<Q", self._data, heap + 24)[0]
            return Group(
                attributes,
                {self._text(names + offset): self._object(at) for offset, at in self._links(tree)},
            )
        if _LAYOUT not in found:
            raise self._refuse("a group that is no symbol table")
        shape, kind = self._shape(found[_SPACE]), self._kind(found[_TYPE])
        return self._values(self._stored(found[_LAYOUT]), kind, shape)

    def _stored(self, layout: bytes) -> bytes:
        version, kind = layout[0], layout[1]
        if version != 3 or kind == 2:
            raise self._refuse("an array stored in chunks")
        if kind == 0:
            return layout[4 : 4 + struct.unpack_from("<H", layout, 2)[0]]
        at, size = struct.unpack_from("<QQ", layout, 2)
        return b"" if at == _NOWHERE else self._data[at : at + size]

    def _links(self, address: int) -> Iterator[tuple[int, int]]:
        mark, used = struct.unpack_from("<4s2xH", self._data, address)
        if mark == b"SNOD":
            (used,) = struct.unpack_from("<H", self._data, address + 6)
            for k in range(used):
                yield struct.unpack_from("<QQ", self._data, address + 8 + 40 * k)
            return
        for k in range(used):
            yield from self._links(struct.unpack_from("<Q", self._data, address + 32 + 16 * k)[0])

    def _text(self, at: int) -> str:
        return self._data[at : self._data.index(b"\0", at)].decode()

    def _shape(self, body: bytes) -> tuple[int, ...]:
        start = 8 if body[0] == 1 else 4
        return struct.unpack_from(f"<{body[1]}Q", body, start)

    def _kind(self, body: bytes) -> Any:
        """A dtype of NumPy, or None for strings of any length."""
        kind, bits, size = body[0] & 15, body[1], struct.unpack_from("<I", body, 4)[0]
        order = ">" if bits & 1 else "<"
        if kind == 0:
            return numpy.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}")
        if kind == 1:
            return numpy.dtype(f"{order}f{size}")
        if kind == 3:
            return numpy.dtype(f"S{size}")
        if kind == 8:  # an enumeration, such as that of booleans, by the numbers of its members
            return self._kind(body[8:])
        if kind == 9 and bits & 15 == 1:
            return None
        raise self._refuse(f"values of HDF5's class {kind}")

    def _values(self, data: bytes, kind: Any, shape: tuple[int, ...]) -> Any:
        count = int(numpy.prod(shape, dtype=int))
        if kind is not None:
            array = numpy.frombuffer(data, kind, count).reshape(shape)
            return array.astype(kind.newbyteorder("=")) if kind.kind != "S" else array
        found = []
        for k in range(count):
            length, heap, index = struct.unpack_from("<IQI", data, 16 * k)
            found.append(self._heap_object(heap, index)[:length])
        return numpy.array(found, object).reshape(shape)

    def _heap_object(self, heap: int, index: int) -> bytes:
        (size,) = struct.unpack_from("<Q", self._data, heap + 8)
        at = heap + 16
        while at + 16 <= heap + size:
            number, _, _, length = struct.unpack_from("<HHIQ", self._data, at)
            if number == index:
                return self._data[at + 16 : at + 16 + length]
            if number == 0:
                break
            at += 16 + length + -length % 8
        return b""

    def _attribute(self, body: bytes) -> tuple[str, Any]:
        version, _, *lengths = struct.unpack_from("<BBHHH", body)
        at, parts = 9 if version == 3 else 8, []
        for length in lengths:
            parts.append(body[at : at + length])
            at += length + (-length % 8 if version == 1 else 0)
        name, kind, space = parts
        shape = self._shape(space)
        value = self._values(body[at:], self._kind(kind), shape)
        return name.rstrip(b"\0").decode(), value if shape else value[()]


def read(path: Any) -> Group:
    """The group that a file holds; raises ArgumentError for what this module does not read."""
    with open(path, "rb") as file:
        return _Reader(file.read(), path).root()
