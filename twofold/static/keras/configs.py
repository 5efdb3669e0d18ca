"""Layers and models as what JSON holds, in Keras's form, and made again from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.pytree import flatten
from twofold.runtime.tracing import here
from twofold.static.keras.base_layer import Call, Layer
from twofold.static.keras.models import Input, InputLayer, Model, Sequential
from twofold.static.keras.named import CustomObjectScope, custom_object, kept_objects, serialize


def deserialize(config: Mapping[str, Any] | Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer or model of a name and a configuration.

    Args:
        config: A dict of ``class_name`` and ``config``.
        custom_objects: Classes and functions of the program by their names.

    Raises:
        ValueError: No class has the name.

    >>> import twofold.static as tf
    >>> layer = tf.keras.layers.deserialize({"class_name": "Dense", "config": {"units": 3}})
    >>> tf.keras.layers.serialize(layer)["config"]["units"]
    3
    """
    with CustomObjectScope(custom_objects or {}):
        made = _class_of(config["class_name"]).from_config(dict(config["config"]))
    return made


def _class_of(name: str) -> Any:
    own = custom_object(name)
    if own is not None:
        return own
    models = {"Model": Model, "Functional": Model, "Sequential": Sequential, "InputLayer": InputLayer}
    found = models.get(name) or getattr(import_module("twofold.static.keras.layers"), name, None)
    if not isinstance(found, type) or not issubclass(found, Layer):
        raise ValueError(f"Unknown layer: {name}, at {here()}. Give its class in custom_objects.")
    return found


def stack_config(model: Sequential) -> dict[str, Any]:
    """The configuration of a stack of layers."""
    return {"name": model.name, "layers": [serialize(layer) for layer in model._stack]}


def stack_from_config(cls: type[Sequential], config: Any) -> Sequential:
    """The stack of a configuration, which in older files is the list of layers."""
    made = cls(name=None if isinstance(config, list) else config.get("name"))
    for layer in config if isinstance(config, list) else config["layers"]:
        made.add(deserialize(layer))
    return made


class _Nodes:
    """The calls of a model's layers with the numbers that configurations have for them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.inbound: dict[int, list[Call]] = {}
        self._made: dict[int, list[Any]] = {}
        for tensor in model.inputs or ():
            self._made[id(tensor)] = [tensor.op.name, 0, 0]
        for call in model._steps:
            calls = self.inbound.setdefault(id(call.layer), [])
            for number, tensor in enumerate(flatten(call.outputs, "outputs")[0]):
                self._made[id(tensor)] = [call.layer.name, len(calls), number]
            calls.append(call)

    def origin(self, tensor: Any) -> list[Any]:
        """The name of a layer, the number of its call and that of its result; raises ValueError for another tensor."""
        found = self._made.get(id(tensor))
        if found is None:
            what = f"{self._model.name}: {tensor} is made outside of layers"
            raise ArgumentError(f"{what}, at {here()}", "Put the operation into a Lambda layer.")
        return found

    def node(self, call: Call) -> list[Any]:
        """A call in a configuration: where each of its inputs comes from."""
        options = dict(call.options)
        states = options.pop("initial_state", None) or []
        given = [call.inputs, *(states if isinstance(states, (list, tuple)) else [states])]
        return [[*self.origin(tensor), serialize(options)] for tensor in flatten(given, "inputs")[0]]


def graph_config(model: Model) -> dict[str, Any]:
    """The configuration of a model by inputs and outputs."""
    nodes = _Nodes(model)
    entries = []
    for layer in model.layers:
        inbound = [nodes.node(call) for call in nodes.inbound.get(id(layer), ())]
        entries.append({"name": layer.name, **serialize(layer), "inbound_nodes": inbound})
    ends = {"input_layers": model.inputs, "output_layers": model.outputs}
    found = {key: [nodes.origin(tensor) for tensor in tensors or ()] for key, tensors in ends.items()}
    return {"name": model.name, "layers": entries, **found}


def graph_from_config(cls: type[Model], config: Mapping[str, Any]) -> Model:
    """The model of a configuration: its layers are called in the order in which their inputs are there."""
    layers: dict[str, Layer] = {}
    made: dict[tuple[str, int], list[Any]] = {}
    waiting: list[tuple[str, int, Any]] = []
    for entry in config["layers"]:
        name, own = entry["name"], entry["config"]
        if entry["class_name"] == "InputLayer":
            tensor = Input(batch_shape=own["batch_input_shape"], dtype=own.get("dtype"), name=name)
            made[name, 0] = [tensor]
            continue
        layers[name] = deserialize(entry)
        waiting += [(name, number, node) for number, node in enumerate(entry["inbound_nodes"])]
    while waiting:
        ready = [one for one in waiting if all((origin, index) in made for origin, index, *_ in one[2])]
        ready = [one for one in ready if not one[1] or (one[0], one[1] - 1) in made]
        if not ready:
            raise ArgumentError(f"layers that wait for each other, at {here()}", "Write the model again.")
        for name, number, node in ready[:1]:
            given = [made[origin, index][tensor] for origin, index, tensor, *_ in node]
            options = {
                key: value for part in node for key, value in (part[3] if len(part) > 3 else {}).items()
            }
            outputs = layers[name](given if len(given) > 1 else given[0], **options)
            made[name, number] = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            waiting.remove((name, number, node))
    inputs, outputs = (
        [made[name, number][tensor] for name, number, tensor in config[key]]
        for key in ("input_layers", "output_layers")
    )
    ends = [one if len(one) > 1 else one[0] for one in (inputs, outputs)]
    return cls(*ends, name=config.get("name"))


def model_from_config(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model of a dict of ``class_name`` and ``config``, without values."""
    return deserialize(config, custom_objects)


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model that ``to_json`` wrote, without values; ``custom_objects`` are the program's classes by their names."""
    return deserialize(json.loads(json_string), custom_objects)


def clone_model(model: Any) -> Any:
    """A model with the same layers and first values of its own."""
    with kept_objects() as own:
        config = model.get_config()
    return type(model).from_config(config, own)


def model_message(model: Any) -> dict[str, Any]:
    """The class and the configuration of a model, as files have them."""
    return {
        "class_name": type(model).__name__,
        "config": serialize(model.get_config()),
        "keras_version": "2.2.4-tf",
        "backend": "tensorflow",
    }
