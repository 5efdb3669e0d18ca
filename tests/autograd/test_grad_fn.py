"""``tensor.grad_fn`` against PyTorch 2.13: the names below are what it prints for the same programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold import _core
from twofold.nn import functional as F


def leaf(*shape: int) -> Any:
    return torch.rand(*shape).requires_grad_()


X, Y, V, M = leaf(3, 4), leaf(3, 4), leaf(4), leaf(4, 5)
CUBE, IMAGE, WEIGHT, BIAS = leaf(2, 3, 4), leaf(1, 3, 8, 8), leaf(5, 4), leaf(5)
MASK, POSITIONS, LABELS = (
    torch.tensor([True, False, True, True]),
    torch.tensor([0, 2]),
    torch.tensor([1, 0, 3]),
)

NAMES: dict[str, list[Callable[[], Any]]] = {
    "AddBackward0": [lambda: X + Y, lambda: 1 + X, lambda: X.clone().add_(1), lambda: X.detach() + Y],
    "SubBackward0": [lambda: X - Y, lambda: X - 1],
    "RsubBackward1": [lambda: 1 - X],
    "MulBackward0": [lambda: X * Y, lambda: 2 * X, lambda: 1 / X, lambda: X.clone().mul_(Y)],
    "DivBackward0": [lambda: X / Y],
    "NegBackward0": [lambda: -X],
    "PowBackward0": [lambda: X**2, lambda: X**3, lambda: X**1.5, lambda: X.square()],
    "PowBackward1": [lambda: X**Y],
    "PowBackward2": [lambda: 2**X],
    "ExpBackward0": [lambda: X.exp(), lambda: X.clone().exp_()],
    "LogBackward0": [lambda: X.log()],
    "Log1PBackward0": [lambda: X.log1p()],
    "SqrtBackward0": [lambda: X.sqrt()],
    "AbsBackward0": [lambda: X.abs(), lambda: F.l1_loss(X, Y, reduction="none")],
    "TanhBackward0": [lambda: X.tanh()],
    "SigmoidBackward0": [lambda: X.sigmoid()],
    "ReluBackward0": [lambda: X.relu(), lambda: F.relu(X), lambda: X.clone().relu_()],
    "GeluBackward0": [lambda: F.gelu(X)],
    "LogSigmoidBackward0": [lambda: F.logsigmoid(X)],
    "SumBackward0": [lambda: X.sum()],
    "SumBackward1": [lambda: X.sum(1)],
    "MeanBackward0": [lambda: X.mean(), lambda: F.l1_loss(X, Y)],
    "MeanBackward1": [lambda: X.mean(0)],
    "MaxBackward1": [lambda: X.max()],
    "MaxBackward0": [lambda: X.max(1).values],
    "MinBackward0": [lambda: X.min(1)[0]],
    "AmaxBackward0": [lambda: X.amax(1)],
    "StdBackward0": [lambda: X.std()],
    "LinalgVectorNormBackward0": [lambda: X.norm()],
    "LogsumexpBackward0": [lambda: X.logsumexp(1)],
    "CumsumBackward0": [lambda: X.cumsum(1)],
    "MmBackward0": [lambda: X @ M, lambda: torch.mm(X, M), lambda: F.linear(X, WEIGHT)],
    "MvBackward0": [lambda: X @ V],
    "DotBackward0": [lambda: torch.dot(V, V)],
    "BmmBackward0": [lambda: torch.bmm(CUBE, CUBE.mT)],
    "AddmmBackward0": [lambda: F.linear(X, WEIGHT, BIAS), lambda: torch.addmm(BIAS, X, M)],
    "ViewBackward0": [lambda: X.view(12), lambda: X.reshape(2, 6), lambda: X.flatten()],
    "PermuteBackward0": [lambda: CUBE.permute(2, 0, 1), lambda: X.T],
    "TransposeBackward0": [lambda: CUBE.transpose(1, 2), lambda: CUBE.mT],
    "UnsqueezeBackward0": [lambda: X.unsqueeze(0), lambda: X[None], lambda: X[0, None]],
    "SqueezeBackward1": [lambda: X[None].squeeze(0)],
    "ExpandBackward0": [lambda: X[None].expand(2, 3, 4)],
    "SelectBackward0": [lambda: X[0], lambda: X[0, 1], lambda: X[..., 0], lambda: X[None, 0]],
    "SliceBackward0": [lambda: X[1:], lambda: X[0, 1:], lambda: X.narrow(0, 0, 1)],
    "IndexBackward0": [lambda: X[[0, 2]], lambda: X[POSITIONS], lambda: V[MASK]],
    "CatBackward0": [lambda: torch.cat([X, Y])],
    "GatherBackward0": [lambda: X.gather(1, torch.zeros(3, 1, dtype=torch.int64))],
    "WhereBackward0": [lambda: torch.where(MASK, X, Y), lambda: torch.where(MASK, X, 0.0)],
    "MaskedFillBackward0": [lambda: X.masked_fill(MASK, 0.0)],
    "ClampBackward1": [lambda: X.clamp(0, 1)],
    "ClampMinBackward0": [lambda: X.clamp_min(0.5)],
    "CloneBackward0": [lambda: X.clone(), lambda: X.T.contiguous(), lambda: (X * 2).clone()],
    "ToCopyBackward0": [lambda: X.double()],
    "SoftmaxBackward0": [lambda: X.softmax(1)],
    "LogSoftmaxBackward0": [lambda: F.log_softmax(X, 1)],
    "NllLossBackward0": [lambda: F.cross_entropy(X, LABELS), lambda: F.nll_loss(X, LABELS)],
    "MseLossBackward0": [lambda: F.mse_loss(X, Y)],
    "BinaryCrossEntropyBackward0": [lambda: F.binary_cross_entropy(X, Y.detach())],
    "ConvolutionBackward0": [lambda: F.conv2d(IMAGE, leaf(5, 3, 3, 3))],
    "MaxPool2DWithIndicesBackward0": [lambda: F.max_pool2d(IMAGE, 2)],
    "AvgPool2DBackward0": [lambda: F.avg_pool2d(IMAGE, 2)],
    "UpsampleBilinear2DBackward0": [lambda: F.interpolate(IMAGE, scale_factor=2, mode="bilinear")],
    "NativeLayerNormBackward0": [lambda: F.layer_norm(X, (4,))],
    "NativeBatchNormBackward0": [lambda: F.batch_norm(IMAGE, None, None, training=True)],
    "EmbeddingBackward0": [lambda: F.embedding(POSITIONS, X)],
    "ConstantPadNdBackward0": [lambda: F.pad(X, (1, 1))],
    "LinalgSvdBackward0": [lambda: torch.linalg.svd(X, full_matrices=False)[1]],
    "CopySlices": [lambda: _with_first_row_zero(X.clone())],
}  # fmt: skip


def _with_first_row_zero(x: Any) -> Any:
    x[0] = 0.0
    return x


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    for call in NAMES[name]:
        result = call()
        assert type(result.grad_fn).__name__ == name
        assert result.grad_fn.name().rpartition("::")[2] == name
        assert " ".join(repr(result).split()).endswith(f", grad_fn=<{name}>)")


def test_repr_of_a_node() -> None:
    node = (X + Y).grad_fn
    assert re.fullmatch(r"<AddBackward0 object at 0x[0-9a-f]+>", repr(node))
    assert isinstance(node, torch.autograd.graph.Node)
    assert _with_first_row_zero(X.clone()).grad_fn.name() == "torch::autograd::CopySlices"


def test_none_for_leaves_and_without_gradient() -> None:
    assert X.grad_fn is None
    assert (X * 2).detach().grad_fn is None
    with torch.no_grad():
        assert (X * 2).grad_fn is None
    assert repr(torch.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"


def names_above(node: Any) -> Any:
    """The graph as nested tuples, leaves by their shapes."""
    if hasattr(node, "variable"):
        return tuple(node.variable.shape)
    above = [
        None if one is None else names_above(one) for one, position in node.next_functions if position == 0
    ]
    return (node.name(), *above)


def loss(x: Any, w: Any, b: Any) -> Any:
    return F.mse_loss(torch.relu(F.linear(x, w, b)) * 2, torch.zeros(3, 5))


GRAPH = (
    "MseLossBackward0",
    ("MulBackward0", ("ReluBackward0", ("AddmmBackward0", None, (5, 4), (5,)))),
    None,
)


def test_next_functions_while_recorded_and_after() -> None:
    made = loss(X.detach(), WEIGHT, BIAS)
    assert names_above(made.grad_fn) == GRAPH
    node = made.grad_fn
    made.item()
    assert names_above(node) == names_above(made.grad_fn) == GRAPH


def test_next_functions_go_from_one_trace_to_another() -> None:
    y = X.exp()
    y._realise()
    assert names_above((y * Y).grad_fn) == ("MulBackward0", ("ExpBackward0", (3, 4)), (3, 4))


def test_asking_runs_nothing() -> None:
    _core.flush()
    before, count = _core.statistics(), _core.pending()
    y = (X * Y).tanh().sum()
    assert y.grad_fn.next_functions[0][0].next_functions[0][0].name() == "MulBackward0"
    assert _core.pending() == count + 3
    after = _core.statistics()
    assert all(after[key] == before[key] for key in ("predicted_flushes", "other_flushes"))


def test_one_call_is_one_object() -> None:
    h = X.exp()
    y, z = h * 2, h + 1
    above = y.grad_fn.next_functions[0][0]
    assert above is z.grad_fn.next_functions[0][0]
    assert above is h.grad_fn and y.grad_fn is y.grad_fn
    assert y.grad_fn is not z.grad_fn and y.grad_fn != X.exp().grad_fn
    seen = {y.grad_fn, z.grad_fn, h.grad_fn}
    h.sum().item()
    assert {y.grad_fn, z.grad_fn, h.grad_fn} == seen and len(seen) == 3
    assert above is h.grad_fn


def test_leaves_are_the_tensors_of_the_program() -> None:
    layer = torch.nn.Linear(4, 5)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(3):
        made = layer(X.detach())
        nodes = [node for node, _ in made.grad_fn.next_functions]
        assert nodes[0] is None
        assert nodes[1].variable is layer.weight and nodes[2].variable is layer.bias
        assert nodes[1].name() == "torch::autograd::AccumulateGrad"
        assert repr(nodes[1]).startswith("<AccumulateGrad object at ")
        assert nodes[1].next_functions == ()
        optimizer.zero_grad()
        made.sum().backward()
        optimizer.step()
    node = (layer.weight + 1).grad_fn.next_functions[0][0]
    assert node is (layer.weight * 2).grad_fn.next_functions[0][0]


def test_a_leaf_without_its_tensor() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    del x
    variable = y.grad_fn.next_functions[0][0].variable
    y.sum().backward()
    assert variable.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("in_place", [False, True])
def test_after_a_backward_pass(in_place: bool) -> None:
    made = (X * Y).mean()
    if in_place:
        made.mul_(2.0)
    made.backward()
    name = "MulBackward0" if in_place else "MeanBackward0"
    assert repr(made).endswith(f"grad_fn=<{name}>)")
    assert made.grad_fn.name() == name
    assert made.grad_fn.next_functions == ()


def test_a_function_of_the_user() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            return cotangent * 2

    made = Double.apply(X)
    assert made.grad_fn.name() == "DoubleBackward"


def test_a_view_shows_what_its_base_became() -> None:
    base = X * 1
    view = base[0]
    base.mul_(2)
    assert view.grad_fn.name() == "SelectBackward0"
    assert view.grad_fn.next_functions[0][0].name() == "MulBackward0"


def test_a_thread_may_ask_about_the_values_of_another() -> None:
    import threading

    made = (X * Y).sum()
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(made.grad_fn.name()))
    thread.start()
    thread.join()
    assert found == ["SumBackward0"]


def test_hooks_of_functions():
    # as PyTorch 2.13: gradients of the pass, not their sum in .grad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    end = x.expand_as(x).grad_fn.next_functions[0][0]
    seen = []
    with end.register_hook(
        lambda inputs, outputs: seen.append((inputs, outputs[0].tolist(), x.grad.tolist()))
    ):
        for _ in range(2):
            (x * 3).sum().backward()
    assert seen == [((), [3.0, 3.0], [3.0, 3.0]), ((), [3.0, 3.0], [6.0, 6.0])]
    (x * 3).sum().backward()
    assert len(seen) == 2
    y = (x * 2).sum()
    with y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 5,)):
        assert torch.autograd.grad(y, x, retain_graph=True)[0].tolist() == [10.0, 10.0]
    assert torch.autograd.grad(y, x)[0].tolist() == [2.0, 2.0]


def test_edges_stand_for_tensors_in_backward_passes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    edge, end = torch.autograd.graph.get_gradient_edge(y), torch.autograd.graph.get_gradient_edge(x)
    assert edge.node is y.grad_fn and edge.output_nr == 0 and end.node.variable is x
    z = (y * 3).sum()
    first, second = torch.autograd.grad(z, (edge, end), retain_graph=True)
    assert first.tolist() == [3, 3] and second.tolist() == [6, 12]
    y.mul_(2)  # the edge is that of the value before
    assert torch.autograd.grad(y.sum(), edge, retain_graph=True)[0].tolist() == [2, 2]
    (found,) = torch.autograd.grad(edge, x, torch.ones(2), retain_graph=True)
    assert found.tolist() == [2, 4]
    torch.autograd.backward(edge, torch.ones(2), inputs=[end])
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        torch.autograd.graph.get_gradient_edge(torch.ones(1))
