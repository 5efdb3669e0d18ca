"""Nested containers of tensors: taken apart into a flat list and put together again.

Nodes are ``tuple`` (named ones too), ``list``, ``dict``, ``OrderedDict``, ``defaultdict``, ``deque``, and classes that
a program registers; anything else, ``None`` included, is a leaf. The names are those of ``torch.utils._pytree``.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = [
    "LEAF",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_unflatten",
]

Predicate = Callable[[Any], bool] | None


class _Registered(NamedTuple):
    """How objects of a class are taken apart into a list of children and a context, and put together again."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[list[Any], Any], Any]


_registered: dict[type, _Registered] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Have objects of a class, and of no other that inherits from it, taken for containers.

    Args:
        cls: The class; ValueError if it is registered already.
        flatten_fn: Returns the children of an object and what else is needed to make one like it, comparable by ``==``.
        unflatten_fn: Makes an object of a list of children and that context.
        serialized_type_name: A name for files of trees, which are not written; so are the two functions that follow.
        to_dumpable_context: See ``serialized_type_name``.
        from_dumpable_context: See ``serialized_type_name``.
        flatten_with_keys_fn: As ``flatten_fn``, with the children's names, of which no use is made.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda pair: ([pair.a, pair.b], None), lambda two, _: Pair(*two))
    >>> tree_leaves([Pair(1, (2,)), 3])
    [1, 2, 3]
    """
    if cls in _registered or cls in (tuple, list, dict, OrderedDict, defaultdict, deque):
        raise ValueError(f"{cls} is already registered as pytree node.")
    _registered[cls] = _Registered(flatten_fn, unflatten_fn)


def _register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], Any], unflatten_fn: Callable[[list[Any], Any], Any], **options: Any
) -> None:
    """``register_pytree_node`` by its older name, which replaces what was registered."""
    _registered.pop(cls, None)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values and the keys of a dict, for ``register_pytree_node`` of a class that inherits from it."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    """A dict of values and keys."""
    return dict(zip(context, values, strict=True))


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
    if kind is deque:
        return kind, tree.maxlen, list(tree)
    if kind in _registered:
        children, context = _registered[kind].flatten(tree)
        return kind, context, list(children)
    return None


def tree_flatten(tree: Any, is_leaf: Predicate = None) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the form that holds them; ``is_leaf`` makes leaves of containers, too.

    >>> tree_flatten({"a": 1, "b": (2, [3])})
    ([1, 2, 3], dict(*, tuple(*, list(*))))
    >>> tree_flatten([(1, 2), [3]], is_leaf=lambda value: isinstance(value, tuple))
    ([(1, 2), 3], list(*, list(*)))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Predicate) -> TreeSpec:
    found = None if is_leaf is not None and is_leaf(tree) else _children(tree)
    if found is None:
        leaves.append(tree)
        return LEAF
    kind, context, children = found
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_leaves(tree: Any, is_leaf: Predicate = None) -> list[Any]:
    """The leaves from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether a condition holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Predicate = None) -> bool:
    """Whether a condition holds for any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


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
    if spec.kind is deque:
        return deque(children, spec.context)
    if spec.kind in _registered:
        return _registered[spec.kind].unflatten(children, spec.context)
    return spec.kind(*children) if hasattr(spec.kind, "_fields") else spec.kind(children)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Predicate = None) -> Any:
    """The tree of ``func`` of each leaf (and of the leaves at its position in ``rests``, trees of the same form).

    >>> tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves]
    for rest in rests:
        others, form = tree_flatten(rest, is_leaf)
        if form != spec:
            raise ValueError(f"tree_map: trees of different forms, {spec} and {form}.")
        columns.append(others)
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Predicate = None) -> Any:
    """The tree with ``func`` of the leaves of type ``kind``; the others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)


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
