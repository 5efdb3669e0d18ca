"""Variables in parts along one axis: what says how many there are, and the parts as one value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from twofold.errors import ShapeError
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, install_operators
from twofold.static.arrays.shape_ops import concat, identity, split
from twofold.static.graph.docstrings import START, example
from twofold.static.graph.graph import Tensor, describe
from twofold.static.graph.tensor_shape import TensorShape, shape_text
from twofold.static.variables.variable import Variable

Partitioner = Callable[..., list[int]]


class PartitionInfo(NamedTuple):
    """What initializers are told of a part: the shape of the whole, and where the part begins."""

    full_shape: list[int]
    var_offset: list[int]


def _along(axis: int, count: Callable[[list[int], int], int]) -> Partitioner:
    """A partitioner of ``axis`` into as many parts as ``count`` says, of a shape and the bytes of an element."""

    def partitioner(shape: Any, dtype: Any, **_: Any) -> list[int]:
        sizes = [int(size) for size in TensorShape(shape)]
        if not -len(sizes) <= axis < len(sizes):
            raise ValueError(
                f"a partitioner of axis {axis} for shape {shape_text(sizes)}, at {here()}. Give an axis that it has."
            )
        found = [1] * len(sizes)
        found[axis] = count(sizes, as_dtype(dtype).itemsize)
        return found

    return partitioner


@example("print(tf.fixed_size_partitioner(3)(tf.TensorShape([8, 2]), tf.float32))", "[3, 1]")
def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """What divides variables into ``num_shards`` parts along ``axis``."""
    return _along(axis, lambda sizes, _: min(num_shards, sizes[axis]))


@example("print(tf.variable_axis_size_partitioner(32)(tf.TensorShape([8, 2]), tf.float32))", "[2, 1]")
def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """What divides variables into parts of at most ``max_shard_bytes``, but into ``max_shards`` parts at most.

    ``bytes_per_string_element`` changes nothing: variables hold no strings.
    """
    if max_shard_bytes < 1 or (max_shards is not None and max_shards < 1):
        raise ValueError(
            f"variable_axis_size_partitioner: {max_shard_bytes} bytes and {max_shards} parts, at {here()}. "
            "Give positive numbers."
        )

    def count(sizes: list[int], itemsize: int) -> int:
        each = max(1, max_shard_bytes // (math.prod(sizes) * itemsize // sizes[axis]))
        found = math.ceil(sizes[axis] / each)
        return found if max_shards is None else min(max_shards, found)

    return _along(axis, count)


@example("print(tf.min_max_variable_partitioner(4, 0, 16)(tf.TensorShape([8, 2]), tf.float32))", "[4, 1]")
def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """What divides variables into at most ``max_partitions`` parts, of at least ``min_slice_size`` bytes.

    ``bytes_per_string_element`` changes nothing: variables hold no strings.
    """

    def count(sizes: list[int], itemsize: int) -> int:
        return max(
            1, min(sizes[axis], max_partitions, math.ceil(math.prod(sizes) * itemsize / min_slice_size))
        )

    return _along(axis, count)


@example(
    'w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2))',
    START,
    "print([part.name for part in w], session.run(tf.reduce_sum(w)))",
    "['w/part_0:0', 'w/part_1:0'] 6.0",
)
class PartitionedVariable:
    """Variables that are the parts of one, along an axis; where a tensor is expected they are put together.

    ``get_variable`` makes them where it has a ``partitioner``.
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any, variable_list: Sequence[Variable], partitions: Sequence[int]
    ) -> None:
        self.name, self.dtype, self.shape = name, as_dtype(dtype), TensorShape(shape)
        self.partitions = list(partitions)
        self._parts = list(variable_list)
        self._axis = divided_axis(self.partitions, name)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def as_tensor(self) -> Tensor:
        """The parts behind each other."""
        graph = self._parts[0].graph
        with graph.name_scope(f"{self.name}/ConcatPartitions/"):
            joined = concat([part.value() for part in self._parts], self._axis)
        with graph.name_scope(None):
            made: Tensor = identity(joined, name=self.name)
        return made

    _as_graph_element = as_tensor

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self.shape

    def describe(self) -> str:
        """Name, type and line, for messages."""
        return f"'{self.name}' of parts of {self.dtype.name}{self.shape} ({self._parts[0].op.where})"

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Write the parts of ``value``: what ``Variable.assign`` returns, for each part."""
        return self._changed("assign", value, use_locking, name, read_value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Add the parts of ``value``: what ``Variable.assign_add`` returns, for each part."""
        return self._changed("assign_add", value, use_locking, name, read_value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Subtract the parts of ``value``: what ``Variable.assign_sub`` returns, for each part."""
        return self._changed("assign_sub", value, use_locking, name, read_value)

    def _changed(self, method: str, value: Any, *options: Any) -> list[Any]:
        given = convert_to_tensor(value)
        if not self.shape.is_compatible_with(given.get_shape()):
            what = f"{describe(given)} for {self.describe()}"
            raise failed(
                f"PartitionedVariable.{method}", ShapeError(what, "Give a value of the variable's shape.")
            )
        # a split of a size that only a run tells raises there unless the parts are all of it
        pieces = split(given, [part.type_.shape[self._axis] for part in self._parts], self._axis)
        return [getattr(part, method)(piece, *options) for part, piece in zip(self._parts, pieces)]

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable '{self.name}' shape={self.shape} dtype={self.dtype.name} parts={len(self)}>"


install_operators(PartitionedVariable)


def divided_axis(partitions: Sequence[int], name: str) -> int:
    """The axis that numbers of parts divide; raises ValueError where these are several."""
    axes = [axis for axis, count in enumerate(partitions) if count != 1]
    if len(axes) > 1 or any(count < 1 for count in partitions):
        raise ValueError(
            f"get_variable: '{name}' is divided into {list(partitions)} parts, at {here()}. Divide one axis."
        )
    return axes[0] if axes else 0


def parts_of(shape: list[int], partitions: Sequence[int], name: str) -> list[tuple[list[int], list[int]]]:
    """Offset and shape of each part; the first ones are larger by one where sizes do not divide evenly."""
    axis = divided_axis(partitions, name)
    if len(partitions) != len(shape) or partitions[axis] > shape[axis]:
        raise ValueError(
            f"get_variable: {list(partitions)} parts of '{name}' of shape {shape_text(shape)}, at {here()}. "
            "Give as many numbers as axes, and no more parts than rows."
        )
    each, more = divmod(shape[axis], partitions[axis])
    found, start = [], 0
    for k in range(partitions[axis]):
        size = each + (k < more)
        offset, sizes = [0] * len(shape), list(shape)
        offset[axis], sizes[axis] = start, size
        found.append((offset, sizes))
        start += size
    return found


def piece_of(value: Any, offset: Sequence[int], sizes: Sequence[int]) -> Any:
    """The part of a tensor or an array."""
    return convert_to_tensor(value)[tuple(slice(at, at + size) for at, size in zip(offset, sizes))]
