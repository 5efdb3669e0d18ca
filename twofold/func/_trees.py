"""Arguments and results of transformed functions as flat lists of tensors, with the checks they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.errors import described
from twofold.utils._pytree import TreeSpec, tree_flatten, tree_map_only, tree_unflatten

Tensor = _core.Tensor
Argnums = int | tuple[int, ...]


def split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """The result of a function and what it returns beside it."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{name}: with has_aux the function returns a tuple (output, aux), not "
            f"{_described(result)}. Return both."
        )
    return result


def _described(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"


def floating_leaves(tree: Any, name: str, what: str) -> tuple[list[Tensor], TreeSpec]:
    """The leaves of ``tree``; raises unless all are floating tensors."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: expected {what} to be tensors, got a {type(leaf).__name__}.")
        if not leaf.dtype.is_differentiable:
            raise RuntimeError(
                f"{name}: {what} must be floating tensors to be differentiated, got "
                f"{described(leaf)}. Cast it first."
            )
    return leaves, spec


def tensor_leaves(tree: Any, name: str) -> tuple[list[Tensor], TreeSpec]:
    """The leaves of a function's result; raises unless all are tensors."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: the function must return tensors, or containers of them, got a {type(leaf).__name__}. "
                "Return what is no tensor as aux."
            )
    return leaves, spec


def chosen(args: Sequence[Any], argnums: Argnums, name: str) -> tuple[Any, tuple[int, ...]]:
    """The arguments that ``argnums`` names (one of them, or a tuple), and their positions from the front."""
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    positions = tuple(position + len(args) if position < 0 else position for position in wanted)
    if not wanted or any(not 0 <= position < len(args) for position in positions):
        raise RuntimeError(f"{name}: argnums={argnums} does not fit {len(args)} positional arguments.")
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"{name}: argnums={argnums} names an argument twice.")
    found = tuple(args[position] for position in positions)
    return (found if isinstance(argnums, tuple) else found[0]), positions


def replaced(args: Sequence[Any], positions: tuple[int, ...], argnums: Argnums, tree: Any) -> list[Any]:
    """``args`` with ``tree`` at the positions of ``argnums``."""
    given = list(args)
    for position, value in zip(positions, tree if isinstance(argnums, tuple) else (tree,), strict=True):
        given[position] = value
    return given


def detached(tree: Any) -> Any:
    """The tree with every tensor cut off from gradients."""
    return tree_map_only(Tensor, Tensor.detach, tree)


def rebuilt(leaves: Sequence[Any], spec: TreeSpec) -> Any:
    """The tree of this form; a leaf stands for itself."""
    return leaves[0] if spec.is_leaf() else tree_unflatten(leaves, spec)


def named(function: Callable[..., Any]) -> str:
    """A function's name for messages."""
    return getattr(function, "__name__", type(function).__name__)
