"""Which elements of a graph a caller takes, and what stands for a tensor in the arguments of a body."""

from __future__ import annotations

from typing import Any

from twofold.runtime.tracing import here


class Slot:
    """The place of the ``index``-th input tensor in the arguments of a body."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def check_kind(
    item: Any, is_element: bool, is_tensor: bool, allow_tensor: bool, allow_operation: bool
) -> None:
    """Raise TypeError for what is no element or not of a kind allowed, ValueError for the name of such a one."""
    if not is_element:
        what = f"a value of type {type(item).__name__} is neither a tensor nor an operation"
        raise TypeError(f"{what}. Fetch one of those, or its name.")
    if not allow_tensor and not allow_operation:
        raise ValueError(
            f"as_graph_element: neither tensors nor operations are allowed, at {here()}. Allow one kind."
        )
    if not (allow_tensor if is_tensor else allow_operation):
        found, wanted = ("a tensor", "an operation") if is_tensor else ("an operation", "a tensor")
        words = f"{item!r} names {found}" if isinstance(item, str) else f"'{item.name}' is {found}"
        error = ValueError if isinstance(item, str) else TypeError
        raise error(f"as_graph_element: {words}, at {here()}. Give {wanted}.")
