"""Strides and offsets of views, and which functions share memory and which copy."""

import numpy
import pytest

import twofold as torch
from twofold.ops.base import apply


def base():
    return torch.arange(24.0).reshape(2, 3, 4).clone()


VIEWS = [
    (lambda x: x.permute(2, 0, 1), (1, 12, 4), 0),
    (lambda x: x.t() if x.ndim < 3 else x.transpose(0, 2), (1, 4, 12), 0),
    (lambda x: x[1], (4, 1), 12),
    (lambda x: x[:, 1:, ::2], (12, 4, 2), 4),
    (lambda x: x[:, :, 5:], (12, 4, 1), 4),
    (lambda x: x[..., None], (12, 4, 1, 1), 0),
    (lambda x: x[:, None, ::3], (12, 12, 12, 1), 0),
    (lambda x: x.transpose(0, 1).unsqueeze(1), (4, 24, 12, 1), 0),
    (lambda x: x[:, ::2, :1].squeeze(-1), (12, 8), 0),
    (lambda x: x[:, :1].expand(2, 5, 4), (12, 0, 1), 0),
    (lambda x: x[0, 0].expand(7, 3, 4), (0, 0, 1), 0),
    (lambda x: x.narrow(2, 1, 2), (12, 4, 1), 1),
    (lambda x: x.select(1, 2), (12, 1), 8),
    (lambda x: x.unfold(2, 2, 1), (12, 4, 1, 1), 0),
    (lambda x: x.diagonal(1, 1, 2), (12, 5), 1),
    (lambda x: x.diagonal(-1, 1, 2), (12, 5), 4),
    (lambda x: x.movedim(0, -1), (4, 1, 12), 0),
    (lambda x: x.chunk(2, 2)[1], (12, 4, 1), 2),
    (lambda x: x.split(2, 1)[1], (12, 4, 1), 8),
    (lambda x: x.unbind(1)[2], (12, 1), 8),
    (lambda x: x.view(6, 4)[::2].view(3, 2, 2), (8, 2, 1), 0),
    (lambda x: x.unflatten(2, (2, 2)), (12, 4, 2, 1), 0),
    (lambda x: x.as_strided((2, 2), (5, 1), 3), (5, 1), 3),
    (lambda x: x[1].as_strided((2,), (4,)), (4,), 12),
    (lambda x: x.detach()[1], (4, 1), 12),
    (lambda x: x[:, ::2].flatten(0, 1), None, 0),
    (lambda x: x[..., 0].flatten(), (4,), 0),
]


@pytest.mark.parametrize("position", range(len(VIEWS)))
def test_views_have_strides_and_offsets(position):
    make, stride, offset = VIEWS[position]
    x = base()
    shown = make(x)
    if stride is None:
        assert shown._base is None and shown.is_contiguous()
        return
    assert (shown.stride(), shown.storage_offset()) == (stride, offset)
    assert [shown.stride(axis) for axis in range(-shown.ndim, 0)] == list(stride)
    assert shown._base is x
    assert shown.data_ptr() == (x.data_ptr() + 4 * offset if shown.numel() else 0)
    assert x.as_strided(tuple(shown.shape), stride, offset).tolist() == shown.tolist()


def test_what_lies_in_another_order_is_copied():
    x = base()
    before = x.tolist()
    x.permute(1, 0, 2).contiguous().mul_(10)
    x.transpose(0, 1).reshape(-1).zero_()
    x.transpose(0, 2).flatten().zero_()
    x.transpose(0, 2).flatten(1).zero_()
    x[:, ::2].reshape(-1).zero_()
    x[..., ::2].ravel().zero_()
    x.transpose(0, 1).reshape_as(torch.zeros(6, 4)).zero_()
    assert x.tolist() == before
    v = torch.arange(4.0)
    v.unfold(0, 2, 1).reshape(-1).add_(1)
    assert v.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_what_lies_side_by_side_is_shared():
    x = base()
    assert x.contiguous() is x
    for made in (
        x.reshape(-1),
        x.flatten(),
        x.ravel(),
        x[1].reshape(2, 6),
        x[1:].contiguous(),
        x[..., ::2].reshape(6, 2),
    ):
        made.zero_()
        assert made._base in (None, x) and made.data_ptr() in (x.data_ptr(), x[1].data_ptr())
    assert x[..., 1::2].sum().item() == 0.0 == x.sum().item()


def test_an_expanded_tensor_is_written_to_after_it_was_copied():
    e = torch.ones(1, 1).expand(2, 2).contiguous()
    e[0, 0] = 9
    assert e.tolist() == [[9.0, 1.0], [1.0, 1.0]]


def test_a_part_of_an_expanded_tensor_in_which_no_element_occurs_twice_is_written_to():
    x = torch.zeros(3, 1)
    wide = x.expand(3, 4)
    wide[0, 1] = 5
    wide[:, 2].add_(1)
    wide.t()[0][2:].mul_(10)
    assert x.tolist() == [[6.0], [1.0], [10.0]] and wide[0].tolist() == [6.0] * 4
    with pytest.raises(RuntimeError, match="several elements of which are one in memory"):
        wide[0] = 1
    with pytest.raises(RuntimeError, match="several elements of which are one in memory"):
        wide.zero_()
    y = torch.ones(1, requires_grad=True) * 2
    y.expand(3)[1] = 7
    y.sum().backward()
    assert y.item() == 7.0


@pytest.mark.parametrize(
    "empty",
    [
        lambda x: x.expand(1, 2).narrow(0, 0, 0),
        lambda x: x.expand(0),
        lambda x: x.expand(2, 3, 1)[:, :0].expand(2, 0, 5),
    ],
)
def test_an_empty_part_of_an_expanded_tensor_is_written_to(empty):
    """Nothing of it occurs twice; PyTorch writes to it, too."""
    x = torch.ones(1)
    part = empty(x)
    part.add_(1)
    part[...] = 5
    part.copy_(torch.zeros(part.shape))
    assert x.tolist() == [1.0] and part.numel() == 0


def test_contiguous_tells_the_order_of_the_axes():
    x = base()
    assert x.is_contiguous() and not x.transpose(0, 1).is_contiguous() and not x[:, 1:].is_contiguous()
    assert (
        x[1:].is_contiguous()
        and torch.zeros(0, 3).t().is_contiguous()
        and torch.zeros(1, 3).t().is_contiguous()
    )


def test_view_never_copies():
    x = base()
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
        x.transpose(0, 1).view(-1)
    with pytest.raises(RuntimeError, match="Use .reshape"):
        x[:, 1:].view_as(torch.zeros(16))
    x.view(size=(4, 6))[0, 1] = 50.0
    assert x[0, 0, 1].item() == 50.0
    assert x.view(-1, 2).shape == (12, 2)


def test_memory_formats_are_orders_of_axes():
    x = torch.arange(16.0).reshape(1, 2, 2, 4)
    y = x.contiguous(memory_format=torch.channels_last)
    assert y.stride() == (16, 1, 8, 2) and torch.equal(x, y) and not y.is_contiguous()
    assert y.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous(
        memory_format=torch.channels_last
    )
    assert y.contiguous(memory_format=torch.channels_last) is y and y.contiguous().is_contiguous()
    y.zero_()
    assert x.sum().item() == 120.0
    with pytest.raises(RuntimeError, match="channels_last for a tensor of 2 axes"):
        torch.zeros(2, 2).contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="memory_format"):
        torch.zeros(2, 2).contiguous(memory_format="rows")


def test_a_compiled_view_never_copies():
    flat = torch.compile(lambda x: x.t().view(-1))
    for size in (2, 2, 3):
        with pytest.raises(
            RuntimeError, match="view size is not compatible with input tensor's size and stride"
        ):
            flat(torch.arange(3 * size).reshape(size, 3))
    assert torch.compile(lambda x: x[:, :3].t().t().view(-1))(torch.arange(6).reshape(2, 3)).tolist() == [
        *range(6)
    ]


def test_parts_of_complex_numbers_and_bits_are_views():
    z = torch.tensor([1 + 2j, 3 - 4j])
    z.real[0] = 9
    z.imag.mul_(10)
    torch.view_as_real(z)[1, 0] = -3
    assert z.tolist() == [9 + 20j, -3 - 40j]
    assert (
        z.real.stride() == (2,) and z.imag.storage_offset() == 1 and torch.view_as_real(z).stride() == (2, 1)
    )
    pairs = torch.arange(8.0).reshape(4, 2)
    torch.view_as_complex(pairs)[1] = 0
    assert pairs[1].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="side by side"):
        torch.view_as_complex(torch.arange(8.0).reshape(2, 4).t())
    f = torch.ones(2)
    f.view(torch.int32)[0] = 0
    assert f.tolist() == [0.0, 1.0]


def test_as_strided_counts_in_the_storage():
    x = base()
    assert x.transpose(0, 2)[1:].as_strided((2,), (1,)).tolist() == [1.0, 2.0]
    x[1].as_strided((2, 2), (12, 1), 0).fill_(-1)
    assert x[0, 0, :2].tolist() == x[1, 0, :2].tolist() == [-1.0, -1.0]
    row = x[1]
    row.as_strided_((2,), (2,), 2)
    row.fill_(7)
    assert x[0, 0].tolist() == [-1.0, -1.0, 7.0, 3.0] and x[0, 1, 0].item() == 7.0
    w = torch.ones(3, requires_grad=True)
    w[1:].as_strided((2,), (1,), 0).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 0.0]
    w.detach()[1:].as_strided((1,), (1,), 0).fill_(5)
    assert w.tolist() == [5.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("leaf", "size", "stride", "gradient"),
    [
        (lambda x: x[2:8], (2, 2), (1, 2), [4.0, 6.0, 8.0, 10.0, 0.0, 0.0]),
        (lambda x: x.reshape(2, 6).t(), (2, 1), (1, 1), [[0.0, 0.0], [2.0, 0.0], *[[0.0, 0.0]] * 4]),
        (lambda x: x.reshape(3, 4)[:, 1:3], (5,), (1,), [[2.0, 4.0], [10.0, 0.0], [0.0, 0.0]]),
    ],
)  # fmt: skip
def test_gradients_of_as_strided_reach_a_leaf_that_is_a_view(leaf, size, stride, gradient):
    x = leaf(torch.arange(12.0)).requires_grad_()
    x.as_strided(size, stride).square().sum().backward()
    assert x.grad.tolist() == gradient


def test_strides_of_a_view_that_is_not_dense_make_no_view():
    repeated = torch.tensor([3.0, 5.0]).expand(4, 2).reshape(-1)
    for source in (torch.tensor(3.0).expand(9), torch.arange(9.0).flip(0), repeated[1:]):
        made = apply("as_strided", source, attrs=((2, 2), (1, 2), 1))
        wanted = numpy.ascontiguousarray(source.numpy())[[[1, 3], [2, 4]]]
        assert made.numpy().tolist() == made.clone().tolist() == wanted.tolist()


def test_whole_pieces_are_handles_of_their_own():
    x = base()
    for made in (x.narrow(0, 0, 2), x.chunk(1)[0], x.split(2)[0], x[:]):
        assert made is not x and made._base is x and made.stride() == x.stride()
    x.narrow(0, 0, 2).transpose_(0, 1)
    assert tuple(x.shape) == (2, 3, 4)


@pytest.mark.parametrize(
    "start",
    [
        lambda zeros: zeros.as_strided((2, 3), (6, 1)),
        lambda zeros: zeros.view(2, 5).as_strided((2, 3), (6, 1)),
        lambda zeros: zeros.view(2, 5).fill_(0.0).T.as_strided((2, 3), (6, 1)),
        lambda zeros: zeros.as_strided((2, 5), (5, 1)).as_strided((2, 3), (6, 1)),
    ],
)
def test_gradients_of_what_is_written_to_strides_of_a_view(start):
    """A band of a matrix, as dynamic convolutions fill it: the written values get the gradients of its elements."""
    weight = torch.arange(6.0).reshape(2, 3).requires_grad_()
    zeros = torch.zeros(10).detach()
    band = start(zeros)
    band.copy_(weight * 2)
    (zeros * torch.arange(10.0)).sum().backward()
    assert zeros.tolist() == [0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 6.0, 8.0, 10.0, 0.0]
    assert weight.grad.tolist() == [[0.0, 2.0, 4.0], [12.0, 14.0, 16.0]]


def test_no_gradient_passes_strides_of_a_detached_view():
    root, weight = torch.zeros(4, requires_grad=True) * 1, torch.ones(2, requires_grad=True)
    root.detach()[1:].as_strided((2,), (1,)).copy_(weight)
    assert root.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert torch.autograd.grad(root.sum(), weight, allow_unused=True) == (None,)
    with torch.no_grad():
        part = root[1:]
    assert not part.as_strided((2,), (1,)).requires_grad


@pytest.mark.parametrize("equation", ["ijk->kji", "ijk", "...j->j...", "iij->ji", "...ii->i..."])
def test_a_sum_over_nothing_of_one_operand_is_a_view(equation: str) -> None:
    values = numpy.arange(12.0).reshape((2, 2, 3) if "iij" in equation else (3, 2, 2))
    x = torch.tensor(values)
    y = torch.einsum(equation, x)
    expected = numpy.einsum(equation, values)  # a view, too
    assert y.stride() == tuple(step // 8 for step in expected.strides) and y.data_ptr() == x.data_ptr()
    y.mul_(2)
    expected[...] *= 2
    numpy.testing.assert_array_equal(x.numpy(), values)
