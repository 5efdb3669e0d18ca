"""``copy.deepcopy`` of tensors: what shared memory shares it in the copy."""

from __future__ import annotations

import copy
import functools

import pytest

import twofold as torch


@pytest.mark.parametrize("view_first", [False, True])
def test_views_are_copied_as_views_of_the_copy(view_first):
    x = torch.arange(6.0).reshape(2, 3)
    pair = [x.t()[1:], x] if view_first else [x, x.t()[1:]]
    made = copy.deepcopy(pair)
    view, whole = made if view_first else made[::-1]
    whole[0, 1] = 9.0
    view[1, 0] = 7.0
    assert view.tolist() == [[9.0, 4.0], [7.0, 5.0]] and whole.tolist() == [[0.0, 9.0, 7.0], [3.0, 4.0, 5.0]]
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and view.stride() == (1, 3)


def test_copies_keep_strides_and_views_of_other_dtypes():
    assert copy.deepcopy(torch.ones(1).expand(4)).stride() == (0,)
    assert copy.deepcopy(torch.zeros(0, 3).t()).shape == (3, 0)
    pair = torch.zeros(2, dtype=torch.complex64)
    numbers, parts = copy.deepcopy([pair, torch.view_as_real(pair)])
    parts[0, 1] = 3.0
    assert numbers.tolist() == [3j, 0j] and pair.tolist() == [0j, 0j]


def test_parameters_are_copied_by_themselves():
    # as in PyTorch, whose Parameter has a copy of its own
    flat = torch.zeros(3)
    made = copy.deepcopy({"flat": flat, "part": torch.nn.Parameter(flat[1:])})
    made["flat"].fill_(2.0)
    assert made["part"].tolist() == [0.0, 0.0] and made["part"].requires_grad and made["part"].is_leaf


def test_a_tensor_is_reduced_to_a_function_and_its_arguments_as_in_pytorch():
    class Marked(torch.Tensor):
        def __reduce_ex__(self, protocol):
            build, arguments = super().__reduce_ex__(protocol)
            return functools.partial(rebuilt, build), (*arguments, "more")

    def rebuilt(build, *arguments):
        assert arguments[-1] == "more"
        return build(*arguments[:-1])

    x = torch.ones(2).as_subclass(Marked)
    x.mark = 3
    build, arguments = x.__reduce_ex__(2)
    copied = build(*arguments)
    assert isinstance(copied, Marked) and copied.mark == 3 and copied.tolist() == [1.0, 1.0]


def test_a_shallow_copy_shares_memory():
    tagged = torch.nn.Parameter(torch.ones(2))
    tagged.tag = "weight"
    made = copy.copy(tagged)
    made.data[0] = 5.0
    assert type(made) is torch.nn.Parameter and made.requires_grad and made.tag == "weight"
    assert tagged.tolist() == [5.0, 1.0]
    computed = tagged * 2
    assert copy.copy(computed).is_leaf and copy.copy(computed).requires_grad
    plain = torch.zeros(2)
    copy.copy(plain)[1] = 3.0
    assert plain.tolist() == [0.0, 3.0] and not copy.copy(plain).requires_grad
