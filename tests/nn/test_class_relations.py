"""Which layers are subclasses of which: programs ask with ``isinstance`` how to start or count a layer."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold import nn

SUBCLASSES = [
    ("ReLU6", "Hardtanh"),
    ("ZeroPad1d", "ConstantPad1d"),
    ("ZeroPad2d", "ConstantPad2d"),
    ("ZeroPad3d", "ConstantPad3d"),
]
UNRELATED = [
    ("Hardshrink", "Softshrink"),
    ("Hardswish", "Hardsigmoid"),
    ("LogSoftmax", "Softmax"),
    ("Softmin", "Softmax"),
]
BASES = {
    "padding": ("_CircularPadNd", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd"),
    "pooling": (
        "_AdaptiveAvgPoolNd",
        "_AdaptiveMaxPoolNd",
        "_AvgPoolNd",
        "_LPPoolNd",
        "_MaxPoolNd",
        "_MaxUnpoolNd",
    ),
}


@pytest.mark.parametrize(("name", "base"), SUBCLASSES)
def test_subclasses(name, base):
    assert issubclass(getattr(nn, name), getattr(nn, base))


@pytest.mark.parametrize(("name", "other"), UNRELATED)
def test_layers_that_are_no_subclasses(name, other):
    assert not issubclass(getattr(nn, name), getattr(nn, other))


@pytest.mark.parametrize("file", BASES)
def test_base_classes_of_layers(file):
    names = {base: base.removeprefix("_").removesuffix("Nd") + "2d" for base in BASES[file]}
    for base, name in names.items():
        assert issubclass(getattr(nn, name), getattr(getattr(nn.modules, file), base))


def test_representations_and_values_are_as_before():
    assert [repr(one) for one in (nn.ReLU6(), nn.ReLU6(inplace=True), nn.ZeroPad2d(1))] == [
        "ReLU6()",
        "ReLU6(inplace=True)",
        "ZeroPad2d((1, 1, 1, 1))",
    ]
    assert nn.ReLU6()(torch.tensor([-1.0, 3.0, 7.0])).tolist() == [0.0, 3.0, 6.0]
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(nn.Softmin(0)(x), (-x).softmax(0)) and torch.equal(
        nn.LogSoftmax(0)(x), x.log_softmax(0)
    )


def test_the_older_names_of_limits():
    layer = nn.Hardtanh(min_value=-2.0, max_value=0.5)
    assert repr(layer) == "Hardtanh(min_val=-2.0, max_val=0.5)"
    assert layer(torch.tensor([-3.0, 1.0])).tolist() == [-2.0, 0.5]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize(("ndim", "axis"), [(0, 0), (1, 0), (2, 1), (3, 0), (4, 1), (5, 1)])
def test_the_axis_without_a_dim_is_that_of_old_programs(name, ndim, axis):
    function = getattr(nn.functional, name)
    x = torch.randn(*(2, 3, 2, 3, 2)[:ndim]) if ndim else torch.tensor(0.5)
    assert torch.equal(function(x), function(x, axis))
