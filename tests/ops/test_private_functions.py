"""Functions that PyTorch publishes for its own use."""

import pytest

import twofold as torch


def test_softmax_backward_is_the_gradient_of_softmax():
    x, scale = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    y = torch.softmax(x, 1)
    (y * scale).sum().backward()
    found = torch._softmax_backward_data(scale, y.detach(), 1, torch.float32)
    assert torch.allclose(found, x.grad, atol=1e-6)


def test_chunks_of_one_number_stand_side_by_side():
    found = torch._chunk_cat([torch.arange(1, 5), torch.arange(5, 8)], 0, 2)
    assert found.tolist() == [[1, 2, 5, 6], [3, 4, 7, 0]]
    with pytest.raises(ValueError, match="0 chunks"):
        torch._chunk_cat([torch.ones(2)], 0, 0)


def test_masked_indices_take_the_nearest_position():
    x, index = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-7, 1, 9])
    mask = torch.tensor([True, False, True])
    assert torch._unsafe_masked_index(x, mask, [index], 0.5).tolist() == [1.0, 0.5, 3.0]
    added = torch._unsafe_masked_index_put_accumulate(x, mask, [index], torch.ones(3))
    assert added.tolist() == [2.0, 2.0, 4.0]
    assert torch._unsafe_masked_index(torch.ones(0), mask, [index], 4.0).tolist() == [4.0] * 3
