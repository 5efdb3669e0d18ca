"""Image files, where Pillow is installed, and what is said where it is not."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

PIXELS = numpy.random.default_rng(0).integers(0, 256, (8, 9, 4), numpy.uint8)


def run(value: Any) -> Any:
    with tf.Session() as session:
        return session.run(value)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(tf.errors.UnavailableError, match="Install it"):
        run(tf.image.decode_png(b"content"))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_what_is_encoded_is_decoded(channels: int) -> None:
    pytest.importorskip("PIL")
    content = tf.image.encode_png(PIXELS[..., :channels], compression=9)
    for decode in (tf.image.decode_png, tf.image.decode_image):
        numpy.testing.assert_array_equal(run(decode(content)), PIXELS[..., :channels])
    grey = run(tf.image.decode_png(content, channels=1)) if channels == 3 else None
    if grey is not None:  # the shares of Rec. 601, rounded down
        wanted = (PIXELS[..., :3] @ numpy.array([19595, 38470, 7471])) >> 16
        numpy.testing.assert_array_equal(grey[..., 0], wanted)
    wide = run(tf.image.decode_png(content, dtype=tf.uint16))
    numpy.testing.assert_array_equal(wide, PIXELS[..., :channels].astype(int) * 257)
    floats = run(tf.image.decode_image(content, dtype=tf.float32))
    numpy.testing.assert_allclose(floats, PIXELS[..., :channels] / 255, rtol=1e-6)


def test_photographs() -> None:
    pytest.importorskip("PIL")
    smooth = numpy.add.outer(numpy.arange(16), numpy.arange(24))[..., None].repeat(3, 2).astype(numpy.uint8)
    best, worst = (tf.image.encode_jpeg(smooth, quality=q) for q in (95, 5))
    assert abs(run(tf.image.decode_jpeg(best)).astype(int) - smooth).max() <= 3
    assert len(run(best)) > len(run(worst))
    assert run(tf.image.extract_jpeg_shape(best)).tolist() == [16, 24, 3] and run(tf.image.is_jpeg(best))
    assert not run(tf.image.is_jpeg(b"\x89PNG"))


def test_mistakes() -> None:
    pytest.importorskip("PIL")
    with pytest.raises(tf.errors.InvalidArgumentError, match="7 bytes are no image of BMP"):
        run(tf.image.decode_bmp(b"content"))
    with pytest.raises(ValueError, match="channels is 2"):
        tf.image.decode_png(b"", channels=2)
    with pytest.raises(ArgumentError, match="ratio=2"):
        tf.image.decode_jpeg(b"", ratio=2)
    with pytest.raises(TypeError, match="dtype is int64"):
        tf.image.decode_png(b"", dtype=tf.int64)


def test_a_window_of_a_jpeg_file() -> None:
    pytest.importorskip("PIL")
    content = tf.image.encode_jpeg(PIXELS[..., :3])
    both = [
        tf.image.decode_and_crop_jpeg(content, [2, 1, 5, 6], channels=3, dct_method="INTEGER_ACCURATE"),
        tf.image.decode_jpeg(content)[2:7, 1:7],
    ]
    found, expected = run(both)
    numpy.testing.assert_array_equal(found, expected)
    for window in ([4, 0, 5, 2], [0, 0, 0, 2], [-1, 0, 2, 2], [0, 8, 1, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="crop_window"):
            run(tf.image.decode_and_crop_jpeg(content, window))
    with pytest.raises(ArgumentError, match="dct_method"):
        tf.image.decode_and_crop_jpeg(content, [0, 0, 1, 1], dct_method="INTEGER_FAST")
