"""How tensors are shown: values through NumPy's formatter, in PyTorch's dress."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.errors import ArgumentError
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
    """Set how tensors print; None leaves a setting as it is.

    ``profile`` is "default", "short" or "full" and sets all but ``sci_mode``, before the others do.

    >>> import twofold as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([0.123456])
    tensor([0.12])
    >>> torch.set_printoptions(precision=4)
    """
    if profile is not None and profile not in _PROFILES:
        raise ArgumentError(f"set_printoptions: profile {profile!r}", "Use 'default', 'short' or 'full'.")
    for name, value in _PROFILES.get(profile or "", {}).items():
        setattr(options, name, value)
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems),
                        ("linewidth", linewidth), ("sci_mode", sci_mode)):  # fmt: skip
        if value is not None:
            setattr(options, name, value)


def _float_text(value: float, scientific: bool) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if scientific:
        return f"{value:.{options.precision}e}"
    return f"{value:.{options.precision}f}"


def _formatter(array: numpy.ndarray) -> Any:
    finite = numpy.abs(array[numpy.isfinite(array)].astype(numpy.float64))
    nonzero = finite[finite != 0]
    if nonzero.size == 0 or numpy.all(nonzero == numpy.floor(nonzero)):
        big = nonzero.size > 0 and nonzero.max() >= 1e8
        return lambda x: (
            f"{x:.{options.precision}e}"
            if big and numpy.isfinite(x)
            else f"{x:.0f}."
            if numpy.isfinite(x)
            else str(x)
        )
    spread = nonzero.max() / nonzero.min() > 1000.0 or nonzero.max() > 1e8 or nonzero.min() < 1e-4
    scientific = spread if options.sci_mode is None else options.sci_mode
    return lambda x: _float_text(float(x), scientific)


def array_text(array: numpy.ndarray, indent: int) -> str:
    """The elements of an array, nested in brackets, aligned in columns."""
    formatter: Any = None
    if array.dtype.kind == "c" and array.size:
        real, imag = (_formatter(part) for part in (array.real, array.imag))
        formatter = {
            "complex_kind": lambda z: f"{real(z.real)}{'' if imag(z.imag)[0] == '-' else '+'}{imag(z.imag)}j"
        }
    if array.dtype.kind == "f" and array.size:
        one = _formatter(array)
        shown = array.ravel()
        if array.size > options.threshold:
            shown = numpy.concatenate([shown[: options.edgeitems], shown[-options.edgeitems :]])
        width = max(len(one(x)) for x in shown)
        formatter = {"float_kind": lambda x: one(x).rjust(width)}
    return numpy.array2string(
        array, separator=", ", prefix=" " * indent, formatter=formatter, threshold=options.threshold,
        edgeitems=options.edgeitems, max_line_width=options.linewidth,
    )  # fmt: skip


def display(tensor: Tensor) -> str:
    """``repr`` of a tensor: its values, with dtype and gradient where they are not the usual ones."""
    if tensor._is_symbolic:
        shape = ", ".join("?" if size < 0 else str(size) for size in tensor.type_.shape)
        name = getattr(tensor, "name", None)
        label = f"'{name}' " if name else ""
        return f"<tensor {label}shape=({shape}) dtype={tensor.dtype.name}, not yet bound>"
    prefix = "Parameter containing:\ntensor(" if type(tensor).__name__ == "Parameter" else "tensor("
    array = tensor.detach().numpy()
    if array.size == 0 and array.ndim != 1:
        body = f"[], size={tuple(array.shape)}"
    else:
        body = array_text(numpy.asarray(array), 7)
    suffix = []
    default = get_default_dtype()
    usual = (default,) if array.size == 0 else (default, default.complex, dtypes.int64, dtypes.bool_)
    if tensor.dtype not in usual:
        suffix.append(f"dtype={tensor.dtype!r}")
    if tensor.requires_grad:
        node = grad_fn(tensor)
        suffix.append("requires_grad=True" if node is None else f"grad_fn=<{type(node).__name__}>")
    return prefix + ", ".join([body, *suffix]) + ")"
