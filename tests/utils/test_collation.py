"""Batches: what the loader makes of samples, by functions for types that a program may add to."""

from __future__ import annotations

from collections import UserList, deque

import numpy
import pytest
from twofold.utils.data._utils import collate

import twofold as torch

default_collate = torch.utils.data.default_collate


def test_members_of_samples_are_tuples_of_texts():
    numbers, names = default_collate([(1, "a"), (2, "b")])
    assert numbers.tolist() == [1, 2] and names == ("a", "b")
    assert default_collate([{"name": "a"}, {"name": "b"}]) == {"name": ["a", "b"]}


def test_sequences_of_other_classes_keep_them():
    for kind in (UserList, deque):
        made = default_collate([kind([1, 2]), kind([3, 4])])
        assert type(made) is kind and [part.tolist() for part in made] == [[1, 3], [2, 4]]
    assert type(default_collate([range(2), range(2)])) is list


def test_functions_for_types_of_a_program():
    class Image:
        pass

    collate.default_collate_fn_map[Image] = lambda batch, *, collate_fn_map=None: len(batch)
    try:
        assert default_collate([{"image": Image()}, {"image": Image()}]) == {"image": 2}
    finally:
        del collate.default_collate_fn_map[Image]
    with pytest.raises(TypeError, match="Image"):
        default_collate([Image()])
    sums = collate.collate([(1, 2), (3, 4)], collate_fn_map={int: lambda batch, **_: sum(batch)})
    assert sums == [4, 6]


def test_arrays_of_texts_are_no_batch():
    with pytest.raises(TypeError, match="<U1"):
        default_collate([numpy.array(["a"])])


def test_a_loader_keeps_its_settings():
    loader = torch.utils.data.DataLoader([1, 2])
    assert (loader.prefetch_factor, loader.timeout, loader.pin_memory, loader.persistent_workers) == (
        None,
        0,
        False,
        False,
    )
    assert torch.utils.data.DataLoader([1, 2], num_workers=1).prefetch_factor == 2
