"""Event files, which TensorBoard shows: scalars, histograms, images, strings and graphs by steps.

Source: TensorFlow's ``event.proto`` and ``summary.proto``, and its format of records: the length, its checksum, the
message, its checksum.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
import os
import socket
import struct
import sys
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
_START = 1  # SessionLog.START
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
    """The distribution of values: how many lie in each of TensorFlow's buckets, whose limits grow by a tenth.

    A run of empty buckets is one bucket. Raises ValueError where a value is not finite.
    """
    flat = numpy.asarray(values, numpy.float64).reshape(-1)
    if not numpy.isfinite(flat).all():
        what = "Nan" if numpy.isnan(flat).any() else "Infinity"
        raise ValueError(f"{what} in summary histogram for: {tag}")
    limits = _limits()
    above = numpy.minimum(numpy.searchsorted(limits, flat, side="right"), len(limits) - 1)
    counts = numpy.bincount(above, minlength=len(limits))
    last_of_run = numpy.append((counts[:-1] > 0) | (counts[1:] > 0), True)
    least, most = (flat.min(), flat.max()) if flat.size else (limits[-1], limits[0])
    with numpy.errstate(over="ignore"):
        squares = float(numpy.square(flat).sum())
    return counted_summary(
        tag, least, most, flat.size, flat.sum(), squares, limits[last_of_run], counts[last_of_run]
    )


@functools.cache
def _limits() -> Any:
    """Upper limits of TensorFlow's buckets, each a value outside of its bucket."""
    above = [1e-12]
    while above[-1] * 1.1 < 1e20:
        above.append(above[-1] * 1.1)
    limits = numpy.array([*above, sys.float_info.max])
    return numpy.concatenate([-limits[::-1], [0.0], limits])


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


_LEVELS = 6, 7, 6
"""How many reds, greens and blues there are where a frame has more than 256 colours."""


def _palette(frame: Any) -> tuple[Any, Any]:
    """The colours of a frame, 256 at most, and the index of each pixel's; equally spaced ones where it has more."""
    flat = frame.reshape(-1, 3)
    colours, indices = numpy.unique(flat, axis=0, return_inverse=True)
    if len(colours) <= 256:
        return colours, indices.reshape(-1)
    grid = numpy.stack(numpy.meshgrid(*map(numpy.arange, _LEVELS), indexing="ij"), -1).reshape(-1, 3)
    most = numpy.array(_LEVELS) - 1
    nearest = numpy.round(flat / 255.0 * most).astype(numpy.int64)
    return numpy.round(grid * (255.0 / most)), numpy.ravel_multi_index(tuple(nearest.T), _LEVELS)


def _gif_codes(indices: Any) -> bytes:
    """Indices of colours as codes of nine bits, with the code that clears the table before it could need more."""
    codes = [code for k in range(0, len(indices), 250) for code in (256, *indices[k : k + 250].tolist())]
    bits = (numpy.array([*codes, 257])[:, None] >> numpy.arange(9)) & 1
    packed = numpy.packbits(bits.reshape(-1).astype(numpy.uint8), bitorder="little").tobytes()
    blocks = [packed[k : k + 255] for k in range(0, len(packed), 255)]
    return b"".join(bytes([len(one)]) + one for one in blocks) + b"\0"


def gif(frames: Any, rate: float) -> bytes:
    """A film in the GIF format: bytes ``[frames, height, width, 3]``, ``rate`` frames a second.

    Frames of at most 256 colours are kept exactly.
    """
    _, height, width, _ = frames.shape
    parts = [b"GIF89a" + struct.pack("<HHBBB", width, height, 0x70, 0, 0)]
    parts.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")  # again and again
    for frame in frames:
        colours, indices = _palette(frame)
        table = numpy.zeros((256, 3), numpy.uint8)
        table[: len(colours)] = colours
        parts.append(b"\x21\xf9\x04\0" + struct.pack("<HB", round(100 / rate), 0) + b"\0")
        parts.append(b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0x87) + table.tobytes())
        parts.append(b"\x08" + _gif_codes(indices))
    return b"".join(parts) + b"\x3b"


def in_grid(images: Any) -> Any:
    """Images ``[height, width, channels]`` in a grid of a power of two, at least as wide as high; the rest is black."""
    count = 1 << max(len(images) - 1, 0).bit_length()
    high = 1 << (count.bit_length() - 1) // 2
    black = [numpy.zeros_like(images[0])] * (count - len(images))
    lines = numpy.stack([*images, *black]).reshape(high, count // high, *images[0].shape)
    return numpy.concatenate(numpy.concatenate(lines.swapaxes(0, 1), 2), 0)


def video_summary(tag: str, frames: Any, rate: float) -> bytes:
    """A film of bytes, ``[frames, height, width, channels]`` with 1 or 3 channels, as an image that moves.

    Raises ValueError for another shape or type.
    """
    film = numpy.asarray(frames)
    if film.dtype != numpy.uint8 or film.ndim != 4 or film.shape[3] not in (1, 3):
        raise ValueError(
            f"a film is uint8[frames, height, width, 1 or 3], not {film.dtype}{list(film.shape)}"
        )
    _, height, width, channels = film.shape
    content = gif(numpy.repeat(film, 3 // channels, 3), rate)
    return _value(
        tag, nested(4, number(1, height) + number(2, width) + number(3, channels) + nested(4, content))
    )


def text_summary(tag: str, text: str) -> bytes:
    """A text, which TensorBoard reads as Markdown."""
    tensor = number(1, _STRING) + nested(2, nested(2, number(1, 1))) + nested(8, text.encode())
    return plugin_summary(tag, "text", b"", tensor)


def plugin_summary(tag: str, plugin: str, content: bytes, tensor: bytes | None = None) -> bytes:
    """What a plugin of TensorBoard reads: the message of its own, and a tensor."""
    data = nested(1, plugin.encode()) + (nested(2, content) if content else b"")
    return _value(tag, nested(9, nested(1, data)) + (b"" if tensor is None else nested(8, tensor)))


class EventFile:
    """A file of events in a directory; an event is there for readers once the file is flushed.

    Args:
        folder: The directory.
        suffix: The end of the file's name.
        purge_step: Readers drop the events of earlier files from this step on.
        max_queue: The file is flushed when more events than this wait.
        flush_secs: The file is flushed by the first event that comes so many seconds after the last flush.
    """

    def __init__(
        self,
        folder: Any,
        suffix: str = "",
        purge_step: int | None = None,
        max_queue: float = math.inf,
        flush_secs: float = math.inf,
    ) -> None:
        self.folder = os.fspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        made = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_files)}"
        self.path = os.path.join(self.folder, f"events.out.tfevents.{made}{suffix}")
        self._file = open(self.path, "wb")  # noqa: SIM115 (closed by close)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._waiting, self._flushed = 0, time.monotonic()
        self._record(double(1, time.time()) + nested(3, _VERSION))
        if purge_step is not None:
            self._event(nested(7, number(1, _START)), purge_step, None)
            self.flush()

    def _record(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, event)]
        self._file.write(length + checksums[0] + event + checksums[1])
        self._waiting += 1
        if self._waiting > self._max_queue or time.monotonic() - self._flushed > self._flush_secs:
            self.flush()

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
        self._waiting, self._flushed = 0, time.monotonic()

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
