"""Models that keep what they have learned in checkpoints between calls: ``tf.estimator.Estimator``."""

from __future__ import annotations

import inspect
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.event_files import scalar_summary
from twofold.runtime.tracing import here
from twofold.static import metrics
from twofold.static.api.op_functions import refuse
from twofold.static.data.datasets import Dataset
from twofold.static.estimator import export
from twofold.static.estimator.spec import EstimatorSpec, ModeKeys, RunConfig
from twofold.static.graph.graph import Graph
from twofold.static.platform import logs
from twofold.static.random import set_random_seed
from twofold.static.saving.saver import Saver, latest_checkpoint, read_checkpoint
from twofold.static.saving.warm_start import warm_started
from twofold.static.summary import FileWriter
from twofold.static.train.monitored_session import ChiefSessionCreator, MonitoredSession
from twofold.static.train.session_hooks import (
    CheckpointSaverHook,
    FinalOpsHook,
    LoggingTensorHook,
    NanTensorHook,
    StopAtStepHook,
    SummarySaverHook,
)
from twofold.static.train.session_run_hook import SessionRunContext, SessionRunHook
from twofold.static.train.step_counter import create_global_step
from twofold.static.variables.variable import Variable


class Estimator:
    """A model of which each call declares a graph anew, with the variables of the latest checkpoint.

    Args:
        model_fn: A function of ``features``, and of ``labels``, ``mode``, ``params`` and ``config`` as far as it
            takes them, that returns an ``EstimatorSpec``.
        model_dir: Directory of the checkpoints; that of ``config``, else a new one.
        config: A ``RunConfig``.
        params: A dict of settings for ``model_fn``.
        warm_start_from: A checkpoint, its directory, or ``WarmStartSettings``: what variables begin with.

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
        self.config = config or RunConfig()
        self._warm_start = warm_start_from
        chosen = model_dir or self.config.model_dir
        self.model_dir = os.fsdecode(chosen) if chosen else tempfile.mkdtemp()
        self.params, self._model_fn = dict(params or {}), model_fn

    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None before training."""
        return latest_checkpoint(self.model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """The directory that an evaluation of this name is written to."""
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint."""
        return sorted(read_checkpoint(self.checkpoint(None, "get_variable_names")))

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint."""
        held = read_checkpoint(self.checkpoint(None, "get_variable_value"))
        if name not in held:
            what = f"get_variable_value: there is no variable {name!r}, at {here()}"
            raise ArgumentError(what, f"It is one of {', '.join(sorted(held))}.")
        return held[name][1]

    def checkpoint(self, given: Any, what: str) -> str:
        """The checkpoint given, else the latest one; raises ValueError in the name of ``what`` if there is none."""
        found = given or self.latest_checkpoint()
        if not found:
            message = f"{what}: Could not find trained model in model_dir: {self.model_dir}, at {here()}"
            raise ArgumentError(message, "Call train first.")
        return str(found)

    def _trained(self, given: Any, what: str) -> str | None:
        """The checkpoint given, else the latest one; without any, variables have their first values."""
        found = given or self.latest_checkpoint()
        if not found:
            words = "Could not find trained model in model_dir: %s, running initialization to %s."
            logs.info(words, self.model_dir, what)
        return found or None

    def _declared(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, EstimatorSpec]:
        """The global step and what ``model_fn`` returns, declared in the default graph."""
        set_random_seed(self.config.tf_random_seed)
        step = create_global_step()
        return step, self.modelled(*self._inputs(input_fn, mode), mode)

    def modelled(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """What ``model_fn`` returns in the default graph."""
        spec = self._returned(features, labels, mode)
        spec = spec.as_estimator_spec() if hasattr(spec, "as_estimator_spec") else spec
        if not isinstance(spec, EstimatorSpec):
            what = f"model_fn returned a value of type {type(spec).__name__}, at {here()}"
            raise ArgumentError(what, "Return an EstimatorSpec.")
        return spec

    def _returned(self, features: Any, labels: Any, mode: str) -> Any:
        """What ``model_fn`` makes of features and of the arguments that it takes beside them."""
        known = {"labels": labels, **self._settings(mode)}
        taken = inspect.signature(self._model_fn).parameters
        if labels is not None and "labels" not in taken:
            raise ArgumentError(f"model_fn takes no labels, at {here()}", "Add the parameter labels.")
        logs.info("Calling model_fn.")
        found = self._model_fn(features, **{name: value for name, value in known.items() if name in taken})
        logs.info("Done calling model_fn.")
        return found

    def _settings(self, mode: str) -> dict[str, Any]:
        """What functions are given as far as they take it."""
        return {"mode": mode, "params": self._params_for(mode), "config": self.config}

    def _params_for(self, mode: str) -> dict[str, Any]:
        """The settings that the functions are given."""
        return self.params

    def _inputs(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, Any]:
        known = self._settings(mode)
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

    def _session(self, spec: EstimatorSpec, checkpoint: str | None, hooks: Sequence[Any]) -> MonitoredSession:
        """A monitored session with the values of a checkpoint, or the first ones."""
        config = self.config.session_config
        creator = ChiefSessionCreator(spec.scaffold, config=config, checkpoint_filename_with_path=checkpoint)
        return MonitoredSession(creator, hooks)

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:
        """Train from the latest checkpoint on, until the input ends or a number of steps is reached; returns itself.

        Args:
            input_fn: A function that declares features and labels, or returns a dataset of such pairs.
            hooks: Instances of ``SessionRunHook``.
            steps: How many more steps.
            max_steps: How many steps in all; not together with ``steps``.
            saving_listeners: Instances of ``CheckpointSaverListener``.
        """
        if steps is not None and max_steps is not None:
            raise ArgumentError(f"train: both steps and max_steps, at {here()}", "Give one of them.")
        for name, count in (("steps", steps), ("max_steps", max_steps)):
            if count is not None and count <= 0:
                raise ArgumentError(f"train: {name} is {count}, at {here()}", "Give a number above 0.")
        state = self.latest_checkpoint()
        if (
            max_steps is not None
            and state is not None
            and read_checkpoint(state)["global_step"][1] >= max_steps
        ):
            logs.info("Skipping training since max_steps has already saved.")
            return self
        with Graph().as_default():
            step, spec = self._declared(input_fn, ModeKeys.TRAIN)
            if self._warm_start is not None and state is None:
                warm_started(self._warm_start)
            scaffold = spec.scaffold
            if scaffold.saver is None:
                config = self.config
                scaffold.saver = Saver(
                    max_to_keep=config.keep_checkpoint_max,
                    keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                )
            limit = [StopAtStepHook(steps, max_steps)] if steps is not None or max_steps is not None else []
            chosen = [
                NanTensorHook(spec.loss),
                *([_StepCounts(step)] if limit else []),
                *self._usual_hooks(step, spec, saving_listeners),
                *spec.training_hooks,
                *spec.training_chief_hooks,
                *(hooks or []),
                *limit,
            ]
            loss = None
            creator = ChiefSessionCreator(
                scaffold, config=self.config.session_config, checkpoint_dir=self.model_dir
            )
            with MonitoredSession(creator, chosen) as session:
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
            logs.info("Loss for final step: %s.", loss)
        return self

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Write the model with the values of a checkpoint to a new directory, whose path it returns.

        Args:
            export_dir_base: Directory of all exports; that of one is named after the time.
            serving_input_receiver_fn: A function that declares a ``ServingInputReceiver``.
            assets_extra, as_text: Not offered; they raise unless empty.
            checkpoint_path: The checkpoint; the latest one unless given.
            experimental_mode: What the model is declared for.
        """
        refuse("export_saved_model", assets_extra=assets_extra, as_text=as_text)
        path = self.checkpoint(checkpoint_path, "export_saved_model")
        with Graph().as_default():
            set_random_seed(self.config.tf_random_seed)
            create_global_step()
            receiver = serving_input_receiver_fn()
            spec = self.modelled(receiver.features, None, experimental_mode)
            return export.written(export_dir_base, receiver, spec, path, self.config.session_config)

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """``export_saved_model``; ``strip_default_attrs`` changes nothing: there are no default attributes."""
        given = (export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path)
        return self.export_saved_model(*given)

    def _usual_hooks(self, step: Variable, spec: EstimatorSpec, listeners: Sequence[Any] | None) -> list[Any]:
        config = self.config
        seconds, steps = config.save_checkpoints_secs, config.save_checkpoints_steps
        found: list[Any] = []
        if seconds or steps:
            found.append(
                CheckpointSaverHook(
                    self.model_dir,
                    seconds or None,
                    steps or None,
                    scaffold=spec.scaffold,
                    listeners=listeners,
                )
            )
        elif listeners:
            what = f"train: saving_listeners without checkpoints, at {here()}"
            raise ArgumentError(what, "Set save_checkpoints_steps or save_checkpoints_secs of RunConfig.")
        if config.log_step_count_steps:
            shown = {"loss": spec.loss, "step": step}
            found.append(LoggingTensorHook(shown, every_n_iter=config.log_step_count_steps))
        if config.save_summary_steps:
            folder = self.model_dir
            found.append(
                SummarySaverHook(config.save_summary_steps, output_dir=folder, scaffold=spec.scaffold)
            )
        return found

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics over all batches by name, with the mean of ``loss`` and the ``global_step``.

        They are written for TensorBoard, too, to ``eval`` in the model's directory.

        Args:
            input_fn: A function that declares features and labels, or returns a dataset of such pairs.
            steps: At most so many batches.
            hooks: Instances of ``SessionRunHook``.
            checkpoint_path: The checkpoint; the latest one unless given, without any the first values.
            name: Of the evaluation; its events are written to ``eval_name``.
        """
        path = self._trained(checkpoint_path, "evaluate")
        with Graph().as_default():
            step, spec = self._declared(input_fn, ModeKeys.EVAL)
            pairs = {**spec.eval_metric_ops, "loss": metrics.mean(spec.loss)}
            values = {label: value for label, (value, _) in pairs.items()}
            updates = [update for _, update in pairs.values()]
            last = FinalOpsHook({**values, "global_step": step})
            chosen = [*spec.evaluation_hooks, *(hooks or []), last]
            with self._session(spec, path, chosen) as session:
                done = 0
                logs.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
                while not session.should_stop() and (steps is None or done < steps):
                    session.run(updates)
                    done += 1
            logs.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()))
            found = dict(last.final_ops_values)
        shown = ", ".join(f"{label} = {value}" for label, value in sorted(found.items()))
        logs.info("Saving dict for global step %d: %s", found["global_step"], shown)
        with FileWriter(self.eval_dir(name)) as writer:
            numbers = [(label, found[label]) for label in values if numpy.ndim(found[label]) == 0]
            text = b"".join(scalar_summary(label, float(value)) for label, value in numbers)
            writer.add_summary(text, found["global_step"])
        return found

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The predictions for each example, one after the other; for each batch without ``yield_single_examples``.

        Args:
            input_fn: A function that declares features (labels beside them are left out), or returns a dataset.
            predict_keys: Which of a dict of predictions.
            hooks: Instances of ``SessionRunHook``.
            checkpoint_path: The checkpoint; the latest one unless given, without any the first values.
            yield_single_examples: Whether batches are taken apart.
        """
        path = self._trained(checkpoint_path, "predict")
        with Graph().as_default():
            _, spec = self._declared(input_fn, ModeKeys.PREDICT)
            wanted = spec.predictions
            if predict_keys is not None:
                keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
                wanted = {key: value for key, value in wanted.items() if key in keys}
                if not wanted:
                    what = f"predict: no prediction is among {keys}, at {here()}"
                    raise ArgumentError(what, f"There are {', '.join(spec.predictions)}.")
            with self._session(spec, path, [*spec.prediction_hooks, *(hooks or [])]) as session:
                while not session.should_stop():
                    batch = session.run(wanted)
                    yield from _examples(batch) if yield_single_examples else [batch]


class _StepCounts(SessionRunHook):
    """Raises ArgumentError where a run leaves the global step as it is: training would never end."""

    def __init__(self, step: Variable) -> None:
        self._step = step

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Note the first step."""
        self._last = session.run(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        """Compare."""
        now = run_context.session.run(self._step)
        if now == self._last:
            what = f"train: the global step stays {now}, at {here()}"
            raise ArgumentError(what, "Give minimize global_step=tf.train.get_global_step().")
        self._last = now


def _examples(batch: Any) -> Iterator[Any]:
    if isinstance(batch, dict):
        yield from (dict(zip(batch, row)) for row in zip(*batch.values()))
    else:
        yield from batch
