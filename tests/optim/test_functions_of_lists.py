"""``torch.optim.adam.adam`` and its relatives, on lists of tensors; expected values are those of PyTorch 2.13."""

import importlib
import inspect

import numpy as np
import pytest

import twofold as torch

ADAM = {"beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-3}
CASES = {
    "adam": ("0 0 0 step", {**ADAM, "amsgrad": True, "maximize": False}),
    "adamw": ("0 0 - step", {**ADAM, "amsgrad": False, "maximize": True}),
    "adamax": ("0 0 step", ADAM),
    "nadam": ("0 0 1 step", {**ADAM, "momentum_decay": 0.01}),
    "radam": ("0 0 step", ADAM),
    "sgd": (
        "none",
        {
            "lr": 0.1,
            "weight_decay": 0.1,
            "momentum": 0.5,
            "dampening": 0.0,
            "nesterov": True,
            "maximize": False,
        },
    ),
    "rmsprop": (
        "0 0 0 step",
        {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.5, "alpha": 0.9, "eps": 1e-3, "centered": True},
    ),
    "adagrad": ("0 step", {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.2, "eps": 1e-3, "maximize": True}),
    "adadelta": ("0 0 step", {"lr": 0.5, "weight_decay": 0.1, "rho": 0.8, "eps": 1e-2, "maximize": False}),
    "asgd": ("0 1 eta step", {"lr": 0.1, "weight_decay": 0.1, "lambd": 0.1, "t0": 1.0, "alpha": 0.75}),
    "rprop": (
        "0 size step",
        {"step_size_min": 1e-3, "step_size_max": 0.15, "etaminus": 0.5, "etaplus": 1.2, "maximize": False},
    ),
}
# the parameter and what is kept of it after three steps
EXPECTED = {
    "adam": [
        [0.7006965, -2.099834, 0.7997897],
        [0.2872104, -0.1740173, -0.9460032],
        [0.09413525, 0.2032116, 1.019223],
        [0.09413525, 0.2032116, 1.019223],
        [3.0],
    ],
    "adamw": [[1.266716, -1.796879, 0.1882879], [-0.244, 0.072, 0.976], [0.06775, 0.181, 1.084], [3.0]],
    "adamax": [
        [0.6982845, -2.103674, 0.8005162],
        [0.2871944, -0.1738583, -0.9459984],
        [0.5809585, 1.214301, 1.930987],
        [3.0],
    ],
    "nadam": [
        [0.7216062, -1.991663, 0.7798406],
        [0.2871427, -0.1731404, -0.9459273],
        [0.09408332, 0.2020006, 1.019038],
        [0.0641568],
        [3.0],
    ],
    "radam": [
        [0.8210205, -2.068557, 1.081683],
        [0.2894467, -0.17296, -0.9407017],
        [0.09549356, 0.2022406, 1.008651],
        [3.0],
    ],
    "sgd": [[0.6969798, -1.931277, 1.484816], [1.026135, -1.11682, -3.334939]],
    "rmsprop": [
        [-0.1596821, -2.165559, 1.681465],
        [0.08570359, 0.2105843, 0.9901485],
        [0.1521759, -0.08022388, -0.5179389],
        [4.156119, -2.380739, -4.298356],
        [3.0],
    ],
    "adagrad": [[1.198239, -1.926701, 0.3002067], [0.4597427, 2.134301, 12.5018], [3.0]],
    "adadelta": [
        [0.674622, -1.933128, 0.848336],
        [0.168645, 0.3801882, 1.831043],
        [0.02318581, 0.02111859, 0.02665911],
        [3.0],
    ],
    "asgd": [[0.7956631, -1.880794, 1.054629], [0.7956631, -1.880794, 1.054629], [0.5], [0.09780748], [3.0]],
    "rprop": [[0.636, -2.0, 0.864], [0.5, -1.0, -2.0], [0.144, 0.1, 0.144], [3.0]],
}


def kept(torch, form):
    """Lists of one tensor each, as ``form`` says."""
    made = {
        "0": lambda: [torch.zeros(3)],
        "1": lambda: [torch.ones(())],
        "step": lambda: [torch.tensor(0.0)],
        "eta": lambda: [torch.tensor(0.1)],
        "size": lambda: [torch.full((3,), 0.1)],
        "none": lambda: [None],
        "-": list,
    }
    return [made[part]() for part in form.split()]


def values_of(torch, name):
    form, settings = CASES[name]
    function = getattr(importlib.import_module(f"{torch.__name__}.optim.{name}"), name)
    param, lists = torch.tensor([1.0, -2.0, 0.5]), kept(torch, form)
    for k in range(3):
        function([param], [torch.tensor([0.5, 1.0 - k, -2.0])], *lists, **settings)
    return [param.tolist()] + [one[0].reshape(-1).tolist() for one in lists if one]


@pytest.mark.parametrize("name", CASES)
def test_three_steps(name):
    for found, expected in zip(values_of(torch, name), EXPECTED[name], strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


NAMES = {
    "adam": (
        "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps foreach capturable differentiable "
        "fused grad_scale found_inf has_complex decoupled_weight_decay * amsgrad beta1 beta2 lr weight_decay "
        "eps maximize"
    ),
    "adamw": (
        "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps foreach capturable differentiable "
        "fused grad_scale found_inf has_complex * amsgrad beta1 beta2 lr weight_decay eps maximize"
    ),
    "adamax": (
        "params grads exp_avgs exp_infs state_steps foreach maximize differentiable capturable has_complex * "
        "eps beta1 beta2 lr weight_decay"
    ),
    "nadam": (
        "params grads exp_avgs exp_avg_sqs mu_products state_steps decoupled_weight_decay foreach capturable "
        "differentiable has_complex maximize * beta1 beta2 lr weight_decay momentum_decay eps"
    ),
    "radam": (
        "params grads exp_avgs exp_avg_sqs state_steps decoupled_weight_decay foreach differentiable "
        "capturable has_complex maximize * beta1 beta2 lr weight_decay eps"
    ),
    "sgd": (
        "params d_p_list momentum_buffer_list has_sparse_grad foreach fused grad_scale found_inf * "
        "weight_decay momentum lr dampening nesterov maximize"
    ),
    "rmsprop": (
        "params grads square_avgs grad_avgs momentum_buffer_list state_steps foreach maximize differentiable "
        "capturable has_complex * lr alpha eps weight_decay momentum centered"
    ),
    "adagrad": (
        "params grads state_sums state_steps fused grad_scale found_inf has_sparse_grad foreach "
        "differentiable has_complex * lr weight_decay lr_decay eps maximize"
    ),
    "adadelta": (
        "params grads square_avgs acc_deltas state_steps capturable foreach differentiable has_complex * lr "
        "rho eps weight_decay maximize"
    ),
    "asgd": (
        "params grads axs mus etas state_steps foreach maximize differentiable capturable has_complex * lambd "
        "lr t0 alpha weight_decay"
    ),
    "rprop": (
        "params grads prevs step_sizes state_steps foreach capturable maximize differentiable has_complex * "
        "step_size_min step_size_max etaminus etaplus"
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_pytorch(name):
    function = getattr(importlib.import_module(f"twofold.optim.{name}"), name)
    parameters = list(inspect.signature(function).parameters.values())
    keywords = [one.name for one in parameters if one.kind == one.KEYWORD_ONLY]
    positional = [one.name for one in parameters if one.kind != one.KEYWORD_ONLY]
    assert " ".join([*positional, "*", *keywords]) == NAMES[name]
    assert {one.default for one in parameters} == {inspect.Parameter.empty, None, False}


SGD = {"lr": 0.5, "weight_decay": 0, "momentum": 0, "dampening": 0, "nesterov": False, "maximize": False}


def sgd(params, grads, buffers, **options):
    torch.optim.sgd.sgd(params, grads, buffers, **{**SGD, **options})


def test_parts_of_a_tensor_are_written():
    flat = torch.zeros(4)
    sgd([flat[:2], flat[2:]], [torch.ones(2), 2 * torch.ones(2)], [None, None])
    assert flat.tolist() == [-0.5, -0.5, -1.0, -1.0]


def test_buffers_are_kept_by_index_also_of_one_parameter_twice():
    param, buffers = torch.zeros(1), [None, None]
    for _ in range(2):
        sgd([param, param], [torch.ones(1), torch.ones(1)], buffers, momentum=0.5)
    assert [one.item() for one in buffers] == [1.5, 1.5] and param.item() == -2.5


def test_a_step_that_two_parameters_share_counts_both():
    step = torch.tensor(0.0)
    settings = {"lr": 1.0, "weight_decay": 0, "lr_decay": 1.0, "eps": 0.0, "maximize": False}
    params = [torch.zeros(1), torch.zeros(1)]
    grads, sums = [torch.ones(1), torch.ones(1)], [torch.zeros(1), torch.zeros(1)]
    torch.optim.adagrad.adagrad(params, grads, sums, [step, step], **settings)
    assert step.item() == 2 and [one.item() for one in params] == [-1.0, -0.5]


def test_gradients_are_unscaled_in_place_and_infinite_ones_skipped():
    param, gradient = torch.zeros(1), torch.ones(1)
    sgd([param], [gradient], [None], fused=True, grad_scale=torch.tensor(4.0), found_inf=torch.tensor(0.0))
    assert param.item() == -0.125 and gradient.item() == 0.25
    sgd([param], [gradient], [None], fused=True, found_inf=torch.tensor(1.0))
    assert param.item() == -0.125
    with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
        sgd([param], [gradient], [None], grad_scale=torch.tensor(4.0))


def test_sparse_gradients():
    table = torch.nn.Embedding.from_pretrained(torch.ones(3, 2), freeze=False, sparse=True)
    table(torch.tensor([1, 1])).sum().backward()
    with torch.no_grad():
        sgd([table.weight], [table.weight.grad], [None])
        assert table.weight[:, 0].tolist() == [1.0, 0.0, 1.0]


def test_what_cannot_be_done_raises():
    param = torch.zeros(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"requires grad .*Call the function within torch.no_grad"):
        sgd([param], [torch.ones(1)], [None])
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        torch.optim.adamax.adamax([param], [torch.ones(1)], [torch.ones(1)], [torch.ones(1)], [0], **ADAM)
    with pytest.raises(AssertionError, match="capturable=True"):
        state = kept(torch, "0 0 step")
        torch.optim.radam.radam([param], [torch.ones(1)], *state, capturable=True, **ADAM)
