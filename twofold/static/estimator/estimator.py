"""Models that keep what they have learned in checkpoints between calls: ``tf.estimator.Estimator``."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.event_files import scalar_summary
from twofold.runtime.tracing import here
from twofold.static import logs, metrics
from twofold.static.coordination import Coordinator
from twofold.static.datasets import Dataset, OutOfRangeError
from twofold.static.estimator.spec import EstimatorSpec, ModeKeys, RunConfig
from twofold.static.graph import Graph
from twofold.static.layer_options import refuse
from twofold.static.queues import start_queue_runners
from twofold.static.random import set_random_seed
from twofold.static.saver import Saver, latest_checkpoint, read_checkpoint
from twofold.static.session import Session
from twofold.static.summary import FileWriter
from twofold.static.train import create_global_step
from twofold.static.variables import (
    Variable,
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
)


class Estimator:
    """A model of which each call declares a graph anew, with the variables of the latest checkpoint.

    Args:
        model_fn: A function of ``features``, and of ``labels``, ``mode``, ``params`` and ``config`` as far as it
            takes them, that returns an ``EstimatorSpec``.
        model_dir: Directory of the checkpoints; that of ``config``, else a new one.
        config: A ``RunConfig``.
        params: A dict of settings for ``model_fn``.
        warm_start_from: Not offered; raises unless None.

    >>> import twofold.static as tf
    >>> def line(features, labels, mode):
    ...     loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    ...     step = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    ...     return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)
    >>> x = numpy.ones((8, 2), "float32")
    >>> rows = tf.estimator.inputs.numpy_input_fn(x, x[:, :1], batch_size=4, num_epochs=None, shuffle=False)
    >>> model = tf.estimator.Estimator(line).train(rows, steps=3)
    >>> int(model.get_variable_value("global_step"))
    3
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        refuse("Estimator", warm_start_from=warm_start_from)
        self.config = config or RunConfig()
        chosen = model_dir or self.config.model_dir
        self.model_dir = os.fspath(chosen) if chosen else tempfile.mkdtemp()
        self.params, self._model_fn = dict(params or {}), model_fn

    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None before training."""
        return latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint."""
        return sorted(read_checkpoint(self._checkpoint(None, "get_variable_names")))

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint."""
        held = read_checkpoint(self._checkpoint(None, "get_variable_value"))
        if name not in held:
            what = f"get_variable_value: there is no variable {name!r}, at {here()}"
            raise ArgumentError(what, f"It is one of {', '.join(sorted(held))}.")
        return held[name][1]

    def _checkpoint(self, given: Any, what: str) -> str:
        found = given or self.latest_checkpoint()
        if not found:
            message = f"{what}: Could not find trained model in model_dir: {self.model_dir}, at {here()}"
            raise ArgumentError(message, "Call train first.")
        return str(found)

    @contextmanager
    def _declared(self, input_fn: Callable[..., Any], mode: str) -> Iterator[tuple[Any, EstimatorSpec]]:
        """The global step and what ``model_fn`` returns, in a graph that is the default one."""
        with Graph().as_default():
            set_random_seed(self.config.tf_random_seed)
            step = create_global_step()
            features, labels = self._inputs(input_fn, mode)
            known = {"labels": labels, "mode": mode, "params": self.params, "config": self.config}
            taken = inspect.signature(self._model_fn).parameters
            if labels is not None and "labels" not in taken:
                raise ArgumentError(f"model_fn takes no labels, at {here()}", "Add the parameter labels.")
            chosen = {name: value for name, value in known.items() if name in taken}
            spec = self._model_fn(features, **chosen)
            if not isinstance(spec, EstimatorSpec):
                what = f"model_fn returned a value of type {type(spec).__name__}, at {here()}"
                raise ArgumentError(what, "Return an EstimatorSpec.")
            yield step, spec

    def _inputs(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, Any]:
        known = {"mode": mode, "params": self.params, "config": self.config}
        taken = inspect.signature(input_fn).parameters
        given = input_fn(**{name: value for name, value in known.items() if name in taken})
        if isinstance(given, Dataset):
            given = given.make_one_shot_iterator().get_next()
        if not isinstance(given, (tuple, list)):
            return given, None
        if len(given) != 2:
            what = f"input_fn returned {len(given)} values, at {here()}"
            raise ArgumentError(what, "Return features, or features and labels.")
        return given[0], None if mode == ModeKeys.PREDICT else given[1]

    @contextmanager
    def _session(self, saver: Saver | None, checkpoint: str | None) -> Iterator[Any]:
        """A session with the values of a checkpoint, whose queues are filled."""
        with Session(config=self.config.session_config) as session:
            session.run([global_variables_initializer(), local_variables_initializer()])
            if saver is not None and checkpoint is not None:
                saver.restore(session, checkpoint)
            coordinator = Coordinator()
            threads = start_queue_runners(session, coordinator)
            yield session
            coordinator.request_stop()
            coordinator.join(threads)

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Train from the latest checkpoint on, until the input ends or a number of steps is reached; returns itself.

        Args:
            input_fn: A function that declares features and labels, or returns a dataset of such pairs.
            hooks: Not offered; raises unless None.
            steps: How many more steps.
            max_steps: How many steps in all; not together with ``steps``.
            saving_listeners: Not offered; raises unless None.
        """
        refuse("Estimator.train", hooks=hooks or None, saving_listeners=saving_listeners)
        if steps is not None and max_steps is not None:
            raise ArgumentError(f"train: both steps and max_steps, at {here()}", "Give one of them.")
        for name, count in (("steps", steps), ("max_steps", max_steps)):
            if count is not None and count <= 0:
                raise ArgumentError(f"train: {name} is {count}, at {here()}", "Give a number above 0.")
        with self._declared(input_fn, ModeKeys.TRAIN) as (step, spec):
            saver = Saver(max_to_keep=self.config.keep_checkpoint_max)
            if (state := latest_checkpoint(self.model_dir)) is not None:
                saver.last_checkpoints = [state]
            with self._session(saver, state) as session:
                self._steps(session, saver, step, spec, steps, max_steps)
        return self

    def _steps(
        self, session: Any, saver: Saver, step: Variable, spec: EstimatorSpec, steps: Any, most: Any
    ) -> None:
        done = int(session.run(step))
        last = most if steps is None else done + steps
        path, every = os.path.join(self.model_dir, "model.ckpt"), self.config.save_checkpoints_steps
        saved = -1
        while last is None or done < last:
            try:
                _, loss = session.run([spec.train_op, spec.loss])
            except OutOfRangeError:
                break
            if not numpy.isfinite(loss).all():
                raise RuntimeError(f"NaN loss during training, after step {done}, at {here()}.")
            now = int(session.run(step))
            if now == done and last is not None:
                what = f"train: the global step stays {done}, at {here()}"
                raise ArgumentError(what, "Give minimize global_step=tf.train.get_global_step().")
            done = now
            if every and done % every == 0:
                saver.save(session, path, done)
                saved = done
        if saved != done:
            saver.save(session, path, done)
        logs.info("Loss for final step: step = %d.", done)

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics over all batches by name, with the mean of ``loss`` and the ``global_step``.

        They are written for TensorBoard, too, to ``eval`` in the model's directory.

        Args:
            input_fn: A function that declares features and labels, or returns a dataset of such pairs.
            steps: At most so many batches.
            hooks: Not offered; raises unless None.
            checkpoint_path: The checkpoint; the latest one unless given.
            name: Of the evaluation; its events are written to ``eval_name``.
        """
        refuse("Estimator.evaluate", hooks=hooks or None)
        path = self._checkpoint(checkpoint_path, "evaluate")
        with self._declared(input_fn, ModeKeys.EVAL) as (step, spec):
            saver = Saver()
            pairs = {**spec.eval_metric_ops, "loss": metrics.mean(spec.loss)}
            values = {label: value for label, (value, _) in pairs.items()}
            updates = [update for _, update in pairs.values()]
            with self._session(saver, path) as session:
                done = 0
                while steps is None or done < steps:
                    try:
                        session.run(updates)
                    except OutOfRangeError:
                        break
                    done += 1
                found = dict(session.run({**values, "global_step": step}))
        with FileWriter(os.path.join(self.model_dir, f"eval_{name}" if name else "eval")) as writer:
            numbers = [(label, found[label]) for label in values if numpy.ndim(found[label]) == 0]
            text = b"".join(scalar_summary(label, float(value)) for label, value in numbers)
            writer.add_summary(text, found["global_step"])
        return found

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The predictions for each example, one after the other; for each batch without ``yield_single_examples``.

        Args:
            input_fn: A function that declares features (labels beside them are left out), or returns a dataset.
            predict_keys: Which of a dict of predictions.
            hooks: Not offered; raises unless None.
            checkpoint_path: The checkpoint; the latest one unless given.
            yield_single_examples: Whether batches are taken apart.
        """
        refuse("Estimator.predict", hooks=hooks or None)
        path = self._checkpoint(checkpoint_path, "predict")
        with self._declared(input_fn, ModeKeys.PREDICT) as (_, spec):
            saver = Saver() if global_variables() else None
            wanted = spec.predictions
            if predict_keys is not None:
                keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
                wanted = {key: value for key, value in wanted.items() if key in keys}
                if not wanted:
                    what = f"predict: no prediction is among {keys}, at {here()}"
                    raise ArgumentError(what, f"There are {', '.join(spec.predictions)}.")
            with self._session(saver, path) as session:
                batches = self._batches(session, wanted)
                yield from _examples(batches) if yield_single_examples else batches

    @staticmethod
    def _batches(session: Any, wanted: Any) -> Iterator[Any]:
        while True:
            try:
                yield session.run(wanted)
            except OutOfRangeError:
                return


def _examples(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        if isinstance(batch, dict):
            rows = zip(*batch.values())
            yield from (dict(zip(batch, row)) for row in rows)
        else:
            yield from batch
