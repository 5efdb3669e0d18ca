"""Functions of lists of tensors against the same operation on each."""

import numpy as np
import pytest

import twofold as torch
from twofold.frontend import foreach

LISTS = [[2.0, 0.5], [[1.5, 0.25, 0.75]]]


def tensors():
    return [torch.tensor(values) for values in LISTS]


@pytest.mark.parametrize("name", foreach._UNARY.split())
def test_one_operand(name):
    expected = [getattr(torch.tensor(values), name)().numpy() for values in LISTS]
    found = getattr(torch, f"_foreach_{name}")(tensors())
    assert isinstance(found, tuple)
    changed = tensors()
    assert getattr(torch, f"_foreach_{name}_")(changed) is changed
    for one, other, want in zip(found, changed, expected):
        np.testing.assert_array_equal(one.numpy(), want)
        np.testing.assert_array_equal(other.numpy(), want)


@pytest.mark.parametrize("name", foreach._BINARY.split())
@pytest.mark.parametrize("given", [2.0, [2.0, 3.0], "tensors"])
def test_two_operands(name, given):
    other = tensors() if given == "tensors" else given
    each = [torch.as_tensor(one) for one in (other if isinstance(other, list) else [other] * 2)]
    expected = [getattr(torch.tensor(values), name)(one).numpy() for values, one in zip(LISTS, each)]
    found = getattr(torch, f"_foreach_{name}")(tensors(), other)
    changed = tensors()
    getattr(torch, f"_foreach_{name}_")(changed, other)
    for one, two, want in zip(found, changed, expected):
        np.testing.assert_array_equal(one.numpy(), want)
        np.testing.assert_array_equal(two.numpy(), want)


def test_scaled_operands():
    ones = [torch.ones(2), torch.ones(1, 3)]
    found = torch._foreach_add(ones, tensors(), alpha=-2)
    assert [one.tolist() for one in found] == [[-3, 0], [[-2, 0.5, -0.5]]]
    for value in ([2.0, 3.0], torch.tensor([2.0, 3.0])):
        found = torch._foreach_addcmul(ones, tensors(), tensors(), value)
        assert [one.tolist() for one in found] == [[9, 1.5], [[7.75, 1.1875, 2.6875]]]
    assert [one.tolist() for one in torch._foreach_addcdiv(ones, tensors(), tensors(), value=4)] == [
        [5, 5],
        [[5] * 3],
    ]
    assert torch._foreach_lerp(ones, tensors(), 0.5)[0].tolist() == [1.5, 0.75]
    assert [one.tolist() for one in torch._foreach_lerp_(ones, tensors(), [1.0, 0.0])] == [
        [2, 0.5],
        [[1, 1, 1]],
    ]
    assert [one.item() for one in torch._foreach_pow(2.0, [torch.tensor(3.0)])] == [8]


def test_whole_tensors():
    vectors = [torch.tensor([3.0, -4.0]), torch.tensor([1.0])]
    assert [one.item() for one in torch._foreach_norm(vectors)] == [5, 1]
    assert [one.item() for one in torch._foreach_norm(vectors, 1)] == [7, 1]
    assert [one.item() for one in torch._foreach_max(vectors)] == [3, 1]
    copies = torch._foreach_clone(vectors)
    torch._foreach_zero_(vectors)
    assert [one.abs().sum().item() for one in vectors] == [0, 0]
    torch._foreach_copy_(vectors, copies)
    assert vectors[0].tolist() == [3, -4]
    assert torch._foreach_mm([torch.ones(1, 2)], [torch.ones(2, 1)])[0].tolist() == [[2]]


def test_gradients():
    weight = torch.tensor([2.0], requires_grad=True)
    torch._foreach_mul([weight], 3.0)[0].sum().backward()
    assert weight.grad.tolist() == [3]


def test_lists_that_do_not_fit():
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_sqrt([])
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add(tensors(), [torch.ones(2)])
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        torch._foreach_mul(tensors(), [1.0])
    with pytest.raises(TypeError, match="one operand"):
        torch._foreach_mul(tensors(), scale=2)
    with pytest.raises(TypeError, match="alpha"):
        torch._foreach_add(tensors(), [1.0, 2.0], alpha=2)


def test_lists_are_grouped_by_the_dtype_of_the_first():
    from twofold.utils._foreach_utils import _group_tensors_by_device_and_dtype as grouped

    first = [torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)]
    second = [None, torch.ones(2), torch.ones(3)]
    groups = {key[1]: value for key, value in grouped([first, second, []], with_indices=True).items()}
    assert set(groups) == {torch.float32, torch.float64}
    (of_first, of_second, of_none), indices = groups[torch.float32]
    assert of_first[0] is first[0] and of_first[1] is first[2] and of_second == [None, second[2]]
    assert of_none == [] and indices == [0, 2]
    assert grouped([first])[torch.device("cpu"), torch.float64] == ([[first[1]]], [])
    for lists in ([], [[]], [[None]], [first, second[:2]]):
        with pytest.raises(RuntimeError):
            grouped(lists)
