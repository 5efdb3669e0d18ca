"""CRC-32C (Castagnoli; RFC 3720, appendix B.4), which checkpoints protect their content with."""

from __future__ import annotations

import numpy

_POLYNOMIAL = 0x82F63B78  # reflected


def _table() -> numpy.ndarray:
    rows = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        rows = numpy.where(rows & 1, rows >> 1 ^ numpy.uint32(_POLYNOMIAL), rows >> 1)
    return rows


_TABLE = _table()
_LIST = _TABLE.tolist()


def _update(state: int, data: bytes) -> int:
    for byte in data:
        state = _LIST[(state ^ byte) & 255] ^ state >> 8
    return state


def _times(columns: numpy.ndarray, states: numpy.ndarray) -> numpy.ndarray:
    """A 32 by 32 matrix over the two-element field, by its columns, times each of some vectors."""
    product = numpy.zeros_like(states)
    for k in range(32):
        product ^= columns[k] * (states >> numpy.uint32(k) & numpy.uint32(1))
    return product


def _shift(count: int) -> numpy.ndarray:
    """The matrix that takes a state over ``count`` zero bytes."""
    power = numpy.array([_update(1 << k, b"\0") for k in range(32)], numpy.uint32)
    result = numpy.array([1 << k for k in range(32)], numpy.uint32)
    while count:
        if count & 1:
            result = _times(power, result)
        power = _times(power, power)
        count >>= 1
    return result


def crc32c(data: bytes) -> int:
    """The checksum of ``data``; long data are cut into lanes, whose states are combined two by two.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    state = 0xFFFFFFFF
    lanes = 1 << (16 if len(data) > 1 << 22 else 12)
    length = len(data) // lanes
    if length > 16:
        head, data = numpy.frombuffer(data, numpy.uint8, length * lanes), data[length * lanes :]
        states = numpy.zeros(lanes, numpy.uint32)
        states[0] = state
        for column in numpy.ascontiguousarray(head.reshape(lanes, length).T):
            states = _TABLE[(states ^ column) & 255] ^ states >> 8
        over = _shift(length)
        while states.size > 1:
            states = _times(over, states[0::2]) ^ states[1::2]
            over = _times(over, over)
        state = int(states[0])
    return _update(state, data) ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """A checksum as it is stored: rotated and shifted, so that data which hold checksums get good ones."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
