"""Options that layers share: the loss that an output adds, and the collections of a variable."""

from __future__ import annotations

from typing import Any

from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph


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
