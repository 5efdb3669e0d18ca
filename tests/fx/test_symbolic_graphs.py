"""Graphs of symbolic traces: their nodes, their code, and what runs and changes them, as in PyTorch."""

import copy
import operator
import pickle

import pytest

import twofold as torch
from twofold import fx, nn
from twofold.fx.node import map_arg
from twofold.fx.proxy import GraphAppendingTracer, TraceError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.scale = nn.Parameter(torch.tensor([2.0, 3.0, 4.0]))
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x, y=1.0):
        z = self.layers(x) * self.scale + self.shift
        return {"z": z.clamp(min=0.5), "parts": (z[:, 0], torch.cat([z, z], dim=1).shape), "y": -z / y}


def helper(x, k):
    return x * k if k > 1 else x


fx.wrap("helper")
fx.wrap("len")


def described(graph):
    return [
        (node.op, node.name, node.target if isinstance(node.target, str) else None) for node in graph.nodes
    ]


def code_of(function):
    return fx.symbolic_trace(function).code.strip()


def test_the_nodes_of_a_module():
    assert described(fx.symbolic_trace(Net()).graph) == [
        ("placeholder", "x", "x"),
        ("placeholder", "y", "y"),
        ("call_module", "layers_0", "layers.0"),
        ("call_module", "layers_1", "layers.1"),
        ("get_attr", "scale", "scale"),
        ("call_function", "mul", None),
        ("get_attr", "shift", "shift"),
        ("call_function", "add", None),
        ("call_method", "clamp", "clamp"),
        ("call_function", "getitem", None),
        ("call_function", "cat", None),
        ("call_function", "neg", None),
        ("call_function", "truediv", None),
        ("call_function", "getattr_1", None),
        ("output", "output", "output"),
    ]


def test_a_traced_module_does_the_same_and_can_be_trained_copied_and_pickled():
    net, x = Net(), torch.randn(4, 2)
    traced = fx.symbolic_trace(net)
    wanted = net(x, 2.0)
    for one in (
        traced,
        copy.deepcopy(traced),
        pickle.loads(pickle.dumps(traced)),
        fx.GraphModule(net, traced.graph),
    ):
        found = one(x, 2.0)
        assert torch.equal(found["z"], wanted["z"]) and torch.equal(found["y"], wanted["y"])
        assert torch.equal(found["parts"][0], wanted["parts"][0]) and found["parts"][1] == (4, 6)
    assert traced(x)["y"].tolist() == net(x)["y"].tolist()
    assert {name for name, _ in traced.named_parameters()} == {"layers.0.weight", "layers.0.bias", "scale"}
    traced(x)["y"].sum().backward()
    assert net.scale.grad is not None and traced.scale is net.scale
    other = copy.deepcopy(traced)
    assert other.scale is not net.scale and other.graph is not traced.graph


def test_code():
    assert code_of(lambda x, y: (torch.relu(x) + y) ** 2 // x[0, 1:] - 3 @ (x < y)).splitlines()[1:] == [
        "    relu = torch.relu(x)",
        "    add = relu + y;  relu = None",
        "    pow_1 = add ** 2;  add = None",
        "    getitem = x[(0, slice(1, None, None))]",
        "    floordiv = pow_1 // getitem;  pow_1 = getitem = None",
        "    lt = x < y;  x = y = None",
        "    matmul = 3 @ lt;  lt = None",
        "    sub = floordiv - matmul;  floordiv = matmul = None",
        "    return sub",
    ]
    assert code_of(lambda x: [x.view(-1, 2).sum(dim=1), None, "a", {"k": x.shape}]).splitlines() == [
        "def forward(self, x):",
        "    view = x.view(-1, 2)",
        "    sum_1 = view.sum(dim = 1);  view = None",
        "    getattr_1 = x.shape;  x = None",
        "    return [sum_1, None, 'a', {'k': getattr_1}]",
    ]
    assert "torch.nn.functional.relu(x" in code_of(lambda x: nn.functional.relu(x))
    assert "x.to(torch.float64)" in code_of(lambda x: x.to(torch.float64))
    assert "~x" in code_of(lambda x: ~x)


def test_wrapped_functions_are_called_whole():
    traced = fx.symbolic_trace(lambda x: helper(x, 3) + len(x))
    assert [node.name for node in traced.graph.nodes] == ["x", "helper", "len_1", "add", "output"]
    assert traced(torch.ones(2)).tolist() == [5.0, 5.0] and helper(2, 1) == 2 and len([1]) == 1


def test_control_flow_that_depends_on_values_is_refused():
    with pytest.raises(TraceError, match="control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(TraceError, match="iterated"):
        fx.symbolic_trace(lambda x: list(x))


def test_nodes_can_be_replaced_moved_and_erased():
    traced = fx.symbolic_trace(lambda x, y: torch.add(x, y).relu())
    for node in traced.graph.nodes:
        if node.target is torch.add:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.mul, node.args, node.kwargs)
                node.replace_all_uses_with(new)
            with pytest.raises(RuntimeError, match="still had 1 users"):
                traced.graph.erase_node(new)
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    assert traced(torch.tensor([2.0, -1.0]), torch.tensor([3.0, 1.0])).tolist() == [6.0, 0.0]
    x = next(iter(traced.graph.nodes))
    assert x.op == "placeholder" and list(x.users) == [new] and new.all_input_nodes == list(new.args)
    with traced.graph.inserting_before(new):
        unused = traced.graph.call_function(operator.neg, (x,))
    assert unused.next is new and traced.graph.eliminate_dead_code()
    assert unused not in list(traced.graph.nodes)


def test_graphs_can_be_made_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("weight")
    product = graph.call_function(operator.mul, (x, w))
    graph.output(graph.call_module("act", (product,)))
    module = fx.GraphModule({"weight": torch.tensor([1.0, -1.0]), "act": nn.ReLU()}, graph)
    assert module(torch.ones(2)).tolist() == [1.0, 0.0] and "act" in dict(module.named_modules())
    graph.lint()
    other = fx.Graph()
    with pytest.raises(RuntimeError, match="does not belong"):
        other.output(x)
        other.lint()
    proxy = fx.Proxy(product, GraphAppendingTracer(graph))
    with graph.inserting_after(product):
        more = torch.exp(proxy) + 1
    assert product.next is more.node and product.next.next.name == "exp"
    assert map_arg((product, [x]), lambda node: node.name) == ("mul", ["x"])


def test_interpreter_and_transformer():
    net = Net()
    traced = fx.symbolic_trace(net)
    seen = []

    class Noting(fx.Interpreter):
        def run_node(self, node):
            seen.append(node.name)
            return super().run_node(node)

    x = torch.randn(3, 2)
    assert torch.equal(Noting(traced).run(x)["z"], traced(x)["z"])
    assert seen == [node.name for node in traced.graph.nodes]

    class SigmoidForNeg(fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is operator.neg:
                return torch.sigmoid(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("tanh" if target == "clamp" else target, args[:1], {})

    changed = SigmoidForNeg(traced).transform()
    z = net.layers(x) * net.scale + net.shift
    assert torch.equal(changed(x)["y"], torch.sigmoid(z)) and torch.equal(changed(x)["z"], z.tanh())


def test_patterns_are_replaced():
    class Two(nn.Module):
        def forward(self, x, w1, w2):
            m1 = torch.cat([torch.neg(w1), w2]).sum()
            m2 = torch.cat([torch.neg(w1), w2]).sum()
            return x + torch.max(m1) + torch.max(m2)

    traced = fx.symbolic_trace(Two())
    pattern = lambda a, b: torch.cat([torch.neg(a), b]).sum()
    assert len(fx.replace_pattern(traced, pattern, lambda a, b: torch.stack([a, b]))) == 2
    assert [node.name for node in traced.graph.nodes if node.op == "call_function"] == [
        "stack",
        "max_1",
        "add",
        "stack_1",
        "max_2",
        "add_1",
    ]
    assert traced(torch.zeros(1), torch.tensor([1.0]), torch.tensor([5.0])).tolist() == [10.0]
    chained = fx.symbolic_trace(lambda x: torch.exp(torch.exp(x)))
    assert len(fx.replace_pattern(chained, lambda a: torch.exp(a), lambda a: torch.sin(a))) == 2
    assert [node.target for node in chained.graph.nodes if node.op == "call_function"] == [
        torch.sin,
        torch.sin,
    ]


def test_tracers_can_be_changed():
    class Through(fx.Tracer):
        def is_leaf_module(self, module, name):
            return not isinstance(module, nn.ReLU) and super().is_leaf_module(module, name)

        def create_node(self, *args, **kwargs):
            node = super().create_node(*args, **kwargs)
            node.meta["tag"] = "foo"
            return node

    graph = Through().trace(Net())
    found = next(node for node in graph.nodes if node.name.startswith("relu"))
    assert found.op == "call_function" and found.meta["tag"] == "foo"
    assert all(node.meta["tag"] == "foo" for node in graph.nodes)


@pytest.mark.parametrize(
    "pack", [lambda *operands: operands, lambda *operands: (list(operands),), lambda *operands: (operands,)]
)
def test_operands_of_einsum_are_recorded_one_by_one(pack):
    traced = fx.symbolic_trace(lambda x, y: torch.einsum("ij,jk->ik", *pack(x, y)))
    (call,) = (node for node in traced.graph.nodes if node.op == "call_function")
    assert [str(one) for one in call.args] == ["ij,jk->ik", "x", "y"] and not call.kwargs
    x = torch.arange(4.0).reshape(2, 2)
    assert traced(x, x).equal(x @ x)
