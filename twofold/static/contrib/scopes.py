"""What layers of ``tf.contrib.layers`` share: a scope, other names of variables, collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from twofold.static.api.signatures import defaults_of, parameters, with_parameters
from twofold.static.contrib.framework import add_arg_scope
from twofold.static.contrib.layer_utils import collect_named_outputs
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.layers.graph_collections import enter_variable
from twofold.static.variables.variable_scope import VariableScope, variable_scope


@contextmanager
def layer_scope(
    scope: Any, default: str, reuse: Any, collections: Any, names: Mapping[str, str] | None = None
) -> Iterator[VariableScope]:
    """A variable scope whose variables are called as ``names`` says and are in collections, model variables first."""

    def getter(make: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
        start, slash, own = name.rpartition("/")
        kind = (names or {}).get(own, own)
        made = make(f"{start}{slash}{kind}", *args, **options)
        for chosen in (GraphKeys.MODEL_VARIABLES, collections):
            enter_variable(made, chosen, kind)
        return made

    with variable_scope(scope, default, reuse=reuse, custom_getter=getter) as made:
        yield made


SHARED = "reuse=None, variables_collections=None, outputs_collections=None, trainable=True"
"""Parameters that layers have in this order."""


def layer(
    default: str, options: str, names: Mapping[str, str] | None = None, **defaults: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A layer whose scope is called ``default`` unless given, and its variables as ``names`` says.

    Its ``options`` have ``defaults`` that are no literals. It is made of a body, which gets the scope and other options
    by name, and whose result is activated and entered in collections.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def made(scope: Any, reuse: Any, variables_collections: Any, **given: Any) -> Any:
            collections, activate = given.pop("outputs_collections"), given.pop("activation_fn")
            with layer_scope(scope, default, reuse, variables_collections, names) as own:
                found = body(**given, scope=own)
                return collect_named_outputs(
                    collections, own.name, found if activate is None else activate(found)
                )

        own = {**defaults_of(body), **parameters(options), **defaults}
        return add_arg_scope(with_parameters(made, own, body))

    return decorate
