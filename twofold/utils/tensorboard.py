"""``SummaryWriter``: event files with PyTorch's names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy

from twofold import _core
from twofold.errors import ArgumentError
from twofold.event_files import (
    EventFile,
    histogram_summary,
    image_summary,
    node_def,
    scalar_summary,
    text_summary,
)
from twofold.runtime.tracing import here

Tensor = _core.Tensor


def _array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else numpy.asarray(value)


def _number(value: Any, tag: str) -> float:
    array = _array(value)
    if array.size != 1:
        raise ArgumentError(f"add_scalar: {tag!r} has {array.size} elements, at {here()}", "Give one number.")
    return float(array.reshape(()))


class SummaryWriter:
    """Writes numbers, histograms, images, texts and graphs to an event file, which TensorBoard shows.

    Args:
        log_dir: The directory; by default one in ``runs`` that is named for the time.
        comment: The end of the default directory's name.
        filename_suffix: The end of the file's name.

    >>> import glob, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SummaryWriter(folder) as writer:
    ...         writer.add_scalar("loss", 0.5, 3)
    ...     len(glob.glob(folder + "/events.out.tfevents.*"))
    1
    """

    def __init__(self, log_dir: Any = None, comment: str = "", filename_suffix: str = "") -> None:
        if log_dir is None:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + comment)
        self.log_dir = os.fspath(log_dir)
        self._suffix = filename_suffix
        self._file = EventFile(self.log_dir, filename_suffix)
        self._others: dict[str, EventFile] = {}

    def get_logdir(self) -> str:
        """The directory."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a number."""
        self._file.add_summary(scalar_summary(tag, _number(scalar_value, tag)), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write numbers that stand in one chart, each to a directory of its own inside this one."""
        for tag, value in tag_scalar_dict.items():
            name = f"{main_tag.replace('/', '_')}_{tag}"
            if name not in self._others:
                self._others[name] = EventFile(os.path.join(self.log_dir, name), self._suffix)
            self._others[name].add_summary(
                scalar_summary(main_tag, _number(value, tag)), global_step, walltime
            )

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write the distribution of a tensor's elements, which must be finite."""
        self._file.add_summary(histogram_summary(tag, _array(values)), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image: bytes, or numbers from 0 to 1; ``dataformats`` names the axes, such as "HWC" or "HW"."""
        self._file.add_summary(
            image_summary(tag, _pixels(_array(img_tensor), dataformats)), global_step, walltime
        )

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write images side by side."""
        array = _array(img_tensor)
        if "N" not in dataformats:
            raise ArgumentError(f"add_images: axes {dataformats!r}, at {here()}", "Name one of them N.")
        rows = numpy.moveaxis(array, dataformats.index("N"), 0)
        pixels = [_pixels(one, dataformats.replace("N", "")) for one in rows]
        self._file.add_summary(image_summary(tag, numpy.concatenate(pixels, 1)), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text."""
        self._file.add_summary(text_summary(tag, text_string), global_step, walltime)

    def add_graph(self, model: Any, input_to_model: Any = None) -> None:
        """Write what ``twofold.draw`` shows of a model, or of a declared graph."""
        inputs = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        given = () if input_to_model is None else tuple(inputs)
        view = import_module("twofold.debug.draw").draw(model, *given, stages=False).picture.views[0]
        self._file.add_graph(_graph_def(view))

    def flush(self) -> None:
        """Let TensorBoard see all that was written."""
        for file in (self._file, *self._others.values()):
            file.flush()

    def close(self) -> None:
        """Write everything, and close the files."""
        for file in (self._file, *self._others.values()):
            file.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _pixels(array: Any, axes: str) -> Any:
    """An image as bytes, height, width and channels in this order."""
    if array.ndim != len(axes) or not set(axes) <= set("CHW"):
        raise ArgumentError(
            f"add_image: {array.ndim} axes of shape {list(array.shape)}, named {axes!r}, at {here()}",
            "Let dataformats name each axis: C, H or W.",
        )
    if "C" not in axes:
        array, axes = array[..., None], axes + "C"
    array = array.transpose([axes.index(axis) for axis in "HWC"])
    if array.dtype != numpy.uint8:
        array = (numpy.clip(array, 0.0, 1.0) * 255.0 + 0.5).astype(numpy.uint8)
    return array


def _graph_def(view: Any) -> bytes:
    """A view of a picture as a ``GraphDef`` message; boxes are scopes."""

    def clean(part: str) -> str:
        return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in part)

    step_names = ["/".join([*map(clean, step.boxes), f"{clean(step.name)}_{step.id}"]) for step in view.steps]
    data_names = {
        datum.id: f"{clean(datum.name or datum.kind)}_{datum.id}"
        for datum in view.data
        if datum.producer < 0 and datum.kind != "constant"
    }
    message = b"".join(node_def(name, view.data[number].kind, []) for number, name in data_names.items())
    for step, name in zip(view.steps, step_names):
        inputs = []
        for number in step.inputs:
            maker = view.data[number].producer
            if maker >= 0:
                inputs.append(step_names[maker])
            elif number in data_names:
                inputs.append(data_names[number])
        message += node_def(name, step.name, inputs)
    return message
