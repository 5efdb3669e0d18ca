"""Which variables TensorBoard's projector shows, and with which labels.

Source: ``projector_config.proto`` of TensorBoard.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.protobuf.messages import Field, Message


class SpriteMetadata(Message):
    """An image of small images, one for each row of a table."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "image_path": Field(1, "string"),
        "single_image_dim": Field(2, "int", True),
    }


class EmbeddingInfo(Message):
    """A table of vectors, and the files that say what its rows are."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "tensor_name": Field(1, "string"),
        "metadata_path": Field(2, "string"),
        "bookmarks_path": Field(3, "string"),
        "tensor_shape": Field(4, "int", True),
        "sprite": Field(5, SpriteMetadata),
        "tensor_path": Field(6, "string"),
    }


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

    FIELDS: ClassVar[dict[str, Field]] = {
        "model_checkpoint_path": Field(1, "string"),
        "embeddings": Field(2, EmbeddingInfo, True),
        "model_checkpoint_dir": Field(3, "string"),
    }


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
