"""DyNet's functions that print or dump the whole graph, which raise: no graph is kept apart from its expressions."""

from __future__ import annotations

from typing import NoReturn

_ADVICE = (
    "no list of the expressions of a graph is kept: look at one by value(), dim() or gradient(), find the first value "
    "that is infinite or not a number by renew_cg(check_validity=True), and see what runs by TWOFOLD_LOG=batches"
)


def print_text_graphviz() -> NoReturn:
    """Refused: raises RuntimeError, which says how to look at expressions instead."""
    raise RuntimeError(f"print_text_graphviz: {_ADVICE}")


def print_graphviz(
    compact: bool = False,
    show_dims: bool = True,
    expression_names: object = None,
    lookup_names: object = None,
    collapse_birnns: bool = False,
) -> NoReturn:
    """Refused: raises RuntimeError, which says how to look at expressions instead."""
    del compact, show_dims, expression_names, lookup_names, collapse_birnns
    raise RuntimeError(f"print_graphviz: {_ADVICE}")


def dump_cg(
    filename: str = "", show_values: bool = True, show_gradients: bool = True, nan_check_only: bool = False
) -> NoReturn:
    """Refused: raises RuntimeError, which says how to look at expressions instead."""
    del filename, show_values, show_gradients, nan_check_only
    raise RuntimeError(f"dump_cg: {_ADVICE}")
