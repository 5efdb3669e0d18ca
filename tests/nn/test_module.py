"""Modules: registration, state, conversion, hooks, display, and the texts of errors."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.ReLU()])
        self.named = nn.ModuleDict({"t": nn.Tanh(), "l": nn.Linear(1, 1, bias=False)})
        self.list = nn.ParameterList([torch.ones(2)])
        self.register_buffer("kept", torch.ones(3))
        self.register_buffer("passing", torch.ones(3), persistent=False)
        self.weight = nn.Parameter(torch.ones(1))
        self.tail = nn.Sequential(nn.Dropout(), nn.Flatten())
        self.empty = nn.ModuleList()

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.tail(x) * self.weight


SHOWN = """Net(
  (layers): ModuleList(
    (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    (3): ReLU()
  )
  (named): ModuleDict(
    (t): Tanh()
    (l): Linear(in_features=1, out_features=1, bias=False)
  )
  (list): ParameterList(  (0): Parameter containing: [torch.float32 of size 2])
  (tail): Sequential(
    (0): Dropout(p=0.5, inplace=False)
    (1): Flatten(start_dim=1, end_dim=-1)
  )
  (empty): ModuleList()
)"""


def test_repr() -> None:
    assert repr(Net()) == SHOWN
    assert repr(nn.Sequential(nn.Linear(1, 2))[0]) == "Linear(in_features=1, out_features=2, bias=True)"


def test_names() -> None:
    net = Net()
    state = ["weight", "kept"]
    state += [f"layers.{k}.{name}" for k in range(3) for name in ("weight", "bias")]
    state += ["named.l.weight", "list.0"]
    assert list(net.state_dict()) == state
    assert [name for name, _ in net.named_parameters()] == [name for name in state if name != "kept"]
    assert [name for name, _ in net.named_buffers()] == ["kept", "passing"]
    assert [name for name, _ in net.named_children()] == ["layers", "named", "list", "tail", "empty"]
    assert len(list(net.modules())) == 14
    assert net.get_parameter("layers.1.bias") is net.layers[1].bias


def test_shared_modules_are_found_once() -> None:
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    assert len(list(net.parameters())) == 2
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_state_round_trip() -> None:
    first, second = Net().eval(), Net().eval()
    x = torch.randn(4, 2)
    assert repr(second.load_state_dict(first.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(first(x), second(x))
    state = first.state_dict()
    with torch.no_grad():
        first.weight.add_(1)
    assert state["weight"].item() == first.weight.item(), "a state shows later changes"
    assert second.weight.item() == 1


def test_load_errors() -> None:
    layer = nn.Linear(3, 2)
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict({"weight": torch.ones(2, 2), "x": torch.ones(1)})
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "x". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([2, 2]) from checkpoint, "
        "the shape in current model is torch.Size([2, 3]).\n"
        "\tMake the model as it was when its state was saved, or pass strict=False to load what fits."
    )
    with pytest.raises(RuntimeError, match="All keys begin with 'module.': take it off with"):
        layer.load_state_dict({f"module.{key}": value for key, value in layer.state_dict().items()})
    found = layer.load_state_dict({"weight": torch.ones(2, 3), "y": torch.ones(1)}, strict=False)
    assert found.missing_keys == ["bias"] and found.unexpected_keys == ["y"]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        layer.load_state_dict([])


def test_assigning_and_deleting() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(
        TypeError, match=r"cannot assign .* as parameter 'weight' \(torch.nn.Parameter or None"
    ):
        layer.weight = torch.ones(2, 2)
    layer.bias = None
    assert layer.bias is None and [name for name, _ in layer.named_parameters()] == ["weight"]
    new = nn.Parameter(torch.zeros(2, 2))
    layer.weight = new
    assert layer.weight is new and layer._parameters["weight"] is new
    layer._parameters["weight"] = None
    assert layer.weight is None, "a registry and the attribute never differ"
    del layer.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weight'"):
        _ = layer.weight


def test_errors_of_registration() -> None:
    class NoInit(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        NoInit()
    layer = nn.Linear(1, 1)
    with pytest.raises(KeyError, match="attribute 'bias' already exists"):
        layer.register_buffer("bias", None)
    with pytest.raises(KeyError, match="buffer name can"):
        layer.register_buffer("a.b", None)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        layer.add_module("child", 3)
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        layer.train(1)
    with pytest.raises(
        NotImplementedError, match='Module .Module. is missing the required "forward" function'
    ):
        nn.Module()(1)
    with pytest.raises(IndexError, match="index 3 is out of range"):
        nn.ModuleList([layer])[3]


def test_hooks() -> None:
    layer = nn.Linear(2, 2)
    seen: list[str] = []
    before = layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    after = layer.register_forward_hook(lambda module, args, output: seen.append("after"))
    doubled = layer.register_forward_hook(lambda module, args, output: output * 2)
    assert torch.equal(layer(torch.ones(1, 2))[0], layer.bias * 2)
    assert seen == ["after"]
    for handle in (before, after, doubled):
        handle.remove()
    assert not torch.equal(layer(torch.ones(1, 2))[0], layer.bias * 2) and seen == ["after"]
    first = layer.register_forward_hook(lambda m, a, o: seen.append("second"))
    layer.register_forward_hook(lambda m, a, k, o: seen.append(f"first {k}"), prepend=True, with_kwargs=True)
    layer(input=torch.ones(1, 2))
    assert [entry.split()[0] for entry in seen] == ["after", "first", "second"] and first.id >= 0


def test_conversion_and_modes() -> None:
    net = Net()
    weight = net.weight
    net.double()
    assert net.weight is weight and weight.dtype is torch.float64 and net.kept.dtype is torch.float64
    assert weight.requires_grad and weight.is_leaf
    net(torch.ones(2, 2, dtype=torch.float64)).sum().backward()
    assert weight.grad.dtype is torch.float64
    net.to(torch.float32)
    assert weight.grad.dtype is torch.float32
    net.eval()
    assert not net.tail[0].training
    net.zero_grad()
    assert weight.grad is None
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_copies() -> None:
    net = Net().eval()
    x = torch.randn(3, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), net(x))
        assert isinstance(other.weight, nn.Parameter) and other.weight is not net.weight
        with torch.no_grad():
            other.weight.add_(1)
        assert other._parameters["weight"] is other.weight and net.weight.item() == 1


def test_parameter() -> None:
    parameter = nn.Parameter(torch.ones(2))
    assert repr(parameter) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert isinstance(parameter, torch.Tensor) and parameter.is_leaf
    assert not nn.Parameter(torch.ones(2), requires_grad=False).requires_grad
    with pytest.raises(TypeError, match="data is of type list"):
        nn.Parameter([1.0])


def test_containers() -> None:
    one, two, three = nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1)
    modules = nn.Sequential(one, two)
    modules.append(three)
    assert list(modules[1:]) == [two, three] and modules[-1] is three
    del modules[0]
    assert list(modules.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    listed = nn.ModuleList([one])
    listed.insert(0, two)
    listed += [three]
    assert list(listed) == [two, one, three] and listed.pop(0) is two and len(listed) == 2
    named = nn.ParameterDict({"a": torch.ones(1)})
    assert isinstance(named["a"], nn.Parameter) and list(named.state_dict()) == ["a"]


def test_apply_goes_over_all() -> None:
    net = Net()

    def constant(module: Any) -> None:
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.weight, 0.5)

    net.apply(constant)
    assert numpy.all(net.layers[2].weight.detach().numpy() == 0.5)


def test_children_that_are_absent_or_shared() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(1, 1)
            self.absent = None
            self.register_module("also_absent", None)
            self.again = self.first
            self.last = nn.Sequential(self.first)

    module = Shared()
    assert list(module.named_children()) == [("first", module.first), ("last", module.last)]
    assert list(module.children()) == [module.first, module.last]
    assert [name for name, _ in module.named_modules()] == ["", "first", "last"]
    names = [name for name, _ in module.named_modules(remove_duplicate=False)]
    assert names == ["", "first", "again", "last", "last.0"]
    assert [name for name, _ in module.named_parameters()] == ["first.weight", "first.bias"]


def test_assigned_state_is_held_and_not_copied() -> None:
    """The module takes the given tensors with their dtypes; whether they need gradients stays as it was."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
            self.register_buffer("kept", torch.ones(3))
            self.inner = nn.Linear(2, 2)

    module, copied = Mixed(), Mixed()
    given = {key: torch.full(tuple(x.shape), 2.0).double() for key, x in module.state_dict().items()}
    former = dict(module.named_parameters())
    assert not any(module.load_state_dict(given, assign=True))
    for key, parameter in module.named_parameters():
        assert isinstance(parameter, nn.Parameter) and parameter is not former[key]
        assert parameter.data_ptr() == given[key].data_ptr()
        assert parameter.requires_grad is (key != "frozen")
    assert module.kept is given["kept"]
    copied.load_state_dict(given)
    assert all(x.dtype is torch.float32 and (x == 2).all() for x in copied.state_dict().values())
    with pytest.raises(RuntimeError, match="size mismatch for kept"):
        module.load_state_dict({**given, "kept": torch.ones(4)}, assign=True)


def test_assigned_parameters_are_those_that_are_given() -> None:
    layer = nn.Linear(2, 2, bias=False).requires_grad_(False)
    weight = nn.Parameter(torch.zeros(2, 2))
    layer.load_state_dict({"weight": weight}, assign=True)
    assert layer.weight is weight and not weight.requires_grad


def test_what_a_module_is_converted_to_is_checked() -> None:
    layer = nn.Linear(1, 1)
    for wrong in (3, "float32"):
        with pytest.raises(ValueError, match="memory_format"):
            layer.to(memory_format=wrong)
    assert layer.to(memory_format=torch.channels_last) is layer
    with pytest.raises(TypeError, match="only accepts floating point"):
        layer.to(torch.int64)


def test_children_do_not_hide_methods():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = [nn.Parameter(torch.ones(2))]
            self.parameters = nn.ParameterList(self.blocks)

    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["parameters.0"]
    assert [parameter.tolist() for parameter in net.parameters()] == [[1, 1]]
    assert list(copy.deepcopy(net).state_dict()) == ["parameters.0"]


def test_registries_that_a_program_makes_are_read() -> None:
    module = torch.nn.Linear(2, 3)
    weight, bias = module.weight, module.bias
    module._parameters = collections.OrderedDict(bias=bias)
    assert module.bias is bias and list(module.parameters()) == [bias]
    with pytest.raises(AttributeError, match="weight"):
        module.weight  # noqa: B018
    module._parameters["weight"] = weight
    assert module.weight is weight and module(torch.ones(2)).shape == (3,)
    module._parameters["weight"] = torch.zeros(3, 2)
    assert torch.equal(module(torch.ones(2)), bias)


def test_all_ways_to_change_a_registry_change_the_attributes() -> None:
    module = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    name, last = module._modules.popitem()
    assert name == "1" and isinstance(last, torch.nn.Tanh) and not hasattr(module, "1")
    assert module._modules.setdefault("new", last) is last and module.new is last
    module._modules |= {"other": torch.nn.Sigmoid()}
    assert isinstance(module.other, torch.nn.Sigmoid) and len(module) == 3


def test_the_prefix_of_a_wrapping_module_is_taken_from_a_state() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    state = nn.parallel.DataParallel(model).state_dict()
    assert all(name.startswith("module.") for name in state)
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert set(state) == set(model.state_dict()) and set(state._metadata) == set(model.state_dict()._metadata)
    model.load_state_dict(state)
    assert nn.modules.utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)


class Stateful(nn.Module):
    """A module whose state is all that it has, as programs write it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.ones(2))
        self.inner = nn.Linear(1, 1)
        self._register_load_state_dict_pre_hook(self._before)

    def _before(self, state: Any, *args: Any) -> None:
        pass

    def __getstate__(self) -> Any:
        return self.__dict__


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_of_modules_with_a_state_of_their_own_are_their_own(copied: Any) -> None:
    module = Stateful()
    other = copied(module)
    other._parameters["weight"] = nn.Parameter(torch.zeros(2))
    assert module.weight.tolist() == [1, 1] and other.weight.tolist() == [0, 0]
    other.weight.data = torch.tensor([5.0])
    assert dict(other.named_parameters())["weight"] is other.weight and other.weight.shape == (1,)
    assert other.inner.weight is not module.inner.weight and other.scale is not module.scale
    other.load_state_dict({**other.state_dict(), "weight": torch.tensor([7.0])})
    assert other.weight.tolist() == [7] and module.weight.tolist() == [1, 1]


def test_a_getattr_of_a_program_is_asked_for_parameters_buffers_and_modules():
    asked = []

    class Asking(torch.nn.Module):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            asked.append(name)
            return found

    class Network(Asking):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("scale", torch.tensor(3.0))
            self.inner = torch.nn.Linear(2, 1)
            self.plain = 5

        def forward(self, x):
            return self.inner(x * self.weight * self.scale) + self.plain

    network = Network()
    asked.clear()
    network(torch.ones(2)).sum().backward()
    assert asked == ["inner", "weight", "scale"] and network.weight.grad is not None
    assert "weight" not in vars(network) and next(network.named_parameters())[0] == "weight"
    network.weight = torch.nn.Parameter(torch.zeros(2))
    copied = copy.deepcopy(network)
    copied.load_state_dict(network.state_dict())
    assert copied.weight.tolist() == [0.0, 0.0] and copied.weight is not network.weight
    del network.scale
    with pytest.raises(AttributeError, match="scale"):
        _ = network.scale


def test_members_by_a_function_of_the_program():
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sequential(torch.nn.Linear(1, 1)))
    found = net._named_members(lambda module: {"bias": module._parameters.get("bias")}.items())
    assert [name for name, _ in found] == ["0.bias", "1.0.bias"]
    assert [
        name for name, _ in net._named_members(lambda module: module._parameters.items(), "net", False)
    ] == []


def test_conversions_to_and_from_complex_numbers():
    module = nn.Linear(1, 1).to(torch.complex64)
    assert module.weight.dtype is module.bias.dtype is torch.complex64
    assert module.double().weight.dtype is torch.complex64
    assert module.to(torch.complex128).weight.dtype is torch.complex128
    with pytest.raises(TypeError, match="floating point or complex"):
        module.to(torch.int64)


def test_numbers_that_old_checkpoints_hold_with_an_axis_are_loaded():
    module = nn.BatchNorm1d(1)
    module.load_state_dict({**module.state_dict(), "num_batches_tracked": torch.tensor([3])})
    assert module.num_batches_tracked.shape == () and module.num_batches_tracked.item() == 3
