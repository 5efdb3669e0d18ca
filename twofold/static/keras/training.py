"""Training of models: ``compile``, ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.arrays.shape_ops import placeholder
from twofold.static.control_flow.dependencies import group
from twofold.static.data.datasets import Dataset
from twofold.static.eager.gradient_tape import GradientTape
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.keras import backend, losses, optimizers
from twofold.static.keras.callbacks import Callback, History
from twofold.static.keras.state import learning_phase, phase
from twofold.static.saving import hdf5
from twofold.static.saving.saver import Saver, checkpoint_exists


class _Batch(NamedTuple):
    """Arrays of some elements: inputs, labels, and weights of the elements, if there are any."""

    inputs: list[Any]
    labels: list[Any]
    weights: Any

    def __len__(self) -> int:
        return len(self.inputs[0])


def _arrays(value: Any, names: Sequence[str] = ()) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, dict):
        return [numpy.asarray(value[name]) for name in names or value]
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "shape"):
        return [numpy.asarray(one) for one in value]
    return [numpy.asarray(value)]


def _columns(labels: Sequence[Any]) -> list[Any]:
    """Labels with an axis behind the batch."""
    return [label[:, None] if label.ndim == 1 else label for label in labels]


class _Step:
    """What a batch of a kind (training, measuring, predicting) computes, declared once or computed at once."""

    def __init__(self, model: Trained, batch: _Batch, training: bool) -> None:
        self._model, self._training = model, training
        self._inputs, self.outputs = model._ends(batch.inputs)
        self._labels = [_placeholder(label, kind) for label, kind in zip(batch.labels, model._label_types())]
        self._weights = None if batch.weights is None else placeholder("float32", [None])
        self._fetches = list(self.outputs)
        if self._labels:
            total, measured = model._measured(self.outputs, self._labels, self._weights)
            self._fetches = [total, *measured]
            if training:
                self._fetches.append(_train(model, total))

    def __call__(self, batch: _Batch) -> list[Any]:
        fed = dict(zip([*self._inputs, *self._labels], [*batch.inputs, *batch.labels]))
        if self._weights is not None:
            fed[self._weights] = batch.weights
        trains = learning_phase()
        if hasattr(trains, "type_"):
            fed[trains] = self._training
        found = backend.get_session().run(self._fetches, fed)
        return found[:-1] if self._training else found


def _placeholder(label: Any, dtype: Any) -> Any:
    return placeholder(dtype, [None] * label.ndim)


def _train(model: Trained, total: Any) -> Any:
    variables = model.trainable_weights
    with control_dependencies(list(model.updates)):
        step = group(model.optimizer.minimize(total, var_list=variables))
    if model.when_trained is not None:
        model.when_trained(model.optimizer)
        model.when_trained = None
    return step


def _at_once(model: Trained, batch: _Batch, training: bool) -> list[Any]:
    """The results of a batch where operations are computed at once."""
    weights = None if batch.weights is None else convert_to_tensor(batch.weights, "float32")
    labels = [
        convert_to_tensor(one, kind)
        for one, kind in zip(map(numpy.asarray, batch.labels), model._label_types())
    ]
    with phase(training), GradientTape() as tape:
        outputs = model._called(batch.inputs)
        if not batch.labels:
            return [one.numpy() for one in outputs]
        total, measured = model._measured(outputs, labels, weights)
    if training:
        variables = model.trainable_weights
        model.optimizer.apply_gradients(zip(tape.gradient(total, variables), variables))
    return [one.numpy() for one in (total, *measured)]


class Trained:
    """What models have beside their layers: training, measuring, predicting and saving."""

    name: str
    inputs: list[Any] | None
    outputs: list[Any] | None
    trainable_weights: list[Any]
    weights: list[Any]
    layers: Any
    updates: list[Any]
    losses: list[Any]
    optimizer: Any = None
    stop_training = False
    when_trained: Callable[[Any], None] | None = None
    """Called with the optimizer once it has variables."""
    _functions: list[Callable[..., Any]] = []
    _fed: tuple[list[Any], list[Any]] | None = None

    def compile(
        self,
        optimizer: Any,
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
    ) -> None:
        """Choose how to train.

        Args:
            optimizer: its name, one of ``tf.keras.optimizers`` or of ``tf.train``.
            loss: a name, a function or an object for all outputs, or a list with one for each.
            metrics: a list of names and functions that are measured beside the loss.
            loss_weights: a list of factors, one for each output.
            sample_weight_mode, weighted_metrics, target_tensors: not offered; they raise unless None.
        """
        if sample_weight_mode or weighted_metrics or target_tensors:
            what = "sample_weight_mode, weighted_metrics and target_tensors are not offered"
            raise ValueError(f"compile: {what}, at {here()}. Leave them out.")
        self.optimizer = optimizers.get(optimizer)
        self.loss, self._loss_weights, self._metrics = loss, loss_weights, list(metrics or ())
        self._functions = [
            losses.each_of(one) for one in (loss if isinstance(loss, (list, tuple)) else [loss])
        ]
        self._steps_of: dict[Any, _Step] = {}

    def _each_loss(self, count: int) -> list[Callable[..., Any]]:
        given = self._functions * count if len(self._functions) == 1 else self._functions
        if len(given) != count:
            raise ValueError(
                f"{self.name}: {len(given)} losses for {count} outputs, at {here()}. Give one for each."
            )
        return given

    def _label_types(self) -> Iterator[Any]:
        """The dtypes of labels: integers where they are class numbers."""
        self.metrics_names  # noqa: B018  raises where there is no loss
        for loss in self._functions if len(self._functions) > 1 else itertools.repeat(self._functions[0]):
            yield as_dtype("int64" if losses.takes_class_numbers(loss) else "float32")

    @property
    def metrics_names(self) -> list[str]:
        """The names of what ``evaluate`` returns: losses and metrics of several outputs behind the total.

        Raises RuntimeError before the model is compiled.
        """
        if self.optimizer is None:
            raise RuntimeError(f"{self.name}: compile the model first, at {here()}.")
        metrics = [_name_of(metric) for metric in self._metrics]
        outputs = self._output_names()
        if len(outputs) < 2:
            return ["loss", *metrics]
        losses = [f"{output}_loss" for output in outputs]
        return ["loss", *losses, *[f"{output}_{metric}" for output in outputs for metric in metrics]]

    def _output_names(self) -> list[str]:
        """The names of the layers of several outputs, or for a model by ``call`` their numbers."""
        ends = self.outputs if self.outputs is not None else (self._fed or ((), ()))[1]
        calls = [getattr(end, "keras_call", None) for end in ends]
        if self.outputs is None:
            return [f"output_{number}" for number in range(1, len(ends) + 1)]
        return [end.op.name if call is None else call.layer.name for end, call in zip(ends, calls)]

    def _measured(self, outputs: Sequence[Any], labels: Sequence[Any], weights: Any) -> tuple[Any, list[Any]]:
        """The loss of a batch; those of several outputs, and the metrics: tensors without axes."""
        functions = self._each_loss(len(outputs))
        factors = self._loss_weights or [1.0] * len(outputs)
        parts = []
        for function, label, output in zip(functions, labels, outputs, strict=True):
            each = function(label, output)
            if weights is not None:
                each = each * shape_ops.reshape(weights, [-1, *[1] * (each.type_.ndim - 1)])
            parts.append(math.reduce_mean(each))
        scaled = [part * float(factor) for part, factor in zip(parts, factors, strict=True)]
        total = math.add_n([*scaled, *[math.reduce_sum(one) for one in self.losses]])
        pairs = [(metric, *one) for one in zip(functions, labels, outputs) for metric in self._metrics]
        found = [_metric(metric, loss, output)(label, output) for metric, loss, label, output in pairs]
        measured = [math.reduce_mean(one) for one in found]
        return total, measured if len(outputs) < 2 else [*parts, *measured]

    def _called(self, inputs: Sequence[Any]) -> list[Any]:
        given = [convert_to_tensor(one, "float32" if one.dtype == "float64" else None) for one in inputs]
        made = self(given if len(given) > 1 else given[0])  # type: ignore[operator]
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def _ends(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What is fed and what is computed: the model's own ends, or placeholders like the first inputs."""
        if self.inputs is not None and self.outputs is not None:
            return self.inputs, self.outputs
        if self._fed is None:
            given = [numpy.asarray(one) for one in inputs]
            kinds = ["float32" if one.dtype == "float64" else one.dtype for one in given]
            fed = [placeholder(as_dtype(kind), [None, *one.shape[1:]]) for kind, one in zip(kinds, given)]
            made = self(fed if len(fed) > 1 else fed[0])  # type: ignore[operator]
            self._fed = fed, list(made) if isinstance(made, (list, tuple)) else [made]
        return self._fed

    def _run(self, batch: _Batch, training: bool) -> list[Any]:
        if at_once():
            return _at_once(self, batch, training)
        steps = self.__dict__.setdefault("_steps_of", {})
        key = (get_default_graph(), training, len(batch.labels), batch.weights is None)
        if key not in steps:
            steps[key] = _Step(self, batch, training)
        return steps[key](batch)

    def _sized(self, x: Any, y: Any, weights: Any, class_weight: Any) -> _Batch:
        """Arrays of all elements."""
        inputs, labels = _arrays(x), _columns(_arrays(y))
        lengths = {len(one) for one in (*inputs, *labels)}
        if len(lengths) != 1:
            raise ValueError(f"{self.name}: inputs and labels of lengths {sorted(lengths)}, at {here()}.")
        if class_weight is not None:
            numbers = labels[0].argmax(-1) if labels[0].shape[-1] > 1 else labels[0][..., 0]
            by_class = numpy.array([class_weight[int(one)] for one in numbers], "f")
            weights = by_class if weights is None else weights * by_class
        return _Batch(inputs, labels, None if weights is None else numpy.asarray(weights, "f"))

    def _batches(self, whole: Any, size: int, shuffled: bool, steps: int | None) -> Iterator[_Batch]:
        """Batches of arrays, or those that a dataset or a generator gives."""
        if not isinstance(whole, _Batch):
            for _, item in zip(range(steps) if steps is not None else iter(int, 1), whole):
                parts = list(item) if isinstance(item, tuple) else [item]
                labels, weights = [*parts[1:], None, None][:2]
                yield self._sized(parts[0], labels, weights, None)
            return
        # The generator that ``numpy.random.seed`` seeds, as Keras's.
        order = numpy.random.permutation(len(whole)) if shuffled else numpy.arange(len(whole))  # noqa: NPY002
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            weights = None if whole.weights is None else whole.weights[rows]
            yield _Batch([one[rows] for one in whole.inputs], [one[rows] for one in whole.labels], weights)

    def _epoch(
        self, batches: Iterator[_Batch], training: bool, callbacks: Sequence[Callback]
    ) -> dict[str, float]:
        """The means over batches, weighted by their sizes, of loss and metrics."""
        totals: Any = 0.0
        count = 0
        for number, batch in enumerate(batches):
            _tell(callbacks, "on_batch_begin", number, {"batch": number, "size": len(batch)})
            found = numpy.array([float(one) for one in self._run(batch, training)])
            totals, count = totals + found * len(batch), count + len(batch)
            _tell(callbacks, "on_batch_end", number, dict(zip(self.metrics_names, found.tolist())))
        if not count:
            raise ValueError(f"{self.name}: there are no batches, at {here()}. Give data.")
        return dict(zip(self.metrics_names, (totals / count).tolist()))

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Sequence[Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
    ) -> History:
        """Train for some epochs; returns the history of what was measured.

        ``x`` and ``y`` are arrays, or lists of them for several inputs or outputs; or ``x`` is a ``tf.data.Dataset`` or
        an iterator of batches. ``validation_split`` takes the last part of the arrays for validation.
        """
        data: Any = x if _gives_batches(x) else self._sized(x, y, sample_weight, class_weight)
        size = batch_size or 32
        if validation_split and isinstance(data, _Batch):
            validation_data, data = _divided(data, validation_split)
        history = History()
        told = [history, *(callbacks or ())]
        self.stop_training = False
        for callback in told:
            callback.set_model(self)
            callback.set_params({"epochs": epochs, "batch_size": size, "verbose": verbose})
        _tell(told, "on_train_begin")
        stream = data if isinstance(data, _Batch) else _stream(data, steps_per_epoch is not None)
        for epoch in range(initial_epoch, epochs):
            _tell(told, "on_epoch_begin", epoch)
            batches = stream if isinstance(stream, _Batch) else stream()
            logs = self._epoch(self._batches(batches, size, shuffle, steps_per_epoch), True, told)
            if validation_data is not None:
                found = self._validated(validation_data, size, validation_steps)
                logs |= {f"val_{key}": value for key, value in found.items()}
            _tell(told, "on_epoch_end", epoch, logs)
            if verbose:
                shown = " - ".join(f"{key}: {value:.4f}" for key, value in logs.items())
                print(f"Epoch {epoch + 1}/{epochs} - {shown}")
            if self.stop_training:
                break
        _tell(told, "on_train_end")
        return history

    def fit_generator(
        self, generator: Any, steps_per_epoch: int | None = None, epochs: int = 1, **options: Any
    ) -> History:
        """``fit`` of an iterator of batches."""
        return self.fit(generator, steps_per_epoch=steps_per_epoch, epochs=epochs, **options)

    def _validated(self, data: Any, size: int, steps: int | None) -> dict[str, float]:
        if isinstance(data, _Batch) or _gives_batches(data):
            whole: Any = data if isinstance(data, _Batch) else _stream(data, False)()
        else:
            whole = self._sized(data[0], data[1], data[2] if len(data) > 2 else None, None)
        return self._epoch(self._batches(whole, size, False, steps), False, ())

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: int | None = None,
    ) -> Any:
        """The loss, or with metrics the list of it and them (see ``metrics_names``)."""
        given = x if _gives_batches(x) else (x, y) if sample_weight is None else (x, y, sample_weight)
        found = list(self._validated(given, batch_size or 32, steps).values())
        return found if len(found) > 1 else found[0]

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: int = 0, steps: int | None = None
    ) -> Any:
        """The outputs for all elements of ``x``: an array, or a list for several outputs."""
        whole: Any = _stream(x, False)() if _gives_batches(x) else self._sized(x, None, None, None)
        batches = self._batches(whole, batch_size or 32, False, steps)
        parts = [self._run(_Batch(batch.inputs, [], None), False) for batch in batches]
        found = [numpy.concatenate(column) for column in zip(*parts)]
        return found if len(found) > 1 else found[0]

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch."""
        return self.predict(x, len(_arrays(x)[0]))

    def train_on_batch(self, x: Any, y: Any, sample_weight: Any = None, class_weight: Any = None) -> Any:
        """Take one step; returns the loss, or with metrics the list of it and them."""
        found = [float(one) for one in self._run(self._sized(x, y, sample_weight, class_weight), True)]
        return found if len(found) > 1 else found[0]

    def test_on_batch(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
        """The loss of one batch, or with metrics the list of it and them."""
        found = [float(one) for one in self._run(self._sized(x, y, sample_weight, None), False)]
        return found if len(found) > 1 else found[0]

    def set_learning_rate(self, value: float) -> None:
        """Set the rate of an optimiser of ``tf.keras.optimizers``; raises TypeError for another one."""
        rate = getattr(self.optimizer, "lr", None)
        if isinstance(rate, (int, float)):
            self.optimizer._numbers["lr"] = value
        elif rate is None:
            raise TypeError(
                f"{type(self.optimizer).__name__} has no rate to set, at {here()}. Use one of Keras's."
            )
        else:
            backend.set_value(rate, value)

    def save_weights(self, filepath: str, overwrite: bool = True, save_format: str | None = None) -> None:
        """Write the variables to a checkpoint, or to an HDF5 file where its name or ``save_format`` says so.

        Without ``overwrite`` one that is there raises FileExistsError, where Keras asks the user.
        """
        if not overwrite and (checkpoint_exists(filepath) or os.path.exists(filepath)):
            raise FileExistsError(
                f"{self.name}: {filepath} exists, at {here()}. Give another name, or overwrite=True."
            )
        if save_format == "h5" or (save_format is None and _is_hdf5(filepath)):
            hdf5.write(filepath, _saving().weights_group(self.layers))
            return
        Saver(self.weights).save(backend.get_session(), filepath, write_meta_graph=False, write_state=False)

    def load_weights(self, filepath: str, by_name: bool = False) -> None:
        """Read the variables from a checkpoint, or from an HDF5 file: layers in their order, or ``by_name``.

        Raises ValueError where the layers of an HDF5 file are others.
        """
        if by_name or _is_hdf5(filepath):
            _saving().set_weights(self.layers, _saving().read_weights(filepath), by_name)
            return
        Saver(self.weights).restore(backend.get_session(), filepath)

    def save(
        self,
        filepath: str,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: str | None = None,
    ) -> None:
        """Write the model to an HDF5 file, from which ``tf.keras.models.load_model`` makes it again.

        Raises ArgumentError for the format "tf": ``tf.saved_model.simple_save`` writes that.
        """
        if save_format not in (None, "h5"):
            what = f"{self.name}: models are not saved as {save_format!r}, at {here()}"
            raise ArgumentError(what, "Leave save_format out, or use tf.saved_model.simple_save.")
        _saving().save_model(self, filepath, overwrite, include_optimizer)


def _is_hdf5(path: Any) -> bool:
    return str(path).endswith((".h5", ".hdf5", ".keras"))


def _saving() -> Any:
    return import_module("twofold.static.keras.saving")


def _tell(callbacks: Sequence[Callback], event: str, *values: Any) -> None:
    for callback in callbacks:
        getattr(callback, event)(*values)


def _gives_batches(x: Any) -> bool:
    return isinstance(x, Dataset) or (hasattr(x, "__next__") and not hasattr(x, "shape"))


def _stream(data: Any, goes_on: bool) -> Callable[[], Any]:
    """What gives the batches of an epoch: with ``goes_on`` from where the last one ended."""
    if not isinstance(data, Dataset):
        return lambda: data

    def elements() -> Iterator[Any]:
        yield from data.arrays(lambda tensors: backend.get_session().run(list(tensors)) if tensors else [])

    if not goes_on:
        return elements
    one = elements()
    return lambda: one


def _divided(data: _Batch, share: float) -> tuple[_Batch, _Batch]:
    """The last part of arrays, and the rest."""
    first = int(len(data) * (1.0 - share))

    def part(rows: slice) -> _Batch:
        weights = None if data.weights is None else data.weights[rows]
        return _Batch([one[rows] for one in data.inputs], [one[rows] for one in data.labels], weights)

    return part(slice(first, None)), part(slice(first))


def _name_of(metric: Any) -> str:
    if metric in ("accuracy", "acc"):
        return "acc"
    return metric if isinstance(metric, str) else getattr(metric, "__name__", None) or metric.name


def _metric(metric: Any, loss: Callable[..., Any], output: Any) -> Callable[..., Any]:
    """A function of labels and outputs; "accuracy" is the one that goes with the loss."""
    if metric not in ("accuracy", "acc"):
        return losses.each_of(metric)
    if losses.takes_class_numbers(loss):
        return losses.sparse_categorical_accuracy
    return losses.binary_accuracy if output.type_.shape[-1] == 1 else losses.categorical_accuracy
