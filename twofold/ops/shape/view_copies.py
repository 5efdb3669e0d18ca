"""Views that also have a form which returns new tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ops.base import FUNCTIONS, METHODS, ops, public
from twofold.ops.docstrings import shown
from twofold.ops.shape import (
    joining,  # noqa: F401  (the views)
    movement,  # noqa: F401  (the views)
    reshaping,  # noqa: F401  (the views)
    strided,  # noqa: F401  (the views)
)
from twofold.ops.signatures import shows


def _as_new(name: str, arguments: str, result: str) -> Callable[..., Any]:
    """The form of a view that returns new tensors."""

    view = FUNCTIONS.get(name) or METHODS[name]

    def copied(*args: Any, **kwargs: Any) -> Any:
        result = view(*args, **kwargs)
        return tuple(map(ops.copied, result)) if isinstance(result, tuple) else ops.copied(result)

    copied.__name__ = f"{name}_copy"
    copied.__doc__ = shown(
        f"``{name}``, as a new tensor that shares nothing with the input.",
        ">>> x = torch.tensor([[1, 2, 3]])",
        f">>> torch.{name}_copy({arguments})",
        result,
    )
    return shows(copied, view)


_VIEWS = (
    ("alias", "x", "tensor([[1, 2, 3]])"),
    ("as_strided", "x, (2, 2), (1, 1)", "tensor([[1, 2], [2, 3]])"),
    ("diagonal", "x, offset=1", "tensor([2])"),
    ("expand", "x, (2, 3)", "tensor([[1, 2, 3], [1, 2, 3]])"),
    ("permute", "x, (1, 0)", "tensor([[1], [2], [3]])"),
    ("select", "x, 1, 2", "tensor([3])"),
    ("split", "x, 2, 1", "(tensor([[1, 2]]), tensor([[3]]))"),
    ("split_with_sizes", "x, (1, 2), 1", "(tensor([[1]]), tensor([[2, 3]]))"),
    ("squeeze", "x", "tensor([1, 2, 3])"),
    ("t", "x", "tensor([[1], [2], [3]])"),
    ("transpose", "x, 0, 1", "tensor([[1], [2], [3]])"),
    ("unbind", "x", "(tensor([1, 2, 3]),)"),
    ("unfold", "x, 1, 2, 1", "tensor([[[1, 2], [2, 3]]])"),
    ("unsqueeze", "x, 0", "tensor([[[1, 2, 3]]])"),
    ("view", "x, (3, 1)", "tensor([[1], [2], [3]])"),
)
"""Views that have such a form; its arguments in the example, and the result."""

for _name, _arguments, _result in _VIEWS:
    public(f"{_name}_copy")(_as_new(_name, _arguments, _result))
