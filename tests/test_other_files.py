"""Names are found where PyTorch keeps them: programs import them from its files."""

from __future__ import annotations

import importlib

import pytest

import twofold as torch

POSITIONS = (
    "autograd.grad_mode no_grad",
    "autograd.gradcheck gradcheck",
    "autograd.variable Variable",
    "distributions.multivariate_normal MultivariateNormal",
    "distributions.one_hot_categorical OneHotCategorical",
    "distributions.transformed_distribution TransformedDistribution",
    "distributions.uniform Uniform",
    "nn.modules.batchnorm _BatchNorm",
    "nn.modules.conv _ConvNd",
    "nn.modules.loss _WeightedLoss",
    "nn.modules.utils _pair",
    "nn.parallel.data_parallel DataParallel",
    "nn.utils.clip_grad clip_grad_norm_",
    "nn.utils.weight_norm weight_norm",
    "optim.adamw AdamW",
    "optim.rmsprop RMSprop",
)


@pytest.mark.parametrize("position", POSITIONS)
def test_a_file_has_its_names(position: str) -> None:
    module, name = position.split()
    found = getattr(importlib.import_module(f"twofold.{module}"), name)
    parent = importlib.import_module(f"twofold.{module.rpartition('.')[0]}")
    assert getattr(parent, name, found) is found


def test_files_do_not_hide_functions_of_the_same_name() -> None:
    assert callable(torch.autograd.gradcheck) and callable(torch.nn.parallel.data_parallel)
    assert callable(torch.nn.utils.weight_norm) and callable(torch.nn.utils.spectral_norm)


def test_base_classes_tell_kinds_of_layers() -> None:
    modules = torch.nn.modules
    assert isinstance(torch.nn.BatchNorm2d(2), modules.batchnorm._BatchNorm)
    assert isinstance(torch.nn.Conv1d(1, 1, 1), modules.conv._ConvNd)
    assert not isinstance(torch.nn.Linear(1, 1), modules.conv._ConvNd)


def test_one_value_stands_for_each_axis() -> None:
    pair, triple = torch.nn.modules.utils._pair, torch.nn.modules.utils._triple
    assert pair(3) == (3, 3) and pair([1, 2]) == (1, 2) and triple(0) == (0, 0, 0)


def test_dtypes_have_a_type() -> None:
    assert isinstance(torch.float32, torch.dtype) and not isinstance("float32", torch.dtype)


def test_files_of_layers_are_attributes_too() -> None:
    """A file that shares its name with one of the package's own is the one with PyTorch's contents."""
    modules = torch.nn.modules
    assert modules.activation.MultiheadAttention is torch.nn.MultiheadAttention
    assert modules.activation is importlib.import_module("twofold.nn.modules.activation")
    assert modules.linear.Linear is torch.nn.Linear and modules.loss._Loss is not None
