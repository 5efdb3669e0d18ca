"""What ``fit`` calls between epochs and batches: ``tf.keras.callbacks``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def _better(self, logs: Mapping[str, float]) -> bool:
        if self.monitor not in logs:
            raise ValueError(f"{type(self).__name__}: there is no {self.monitor} among {', '.join(logs)}.")
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
        if self._better(logs):
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


class LearningRateScheduler(Callback):
    """Sets the learning rate to ``schedule(epoch)`` before each epoch; ``verbose`` prints it."""

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self._schedule, self._verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        rate = float(self._schedule(epoch))
        self.model.set_learning_rate(rate)
        if self._verbose:
            print(f"Epoch {epoch + 1}: learning rate {rate}")
