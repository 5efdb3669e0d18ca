"""Long traces as calls of bodies: the bits of one operation after another, and as many plans as there are layers that
differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
from tests.compiler.test_compile_log import logged
from tests.core.test_templates import tier
from twofold import _core, nn
from twofold.compiler.linking import Trace, compile_outlined
from twofold.ir.graph import Graph, called, inline_calls
from twofold.ir.text import format_graph, parse_graph
from twofold.ir.verify import verify
from twofold.transforms.outline import InstanceInfo, Instruction, Outlined, outline

F = nn.functional
WIDTH = 8


def check_same_bits(compute: Callable[[], list[Any]]) -> Outlined:
    """Inlined, and outlined in windows of several lengths, against one operation after another."""

    def found() -> list[bytes]:
        results = compute()
        _core.flush()
        return [value.detach().numpy().tobytes() for value in results]

    with tier("unfused"):
        expected = found()
    executable = _core.last_executable()
    trace = Trace.of(_core.describe_executable(executable))
    for min_saved in (10**9, 12, 1):
        check_graph(trace, min_saved)
        _core.set_fused(executable, compile_outlined(trace, min_saved).program(), 1)
        with tier("fused"):
            for _ in range(2):
                assert found() == expected, min_saved
        assert _core.last_executable() is not None
    return trace.outlined(1)


def check_graph(trace: Trace, min_saved: int) -> None:
    """The graph of calls: valid, the same from its text, and inlined the graph of the trace."""
    graph = trace.outlined(min_saved).graph
    verify(graph)
    assert parse_graph(format_graph(graph)) == graph
    assert inline_calls(graph) == trace.inlined()


Layer = Callable[[Any, Any, int, Any], Any]

LAYERS: dict[str, Layer] = {
    "own weight": lambda x, w, k, shared: torch.tanh(x @ w),
    "shared weight": lambda x, w, k, shared: torch.relu(x @ shared) + x,
    "a row by its number": lambda x, w, k, shared: x + w[k % WIDTH],
    "a cut by its number": lambda x, w, k, shared: torch.roll(x, k, 1) * 0.5,
    "views": lambda x, w, k, shared: (x.t().reshape(4, -1).t().reshape(x.shape)[:, :] * 1.5).contiguous(),
    "rows": lambda x, w, k, shared: F.layer_norm(x, (WIDTH,)) * w[0],
    "sums": lambda x, w, k, shared: torch.softmax(x - x.sum(0), 1) * 3,
    "constants": lambda x, w, k, shared: torch.where(x > 0, x, torch.zeros(WIDTH)) + torch.ones(1),
}


def normal(*shape: int, seed: int = 0) -> Any:
    generator = numpy.random.default_rng((*shape, seed))
    return torch.from_numpy(generator.normal(size=shape).astype(numpy.float32))


@settings(max_examples=25, deadline=None)
@given(
    layers=st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=3),
    count=st.integers(2, 6),
    kept=st.integers(0, 3),
    skips=st.booleans(),
    learns=st.booleans(),
)
def test_same_bits_inlined_and_outlined(layers, count, kept, skips, learns):
    """Layers with numbers of their own, shared weights, results alive outside, and read by the next layer but one."""
    data = normal(WIDTH, WIDTH)
    weights = [normal(WIDTH, WIDTH, seed=1 + k).requires_grad_(learns) for k in range(count)]
    shared = normal(WIDTH, WIDTH, seed=99).requires_grad_(learns)

    def compute() -> list[Any]:
        x, before, alive = data, data, []
        for weight in (*weights, shared):
            weight.grad = None
        for k in range(count):
            y = x
            for name in layers:
                y = LAYERS[name](y, weights[k], k, shared)
            x, before = (y + before, x) if skips else (y, x)
            if k % 4 == kept:
                alive.append(x)
        if learns and x.requires_grad:
            x.sum().backward()
        return [x, *alive, *[w.grad for w in (*weights, shared) if w.grad is not None]]

    check_same_bits(compute)


def test_values_that_are_returned_twice_or_as_they_came():
    x = normal(3, 4)

    def compute() -> list[Any]:
        y = x
        for _ in range(6):
            y = torch.sin(y) * 2
        return [y, y.reshape(4, 3), y.t(), y * 1, x.reshape(12), torch.sin(x), torch.zeros(2)]

    check_same_bits(compute)


def test_a_parameter_is_changed_in_place_only_after_its_last_read():
    """Updates donate the memory of a parameter; one that a later body still reads is kept whole."""
    parameters = [normal(16, 16, seed=k) for k in range(6)]

    def compute() -> list[Any]:
        new, total = [], torch.zeros(16, 16)
        for parameter in parameters:
            new.append(parameter - 0.5 * parameter.sin())
        for parameter in parameters:
            total = total + parameter @ total.cos()
        return [total, *new]

    before = [value.numpy().copy() for value in parameters]
    check_same_bits(compute)
    for value, old in zip(parameters, before, strict=True):
        numpy.testing.assert_array_equal(value.numpy(), old)


def trained(layers: int) -> Callable[[], list[Any]]:
    """A step of a network of equal layers, whose parameters and their moments stay alive."""
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(layers)]
    net = nn.Sequential(*blocks, nn.Linear(WIDTH, 3))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    x, y = normal(5, WIDTH), torch.arange(5) % 3

    def step() -> list[Any]:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return [loss]

    return step


def outlined_step(layers: int) -> Outlined:
    step = trained(layers)
    with tier("unfused"):
        for _ in range(3):
            step()
            _core.flush()
    return Trace.of(_core.describe_executable(_core.last_executable())).outlined()


def operations(body: Graph) -> list[Any]:
    """What the calls in a body call, in its order."""
    return [callee for node in body.nodes() if (callee := called(node)) is not None]


def test_equal_layers_are_planned_once():
    found = [outlined_step(layers) for layers in (40, 80, 120)]
    bodies = [{called(call) for call in outlined.calls} for outlined in found]
    assert all(len(own) < 10 for own in bodies)
    assert all(sum(len(operations(body)) for body in own) < 300 for own in bodies)
    calls = [len(outlined.calls) for outlined in found]
    assert calls == sorted(calls) and calls[2] > 2 * calls[0]


def planned_for(step: Callable[[], list[Any]]) -> tuple[int, int]:
    """How many bodies are planned anew for a trace, and how many calls it has."""
    with tier("unfused"):
        alive = step()
        _core.flush()
    assert alive
    program = compile_outlined(Trace.of(_core.describe_executable(_core.last_executable())))
    return program.new_bodies, program.calls


def unrolled(cell: Any, inputs: list[Any]) -> Callable[[], list[Any]]:
    def step() -> list[Any]:
        h = torch.zeros(3, cell.hidden_size)
        with torch.no_grad():
            for x in inputs:
                h = cell(x, h)
        return [h]

    return step


def test_an_unrolled_cell_plans_nothing_at_a_new_length_once_its_bodies_are_known():
    cell = nn.GRUCell(5, WIDTH)
    inputs = [normal(3, 5, seed=k) for k in range(70)]
    planned = [planned_for(unrolled(cell, inputs[:steps])) for steps in range(40, 52)]
    assert planned[0][0] >= 2
    for steps in range(52, 70, 3):
        bodies, calls = planned_for(unrolled(cell, inputs[:steps]))
        assert bodies == 0 and calls > planned[0][1], steps


def test_a_deeper_network_plans_what_stands_between_its_equal_layers():
    """The layers themselves are known: forward, backward and their updates."""

    def evaluated(layers: int) -> Callable[[], list[Any]]:
        torch.manual_seed(0)
        net = nn.Sequential(*[layer for _ in range(layers) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())])
        data = normal(5, WIDTH)

        def step() -> list[Any]:
            with torch.no_grad():
                return [net(data)]

        return step

    for layers in range(80, 112):
        planned_for(evaluated(layers))
    assert planned_for(evaluated(150))[0] == 0
    planned_for(trained(40))
    new, calls = planned_for(trained(64))
    assert new < 8 < calls, (new, calls)


def test_plans_of_bodies_are_dropped_above_their_budget():
    cell = nn.GRUCell(5, WIDTH)
    inputs = [normal(3, 5, seed=k) for k in range(50)]
    planned_for(unrolled(cell, inputs))
    plans = torch.stats().caches["body plans"]
    assert 0 < plans.bytes <= plans.budget
    with torch.config.scoped(cache_bytes=1 << 20):
        planned_for(unrolled(nn.GRUCell(5, WIDTH + 1), [normal(3, 5, seed=k) for k in range(50)]))
        found = torch.stats().caches["body plans"]
    assert found.evictions > plans.evictions


def unrolled_training(steps: int, width: int) -> Callable[[], list[Any]]:
    cell, head = nn.LSTMCell(5, width), nn.Linear(width, 3)
    data = [normal(4, 5, seed=k) for k in range(steps)]

    def step() -> list[Any]:
        cell.zero_grad(), head.zero_grad()
        h, c = torch.zeros(4, width), torch.zeros(4, width)
        for x in data:
            h, c = cell(x, (h, c))
        loss = F.cross_entropy(head(h), torch.arange(4) % 3)
        loss.backward()
        return [loss, *[p.grad for p in (*cell.parameters(), *head.parameters())]]

    return step


def activations(graph: Graph) -> int:
    return sum(node.op.name in ("sigmoid", "tanh") for node in inline_calls(graph).nodes())


def test_gates_are_computed_once_for_both_passes():
    """The bodies of the backward pass read them from those of the forward pass, and the bits are the same."""
    found = check_same_bits(unrolled_training(30, WIDTH))
    assert len(found.calls) > 10
    computed = sum(activations(body) for call in found.calls if (body := called(call)) is not None)
    assert computed == activations(found.graph) == 30 * 5


def test_large_values_are_computed_again_rather_than_kept():
    def chain(size: int) -> Callable[[], list[Any]]:
        weights = [torch.ones(1, requires_grad=True) for _ in range(40)]

        def step() -> list[Any]:
            x = torch.linspace(-1, 1, size)
            for weight in weights:
                x = F.silu(x * weight)
            x.sum().backward()
            return [weight.grad for weight in weights]

        return step

    def computed(size: int) -> tuple[int, int]:
        """How many activations the bodies compute, and the trace planned as a whole."""
        with tier("unfused"):
            alive = chain(size)()
            _core.flush()
        assert alive
        found = Trace.of(_core.describe_executable(_core.last_executable())).outlined()
        assert len(found.calls) > 2
        bodies = [body for call in found.calls if (body := called(call)) is not None]
        return sum(map(activations, bodies)), activations(found.graph)

    small, large = computed(1000), computed(100_000)
    assert small[0] == small[1] == large[1] < large[0]


def test_training_in_bodies_keeps_every_bit():
    losses = {}
    for name in ("unfused", "fused"):
        step = trained(24)
        with tier(name):
            losses[name] = [step()[0].item() for _ in range(5)]
    assert losses["unfused"] == losses["fused"]


def fused_by(compute: Callable[[], Any], rounds: int) -> tuple[int, int]:
    """How many more traces are fused once a function has run for some rounds, and the rounds until the first."""
    before = torch.stats()
    ran = 0
    while ran < rounds and torch.stats().fused == before.fused:
        ran += 1
        for _ in range(200):
            compute()
        torch.wait_for_compiler()
    after = torch.stats()
    assert after.batched_traces > before.batched_traces
    return after.fused - before.fused, ran


def test_of_long_traces_in_batches_those_are_fused_that_repeat():
    rows = [normal(1, 16, seed=k) for k in range(300)]
    order = numpy.random.default_rng(0).integers(0, 6, 700)
    functions = [torch.sin, torch.tanh, torch.relu, torch.exp, torch.abs, torch.sigmoid]

    def layers() -> Any:
        return sum(torch.tanh(row * 0.5) for row in rows).sum().item()

    def mixed() -> Any:
        return sum(functions[kind](rows[k % 300]) for k, kind in enumerate(order)).sum().item()

    # a trace is compiled once its runs took longer than compiling, which is measured: more rounds under load
    fused, rounds = fused_by(layers, rounds=200)
    assert fused >= 1
    assert fused_by(mixed, rounds=rounds + 10) == (0, rounds + 10)


def test_what_is_counted_and_told(tmp_path: Path):
    program = """
import twofold as torch
torch.config.background_compile = False
def chain():
    x = torch.linspace(-1, 1, 50)
    for i in range(200):
        x = torch.cumsum(torch.sin(x), 0)
    return x.sum().item()
chain(), chain(), chain()
found = torch.stats()
assert found.fused == 1 and found.body_calls > 2 * found.bodies > 2, found
"""
    (line,) = logged(tmp_path, program)
    assert " calls of " in line and " bodies " in line, line


def operation(text: str) -> Graph:
    """One of the first input, and maybe of a second."""
    return parse_graph(
        f"graph(%0 : float32[1,1], %1 : float32[1,1]) {{\n {text} : float32[1,1]\n return %2\n}}"
    )


LOOP, HEAVY, VIEW = 0, 1, 2
INSTANCES = [
    InstanceInfo(operation("%2 = add(%0, %1)"), 4, False, True),
    InstanceInfo(operation("%2 = matmul(%0, %1)"), 4, False, False),
    InstanceInfo(operation("%2 = reshape(%0) {(1, 1)}"), 4, True, True),
]
TYPES = [INSTANCES[0].graph.input_types[0]] * 2


def outlined(instructions: list[Instruction], output: list[int], **options: int) -> Outlined:
    """With a second operand where there is none."""
    return outline(
        TYPES, INSTANCES, [Instruction(k, (*refs, ~1)[:2]) for k, refs, _ in instructions], output, **options
    )


def test_short_traces_and_those_without_repetition_are_one_body():
    instructions = [Instruction(LOOP, (~0,)), *[Instruction(LOOP, (k,)) for k in range(100)]]
    assert len(outlined(instructions[:60], [59]).calls) == 1
    assert len(outlined(instructions, [100]).calls) > 1
    instances = [INSTANCES[LOOP]] * 200
    other = [Instruction(k, (k - 1, ~1)) for k in range(200)]
    assert len(outline(TYPES, instances, other, [199]).calls) == 1


def test_views_are_rematerialised_where_they_are_read():
    """The view is an argument of no body, and a result only where the trace returns it."""
    instructions = [Instruction(HEAVY, (~0,)), Instruction(VIEW, (0,))]
    for k in range(4):
        instructions.append(Instruction(LOOP, (1, max(k + 1, 1))))

    def views(found: Outlined) -> tuple[int, int]:
        """How often the view is computed by a body, and how often returned by one."""
        bodies = [body for call in found.calls if (body := called(call)) is not None]
        made = sum(operations(body).count(INSTANCES[VIEW].graph) for body in bodies)
        returned = [called(node.inputs[0]) for body in bodies for node in body.outputs]
        return made, returned.count(INSTANCES[VIEW].graph)

    assert views(outlined(instructions, [5], min_saved=1)) == (4, 0)
    assert views(outlined(instructions, [5, 1], min_saved=1))[1] == 1


def test_windows_are_cut_where_nothing_is_fused():
    """A product reads what the loop before it made: the cut is between them, not behind the product."""
    instructions = [Instruction(LOOP, (~0,))]
    for _ in range(8):
        instructions.append(Instruction(HEAVY, (len(instructions) - 1, ~1)))
        instructions.append(Instruction(LOOP, (len(instructions) - 1,)))
    found = outlined(instructions, [len(instructions) - 1], min_saved=2)
    bodies = [called(call) for call in found.calls]
    (body,) = {body for body in bodies if body is not None and bodies.count(body) > 1}
    assert operations(body) == [INSTANCES[HEAVY].graph, INSTANCES[LOOP].graph]
