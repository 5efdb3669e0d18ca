"""Checkpoints: the variables of a session in one file.

The format is this library's own: a magic word, a SHA-256 sum, and a NumPy ``.npz`` archive of the variables by
name. TensorFlow's own checkpoints cannot be read.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy

from twofold.errors import GraphError
from twofold.runtime.tracing import here
from twofold.static.variables import Variable, global_variables

_MAGIC = b"TWOFOLD-CHECKPOINT-1\n"
_STATE = "checkpoint"


def _write(path: str, content: bytes) -> None:
    """Write a file that is either there whole or not at all."""
    folder = os.path.dirname(path) or "."
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


class CheckpointState:
    """Which checkpoints a directory has."""

    def __init__(self, model_checkpoint_path: str, all_model_checkpoint_paths: list[str]) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = all_model_checkpoint_paths


class Saver:
    """Saves variables to a file and brings them back; of all global variables unless given.

    ``max_to_keep`` limits how many files one Saver leaves (None or 0: no limit).

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

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        **options: Any,
    ) -> None:
        found = var_list if var_list is not None else global_variables()
        if not found:
            raise ValueError(f"Saver: there are no variables to save, at {here()}. Declare them first.")
        if isinstance(found, Mapping):
            self._variables: dict[str, Variable] = dict(found)
        else:
            self._variables = {variable.op.name: variable for variable in found}
        self._max_to_keep = max_to_keep
        self.last_checkpoints: list[str] = []

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        **options: Any,
    ) -> str:
        """Write all variables to ``save_path`` (``-step`` is added) at once or not at all; the path.

        A missing directory is made.
        Raises GraphError for a variable without a value.
        """
        if global_step is not None:
            number = (
                global_step if isinstance(global_step, (int, numpy.integer)) else int(sess.run(global_step))
            )
            save_path = f"{save_path}-{number}"
        arrays = {
            name: sess._value_of(variable).detach().numpy() for name, variable in self._variables.items()
        }
        os.makedirs(os.path.dirname(save_path) or ".", exist_ok=True)
        stream = io.BytesIO()
        numpy.savez(stream, **arrays)
        content = stream.getvalue()
        _write(save_path, _MAGIC + hashlib.sha256(content).digest() + content)
        self.last_checkpoints = [path for path in self.last_checkpoints if path != save_path] + [save_path]
        while self._max_to_keep and len(self.last_checkpoints) > self._max_to_keep:
            old = self.last_checkpoints.pop(0)
            if os.path.exists(old):
                os.unlink(old)
        if write_state:
            lines = [
                f"model_checkpoint_path: {save_path}",
                *[f"all_model_checkpoint_paths: {path}" for path in self.last_checkpoints],
            ]
            state = os.path.join(os.path.dirname(save_path), latest_filename or _STATE)
            _write(state, "\n".join(lines).encode())
        return save_path

    def restore(self, sess: Any, save_path: str) -> None:
        """Give the variables the values of a file.

        Raises ValueError where there is no file, GraphError for one that is damaged or lacks a variable.
        """
        arrays = read_checkpoint(save_path)
        missing = [name for name in self._variables if name not in arrays]
        if missing:
            raise GraphError(
                f"restore: {save_path} has no variable '{missing[0]}', at {here()}",
                f"It has {', '.join(sorted(arrays))}; restore only those with Saver(var_list).",
            )
        found = {variable: variable.checked(arrays[name]) for name, variable in self._variables.items()}
        sess._state.update(found)


def read_checkpoint(path: str) -> dict[str, numpy.ndarray]:
    """The variables in a file; raises ValueError where there is none, GraphError for a damaged one."""
    if not os.path.isfile(path):
        raise ValueError(
            f"restore: there is no checkpoint {path}, at {here()}. Check the path that save() returned."
        )
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(_MAGIC):
        raise GraphError(
            f"restore: {path} is not a checkpoint of this library, at {here()}",
            "Give a file that Saver.save() wrote.",
        )
    body = content[len(_MAGIC) + 32 :]
    if hashlib.sha256(body).digest() != content[len(_MAGIC) : len(_MAGIC) + 32]:
        raise GraphError(
            f"restore: {path} is damaged, as its checksum is wrong, at {here()}",
            "Restore an older checkpoint.",
        )
    with numpy.load(io.BytesIO(body), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """Which checkpoints a directory has, or None."""
    path = os.path.join(checkpoint_dir, latest_filename or _STATE)
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").partition(": ") for line in file]
    paths = [value for key, _, value in lines if key == "all_model_checkpoint_paths"]
    return CheckpointState(next(value for key, _, value in lines if key == "model_checkpoint_path"), paths)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The newest checkpoint of a directory, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    return None if state is None else state.model_checkpoint_path


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of this name."""
    return bool(glob.glob(glob.escape(checkpoint_prefix))) and os.path.isfile(checkpoint_prefix)
