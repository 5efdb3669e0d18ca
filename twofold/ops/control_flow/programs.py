"""Operations that run closed graphs: one of several (``branch``), or one again and again (``loop``).

Such a node is only a handle of its results; ``part`` nodes take them. The graphs stand in its attributes as a
``Branches`` or ``LoopSpec`` object, equal ones being one object. Gradients are operations of the same kinds:

- The gradient of a branch is a branch between the gradients of the graphs.
- The gradient of a loop is a loop in the other direction over the values that its iterations started from. These
  are rows that the loop writes when it is asked to, with the results of products, reductions and kernels in the
  body that the gradient reads; the gradient asks, so a loop without gradient keeps nothing.
- A loop whose number of iterations nobody knows beforehand cannot reserve such rows. Its gradient, ``sized``, is a
  family of graphs, one for each reserved number of iterations, from which the run chooses by the iterations made.

So a gradient takes memory in proportion to iterations times carried values, and can be differentiated again.

A body that is declared while sizes are symbols is a graph over these. Its calls have the graph and, as integers beside
it, the sizes that it depends on (``Parametric``); so calls for other sizes are of one family, for which there are plans
for symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from twofold.dtypes import int64
from twofold.hashing import content_hash
from twofold.ir.bind import input_node, is_input
from twofold.ir.graph import HANDLE, Graph, GraphAttribute, has_symbols, interned, rebuild_nodes, rewrite
from twofold.ir.interpret import evaluate
from twofold.ir.node import Attributes, Node, make_node, mapped, topological
from twofold.ir.op import REGISTRY, ControlFlowOp, GetOutputOp, register
from twofold.ir.recording import Recording
from twofold.ir.sizes import Symbol
from twofold.ir.text import format_graph
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import filled
from twofold.ops.indexing.row_products import Cotangent

Backward = Callable[
    [Sequence[Node], Sequence["Node | None"], Sequence[Node], dict[int, Node]], list[Cotangent]
]
"""``transforms.reverse.backward_sums``, which rules are given."""

ITERATIONS_TYPE = tensor_type(int64)
_ALIGNMENT = 64


_contents = count()


class TextualAttribute(GraphAttribute):
    """Attributes that are told from others by their text, in other processes too.

    Over symbols they live only while something is planned for these, and have a number in place of the text.
    """

    __slots__ = ()

    def parts(self) -> tuple[Any, ...]:
        """The graphs and numbers."""
        raise NotImplementedError

    def text(self) -> str:
        """The graphs and numbers as text."""
        raise NotImplementedError

    def key(self) -> tuple[Any, ...]:
        return tuple([part.content_key if isinstance(part, Symbol) else part for part in self.parts()])

    def has_symbols(self) -> bool:
        return has_symbols(self.parts())

    def digest(self) -> str:
        if self.has_symbols():
            return f"{next(_contents)}"
        return content_hash(self.text().encode()).hexdigest()

    def at(self, numbers: tuple[Any, ...]) -> TextualAttribute:
        """Itself: it has no parameters."""
        assert not numbers
        return self

    def resized(self, size: Callable[[Symbol], Any]) -> TextualAttribute:
        """The same with ``size`` of each symbol in its place."""
        raise NotImplementedError("graphs that are made for a number of iterations")


def resized(graph: Graph, size: Callable[[Symbol], Any]) -> Graph:
    """``graph`` with ``size`` of each symbol in its place."""

    def item(value: Any) -> Any:
        if isinstance(value, TextualAttribute):
            return value.resized(size)
        return size(value) if isinstance(value, Symbol) else value

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        return make_node(node.op, mapped(node.attrs, item), inputs, resized_type(node.type, size))

    types = [resized_type(type, size) for type in graph.input_types]
    return Graph(types, rebuild_nodes(graph.outputs, make))


def resized_type(type: TensorType, size: Callable[[Symbol], Any]) -> TensorType:
    """``type`` with ``size`` of each symbol in its place."""
    shape = tuple([size(own) if isinstance(own, Symbol) else own for own in type.shape])
    return tensor_type(type.dtype, shape, type.weak)


class _Inputs(dict[int, Any]):
    """The inputs of the recording that symbols belong to: those that they depend on, in order."""

    recording: Recording

    def __missing__(self, position: int) -> Any:
        found = self[position] = self.recording.inputs[position]
        return found

    def note(self, size: Symbol) -> Symbol:
        """Note what ``size`` depends on."""
        self.recording = size.recording
        self.recording.at(size, self)
        return size


Size = Callable[[Any], Any]
"""What gives each symbol a number, and anything else as it is."""


def parameters_of(
    resize: Callable[[Size], Any],
) -> tuple[tuple[int, ...], Callable[[Sequence[Any]], Size], tuple[Any, ...]]:
    """The inputs of their recording that the symbols in what ``resize`` gives sizes to depend on: its parameters.

    Returns their positions, what gives its sizes for numbers in their place (integers, or symbols of another
    recording), and the inputs.
    """
    inputs = _Inputs()
    resize(inputs.note)
    positions = tuple(inputs)

    def sizes_at(numbers: Sequence[Any]) -> Size:
        given = dict(zip(positions, numbers, strict=True))
        return lambda size: inputs.recording.at(size, given)

    return positions, sizes_at, tuple(inputs.values())


class Parametric(GraphAttribute):
    """A loop or branch over symbols, with what gives its sizes for parameters, see ``parameters_of``."""

    __slots__ = ("content", "positions", "sizes_at")

    def __init__(
        self,
        content: TextualAttribute,
        positions: tuple[int, ...],
        sizes_at: Callable[[Sequence[Any]], Size],
    ) -> None:
        self.content, self.positions, self.sizes_at = content, positions, sizes_at

    def key(self) -> tuple[Any, ...]:
        return (self.positions, _words(self.content))

    def digest(self) -> str:
        return content_hash(repr(self.key()).encode()).hexdigest()

    def at(self, numbers: tuple[Any, ...]) -> TextualAttribute:
        """The content for these parameters: integers, or symbols of another recording."""
        return self.content.resized(self.sizes_at(numbers))


def with_parameters(content: TextualAttribute) -> tuple[Any, tuple[Any, ...]]:
    """What calls have in place of ``content``, and its parameters: none where it has no symbols."""
    if not has_symbols(content):
        return content, ()
    positions, sizes_at, parameters = parameters_of(content.resized)
    return interned(Parametric(content, positions, sizes_at)), parameters


def _words(value: Any) -> str:
    """A string that tells graphs, attributes and expressions of parameters from all others."""
    if isinstance(value, tuple):
        return f"({','.join(map(_words, value))})"
    if isinstance(value, Graph):
        return _words_of_graph(value)
    if isinstance(value, TextualAttribute):
        return f"{type(value).__name__}{_words(value.parts())}"
    return f"<{value!r}>" if isinstance(value, Symbol) else getattr(value, "content_key", None) or repr(value)


def _words_of_graph(graph: Graph) -> str:
    numbers: dict[int, int] = {}
    lines = [_words(tuple(_described(type) for type in graph.input_types))]
    for node in graph.nodes():
        inputs = tuple(numbers[value.id] for value in node.inputs)
        numbers[node.id] = len(numbers)
        lines.append(f"{node.op.name}{_words((node.attrs, inputs, _described(node.type)))}")
    return f"{lines}{[numbers[node.id] for node in graph.outputs]}"


def _described(type: Any) -> tuple[Any, ...]:
    return type.dtype.name, type.shape, type.weak


class Branches(TextualAttribute):
    """Graphs with the same input types and the same output types."""

    __slots__ = ("graphs",)

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = tuple(graphs)

    def parts(self) -> tuple[Any, ...]:
        return self.graphs

    def text(self) -> str:
        return "\n".join(map(format_graph, self.graphs))

    def resized(self, size: Callable[[Symbol], Any]) -> Branches:
        made: Branches = interned(Branches([resized(graph, size) for graph in self.graphs]))
        return made


class LoopSpec(TextualAttribute):
    """A loop, as ``lax.scan`` or ``lax.while_loop``: ``body`` takes the carry, a slice of each of xs, and constants.

    It returns the carry of the next iteration, a slice of each of ys, and (``conditional``) whether to go on. There are
    at most ``limit`` iterations (None: any number, and no xs or ys). ``counted``: their number is an input of the node.
    ``descending``: the first iteration reads and writes the last slice.

    ``in_place`` are values of the carry of which an iteration changes some rows where they lie
    (``transforms.in_place_loops``): for them the body returns the changed rows, and behind the slices of ys the int64
    index of the first of these rows for each.
    """

    __slots__ = ("body", "carry", "conditional", "counted", "descending", "in_place", "limit", "xs")

    def __init__(
        self,
        body: Graph,
        carry: int,
        xs: int = 0,
        limit: int | None = None,
        descending: bool = False,
        conditional: bool = False,
        counted: bool = False,
        in_place: Sequence[int] = (),
    ) -> None:
        self.body, self.carry, self.xs, self.limit = body, carry, xs, limit
        self.descending, self.conditional, self.counted = descending, conditional, counted
        self.in_place = tuple(in_place)

    def parts(self) -> tuple[Any, ...]:
        flags = (self.descending, self.conditional, self.counted)
        return (self.body, self.carry, self.xs, self.limit, *flags, self.in_place)

    def text(self) -> str:
        return f"{self.parts()[1:]} {format_graph(self.body)}"

    def resized(self, size: Callable[[Symbol], Any]) -> LoopSpec:
        limit = size(self.limit) if isinstance(self.limit, Symbol) else self.limit
        return self.with_body(resized(self.body, size), limit=limit)

    @property
    def first(self) -> int:
        """Number of inputs of the node before those of the body."""
        return int(self.conditional) + int(self.counted)

    @property
    def ys(self) -> int:
        """How many slices an iteration writes."""
        return len(self.body.outputs) - self.carry - len(self.in_place) - int(self.conditional)

    @property
    def consts(self) -> int:
        """How many values are the same for all iterations."""
        return len(self.body.input_types) - self.carry - self.xs

    def with_body(self, body: Graph, **changes: Any) -> LoopSpec:
        """The same loop with another body, and other numbers."""
        names = ("carry", "xs", "limit", "descending", "conditional", "counted", "in_place")
        made: LoopSpec = interned(
            LoopSpec(body, **{**{name: getattr(self, name) for name in names}, **changes})
        )
        return made


def run(name: str, attrs: Attributes, inputs: Sequence[Node]) -> list[Node]:
    """The results of a program operation on nodes."""
    return results_of(make_node(REGISTRY[name], attrs, tuple(inputs), HANDLE))


def results_of(node: Node) -> list[Node]:
    """All results of a control flow node."""
    assert isinstance(node.op, ControlFlowOp)
    types = node.op.results(node.attrs, [value.type for value in node.inputs])
    return [make_node(REGISTRY["get_output"], (k,), (node,), type) for k, type in enumerate(types)]


class GetOutput(GetOutputOp):
    """One result of a control flow node."""

    name = "get_output"


def is_differentiable(type: TensorType) -> bool:
    """Whether a gradient may be asked for: of floating and complex values that are no Python numbers."""
    return type.dtype.is_differentiable and not type.weak


def zeros(type: TensorType) -> Node:
    made: Node = filled(0, type.dtype, type.shape)
    return made


def loop_spec_of(node: Node) -> LoopSpec | None:
    """What a node that is a loop repeats; None for others."""
    found = node.attrs[0] if isinstance(node.op, ControlFlowOp) else None
    return found if isinstance(found, LoopSpec) else None


def branches_of(node: Node) -> Branches | None:
    """What a node that is a branch chooses from; None for others."""
    found = node.attrs[0] if isinstance(node.op, ControlFlowOp) else None
    return found if isinstance(found, Branches) else None


def renumbered(outputs: Sequence[Node], inputs: Sequence[Node]) -> Graph:
    """The closed graph from input nodes ``inputs``, numbered anew in this order, to ``outputs``."""
    fresh = {node.id: input_node(position, node.type) for position, node in enumerate(inputs)}
    made = rewrite(outputs, lambda node: fresh[node.id] if is_input(node) else None)
    return Graph([node.type for node in inputs], made)


def inputs_below(outputs: Sequence[Node]) -> set[int]:
    """Ids of the input nodes that ``outputs`` depend on."""
    return {node.id for node in topological(outputs) if is_input(node)}


class Branch(ControlFlowOp):
    """The results of the graph that an int64 chooses; inputs ``(choice, *inputs of the graphs)``.

    A choice that is negative or too large takes the last graph. Attributes ``(Branches,)``.
    """

    name = "branch"

    def results(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return tuple(node.type for node in attrs[0].graphs[0].outputs)

    def graphs(self, attrs: Attributes) -> tuple[Graph, ...]:
        graphs: tuple[Graph, ...] = attrs[0].graphs
        return graphs

    def nested(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[tuple[Any, ...], list[Any]]:
        return (len(inputs) - 1, len(attrs[0].graphs[0].outputs)), []

    def results_vjp(
        self, node: Node, cotangents: Sequence[Node | None], backward: Backward
    ) -> Sequence[Node | None]:
        graphs = node.attrs[0].graphs
        choice, *values = node.inputs
        count = len(values)
        given = [k for k, cotangent in enumerate(cotangents) if cotangent is not None]
        seeds = [input_node(count + position, graphs[0].outputs[k].type) for position, k in enumerate(given)]
        wanted = [k for k, value in enumerate(values) if is_differentiable(value.type)]
        inputs = [input_node(k, type) for k, type in enumerate(graphs[0].input_types)]
        found = [
            [
                share.total()
                for share in backward(
                    [graph.outputs[k] for k in given], seeds, [inputs[k] for k in wanted], {}
                )
            ]
            for graph in graphs
        ]
        reached = [
            position
            for position in range(len(wanted))
            if any(shares[position] is not None for shares in found)
        ]
        if not reached:
            return [None] * len(node.inputs)
        outputs: list[list[Any]] = [
            [
                zeros(inputs[wanted[position]].type) if shares[position] is None else shares[position]
                for position in reached
            ]
            for shares in found
        ]
        used = set().union(*[inputs_below(branch) for branch in outputs])
        kept = [k for k, value in enumerate([*inputs, *seeds]) if value.id in used]
        passed: list[Any] = [*values, *[cotangents[k] for k in given]]
        spec = interned(
            Branches([renumbered(branch, [[*inputs, *seeds][k] for k in kept]) for branch in outputs])
        )
        results = run("branch", (spec,), [choice, *[passed[k] for k in kept]])
        cotangents_in: list[Node | None] = [None] * len(node.inputs)
        for position, result in zip(reached, results):
            cotangents_in[1 + wanted[position]] = result
        return cotangents_in

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        graphs = attrs[0].graphs
        choice = int(arrays[0])
        return evaluate(graphs[choice if 0 <= choice < len(graphs) else -1], arrays[1:])


for _entry in (GetOutput(), Branch()):
    register(_entry)
