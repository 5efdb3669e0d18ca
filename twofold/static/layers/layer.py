"""Layers as objects, which share their variables between calls: ``tf.layers.Dense`` and its kin."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from twofold.runtime.tracing import here
from twofold.static.api.op_functions import snake_case
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import with_example
from twofold.static.graph.graph import get_default_graph
from twofold.static.variables.variable_scope import VariableScope, variable_scope


class Layer:
    """A layer with the options of the function of ``tf.layers`` that it is made of.

    The first call makes the variables, in a scope called ``name`` or after the class; later ones share them.
    """

    function: Callable[..., Any]
    has_variables: bool

    def __init__(self, *arguments: Any, name: str | None = None, **options: Any) -> None:
        self._arguments, self._options, self._name = arguments, options, name
        self._reuse = options.pop("_reuse", None)
        self._scope: VariableScope | None = None
        self.built = False

    @property
    def name(self) -> str:
        """The name of the scope."""
        return (
            self._scope.name.split("/")[-1] if self._scope else self._name or snake_case(type(self).__name__)
        )

    def __call__(self, inputs: Any, **more: Any) -> Any:
        """The layer's result for ``inputs``."""
        function = type(self).function
        if not self.has_variables:
            return function(inputs, *self._arguments, **self._options, **more, name=self._name)
        if self._scope is None:
            with variable_scope(self._name, snake_case(type(self).__name__)) as self._scope:
                pass
        reuse = self.built or self._reuse or None
        made = function(inputs, *self._arguments, **self._options, **more, name=self._scope, reuse=reuse)
        self.built = True
        return made

    apply = __call__

    def _variable(self, name: str) -> Any:
        scope = "" if self._scope is None else self._scope.name
        found = get_default_graph().variable_store.get(f"{scope}/{name}")
        if found is None:
            raise AttributeError(
                f"{self.name}: there is no variable '{name}', at {here()}. Call the layer first, or give it one."
            )
        return found

    @property
    def kernel(self) -> Any:
        """The variable of weights."""
        return self._variable("kernel")

    @property
    def bias(self) -> Any:
        """The variable that is added; None for a layer that was told to have none."""
        return None if self._options.get("use_bias") is False else self._variable("bias")

    @property
    def variables(self) -> list[Any]:
        """All variables of the layer."""
        return self._of_scope(GraphKeys.GLOBAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of them that are trained."""
        return self._of_scope(GraphKeys.TRAINABLE_VARIABLES)

    def _of_scope(self, key: str) -> list[Any]:
        """Variables by their whole scope: those of ``dense_1`` are none of ``dense``."""
        start = None if self._scope is None else f"{self._scope.name}/"
        found = get_default_graph().get_collection(key)
        return [] if start is None else [one for one in found if one.name.startswith(start)]

    weights, trainable_weights = variables, trainable_variables


def layer_of(name: str, function: Callable[..., Any], arguments: str, shape: str, result: str) -> type[Layer]:
    """The class of layers that ``function`` computes.

    The example in its docstring is a layer of these ``arguments``, applied to a tensor of ``shape``.
    """
    text = f"``tf.layers.{function.__name__}`` as an object; it takes the options of that function."
    words = with_example(text, f"print(tf.layers.{name}{arguments}(tf.zeros({shape})).shape)", result)
    has_variables = "reuse" in inspect.signature(function).parameters
    members = {"function": staticmethod(function), "has_variables": has_variables, "__doc__": words}
    return type(name, (Layer,), {**members, "__module__": __name__})
