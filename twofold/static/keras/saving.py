"""Models and their variables in HDF5 files, as Keras writes them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.keras import losses, metrics, optimizers
from twofold.static.keras.base_layer import Layer, put_value, value_of
from twofold.static.keras.configs import deserialize, model_message
from twofold.static.keras.named import CustomObjectScope, custom_object, serialize
from twofold.static.saving import hdf5


def _listed(group: hdf5.Group, name: str) -> list[str]:
    """Names in an attribute, which the format may divide."""
    parts = [group.attributes[name]] if name in group.attributes else []
    while f"{name}{len(parts)}" in group.attributes:
        parts.append(group.attributes[f"{name}{len(parts)}"])
    return [_decoded(one) for part in parts for one in numpy.asarray(part).ravel().tolist()]


def _decoded(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def _list(group: hdf5.Group, name: str, names: Sequence[str]) -> None:
    encoded = numpy.array([one.encode() for one in names]) if names else numpy.zeros(0)
    pieces = numpy.array_split(encoded, -(-encoded.nbytes // 60000) or 1)
    for number, piece in enumerate(pieces):
        group.attributes[name if len(pieces) == 1 else f"{name}{number}"] = piece


def _enter(group: hdf5.Group, variables: Sequence[Any]) -> None:
    """Put the values of variables into a group."""
    _list(group, "weight_names", [one.name for one in variables])
    for variable in variables:
        group.put(variable.name, value_of(variable))


def weights_group(layers: Sequence[Layer]) -> hdf5.Group:
    """The values of the layers' variables."""
    found = hdf5.Group({"backend": b"tensorflow", "keras_version": b"2.2.4-tf"})
    _list(found, "layer_names", [layer.name for layer in layers])
    for layer in layers:
        _enter(found.put(layer.name, hdf5.Group()), layer.weights)
    return found


def _arrays(group: hdf5.Group) -> Iterator[tuple[str, list[Any]]]:
    """The names of layers that have variables, with their values."""
    for name in _listed(group, "layer_names"):
        own = group.at(name)
        values = [own.at(one) for one in _listed(own, "weight_names")]
        if values:
            yield name, values


def set_weights(layers: Sequence[Layer], group: hdf5.Group, by_name: bool) -> None:
    """Give layers the values of a group: in their order, or those of their names.

    Raises ValueError where numbers or shapes differ.
    """
    held, own = list(_arrays(group)), [layer for layer in layers if layer.weights]
    if by_name:
        named = {layer.name: layer for layer in own}
        for name, values in held:
            if name in named:
                named[name].set_weights(values)
        return
    if len(held) != len(own):
        what = f"a file of {len(held)} layers with variables for a model of {len(own)}"
        raise ArgumentError(f"load_weights: {what}, at {here()}", "Make the model that was saved.")
    for layer, (_, values) in zip(own, held):
        layer.set_weights(values)


def read_weights(path: Any) -> hdf5.Group:
    """The group of values in a file of a model, or of values alone."""
    found = hdf5.read(path)
    own: hdf5.Group = found.members.get("model_weights", found)
    return own


def _training(model: Any) -> dict[str, Any]:
    """How a model is trained, as files have it."""
    own = model.optimizer
    return {
        "optimizer_config": {"class_name": type(own).__name__, "config": own.get_config()},
        "loss": serialize(model.loss),
        "metrics": serialize(model._metrics),
        "weighted_metrics": serialize(model._weighted_metrics) or None,
        "sample_weight_mode": model._sample_weight_mode,
        "loss_weights": serialize(model._loss_weights),
    }


def save_model(model: Any, filepath: Any, overwrite: bool = True, include_optimizer: bool = True) -> None:
    """Write a model to an HDF5 file: its layers, values and, with ``include_optimizer``, how it is trained.

    Args:
        model: By inputs and outputs, or a stack.
        filepath: The file.
        overwrite: Whether it may be there already.
        include_optimizer: Whether optimiser, loss and metrics are written, too.

    Raises:
        FileExistsError: The file is there.
        ImportError: The package ``h5py`` is not installed.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
    ...     model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    ...     model.save(os.path.join(folder, "model.h5"))
    ...     tf.keras.models.load_model(os.path.join(folder, "model.h5")).count_params()
    8
    """
    if not overwrite and os.path.exists(filepath):
        raise FileExistsError(f"{model.name}: {filepath} exists, at {here()}. Give another name.")
    message = model_message(model)
    found = hdf5.Group({key: message.pop(key).encode() for key in ("backend", "keras_version")})
    found.attributes["model_config"] = json.dumps(message).encode()
    found.put("model_weights", weights_group(model.layers))
    if include_optimizer and model.optimizer is not None:
        if not hasattr(model.optimizer, "get_config"):
            kind = type(model.optimizer).__name__
            warnings.warn(f"{kind} is no optimizer of tf.keras.optimizers: it is not saved.", stacklevel=3)
        else:
            found.attributes["training_config"] = json.dumps(_training(model)).encode()
            _enter(found.put("optimizer_weights", hdf5.Group()), model.optimizer.variables())
    hdf5.write(filepath, found)


def load_model(filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True) -> Any:
    """The model of an HDF5 file that ``save_model``, or Keras, wrote.

    Args:
        filepath: The file.
        custom_objects: Classes and functions of the program by their names.
        compile: Whether the model is compiled as it was.

    Raises:
        ImportError: The package ``h5py`` is not installed.
        ValueError: The file holds values alone.
    """
    found = hdf5.read(filepath)
    if "model_config" not in found.attributes:
        raise ArgumentError(f"{filepath} holds no model, at {here()}", "Make it, and use load_weights.")
    with CustomObjectScope(custom_objects or {}):
        model = deserialize(json.loads(_decoded(found.attributes["model_config"])))
        set_weights(model.layers, found.members["model_weights"], False)
        if compile and "training_config" in found.attributes:
            _compile(model, json.loads(_decoded(found.attributes["training_config"])))
            if "optimizer_weights" in found.members:
                model.when_trained = _restoring(found.members["optimizer_weights"])
    return model


def _compile(model: Any, training: Mapping[str, Any]) -> None:
    measured, weighted = (_metrics(training.get(key)) for key in ("metrics", "weighted_metrics"))
    optimizer = optimizers.get(training["optimizer_config"])
    mode = training.get("sample_weight_mode") or None
    model.compile(
        optimizer, _losses(training["loss"]), measured, training.get("loss_weights"), mode, weighted
    )


def _losses(given: Any) -> Any:
    """Losses in the lists and dicts that they were saved in."""
    if isinstance(given, Mapping) and {"class_name", "config"} <= given.keys():
        return losses.deserialize(given)
    if isinstance(given, Mapping):
        return {key: _losses(value) for key, value in given.items()}
    return [_losses(one) for one in given] if isinstance(given, list) else losses.get(given)


def _metrics(given: Any) -> Any:
    """Metrics in the lists and dicts that they were saved in; a name stays that, unless it is one of the program's."""
    if isinstance(given, Mapping) and {"class_name", "config"} <= given.keys():
        return metrics.deserialize(given)
    if isinstance(given, Mapping):
        return {key: _metrics(value) for key, value in given.items()}
    if isinstance(given, list):
        return [_metrics(one) for one in given]
    return (custom_object(given) or given) if isinstance(given, str) else given


def _restoring(group: hdf5.Group) -> Callable[[Any], None]:
    """What gives an optimiser's variables, once there are any, the values of a file."""
    values = [group.at(name) for name in _listed(group, "weight_names")]

    def restore(optimizer: Any) -> None:
        own = optimizer.variables()
        shapes = [tuple(one.get_shape().as_list()) for one in own]
        if not values:
            return
        if shapes != [numpy.shape(value) for value in values]:
            what = "the file's variables of the optimizer are not those of this library"
            warnings.warn(f"load_model: {what}; training goes on with new ones.", stacklevel=2)
            return
        for variable, value in zip(own, values):
            put_value(variable, value)

    return restore
