"""The wire format of protocol buffers, as far as checkpoints and graph definitions need it.

Source: Protocol Buffers, "Encoding": a message is a sequence of fields, each a key (number and wire type) and a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A non-negative integer in groups of seven bits, the lowest first.

    >>> varint(1), varint(300)
    (b'\\x01', b'\\xac\\x02')
    """
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The integer at ``position`` and the position behind it; raises ValueError where the data end too soon."""
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("a number does not end")
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def number(field: int, value: int) -> bytes:
    """An integer field; nothing for 0, the default."""
    return varint(field << 3 | VARINT) + varint(value & (1 << 64) - 1) if value else b""


def nested(field: int, content: bytes) -> bytes:
    """A field of bytes: a string or a message."""
    return varint(field << 3 | BYTES) + varint(len(content)) + content


def fixed32(field: int, value: int) -> bytes:
    """A field of four bytes."""
    return varint(field << 3 | FIXED32) + struct.pack("<I", value)


def entries(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value (bytes unless a varint) of each field; raises ValueError for what is no message."""
    position = 0
    while position < len(message):
        key, position = read_varint(message, position)
        wire = key & 7
        if wire == VARINT:
            value, position = read_varint(message, position)
            yield key >> 3, wire, value
            continue
        if wire not in (FIXED32, FIXED64, BYTES):
            raise ValueError(f"wire type {wire} is not in use")
        size = 4 if wire == FIXED32 else 8
        if wire == BYTES:
            size, position = read_varint(message, position)
        if position + size > len(message):
            raise ValueError("a field does not end")
        yield key >> 3, wire, message[position : position + size]
        position += size


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field, fixed ones as integers; raises ValueError for what is no message.

    >>> list(fields(number(1, 150) + nested(2, b"name")))
    [(1, 150), (2, b'name')]
    """
    for field, wire, value in entries(message):
        yield field, int.from_bytes(value, "little") if wire in (FIXED32, FIXED64) else value
