"""Trees of containers: flattened and rebuilt."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import twofold as torch
from twofold.utils._pytree import (
    _dict_flatten,
    _dict_unflatten,
    _register_pytree_node,
    broadcast_prefix,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_unflatten,
)

Pair = namedtuple("Pair", "a b")

TREES = [
    1,
    None,
    (),
    [],
    {},
    (1, 2),
    [1, (2, [3, {}])],
    {"x": 1, "y": {"z": [2]}},
    Pair(1, [2, 3]),
    OrderedDict(b=1, a=2),
    (None, [None, 1]),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, spec = tree_flatten(tree)
    again = tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again) is type(tree)
    assert spec.num_leaves == len(leaves) == len(tree_leaves(tree))


def test_default_dict_keeps_its_factory():
    tree = defaultdict(list, a=1)
    again = tree_map(lambda x: x + 1, tree)
    assert again == {"a": 2}
    assert again["new"] == []


def test_forms_compare():
    assert tree_flatten((1, [2]))[1] == tree_flatten((3, [4]))[1]
    assert tree_flatten((1, 2))[1] != tree_flatten([1, 2])[1]
    assert tree_flatten({"a": 1})[1] != tree_flatten({"b": 1})[1]


def test_map():
    assert tree_map(lambda a, b: a * b, {"k": (2, 3)}, {"k": (5, 7)}) == {"k": (10, 21)}
    assert tree_map_only(int, str, (1, "a", 2.0)) == ("1", "a", 2.0)
    with pytest.raises(ValueError, match="different forms"):
        tree_map(lambda a, b: a, (1,), [1])
    with pytest.raises(ValueError, match="2 leaves for a tree with 1"):
        tree_unflatten([1, 2], tree_flatten([0])[1])


def test_prefixes():
    assert broadcast_prefix(0, (1, [2, 3])) == [0, 0, 0]
    assert broadcast_prefix((0, (1, None)), (1, (2, 3))) == [0, 1, None]
    assert broadcast_prefix((0, 0, 0), (1, 2)) is None
    assert broadcast_prefix([0], (1,)) is None


class Named:
    def __init__(self, name, values):
        self.name, self.values = name, values


def test_registered_classes_are_containers():
    register_pytree_node(
        Named, lambda one: (one.values, one.name), lambda values, name: Named(name, list(values))
    )
    leaves, spec = tree_flatten([Named("a", [1, (2,)]), 3])
    assert leaves == [1, 2, 3] and spec != tree_flatten([Named("b", [1, (2,)]), 3])[1]
    doubled = torch.vmap(lambda one: Named(one.name, [one.values[0] * 2]))(Named("a", [torch.ones(3)]))
    assert doubled.name == "a" and doubled.values[0].tolist() == [2.0] * 3
    for known in (Named, dict):
        with pytest.raises(ValueError, match="already registered"):
            register_pytree_node(known, None, None)


def test_a_class_that_inherits_from_dict():
    class Output(dict):
        pass

    _register_pytree_node(Output, _dict_flatten, lambda values, keys: Output(_dict_unflatten(values, keys)))
    made = tree_map(lambda x: x + 1, Output(a=1, b=[2]))
    assert type(made) is Output and made == {"a": 2, "b": [3]}


def test_queues_and_leaves_of_choice():
    queue = tree_map(lambda x: x + 1, deque([1, 2], maxlen=3))
    assert queue == deque([2, 3]) and queue.maxlen == 3
    assert tree_leaves([(1, 2), [3]], is_leaf=lambda value: isinstance(value, tuple)) == [(1, 2), 3]
    assert tree_any(lambda x: x > 2, (1, [3])) and not tree_all(lambda x: x > 2, (1, [3]))
