"""Data of models: arrays, datasets, iterators and sequences of batches, as batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from twofold.runtime.tracing import here
from twofold.static.data.datasets import Dataset
from twofold.static.keras.state import get_session


class Batch(NamedTuple):
    """Arrays of some elements: inputs, labels, and for each label weights of the elements, or None."""

    inputs: list[Any]
    labels: list[Any]
    weights: list[Any]

    def __len__(self) -> int:
        return len(self.inputs[0])

    def rows(self, rows: Any) -> Batch:
        """The batch of some elements."""
        weights = [None if one is None else one[rows] for one in self.weights]
        return Batch([one[rows] for one in self.inputs], [one[rows] for one in self.labels], weights)


class Names(NamedTuple):
    """What inputs and outputs of a model are called; empty where that is not known yet."""

    inputs: Sequence[str]
    outputs: Sequence[str]


def by_name(value: Any, names: Sequence[str], what: str) -> list[Any]:
    """The items of a dict in the order of ``names``, which must be all of its keys; of a list, as they are."""
    if not isinstance(value, Mapping):
        return list(value) if isinstance(value, (list, tuple)) else [value]
    if not names:
        return list(value.values())
    if set(value) != set(names):
        raise ValueError(
            f"{what} are given for {', '.join(map(str, value))}, at {here()}. Give one for each of {', '.join(names)}."
        )
    return [value[name] for name in names]


def _arrays(value: Any, names: Sequence[str], what: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [numpy.asarray(one) for one in by_name(value, names, what)]
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "shape"):
        return [numpy.asarray(one) for one in value]
    return [numpy.asarray(value)]


def _columns(labels: Sequence[Any]) -> list[Any]:
    """Labels with an axis behind the batch."""
    return [label[:, None] if label.ndim == 1 else label for label in labels]


def _by_class(label: Any, class_weight: Mapping[int, float]) -> Any:
    numbers = label.argmax(-1) if label.shape[-1] > 1 else label[..., 0]
    missing = set(numbers.ravel().tolist()) - set(class_weight)
    if missing:
        raise ValueError(
            f"class_weight must contain all classes in the data. The classes {sorted(missing)} exist in the data but "
            f"not in class_weight, at {here()}."
        )
    return numpy.vectorize(lambda one: class_weight[int(one)], otypes=["f"])(numbers)


def _weights(given: Any, class_weight: Any, labels: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The weights of the elements for each label; one array is that of all of them where there is one label."""
    count = len(labels)
    if isinstance(given, Mapping):
        found = [given.get(name) for name in names]
    elif isinstance(given, (list, tuple)) and count > 1:
        found = list(given)
    else:
        found = [given] * count
    if len(found) != count:
        raise ValueError(
            f"{len(found)} arrays of weights for {count} outputs, at {here()}. Give one for each."
        )
    found = [None if one is None else numpy.asarray(one, "f") for one in found]
    if class_weight is None:
        return found
    keyed = isinstance(class_weight, Mapping) and set(class_weight) <= set(names)
    classes = [class_weight.get(name) for name in names] if keyed else by_output(class_weight, count)
    made = [None if one is None else _by_class(label, one) for label, one in zip(labels, classes)]
    return [b if a is None else a if b is None else a * b for a, b in zip(found, made)]


def by_output(value: Any, count: int) -> list[Any]:
    """A value for each output: the items of a list, or the value for the first of all."""
    if isinstance(value, (list, tuple)):
        return [*value, *[None] * (count - len(value))]
    return [value] if count == 1 else [value, *[None] * (count - 1)]


def sized(x: Any, y: Any, weights: Any, class_weight: Any, names: Names) -> Batch:
    """Arrays of all elements; raises ValueError where they are not equally many."""
    inputs, labels = _arrays(x, names.inputs, "Inputs"), _columns(_arrays(y, names.outputs, "Labels"))
    lengths = {len(one) for one in (*inputs, *labels)}
    if len(lengths) != 1:
        raise ValueError(f"inputs and labels of lengths {sorted(lengths)}, at {here()}. Make them equal.")
    return Batch(inputs, labels, _weights(weights, class_weight, labels, names.outputs))


def divided(data: Batch, share: float) -> tuple[Batch, Batch]:
    """The last part of arrays, and the rest."""
    first = int(len(data) * (1.0 - share))
    return data.rows(slice(first, None)), data.rows(slice(first))


def _is_sequence(x: Any) -> bool:
    return hasattr(x, "__getitem__") and hasattr(x, "__len__") and hasattr(x, "on_epoch_end")


def gives_batches(x: Any) -> bool:
    """Whether data are no arrays, but give them batch by batch."""
    return isinstance(x, Dataset) or _is_sequence(x) or (hasattr(x, "__next__") and not hasattr(x, "shape"))


class Stream:
    """The batches of arrays, or those that a dataset, an iterator or a sequence gives.

    With ``steps`` an epoch is as many batches of an iterator or a dataset, and the next one goes on where it ended,
    unless it ``restarts``.
    """

    def __init__(
        self,
        data: Any,
        names: Names,
        size: int = 32,
        shuffle: Any = False,
        steps: int | None = None,
        class_weight: Any = None,
        restarts: bool = False,
    ) -> None:
        self.of_arrays, self.of_dataset = isinstance(data, Batch), isinstance(data, Dataset)
        self._restarts = restarts
        self._data, self._names, self._size, self._shuffle = data, names, size, shuffle
        self._steps, self._class_weight = steps, class_weight
        self._rest: Iterator[Any] | None = None

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch."""
        if self.of_arrays:
            yield from self._of_arrays()
            return
        source = self._source()
        for _ in range(self._steps) if self._steps is not None else iter(int, 1):
            try:
                item = next(source)
            except StopIteration:
                return
            parts = list(item) if isinstance(item, tuple) else [item]
            labels, weights = [*parts[1:], None, None][:2]
            yield sized(parts[0], labels, weights, self._class_weight, self._names)

    def _source(self) -> Iterator[Any]:
        if self._rest is not None:
            return self._rest
        made = _items(self._data, self._shuffle)
        again = self.of_dataset or _is_sequence(self._data)
        if not again or (self._steps is not None and not self._restarts):
            self._rest = made
        return made

    def _of_arrays(self) -> Iterator[Batch]:
        whole, size = self._data, self._size
        starts = list(range(0, len(whole), size))
        # The generator that ``numpy.random.seed`` seeds, as Keras's.
        if self._shuffle == "batch":
            full = len(whole) // size
            order = [*numpy.random.permutation(full).tolist(), *range(full, len(starts))]  # noqa: NPY002
            chosen = [numpy.arange(starts[k], min(starts[k] + size, len(whole))) for k in order]
        else:
            rows = numpy.arange(len(whole))
            rows = numpy.random.permutation(len(whole)) if self._shuffle else rows  # noqa: NPY002
            chosen = [rows[start : start + size] for start in starts]
        for rows in chosen[: self._steps]:
            yield whole.rows(rows)


def _items(data: Any, shuffle: Any) -> Iterator[Any]:
    if isinstance(data, Dataset):
        yield from data.arrays(_evaluated)
    elif _is_sequence(data):
        order = numpy.arange(len(data))
        if shuffle:
            numpy.random.shuffle(order)  # noqa: NPY002
        for index in order:
            yield data[int(index)]
        data.on_epoch_end()
    else:
        yield from data


_evaluated: Callable[[Any], Any] = lambda tensors: get_session().run(list(tensors)) if tensors else []
