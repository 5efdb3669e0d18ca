"""What PyTorch's functions of new tensors take: the default dtype, device, layout, pinning, order of axes in memory.

There is one device and one layout: anything that would have to change the result raises.
"""

from __future__ import annotations

from inspect import Parameter
from typing import Any

from twofold import _core
from twofold.dtypes import DType, as_dtype, float32
from twofold.ops.shape.contiguity import ORDERS, dense_copy, format_name
from twofold.ops.signatures import keyword

Tensor = _core.Tensor
_default = [float32]


def set_default_dtype(d: Any) -> None:
    """Set the dtype that Python floats become, and that operations on integers and Python floats compute in.

    >>> import twofold as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(0.5).dtype
    twofold.float64
    >>> torch.tensor([1, 2]) / 3
    tensor([0.3333, 0.6667])
    >>> torch.set_default_dtype(torch.float32)

    Raises:
        TypeError: If ``d`` is no floating dtype.
    """
    default = as_dtype(d)
    if default.kind != "f":
        raise TypeError(f"set_default_dtype: {default.name} is no floating dtype. Use float32 or float64.")
    _default[0] = default
    _core.set_default_float(default.code)
    _core.forget_calls_by_types()


def get_default_dtype() -> DType:
    """The dtype that Python floats become.

    >>> import twofold as torch
    >>> torch.get_default_dtype()
    twofold.float32
    """
    return _default[0]


def _cast_operands(*call: Any) -> tuple[Any, ...] | None:
    from twofold.frontend.operand_casts import cast_operands

    return cast_operands(*call)


_core.set_hook("cast_operands", _cast_operands)


class memory_format:
    """An order of axes in memory, by its name.

    >>> import twofold as torch
    >>> torch.tensor([1.0]).contiguous(memory_format=torch.contiguous_format)
    tensor([1.])
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"twofold.{self._name}"


class layout(memory_format):
    """A way of storing elements, by its name: ``strided``, or ``sparse_coo`` for those of ``torch.sparse``.

    >>> import twofold as torch
    >>> torch.tensor([1.0]).layout == torch.strided
    True
    """


LAYOUTS = {
    name: layout(name)
    for name in (
        "strided",
        "sparse_coo",
        "sparse_csr",
        "sparse_csc",
        "sparse_bsr",
        "sparse_bsc",
        "jagged",
        "_mkldnn",
    )
}
"""All that PyTorch names, for programs that compare with them; tensors have the first two."""
strided, sparse_coo = LAYOUTS["strided"], LAYOUTS["sparse_coo"]

FORMATS = {
    name: memory_format(name)
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
}
"""The orders of axes by name."""


def check_device(device: Any) -> None:
    """Raise RuntimeError for a device that is not there."""
    name = getattr(device, "type", device)
    if name is not None and str(name).split(":")[0] != "cpu":
        raise RuntimeError(f"device {str(device)!r} is not available. Use 'cpu'.")


def check_type_device(tensor_type: Any) -> None:
    """Raise RuntimeError for a class such as ``cuda.FloatTensor``, or the name of one."""
    if isinstance(tensor_type, str):
        check_device("cuda" if ".cuda." in tensor_type else None)
    elif isinstance(tensor_type, type):
        check_device(getattr(type(tensor_type), "device", None))


def check_layout(given: Any) -> None:
    """Raise RuntimeError for another layout than ``strided``."""
    if given is not None and given is not strided:
        raise RuntimeError(f"layout {given!r} is not available. Use strided, or leave it out.")


def check_pinned(given: Any) -> None:
    """Raise RuntimeError for pinned memory, which only other devices have a use for."""
    if given:
        raise RuntimeError(
            "pin_memory=True requires an accelerator, and there is only the CPU. Leave pin_memory out."
        )


def in_format(made: Tensor, given: Any) -> Tensor:
    """``made`` in the order of axes of a memory format: itself, or a copy.

    Raises ArgumentError for what is no memory format, ShapeError for one of another number of axes.
    """
    if given is None or format_name(given) not in ORDERS:
        return made
    return dense_copy(made, given)


def check_options(
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> None:
    """Raise for options that would need another device, layout or kind of memory."""
    check_device(device)
    check_layout(layout)
    check_pinned(pin_memory)


OPTIONS: tuple[Parameter, ...] = (
    keyword("out"),
    keyword("dtype"),
    keyword("layout"),
    keyword("device"),
    keyword("requires_grad", False, "bool"),
    keyword("pin_memory", False, "bool"),
    keyword("memory_format"),
)
"""The options as parameters."""
