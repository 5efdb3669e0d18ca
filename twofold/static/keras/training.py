"""Training of models: ``compile``, ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays.shape_ops import placeholder
from twofold.static.control_flow.dependencies import group
from twofold.static.eager.gradient_tape import GradientTape
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.keras import backend, optimizers
from twofold.static.keras.batches import Batch, Names, Stream, divided, gives_batches, sized
from twofold.static.keras.callbacks import Callback, History
from twofold.static.keras.measuring import Measured
from twofold.static.keras.state import learning_phase, phase, settings
from twofold.static.saving import hdf5
from twofold.static.saving.saver import Saver, checkpoint_exists


class _Step:
    """What a batch of a kind (training, measuring, predicting) computes, declared once."""

    def __init__(self, model: Trained, batch: Batch, training: bool, measures: bool) -> None:
        self._training = training
        self._inputs, self.outputs = model._ends(batch.inputs)
        self._labels, self._weights, self._fetches = [], [], list(self.outputs)
        if measures:
            measured = model._measuring()
            kinds = measured.label_types(self.outputs)
            self._labels = [_placeholder(one, kind) for one, kind in zip(batch.labels, kinds)]
            self._weights = [
                None if one is None else _placeholder(one, settings.floatx) for one in batch.weights
            ]
            total, others = measured(self._labels, self.outputs, self._weights, model.losses)
            self._fetches = [total, *others]
            if training:
                self._fetches.append(_train(model, total))
        self._count = len(self._fetches) - self._training
        self._fetches += [one.op for one in model.state_updates]

    def __call__(self, batch: Batch) -> list[Any]:
        fed = dict(zip([*self._inputs, *self._labels], [*batch.inputs, *batch.labels]))
        fed |= {one: value for one, value in zip(self._weights, batch.weights) if one is not None}
        trains = learning_phase()
        if hasattr(trains, "type_"):
            fed[trains] = self._training
        return list(backend.get_session().run(self._fetches, fed)[: self._count])


def _placeholder(array: Any, dtype: Any) -> Any:
    return placeholder(dtype, [None] * array.ndim)


def _train(model: Trained, total: Any) -> Any:
    variables = model.trainable_weights
    with control_dependencies(list(model.updates)):
        step = group(model.optimizer.minimize(total, var_list=variables))
    if model.when_trained is not None:
        model.when_trained(model.optimizer)
        model.when_trained = None
    return step


def _at_once(model: Trained, batch: Batch, training: bool, measures: bool) -> list[Any]:
    """The results of a batch where operations are computed at once."""
    with phase(training), GradientTape() as tape:
        outputs = model._called(batch.inputs)
        if not measures:
            return [one.numpy() for one in outputs]
        measured = model._measuring(len(outputs))
        kinds = measured.label_types(outputs)
        labels = [convert_to_tensor(one, kind) for one, kind in zip(map(numpy.asarray, batch.labels), kinds)]
        weights = [None if one is None else convert_to_tensor(one, settings.floatx) for one in batch.weights]
        total, others = measured(labels, outputs, weights, model.losses)
    if training:
        variables = model.trainable_weights
        model.optimizer.apply_gradients(zip(tape.gradient(total, variables), variables))
    return [one.numpy() for one in (total, *others)]


class Trained:
    """What models have beside their layers: training, measuring, predicting and saving."""

    name: str
    inputs: list[Any] | None
    outputs: list[Any] | None
    trainable_weights: list[Any]
    weights: list[Any]
    layers: Any
    updates: list[Any]
    state_updates: list[Any]
    losses: list[Any]
    optimizer: Any = None
    stop_training = False
    when_trained: Callable[[Any], None] | None = None
    """Called with the optimizer once it has variables."""
    _measured: Measured | None = None
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
            optimizer: Its name, one of ``tf.keras.optimizers`` or of ``tf.train``.
            loss: A name, a function or an object for all outputs, or a list or dict with one for each.
            metrics: A list of names, functions and objects that are measured beside the loss; for several outputs
                also a list of lists, or a dict.
            loss_weights: A list or dict of factors, one for each output.
            sample_weight_mode: "temporal" for weights of the steps of sequences.
            weighted_metrics: Metrics that the weights of elements weight.
            target_tensors: Not offered; raises unless None.
        """
        if target_tensors is not None:
            raise ValueError(f"compile: target_tensors are not offered, at {here()}. Leave them out.")
        modes = sample_weight_mode.values() if isinstance(sample_weight_mode, dict) else sample_weight_mode
        for mode in modes if not isinstance(modes, str) and modes else [modes]:
            if mode not in (None, "temporal"):
                raise ValueError(
                    f"compile: sample_weight_mode is {mode!r}, at {here()}. Use 'temporal' or None."
                )
        self.optimizer = optimizers.get(optimizer)
        self.loss, self._loss_weights = loss, loss_weights
        self._metrics, self._weighted_metrics = metrics or [], weighted_metrics or []
        self._sample_weight_mode = sample_weight_mode
        self._steps_of: dict[Any, _Step] = {}
        self._measured = None
        if self.outputs is not None and loss is not None:
            self._measuring()

    def _measuring(self, outputs: int | None = None) -> Measured:
        """The losses and metrics; raises RuntimeError before the model is compiled."""
        if self.optimizer is None:
            raise RuntimeError(f"{self.name}: compile the model first, at {here()}.")
        if self._measured is None:
            names = self._output_names() or [f"output_{number}" for number in range(1, (outputs or 1) + 1)]
            given = (self.loss, self._loss_weights, self._metrics, self._weighted_metrics)
            self._measured = Measured(self.name, names, *given)
        return self._measured

    @property
    def metrics_names(self) -> list[str]:
        """The names of what ``evaluate`` returns: losses and metrics of several outputs behind the total.

        Raises RuntimeError before the model is compiled.
        """
        return self._measuring().names_of()

    @property
    def metrics(self) -> list[Any]:
        """The metrics as objects, once there was a batch."""
        return [metric for _, metric, _, _ in self._measured.metrics] if self._measured is not None else []

    def reset_metrics(self) -> None:
        """Let the metrics begin again."""
        if self._measured is not None:
            self._measured.reset()

    def _output_names(self) -> list[str]:
        """The names of the layers of several outputs, or for a model by ``call`` their numbers."""
        ends = self.outputs if self.outputs is not None else (self._fed or ((), ()))[1]
        calls = [getattr(end, "keras_call", None) for end in ends]
        if self.outputs is None:
            return [f"output_{number}" for number in range(1, len(ends) + 1)]
        found: list[str] = []
        for end, call in zip(ends, calls):
            name = base = end.op.name if call is None else call.layer.name
            number = 1
            while name in found:
                name, number = f"{base}_{number}", number + 1
            found.append(name)
        return found

    def _names(self) -> Names:
        """What inputs and outputs are called."""
        labelled = self._measuring().labelled if self.optimizer is not None and self.loss is not None else []
        if self.inputs is None or at_once():
            return Names([], labelled)
        return Names([one.op.name for one in self.inputs], labelled)

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

    def _run(self, batch: Batch, training: bool, measures: bool = True) -> list[Any]:
        """What a batch is measured to be, or without ``measures`` the outputs."""
        if at_once():
            return _at_once(self, batch, training, measures)
        steps = self.__dict__.setdefault("_steps_of", {})
        weighted = tuple(None if one is None else one.ndim for one in batch.weights)
        key = (get_default_graph(), training, measures, len(batch.labels), weighted)
        if key not in steps:
            steps[key] = _Step(self, batch, training, measures)
        return steps[key](batch)

    def _data(self, x: Any, y: Any = None, weights: Any = None, class_weight: Any = None) -> Any:
        """Arrays of all elements, or what gives batches."""
        return x if gives_batches(x) else sized(x, y, weights, class_weight, self._names())

    def _epoch(
        self, stream: Stream, training: bool, callbacks: Sequence[Callback], kind: str
    ) -> dict[str, float]:
        """The mean loss, and what the metrics say in the end.

        The mean is one over elements for arrays, and in training for iterators, else over batches; that of each of
        several outputs is over batches.
        """
        found: list[Any] = []
        sizes: list[int] = []
        self.reset_metrics()
        for number, batch in enumerate(stream.epoch()):
            told = {"batch": number, "size": len(batch)}
            _tell(callbacks, f"on_{kind}_batch_begin", number, told)
            found.append([float(one) for one in self._run(batch, training)])
            sizes.append(len(batch) if stream.of_arrays or (training and not stream.of_dataset) else 1)
            _tell(
                callbacks,
                f"on_{kind}_batch_end",
                number,
                {**told, **dict(zip(self.metrics_names, found[-1]))},
            )
            if training and self.stop_training:
                break
        if not found:
            raise ValueError(f"{self.name}: there are no batches, at {here()}. Give data.")
        table, gathered = numpy.array(found), len(self.metrics)
        means = table.mean(0)
        means[0] = numpy.average(table[:, 0], weights=sizes)
        values = [*means[: len(means) - gathered], *table[-1, len(means) - gathered :]]
        return dict(zip(self.metrics_names, map(float, values)))

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
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> History:
        """Train for some epochs; returns the history of what was measured.

        ``x`` and ``y`` are arrays, lists of them for several inputs or outputs, or dicts by their names; or ``x`` is a
        ``tf.data.Dataset``, a ``tf.keras.utils.Sequence`` or an iterator of batches. ``validation_split`` takes the
        last part of the arrays for validation, which happens after every ``validation_freq`` epochs or those listed
        there. ``max_queue_size``, ``workers`` and ``use_multiprocessing`` change nothing: batches are asked for one by
        one.
        """
        data = self._data(x, y, sample_weight, class_weight)
        size = batch_size or 32
        if validation_split:
            if not isinstance(data, Batch):
                raise ValueError(f"fit: validation_split is of arrays, at {here()}. Give validation_data.")
            validation_data, data = divided(data, validation_split)
        stream = Stream(data, self._names(), size, shuffle, steps_per_epoch, class_weight)
        checked = (
            None if validation_data is None else self._validation(validation_data, size, validation_steps)
        )
        self.history = history = History()
        told = [*(callbacks or ()), history]
        samples = len(data) if isinstance(data, Batch) else None
        given = {"epochs": epochs, "batch_size": size, "verbose": verbose, "steps": steps_per_epoch}
        self._prepare_callbacks(told, given | {"samples": samples, "do_validation": checked is not None})
        for epoch in range(initial_epoch, epochs):
            _tell(told, "on_epoch_begin", epoch)
            logs = self._epoch(stream, True, told, "train")
            if checked is not None and _validates(epoch, validation_freq):
                logs |= self._validated(checked, told)
            _tell(told, "on_epoch_end", epoch, logs)
            if verbose:
                shown = " - ".join(f"{key}: {value:.4f}" for key, value in logs.items())
                print(f"Epoch {epoch + 1}/{epochs} - {shown}")
            if self.stop_training:
                break
        _tell(told, "on_train_end")
        return history

    def _prepare_callbacks(self, told: Sequence[Callback], parameters: dict[str, Any]) -> None:
        """Let callbacks know the model and how it is trained, and that training begins."""
        self.stop_training = False
        names = self.metrics_names
        validated = [f"val_{one}" for one in names] if parameters["do_validation"] else []
        for callback in told:
            callback.set_model(self)
            callback.set_params({**parameters, "metrics": [*names, *validated]})
        _tell(told, "on_train_begin")

    def _validated(self, stream: Stream, told: Sequence[Callback]) -> dict[str, float]:
        """What is measured of other data after an epoch, under names of its own."""
        _tell(told, "on_test_begin")
        found = self._epoch(stream, False, told, "test")
        _tell(told, "on_test_end")
        return {f"val_{key}": value for key, value in found.items()}

    history: History | None = None

    def fit_generator(
        self,
        generator: Any,
        steps_per_epoch: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        **options: Any,
    ) -> History:
        """``fit`` of an iterator or a sequence of batches."""
        return self.fit(generator, steps_per_epoch=steps_per_epoch, epochs=epochs, verbose=verbose, **options)

    def _validation(self, data: Any, size: int, steps: int | None) -> Stream:
        if not isinstance(data, Batch) and not gives_batches(data):
            data = sized(data[0], data[1], data[2] if len(data) > 2 else None, None, self._names())
        return Stream(data, self._names(), size, False, steps, restarts=True)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The loss, or with metrics the list of it and them (see ``metrics_names``)."""
        told = self._told(callbacks, verbose, steps)
        _tell(told, "on_test_begin")
        stream = Stream(self._data(x, y, sample_weight), self._names(), batch_size or 32, False, steps)
        found = list(self._epoch(stream, False, told, "test").values())
        _tell(told, "on_test_end")
        return found if len(found) > 1 else found[0]

    def evaluate_generator(
        self,
        generator: Any,
        steps: int | None = None,
        callbacks: Sequence[Callback] | None = None,
        **options: Any,
    ) -> Any:
        """``evaluate`` of an iterator or a sequence of batches."""
        return self.evaluate(generator, steps=steps, callbacks=callbacks, **options)

    def _told(
        self, callbacks: Sequence[Callback] | None, verbose: int, steps: int | None
    ) -> Sequence[Callback]:
        for callback in callbacks or ():
            callback.set_model(self)
            callback.set_params({"verbose": verbose, "steps": steps})
        return callbacks or ()

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: int | None = None,
        callbacks: Sequence[Callback] | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The outputs for all elements of ``x``: an array, or a list for several outputs."""
        told = self._told(callbacks, verbose, steps)
        _tell(told, "on_predict_begin")
        stream = Stream(self._data(x), self._names(), batch_size or 32, False, steps)
        parts = []
        for number, batch in enumerate(stream.epoch()):
            _tell(told, "on_predict_batch_begin", number, {"batch": number, "size": len(batch)})
            parts.append(self._run(Batch(batch.inputs, [], []), False, False))
            _tell(
                told,
                "on_predict_batch_end",
                number,
                {"batch": number, "size": len(batch), "outputs": parts[-1]},
            )
        _tell(told, "on_predict_end")
        found = [numpy.concatenate(column) for column in zip(*parts)]
        return found if len(found) > 1 else found[0]

    def predict_generator(
        self,
        generator: Any,
        steps: int | None = None,
        callbacks: Sequence[Callback] | None = None,
        **options: Any,
    ) -> Any:
        """``predict`` of an iterator or a sequence of batches."""
        return self.predict(generator, steps=steps, callbacks=callbacks, **options)

    def _on_batch(self, batch: Batch, training: bool, reset_metrics: bool) -> Any:
        if reset_metrics:
            self.reset_metrics()
        found = [float(one) for one in self._run(batch, training)]
        return found if len(found) > 1 else found[0]

    def reset_states(self) -> None:
        """Let all stateful layers begin with zeros."""
        for layer in self.layers:
            if getattr(layer, "stateful", False):
                layer.reset_states()

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch."""
        found = self._run(Batch(sized(x, None, None, None, self._names()).inputs, [], []), False, False)
        return found if len(found) > 1 else found[0]

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        reset_metrics: bool = True,
    ) -> Any:
        """Take one step; returns the loss, or with metrics the list of it and them.

        Without ``reset_metrics`` these go on from the batches before.
        """
        batch = sized(x, y, sample_weight, class_weight, self._names())
        return self._on_batch(batch, True, reset_metrics)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True
    ) -> Any:
        """The loss of one batch, or with metrics the list of it and them."""
        return self._on_batch(sized(x, y, sample_weight, None, self._names()), False, reset_metrics)

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


def _validates(epoch: int, freq: Any) -> bool:
    """Whether an epoch, numbered from 0, ends with validation."""
    return (epoch + 1) % freq == 0 if isinstance(freq, int) else epoch + 1 in freq
