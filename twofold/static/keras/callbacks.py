"""What ``fit`` calls between epochs and batches: ``tf.keras.callbacks``."""

from __future__ import annotations

import collections
import csv
import os
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy

from twofold.runtime.tracing import here


class Callback:
    """Base of callbacks: ``fit`` calls the methods with the number of the epoch or batch, and what was measured.

    >>> import numpy
    >>> import twofold.static as tf
    >>> class Printed(tf.keras.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         print(epoch, sorted(logs))
    >>> with tf.Graph().as_default(), tf.Session():
    ...     model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    ...     model.compile("sgd", "mse")
    ...     _ = model.fit(numpy.ones([4, 2]), numpy.ones([4]), verbose=0, callbacks=[Printed()])
    0 ['loss']
    """

    model: Any = None
    params: Any = None

    def set_model(self, model: Any) -> None:
        """The model that is trained."""
        self.model = model

    def set_params(self, params: Any) -> None:
        """How it is trained."""
        self.params = params

    def on_train_begin(self, logs: Any = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: Any = None) -> None:
        """After the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch."""

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of training."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of training."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of training: ``on_batch_begin``."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of training: ``on_batch_end``."""
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs: Any = None) -> None:
        """Before ``evaluate``."""

    def on_test_end(self, logs: Any = None) -> None:
        """After ``evaluate``."""

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of ``evaluate``."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of ``evaluate``."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before ``predict``."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After ``predict``."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of ``predict``."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of ``predict``."""


class History(Callback):
    """What was measured in each epoch; ``fit`` returns it."""

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


class LambdaCallback(Callback):
    """Functions by the names of the methods, as in ``LambdaCallback(on_epoch_end=...)``."""

    def __init__(self, **functions: Callable[..., Any] | None) -> None:
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: there is no {name}, at {here()}.")
            if function is not None:
                setattr(self, name, function)


class _Watching(Callback):
    """What looks at one measurement, and whether it got better."""

    def __init__(self, monitor: str = "val_loss", mode: str = "auto", min_delta: float = 0.0) -> None:
        self.monitor = monitor
        rising = mode == "max" or (mode == "auto" and "acc" in monitor)
        self._sign, self._delta = (1.0 if rising else -1.0), abs(min_delta)
        self.best = -numpy.inf

    def _better(self, logs: Mapping[str, float]) -> bool | None:
        if self.monitor not in logs:
            what = f"{type(self).__name__}: {self.monitor} is not measured, only {', '.join(logs)} are"
            warnings.warn(f"{what}: nothing is done.", RuntimeWarning, stacklevel=2)
            return None
        found = self._sign * logs[self.monitor]
        if found - self._delta <= self.best:
            return False
        self.best = found
        return True


class EarlyStopping(_Watching):
    """Ends training when ``monitor`` has not got better for ``patience`` epochs; ``verbose`` prints when."""

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience, self._restore, self._weights, self._waited = patience, restore_best_weights, None, 0
        self._verbose = verbose
        self._first = -numpy.inf if baseline is None else self._sign * baseline

    def on_train_begin(self, logs: Any = None) -> None:
        self.best, self._waited = self._first, 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        better = self._better(logs)
        if better is None:
            return
        if better:
            self._waited, self._weights = 0, self.model.get_weights() if self._restore else None
            return
        self._waited += 1
        if self._waited >= self.patience:
            self.model.stop_training = True
            if self._verbose:
                print(f"Epoch {epoch + 1}: early stopping")
            if self._weights is not None:
                self.model.set_weights(self._weights)


class ModelCheckpoint(_Watching):
    """Saves the model (or its variables) after every ``period`` epochs, or where ``monitor`` got better.

    ``filepath`` may hold ``{epoch}`` and what is measured; ``verbose`` prints each name.
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        period: int = 1,
    ) -> None:
        super().__init__(monitor, mode)
        self._path, self._best_only, self._verbose = filepath, save_best_only, verbose
        self._weights_only, self._period, self._waited = save_weights_only, period, 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._waited += 1
        if self._waited < self._period:
            return
        self._waited = 0
        if not self._best_only or self._better(logs):
            path = self._path.format(epoch=epoch + 1, **logs)
            write = self.model.save_weights if self._weights_only else self.model.save
            write(path, overwrite=True)
            if self._verbose:
                print(f"Epoch {epoch + 1}: saved to {path}")


def _rate_of(model: Any) -> float:
    """The learning rate of a model; raises ValueError where its optimizer has none that can be set."""
    rate = getattr(model.optimizer, "lr", None)
    if rate is None or callable(rate):
        raise ValueError(f'Optimizer must have a "lr" attribute that is a number, at {here()}.')
    return float(import_module("twofold.static.keras.backend").get_value(rate))


class LearningRateScheduler(Callback):
    """Sets the learning rate to ``schedule(epoch)`` before each epoch; ``verbose`` prints it.

    A schedule of two parameters is given the learning rate of the epoch before, too.
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self._schedule, self._verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        before = _rate_of(self.model)
        try:
            rate = self._schedule(epoch, before)
        except TypeError:  # a schedule of the epoch alone
            rate = self._schedule(epoch)
        if not isinstance(rate, (float, numpy.floating)):
            raise ValueError('The output of the "schedule" function should be float.')
        self.model.set_learning_rate(float(rate))
        if self._verbose:
            print(f"Epoch {epoch + 1}: learning rate {rate}")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if logs is not None:
            logs["lr"] = _rate_of(self.model)


class ReduceLROnPlateau(_Watching):
    """Multiplies the learning rate by ``factor`` when ``monitor`` has not got better for ``patience`` epochs.

    Args:
        monitor: What is looked at.
        factor: Less than 1.
        patience: How many epochs.
        verbose: Whether it is printed.
        mode: "min", "max", or "auto": by the name.
        min_delta: What does not count as better.
        cooldown: For how many epochs nothing happens after that.
        min_lr: The smallest learning rate.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float | None = None,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0, at {here()}.")
        super().__init__(monitor, mode, min_delta if epsilon is None else epsilon)
        self.factor, self.patience, self.cooldown, self.min_lr = factor, patience, cooldown, min_lr
        self._verbose, self._resting, self._waited = verbose, 0, 0

    def on_train_begin(self, logs: Any = None) -> None:
        self.best, self._resting, self._waited = -numpy.inf, 0, 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = {} if logs is None else logs
        logs["lr"] = rate = _rate_of(self.model)
        better = self._better(logs)
        if better is None:
            return
        if self._resting:
            self._resting, self._waited = self._resting - 1, 0
        if better:
            self._waited = 0
        elif not self._resting:
            self._waited += 1
            if self._waited >= self.patience and rate > self.min_lr:
                lower = max(rate * self.factor, self.min_lr)
                self.model.set_learning_rate(lower)
                self._resting, self._waited = self.cooldown, 0
                if self._verbose:
                    print(f"Epoch {epoch + 1}: learning rate {lower}")


class TerminateOnNaN(Callback):
    """Ends training when the loss of a batch is no number, or infinite."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not numpy.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class CSVLogger(Callback):
    """Writes a row of what was measured in each epoch to a file; ``append`` goes on with one that is there."""

    def __init__(self, filename: str, separator: str = ",", append: bool = False) -> None:
        self.filename, self._separator, self._append = filename, separator, append
        self._keys: list[str] | None = None
        self._file: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        there = self._append and os.path.exists(self.filename) and os.path.getsize(self.filename) > 0
        self._file = open(self.filename, "a" if self._append else "w", newline="", encoding="utf-8")  # noqa: SIM115
        self._keys, self._headed, self._append = None, there, True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        found = logs or {}
        if self._keys is None:
            self._keys = sorted(found)
        writer = csv.DictWriter(self._file, ["epoch", *self._keys], delimiter=self._separator)
        if not self._headed:
            writer.writeheader()
            self._headed = True
        row = collections.OrderedDict(epoch=epoch, **{key: found.get(key, "NA") for key in self._keys})
        writer.writerow(row)
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self._file.close()


class TensorBoard(Callback):
    """Writes what was measured in each epoch, and the graph, for TensorBoard.

    Args:
        log_dir: The folder.
        write_graph: Whether the graph is written.
        update_freq: "epoch"; "batch" or after how many elements also measurements of batches are written.
        histogram_freq, write_grads, write_images, embeddings_freq, embeddings_data, profile_batch: Not offered; they
            raise unless 0.
        batch_size, embeddings_layer_names, embeddings_metadata: Of these, so they change nothing.
    """

    def __init__(
        self,
        log_dir: str = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        embeddings_freq: int = 0,
        embeddings_layer_names: Any = None,
        embeddings_metadata: Any = None,
        embeddings_data: Any = None,
        update_freq: Any = "epoch",
        profile_batch: int = 0,
    ) -> None:
        refused = {"histogram_freq": histogram_freq, "write_grads": write_grads, "write_images": write_images}
        refused |= {"embeddings_freq": embeddings_freq, "embeddings_data": embeddings_data}
        wrong = [name for name, value in {**refused, "profile_batch": profile_batch}.items() if value]
        if wrong:
            raise ValueError(f"TensorBoard: {', '.join(wrong)}: not offered, at {here()}. Leave it out.")
        self.log_dir, self._write_graph = log_dir, write_graph
        self._every = {"epoch": None, "batch": 1}.get(update_freq, update_freq)
        self._seen = self._written = self._batches = 0
        self._writer: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        summary = import_module("twofold.static.summary")
        graph = import_module("twofold.static.graph.graph").get_default_graph()
        self._writer = summary.FileWriter(self.log_dir, graph if self._write_graph else None)

    def _write(self, logs: Mapping[str, Any], step: int, prefix: str) -> None:
        message = import_module("twofold.static.protobuf.summary").Summary()
        for name, value in logs.items():
            if name not in ("batch", "size"):
                message.value.add(tag=prefix + name, simple_value=float(value))
        self._writer.add_summary(message, step)
        self._writer.flush()

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        self._seen += (logs or {}).get("size", 1)
        self._batches += 1
        if self._every is not None and (self._every == 1 or self._seen - self._written >= self._every):
            self._written = self._seen
            self._write(logs or {}, self._batches, "batch_")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._write(logs or {}, epoch, "epoch_")

    def on_train_end(self, logs: Any = None) -> None:
        self._writer.close()
