"""Summaries that TensorBoard's plugins read: hyperparameters, precision-recall curves, layouts of charts, embeddings.

Source: TensorBoard's ``plugin_data.proto`` of hparams and pr_curve, ``layout.proto``, ``projector_config.proto``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from twofold.event_files import double, nested_string, plugin_summary
from twofold.protobuf import nested, number

_STRING, _BOOL, _FLOAT64 = 1, 2, 3  # DataType of hparams
_SUCCESS = 1
_DT_FLOAT, _DT_STRING = 1, 7
_MOST_THRESHOLDS = 127


def _json_value(value: Any) -> tuple[int, bytes]:
    """The type of a hyperparameter, and it as a ``google.protobuf.Value``."""
    if isinstance(value, (bool, numpy.bool_)):
        return _BOOL, bytes([4 << 3, bool(value)])
    if isinstance(value, str):
        return _STRING, nested_string(3, value)
    return _FLOAT64, double(2, float(value))


def hyperparameter_summaries(
    values: Mapping[str, Any], metrics: Sequence[str], domains: Mapping[str, Sequence[Any]]
) -> list[bytes]:
    """The experiment, and the start and end of one of its sessions, as three summary messages.

    Args:
        values: The hyperparameters, each a number, string, bool, or None, which is left out.
        metrics: The tags of the scalars that are shown beside them.
        domains: All values that a hyperparameter takes, for those of which they are known.

    >>> len(hyperparameter_summaries({"rate": 0.1, "kind": "adam"}, ["loss"], {}))
    3
    """
    infos, start = b"", b""
    for name, value in values.items():
        if value is None:
            continue
        kind, content = _json_value(value)
        info = nested_string(1, name) + number(4, kind)
        if name in domains:
            info += nested(5, b"".join(nested(1, _json_value(one)[1]) for one in domains[name]))
        infos += nested(4, info)
        start += nested(1, nested_string(1, name) + nested(2, content))
    shown = b"".join(nested(5, nested(1, nested_string(2, tag))) for tag in metrics)
    parts = {
        "experiment": nested(2, infos + shown),
        "session_start_info": nested(3, start),
        "session_end_info": nested(4, number(1, _SUCCESS)),
    }
    return [plugin_summary(f"_hparams_/{name}", "hparams", part) for name, part in parts.items()]


def precision_recall(
    labels: Any, predictions: Any, num_thresholds: int = _MOST_THRESHOLDS, weights: Any = None
) -> Any:
    """The rows of a precision-recall curve.

    Args:
        labels: True or 1 where the class is the right one, of any shape.
        predictions: Probabilities from 0 to 1, of the same shape.
        num_thresholds: How many thresholds from 0 to 1 there are; 127 at most.
        weights: A factor for each element.

    Returns:
        True positives, false positives, true negatives, false negatives, precision and recall as float64
        ``[6, num_thresholds]``: those of predictions at or above each threshold.

    >>> precision_recall([True, False], [0.9, 0.2], 2)[:, 1].tolist()
    [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """
    count = min(num_thresholds, _MOST_THRESHOLDS)
    right = numpy.asarray(labels).astype(numpy.float64).reshape(-1)
    bucket = numpy.floor(numpy.asarray(predictions).reshape(-1) * (count - 1)).astype(numpy.int64)
    factor = numpy.broadcast_to(1.0 if weights is None else numpy.asarray(weights).reshape(-1), right.shape)
    found = [numpy.bincount(bucket, share * factor, count) for share in (right, 1.0 - right)]
    true_positives, false_positives = (one[::-1].cumsum()[::-1] for one in found)
    true_negatives, false_negatives = (one[0] - one for one in (false_positives, true_positives))
    precision = true_positives / numpy.maximum(1e-7, true_positives + false_positives)
    recall = true_positives / numpy.maximum(1e-7, true_positives + false_negatives)
    return numpy.stack([true_positives, false_positives, true_negatives, false_negatives, precision, recall])


def precision_recall_summary(tag: str, rows: Any, num_thresholds: int) -> bytes:
    """The rows that ``precision_recall`` returns as a summary message."""
    table = numpy.asarray(rows, "<f4")
    shape = b"".join(nested(2, number(1, size)) for size in table.shape)
    tensor = number(1, _DT_FLOAT) + nested(2, shape) + nested(5, table.tobytes())
    return plugin_summary(tag, "pr_curves", number(2, min(num_thresholds, _MOST_THRESHOLDS)), tensor)


def layout_summary(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> bytes:
    """Charts of several scalars: ``{category: {title: [kind, tags]}}``, the kind "Multiline" or "Margin".

    The tags of a margin are those of a value and of its lower and upper bound.
    """
    categories = b""
    for category, charts in layout.items():
        content = nested_string(1, category)
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                value, lower, upper = (nested_string(k, tag) for k, tag in enumerate(tags, 1))
                drawn = nested(3, nested(1, value + lower + upper))
            else:
                drawn = nested(2, b"".join(nested_string(1, tag) for tag in tags))
            content += nested(2, nested_string(1, title) + drawn)
        categories += nested(2, content)
    tensor = number(1, _DT_STRING) + nested(2, b"") + nested(8, categories)
    return plugin_summary("custom_scalars__config__", "custom_scalars", b"", tensor)


_DATA_TYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
"""``DataType`` by NumPy's names."""


def _tensor_proto(array: Any) -> bytes:
    shape = b"".join(nested(2, number(1, size)) for size in array.shape)
    content = numpy.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    return number(1, _DATA_TYPES[array.dtype.name]) + nested(2, shape) + nested(4, content)


def tensor_summary(tag: str, array: Any) -> bytes:
    """The elements of an array as a summary message."""
    return plugin_summary(tag, "tensor", b"", _tensor_proto(array))


_MESH_PARTS = {"VERTEX": 1, "FACE": 2, "COLOR": 3}
"""``MeshPluginData.ContentType``."""


def mesh_summaries(tag: str, parts: Mapping[str, Any], config: str) -> list[bytes]:
    """Meshes or point clouds as a summary message for each part.

    Args:
        tag: The name.
        parts: Arrays ``[count, points, 3]`` as "VERTEX", ``[count, triangles, 3]`` as "FACE", and colours as "COLOR".
        config: Settings of the scene as JSON.
    """
    components = sum(1 << _MESH_PARTS[name] for name in parts)
    made = []
    for name, array in parts.items():
        content = nested_string(2, tag) + number(3, _MESH_PARTS[name]) + nested_string(5, config)
        content += b"".join(number(6, size) for size in array.shape) + number(7, components)
        made.append(plugin_summary(f"{tag}_{name}", "mesh", content, _tensor_proto(array)))
    return made


def embedding_text(
    name: str, folder: str, has_labels: bool = False, image_size: Sequence[int] | None = None
) -> str:
    """An entry of ``projector_config.pbtxt``: a table of vectors, the labels of its rows, and their images.

    Args:
        name: The name of the table.
        folder: Where its files are, from the directory of the events on.
        has_labels: Whether there is a file of labels.
        image_size: Width and height of an image, if there are images.

    >>> print(embedding_text("words:00000", "00000/words"), end="")
    embeddings {
      tensor_name: "words:00000"
      tensor_path: "00000/words/tensors.tsv"
    }
    """
    lines = [f'tensor_name: "{_escaped(name)}"']
    if has_labels:
        lines.append(f'metadata_path: "{_escaped(folder)}/metadata.tsv"')
    if image_size is not None:
        lines += ["sprite {", f'  image_path: "{_escaped(folder)}/sprite.png"']
        lines += [*[f"  single_image_dim: {size}" for size in image_size], "}"]
    lines.append(f'tensor_path: "{_escaped(folder)}/tensors.tsv"')
    return "embeddings {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def sprite_of(images: Any) -> Any:
    """Images ``[count, height, width, channels]`` of bytes side by side, as a square that the projector cuts up.

    >>> sprite_of(numpy.ones((5, 2, 3, 3), numpy.uint8)).shape
    (9, 9, 3)
    """
    count, height, width, channels = images.shape
    across = max(1, int(numpy.ceil(numpy.sqrt(count))))
    while -(-count // across) * height > across * width:
        across += 1
    square = numpy.zeros((across * width, across * width, channels), numpy.uint8)
    for k, image in enumerate(images):
        top, left = k // across * height, k % across * width
        square[top : top + height, left : left + width] = image
    return square
