"""Symbolic traces: constants in their code, what their modules take over, and edits that keep what they compute."""

import copy
import enum
import math
import pickle
from math import sqrt
from typing import Any, NamedTuple

import numpy
import pytest

import twofold as torch
import twofold.nn.functional as F
from twofold import fx, nn


@fx.wrap
def halved(x):
    return x / 2


fx.wrap("sqrt")


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2))

    def forward(self, x):
        return F.linear(x, self.layers[0].weight) + self.layers(x)


class Pair(NamedTuple):
    first: object
    second: object


class Power(enum.IntEnum):
    TWO = 2


def doubled(x):
    return x + x


def test_constants_keep_their_value_in_the_code():
    x = torch.tensor([2.0, 3.0])
    for function in (
        lambda x: (-2.0) ** x,
        lambda x: x * numpy.float64(2),
        lambda x: x**Power.TWO,
        lambda x: x[-1] - -2,
        lambda x: x.to(torch.device("cpu")).contiguous(memory_format=torch.contiguous_format),
        lambda x: torch.empty_like(x, layout=torch.strided).fill_(-math.inf),
    ):
        assert torch.equal(fx.symbolic_trace(function)(x), function(x))


def test_a_module_of_which_a_parameter_is_read_first_is_called():
    net, x = Shared(), torch.randn(3, 2)
    traced = fx.symbolic_trace(net)
    assert [node.target for node in traced.graph.nodes if isinstance(node.target, str)][1:3] == [
        "layers.0.weight",
        "layers.0",
    ]
    for one in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert torch.equal(one(x), net(x))


def test_functions_of_math_and_others_that_are_asked_for_are_recorded():
    traced = fx.symbolic_trace(lambda math_sqrt: sqrt(math_sqrt) + math.floor(math_sqrt))
    assert [node.name for node in traced.graph.nodes] == ["math_sqrt", "sqrt", "floor", "add", "output"]
    assert traced(4.5) == math.sqrt(4.5) + 4
    for functions in ((doubled,), (len,)):
        graph = fx.Tracer(autowrap_functions=functions).trace(lambda x: doubled(x))
        assert ("doubled" in [node.name for node in graph.nodes]) == (functions == (doubled,))
    with pytest.raises(TypeError, match=r"'z'.*'x'"):
        fx.symbolic_trace(lambda x: x, concrete_args={"z": 1})


def test_what_works_in_place_is_no_dead_code():
    def function(x):
        y, z, total = x.clone(), x.clone(), torch.zeros(2)
        torch.relu_(y)
        F.relu(z, inplace=True)
        torch.add(y, z, out=total)
        torch.exp(x)
        return total

    traced = fx.symbolic_trace(function)
    assert traced.graph.eliminate_dead_code()
    traced.recompile()
    assert "exp" not in traced.code
    assert traced(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 4.0]


def test_a_node_is_erased_once_and_from_its_own_graph():
    graph = fx.Graph()
    x, unused = graph.placeholder("x"), graph.call_function(math.sqrt, (1.0,))
    graph.erase_node(unused)
    after = graph.call_function(math.floor, (x,))
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(unused)
    assert list(graph.nodes) == [x, after]
    with pytest.raises(RuntimeError, match="wrong graph"):
        fx.Graph().erase_node(after)


def test_results_of_all_kinds_pass_a_transformer_and_a_pickle():
    traced = fx.symbolic_trace(lambda x: Pair(x, [x + 1, {"k": x.shape[slice(0, 1)]}]))
    for one in (fx.Transformer(traced).transform(), pickle.loads(pickle.dumps(traced))):
        found = one(torch.ones(2))
        assert (
            isinstance(found, Pair)
            and found.second[0].tolist() == [2.0, 2.0]
            and found.second[1]["k"] == (2,)
        )


def test_replacements_bring_their_modules_and_patterns_have_one_result():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([3.0]))

        def forward(self, a):
            return a * self.scale

    traced = fx.symbolic_trace(lambda x: torch.exp(x) + 1)
    assert len(fx.replace_pattern(traced, lambda a: torch.exp(a), Scaled())) == 1
    assert traced(torch.ones(2)).tolist() == [4.0, 4.0] and "scale" in dict(traced.named_parameters())
    for pattern in (lambda a: (torch.exp(a), a), lambda a: a):
        with pytest.raises(NotImplementedError, match="one operation"):
            fx.replace_pattern(traced, pattern, lambda a: a)


def test_operators_of_tensors_leave_proxies_to_record_them():
    table = torch.tensor([1.0, 4.0])
    traced = fx.symbolic_trace(lambda x: [table**x, table // x, table @ x, table == x, 2**x])
    x = torch.tensor([2.0, 3.0])
    assert [one.tolist() for one in traced(x)] == [[1.0, 64.0], [0.0, 1.0], 14.0, [False, False], [4.0, 8.0]]
    with pytest.raises(TypeError, match="pow"):
        table ** object()


def test_a_wrapped_function_that_its_module_no_longer_has_is_no_obstacle() -> None:
    space: dict[str, Any] = {"torch": torch, "__name__": "gone"}
    exec("def twice(x): return 2 * x\ntorch.fx.wrap('twice')", space)
    space.clear()
    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    assert traced(torch.ones(2)).tolist() == [2.0, 2.0]


def test_nodes_are_found_in_the_order_in_which_they_run_or_were_made():
    graph = fx.Graph()
    x = graph.placeholder("x")
    last = graph.call_function(torch.exp, (x,))
    with graph.inserting_before(last):
        first = graph.call_function(torch.exp, (x,))
    graph.output((first, last))
    assert graph.find_nodes(op="call_function", target=torch.exp) == [first, last]
    assert graph.find_nodes(op="call_function", target=torch.exp, sort=False) == [last, first]
    graph.output_node().args = ((first,),)
    graph.erase_node(last)
    assert graph.find_nodes(op="call_function", target=torch.exp, sort=False) == [first]


def test_a_graph_takes_nothing_for_tracing_it_again():
    with pytest.raises(NotImplementedError, match="tracer_extras"):
        fx.Graph(tracer_extras={"concrete_args": {}})


def test_code_wraps_the_functions_that_are_called_whole():
    """Two spaces of names hold one function (``math.sqrt``): it is recorded once. The code is PyTorch's."""
    traced = fx.symbolic_trace(lambda x: halved(x) + math.sqrt(x.shape[0]) + sqrt(x.shape[0]))
    name = f"{__name__.replace('.', '_')}_halved"
    head = "\n".join(f'torch.fx._symbolic_trace.wrap("{one}")' for one in (name, "math_sqrt"))
    assert traced.code.startswith(f"\n{head}\n\ndef forward(self, x):\n    halved = {name}(x)\n")
    names = [
        "x",
        "halved",
        "getattr_1",
        "getitem",
        "sqrt",
        "add",
        "getattr_2",
        "getitem_1",
        "sqrt_1",
        "add_1",
    ]
    assert [node.name for node in traced.graph.nodes][:-1] == names
    again = fx.symbolic_trace(traced)
    assert again.code == traced.code and again(torch.full((4,), 2.0)).tolist() == [5.0] * 4


def test_operators_of_a_program_are_recorded_whole():
    library = torch.library.Library("wholly", "DEF")
    library.define("sine(Tensor x, int n=2) -> Tensor")
    library.impl("sine", lambda x, n=2: x.sin() * n, "CompositeImplicitAutograd")
    traced = fx.symbolic_trace(lambda x: torch.ops.wholly.sine(x) + torch.ops.wholly.sine.default(x, 3))
    assert [str(node.target) for node in traced.graph.nodes][1:3] == ["wholly.sine", "wholly.sine.default"]
    assert "torch.ops.wholly.sine(x)" in traced.code
    assert torch.allclose(traced(torch.ones(2)), 5 * torch.ones(2).sin())


def test_ranges_of_profiles_are_begun_and_ended_by_nodes():
    graph, calls = fx.Graph(), torch.ops.profiler
    x = graph.placeholder("x")
    handle = graph.call_function(calls._record_function_enter, ("positive part",))
    y = graph.call_method("relu", (x,))
    graph.call_function(calls._record_function_exit, (handle,))
    graph.output(y)
    made = fx.GraphModule(nn.Module(), graph)
    assert "torch.ops.profiler._record_function_enter('positive part')" in made.code
    with torch.profiler.profile() as profile:
        assert made(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert [event.count for event in profile.key_averages() if event.key == "positive part"] == [1]
    with pytest.raises(RuntimeError, match="has ended"):
        calls._record_function_exit(torch.tensor(10**9))
