"""Image files decoded and encoded while a graph runs: ``tf.image``'s ``decode_png`` and relatives.

Pillow does the work; it is no dependency, and a run without it raises UnavailableError.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold.dtypes import bool_ as boolean
from twofold.dtypes import float32, int32, string, uint8, uint16
from twofold.errors import ArgumentError, DTypeError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.errors import UnavailableError
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.strings.string_functions import as_string_tensor

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_GREY = numpy.array([19595, 38470, 7471])
"""The shares of red, green and blue in a grey picture of a PNG file, of 2 ** 16."""
_ANY = ("JPEG", "PNG", "GIF", "BMP")


def _pillow(what: str) -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise UnavailableError(f"{what}: image files are read and written with Pillow. Install it.") from None


def _pixels(image: Any, channels: int, sixteen: bool) -> numpy.ndarray:
    """Height, width and channels of an opened image; ``channels=0`` keeps those of the file."""
    if image.mode.startswith("I"):  # one channel of 16 bits
        wide = numpy.asarray(image).astype(numpy.uint16)[..., None].repeat(max(channels, 1), -1)
        if channels == 4:
            wide[..., 3] = 65535
        return wide if sixteen else (wide >> 8).astype(numpy.uint8)
    if not channels:
        grey, alpha = image.mode in ("1", "L", "LA"), image.mode in ("LA", "RGBA", "PA")
        mode = "LA" if grey and alpha else "L" if grey else "RGBA" if alpha else "RGB"
    else:
        mode = _MODES[channels]
    if mode == "L" and image.format == "PNG" and image.mode not in ("1", "L", "LA"):
        array = (numpy.asarray(image.convert("RGB")) @ _GREY >> 16).astype(numpy.uint8)
    else:
        array = numpy.asarray(image.convert(mode))
    array = array[..., None] if array.ndim == 2 else array
    return array.astype(numpy.uint16) * 257 if sixteen else array


def _frames(image: Any) -> numpy.ndarray:
    return numpy.stack([_frame(image, number) for number in range(getattr(image, "n_frames", 1))])


def _frame(image: Any, number: int) -> numpy.ndarray:
    image.seek(number)
    return numpy.asarray(image.convert("RGB"))


def _of_file(what: str, read: Callable[[bytes], Any], contents: Any, kind: Any, shape: Any, name: Any) -> Any:
    """A tensor that ``read`` makes of the content of a file."""
    tensor = as_string_tensor(what, contents)
    return in_python(what.title().replace("_", ""), read, [tensor], [(kind, shape)], name)[0]


def _decoded(
    what: str,
    contents: Any,
    channels: int | None,
    name: str | None,
    formats: Sequence[str],
    dtype: Any = uint8,
    animated: bool = False,
) -> Any:
    """The picture of a file of one of some formats, or where these are ``animated`` perhaps its frames."""
    kind, channels = as_dtype(dtype), channels or 0
    if kind not in (uint8, uint16, float32):
        raise failed(what, DTypeError(f"dtype is {kind.name}", "Use uint8, uint16 or float32."))
    if channels not in (0, *_MODES):
        raise failed(what, ArgumentError(f"channels is {channels}", "Give 0 (those of the file), 1, 3 or 4."))

    def read(content: bytes) -> numpy.ndarray:
        opener = _pillow(what)
        try:
            image = opener.open(io.BytesIO(content), formats=formats)
            if animated and image.format == "GIF":
                found = _frames(image)
            else:
                found = _pixels(image, channels, kind is uint16)
        except (OSError, SyntaxError, ValueError) as error:
            problem = f"{what}: {len(content)} bytes are no image of {' or '.join(formats)} ({error})"
            raise InvalidArgumentError(problem, "Give the content of such a file.") from None
        return (
            found.astype(numpy.float32) / numpy.float32(255) if kind is float32 else found.astype(kind.numpy)
        )

    size = (None, None, channels or None)
    shape = None if animated and len(formats) > 1 else (None, *size) if animated else size
    return _of_file(what, read, contents, kind, shape, name)


def _refuse_changed(what: str, **options: Any) -> None:
    """Raise for an option that differs from its default: pairs of value and default."""
    for label, (value, usual) in options.items():
        if value != usual:
            what = f"{what}: {label}={value!r} is not offered, at {here()}"
            raise ArgumentError(what, "Leave it out.")


@example("print(tf.image.decode_jpeg(tf.placeholder(tf.string), channels=3).shape)", "(?, ?, 3)")
def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """The picture of a JPEG file (or PNG, or GIF of one frame) as uint8 [height, width, channels].

    Pixels may differ by a few units from TensorFlow's, which computes its cosine transform faster.
    ``channels`` is 0 for those of the file, 1 or 3. ``dct_method`` "INTEGER_ACCURATE" is what is computed. The other
    options raise ArgumentError where they are set.
    """
    fraction, given = (acceptable_fraction, 1), (try_recover_truncated, False)
    _refuse_changed(
        "decode_jpeg", ratio=(ratio, 1), try_recover_truncated=given, acceptable_fraction=fraction
    )
    _refuse_changed("decode_jpeg", fancy_upscaling=(fancy_upscaling, True))
    if dct_method != "INTEGER_ACCURATE":
        _refuse_changed("decode_jpeg", dct_method=(dct_method, ""))
    return _decoded("decode_jpeg", contents, channels, name, _ANY[:3])


@example(
    "print(tf.image.decode_and_crop_jpeg(tf.placeholder(tf.string), [1, 2, 3, 4], channels=3).shape)",
    "(?, ?, 3)",
)
def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """``decode_jpeg``, cut to a window: ``crop_window`` is [y, x, height, width], within the picture."""
    options = (ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    picture = decode_jpeg(contents, channels, *options)

    def cut(pixels: numpy.ndarray, window: numpy.ndarray) -> numpy.ndarray:
        top, left, high, wide = window.tolist()
        height, width = pixels.shape[:2]
        if min(top, left, high - 1, wide - 1) < 0 or top + high > height or left + wide > width:
            what = f"decode_and_crop_jpeg: crop_window {window.tolist()} of {height} by {width} pixels"
            raise InvalidArgumentError(what, "Give y, x, height and width of a window within the picture.")
        return pixels[top : top + high, left : left + wide].copy()

    shape = (None, None, channels or None)
    given = [picture, convert_to_tensor(crop_window, int32)]
    return in_python("DecodeAndCropJpeg", cut, given, [(uint8, shape)], name)[0]


@example("print(tf.image.decode_png(tf.placeholder(tf.string), channels=1).shape)", "(?, ?, 1)")
def decode_png(contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None) -> Any:
    """The picture of a PNG file (or JPEG, or GIF of one frame) as uint8 or uint16 [height, width, channels]."""
    return _decoded("decode_png", contents, channels, name, _ANY[:3], dtype)


@example("print(tf.image.decode_bmp(tf.placeholder(tf.string), channels=3).shape)", "(?, ?, 3)")
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Any:
    """The picture of a BMP file as uint8 [height, width, channels]."""
    return _decoded("decode_bmp", contents, channels, name, ["BMP"])


@example("print(tf.image.decode_gif(tf.placeholder(tf.string)).shape)", "(?, ?, ?, 3)")
def decode_gif(contents: Any, name: str | None = None) -> Any:
    """The frames of a GIF file as uint8 [frames, height, width, 3]."""
    return _decoded("decode_gif", contents, 3, name, ["GIF"], animated=True)


@example(
    "print(tf.image.decode_image(tf.placeholder(tf.string), expand_animations=False).shape)", "(?, ?, ?)"
)
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Any:
    """The picture of a BMP, GIF, JPEG or PNG file, of unknown rank: with ``expand_animations`` a GIF has frames first.

    In a floating dtype it holds 0 to 1.
    """
    return _decoded("decode_image", contents, channels, name, _ANY, dtype, expand_animations)


def _encoded(form: str, image: Any, name: str | None, options: dict[str, Any]) -> Any:
    def write(image: numpy.ndarray) -> bytes:
        pixels = image[..., 0] if image.shape[-1] == 1 else image
        out = io.BytesIO()
        _pillow(f"encode_{form}").fromarray(pixels).save(out, form, **options)
        return out.getvalue()

    return in_python(f"Encode{form.title()}", write, [image], [(string, ())], name)[0]


@example("print(tf.image.encode_jpeg(tf.zeros([2, 2, 3], tf.uint8)).shape)", "()")
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Any:
    """A uint8 image [height, width, 1 or 3] as the content of a JPEG file.

    ``format``, ``density_unit`` and ``xmp_metadata`` raise ArgumentError where they are set.
    """
    _refuse_changed("encode_jpeg", format=(format, ""), density_unit=(density_unit, "in"))
    _refuse_changed("encode_jpeg", xmp_metadata=(xmp_metadata, ""))
    options = {
        "quality": quality, "progressive": progressive, "optimize": optimize_size,
        "subsampling": "4:2:0" if chroma_downsampling else "4:4:4", "dpi": (x_density, y_density),
    }  # fmt: skip
    return _encoded("jpeg", image, name, options)


@example("print(tf.image.encode_png(tf.zeros([2, 2, 1], tf.uint8)).shape)", "()")
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """A uint8 image [height, width, 1, 3 or 4] as the content of a PNG file."""
    options = {} if compression < 0 else {"compress_level": compression}
    return _encoded("png", image, name, options)


@example("print(tf.image.extract_jpeg_shape(tf.placeholder(tf.string)).shape)", "(3,)")
def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Any:
    """Height, width and channels of a JPEG file."""
    kind = as_dtype(output_type)

    def measure(content: bytes) -> numpy.ndarray:
        image = _pillow("extract_jpeg_shape").open(io.BytesIO(content), formats=["JPEG"])
        return numpy.array([image.height, image.width, len(image.getbands())], kind.numpy)

    return _of_file("extract_jpeg_shape", measure, contents, kind, (3,), name)


@example('tf.image.is_jpeg(b"GIF89a")', "False")
def is_jpeg(contents: Any, name: str | None = None) -> Any:
    """Whether the content begins as JPEG files do."""
    look = lambda content: numpy.bool_(content.startswith(b"\xff\xd8\xff"))
    return _of_file("is_jpeg", look, contents, boolean, (), name)
