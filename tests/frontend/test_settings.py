"""Promotion and settings that programs ask for by PyTorch's names."""

import pytest

import twofold as torch


def test_promotion():
    x = torch.arange(3)
    assert torch.result_type(x, 1.5) is torch.float32
    assert torch.result_type(x, torch.ones(1, dtype=torch.float64)) is torch.float64


def test_settings_are_checked_and_change_nothing():
    torch.set_float32_matmul_precision("high")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_default_device("cpu")
    with pytest.raises(ValueError, match="precision"):
        torch.set_float32_matmul_precision("best")
    with pytest.raises(RuntimeError, match="cuda"):
        torch.set_default_device("cuda")
    x = torch.ones(2)
    assert x.share_memory_() is x.to_dense() is x


def test_default_tensor_type():
    torch.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert torch.tensor(1.0).dtype is torch.float64
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.tensor(1.0).dtype is torch.float32


def test_new_tensors_of_the_same_dtype():
    x = torch.ones(2)
    assert x.new(3).shape == (3,) and x.new([1, 2]).dtype is torch.float32 and x.new().shape == (0,)


def test_prelu_and_vander():
    x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]])
    assert x.prelu(torch.tensor([0.5, 0.25])).tolist() == [[-0.5, 2.0], [3.0, -1.0]]
    assert torch.prelu(torch.tensor(-2.0), torch.tensor([0.5])).item() == -1.0
    with pytest.raises(ValueError, match="weights of shape"):
        torch.prelu(x, torch.ones(3))
    assert torch.vander(torch.tensor([2, 3]), increasing=True).tolist() == [[1, 2], [1, 3]]
    assert torch.vander(torch.tensor([2, 3]), N=0).shape == (2, 0)
