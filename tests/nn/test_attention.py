"""Attention and transformers against NumPy, and by what must be equal."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn

F: Any = nn.functional
G = numpy.random.default_rng(11)


def softmax(x: Any) -> Any:
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def array(x: Any) -> Any:
    return x.detach().numpy()


def near(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    numpy.testing.assert_allclose(array(found), wanted, rtol=tolerance, atol=tolerance)


def expected(layer: Any, query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any]:
    """One batch element: result and weights of every head; ``mask`` is added to the scores."""
    p = {name: array(value) for name, value in layer.named_parameters()}
    if "in_proj_weight" in p:
        weights = numpy.split(p["in_proj_weight"], 3)
    else:
        weights = [p[f"{name}_proj_weight"] for name in "qkv"]
    biases = numpy.split(p["in_proj_bias"], 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), weights, biases, strict=True))
    if "bias_k" in p:
        k, v = (numpy.concatenate([x, p[name][0]]) for x, name in ((k, "bias_k"), (v, "bias_v")))
    if layer.add_zero_attn:
        k, v = (numpy.concatenate([x, numpy.zeros((1, x.shape[1]))]) for x in (k, v))
    mask = numpy.pad(mask, ((0, 0), (0, len(k) - mask.shape[1])))
    heads = [numpy.split(x, layer.num_heads, 1) for x in (q, k, v)]
    found = [softmax(a @ b.T / math.sqrt(a.shape[1]) + mask) for a, b in zip(heads[0], heads[1], strict=True)]
    joined = numpy.concatenate([w @ v for w, v in zip(found, heads[2], strict=True)], 1)
    return joined @ p["out_proj.weight"].T + p["out_proj.bias"], numpy.array(found)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"kdim": 5, "vdim": 3},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_heads(more: dict[str, Any], masked: bool) -> None:
    layer = nn.MultiheadAttention(8, 2, dtype=torch.float64, **more)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    q, k, v = (G.normal(size=(n, 3, d)) for n, d in ((4, 8), (6, layer.kdim), (6, layer.vdim)))
    mask, padding = G.random((4, 6)) > 0.7, numpy.arange(6) > numpy.array([[5], [4], [3]])
    mask[:, 0] = False
    if not masked:
        mask[:], padding[:] = False, False
    operands = [torch.tensor(x.swapaxes(0, 1) if layer.batch_first else x) for x in (q, k, v)]
    masks = {"attn_mask": torch.tensor(mask), "key_padding_mask": torch.tensor(padding)} if masked else {}
    output, weights = layer(*operands, average_attn_weights=False, **masks)
    again, nothing = layer(*operands, need_weights=False, **masks)
    assert nothing is None
    for n in range(3):
        added = numpy.where(mask | padding[n], -numpy.inf, 0)
        wanted, shares = expected(layer, q[:, n], k[:, n], v[:, n], added)
        near(output[n] if layer.batch_first else output[:, n], wanted)
        near(again[n] if layer.batch_first else again[:, n], wanted)
        near(weights[n], shares)


def test_no_batch_and_mean_weights() -> None:
    layer = nn.MultiheadAttention(8, 2, dtype=torch.float64)
    x = torch.tensor(G.normal(size=(4, 8)))
    output, weights = layer(x, x, x)
    wanted, shares = expected(layer, array(x), array(x), array(x), numpy.zeros((4, 4)))
    near(output, wanted)
    near(weights, shares.mean(0))


def test_gradients_of_heads() -> None:
    layer = nn.MultiheadAttention(4, 2, kdim=3, vdim=2, add_bias_kv=True, dtype=torch.float64)
    values = [torch.tensor(G.normal(size=(n, 1, d)), requires_grad=True) for n, d in ((2, 4), (3, 3), (3, 2))]
    assert torch.autograd.gradcheck(lambda q, k, v: layer(q, k, v, need_weights=False)[0], values)


def test_shared_heads() -> None:
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    found = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    for head in range(4):
        one = F.scaled_dot_product_attention(q[:, head], k[:, head // 2], k[:, head // 2])
        numpy.testing.assert_array_equal(array(found[:, head]), array(one))


def test_dropout_of_weights() -> None:
    torch.manual_seed(3)
    q, v = torch.zeros(1, 4000, 2), torch.ones(1, 1, 1)
    found = F.scaled_dot_product_attention(q, torch.zeros(1, 1, 2), v, dropout_p=0.25)
    values, counts = numpy.unique(array(found), return_counts=True)
    numpy.testing.assert_allclose(values, [0, 4 / 3], rtol=1e-6)
    assert abs(counts[0] / 4000 - 0.25) < 0.03


def test_the_gradient_drops_the_same_weights() -> None:
    torch.manual_seed(5)
    v = torch.ones(1, 6, 6, dtype=torch.float64, requires_grad=True)
    q = torch.zeros(1, 6, 2, dtype=torch.float64)
    found = F.scaled_dot_product_attention(q, q, v, dropout_p=0.5)
    found.sum().backward()
    # every value is 1, so the sum of what was kept is both the result and the gradient
    assert abs(found[0, :, 0].sum().item() - v.grad[0, :, 0].sum().item()) < 1e-12


@pytest.mark.parametrize(
    ("scored", "summed"),
    [((3, 4), (2, 3, 4)), ((1, 3, 4), (2, 3, 4)), ((2, 1, 3, 4), (2, 3, 3, 4)), ((2, 3, 4), (1, 3, 4))],
)
def test_the_gradient_drops_the_same_weights_for_more_values(
    scored: tuple[int, ...], summed: tuple[int, ...]
) -> None:
    operands = [torch.randn(shape, dtype=torch.float64) for shape in (scored, scored, summed)]

    def attend(*operands: Any) -> Any:
        torch.manual_seed(7)
        return F.scaled_dot_product_attention(*operands, dropout_p=0.4)

    assert torch.autograd.gradcheck(attend, [x.requires_grad_() for x in operands])


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    x = torch.ones(1, 2, 3, requires_grad=True)
    mask = torch.tensor([[True, True], [False, False]])
    found = F.scaled_dot_product_attention(x, x, x, mask)
    found.sum().backward()
    assert found[0, 1].tolist() == [0, 0, 0]
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformer(norm_first: bool, batch_first: bool) -> None:
    model = nn.Transformer(
        8, 2, 2, 1, 16, 0.0, batch_first=batch_first, norm_first=norm_first, dtype=torch.float64
    )
    source, target = (torch.tensor(G.normal(size=(3, n, 8))) for n in (5, 4))
    if not batch_first:
        source, target = source.transpose(0, 1), target.transpose(0, 1)
    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    output = model(source, target, tgt_mask=mask)
    assert output.shape == target.shape
    layer = model.encoder.layers[0]
    x = source
    attended = layer.norm1(x) if norm_first else x
    attended = x + layer.self_attn(attended, attended, attended)[0]
    attended = attended if norm_first else layer.norm1(attended)
    inner = layer.norm2(attended) if norm_first else attended
    inner = attended + layer.linear2(layer.linear1(inner).relu())
    near(layer(x), array(inner if norm_first else layer.norm2(inner)))
    # a later target changes nothing before it
    changed = target.clone()
    axis = 1 if batch_first else 0
    changed.select(axis, 3).copy_(changed.select(axis, 3) + 1)
    again = model(source, changed, tgt_mask=mask)
    near(again.narrow(axis, 0, 3), array(output.narrow(axis, 0, 3)))
    assert (again != output).any()


def test_padding_at_ends_is_zeros_where_nothing_is_differentiated() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval()
    x = torch.tensor(G.standard_normal((2, 5, 8)), dtype=torch.float32)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        model.norm.bias.copy_(torch.arange(8.0))
        found = model(x, src_key_padding_mask=padding)
        near(found[1:, :3], array(model(x[1:, :3])), 1e-5)
        assert torch.equal(found[1, 3:], torch.arange(8.0).expand(2, 8))  # the norm of zeros
        weights = torch.zeros(2, 5).masked_fill(padding, -math.inf)
        assert torch.equal(model(x, src_key_padding_mask=weights), found)
        ahead = model(x, src_key_padding_mask=padding.flip(1))  # of beginnings: as the layers compute it
        assert not torch.equal(ahead[1, 0], torch.arange(8.0))
    kept = model(x, src_key_padding_mask=padding)
    assert not torch.equal(kept[1, 4], torch.arange(8.0))
    near(kept[1, :3], array(found[1, :3]), 1e-5)
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        near(model(x, src_key_padding_mask=padding), array(kept), 1e-5)
    torch.backends.mha.set_fastpath_enabled(True)
    same = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    assert not same.use_nested_tensor and model.use_nested_tensor
    for settings in ({"nhead": 1}, {"norm_first": True}, {"batch_first": False}, {"bias": False}):
        other = nn.TransformerEncoderLayer(**{"d_model": 8, "nhead": 2, "batch_first": True} | settings)
        assert not nn.TransformerEncoder(other, 1).use_nested_tensor


def test_masks_of_two_lengths() -> None:
    from twofold.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left

    q, k = (torch.tensor(G.standard_normal((1, size, 4))) for size in (3, 5))
    for bias, offset in ((causal_upper_left(3, 5), 0), (causal_lower_right(3, 5), 2)):
        assert isinstance(bias, CausalBias) and not isinstance(bias & bias, CausalBias)
        seen = numpy.tril(numpy.ones((3, 5)), offset) > 0
        scores = numpy.where(seen, array(q[0]) @ array(k[0]).T / 2, -numpy.inf)
        near(F.scaled_dot_product_attention(q, k, k, attn_mask=bias)[0], softmax(scores) @ array(k[0]))
    with pytest.raises(ValueError, match="3 sizes"):
        causal_lower_right(1, 2, 3)


def test_layers_are_copied_and_saved() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu")
    stack = nn.TransformerEncoder(layer, 2)
    assert stack.layers[0].linear1.weight is not stack.layers[1].linear1.weight
    layer.eval()
    x = torch.randn(3, 1, 8)
    for made in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        numpy.testing.assert_array_equal(array(made(x)), array(layer(x)))
