"""The text of what users get wrong most, frozen for every family of functions."""

import re

import pytest

import twofold as torch
from twofold.nn import functional as F


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_families\.py:\d+", "here.py:N", str(caught.value))


ones = torch.ones


def written(tensor, position):
    """A tensor after an element was assigned."""
    tensor[position] = 0.0
    return tensor.numpy()


MISTAKES = {
    "creation: negative size": (
        RuntimeError,
        lambda: torch.zeros(2, -3),
        "zeros: a size is negative in (2, -3), at here.py:N. Sizes start at 0.",
    ),
    "creation: negative size of full": (
        RuntimeError,
        lambda: torch.full((2, -3), 1.0),
        "full: a size is negative in (2, -3), at here.py:N. Sizes start at 0.",
    ),
    "creation: size of text": (
        TypeError,
        lambda: torch.zeros("a"),
        "zeros: a size given as 'a', at here.py:N. Use an integer.",
    ),
    "creation: step of 0": (
        ValueError,
        lambda: torch.arange(0, 5, 0),
        "arange: step is 0, at here.py:N. Use a positive or negative step.",
    ),
    "creation: wrong way": (
        ValueError,
        lambda: torch.arange(5, 0, 1),
        "arange: step 1 leads away from 5 to 0, at here.py:N. Change the sign of step.",
    ),
    "creation: negative points": (
        ValueError,
        lambda: torch.linspace(0, 1, -2),
        "linspace: steps is -2, at here.py:N. Use 0 or more.",
    ),
    "creation: ragged": (
        RuntimeError,
        lambda: torch.tensor([[1, 2], [3]]),
        "tensor: lists of different lengths, at here.py:N. Give all lists of one level the same length.",
    ),
    "creation: unknown dtype": (
        TypeError,
        lambda: torch.zeros(2, dtype="float31"),
        "not a dtype of Twofold: 'float31'. Use one of bool, int8, int16, int32, int64, uint8, uint16, "
        "uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128.",
    ),
    "creation: too many axes": (
        RuntimeError,
        lambda: torch.zeros(*[1] * 70),
        "zeros: a result with 70 axes, at here.py:N. Use at most 64.",
    ),
    "creation: too large": (
        RuntimeError,
        lambda: torch.zeros(2**62, 2**10),
        "zeros: a result of 1.718e+10 TiB, float32[4611686018427387904,1024], at here.py:N. Make it smaller.",
    ),
    "creation: negative eye": (
        ValueError,
        lambda: torch.eye(-2),
        "eye: -2 rows and -2 columns, at here.py:N. Use sizes from 0.",
    ),
    "random: bounds": (
        ValueError,
        lambda: torch.randint(5, 5, (2,)),
        "randint: random integers from 5 to 4, at here.py:N. Give low < high within int64.",
    ),
    "reduction: axis": (
        IndexError,
        lambda: torch.sum(ones(2, 3), 2),
        "sum: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. Use "
        "an axis from -2 to 1.",
    ),
    "reduction: axis twice": (
        ValueError,
        lambda: torch.sum(ones(2, 3), (0, 0)),
        "sum: an axis is named twice in (0, 0): input float32[2,3] (here.py:N), at here.py:N. Name each "
        "axis once.",
    ),
    "reduction: empty": (
        RuntimeError,
        lambda: torch.amax(ones(0, 3), 0),
        "amax: the largest of no elements does not exist: input float32[0,3] (here.py:N), at here.py:N. "
        "Reduce an axis that has elements.",
    ),
    "reduction: empty argmax": (
        RuntimeError,
        lambda: torch.argmax(ones(0)),
        "argmax: the largest of no elements does not exist: input float32[0] (here.py:N), at here.py:N. "
        "Reduce an axis that has elements.",
    ),
    "reduction: mean of ints": (
        TypeError,
        lambda: torch.mean(ones(3, dtype=torch.int64)),
        "mean: takes floating dtypes, not int64: input int64[3] (here.py:N), at here.py:N. Cast with "
        ".to() first.",
    ),
    "reduction: complex max": (
        TypeError,
        lambda: torch.max(ones(3) * 1j),
        "amax: takes bool and signed integers and unsigned integers and floating dtypes, not complex64: "
        "input complex64[3] (here.py:N), at here.py:N. Cast with .to() first.",
    ),
    "indexing: outside": (
        IndexError,
        lambda: ones(2, 3)[2],
        "__getitem__: index 2 of axis 0 with size 2: self float32[2,3] (here.py:N), at here.py:N. Use an"
        " index from -2 to 1.",
    ),
    "indexing: too many": (
        IndexError,
        lambda: ones(2, 3)[0, 0, 0],
        "__getitem__: 3 indices for a tensor with 2 axes: self float32[2,3] (here.py:N), at here.py:N. "
        "Use at most 2.",
    ),
    "indexing: two ellipses": (
        IndexError,
        lambda: ones(2, 3)[..., ...],
        "__getitem__: more than one '...' in an index: self float32[2,3] (here.py:N), at here.py:N. Keep"
        " one.",
    ),
    "indexing: step 0": (
        ValueError,
        lambda: ones(2, 3)[::0],
        "__getitem__: a slice with step 0: self float32[2,3] (here.py:N), at here.py:N. Use another step.",
    ),
    "indexing: float": (
        TypeError,
        lambda: ones(2, 3)[1.5],
        "__getitem__: an index of type float: self float32[2,3] (here.py:N), at here.py:N. Use an "
        "integer, a slice, '...', None, a mask or integers in a tensor.",
    ),
    "indexing: word": (
        TypeError,
        lambda: ones(2, 3)["a"],
        "__getitem__: an index of type str: self float32[2,3] (here.py:N), at here.py:N. Use an integer,"
        " a slice, '...', None, a mask or integers in a tensor.",
    ),
    "indexing: float index": (
        TypeError,
        lambda: ones(2, 3)[ones(2)],
        "index: an index of float32: input float32[2,3] (here.py:N), operand 1 float32[2] "
        "(here.py:N), at here.py:N. Cast it with .to(int64) first.",
    ),
    "indexing: mask size": (
        RuntimeError,
        lambda: ones(2, 3)[torch.tensor([True, False, True])],
        "__getitem__: a mask of shape (3,) for axes of shape (2,): self float32[2,3] (here.py:N), key "
        "bool[3] (here.py:N), at here.py:N. Make the mask's shape equal to that of the axes it selects "
        "from.",
    ),
    "indexing: shapes": (
        RuntimeError,
        lambda: ones(4, 3)[torch.tensor([0, 1]), torch.tensor([0, 1, 2])],
        "index: sizes on axis -1 differ, 2 against 3: input float32[4,3] (here.py:N), operand 1 "
        "int64[2] (here.py:N), operand 2 int64[3] (here.py:N), at here.py:N. Make them equal, or one of "
        "them 1 (unsqueeze adds such an axis).",
    ),
    "indexing: run time": (
        IndexError,
        lambda: ones(4, 3)[torch.tensor([0, 7])].numpy(),
        "index: index 7 is outside an axis of size 4: input float32[4,3] (here.py:N), "
        "operand 1 int64[2] (here.py:N), at here.py:N. Use indices from -4 to 3.",
    ),
    "assignment: shape": (
        RuntimeError,
        lambda: ones(2, 3).__setitem__(0, ones(2)),
        "assignment to elements: shape (2,) does not broadcast to (3,): input float32[2,3] (here.py:N), "
        "value float32[2] (here.py:N), at here.py:N. Make the sizes equal, or 1 where they "
        "repeat.",
    ),
    "assignment: run time": (
        IndexError,
        lambda: written(ones(4, 3), torch.tensor([0, -5])),
        "assignment to elements: index -5 is outside an axis of size 4: input float32[4,3] "
        "(here.py:N), values 0.0, operand 2 int64[2] (here.py:N), at here.py:N. Use "
        "indices from -4 to 3.",
    ),
    "assignment: mask": (
        RuntimeError,
        lambda: ones(2, 3).__setitem__(torch.tensor([True, False, True]), 0.0),
        "__setitem__: a mask of shape (3,) for a tensor of shape (2, 3): self float32[2,3] (here.py:N), "
        "key bool[3] (here.py:N), at here.py:N. Make the mask's shape equal to the first axes.",
    ),
    "gather: axis": (
        IndexError,
        lambda: torch.gather(ones(2, 3), 2, torch.zeros(2, 3, dtype=torch.int64)),
        "gather: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), index "
        "int64[2,3] (here.py:N), at here.py:N. Use an axis from -2 to 1.",
    ),
    "gather: run time": (
        IndexError,
        lambda: torch.gather(ones(2, 3), 1, torch.full((2, 3), 3)).numpy(),
        "gather: index 3 is outside an axis of size 3: input float32[2,3] (here.py:N), "
        "index int64[2,3] (here.py:N), at here.py:N. Use indices from 0 to 2.",
    ),
    "scatter: run time": (
        IndexError,
        lambda: torch.scatter(ones(2, 3), 1, torch.full((2, 3), -4), ones(2, 3)).numpy(),
        "scatter: index -4 is outside an axis of size 3: input float32[2,3] (here.py:N), "
        "index int64[2,3] (here.py:N), source float32[2,3] (here.py:N), at here.py:N. "
        "Use indices from 0 to 2.",
    ),
    "index_add: run time": (
        IndexError,
        lambda: ones(2, 3).index_add(0, torch.tensor([0, 2]), ones(2, 3)).numpy(),
        "index_add: index 2 is outside an axis of size 2: input float32[2,3] (here.py:N),"
        " index int64[2] (here.py:N), source float32[2,3] (here.py:N), at here.py:N. "
        "Use indices from 0 to 1.",
    ),
    "index_select: float": (
        TypeError,
        lambda: torch.index_select(ones(2, 3), 0, ones(2)),
        "index_select: an index of float32: input float32[2,3] (here.py:N), index float32[2] "
        "(here.py:N), at here.py:N. Cast it with .to(int64) first.",
    ),
    "take: run time": (
        IndexError,
        lambda: torch.take(ones(2, 3), torch.tensor([6])).numpy(),
        "index_select: index 6 is outside an axis of size 6: input float32[6] "
        "(here.py:N), index int64[1] (here.py:N), at here.py:N. Use indices from -6 to 5.",
    ),
    "embedding: run time": (
        IndexError,
        lambda: F.embedding(torch.tensor([1, 10]), ones(10, 3)).numpy(),
        "embedding: index 10 is outside a table of 10 rows: index int64[2] (here.py:N), "
        "weight float32[10,3] (here.py:N), at here.py:N. Use indices from 0 to 9.",
    ),
    "embedding: negative": (
        IndexError,
        lambda: F.embedding(torch.tensor([-1]), ones(10, 3)).numpy(),
        "embedding: index -1 is outside a table of 10 rows: index int64[1] (here.py:N), "
        "weight float32[10,3] (here.py:N), at here.py:N. Use indices from 0 to 9.",
    ),
    "embedding: weight": (
        RuntimeError,
        lambda: F.embedding(torch.tensor([1]), ones(10)),
        "embedding: a weight with 1 axes: index int64[1] (here.py:N), weight float32[10] "
        "(here.py:N), at here.py:N. Use one of shape (num_embeddings, embedding_dim).",
    ),
    "embedding: float": (
        TypeError,
        lambda: F.embedding(ones(2), ones(10, 3)),
        "embedding: an index of float32: index float32[2] (here.py:N), weight float32[10,3] "
        "(here.py:N), at here.py:N. Cast it with .to(int64) first.",
    ),
    "matmul: batch": (
        RuntimeError,
        lambda: torch.matmul(ones(2, 3, 4), ones(3, 4, 5)),
        "matmul: sizes on axis -1 differ, 2 against 3: input float32[2,3,4] (here.py:N), other "
        "float32[3,4,5] (here.py:N), at here.py:N. Make them equal, or one of them 1 (unsqueeze adds "
        "such an axis).",
    ),
    "mv": (
        RuntimeError,
        lambda: torch.mv(ones(2, 3), ones(2)),
        "matmul: inner sizes differ, 3 against 2: input float32[2,3] (here.py:N), other float32[2] "
        "(here.py:N), at here.py:N. Make the first axis of other 3.",
    ),
    "bmm: axes": (
        RuntimeError,
        lambda: torch.bmm(ones(2, 3), ones(3, 4)),
        "bmm: input has 2 axes, not 3: input float32[2,3] (here.py:N), mat2 float32[3,4] (here.py:N), "
        "at here.py:N. Use matmul, which takes any number.",
    ),
    "linear": (
        RuntimeError,
        lambda: F.linear(ones(2, 3), ones(4, 5)),
        "linear: in_features differ, 3 against 5: input float32[2,3] (here.py:N), weight "
        "float32[4,5] (here.py:N), at here.py:N. Make the last axis of the input 5.",
    ),
    "einsum: letters": (
        ValueError,
        lambda: torch.einsum("ij,jk->il", ones(2, 3), ones(3, 4)),
        "einsum: result 'il' of 'ij,jk->il': operand 0 float32[2,3] (here.py:N), operand 1 float32[3,4] "
        "(here.py:N), at here.py:N. Name each axis of the result once, all from operands.",
    ),
    "einsum: sizes": (
        RuntimeError,
        lambda: torch.einsum("ij,jk->ik", ones(2, 3), ones(4, 5)),
        "einsum: axis j has sizes 3 and 4: operand 0 float32[2,3] (here.py:N), operand 1 float32[4,5] "
        "(here.py:N), at here.py:N. Make them equal.",
    ),
    "einsum: operands": (
        ValueError,
        lambda: torch.einsum("ij,jk", ones(2, 3)),
        "einsum: 'ij,jk' names 2 operands, not 1: operand 0 float32[2,3] (here.py:N), at here.py:N. "
        "Write one term for each.",
    ),
    "einsum: axes": (
        ValueError,
        lambda: torch.einsum("ijk->i", ones(2, 3)),
        "einsum: term 'ijk' for a tensor with 2 axes: operand 0 float32[2,3] (here.py:N), at here.py:N. "
        "Write one letter per axis, or '...'.",
    ),
    "cat: shapes": (
        RuntimeError,
        lambda: torch.cat([ones(2, 3), ones(2, 4)], 0),
        "concatenate: tensor 1 of shape (2, 4) beside (2, 3) along axis 0: operand 0 float32[2,3] "
        "(here.py:N), operand 1 float32[2,4] (here.py:N), at here.py:N. Make all axes but that one "
        "equal.",
    ),
    "cat: axis": (
        IndexError,
        lambda: torch.cat([ones(2, 3), ones(2, 3)], 2),
        "concatenate: axis 2 is outside a tensor with 2 axes, at here.py:N. Use an axis from -2 to 1.",
    ),
    "cat: none": (
        ValueError,
        lambda: torch.cat([]),
        "concatenate: no tensors to concatenate, at here.py:N. Give at least one.",
    ),
    "cat: no tensor": (
        TypeError,
        lambda: torch.cat([ones(2), 3]),
        "concatenate: cannot work with these arguments ('int' object has no attribute 'shape'): "
        "tensors=[float32[2], 3], at here.py:N. It is concatenate(tensors, dim=0, axis=None).",
    ),
    "stack: shapes": (
        RuntimeError,
        lambda: torch.stack([ones(2, 3), ones(2, 4)]),
        "stack: tensor 1 of shape (2, 4) beside (2, 3): operand 0 float32[2,3] (here.py:N), "
        "operand 1 float32[2,4] (here.py:N), at here.py:N. Make all shapes equal.",
    ),
    "stack: none": (
        ValueError,
        lambda: torch.stack([]),
        "stack: no tensors to stack, at here.py:N. Give at least one.",
    ),
    "split": (
        RuntimeError,
        lambda: torch.split(ones(5), [2, 2]),
        "split: pieces (2, 2) do not add up to size 5 of axis 0: tensor float32[5] (here.py:N), at "
        "here.py:N. Make their sum 5.",
    ),
    "chunk": (
        ValueError,
        lambda: torch.chunk(ones(5), 0),
        "chunk: 0 chunks: input float32[5] (here.py:N), at here.py:N. Use at least one.",
    ),
    "view: size": (
        RuntimeError,
        lambda: ones(2, 3).view(4, 2),
        "view: 6 elements do not fill shape (4, 2): input float32[2,3] (here.py:N), at here.py:N. "
        "Make axis 0 3.",
    ),
    "view: two unknown": (
        RuntimeError,
        lambda: ones(2, 3).view(-1, -1),
        "view: shape (-1, -1) does not say one size per axis: input float32[2,3] (here.py:N), at "
        "here.py:N. Give sizes, of which one may be -1.",
    ),
    "permute": (
        ValueError,
        lambda: torch.permute(ones(2, 3), (0, 0)),
        "permute: an axis occurs twice in (0, 0): input float32[2,3] (here.py:N), at here.py:N. Name "
        "each axis once.",
    ),
    "permute axes": (
        IndexError,
        lambda: torch.permute(ones(2, 3), (0, 1, 2)),
        "permute: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. "
        "Use an axis from -2 to 1.",
    ),
    "transpose": (
        IndexError,
        lambda: torch.transpose(ones(2, 3), 0, 2),
        "transpose: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at "
        "here.py:N. Use an axis from -2 to 1.",
    ),
    "expand": (
        RuntimeError,
        lambda: ones(2, 3).expand(4, 3),
        "expand: size 2 of axis 0 does not broadcast to 4: input float32[2,3] (here.py:N), at here.py:N."
        " Only an axis of size 1 expands: use 2 or -1 there.",
    ),
    "squeeze": (
        IndexError,
        lambda: torch.squeeze(ones(2, 3), 3),
        "squeeze: axis 3 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. "
        "Use an axis from -2 to 1.",
    ),
    "unsqueeze": (
        IndexError,
        lambda: torch.unsqueeze(ones(2, 3), 4),
        "unsqueeze: axis 4 is outside a tensor with 3 axes: input float32[2,3] (here.py:N), at "
        "here.py:N. Use an axis from -3 to 2.",
    ),
    "flatten": (
        IndexError,
        lambda: torch.flatten(ones(2, 3), 1, 0),
        "flatten: flatten from axis 1 back to axis 0: input float32[2,3] (here.py:N), at here.py:N. Give"
        " the first axis first.",
    ),
    "unflatten": (
        RuntimeError,
        lambda: torch.unflatten(ones(6), 0, (4, 2)),
        "unflatten: 6 elements do not fill shape (4, 2): input float32[6] (here.py:N), at here.py:N. "
        "Make axis 0 3.",
    ),
    "flip": (
        IndexError,
        lambda: torch.flip(ones(2, 3), (2,)),
        "flip: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. Use"
        " an axis from -2 to 1.",
    ),
    "roll": (
        IndexError,
        lambda: torch.roll(ones(2, 3), 1, 2),
        "roll: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. Use"
        " an axis from -2 to 1.",
    ),
    "narrow": (
        RuntimeError,
        lambda: torch.narrow(ones(2, 3), 1, 2, 2),
        "narrow: elements 2 to 4 of axis 1 with size 3: input float32[2,3] (here.py:N), at here.py:N. "
        "Keep start + length at most 3.",
    ),
    "tile negative": (
        RuntimeError,
        lambda: torch.tile(ones(2), (-1,)),
        "tile: repetitions (-1,), some of them negative: input float32[2] (here.py:N), at here.py:N. "
        "Give numbers from 0.",
    ),
    "pad": (
        ValueError,
        lambda: F.pad(ones(2, 3), (1, 1, 1)),
        "pad: 3 pad widths for 2 axes: input float32[2,3] (here.py:N), at here.py:N. Give (low, high) "
        "for each of the last axes.",
    ),
    "broadcast": (
        RuntimeError,
        lambda: torch.broadcast_to(ones(2, 3), (2, 4)),
        "broadcast_to: size 3 of axis 1 does not broadcast to 4: input float32[2,3] (here.py:N), at "
        "here.py:N. Only an axis of size 1 expands: use 3 or -1 there.",
    ),
    "where": (
        RuntimeError,
        lambda: torch.where(ones(2) > 0, ones(2), ones(3)),
        "where: sizes on axis -1 differ, 2 against 3: condition bool[2] (here.py:N), input float32[2] "
        "(here.py:N), other float32[3] (here.py:N), at here.py:N. Make them equal, or one of them 1 "
        "(unsqueeze adds such an axis).",
    ),
    "clamp": (
        ValueError,
        lambda: torch.clamp(ones(2)),
        "clamp: neither min nor max is given: input float32[2] (here.py:N), at here.py:N. Give at least "
        "one limit.",
    ),
    "bool arithmetic": (
        TypeError,
        lambda: (ones(2) > 0) - (ones(2) > 0),
        "subtract: takes signed integers and unsigned integers and floating dtypes, not bool: input "
        "bool[2] (here.py:N), other bool[2] (here.py:N), at here.py:N. Cast with .to() first.",
    ),
    "shift of floats": (
        TypeError,
        lambda: ones(2) << 1,
        "bitwise_left_shift: takes signed integers and unsigned integers, not float32: input float32[2] "
        "(here.py:N), other 1, at here.py:N. Cast with .to() first.",
    ),
    "order of complex": (
        TypeError,
        lambda: (ones(2) * 1j) < (ones(2) * 1j),
        "less: takes bool and signed integers and unsigned integers and floating dtypes, not complex64: "
        "input complex64[2] (here.py:N), other complex64[2] (here.py:N), at here.py:N. Cast with .to() "
        "first.",
    ),
    "loss: class": (
        IndexError,
        lambda: F.cross_entropy(ones(2, 3), torch.tensor([0, 3])).numpy(),
        "cross_entropy: class 3 does not exist, there are 3 classes: input float32[2,3] "
        "(here.py:N), target int64[2] (here.py:N), at "
        "here.py:N. Use class numbers from 0 to 2, or a loss its ignore_index for rows to leave out.",
    ),
    "loss: shapes": (
        RuntimeError,
        lambda: F.cross_entropy(ones(2, 3), torch.tensor([0, 1, 2])),
        "cross_entropy: targets of shape (3,) for scores of shape (2, 3): input float32[2,3] "
        "(here.py:N), target int64[3] (here.py:N), at here.py:N. Give "
        "one class number for each row: shape (2,).",
    ),
    "loss: nll": (
        IndexError,
        lambda: F.nll_loss(ones(2, 3), torch.tensor([0, -1])).numpy(),
        "nll_loss: class -1 does not exist, there are 3 classes: input float32[2,3] "
        "(here.py:N), target int64[2] (here.py:N), at here.py:N. Use class"
        " numbers from 0 to 2, or a loss its ignore_index for rows to leave out.",
    ),
    "loss: mse": (
        RuntimeError,
        lambda: F.mse_loss(ones(2, 3), ones(2, 4)),
        "mse_loss: sizes on axis -1 differ, 3 against 4: input float32[2,3] (here.py:N), target "
        "float32[2,4] (here.py:N), at here.py:N. Make them equal, or one of them 1 (unsqueeze adds such "
        "an axis).",
    ),
    "loss: reduction": (
        ValueError,
        lambda: F.mse_loss(ones(2), ones(2), reduction="all"),
        "mse_loss: reduction 'all': input float32[2] (here.py:N), target float32[2] (here.py:N), at "
        "here.py:N. Use 'mean', 'sum' or 'none'.",
    ),
    "loss: bce": (
        RuntimeError,
        lambda: F.binary_cross_entropy(ones(2), ones(3)),
        "binary_cross_entropy: targets of shape (3,) for input of shape (2,): input float32[2] "
        "(here.py:N), target float32[3] (here.py:N), at here.py:N. Make the shapes equal.",
    ),
    "one_hot": (
        IndexError,
        lambda: F.one_hot(torch.tensor([0, 5]), 3).numpy(),
        "one_hot: class 5 does not exist, there are 3 classes: input int64[2] "
        "(here.py:N), at here.py:N. Use class numbers from 0 to 2, or a loss its ignore_index "
        "for rows to leave out.",
    ),
    "softmax axis": (
        IndexError,
        lambda: F.softmax(ones(2, 3), 2),
        "softmax: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. "
        "Use an axis from -2 to 1.",
    ),
    "layer_norm": (
        RuntimeError,
        lambda: F.layer_norm(ones(2, 3), (4,)),
        "layer_norm: normalized_shape (4,) for input of shape (2, 3): input float32[2,3] (here.py:N), at"
        " here.py:N. Make it the last sizes of the input.",
    ),
    "topk": (
        ValueError,
        lambda: torch.topk(ones(3), 4),
        "topk: k 4 for size 3 of axis 0: input float32[3] (here.py:N), at here.py:N. Use no more than "
        "there are.",
    ),
    "sort axis": (
        IndexError,
        lambda: torch.sort(ones(2, 3), 2),
        "sort: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. Use"
        " an axis from -2 to 1.",
    ),
    "fft axis": (
        IndexError,
        lambda: torch.fft.fft(ones(2, 3), dim=2),
        "fft.fft: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at here.py:N. "
        "Use an axis from -2 to 1.",
    ),
    "fft n": (
        ValueError,
        lambda: torch.fft.fft(ones(3), n=0),
        "fft.fft: a transform of 0 elements: input float32[3] (here.py:N), at here.py:N. Transform at "
        "least one.",
    ),
    "solve": (
        RuntimeError,
        lambda: torch.linalg.solve(ones(2, 3), ones(2)),
        "linalg.solve: A holds matrices of 2 by 3, which are not square: A float32[2,3] (here.py:N), B "
        "float32[2] (here.py:N), at here.py:N. Give as many rows as columns.",
    ),
    "in-place view": (
        RuntimeError,
        lambda: ones(2, 3).expand(2, 2, 3).add_(1),
        "assignment to elements: writing to an expanded tensor, several elements of which are one in memory: "
        "input float32[2,3] (here.py:N), value float32[2,2,3] (here.py:N), at here.py:N. Write to the "
        "tensor before it is expanded, or to a .clone().",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, text = MISTAKES[name]
    assert message(error, action) == text
