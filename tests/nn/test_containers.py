"""Containers behave as Python's lists and dictionaries do, and number their parts anew."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold import nn


def names(module: nn.Module) -> list[str]:
    return [name for name, _ in module.named_children()]


def test_sequential_is_a_list_of_layers() -> None:
    a, b, c, d = nn.Tanh(), nn.ReLU(), nn.Sigmoid(), nn.Identity()
    model = nn.Sequential(a, b)
    model[1] = c
    model[-2] = d
    assert list(model) == [d, c] and names(model) == ["0", "1"]
    longer = model + nn.Sequential(a)
    assert list(longer) == [d, c, a] and names(longer) == ["0", "1", "2"] and len(model) == 2
    model.insert(1, b)
    model.insert(-1, a)
    assert list(model) == [d, b, a, c]
    assert model.pop(1) is b and list(model) == [d, a, c] and names(model) == ["0", "1", "2"]
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(nn.Sequential(a, b)(x), torch.relu(torch.tanh(x)))
    with pytest.raises(IndexError):
        model[7] = a


def test_module_list() -> None:
    a, b, c = nn.Tanh(), nn.ReLU(), nn.Sigmoid()
    modules = nn.ModuleList([a, b])
    modules[0] = c
    assert list(modules) == [c, b]
    more = modules + [a]
    assert list(more) == [c, b, a] and len(modules) == 2 and names(more) == ["0", "1", "2"]


def test_module_dict() -> None:
    a, b = nn.Tanh(), nn.ReLU()
    modules = nn.ModuleDict({"one": a, "two": b})
    assert list(modules.keys()) == ["one", "two"]
    assert list(modules.values()) == [a, b]
    assert list(modules.items()) == [("one", a), ("two", b)]
    assert modules.pop("one") is a and list(modules.keys()) == ["two"] and names(modules) == ["two"]
    modules.clear()
    assert len(modules) == 0 and names(modules) == []


def test_parameter_list_and_dictionary() -> None:
    p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(3))
    values = nn.ParameterList([p])
    values += [q]
    assert len(values) == 2 and list(values)[1] is q
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    table = nn.ParameterDict({"p": p, "q": q})
    assert len(table) == 2 and list(table) == ["p", "q"] and "p" in table and "r" not in table
    assert list(table.keys()) == ["p", "q"] and next(iter(table.values())) is p
    assert [key for key, _ in table.items()] == ["p", "q"]
    del table["p"]
    assert list(table) == ["q"] and [name for name, _ in table.named_parameters()] == ["q"]


def test_conversions_of_a_module() -> None:
    layer = nn.Linear(2, 2)
    for convert, dtype in (
        (layer.half, torch.float16),
        (layer.bfloat16, torch.bfloat16),
        (layer.double, torch.float64),
        (layer.float, torch.float32),
        (lambda: layer.type(torch.float64), torch.float64),
    ):
        assert convert() is layer
        assert {parameter.dtype for parameter in layer.parameters()} == {dtype}
    assert layer.cpu() is layer and layer.share_memory() is layer


def test_buffers_of_a_module() -> None:
    norm = nn.BatchNorm1d(3)
    found = list(norm.buffers())
    assert [tuple(one.shape) for one in found] == [(3,), (3,), ()]
    assert norm.get_buffer("running_mean") is norm.running_mean
    with pytest.raises(AttributeError):
        norm.get_buffer("weight")
    assert len(list(nn.Sequential(norm).buffers(recurse=False))) == 0
    assert "running_mean" in dir(norm) and "weight" in dir(norm)


def test_what_a_module_says_of_itself() -> None:
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"
    assert repr(nn.Bilinear(2, 3, 4)) == "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)"
    assert repr(nn.RMSNorm(4)) == "RMSNorm((4,), eps=None, elementwise_affine=True)"


def test_a_handle_of_a_hook_is_a_context() -> None:
    seen: list[int] = []
    layer = nn.Identity()
    with layer.register_forward_hook(lambda *_: seen.append(1)):
        layer(torch.ones(1))
    layer(torch.ones(1))
    assert seen == [1]


def test_all_weights_of_a_recurrent_layer() -> None:
    layer = nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    groups = layer.all_weights
    assert len(groups) == 4 and all(len(group) == 4 for group in groups)
    assert [tuple(group[0].shape) for group in groups] == [(12, 2), (12, 2), (12, 6), (12, 6)]
    assert len(nn.GRU(2, 3, bias=False).all_weights[0]) == 2


def test_shapes_are_printed_as_they_were_given():
    size = torch.Size([2, 3])
    assert repr(nn.Unflatten(1, size)) == f"Unflatten(dim=1, unflattened_size={size!r})"
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
    assert repr(nn.LayerNorm(size)) == "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=True)"
    for wrong in (6, (2, 3.0), "23"):
        with pytest.raises(TypeError, match="unflattened_size"):
            nn.Unflatten(1, wrong)
    assert "(distance_function): PairwiseDistance()" in repr(nn.TripletMarginWithDistanceLoss())


def test_limits_and_distributions_are_printed():
    shown = "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
    assert repr(torch.finfo()) == shown + "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    normal = torch.distributions.Normal(torch.zeros(2), 1.0)
    assert repr(normal) == "Normal(loc: twofold.Size([2]), scale: twofold.Size([2]))"


def test_modules_that_are_there_twice():
    twice = nn.Sequential(*[nn.ReLU()] * 2)
    assert len(list(twice.modules())) == 2 and len(list(twice.modules(remove_duplicate=False))) == 3
    assert isinstance(twice.pop(key=0), nn.ReLU) and len(twice) == 1
