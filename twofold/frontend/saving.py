"""Saving objects that hold tensors to a file, and loading them."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import tempfile
import zlib
from typing import Any

from twofold.dtypes import BY_NAME
from twofold.frontend.creation import check_device

_MAGIC = b"TWOFOLD\x01"
_LENGTH = 8
_CHECKSUM = 4
_HEADER = len(_MAGIC) + _LENGTH + _CHECKSUM

# What a state may consist of: containers, numbers and tensors, none of which runs code from the file.
_SAFE = {
    ("collections", "OrderedDict"),
    ("collections", "Counter"),
    ("collections", "defaultdict"),
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "dict"),
    ("builtins", "complex"),
    ("builtins", "slice"),
    ("builtins", "bytearray"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("twofold", "Tensor"),
    ("twofold.nn.parameter", "Parameter"),
    ("twofold.nn.parameter", "Buffer"),
    ("twofold.nn.state", "StateDict"),
    ("twofold.frontend.methods", "_rebuild"),
    ("_codecs", "encode"),
}


class _SafeUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # A name with dots would reach through a module to whatever that imports.
        named = module == "twofold.dtypes" and (name in BY_NAME or name == "Size")
        if not named and (module, name) not in _SAFE:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file refers to {module}.{name}, which is no part of a state. "
                "Pass weights_only=False if you trust the file: loading it can then run code."
            )
        return super().find_class(module, name)


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 4, **_: Any) -> None:
    """Write ``obj`` to a path or a file. A path gets its new content at once, or keeps the old one.

    >>> import twofold as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    body = pickle_module.dumps(obj, protocol=pickle_protocol)
    content = (
        _MAGIC + len(body).to_bytes(_LENGTH, "little") + zlib.crc32(body).to_bytes(_CHECKSUM, "little") + body
    )
    if hasattr(f, "write"):
        f.write(content)
        return
    path = os.fspath(f)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".saving-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: Any = None,
) -> Any:
    """Read what ``save`` wrote.

    With ``weights_only`` the file may hold containers, numbers and tensors only. Raises RuntimeError for a
    file that is not ours, is cut off or was changed, UnpicklingError for one that holds other classes.

    >>> import twofold as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.tensor([1.0, 2.0])}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 2.])}
    """
    if isinstance(map_location, str) or hasattr(map_location, "index"):
        check_device(map_location)
    if hasattr(f, "read"):
        content, name = f.read(), getattr(f, "name", "the file")
    else:
        with open(f, "rb") as file:
            content, name = file.read(), os.fspath(f)
    body = _checked(content, name)
    if weights_only:
        return _SafeUnpickler(io.BytesIO(body)).load()
    return (pickle_module or pickle).loads(body)


def _checked(content: bytes, name: Any) -> bytes:
    """The pickle in a saved file; raises RuntimeError unless it is whole."""
    if not content.startswith(_MAGIC):
        raise RuntimeError(f"load: {name} was not written by twofold.save. Give a file that it wrote.")
    body = content[_HEADER:]
    length = int.from_bytes(content[len(_MAGIC) : len(_MAGIC) + _LENGTH], "little")
    if len(content) < _HEADER or len(body) < length:
        raise RuntimeError(
            f"load: {name} is truncated: {len(body)} bytes of {length} are there. Save it again, "
            f"or take an older copy."
        )
    body = body[:length]
    if zlib.crc32(body) != int.from_bytes(content[_HEADER - _CHECKSUM : _HEADER], "little"):
        raise RuntimeError(
            f"load: {name} is corrupt: its checksum does not fit. Save it again, or take an older copy."
        )
    return body
