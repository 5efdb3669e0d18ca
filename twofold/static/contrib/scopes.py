"""The scope of a layer of ``tf.contrib.layers``: other names of its variables, and their collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
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


def collected(made: Any, collections: Any) -> Any:
    """What a layer made, entered in collections."""
    if collections is not None:
        get_default_graph().add_to_collections(collections, made)
    return made
