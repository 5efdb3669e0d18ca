"""Modules that programs import by the names of PyTorch's files."""

from __future__ import annotations

import importlib

import pytest

import twofold as torch

NAMES = {
    "_VF": "lstm lstm_cell gru_cell rnn_tanh_cell",
    "_dynamo.config": "suppress_errors",
    "_vmap_internals": "_vmap vmap",
    "_inductor.config": "coordinate_descent_tuning",
    "autograd.function": "InplaceFunction",
    "autograd.functional": "_as_tuple _construct_standard_basis_for _grad_postprocess _tuple_postprocess",
    "cuda.memory": "empty_cache memory_allocated",
    "cuda.nvtx": "range_push range_pop",
    "cuda.random": "manual_seed_all",
    "cuda.streams": "Event Stream",
    "nn.init": "dirac sparse",
    "distributed": "all_to_all_single reduce_op scatter_object_list",
    "jit": "RecursiveScriptModule ScriptFunction TopLevelTracedModule",
    "nn.utils.convert_parameters": "_check_param_device parameters_to_vector",
    "nn.modules.transformer": "_get_activation_fn _get_clones",
    "nn.modules.lazy": "LazyModuleMixin",
    "nn.parallel._functions": "Broadcast Gather ReduceAddCoalesced Scatter",
    "nn.parallel.comm": "broadcast reduce_add",
    "nn.parameter": "UninitializedTensorMixin",
    "optim.lbfgs": "_cubic_interpolate _strong_wolfe",
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


def test_a_jacobian_of_a_program_by_the_older_vmap():
    functional, vmap = torch.autograd.functional, torch._vmap_internals._vmap
    x, unused = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2, requires_grad=True)
    outputs = (x.prod(), torch.stack([x[0] ** 2, x.sum(), x[1]]))
    basis = functional._construct_standard_basis_for(outputs, (1, 3))

    def pull_back(*grads):
        return torch.autograd.grad(outputs, (x, unused), grads, allow_unused=True)

    found, missing = vmap(pull_back, allow_none_pass_through=True)(*basis)
    assert found.tolist() == [[2, 1], [2, 0], [1, 1], [0, 1]] and missing is None


def test_a_line_search_finds_what_pytorch_finds():
    # Rosenbrock's function from (-1.2, 1) along minus the gradient; PyTorch's _strong_wolfe in float64
    x = torch.tensor([-1.2, 1.0], dtype=torch.float64)

    def evaluate(x, t, d):
        a, b = (x + t * d).tolist()
        slope = torch.tensor([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)], dtype=torch.float64)
        return (1 - a) ** 2 + 100 * (b - a * a) ** 2, slope

    loss, gradient = evaluate(x, 0.0, x)
    found = torch.optim.lbfgs._strong_wolfe(
        evaluate, x, 1.0, -gradient, loss, gradient, -gradient.dot(gradient)
    )
    assert (
        found[0] == pytest.approx(4.128138340789158)
        and found[2] == pytest.approx(0.0007892073839786148)
        and found[3] == 8
    )


def test_devices_of_parameters_are_one():
    check = torch.nn.utils.convert_parameters._check_param_device
    assert check(torch.ones(1), check(torch.ones(1), None)) == -1
    with pytest.raises(TypeError, match="on devices 0 and -1"):
        check(torch.ones(1), 0)


def test_modules_are_script_modules_only_if_they_say_so():
    # torchinfo and others ask scripted modules for their original_name
    class Own(torch.jit.ScriptModule):
        pass

    scripted = torch.jit.script(torch.nn.ReLU())
    assert isinstance(Own(), torch.nn.Module) and Own().original_name == "Own"
    assert not isinstance(scripted, torch.jit.ScriptModule) and not hasattr(scripted, "original_name")
