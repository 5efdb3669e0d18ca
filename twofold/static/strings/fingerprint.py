"""Fingerprints of strings, bit for bit those that TensorFlow's hash buckets and crossed features stand on."""

from __future__ import annotations

from functools import lru_cache

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_CAT = 0xC6A4A7935BD1E995


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value >> bits | value << (64 - bits)) & _MASK


def _mixed(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _pair(u: int, v: int, factor: int) -> int:
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor & _MASK


def _word(text: bytes, start: int, size: int = 8) -> int:
    start += len(text) if start < 0 else 0
    return int.from_bytes(text[start : start + size], "little")


def _up_to_16(text: bytes) -> int:
    count = len(text)
    factor = _K2 + count * 2
    if count >= 8:
        a, b = _word(text, 0) + _K2, _word(text, -8)
        return _pair((_rotated(b, 37) * factor + a) & _MASK, (_rotated(a, 25) + b) * factor & _MASK, factor)
    if count >= 4:
        return _pair(count + (_word(text, 0, 4) << 3), _word(text, -4, 4), factor)
    if count:
        y, z = text[0] + (text[count >> 1] << 8), count + (text[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _up_to_64(text: bytes) -> int:
    factor = _K2 + len(text) * 2
    short = len(text) <= 32
    a, b = _word(text, 0) * (_K1 if short else _K2), _word(text, 8)
    c, d = _word(text, -8) * factor, _word(text, -16) * _K2
    y = (_rotated(a + b, 43) + _rotated(c, 30) + d) & _MASK
    z = _pair(y, (a + _rotated(b + _K2, 18) + c) & _MASK, factor)
    if short:
        return z
    e, f = _word(text, 16) * factor, _word(text, 24)
    g, h = (y + _word(text, -32)) * factor, (z + _word(text, -24)) * factor
    first = (_rotated(e + f, 43) + _rotated(g, 30) + h) & _MASK
    return _pair(first, (e + _rotated(f + a, 18) + g) & _MASK, factor)


def _absorbed(text: bytes, start: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = [_word(text, start + offset) for offset in (0, 8, 16, 24)]
    a += w
    b = _rotated(b + a + z, 21)
    c, a = a, a + x + y
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def _above_64(text: bytes) -> int:
    x, y = 81, 81 * _K1 + 113
    z = _mixed(y * _K2 + 113) * _K2
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(text, 0)
    starts = [*range(0, (len(text) - 1) // 64 * 64, 64), len(text) - 64]
    for start in starts:
        factor, ninth, fifth = _K1, 1, 1
        if start == starts[-1]:
            factor, ninth, fifth = _K1 + ((z & 0xFF) << 1), 9, 9
            w = w[0] + ((len(text) - 1) & 63), w[1]
            v = v[0] + w[0], v[1]
            w = w[0] + v[0], w[1]
        x = _rotated(x + y + v[0] + _word(text, start + 8), 37) * factor
        y = _rotated(y + v[1] + _word(text, start + 48), 42) * factor
        x = (x ^ w[1] * ninth) & _MASK
        y += v[0] * fifth + _word(text, start + 40)
        z = _rotated(z + w[0], 33) * factor
        v = _absorbed(text, start, v[1] * factor, x + w[0])
        w = _absorbed(text, start + 32, z + w[1], y + _word(text, start + 16))
        x, z = z, x
    first = _pair(v[0], w[0], factor) + _mixed(y) * _K0 + z
    return _pair(first & _MASK, (_pair(v[1], w[1], factor) + x) & _MASK, factor)


@lru_cache(maxsize=1 << 16)
def fingerprint64(text: bytes) -> int:
    """FarmHash's ``Fingerprint64`` of a string, an integer in [0, 2**64).

    >>> fingerprint64(b"a")
    12917804110809363939
    """
    count = len(text)
    return _up_to_16(text) if count <= 16 else _up_to_64(text) if count <= 64 else _above_64(text)


def joined64(one: int, two: int) -> int:
    """The fingerprint of a pair of fingerprints, ``FingerprintCat64``."""
    found = one ^ _CAT ^ (_mixed(two * _CAT) * _CAT & _MASK)
    return _mixed(_mixed(found * _CAT) * _CAT)
