"""Layers as rows: a function of inputs and options becomes a class whose constructor takes the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from twofold.runtime.tracing import here
from twofold.signatures import arguments, signature_of
from twofold.static.graph.docstrings import with_example
from twofold.static.keras.base_layer import Layer, as_activation, as_initializer
from twofold.static.keras.named import CONSTRAINTS, REGULARIZERS, found_in, serialize
from twofold.static.keras.state import settings
from twofold.static.variables.variable_scope import variable_scope

_BASE = ("trainable", "name", "dtype", "input_shape", "batch_input_shape", "input_dim", "batch_size")


def converted(name: str, value: Any) -> Any:
    """An option as functions take it: a string becomes what it names."""
    kind = name.rpartition("_")[2]
    if kind == "activation":
        return as_activation(value)
    if kind == "initializer":
        return as_initializer(value)
    if kind == "regularizer":
        return found_in(REGULARIZERS, "regularizer", value)
    if name == "data_format":
        return value or settings.image_data_format
    return found_in(CONSTRAINTS, "constraint", value) if kind == "constraint" else value


_NEUTRAL = {"groups": 1}
"""Options of later versions in configurations, with the values that say nothing."""


class TableLayer(Layer):
    """A layer that a function computes, with the options that the constructor was given."""

    function: Callable[..., Any]
    options: dict[str, Any]
    """The names of the function's options, with their defaults."""
    makes_variables = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = type(self).options
        base = {key: kwargs.pop(key) for key in _BASE if key in kwargs and key not in own}
        if "input_length" in kwargs:
            of_numbers = "input_dim" in own  # a sequence of numbers, not of vectors
            base["input_shape"] = (
                kwargs.pop("input_length"),
                *([] if of_numbers else [base.pop("input_dim", None)]),
            )
        super().__init__(**base)
        for key, value in arguments(type(self).__name__, signature_of(own), args, kwargs).items():
            setattr(self, key, converted(key, value))

    def call(self, inputs: Any, **more: Any) -> Any:
        """What the function makes of the inputs."""
        cls = type(self)
        options = {key: getattr(self, key) for key in cls.options}
        if cls.makes_variables:
            more |= {"name": self._scope, "reuse": self.built_variables or None}
            options["trainable"] = True  # the layer says which of its variables are trained
            with variable_scope(self._scope, reuse=self.built_variables or None):
                made = cls.function(inputs, **options, **more)
            self.built_variables = True
            return made
        return cls.function(inputs, **options, **more)

    built_variables = False

    def get_config(self) -> dict[str, Any]:
        """The options, and the arguments of all layers."""
        own = {key: serialize(getattr(self, key)) for key in type(self).options}
        return {**self._base_config(), **own}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of a configuration; what is not set there may be unknown here."""
        known = {*cls.options, *_BASE, "input_length"}
        given = {key: value for key, value in config.items() if _NEUTRAL.get(key) != value}
        return cls(**{key: value for key, value in given.items() if key in known or value})

    def __getattr__(self, name: str) -> Any:
        """A variable by its name, such as ``kernel``."""
        for variable in vars(self).get("_own", ()):
            if variable.op.name.rpartition("/")[2] == name:
                return variable
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}, at {here()}.", name=name)


_LEFT_OUT = {"inputs", "name", "reuse", "trainable", "training", "mask", "kwargs"}


def layer_of(
    name: str, function: Callable[..., Any], text: str, *example: str, **defaults: Any
) -> type[TableLayer]:
    """The class of layers that ``function(inputs, **options)`` computes; ``defaults`` are Keras's where they differ.

    The example is the arguments of a layer, the shape of its input, and that of its output.
    """
    parameters = inspect.signature(function).parameters
    options = {key: one.default for key, one in parameters.items() if key not in _LEFT_OUT}
    if example:
        arguments, shape, result = example
        call = f"print(tf.keras.layers.{name}{arguments}(tf.zeros({shape})).shape)"
        text = with_example(text, call, result)
    members = {
        "function": staticmethod(function),
        "options": options | defaults | ({"data_format": None} if "data_format" in options else {}),
        "makes_variables": "reuse" in parameters,
        "__doc__": text,
        "__module__": __name__,
    }
    made: type[TableLayer] = type(name, (TableLayer,), members)
    made.takes_training, made.takes_mask = "training" in parameters, "mask" in parameters
    return made
