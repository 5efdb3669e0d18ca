"""Values that are to belong to one graph."""

from __future__ import annotations

from typing import Any

from twofold.runtime.tracing import here
from twofold.static.graph.graph import Tensor, owner_of


def check_one_graph(what: str, values: Any) -> None:
    """Raise ValueError if tensors among ``values`` belong to several graphs."""
    given = [getattr(value, "_as_graph_element", lambda value=value: value)() for value in values or ()]
    found = [owner_of(value) for value in given if isinstance(value, Tensor)]
    graphs = {id(owner[0].graph): owner[0] for owner in found if owner is not None}
    if len(graphs) > 1:
        names = " and ".join(f"'{operation.name}' ({operation.where})" for operation in graphs.values())
        raise ValueError(f"{what}: {names} are of different graphs, at {here()}. Give values of one graph.")
