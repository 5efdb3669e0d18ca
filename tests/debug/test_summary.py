"""Tables of layers, compared with counts by hand."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold import nn
from twofold.errors import ArgumentError


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x).tanh()
        return self.norm(x)


def test_counts() -> None:
    found = torch.summary(Residual(), torch.ones(3, 4))
    by_path = {layer.path: layer for layer in found.layers}
    assert list(by_path) == ["Residual", "Residual.layers.0", "Residual.layers.1", "Residual.norm"]
    linear = by_path["Residual.layers.0"]
    assert linear.kind == "Linear" and linear.output == ((3, 4),) and linear.depth == 1
    assert linear.parameters == 20 and linear.flops == 2 * 3 * 4 * 4 + 3 * 4
    assert found.parameters == 48 and found.trainable == 48
    assert found.flops >= 2 * linear.flops + 4 * 12
    # the two results of tanh, and the input of the second layer
    assert by_path["Residual"].saved >= 3 * 48
    assert "layers.0 (Linear)" in str(found) and "48 parameters" in str(found)


def test_nothing_changes() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    state = {name: one.clone().numpy() for name, one in model.state_dict().items()}
    before = torch.get_rng_state().numpy().tobytes()
    torch.summary(model, torch.ones(8, 4))
    assert torch.get_rng_state().numpy().tobytes() == before
    for name, one in model.state_dict().items():
        assert one.numpy().tobytes() == state[name].tobytes()
    assert all(one.grad is None for one in model.parameters())


def test_flops_of_a_convolution() -> None:
    found = torch.summary(nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.ones(2, 3, 5, 5))
    assert found.flops == 2 * (2 * 8 * 5 * 5) * (3 * 3 * 3)


def test_flops_of_recurrent_layers() -> None:
    batch, steps, given, hidden = 16, 32, 24, 40
    for layer, gates, parts in ((nn.LSTM, 4, 6), (nn.GRU, 3, 5), (nn.RNN, 1, 1)):
        found = torch.summary(layer(given, hidden, batch_first=True), torch.ones(batch, steps, given))
        products = 2 * batch * steps * gates * hidden * (given + hidden)
        rows = batch * steps * hidden  # a handful of functions for each of the parts that are kept
        assert products <= found.flops <= products + (2 * gates + 2 * parts) * rows
        assert found.parameters == gates * hidden * (given + hidden + 2)


def test_counts_of_a_transformer_layer() -> None:
    batch, steps, width, heads, inner = 2, 10, 64, 4, 128
    layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0.0, batch_first=True)
    found = torch.summary(layer, torch.ones(batch, steps, width))
    rows, by_path = batch * steps, {one.path.partition(".")[2]: one for one in found.layers}
    attention = 2 * rows * width * 4 * width + 2 * 2 * batch * steps * steps * width
    assert attention <= by_path["self_attn"].flops <= 1.05 * attention
    assert by_path["linear1"].flops == 2 * rows * width * inner + rows * inner
    assert by_path["linear2"].flops == 2 * rows * width * inner + rows * width
    assert found.parameters == 4 * width * (width + 1) + 2 * width * inner + inner + width + 4 * width


def test_no_module() -> None:
    with pytest.raises(ArgumentError, match="function is no module"):
        torch.summary(lambda x: x, torch.ones(1))  # type: ignore[arg-type]


def test_no_flops_where_elements_move_or_become_others() -> None:
    class Picked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.line = nn.Embedding(5, 3), nn.Linear(3, 2, dtype=torch.bfloat16)

        def forward(self, i: torch.Tensor) -> torch.Tensor:
            rows = torch.cat([self.table(i), self.table(i).flip(0)])
            return self.line(torch.where(rows.isnan(), 0.0, torch.stop_gradient(rows)).bfloat16())

    assert torch.summary(Picked(), torch.tensor([1, 4])).flops == 2 * 4 * 3 * 2 + 4 * 2
