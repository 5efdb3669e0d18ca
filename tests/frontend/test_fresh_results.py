"""Results that PyTorch computes into memory of their own are no views here either, however little there is to do."""

import pytest

import twofold as torch

FRESH = {
    "repeat once": lambda x: x.repeat(1, 1, 1),
    "repeat in front": lambda x: x.repeat(5, 1, 1, 1),
    "tile once": lambda x: torch.tile(x, (1,)),
    "pad by nothing": lambda x: torch.nn.functional.pad(x, (0, 0)),
    "reflect by nothing": lambda x: torch.nn.functional.pad(x, (0, 0), mode="reflect"),
    "shuffle by one": lambda x: torch.nn.functional.pixel_shuffle(x, 1),
    "unshuffle by one": lambda x: torch.nn.functional.pixel_unshuffle(x, 1),
    "channels in one group": lambda x: torch.nn.functional.channel_shuffle(x[None], 1)[0],
    "cat of one": lambda x: torch.cat([x]),
    "roll by nothing": lambda x: x.roll(0, 1),
    "flip of no axis": lambda x: x.flip([]),
    "a sum over an axis of one": lambda x: x.unsqueeze(0).sum(0),
    "the diagonal of a matrix": lambda x: torch.diag(x[0]),
    "a product of one matrix": lambda x: torch.chain_matmul(x[0]),
    "the largest of a scalar": lambda x: x[0, 0, 0].max(0).values,
    "the smallest of a scalar": lambda x: x[0, 0, 0].min(-1).values,
    "the first of a scalar": lambda x: x[0, 0, 0].topk(1).values,
    "edges of a histogram": lambda x: torch.histogram(x, x[0, 0]).bin_edges,
}


@pytest.mark.parametrize("function", FRESH.values(), ids=FRESH)
def test_writing_to_the_result_leaves_the_input_alone(function):
    x = torch.arange(24.0).reshape(2, 3, 4)
    y = function(x)
    y[(0,) * y.dim()] = -7.0
    assert (x >= 0).all() and (y == -7.0).sum() == 1


ITSELF = {
    "real": torch.real,
    ".real": lambda x: x.real,
    "conj": torch.conj,
    ".conj": lambda x: x.conj(),
    "conj_physical": torch.conj_physical,
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, torch.zeros(4))[0],
}


@pytest.mark.parametrize("function", ITSELF.values(), ids=ITSELF)
def test_what_has_nothing_to_do_gives_the_tensor_itself(function):
    x = torch.zeros(3, 4, requires_grad=True)
    assert function(x) is x


@pytest.mark.parametrize(
    "function", [torch.t, lambda x: torch.tensor_split(x, 1)[0], lambda x: torch.hsplit(x, 1)[0]]
)
def test_a_view_of_the_whole_is_another_tensor(function):
    x = torch.zeros(3)
    y = function(x)
    y.unsqueeze_(0)
    y[0, 1] = 2.0
    assert y is not x and x.tolist() == [0.0, 2.0, 0.0]


@pytest.mark.parametrize(
    "write", [lambda y, v: y.copy_(v), lambda y, v: y.fill_(v[0])], ids=["copy_", "fill_"]
)
def test_what_was_overwritten_has_a_gradient_of_zeros(write):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * 2
    write(y, torch.ones(2))
    y.sum().backward()
    assert w.grad.tolist() == [0.0, 0.0]
