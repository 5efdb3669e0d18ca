"""Looking into checkpoints without a graph."""

from __future__ import annotations

import os
from typing import Any

import numpy

from twofold.dtypes import DType
from twofold.runtime.tracing import here
from twofold.static.errors import NotFoundError
from twofold.static.graph.docstrings import example
from twofold.static.saving.saver import latest_checkpoint, read_checkpoint

_SAVED = (
    "import tempfile; folder = tempfile.mkdtemp()",
    'w = tf.Variable([1.0, 2.0], name="w")',
    "session.run(w.initializer)",
    'path = tf.train.Saver().save(session, folder + "/model")',
)


@example(
    *_SAVED,
    "reader = tf.train.NewCheckpointReader(path)",
    'print(reader.get_variable_to_shape_map(), reader.get_tensor("w"))',
    "{'w': [2]} [1. 2.]",
)
class NewCheckpointReader:
    """The variables of a checkpoint: their names, shapes, dtypes and values.

    Raises ValueError where there is none of this path, GraphError for a damaged one.
    """

    def __init__(self, filepattern: str) -> None:
        self._tensors = read_checkpoint(filepattern)

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a variable of this name."""
        return tensor_str in self._tensors

    def get_tensor(self, tensor_str: str) -> numpy.ndarray:
        """The value of a variable; raises NotFoundError."""
        if tensor_str not in self._tensors:
            names = ", ".join(sorted(self._tensors))
            raise NotFoundError(
                f"no variable '{tensor_str}' in the checkpoint, which has {names}, at {here()}"
            )
        return self._tensors[tensor_str][1]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of each variable."""
        return {name: list(array.shape) for name, (_, array) in self._tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of each variable."""
        return {name: dtype for name, (dtype, _) in self._tensors.items()}


@example(*_SAVED, 'print(tf.train.load_checkpoint(folder).has_tensor("w"))', "True")
def load_checkpoint(ckpt_dir_or_file: str) -> NewCheckpointReader:
    """A reader of a checkpoint, or of the newest of a directory; raises ValueError where there is none."""
    path = ckpt_dir_or_file
    if os.path.isdir(path):
        found = latest_checkpoint(path)
        if found is None:
            raise NotFoundError(
                f"load_checkpoint: there is no checkpoint in {path}, at {here()}", "Save one there first."
            )
        path = found
    return NewCheckpointReader(path)


@example(*_SAVED, "print(tf.train.list_variables(folder))", "[('w', [2])]")
def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Names and shapes of the variables of a checkpoint, in the order of their names."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


@example(*_SAVED, 'print(tf.train.load_variable(folder, "w"))', "[1. 2.]")
def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of one variable of a checkpoint; a name may end in ``:0``."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))
