"""``SummaryWriter``: event files with PyTorch's names."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold import _core
from twofold.errors import ArgumentError
from twofold.event_files import (
    EventFile,
    audio_summary,
    counted_summary,
    histogram_summary,
    image_summary,
    in_grid,
    node_def,
    png,
    scalar_summary,
    text_summary,
    video_summary,
)
from twofold.event_plugins import (
    embedding_text,
    hyperparameter_summaries,
    layout_summary,
    mesh_summaries,
    precision_recall,
    precision_recall_summary,
    sprite_of,
    tensor_summary,
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


def _hyperparameter(name: str, value: Any) -> Any:
    if value is None or isinstance(
        value, (bool, int, float, str, numpy.bool_, numpy.integer, numpy.floating)
    ):
        return value
    if isinstance(value, Tensor) and value.numel() == 1:
        return value.item()
    raise ValueError(
        f"add_hparams: {name!r} is of type {type(value).__name__}, at {here()}. Give a number, string, bool, or tensor "
        "of one element."
    )


def _columns(metadata: Sequence[Any], header: Sequence[str] | None) -> list[Sequence[Any]]:
    """The lines of a table of labels; with a header, each label is a list of columns."""
    if not header:
        return [[one] for one in metadata]
    if any(len(one) != len(header) for one in metadata):
        raise ArgumentError(
            f"add_embedding: labels that do not have the {len(header)} columns of metadata_header, at {here()}",
            "Give each a list of as many.",
        )
    return [header, *metadata]


def _write_lines(folder: str, name: str, lines: Sequence[Sequence[Any]]) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, line)) + "\n" for line in lines)


class SummaryWriter:
    """Writes what TensorBoard shows to an event file: numbers, histograms, images, sound, texts, graphs, curves.

    Args:
        log_dir: The directory; by default one in ``runs`` that is named for the time.
        comment: The end of the default directory's name.
        purge_step: TensorBoard drops what earlier files of the directory hold from this step on.
        max_queue: The file is flushed when more events than this wait.
        flush_secs: The file is flushed by the first event that comes so many seconds after the last flush.
        filename_suffix: The end of the file's name.

    >>> import glob, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SummaryWriter(folder) as writer:
    ...         writer.add_scalar("loss", 0.5, 3)
    ...     len(glob.glob(folder + "/events.out.tfevents.*"))
    1
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if log_dir is None:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + comment)
        self.log_dir = os.fspath(log_dir)
        self._settings = filename_suffix, purge_step, max_queue, flush_secs
        self._file = EventFile(self.log_dir, *self._settings)
        self._others: dict[str, EventFile] = {}
        self._embeddings = ""

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
                self._others[name] = EventFile(os.path.join(self.log_dir, name), *self._settings)
            self._others[name].add_summary(
                scalar_summary(main_tag, _number(value, tag)), global_step, walltime
            )

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write the distribution of a tensor's elements, which must be finite."""
        array = _array(values)
        if not array.size:
            raise ValueError(f"add_histogram: the input has no element, at {here()}")
        self._file.add_summary(histogram_summary(tag, array), global_step, walltime)

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

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Write a figure of matplotlib as an image, or a list of figures of one size side by side.

        Each is closed unless ``close`` is False.
        """
        figures = list(figure) if isinstance(figure, (list, tuple)) else [figure]
        pixels = []
        for one in figures:
            canvas = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(one)
            canvas.draw()
            pixels.append(numpy.asarray(canvas.buffer_rgba(), numpy.uint8)[:, :, :3])
            if close:
                import_module("matplotlib.pyplot").close(one)
        self._file.add_summary(image_summary(tag, numpy.concatenate(pixels, 1)), global_step, walltime)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Write films ``[N, frames, channels, height, width]`` of bytes, or numbers from 0 to 1, in a grid.

        There are ``fps`` frames a second, and 1 or 3 channels. Frames of more than 256 colours lose some: the
        format is GIF.
        """
        films = _array(vid_tensor)
        if films.ndim != 5 or films.shape[2] not in (1, 3):
            raise ArgumentError(
                f"add_video: {tag!r} has shape {list(films.shape)}, at {here()}",
                "Give [films, frames, channels, height, width] with 1 or 3 channels.",
            )
        frames = numpy.stack(
            [in_grid([_pixels(one, "CHW") for one in films[:, k]]) for k in range(films.shape[1])]
        )
        self._file.add_summary(video_summary(tag, frames, fps), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write meshes, or point clouds where there are no faces.

        Args:
            tag: The name.
            vertices: ``[count, points, 3]``, coordinates.
            colors: ``[count, points, 3]``, from 0 to 255.
            faces: ``[count, triangles, 3]``, the numbers of the points of each triangle.
            config_dict: Settings of the scene, as three.js names them.
            global_step: The step.
            walltime: The time, in seconds; by default now.

        Raises ArgumentError for other shapes.
        """
        parts = {"VERTEX": vertices, "FACE": faces, "COLOR": colors}
        kinds = {"VERTEX": numpy.float32, "FACE": numpy.int32, "COLOR": numpy.uint8}
        arrays = {name: _array(one).astype(kinds[name]) for name, one in parts.items() if one is not None}
        for name, array in arrays.items():
            if array.ndim != 3 or array.shape[2] != 3:
                raise ArgumentError(
                    f"add_mesh: {name} of shape {list(array.shape)}, at {here()}",
                    "Give three numbers for each of several points of several meshes.",
                )
        for message in mesh_summaries(tag, arrays, json.dumps(dict(config_dict or {}), sort_keys=True)):
            self._file.add_summary(message, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write the elements of a tensor."""
        self._file.add_summary(tensor_summary(tag, _array(tensor)), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text."""
        self._file.add_summary(text_summary(tag, text_string), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Write sound of one channel, numbers from -1 to 1, ``sample_rate`` of them a second."""
        sound = _array(snd_tensor).squeeze()
        if sound.ndim != 1:
            raise ArgumentError(
                f"add_audio: {tag!r} has shape {list(sound.shape)}, at {here()}", "Give one channel."
            )
        self._file.add_summary(audio_summary(tag, sound[:, None], sample_rate), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a distribution that was counted already.

        Args:
            tag: The name of the chart.
            min: The smallest value.
            max: The largest value.
            num: How many values there are.
            sum: Their sum.
            sum_squares: The sum of their squares.
            bucket_limits: The upper limit of each bucket, ascending.
            bucket_counts: How many values are in each bucket.
            global_step: The step.
            walltime: The time, in seconds; by default now.

        Raises ArgumentError where there are not as many limits as counts.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ArgumentError(
                f"add_histogram_raw: {len(bucket_limits)} limits for {len(bucket_counts)} counts, at {here()}",
                "Give one upper limit for each bucket.",
            )
        content = counted_summary(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._file.add_summary(content, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write the precision and recall of predictions at thresholds from 0 to 1.

        Args:
            tag: The name of the curve.
            labels: 1 or True where an element is of the class, of any shape.
            predictions: The probability of each element to be of the class, from 0 to 1, of the same shape.
            global_step: The step.
            num_thresholds: How many thresholds there are; more than 127 are 127.
            weights: A factor for each element.
            walltime: The time, in seconds; by default now.

        Raises ArgumentError for shapes that differ and for predictions that are no probabilities.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     writer.add_pr_curve("digits", [0, 1, 1], [0.2, 0.9, 0.4], 3)
        """
        truth, given = _array(labels), _array(predictions)
        if truth.shape != given.shape:
            raise ArgumentError(
                f"add_pr_curve: labels {list(truth.shape)} for predictions {list(given.shape)}, at {here()}",
                "Give one label for each prediction.",
            )
        if not ((given >= 0) & (given <= 1)).all():
            raise ArgumentError(
                f"add_pr_curve: {tag!r} has predictions outside of 0 to 1, at {here()}", "Give probabilities."
            )
        factors = None if weights is None else numpy.broadcast_to(_array(weights), given.shape)
        rows = precision_recall(truth, given, num_thresholds, factors)
        self._file.add_summary(precision_recall_summary(tag, rows, num_thresholds), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write a precision-recall curve that was counted already; each argument has a number for each threshold.

        ``weights`` must be None: the counts have them. Raises ArgumentError for it, and for lengths that differ.
        """
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        rows = [_array(one) for one in (*counts, precision, recall)]
        if weights is not None:
            raise ArgumentError(f"add_pr_curve_raw: weights, at {here()}", "Count with them.")
        if any(row.shape != (num_thresholds,) for row in rows) or num_thresholds > 127:
            raise ArgumentError(
                f"add_pr_curve_raw: shapes {[list(row.shape) for row in rows]} for {num_thresholds} thresholds, at "
                f"{here()}",
                "Give each a number for every threshold, of which there are 127 at most.",
            )
        self._file.add_summary(precision_recall_summary(tag, rows, num_thresholds), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write hyperparameters and what came of them, as a run in a directory of its own inside this one.

        Args:
            hparam_dict: Numbers, strings, bools and tensors of one element by name; None is left out.
            metric_dict: The resulting numbers by the tags of their scalars.
            hparam_domain_discrete: All values that a hyperparameter takes, for some of them.
            run_name: The name of the directory; by default the time.
            global_step: The step of the numbers.

        Raises:
            TypeError: For what is no dict, and for a domain that is no list of values of the hyperparameter's type.
            ValueError: For a hyperparameter of another type.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     writer.add_hparams({"rate": 0.1, "kind": "adam"}, {"loss": 0.5}, run_name="first")
        ...     os.listdir(folder + "/first")[0].startswith("events.out.tfevents.")
        True
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError(f"add_hparams: hparam_dict and metric_dict should be dictionaries, at {here()}.")
        values = {name: _hyperparameter(name, value) for name, value in hparam_dict.items()}
        domains = hparam_domain_discrete or {}
        for name, domain in domains.items():
            kind = type(hparam_dict.get(name))
            if (
                name not in hparam_dict
                or type(domain) is not list
                or not all(type(one) is kind for one in domain)
            ):
                raise TypeError(
                    f"add_hparams: hparam_domain_discrete[{name!r}] should be a list of values of the type of "
                    f"hparam_dict[{name!r}], at {here()}."
                )
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as run:
            for message in hyperparameter_summaries(values, list(metric_dict), domains):
                run._file.add_summary(message, global_step)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Write vectors that the projector shows, with the labels and images of their rows.

        Args:
            mat: ``[count, size]``, a vector in each row.
            metadata: The label of each row; with ``metadata_header`` a list of labels, one in each column.
            label_img: ``[count, channels, height, width]``, images of 1 or 3 channels, bytes or numbers from 0 to 1.
            global_step: The step.
            tag: The name of the vectors.
            metadata_header: The names of the columns of ``metadata``.

        Raises ArgumentError for shapes and lengths that do not fit.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     writer.add_embedding(numpy.eye(2), ["first", "second"], tag="words")
        ...     sorted(os.listdir(folder + "/00000/words"))
        ['metadata.tsv', 'tensors.tsv']
        """
        rows, images = _array(mat), None if label_img is None else _array(label_img)
        if rows.ndim != 2:
            raise ArgumentError(
                f"add_embedding: vectors of shape {list(rows.shape)}, at {here()}",
                "Give one in each row of a matrix.",
            )
        for what, given in (("labels", metadata), ("images", images)):
            if given is not None and len(given) != len(rows):
                raise ArgumentError(
                    f"add_embedding: {len(given)} {what} for {len(rows)} vectors, at {here()}",
                    "Give one for each.",
                )
        encoded = tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")
        number = str(global_step or 0).zfill(5)
        folder = os.path.join(self.log_dir, number, encoded)
        os.makedirs(folder, exist_ok=True)
        _write_lines(folder, "tensors.tsv", [[float(one) for one in row] for row in rows])
        if metadata is not None:
            _write_lines(folder, "metadata.tsv", _columns(metadata, metadata_header))
        if images is not None:
            pixels = [_pixels(image, "CHW") for image in images]
            colours = numpy.stack([numpy.repeat(one, 3 // one.shape[2], 2) for one in pixels])
            with open(os.path.join(folder, "sprite.png"), "wb") as file:
                file.write(png(sprite_of(colours)))
        size = None if images is None else (images.shape[3], images.shape[2])
        self._embeddings += embedding_text(
            f"{tag}:{number}", f"{number}/{encoded}", metadata is not None, size
        )
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(self._embeddings)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Lay out charts of several scalars, once for a writer.

        ``layout`` is ``{category: {title: [kind, tags]}}``; a kind is "Multiline", or "Margin" with three tags: of a
        value, its lower and its upper bound. Raises ArgumentError for another kind or number of tags.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     writer.add_custom_scalars({"losses": {"both": ["Multiline", ["train", "test"]]}})
        """
        for charts in layout.values():
            for title, (kind, tags) in charts.items():
                if kind not in ("Multiline", "Margin") or (kind == "Margin" and len(tags) != 3):
                    raise ArgumentError(
                        f"add_custom_scalars: chart {title!r} of kind {kind!r} with {len(tags)} tags, at {here()}",
                        "Use 'Multiline', or 'Margin' with three tags.",
                    )
        self._file.add_summary(layout_summary(layout))

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Lay out one chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Lay out one chart of a scalar between its bounds: the tags of the value, lower and upper bound."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

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
