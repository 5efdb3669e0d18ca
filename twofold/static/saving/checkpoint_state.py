"""The file that says which checkpoints a directory has, and what programs do with checkpoints themselves."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence

from twofold.static.errors import NotFoundError
from twofold.static.graph.docstrings import example
from twofold.static.saving.saver import STATE_FILE, CheckpointState, escaped_path, path_from, write_file


@example(
    "state = tf.train.generate_checkpoint_state_proto('models', 'models/a-2', ['models/a-1'])",
    "print(state.all_model_checkpoint_paths)",
    "['a-1', 'a-2']",
)
def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """Which checkpoints a directory has, by their paths from it where these are relative; the newest is the last.

    Raises ValueError where there is not a time for each path.
    """
    paths = list(all_model_checkpoint_paths or ())
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or ())
    if times and len(times) != len(paths):
        raise ValueError(f"{len(times)} times of {len(paths)} checkpoints. Give one for each.")

    made = CheckpointState(
        path_from(save_dir, model_checkpoint_path), [path_from(save_dir, path) for path in paths]
    )
    made.all_model_checkpoint_timestamps = times
    made.last_preserved_timestamp = last_preserved_timestamp
    return made


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write which checkpoints a directory has, for ``latest_checkpoint``.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.train.update_checkpoint_state(folder, folder + "/model-1")
    ...     state = tf.train.get_checkpoint_state(folder)
    ...     print(state.model_checkpoint_path == folder + "/model-1")
    True
    """
    state = generate_checkpoint_state_proto(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )
    lines = [f'model_checkpoint_path: "{escaped_path(state.model_checkpoint_path)}"']
    lines += [
        f'all_model_checkpoint_paths: "{escaped_path(one)}"' for one in state.all_model_checkpoint_paths
    ]
    lines += [f"all_model_checkpoint_timestamps: {time}" for time in state.all_model_checkpoint_timestamps]
    if last_preserved_timestamp is not None:
        lines.append(f"last_preserved_timestamp: {last_preserved_timestamp}")
    write_file(os.path.join(save_dir, latest_filename or STATE_FILE), ("\n".join(lines) + "\n").encode())


def _files(prefix: str) -> list[str]:
    """The files of a checkpoint, the index first: without it the others are none."""
    beside = glob.glob(glob.escape(prefix) + ".data-*")
    return [f"{prefix}.index", *beside]


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """When each checkpoint was written, in seconds; raises NotFoundError for one that is not there.

    >>> import twofold.static as tf
    >>> tf.train.get_checkpoint_mtimes([])
    []
    """
    found = []
    for prefix in checkpoint_prefixes:
        if not os.path.exists(f"{prefix}.index"):
            raise NotFoundError(f"there is no checkpoint {prefix}", "Check the path that save() returned.")
        found.append(os.path.getmtime(f"{prefix}.index"))
    return found


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Remove the files of a checkpoint, those that are there; version 1 is a single file.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.train.remove_checkpoint(folder + "/model-1")
    """
    files = [checkpoint_prefix] if checkpoint_format_version == 1 else _files(checkpoint_prefix)
    for path in (*files, f"{checkpoint_prefix}.{meta_graph_suffix}"):
        with contextlib.suppress(OSError):
            os.unlink(path)
