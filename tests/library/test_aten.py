"""``torch.ops.aten``: operators by names and overloads; values are those of PyTorch 2.13 or formulas."""

from __future__ import annotations

import math

import pytest

import twofold as torch

aten = torch.ops.aten


def test_names():
    assert "add" in dir(aten) and "linalg_norm" in dir(aten) and hasattr(aten, "mm")
    assert {"Tensor", "Scalar", "out"} <= set(aten.add.overloads()) and "dim_IntList" in dir(aten.sum)
    assert str(aten.add) == "aten.add" and repr(aten.add) == "<OpOverloadPacket(op='aten.add')>"
    assert str(aten.mm.default) == "aten.mm.default"
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert aten.add.Tensor.name() == "aten::add.Tensor" and aten.mm.default.name() == "aten::mm"
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor.overloadpacket is aten.add
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'addd'"):
        _ = aten.addd
    with pytest.raises(
        AttributeError, match=r"The underlying op of 'aten.add' has no overload name 'tensor'"
    ):
        _ = aten.add.tensor


def test_functions_methods_and_modules():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert aten.add.Tensor(x, x, alpha=2).tolist() == [[3, -6], [9, 12]]
    assert aten.sum.dim_IntList(x, [1], True).tolist() == [[-1], [7]]
    assert aten.view.default(x, [4]).tolist() == [1, -2, 3, 4] and aten.t(self=x).tolist() == [
        [1, 3],
        [-2, 4],
    ]
    assert aten.relu_.default(x) is x and x.tolist() == [[1, 0], [3, 4]]
    assert aten.linalg_vector_norm(torch.tensor([3.0, 4.0])).item() == 5
    assert aten.special_entr(torch.ones(1)).item() == 0
    assert [one.shape for one in aten.split.Tensor(torch.ones(5, 2), 2)] == [(2, 2), (2, 2), (1, 2)]
    assert aten.block_diag([torch.ones(1, 1), torch.ones(1, 2)]).tolist() == [[1, 0, 0], [0, 1, 1]]
    values, indices = aten.max_pool2d_with_indices(x.reshape(1, 1, 2, 2), [2, 2])
    assert values.item() == 4 and indices.item() == 3
    out = torch.empty(2)
    assert aten.exp.out(torch.zeros(2), out=out) is out and out.tolist() == [1, 1]


def test_losses_take_reductions_as_numbers():
    x, y = torch.tensor([1.0, 3.0]), torch.zeros(2)
    assert aten.mse_loss(x, y).item() == 5 and aten.mse_loss.default(x, y, 0).tolist() == [1, 9]
    assert aten.l1_loss(x, y, reduction=2).item() == 4
    half = torch.full((2, 2), 0.5)
    expected = 0.25 * (
        math.log(0.25) - 0.5
    )  # PyTorch's torch.kl_div has no reduction by default, its operator the mean
    assert aten.kl_div(half, half / 2).item() == pytest.approx(expected)
    with pytest.raises(TypeError, match="takes 3 arguments but 4 were given"):
        aten.mse_loss(x, y, 0, 1)


def test_gradients_and_classes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    aten.mul.Tensor(x, x).sum().backward()
    assert x.grad.tolist() == [2, 4]

    class Noting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert aten.add.Tensor(torch.ones(1).as_subclass(Noting), 1) is aten.add.Tensor


def test_tracing():
    traced = torch.fx.symbolic_trace(lambda x: torch.ops.aten.mul.Tensor(x, 2))
    assert "torch.ops.aten.mul.Tensor" in traced.code and traced(torch.ones(1)).item() == 2
