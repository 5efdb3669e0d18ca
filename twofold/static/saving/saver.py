"""Checkpoints: the variables of a session in TensorFlow's three files, see ``saving.tensor_bundle``."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import float32, int64, string
from twofold.errors import GraphError
from twofold.files import atomic_write
from twofold.runtime.tracing import here
from twofold.static.errors import NotFoundError
from twofold.static.graph.context import at_once
from twofold.static.platform import logs
from twofold.static.saving.tensor_bundle import clean_bundle, read_bundle, write_bundle
from twofold.static.variables.variable import Variable, global_variables

STATE_FILE = "checkpoint"
_HOUR = 3600.0
_TINY = 1e-30
_MANY = 10**9  # steps, after which all powers are 0


def write_file(path: str, content: bytes) -> None:
    with atomic_write(path) as file:
        file.write(content)


class CheckpointState:
    """Which checkpoints a directory has."""

    def __init__(self, model_checkpoint_path: str, all_model_checkpoint_paths: list[str]) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = all_model_checkpoint_paths
        self.all_model_checkpoint_timestamps: list[float] = []
        self.last_preserved_timestamp: float | None = None


class Saver:
    """Saves variables to files and brings them back.

    ``name``, ``sharded`` and ``restore_sequentially`` change nothing: there is one device, and no operation.

    Args:
        var_list: variables, or a dictionary of them by the names they have in the files; all global variables
            unless given.
        reshape: whether ``restore`` gives values of another shape with as many elements the variable's shape.
        sharded: has no effect on values; the variables of one device make one data file.
        max_to_keep: how many checkpoints stay (None or 0: all).
        keep_checkpoint_every_n_hours: of the checkpoints that go, one for each such time stays after all.
        name: the name of the operations in TensorFlow; nothing here.
        restore_sequentially: has no effect on values.
        saver_def: not offered; raises unless None.
        builder: not offered; raises unless None.
        defer_build: look for the variables at the first use.
        allow_empty: whether there may be no variables.
        write_version: 2, the format of today's TensorFlow.
        pad_step_number: whether steps have eight digits in names.
        save_relative_paths: whether the state file names checkpoints by their paths from its directory.
        filename: not offered; raises unless None.

    >>> import twofold.static as tf
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable([1.0, 2.0])
    ...     session.run(w.initializer)
    ...     path = tf.train.Saver().save(session, folder + "/model")
    ...     session.run(w.assign([0.0, 0.0])) is None
    ...     tf.train.Saver().restore(session, path)
    ...     print(session.run(w))
    False
    [1. 2.]
    """

    V2 = 2

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        refused = {"saver_def": saver_def, "builder": builder, "filename": filename}
        if given := [key for key, value in refused.items() if value is not None]:
            raise ValueError(f"Saver: {given[0]} is not offered, at {here()}. Leave it out.")
        if write_version != self.V2:
            raise ValueError(
                f"Saver: write_version is {write_version}, at {here()}. Use 2, the present format."
            )
        self._var_list, self._allow_empty, self._reshape = var_list, allow_empty, reshape
        self._found: dict[str, Variable] | None = None if defer_build else self._named()
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._step = "{:08d}" if pad_step_number else "{}"
        self._relative = save_relative_paths
        self._kept_at = time.time()
        self._last: dict[str, float] = {}  # paths and the times at which they were written, the oldest first

    def _named(self) -> dict[str, Variable]:
        found = self._var_list = self._var_list if self._var_list is not None else global_variables()
        if not found and not self._allow_empty:
            raise ValueError(f"Saver: there are no variables to save, at {here()}. Declare them first.")
        return (
            dict(found) if isinstance(found, Mapping) else {variable.op.name: variable for variable in found}
        )

    def build(self) -> None:
        """Look for the variables now, where ``defer_build`` waited."""
        self._found = self._named()

    @property
    def _variables(self) -> dict[str, Variable]:
        if self._found is None:
            self.build()
        assert self._found is not None
        return self._found

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that may go when others come, the oldest first."""
        return list(self._last)

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Let these paths be the last checkpoints; without times they never go, as in TensorFlow."""
        self._last = dict.fromkeys(last_checkpoints, math.inf)

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """Let these be the last checkpoints: pairs of a path and the time at which it was written."""
        self._last = dict(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """Let those of these paths that are checkpoints be the last ones, so that they go when others come."""
        self._last = {
            path: os.path.getmtime(f"{path}.index") for path in checkpoint_paths if checkpoint_exists(path)
        }

    def export_meta_graph(self, filename: Any = None, as_text: bool = False, **options: Any) -> Any:
        """``tf.train.export_meta_graph`` with its options; the message tells of this saver, too."""
        module = import_module("twofold.static.graph_def.meta_graph")
        message = self._described(module.export_meta_graph(**options))
        if filename is not None:
            module.write_meta_graph(message, filename, as_text)
        return message

    def _described(self, message: Any) -> Any:
        """A graph's message, with what this saver saves."""
        saver = message.saver
        for name, variable in self._variables.items():
            saver.variables.add(name=name, variable=variable.op.name)
        saver.max_to_keep, saver.keep_checkpoint_every_n_hours = self._max_to_keep or 0, self._hours
        return message

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Write all variables; a checkpoint of the same path stays as it was until the new one is complete.

        A missing directory is made.

        Args:
            sess: the session that holds the values; None where operations are computed at once, where no graph is
                written.
            save_path: the path, to which endings are added.
            global_step: a number or tensor, added to the path as ``-step``.
            latest_filename: name of the state file (``checkpoint``).
            meta_graph_suffix: ending of the file with the graph.
            write_meta_graph: whether to write that.
            write_state: whether to write the state file, which ``latest_checkpoint`` reads.
            strip_default_attrs: has no effect: there are no attributes in the file with the graph.
            save_debug_info: not offered; raises if true.

        Returns:
            The path with the step.

        Raises:
            GraphError: a variable has no value.
            ValueError: a variable holds strings.
        """
        if save_debug_info:
            raise ValueError(f"Saver.save: save_debug_info is not offered, at {here()}. Leave it out.")
        if global_step is not None:
            is_number = isinstance(global_step, (int, numpy.integer))
            step = (
                global_step if is_number else int(global_step.numpy() if at_once() else sess.run(global_step))
            )
            save_path = f"{save_path}-{self._step.format(step)}"
        tensors = {name: self._value(sess, name, v) for name, v in self._variables.items()}
        for name, variable in self._variables.items():
            steps = int(tensors[name][1]) if variable.powers else 0
            for power, base in variable.powers.items():
                tensors[power] = (float32, numpy.array(base ** (steps + 1), numpy.float32))
        os.makedirs(os.path.dirname(save_path) or ".", exist_ok=True)
        write_bundle(save_path, tensors)
        if write_meta_graph and not at_once():
            message = self._described(
                import_module("twofold.static.graph_def.meta_graph").meta_graph_of(sess.graph)
            )
            write_file(f"{save_path}.{meta_graph_suffix}", message.SerializeToString())
        self._remember(save_path, meta_graph_suffix)
        if write_state:
            self._write_state(os.path.join(os.path.dirname(save_path), latest_filename or STATE_FILE))
        return save_path

    @staticmethod
    def _value(sess: Any, name: str, variable: Variable) -> tuple[Any, numpy.ndarray]:
        value = variable.current() if at_once() else sess._value_of(variable)
        if value.dtype is string:
            raise ValueError(f"Saver.save: '{name}' holds strings, at {here()}. Leave it out with var_list.")
        return value.dtype, value.detach().numpy()

    def _remember(self, save_path: str, suffix: str) -> None:
        self._last.pop(save_path, None)
        self._last[save_path] = time.time()
        while self._max_to_keep and len(self._last) > self._max_to_keep:
            old = next(iter(self._last))
            if self._last.pop(old) - self._kept_at > self._hours * _HOUR:
                self._kept_at += self._hours * _HOUR
                continue
            import_module("twofold.static.saving.checkpoint_state").remove_checkpoint(old, 2, suffix)

    def _write_state(self, state: str) -> None:
        folder = os.path.dirname(state)
        paths = [path_from(folder, path, self._relative) for path in self.last_checkpoints]
        lines = [f'model_checkpoint_path: "{escaped_path(paths[-1])}"']
        lines += [f'all_model_checkpoint_paths: "{escaped_path(path)}"' for path in paths]
        write_file(state, ("\n".join(lines) + "\n").encode())

    def restore(self, sess: Any, save_path: str) -> None:
        """Give the variables in ``sess``, None where operations are computed at once, the values of a checkpoint.

        Raises ValueError where there is none, NotFoundError for one that lacks a variable, GraphError for one that is
        damaged or has another dtype for it.
        """
        tensors = read_checkpoint(save_path)
        logs.info("Restoring parameters from %s", save_path)
        for name, variable in self._variables.items():
            if name not in tensors and variable.powers and variable.powers.keys() <= tensors.keys():
                tensors[name] = (int64, numpy.array(_steps(variable.powers, tensors)))
        missing = [name for name in self._variables if name not in tensors]
        if missing:
            raise NotFoundError(
                f"restore: {save_path} has no variable '{missing[0]}', at {here()}",
                f"It has {', '.join(sorted(tensors))}; restore only those with Saver(var_list).",
            )
        found = {}
        for name, variable in self._variables.items():
            dtype, array = tensors[name]
            if dtype is not variable.dtype:
                raise GraphError(
                    f"restore: '{name}' is {dtype.name} in {save_path} and {variable.describe()}, at {here()}",
                    "Declare the variable with the dtype of the file.",
                )
            shape = variable.type_.shape
            if self._reshape and min(shape, default=0) >= 0 and array.size == numpy.prod(shape):
                array = array.reshape(shape)
            found[variable] = variable.checked(_core.from_array(array, False, dtype.code))
        if at_once():
            for variable, value in found.items():
                variable.assign(value)
        else:
            sess._state.update(found)


def _steps(powers: Mapping[str, float], tensors: Mapping[str, Any]) -> int:
    """The number of steps after which TensorFlow's products of float32 are what a checkpoint holds.

    The smallest base tells it best, as long as its power is no tiny number.
    """
    for name, base in sorted(powers.items(), key=lambda item: item[1]):
        power = float(tensors[name][1])
        if 0 < base < 1 and power > _TINY:
            return max(round(math.log(power) / math.log(base)) - 1, 0)
    return _MANY


def escaped_path(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    input_map: Any = None,
) -> Saver | None:
    """Declare in the default graph what a saver wrote beside a checkpoint; one like that saver, None without variables.

    Operations without a counterpart in TensorFlow, those of training among them, are there by name and raise when they
    are run.

    Args:
        meta_graph_or_file: The path of the file, or a message.
        clear_devices: Whether devices are left out.
        import_scope: Stands before all names.
        input_map: Tensors that replace inputs, by their names in the message.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.Graph().as_default(), tf.Session() as session:
    ...         y = tf.multiply(tf.Variable(3.0), 2.0, name="y")
    ...         session.run(tf.global_variables_initializer())
    ...         path = tf.train.Saver().save(session, folder + "/model")
    ...     with tf.Graph().as_default(), tf.Session() as session:
    ...         saver = tf.train.import_meta_graph(path + ".meta")
    ...         saver.restore(session, path)
    ...         print(session.run("y:0"))
    6.0
    """
    module = import_module("twofold.static.graph_def.meta_graph")
    variables, options = module.enter_meta_graph(meta_graph_or_file, clear_devices, import_scope, input_map)
    return Saver(variables, **options) if variables else None


def read_checkpoint(path: str) -> dict[str, tuple[Any, numpy.ndarray]]:
    """Dtypes and values of a checkpoint; raises ValueError where there is none, GraphError for a damaged one."""
    clean_bundle(path)
    if not checkpoint_exists(path):
        raise ValueError(
            f"restore: {path} is not a valid checkpoint: there is no checkpoint of this path, at {here()}. "
            "Check the path that save() returned."
        )
    try:
        return read_bundle(path)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise GraphError(
            f"restore: {path} is damaged: {error}, at {here()}", "Restore an older checkpoint."
        ) from None


_LINE = re.compile(r'^\s*(\w+)\s*:\s*"((?:[^"\\]|\\.)*)"\s*$', re.M)


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """Which checkpoints a directory has, or None."""
    path = os.path.join(checkpoint_dir, latest_filename or STATE_FILE)
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        rows = [(key, re.sub(r"\\(.)", r"\1", value)) for key, value in _LINE.findall(file.read())]
    latest = [_beside(value, checkpoint_dir) for key, value in rows if key == "model_checkpoint_path"]
    paths = [_beside(value, checkpoint_dir) for key, value in rows if key == "all_model_checkpoint_paths"]
    return CheckpointState(latest[0], paths) if latest else None


def path_from(folder: str, path: str, relative: bool = False) -> str:
    """A path as a state file in ``folder`` has it: from there if both are relative, or if ``relative`` asks for it."""
    if os.path.isabs(folder) or os.path.isabs(path):
        return os.path.relpath(path, folder) if relative and os.path.isabs(path) else path
    return os.path.relpath(path, folder or ".")


def _beside(path: str, folder: str) -> str:
    """A path of a state file; one that is relative starts at the directory of the file, unless it is there as it is."""
    joined = os.path.join(folder, path)
    return joined if os.path.isabs(path) or checkpoint_exists(joined) or not checkpoint_exists(path) else path


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The newest checkpoint of a directory, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return state.model_checkpoint_path


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of this path."""
    return os.path.isfile(checkpoint_prefix + ".index")
