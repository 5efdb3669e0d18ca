"""Lists as keys: of numbers they are arrays, and with anything else they count as tuples, as in PyTorch."""

import numpy as np
import pytest

import twofold as torch

X = np.arange(9).reshape(3, 3)
AS_TUPLES = [
    [[0, 1], [1, 2]],
    [[0, 1]],
    [slice(0, 2), 1],
    [[0, 1], slice(None)],
    [None, 0],
    [[[0, 1]], [[1, 2]]],
    [[True, False, True], [False, True, True]],
    [Ellipsis, 0],
    [0, [1, 2]],
    [(0, 1), (1, 2)],
]


@pytest.mark.parametrize("key", AS_TUPLES, ids=str)
def test_as_tuples(key):
    with pytest.warns(UserWarning, match="tuple"):
        found = torch.tensor(X)[key]
    np.testing.assert_array_equal(found.numpy(), X[tuple(key)])
    changed, expected = torch.tensor(X), X.copy()
    expected[tuple(key)] = 7
    with pytest.warns(UserWarning, match="tuple"):
        changed[key] = 7
    np.testing.assert_array_equal(changed.numpy(), expected)


def test_tensors_in_a_list():
    with pytest.warns(UserWarning) as warned:
        found = torch.tensor(X)[[torch.tensor([0, 1]), torch.tensor([1, 2])]]
    assert found.tolist() == [1, 5] and warned[0].filename == __file__


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("key", [[0, 2], [True, False, True], [], [[0, 1]] * 32])
def test_as_arrays(key):
    np.testing.assert_array_equal(torch.tensor(X)[key].numpy(), X[np.asarray(key, None if key else np.int64)])
