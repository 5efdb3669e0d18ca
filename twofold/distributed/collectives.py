"""Operations of all processes of a group on tensors and objects. With one process, each takes its own part."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

from twofold import _core
from twofold.distributed.process_group import ProcessGroup, Work, member
from twofold.frontend.options import check_device

Tensor = _core.Tensor


class ReduceOp(Enum):
    """How values of several processes are joined."""

    SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR, AVG = range(8)


reduce_op = ReduceOp  # the name in old programs
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's name of the class of the values


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def check_root(what: str, rank: int | None) -> None:
    """Raise ValueError for a process that is not in the group."""
    if rank not in (0, None):
        raise ValueError(f"{what}: there is no process {rank} in a group of 1. Use 0.")


def only(what: str, values: Any) -> Any:
    """The value for, or from, the only process; ValueError where there is not exactly one."""
    if values is None or len(values) != 1:
        count = "none" if values is None else len(values)
        raise ValueError(f"{what}: {count} values for a group of 1. Give a list of one.")
    return values[0]


def _write(output: Tensor, value: Tensor) -> None:
    """Write a value of as many elements; RuntimeError for another number of them."""
    with _core.GradientMode(False):
        output.copy_(value.reshape(output.shape))


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Give every process what ``op`` makes of the tensors of all: of one it is the tensor itself.

    >>> import twofold as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.distributed.all_reduce(x)
    >>> x
    tensor([1., 2.])
    >>> torch.distributed.destroy_process_group()
    """
    ReduceOp(op)
    member(group)
    return _done(async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As ``all_reduce``, for one process alone."""
    check_root("reduce", dst)
    check_root("reduce", group_dst)
    return all_reduce(tensor, op, group, async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give every process the tensor of one."""
    check_root("broadcast", src)
    check_root("broadcast", group_src)
    member(group)
    return _done(async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes to a list of as many."""
    member(group)
    _write(only("all_gather", tensor_list), tensor)
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes to one, joined or stacked along its first axis."""
    member(group)
    _write(output_tensor, input_tensor)
    return _done(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write what ``op`` makes of the tensors that all processes have for this one."""
    ReduceOp(op)
    member(group)
    _write(output, only("reduce_scatter", input_list))
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As ``reduce_scatter``, with the tensors for all processes as one."""
    return reduce_scatter(output, [input], op, group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all processes to a list of one process."""
    check_root("gather", dst)
    check_root("gather", group_dst)
    return all_gather(gather_list or [], tensor, group, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write to each process its tensor of a list of one process."""
    check_root("scatter", src)
    check_root("scatter", group_src)
    return all_gather([tensor], only("scatter", scatter_list), group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write to each process the tensors that all have for it."""
    return all_gather(output_tensor_list, only("all_to_all", input_tensor_list), group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As ``all_to_all``, with the tensors of all processes as one, in parts of given sizes."""
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes:
            only("all_to_all_single", sizes)
    return all_gather_into_tensor(output, input, group, async_op)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Enter in a list of each process its object of a list of one process."""
    check_root("scatter_object_list", src)
    check_root("scatter_object_list", group_src)
    member(group)
    scatter_object_output_list[0] = only("scatter_object_list", scatter_object_input_list)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Enter the objects of all processes in a list of as many."""
    member(group)
    only("all_gather_object", object_list)
    object_list[0] = obj


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Enter the objects of all processes in a list of one process."""
    check_root("gather_object", dst)
    check_root("gather_object", group_dst)
    all_gather_object(object_gather_list or [], obj, group)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give every process the objects of one."""
    check_root("broadcast_object_list", src)
    check_root("broadcast_object_list", group_src)
    check_device(device)
    member(group)


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for all processes: there is none to wait for."""
    for device in device_ids or ():
        check_device(f"cuda:{device}")
    member(group)
    return _done(async_op)


def _to_another(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ValueError: there is no other process."""
    member(None)
    raise ValueError("there is no other process in a group of 1 to send to or receive from")


send = recv = isend = irecv = _to_another
