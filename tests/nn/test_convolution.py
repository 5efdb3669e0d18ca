"""Convolution layers: parameters, names, text, padding modes."""

import math

import numpy
import pytest

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


def test_parameters_have_the_shapes_and_names_of_pytorch():
    layer = nn.Conv2d(4, 6, (3, 5), groups=2)
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items()} == {
        "weight": (6, 2, 3, 5),
        "bias": (6,),
    }
    back = nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False)
    assert list(back.state_dict()) == ["weight"]
    assert tuple(back.weight.shape) == (4, 3, 3, 3)


def test_parameters_start_within_the_bound():
    layer = nn.Conv1d(3, 50, 4)
    bound = 1 / math.sqrt(12)
    for value in (layer.weight, layer.bias):
        assert 0.9 * bound < abs(value.detach().numpy()).max() <= bound


def test_text():
    assert repr(nn.Conv2d(3, 8, 3)) == "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))"
    assert repr(nn.Conv1d(4, 8, 3, 2, 1, 2, 4, False, "circular")) == (
        "Conv1d(4, 8, kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), groups=4, bias=False, "
        "padding_mode=circular)"
    )
    assert repr(nn.Conv2d(1, 1, 3, padding="same")).endswith("stride=(1, 1), padding=same)")
    assert repr(nn.ConvTranspose3d(2, 4, 2, 2, output_padding=1)) == (
        "ConvTranspose3d(2, 4, kernel_size=(2, 2, 2), stride=(2, 2, 2), output_padding=(1, 1, 1))"
    )
    assert repr(nn.Unfold(2)) == "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)"


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), "same"])
def test_padding_modes_extend_the_image(mode, padding):
    layer = nn.Conv2d(2, 3, (3, 4), padding=padding, padding_mode=mode)
    x = torch.randn(2, 2, 6, 7)
    margins = [(1, 1), (2, 2)] if padding != "same" else [(1, 1), (1, 2)]
    how = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    wide = torch.tensor(numpy.pad(x.numpy(), [(0, 0), (0, 0), *margins], mode=how))
    numpy.testing.assert_array_equal(
        layer(x).detach().numpy(), F.conv2d(wide, layer.weight, layer.bias).detach().numpy()
    )


def test_output_size_chooses_among_the_sizes_that_strides_allow():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = torch.ones(1, 2, 4, 4)
    assert tuple(layer(x).shape) == (1, 3, 7, 7)
    assert tuple(layer(x, output_size=(8, 7)).shape) == (1, 3, 8, 7)
    with pytest.raises(ValueError, match="from 7 to 8"):
        layer(x, output_size=(9, 7))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), "groups must be a positive integer"),
        (lambda: nn.Conv2d(4, 4, 3, padding="full"), "Invalid padding string 'full'"),
        (lambda: nn.Conv2d(4, 4, 3, 2, "same"), "not supported for strided"),
        (lambda: nn.Conv2d(4, 4, 3, padding_mode="mirror"), "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(4, 4, 3, padding_mode="reflect"), 'Only "zeros" padding mode'),
    ],
)
def test_wrong_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_small_network_learns():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2), nn.Flatten(), nn.Linear(36, 2)
    )
    x, y = torch.randn(16, 1, 8, 8), torch.arange(16) % 2
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    losses = []
    for _ in range(40):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_fold_adds_up_what_unfold_took_apart():
    x = torch.randn(2, 3, 5, 6)
    columns = nn.Unfold((2, 3), padding=1, stride=(1, 2))(x)
    counts = nn.Fold((5, 6), (2, 3), padding=1, stride=(1, 2))(torch.ones_like(columns))
    again = F.fold(columns, (5, 6), (2, 3), padding=1, stride=(1, 2))
    numpy.testing.assert_allclose(again.numpy(), (x * counts).numpy(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_a_layer_convolves_with_a_weight_that_a_program_computes(mode: str) -> None:
    layer = torch.nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode, bias=False)
    x = torch.arange(50.0).reshape(1, 2, 5, 5)
    assert torch.equal(layer._conv_forward(x, 2 * layer.weight, None), layer(2 * x))
    assert layer._reversed_padding_repeated_twice == [2, 2, 1, 1]
