"""Layers as objects, which share their variables between calls: ``tf.layers.Dense`` and its kin."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor, snake_case
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import with_example
from twofold.static.graph.graph import get_default_graph
from twofold.static.variables.variable_scope import VariableScope, variable_scope


class InputSpec:
    """What a layer of a program's own takes: a dtype, a shape, and the sizes of some axes.

    >>> import twofold.static as tf
    >>> tf.layers.InputSpec(ndim=2, axes={-1: 3})
    InputSpec(ndim=2, axes={-1: 3})
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, Any] | None = None,
    ) -> None:
        self.dtype, self.shape, self.max_ndim, self.min_ndim = dtype, shape, max_ndim, min_ndim
        self.ndim = ndim if shape is None else len(shape)
        self.axes = axes or {}

    def __repr__(self) -> str:
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        shown = [f"{name}={getattr(self, name)}" for name in names if getattr(self, name)]
        return f"InputSpec({', '.join(shown)})"


class Layer:
    """A layer with the options of the function of ``tf.layers`` that it is made of.

    The first call makes the variables, in a scope of its own called after ``name`` or the class; later ones share
    them. With ``dtype`` its inputs have that type.
    """

    function: Callable[..., Any]
    has_variables: bool

    def __init__(self, *arguments: Any, name: str | None = None, **options: Any) -> None:
        self._arguments, self._options, self._name = arguments, options, name
        self._reuse, self._asked = options.pop("_reuse", None), options.pop("_scope", None)
        self._dtype = options.pop("dtype", None)
        self._scope: VariableScope | None = None
        self.built = False

    def __getattr__(self, name: str) -> Any:
        """The variable of weights or of what is added, or an option that the layer was made with."""
        if name == "kernel" or (name == "bias" and self._options.get("use_bias") is not False):
            return self._variable(name)
        if name == "bias":
            return None
        if not name.startswith("_"):
            signature = inspect.signature(type(self).function)
            given = signature.bind_partial(None, *self._arguments, **self._options)
            given.apply_defaults()
            if name in given.arguments:
                return given.arguments[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def name(self) -> str:
        """The name of the scope."""
        return (
            self._scope.name.split("/")[-1] if self._scope else self._name or snake_case(type(self).__name__)
        )

    def __call__(self, inputs: Any, **more: Any) -> Any:
        """The layer's result for ``inputs``."""
        function = type(self).function
        if self._dtype is not None:
            inputs = convert_to_tensor(inputs, self._dtype)
        if not self.has_variables:
            return function(inputs, *self._arguments, **self._options, **more, name=self._name)
        if self._scope is None:
            name = self._name or snake_case(type(self).__name__)
            # Layers of one name have scopes of their own, as TensorFlow's objects do; its functions share and check.
            asked = self._asked or (name if self._reuse else None)
            with variable_scope(asked, name) as self._scope:
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
