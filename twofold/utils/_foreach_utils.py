"""Groups of tensors for the ``_foreach_`` functions, by the names of ``torch.utils._foreach_utils``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Split lists of tensors by the device and dtype of the tensors of the first list.

    Args:
        tensorlistlist: lists of one length, or empty; only the first has a tensor at every index.
        with_indices: whether to list the indices of each group, too.

    Returns:
        The lists of each group and its indices (an empty list without ``with_indices``), by device and dtype.

    >>> import twofold as torch
    >>> groups = _group_tensors_by_device_and_dtype([[torch.ones(1), torch.ones(2).double()]], with_indices=True)
    >>> [(dtype, indices) for (device, dtype), (lists, indices) in groups.items()]
    [(twofold.float32, [0]), (twofold.float64, [1])]
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("give lists of tensors, the first with one tensor at least")
    first = tensorlistlist[0]
    for tensors in tensorlistlist:
        if len(tensors) not in (0, len(first)):
            raise RuntimeError(
                f"lists of one length are grouped, got {len(first)} and {len(tensors)} tensors"
            )
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for index, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(f"the first list has a tensor at every index, got None at {index}")
        lists, indices = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                group.append(tensors[index])
        if with_indices:
            indices.append(index)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    return bool(device.type == "cpu")


def _has_foreach_support(tensors: Sequence[Any], device: Any) -> bool:
    return _device_has_foreach_support(device) and all(
        tensor is None or tensor.device == device for tensor in tensors
    )
