"""The text of what goes wrong in selecting, combining at indices, sorting and counting, frozen."""

import re

import pytest

import twofold as torch


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught:
        action()
    return re.sub(r"test_selection\.py:\d+", "here.py:N", str(caught.value))


MISTAKES = {
    "axis outside": (
        IndexError,
        lambda: torch.cummax(torch.ones(2, 3), 2),
        "cummax: axis 2 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), at "
        "here.py:N. Use an axis from -2 to 1.",
    ),
    "axis of a gather": (
        IndexError,
        lambda: torch.gather(torch.ones(2, 3), -3, torch.tensor([[0]])),
        "gather: axis -3 is outside a tensor with 2 axes: input float32[2,3] (here.py:N), index "
        "int64[1,1] (here.py:N), at here.py:N. Use an axis from -2 to 1.",
    ),
    "index of floats": (
        TypeError,
        lambda: torch.index_select(torch.ones(3), 0, torch.tensor([0.0])),
        "index_select: an index of float32: input float32[3] (here.py:N), index float32[1] "
        "(here.py:N), at here.py:N. Cast it with .to(int64) first.",
    ),
    "index with another number of axes": (
        RuntimeError,
        lambda: torch.gather(torch.ones(2, 3), 1, torch.tensor([0])),
        "gather: an index with 1 axes for 2: input float32[2,3] (here.py:N), index int64[1] "
        "(here.py:N), at here.py:N. Give the index as many axes as the input.",
    ),
    "index larger than the source": (
        RuntimeError,
        lambda: torch.scatter(torch.ones(3, 3), 0, torch.tensor([[0, 1], [1, 2]]), torch.ones(1, 2)),
        "scatter: the index has size 2 on axis 0, the source 1: input float32[3,3] (here.py:N), "
        "index int64[2,2] (here.py:N), source float32[1,2] (here.py:N), at here.py:N. Use an "
        "index that is not larger there.",
    ),
    "index that is no vector": (
        ValueError,
        lambda: torch.index_add(torch.ones(3), 0, torch.tensor([[0]]), torch.ones(1)),
        "index_add: an index with 2 axes: input float32[3] (here.py:N), index int64[1,1] "
        "(here.py:N), source float32[1] (here.py:N), at here.py:N. Use a vector of indices.",
    ),
    "values of another dtype": (
        TypeError,
        lambda: torch.scatter_add(torch.ones(3), 0, torch.tensor([0]), torch.ones(1, dtype=torch.float64)),
        "scatter_add: values of float64 for float32: input float32[3] (here.py:N), index "
        "int64[1] (here.py:N), source float64[1] (here.py:N), at here.py:N. Cast them with .to() "
        "first.",
    ),
    "unknown reduction": (
        ValueError,
        lambda: torch.scatter_reduce(torch.ones(3), 0, torch.tensor([0]), torch.ones(1), "max"),
        "scatter_reduce: reduce 'max': input float32[3] (here.py:N), index int64[1] (here.py:N), src "
        "float32[1] (here.py:N), at here.py:N. Use one of sum, prod, mean, amax, amin.",
    ),
    "mask of numbers": (
        TypeError,
        lambda: torch.masked_scatter(torch.ones(3), torch.ones(3), torch.ones(3)),
        "masked_scatter: a mask of float32: input float32[3] (here.py:N), mask float32[3] "
        "(here.py:N), source float32[3] (here.py:N), at here.py:N. Compare first, for example mask != "
        "0.",
    ),
    "positions and elements": (
        RuntimeError,
        lambda: torch.ones(3).put(torch.tensor([0, 1]), torch.ones(3)),
        "put: 2 positions for 3 elements: input float32[3] (here.py:N), index int64[2] "
        "(here.py:N), source float32[3] (here.py:N), at here.py:N. Give one position per element.",
    ),
    "median of no elements": (
        RuntimeError,
        lambda: torch.median(torch.ones(0, 3), 0),
        "median: the median of no elements: input float32[0,3] (here.py:N), at here.py:N. Use an axis "
        "that has some.",
    ),
    "mode of no elements": (
        RuntimeError,
        lambda: torch.mode(torch.ones(2, 0)),
        "mode: the mode of no elements: input float32[2,0] (here.py:N), at here.py:N. Use an axis "
        "that has some.",
    ),
    "k too large": (
        ValueError,
        lambda: torch.kthvalue(torch.ones(3), 4),
        "kthvalue: k 4 for size 3 of axis 0: input float32[3] (here.py:N), at here.py:N. Use a number "
        "from 1 to 3.",
    ),
    "quantile outside": (
        IndexError,
        lambda: torch.quantile(torch.ones(4), torch.tensor([0.5, 1.5])).tolist(),
        "quantiles: element 1 of q is outside its range: x float32[4] (here.py:N), q "
        "float32[2] (here.py:N), at here.py:N. Give values from 0 to 1.",
    ),
    "quantile of integers": (
        TypeError,
        lambda: torch.quantile(torch.arange(3), 0.5),
        "quantile: takes floating dtypes, not int64: input int64[3] (here.py:N), at here.py:N. Cast "
        "with .to(float32) first.",
    ),
    "fraction above one": (
        ValueError,
        lambda: torch.quantile(torch.ones(3), 1.5),
        "quantile: q 1.5: input float32[3] (here.py:N), at here.py:N. Use fractions from 0 to 1.",
    ),
    "unknown interpolation": (
        ValueError,
        lambda: torch.quantile(torch.ones(3), 0.5, interpolation="cubic"),
        "quantile: interpolation 'cubic': input float32[3] (here.py:N), at here.py:N. Use one of "
        "linear, lower, higher, midpoint, nearest.",
    ),
    "diagonal that does not fit": (
        RuntimeError,
        lambda: torch.diagonal_scatter(torch.ones(3, 3), torch.ones(2)),
        "diagonal_scatter: src of shape (2,) for a diagonal of shape (3,): input float32[3,3] "
        "(here.py:N), src float32[2] (here.py:N), at here.py:N. Make their shapes equal.",
    ),
    "diag of too many axes": (
        RuntimeError,
        lambda: torch.diag(torch.ones(2, 2, 2)),
        "diag: diag of a tensor with 3 axes: input float32[2,2,2] (here.py:N), at here.py:N. Use a "
        "vector, a matrix, or diag_embed.",
    ),
    "negative rows": (
        ValueError,
        lambda: torch.tril_indices(-1, 3),
        "tril_indices: -1 rows and 3 columns, at here.py:N. Use sizes from 0.",
    ),
    "strides that leave the tensor": (
        RuntimeError,
        lambda: torch.as_strided(torch.ones(4), (2, 2), (3, 1)),
        "as_strided: element 4 of 4: input float32[4] (here.py:N), at here.py:N. Use smaller sizes, "
        "strides or offset.",
    ),
    "window too large": (
        RuntimeError,
        lambda: torch.ones(4).unfold(0, 5, 1),
        "unfold: windows of 5 elements along size 4: input float32[4] (here.py:N), at here.py:N. Use "
        "at most 4.",
    ),
    "pieces that do not divide": (
        ValueError,
        lambda: torch.hsplit(torch.ones(5), 2),
        "hsplit: 2 equal pieces of size 5: input float32[5] (here.py:N), at here.py:N. Use a number "
        "of pieces that divides it.",
    ),
    "pieces that do not add up": (
        RuntimeError,
        lambda: torch.split_with_sizes(torch.ones(5), [2, 2]),
        "split_with_sizes: pieces (2, 2) do not add up to size 5 of axis 0: input float32[5] "
        "(here.py:N), at here.py:N. Make their sum 5.",
    ),
    "shapes that do not broadcast": (
        RuntimeError,
        lambda: torch.broadcast_shapes((2,), (3,)),
        "broadcast_shapes: sizes on axis -1 differ, 2 against 3, at here.py:N. Make them equal, or "
        "one of them 1 (unsqueeze adds such an axis).",
    ),
    "grid of matrices": (
        RuntimeError,
        lambda: torch.meshgrid(torch.ones(2, 2)),
        "meshgrid: a grid of tensors with more than one axis: operand 0 float32[2,2] (here.py:N), at "
        "here.py:N. Use vectors and scalars.",
    ),
    "points and values": (
        RuntimeError,
        lambda: torch.trapezoid(torch.ones(3), torch.ones(2)),
        "trapezoid: 2 points for 3 values: y float32[3] (here.py:N), x float32[2] (here.py:N), at "
        "here.py:N. Give one point per value.",
    ),
    "too few elements for a slope": (
        RuntimeError,
        lambda: torch.gradient(torch.ones(1)),
        "gradient: size 1 of axis 0 for edge_order 1: input float32[1] (here.py:N), at here.py:N. Use "
        "an axis with at least 2 elements.",
    ),
    "sequence and values": (
        RuntimeError,
        lambda: torch.searchsorted(torch.ones(2, 3), torch.ones(3, 3)),
        "searchsorted: a sequence of shape (2, 3) for values of shape (3, 3): rows float32[2,3] "
        "(here.py:N), values float32[3,3] (here.py:N), at here.py:N. Use a vector, or make all "
        "axes but the last equal.",
    ),
    "both sides": (
        ValueError,
        lambda: torch.searchsorted(torch.ones(3), torch.ones(3), right=True, side="left"),
        "searchsorted: side 'left' beside right=True: sorted_sequence float32[3] (here.py:N), input "
        "float32[3] (here.py:N), at here.py:N. Give one of the two.",
    ),
    "no bins": (
        ValueError,
        lambda: torch.histc(torch.ones(3), 0),
        "histc: 0 bins: input float32[3] (here.py:N), at here.py:N. Use at least one.",
    ),
    "negative counts": (
        ValueError,
        lambda: torch.bincount(torch.tensor([-1])),
        "bincount: numbers of shape (1,), the smallest -1: input int64[1] (here.py:N), at here.py:N. "
        "Use a vector of numbers from 0.",
    ),
    "counts of floats": (
        TypeError,
        lambda: torch.bincount(torch.ones(3)),
        "bincount: takes integers, not float32: input float32[3] (here.py:N), at here.py:N. Cast with "
        ".to(int64) first.",
    ),
    "too many repetitions": (
        RuntimeError,
        lambda: torch.repeat_interleave(torch.ones(3), torch.tensor([1, 2])),
        "repeat_interleave: repeats of shape (2,) for size 3: input float32[3] (here.py:N), repeats "
        "int64[2] (here.py:N), at here.py:N. Give one number per element.",
    ),
    "size that does not broadcast": (
        RuntimeError,
        lambda: torch.ones(3).sum_to_size(2),
        "sum_to_size: size (2,) does not broadcast to shape (3,): input float32[3] (here.py:N), at "
        "here.py:N. Keep each size, or make it 1 where the input is summed.",
    ),
    "too many indices": (
        IndexError,
        lambda: torch.ones(3)[0, 0],
        "__getitem__: 2 indices for a tensor with 1 axes: self float32[3] (here.py:N), at here.py:N. "
        "Use at most 1.",
    ),
    "mask of another shape": (
        RuntimeError,
        lambda: torch.ones(3)[torch.tensor([True, False])],
        "__getitem__: a mask of shape (2,) for axes of shape (3,): self float32[3] (here.py:N), key "
        "bool[2] (here.py:N), at here.py:N. Make the mask's shape equal to that of the axes it "
        "selects from.",
    ),
    "index at run time": (
        IndexError,
        lambda: torch.gather(torch.ones(3), 0, torch.tensor([0, 5])).tolist(),
        "gather: index 5 is outside an axis of size 3: input float32[3] (here.py:N), "
        "index int64[2] (here.py:N), at here.py:N. Use indices from 0 to 2.",
    ),
    "index of scatter at run time": (
        IndexError,
        lambda: torch.scatter_reduce(torch.ones(3), 0, torch.tensor([-4]), torch.ones(1), "amax").tolist(),
        "scatter_reduce: index -4 is outside an axis of size 3: input float32[3] "
        "(here.py:N), index int64[1] (here.py:N), source float32[1] (here.py:N), at "
        "here.py:N. Use indices from 0 to 2.",
    ),
    "too few elements for a mask": (
        IndexError,
        lambda: torch.masked_scatter(torch.ones(3), torch.tensor([True] * 3), torch.ones(2)).tolist(),
        "masked_scatter: index 2 is outside an axis of size 2: input float32[3] (here.py:N), "
        "mask bool[3] (here.py:N), source float32[2] (here.py:N), at here.py:N. Use indices "
        "from -2 to 1.",
    ),
    "slice step of zero": (
        ValueError,
        lambda: torch.slice_scatter(torch.ones(3), torch.ones(3), 0, step=0),
        "slice_scatter: step 0: input float32[3] (here.py:N), src float32[3] (here.py:N), at "
        "here.py:N. Use a positive step.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, expected = MISTAKES[name]
    assert message(error, action) == expected


@pytest.mark.parametrize("tier", ["unfused", "fused"])
@pytest.mark.parametrize("index", [3, -4])
def test_an_index_outside_is_named_with_the_line_in_every_tier(tier, index):
    torch._core.set_tier(tier)
    try:
        x = torch.scatter_add(torch.ones(3), 0, torch.tensor([0, index]), torch.ones(2))
        with pytest.raises(IndexError, match=rf"index {index} is outside .* at test_selection\.py:\d+"):
            x.tolist()
    finally:
        torch._core.set_tier("auto")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.arange(3, 0), "step 1 leads away from 3 to 0"),
        (lambda: torch.arange(0.0, float("inf")), "Use finite numbers"),
        (lambda: torch.linspace(torch.ones(2), 1, 3), r"an end of shape \(2,\)"),
        (lambda: torch.logspace(0, 1, -1), "steps is -1"),
        (lambda: torch.flipud(torch.tensor(1.0)), "rows of a tensor without axes"),
        (lambda: torch.fliplr(torch.ones(2)), "columns of 1 axes"),
        (
            lambda: torch.zeros(3, 2).index_add(0, torch.tensor([0, 2]), torch.ones(1, 2)),
            r"a source of shape \(1, 2\) for slices of shape \(2, 2\)",
        ),
    ],
)
def test_ranges_and_slices_that_do_not_fit(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_settings_outside_their_range():
    x = torch.ones(4)
    for call, words in (
        (lambda: torch.nn.functional.softshrink(x, -0.5), "lambd"),
        (lambda: torch.nn.functional.hardtanh(x, 0.5, -0.5), "min_val"),
        (lambda: torch.nn.functional.huber_loss(x, x, delta=0), "delta"),
        (lambda: torch.nn.functional.smooth_l1_loss(x, x, beta=-1.0), "beta"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(IndexError, match="start 5"):
        x.narrow(0, 5, 0)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float32"):
        x.masked_fill(x > 0, 1j)
