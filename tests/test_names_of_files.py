"""Modules that programs import by the names of PyTorch's files."""

from __future__ import annotations

import importlib

import pytest

import twofold as torch

NAMES = {
    "_VF": "lstm lstm_cell gru_cell rnn_tanh_cell",
    "_dynamo.config": "suppress_errors",
    "_inductor.config": "coordinate_descent_tuning",
    "autograd.function": "InplaceFunction",
    "cuda.memory": "empty_cache memory_allocated",
    "cuda.nvtx": "range_push range_pop",
    "cuda.random": "manual_seed_all",
    "cuda.streams": "Event Stream",
    "nn.init": "dirac sparse",
    "distributed": "all_to_all_single reduce_op scatter_object_list",
    "nn.modules.transformer": "_get_activation_fn _get_clones",
    "nn.modules.lazy": "LazyModuleMixin",
    "nn.parallel._functions": "Broadcast Gather ReduceAddCoalesced Scatter",
    "nn.parallel.comm": "broadcast reduce_add",
    "nn.parameter": "UninitializedTensorMixin",
    "onnx.operators": "shape_as_tensor",
    "utils.checkpoint": "check_backward_validity detach_variable",
    "utils.cpp_extension": "BuildExtension CUDAExtension CUDA_HOME CppExtension load load_inline",
    "utils.data._utils.collate": "collate default_collate_fn_map collate_tensor_fn",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_its_names(name):
    module = importlib.import_module(f"twofold.{name}")
    assert all(hasattr(module, one) for one in NAMES[name].split())


def test_switches_are_set_and_set_back():
    config = importlib.import_module("twofold._inductor.config")
    with config.patch(max_autotune=True):
        assert torch._inductor.config.max_autotune
    assert config is torch._inductor.config and not config.max_autotune


def test_operators_of_onnx():
    shape = torch.onnx.operators.shape_as_tensor(torch.ones(2, 3))
    assert shape.tolist() == [2, 3] and shape.dtype is torch.int64
    assert torch.onnx.operators.reshape_from_tensor_shape(torch.ones(6), shape).shape == (2, 3)


def test_an_unknown_profile_of_printing_sets_nothing():
    torch.set_printoptions(profile="long")
    assert repr(torch.tensor([0.123456])) == "tensor([0.1235])"
    assert isinstance(torch.distributed.ReduceOp.SUM, torch.distributed.ReduceOp.RedOpType)
