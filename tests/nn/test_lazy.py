"""Layers whose sizes come from the first input."""

import pytest

import twofold as torch
from twofold import nn


@pytest.mark.parametrize(
    ("lazy", "plain", "shape"),
    [
        (nn.LazyLinear(4), nn.Linear(3, 4), (5, 3)),
        (nn.LazyConv1d(4, 2), nn.Conv1d(3, 4, 2), (2, 3, 6)),
        (nn.LazyConv2d(4, 2, padding=1, groups=2), nn.Conv2d(6, 4, 2, padding=1, groups=2), (6, 5, 5)),
        (nn.LazyConv3d(2, 2, bias=False), nn.Conv3d(3, 2, 2, bias=False), (1, 3, 4, 4, 4)),
        (nn.LazyConvTranspose2d(4, 3, stride=2), nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 4, 4)),
        (nn.LazyBatchNorm1d(), nn.BatchNorm1d(3), (5, 3)),
        (nn.LazyBatchNorm2d(affine=False), nn.BatchNorm2d(3, affine=False), (2, 3, 4, 4)),
        (nn.LazyInstanceNorm1d(), nn.InstanceNorm1d(3, affine=True, track_running_stats=True), (3, 6)),
        (nn.LazyInstanceNorm2d(1e-3, 0.2, False, False), nn.InstanceNorm2d(3, 1e-3, 0.2), (2, 3, 4, 4)),
    ],
)
def test_the_first_input_completes_the_layer(lazy, plain, shape):
    x = torch.randn(*shape)
    optimizer = torch.optim.SGD(list(lazy.parameters()), 0.1) if list(lazy.parameters()) else None
    made = lazy(x)
    assert type(lazy) is type(plain) and repr(lazy) == repr(plain)
    assert {n: p.shape for n, p in lazy.state_dict().items()} == {
        n: p.shape for n, p in plain.state_dict().items()
    }
    lazy.load_state_dict(plain.state_dict())
    assert torch.allclose(lazy.eval()(x), plain.eval()(x))
    if optimizer is not None:
        before = [parameter.detach().clone() for parameter in lazy.parameters()]
        made.square().sum().backward()
        optimizer.step()
        assert any(not torch.equal(a, b) for a, b in zip(before, lazy.parameters()))


def test_a_state_completes_the_layer():
    lazy, plain = nn.LazyLinear(2), nn.Linear(3, 2)
    assert lazy.has_uninitialized_params() and isinstance(lazy.weight, nn.UninitializedParameter)
    lazy.load_state_dict(plain.state_dict())
    x = torch.randn(4, 3)
    assert torch.equal(lazy(x), plain(x))


def test_wrong_inputs_are_refused():
    with pytest.raises(RuntimeError, match="Expected 3D"):
        nn.LazyConv2d(3, 2)(torch.ones(2, 3))
    with pytest.raises(ValueError, match="divisible by groups"):
        nn.LazyConv1d(4, 2, groups=2)(torch.ones(1, 3, 5))


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.UninitializedParameter()
        self.register_buffer("mean", nn.UninitializedBuffer())

    def forward(self, x, shift=0.0):
        return (x - self.mean) * self.factor + shift


class LazyScale(nn.modules.lazy.LazyModuleMixin, Scale):
    cls_to_become = Scale

    def initialize_parameters(self, x, shift=0.0):
        if self.has_uninitialized_params():
            self.factor.materialize(x.shape[-1:])
            self.mean.materialize(x.shape[-1:])
            nn.init.constant_(self.factor, 2.0)
            self.mean.zero_()


def test_a_module_of_a_program_finds_its_shapes_at_the_first_call():
    module = LazyScale()
    assert isinstance(nn.LazyLinear(1), nn.modules.lazy.LazyModuleMixin)
    assert isinstance(module.factor, nn.UninitializedParameter) and module.has_uninitialized_params()
    assert module(torch.ones(4, 3), shift=1.0).tolist() == [[3.0] * 3] * 4
    assert type(module) is Scale and type(module.factor) is nn.Parameter and not module._forward_pre_hooks
    loaded = LazyScale()
    loaded.load_state_dict(module.state_dict())
    assert loaded(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2 and loaded.mean.shape == (3,)
    tracked = nn.UninitializedBuffer(requires_grad=True)
    tracked.materialize(2)
    assert tracked.requires_grad and type(tracked) is nn.Buffer and not module.mean.requires_grad


def test_a_module_that_leaves_a_shape_open_is_refused():
    class Forgetful(LazyScale):
        def initialize_parameters(self, x):
            self.factor.materialize(x.shape[-1:])

    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Forgetful()(torch.ones(2))
