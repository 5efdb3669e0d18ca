"""Event files, which TensorBoard shows: scalars, histograms, images, strings and graphs by steps.

Source: TensorFlow's ``event.proto`` and ``summary.proto``, and its format of records: the length, its checksum, the
message, its checksum.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import socket
import struct
import time
import wave
import zlib
from collections.abc import Iterator
from typing import Any

import numpy

from twofold.crc32c import crc32c, masked
from twofold.protobuf import FIXED64, fields, fixed32, nested, number, varint

_VERSION = b"brain.Event:2"
_STRING = 7
_files = itertools.count()


def double(field: int, value: float) -> bytes:
    """A field of eight bytes."""
    return varint(field << 3 | FIXED64) + struct.pack("<d", value)


def _doubles(field: int, values: Any) -> bytes:
    return nested(field, numpy.asarray(values, "<f8").tobytes())


def nested_string(field: int, text: str) -> bytes:
    """A field of a string."""
    return nested(field, text.encode())


def _value(tag: str, content: bytes) -> bytes:
    return nested(1, nested(1, tag.encode()) + content)


def scalar_summary(tag: str, value: float) -> bytes:
    """A number as a summary message.

    >>> [field for field, _ in fields(scalar_summary("loss", 0.5))]
    [1]
    """
    return _value(tag, fixed32(2, struct.unpack("<I", struct.pack("<f", value))[0]))


def counted_summary(
    tag: str, least: float, most: float, count: float, total: float, squares: float, limits: Any, counts: Any
) -> bytes:
    """A distribution that was counted: extremes, count, sum, sum of squares, upper limits of buckets, their counts."""
    message = b"".join(double(k, value) for k, value in enumerate((least, most, count, total, squares), 1))
    return _value(tag, nested(5, message + _doubles(6, limits) + _doubles(7, counts)))


def histogram_summary(tag: str, values: Any) -> bytes:
    """The distribution of values: how many lie in each of some buckets, whose limits grow by a tenth.

    Raises ValueError where a value is not finite, or there is none.
    """
    flat = numpy.asarray(values, numpy.float64).reshape(-1)
    if not flat.size or not numpy.isfinite(flat).all():
        raise ValueError(f"a histogram of {flat.size} values of which some are not finite, or of none")
    limits = _limits(float(numpy.abs(flat).max()))
    counts = numpy.bincount(numpy.searchsorted(limits, flat), minlength=len(limits))
    used = numpy.flatnonzero(counts)
    first, last = max(int(used[0]) - 1, 0), int(used[-1]) + 1
    moments = flat.min(), flat.max(), flat.size, flat.sum(), float((flat * flat).sum())
    return counted_summary(tag, *moments, limits[first:last], counts[first:last])


def _limits(most: float) -> Any:
    """Upper limits of buckets, over the whole range of ``-most`` to ``most``."""
    count = max(1, math.ceil(math.log(max(most, 1e-12) / 1e-12) / math.log(1.1)) + 1)
    above = 1e-12 * 1.1 ** numpy.arange(count)
    return numpy.concatenate([-above[::-1], [0.0], above])


def image_summary(tag: str, pixels: Any) -> bytes:
    """An image of bytes, ``[height, width, channels]`` with 1, 3 or 4 channels.

    Raises ValueError for another shape or type.
    """
    image = numpy.ascontiguousarray(pixels)
    if image.dtype != numpy.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3, 4):
        raise ValueError(f"an image is uint8[height, width, 1, 3 or 4], not {image.dtype}{list(image.shape)}")
    height, width, channels = image.shape
    message = number(1, height) + number(2, width) + number(3, channels) + nested(4, png(image))
    return _value(tag, nested(4, message))


def audio_summary(tag: str, samples: Any, rate: float) -> bytes:
    """Sound as a WAV file of 16 bits, ``[frames, channels]`` of numbers from -1 to 1, ``rate`` frames a second."""
    sound = numpy.asarray(samples, numpy.float64)
    frames, channels = sound.shape
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(round(rate))
        file.writeframes(numpy.clip(numpy.round(sound * 32767), -32768, 32767).astype("<i2").tobytes())
    shape = struct.pack("<Bf", 1 << 3 | 5, rate) + number(2, channels) + number(3, frames)
    return _value(tag, nested(6, shape + nested(4, content.getvalue()) + nested(5, b"audio/wav")))


def png(image: Any) -> bytes:
    """An image in the format of the PNG specification, each row unfiltered."""
    height, width, channels = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = numpy.concatenate([numpy.zeros((height, 1), numpy.uint8), image.reshape(height, -1)], 1)
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    content = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + content


def text_summary(tag: str, text: str) -> bytes:
    """A text, which TensorBoard reads as Markdown."""
    tensor = number(1, _STRING) + nested(2, nested(2, number(1, 1))) + nested(8, text.encode())
    return plugin_summary(tag, "text", b"", tensor)


def plugin_summary(tag: str, plugin: str, content: bytes, tensor: bytes | None = None) -> bytes:
    """What a plugin of TensorBoard reads: the message of its own, and a tensor."""
    data = nested(1, plugin.encode()) + (nested(2, content) if content else b"")
    return _value(tag, nested(9, nested(1, data)) + (b"" if tensor is None else nested(8, tensor)))


class EventFile:
    """A file of events in a directory; an event is there for readers once the file is flushed."""

    def __init__(self, folder: Any, suffix: str = "") -> None:
        self.folder = os.fspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        made = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_files)}"
        self.path = os.path.join(self.folder, f"events.out.tfevents.{made}{suffix}")
        self._file = open(self.path, "wb")  # noqa: SIM115 (closed by close)
        self._record(double(1, time.time()) + nested(3, _VERSION))

    def _record(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, event)]
        self._file.write(length + checksums[0] + event + checksums[1])

    def _event(self, content: bytes, step: int | None, wall_time: float | None) -> None:
        when = time.time() if wall_time is None else wall_time
        self._record(double(1, when) + number(2, int(step or 0)) + content)

    def add_summary(self, summary: bytes, step: int | None = None, wall_time: float | None = None) -> None:
        """Write a summary message."""
        self._event(nested(5, summary), step, wall_time)

    def add_graph(self, graph: bytes, wall_time: float | None = None) -> None:
        """Write a ``GraphDef`` message."""
        self._event(nested(4, graph), None, wall_time)

    def add_run_metadata(self, metadata: bytes, tag: str, step: int | None = None) -> None:
        """Write a ``RunMetadata`` message under a tag."""
        self._event(nested(8, nested(1, tag.encode()) + nested(2, metadata)), step, None)

    def flush(self) -> None:
        """Let readers see all events."""
        self._file.flush()

    def close(self) -> None:
        """Flush, and close the file."""
        self._file.close()


def read_events(path: Any) -> Iterator[dict[int, Any]]:
    """The events of a file, each as its fields by number. Raises ValueError where a checksum is wrong."""
    with open(path, "rb") as file:
        while head := file.read(12):
            length, checksum = head[:8], head[8:]
            data = file.read(struct.unpack("<Q", length)[0])
            if checksum != struct.pack("<I", masked(crc32c(length))) or file.read(4) != struct.pack(
                "<I", masked(crc32c(data))
            ):
                raise ValueError(f"{path}: a checksum is wrong")
            yield dict(fields(data))


def node_def(name: str, op: str, inputs: list[str]) -> bytes:
    """A node of a ``GraphDef`` message."""
    parts = nested(1, name.encode()) + nested(2, op.encode())
    return nested(1, parts + b"".join(nested(3, one.encode()) for one in inputs))


def step_stats(devices: Any) -> bytes:
    """A ``RunMetadata`` message of what devices did: ``(name, nodes)``, a node with the names of ``NodeExecStats``."""
    written = []
    for device, nodes in devices:
        content = [nested(1, device.encode())]
        for node in nodes:
            content.append(
                nested(
                    2,
                    nested(1, node.node_name.encode())
                    + number(2, node.all_start_micros)
                    + number(3, node.op_start_rel_micros)
                    + number(4, node.op_end_rel_micros)
                    + number(5, node.all_end_rel_micros)
                    + nested(8, node.timeline_label.encode())
                    + number(10, node.thread_id),
                )
            )
        written.append(nested(1, b"".join(content)))
    return nested(1, b"".join(written))
