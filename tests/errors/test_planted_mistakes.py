"""The text of each planted mistake, frozen: what, both sides, the user's line, and what to change."""

import re

import pytest

import twofold as torch
from twofold import dynet


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_planted_mistakes\.py:\d+", "here.py:N", str(caught.value))


def test_line_numbers_are_the_users():
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError) as caught:
        x @ x
    line = caught.traceback[0].lineno + 1
    assert f"test_planted_mistakes.py:{line}" in str(caught.value)
    assert f"test_planted_mistakes.py:{line - 2}" in str(caught.value)


MISTAKES = {
    "matmul": (
        RuntimeError,
        lambda: torch.mm(torch.ones(2, 3), torch.ones(4, 5)),
        "matmul: inner sizes differ, 3 against 4: input float32[2,3] (here.py:N), other float32[4,5] (here.py:N), "
        "at here.py:N. Make the first axis of other 3.",
    ),
    "add": (
        RuntimeError,
        lambda: torch.ones(2, 3) + torch.ones(4, 5),
        "add: sizes on axis -2 differ, 2 against 4: input float32[2,3] (here.py:N), other float32[4,5] (here.py:N), "
        "at here.py:N. Make them equal, or one of them 1 (unsqueeze adds such an axis).",
    ),
    "dtypes without a common one": (
        TypeError,
        lambda: torch.ones(2, dtype=torch.uint64) + torch.ones(2, dtype=torch.int64),
        "add: uint64 and int64 have no common dtype: input uint64[2] (here.py:N), other int64[2] (here.py:N), "
        "at here.py:N. Cast one of them first with .to().",
    ),
    "bits of floats": (
        TypeError,
        lambda: torch.bitwise_and(torch.ones(2), torch.ones(2)),
        "bitwise_and: takes bool and signed integers and unsigned integers, not float32: input float32[2] (here.py:N), "
        "other float32[2] (here.py:N), at here.py:N. Cast with .to() first.",
    ),
    "not a tensor": (
        TypeError,
        lambda: torch.exp("a"),
        "exp: operand 1 is of type str. Give a tensor or a number.",
    ),
    "backward of many": (
        RuntimeError,
        lambda: (torch.ones(3, requires_grad=True) * 2).backward(),
        "backward: grad can be implicitly created only for scalar outputs: float32[3] (here.py:N), at here.py:N. "
        "Reduce it with sum() or mean(), or pass gradient= of shape float32[3].",
    ),
    "backward without a leaf": (
        RuntimeError,
        lambda: torch.ones(3).sum().backward(),
        "backward: element 0 of tensors does not require grad and does not have a grad_fn: float32[] (here.py:N) does "
        "not depend on any leaf, at here.py:N. "
        "Mark a leaf first: give requires_grad=True where it is made, or call its requires_grad_(); "
        "gradients depend on leaves where the pass that made them was given create_graph=True.",
    ),
    "leaf changed in place": (
        RuntimeError,
        lambda: torch.ones(3, requires_grad=True).add_(1),
        "in-place: a leaf Variable that requires grad is being used in an in-place operation: float32[3] (here.py:N), "
        "at here.py:N. "
        "Do it under no_grad(), or on a copy.",
    ),
    "in-place that grows": (
        RuntimeError,
        lambda: torch.ones(3).add_(torch.ones(2, 3)),
        "in-place: the result float32[2,3] does not have the shape of the tensor float32[3] (here.py:N), at here.py:N. "
        "Write the operation out of place.",
    ),
    "index": (
        IndexError,
        lambda: torch.ones(2)[5],
        "__getitem__: index 5 of axis 0 with size 2: self float32[2] (here.py:N), at here.py:N. "
        "Use an index from -2 to 1.",
    ),
    "index at run time": (
        IndexError,
        lambda: torch.ones(3).index_select(0, torch.tensor([7])).tolist(),
        "index_select: index 7 is outside an axis of size 3: input float32[3] "
        "(here.py:N), index int64[1] (here.py:N), at here.py:N. Use indices from 0 to 2.",
    ),
    "axis": (
        IndexError,
        lambda: torch.ones(2, 3).sum(5),
        "sum: axis 5 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. "
        "Use an axis from -2 to 1.",
    ),
    "reshape": (
        RuntimeError,
        lambda: torch.ones(2, 3).reshape(4, 4),
        "reshape: 6 elements do not fill shape (4, 4): input float32[2,3] (here.py:N), at here.py:N. "
        "Use a shape whose sizes multiply to the number of elements.",
    ),
    "empty reduction": (
        RuntimeError,
        lambda: torch.zeros(0).max(),
        "amax: the largest of no elements does not exist: input float32[0] (here.py:N), at here.py:N. "
        "Reduce an axis that has elements.",
    ),
    "integer leaf": (
        RuntimeError,
        lambda: torch.tensor([1, 2], requires_grad=True),
        "requires_grad: only floating and complex tensors can require gradients, this is int64[2]. Cast it first.",
    ),
    "truth of many": (
        RuntimeError,
        lambda: bool(torch.ones(2)),
        "bool: Boolean value of Tensor with more than one value is ambiguous: float32[2]. Use any() or all().",
    ),
    "item of many": (
        RuntimeError,
        lambda: torch.ones(2).item(),
        "item: only a tensor of one element becomes a number, this is float32[2]. Index it first.",
    ),
    "numpy of a leaf": (
        RuntimeError,
        lambda: torch.ones(2, requires_grad=True).numpy(),
        "numpy: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    "a gradient": (
        RuntimeError,
        lambda: setattr(torch.ones(2, 3), "grad", torch.ones(3)),
        "grad: a gradient float32[3] (here.py:N) does not fit the tensor float32[2,3] (here.py:N), at here.py:N. "
        "Give one of its dtype and shape.",
    ),
    "columns": (
        ValueError,
        lambda: dynet.concatenate_cols([dynet.inputVector([1, 2, 3]), dynet.inputVector([1, 2])]),
        "concatenate_cols: expression 1 of dimensions (2,) (here.py:N) beside (3,) (here.py:N). "
        "Give expressions of the same dimensions besides dimension 1.",
    ),
    "columns of a matrix": (
        ValueError,
        lambda: dynet.concatenate_cols([dynet.inputTensor([[1, 2], [3, 4]]), dynet.inputVector([1, 2, 3])]),
        "concatenate_cols: expression 1 of dimensions (3,) (here.py:N) beside (2, 2) (here.py:N). "
        "Give expressions of the same dimensions besides dimension 1.",
    ),
    "a batch": (
        ValueError,
        lambda: dynet.concatenate_to_batch([dynet.inputVector([1]), dynet.inputVector([1, 2])]),
        "concatenate_to_batch: expression 1 of dimensions (2,) (here.py:N) beside (1,) (here.py:N). "
        "Give expressions of the same dimensions.",
    ),
    "device": (
        RuntimeError,
        lambda: torch.ones(2, device="cuda"),
        "device 'cuda' is not available. Use 'cpu'.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, expected = MISTAKES[name]
    assert message(error, action) == expected


def test_too_large_a_tensor_is_a_memory_error_and_nothing_is_lost():
    kept = torch.ones(3) * 2
    with pytest.raises(MemoryError):
        torch.zeros(10**13).exp().numpy()
    assert kept.tolist() == [2, 2, 2]


def test_transposing_is_said_only_where_it_fits() -> None:
    with pytest.raises(RuntimeError, match="Transpose other or make its first axis 3"):
        torch.ones(2, 3) @ torch.ones(4, 3)
    with pytest.raises(RuntimeError, match="Make the first axis of other 3"):
        torch.ones(2, 3) @ torch.ones(4, 4)
