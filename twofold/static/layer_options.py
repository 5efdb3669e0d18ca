"""Options that layers share: what is refused, and the loss that an output adds."""

from __future__ import annotations

from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.graph import get_default_graph
from twofold.static.keys import GraphKeys


def refuse(what: str, **options: Any) -> None:
    """Raise ArgumentError for an option that is set and not offered."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise ArgumentError(f"{what}: {name} is not offered, at {here()}", "Leave it out.")


def with_loss(made: Any, regularizer: Any) -> Any:
    """What a layer made, after its ``activity_regularizer`` has added a loss."""
    if regularizer is not None and (loss := regularizer(made)) is not None:
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return made


def enter_variable(variable: Any, collections: Any, kind: str) -> None:
    """Put a variable in collections that lack it; a dict has others for each ``kind``."""
    chosen = collections.get(kind) if isinstance(collections, dict) else collections
    graph = get_default_graph()
    for name in (chosen,) if isinstance(chosen, str) else chosen or ():
        if all(variable is not found for found in graph.get_collection_ref(name)):
            graph.add_to_collection(name, variable)
