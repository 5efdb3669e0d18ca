"""Options that layers share: the loss that an output adds, and the collections of a variable."""

from __future__ import annotations

from typing import Any

from twofold.static import math
from twofold.static.arrays import shape_ops
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph


def with_loss(made: Any, regularizer: Any) -> Any:
    """What a layer made, after its ``activity_regularizer`` has added a loss: its penalty by the size of the batch."""
    if regularizer is not None and (loss := regularizer(made)) is not None:
        count = math.cast(shape_ops.shape(made)[0], loss.dtype)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss / count)
    return made


def enter_variable(variable: Any, collections: Any, kind: str) -> None:
    """Put a variable in collections that lack it; a dict has others for each ``kind``."""
    chosen = collections.get(kind) if isinstance(collections, dict) else collections
    graph = get_default_graph()
    for name in (chosen,) if isinstance(chosen, str) else chosen or ():
        if all(variable is not found for found in graph.get_collection_ref(name)):
            graph.add_to_collection(name, variable)
