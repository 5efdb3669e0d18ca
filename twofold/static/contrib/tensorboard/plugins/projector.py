"""Which variables TensorBoard's projector shows, and with which labels.

Source: ``projector_config.proto`` of TensorBoard.
"""

from __future__ import annotations

import os
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.protobuf.messages import Message, fields, message

SpriteMetadata = message(
    "SpriteMetadata",
    "An image of small images, one for each row of a table.",
    "string image_path = 1; repeated int single_image_dim = 2",
)
EmbeddingInfo = message(
    "EmbeddingInfo",
    "A table of vectors, and the files that say what its rows are.",
    "string tensor_name = 1; string metadata_path = 2; string bookmarks_path = 3; "
    "repeated int tensor_shape = 4; SpriteMetadata sprite = 5; string tensor_path = 6",
)


class ProjectorConfig(Message):
    """The tables to show.

    >>> from twofold.static.contrib.tensorboard.plugins import projector
    >>> config = projector.ProjectorConfig()
    >>> config.embeddings.add().tensor_name = "words"
    >>> print(config, end="")
    embeddings {
      tensor_name: "words"
    }
    """

    FIELDS = fields(
        "string model_checkpoint_path = 1; repeated EmbeddingInfo embeddings = 2; "
        "string model_checkpoint_dir = 3"
    )


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Write ``projector_config.pbtxt``, which the projector reads, beside what a ``FileWriter`` writes.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> from twofold.static.contrib.tensorboard.plugins import projector
    >>> with tempfile.TemporaryDirectory() as folder, tf.summary.FileWriter(folder) as writer:
    ...     projector.visualize_embeddings(writer, projector.ProjectorConfig(model_checkpoint_path="m.ckpt"))
    ...     print(open(f"{folder}/projector_config.pbtxt").read(), end="")
    model_checkpoint_path: "m.ckpt"
    """
    if not isinstance(config, ProjectorConfig):
        what = f"visualize_embeddings: the configuration is of type {type(config).__name__}, at {here()}"
        raise ArgumentError(what, "Give a ProjectorConfig.")
    path = os.path.join(summary_writer.get_logdir(), "projector_config.pbtxt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(config))
