"""How PyTorch names the gradient functions of operations that have several, by attributes and input types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir.types import TensorType

Naming = Callable[[tuple[Any, ...], Sequence[TensorType]], str]


def over_axes(name: str, all_axes: str, some_axes: str) -> Naming:
    """A reduction with attributes ``(axes, keepdims)``: the suffixes over all axes at once, and over some."""

    def named(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
        axes, keepdims = attrs[0], len(attrs) > 1 and attrs[1]
        return name + (all_axes if len(axes) == len(types[0].shape) and not keepdims else some_axes)

    return named


def beside_number(with_number: str, with_tensor: str, before_number: str = "") -> Naming:
    """A function of two operands: the names where the second or (``before_number``) the first is a Python number."""

    def named(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
        if before_number and types[0].weak:
            return before_number
        return with_number if types[1].weak else with_tensor

    return named


def of_pooling(name: str, rest: str = "") -> Naming:
    """Pooling over as many axes as the first attribute is long; one axis is two for PyTorch, one of them squeezed."""

    def named(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
        count = len(attrs[0])
        return "SqueezeBackward1" if count == 1 else f"{name}{count}D{rest}Backward0"

    return named


def of_product(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
    """The matrix product, by the numbers of axes."""
    names = {(1, 1): "Dot", (1, 2): "Squeeze", (2, 1): "Mv", (2, 2): "Mm", (3, 3): "Bmm"}
    name = names.get((len(types[0].shape), len(types[1].shape)), "UnsafeView")
    return f"{name}Backward{4 if name == 'Squeeze' else 0}"


def of_linear(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
    """``linear``: a product of matrices, or a view of one."""
    if len(types[0].shape) == 2:
        return "AddmmBackward0" if len(types) == 3 else "MmBackward0"
    return "ViewBackward0" if len(types) == 3 else "UnsafeViewBackward0"


def of_permutation(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
    """``permute``, which is a transposition where two of more axes change positions."""
    moved = sum(position != axis for position, axis in enumerate(attrs[0]))
    return "TransposeBackward0" if moved == 2 and len(attrs[0]) > 2 else "PermuteBackward0"


def of_basic_index(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
    """Indexing by integers, slices and new axes: the last of them that changes anything."""
    sizes, _steps, _axes, _reversed, order = attrs
    shape = types[0].shape
    for axis in range(len(shape), -1, -1):
        if ~axis in order:
            return "UnsqueezeBackward0"
        if axis and axis - 1 not in order:
            return "SelectBackward0"
        if axis and sizes[axis - 1] != shape[axis - 1]:
            return "SliceBackward0"
    return "AliasBackward0"


def of_resize(attrs: tuple[Any, ...], types: Sequence[TensorType]) -> str:
    """Resizing, by mode and number of axes."""
    mode, sizes = attrs[0], attrs[1]
    return f"Upsample{mode.title().replace('-', '')}{len(sizes)}DBackward0"
