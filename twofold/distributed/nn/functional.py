"""Operations of all processes of a group, as functions whose results have gradients. A group has one process."""

from __future__ import annotations

from collections.abc import Sequence

from twofold import _core
from twofold.distributed.collectives import ReduceOp, check_root, only
from twofold.distributed.process_group import ProcessGroup, member

Tensor = _core.Tensor


def _result(tensor: Tensor) -> Tensor:
    """A tensor of its own with the values of ``tensor``, which has its gradient."""
    return tensor.clone()


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """What ``op`` makes of the tensors of all processes: of one, a tensor with its values.

    >>> import twofold as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.distributed.nn.all_reduce(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> torch.distributed.destroy_process_group()
    """
    ReduceOp(op)
    member(group)
    return _result(tensor)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """As ``all_reduce``, for the process ``dst``. Raises ValueError for a process that is not in the group."""
    check_root("reduce", dst)
    return all_reduce(tensor, op, group)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of the process ``src``. Raises ValueError for a process that is not in the group."""
    check_root("broadcast", src)
    member(group)
    return _result(tensor)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in the order of their ranks."""
    member(group)
    return (_result(tensor),)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, for the process ``dst``. Raises ValueError for one that is not in the group."""
    check_root("gather", dst)
    return all_gather(tensor, group)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """This process's tensor among those of the process ``src``.

    Raises ValueError for a process that is not in the group, and unless there is one tensor for each process.
    """
    check_root("scatter", src)
    member(group)
    return _result(only("scatter", tensors))


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
) -> Tensor:
    """What ``op`` makes of the tensors that all processes have for this one, also written to ``output``.

    Raises ValueError unless there is one tensor for each process.
    """
    ReduceOp(op)
    member(group)
    return output.copy_(_result(only("reduce_scatter", input_list)))


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
) -> tuple[Tensor, ...]:
    """The tensors that all processes have for this one, also written to ``output_tensor_list``.

    Raises ValueError unless there is one tensor for each process in both lists.
    """
    member(group)
    output = only("all_to_all", output_tensor_list)
    return (output.copy_(_result(only("all_to_all", input_tensor_list))),)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """The parts of ``input`` that all processes have for this one, joined along the first axis in ``output``.

    Raises ValueError where the sizes of the parts are not that of the one part there is.
    """
    for what, sizes, tensor in (
        ("output_split_sizes", output_split_sizes, output),
        ("input_split_sizes", input_split_sizes, input),
    ):
        if sizes and (only(what, sizes) != tensor.shape[0]):
            raise ValueError(f"{what}: {list(sizes)} of a first axis of {tensor.shape[0]}. Give its size.")
    member(group)
    return output.copy_(_result(input))
