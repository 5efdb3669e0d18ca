"""How tensors are shown: as PyTorch shows them."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.frontend.grad_fn import grad_fn
from twofold.frontend.options import get_default_dtype

Tensor = _core.Tensor


class PrintOptions:
    """Precision and limits of printed tensors."""

    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


options = PrintOptions()


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": sys.maxsize, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; None leaves a setting as it is, but ``sci_mode=None`` chooses by the values again.

    ``profile`` is "default", "short" or "full" and sets all but ``sci_mode``, before the others do; any other name
    sets nothing, as in PyTorch.

    >>> import twofold as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([0.123456])
    tensor([0.12])
    >>> torch.set_printoptions(precision=4)
    """
    for name, value in _PROFILES.get(profile or "", {}).items():
        setattr(options, name, value)
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems),
                        ("linewidth", linewidth)):  # fmt: skip
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


class Formatter:
    """How elements are written: one form and width for all, chosen from the values that are shown.

    Source: PyTorch, ``torch/_tensor_str.py``, for what is written.
    """

    def __init__(self, shown: numpy.ndarray) -> None:
        self._floating, self._whole, self._scientific = shown.dtype.kind == "f", True, False
        self.width = 1
        if not self._floating:
            self.width = max([1, *(len(str(value)) for value in shown.ravel())])
            return
        values = shown[numpy.isfinite(shown) & (shown != 0)].astype(numpy.float64)
        if values.size == 0:
            return
        sizes = numpy.abs(values)
        self._whole = bool(numpy.all(values == numpy.floor(values)))
        wide_range = sizes.max() / sizes.min() > 1000.0 or sizes.max() > 1e8
        self._scientific = bool(wide_range or (not self._whole and sizes.min() < 1e-4))
        if options.sci_mode is not None:
            self._scientific = options.sci_mode
        self.width = max(1, *(len(self._text(value)) for value in values))

    def _text(self, value: Any) -> str:
        if not self._floating or not numpy.isfinite(value):
            return str(value)
        if self._scientific:
            return f"{value:.{options.precision}e}"
        return f"{value:.0f}." if self._whole else f"{value:.{options.precision}f}"

    def __call__(self, value: Any) -> str:
        """The element, filled up with blanks on the left."""
        return self._text(value).rjust(self.width)


class ComplexFormatter:
    """A formatter for each part."""

    def __init__(self, shown: numpy.ndarray) -> None:
        self._real, self._imag = Formatter(shown.real), Formatter(shown.imag)
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, value: Any) -> str:
        """Both parts, with a sign between them."""
        imaginary = self._imag(value.imag).lstrip() + "j"
        return f"{self._real(value.real)}{'' if imaginary[0] in '+-' else '+'}{imaginary}"


def _edges(count: int, summarized: bool) -> list[int | None]:
    """The positions along an axis that are shown; None stands for those left out."""
    edge = options.edgeitems
    if not summarized or count <= 2 * edge:
        return list(range(count))
    return [*range(edge), None, *range(count - edge, count)]


def _nested(array: numpy.ndarray, indent: int, summarized: bool, one: Any) -> str:
    if array.ndim == 0:
        return str(one(array[()]))
    positions = _edges(len(array), summarized)
    if array.ndim > 1:
        rows = ["..." if k is None else _nested(array[k], indent + 1, summarized, one) for k in positions]
        return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(rows) + "]"
    words = [" ..." if k is None else one(array[k]) for k in positions]
    count = max(1, (options.linewidth - indent) // (one.width + 2))
    lines = [", ".join(words[k : k + count]) for k in range(0, len(words), count)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def array_text(array: numpy.ndarray, indent: int) -> str:
    """The elements of an array, nested in brackets, aligned in columns."""
    summarized, shown = array.size > options.threshold, array
    if summarized:
        for axis, count in enumerate(array.shape):
            shown = shown.take([k for k in _edges(count, True) if k is not None], axis)
    formatter = ComplexFormatter(shown) if array.dtype.kind == "c" else Formatter(shown)
    return _nested(array, indent, summarized, formatter)


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """A string and what follows, on a new line where the last one would be too long."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def display(tensor: Tensor) -> str:
    """``repr`` of a tensor: its values, with dtype and gradient where they are not the usual ones."""
    if tensor._is_symbolic:
        shape = ", ".join("?" if size < 0 else str(size) for size in tensor.type_.shape)
        name = getattr(tensor, "name", None)
        label = f"'{name}' " if name else ""
        return f"<tensor {label}shape=({shape}) dtype={tensor.dtype.name}, not yet bound>"
    prefix = "Parameter containing:\n" if type(tensor).__name__ == "Parameter" else ""
    array = numpy.asarray(tensor._read())
    suffixes = []
    if array.size == 0:
        body = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
    else:
        body = array_text(array, len("tensor("))
    default = get_default_dtype()
    usual = (default,) if array.size == 0 else (default, default.complex, dtypes.int64, dtypes.bool_)
    if tensor.dtype not in usual:
        suffixes.append(f"dtype={tensor.dtype!r}")
    if tensor.requires_grad:
        node = grad_fn(tensor)
        suffixes.append("requires_grad=True" if node is None else f"grad_fn=<{type(node).__name__}>")
    return prefix + _with_suffixes("tensor(" + body, suffixes, len("tensor("))
