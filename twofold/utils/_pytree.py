"""Nested containers of tensors: taken apart into a flat list and put together again.

Nodes are ``tuple`` (named ones too), ``list``, ``dict``, ``OrderedDict`` and ``defaultdict``; anything else, ``None``
included, is a leaf. The names are those of ``torch.utils._pytree``.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

__all__ = ["LEAF", "TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten"]


class TreeSpec:
    """What a tree looks like without its leaves; equal for trees of one form."""

    __slots__ = ("children", "context", "kind", "num_leaves")

    def __init__(self, kind: Any, context: Any, children: Sequence[TreeSpec]) -> None:
        self.kind = kind
        self.context = context
        self.children = tuple(children)
        self.num_leaves: int = sum(child.num_leaves for child in children) if kind is not None else 1

    def is_leaf(self) -> bool:
        """Whether the tree is a single leaf."""
        return self.kind is None

    def _key(self) -> tuple[Any, ...]:
        return (self.kind, self.context if self.kind is not defaultdict else self.context[1], self.children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.kind, self.num_leaves))

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        return f"{self.kind.__name__}({', '.join(map(repr, self.children))})"


LEAF = TreeSpec(None, None, ())


def _is_named(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(type(tree), "_fields")


def _children(tree: Any) -> tuple[Any, Any, list[Any]] | None:
    """Kind, context and children of a container; None for a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list or _is_named(tree):
        return kind, None, list(tree)
    if kind is dict or kind is OrderedDict:
        return kind, tuple(tree), list(tree.values())
    if kind is defaultdict:
        return kind, (tree.default_factory, tuple(tree)), list(tree.values())
    return None


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the form that holds them.

    >>> tree_flatten({"a": 1, "b": (2, [3])})
    ([1, 2, 3], dict(*, tuple(*, list(*))))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> TreeSpec:
    found = _children(tree)
    if found is None:
        leaves.append(tree)
        return LEAF
    kind, context, children = found
    return TreeSpec(kind, context, [_flatten(child, leaves) for child in children])


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves from left to right."""
    return tree_flatten(tree)[0]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this form with these leaves; raises ValueError where their number does not fit.

    >>> tree_unflatten([1, 2], tree_flatten([0, (0,)])[1])
    [1, (2,)]
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: {len(given)} leaves for a tree with {treespec.num_leaves}: {treespec}."
        )
    return _unflatten(iter(given), treespec)


def _unflatten(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.kind is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children]
    if spec.kind is dict or spec.kind is OrderedDict:
        return spec.kind(zip(spec.context, children, strict=True))
    if spec.kind is defaultdict:
        factory, keys = spec.context
        return defaultdict(factory, zip(keys, children, strict=True))
    return spec.kind(*children) if hasattr(spec.kind, "_fields") else spec.kind(children)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """The tree of ``func`` of each leaf (and of the leaves at its position in ``rests``, trees of the same form).

    >>> tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, spec = tree_flatten(tree)
    columns = [leaves]
    for rest in rests:
        others, form = tree_flatten(rest)
        if form != spec:
            raise ValueError(f"tree_map: trees of different forms, {spec} and {form}.")
        columns.append(others)
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with ``func`` of the leaves of type ``kind``; the others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree)


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any] | None:
    """For each leaf of ``tree`` the leaf of ``prefix`` above it; None where the forms do not fit.

    >>> broadcast_prefix((0, None), ([1, 2], 3))
    [0, 0, None]
    """
    spec = tree_flatten(tree)[1]
    result: list[Any] = []
    return result if _spread(prefix, spec, result) else None


def _spread(prefix: Any, spec: TreeSpec, result: list[Any]) -> bool:
    found = _children(prefix)
    if found is None:
        result.extend([prefix] * spec.num_leaves)
        return True
    kind, context, children = found
    return (
        kind is spec.kind
        and context == spec.context
        and len(children) == len(spec.children)
        and all(_spread(child, part, result) for child, part in zip(children, spec.children, strict=True))
    )
