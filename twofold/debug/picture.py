"""What a picture shows: operations and values as one bipartite graph, in boxes, at one or several stages."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from types import CodeType
from typing import Any

import numpy

from twofold import _core
from twofold.debug.sites import chain_of
from twofold.debug.source import COMPREHENSIONS, is_known, name_of, repeats, repetitions_around
from twofold.frontend.gradients import no_grad
from twofold.ir.node import Node
from twofold.ir.types import TensorType, type_from_code
from twofold.runtime.attribution import (
    EntryCost,
    Scheduled,
    Stage,
    entry_costs,
    node_flops,
    nodes_of,
)
from twofold.runtime.profiling import Frame, frames_of
from twofold.runtime.scopes import scope_name

Tensor = _core.Tensor


@dataclass
class Step:
    """An operation: what it reads and makes, where it stands, and what is known of its costs."""

    id: int
    name: str
    inputs: list[int]
    outputs: list[int]
    boxes: tuple[str, ...] = ()
    attributes: str = ""
    backward: bool = False
    is_gradient: bool = False  # computes the gradient of an operation of that name
    lines: list[str] = field(default_factory=list)
    source: str = ""
    flops: int = 0
    nbytes: int = 0
    seconds: float = 0.0
    after: list[int] = field(default_factory=list)  # steps that run before, whose results it does not read


@dataclass
class Datum:
    """A value: the step that makes it (-1 for what comes from outside), its type, and perhaps what it holds."""

    id: int
    type: str
    nbytes: int
    producer: int = -1
    name: str = ""
    kind: str = "value"
    shown: str = ""
    magnitude: float = 0.0
    bad: bool = False


@dataclass
class View:
    """One stage of a program."""

    name: str
    steps: list[Step] = field(default_factory=list)
    data: list[Datum] = field(default_factory=list)

    def add_datum(self, type: str, nbytes: int, **rest: Any) -> int:
        """A new value; returns its number."""
        self.data.append(Datum(len(self.data), type, nbytes, **rest))
        return len(self.data) - 1

    def add_step(
        self, name: str, inputs: Sequence[int], results: Sequence[tuple[str, int]], **rest: Any
    ) -> list[int]:
        """A new step with results of these types and bytes; returns their numbers."""
        number = len(self.steps)
        outputs = [self.add_datum(type, nbytes, producer=number) for type, nbytes in results]
        self.steps.append(Step(number, name, list(inputs), outputs, **rest))
        return outputs


@dataclass
class Picture:
    """A program at several stages, the first as it was declared."""

    title: str
    views: list[View]
    classes: dict[str, str] = field(default_factory=dict)
    """Of modules, by their paths with dots."""

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries."""
        return asdict(self)


def lines_of(frames: Sequence[Frame]) -> list[str]:
    """``file.py:12 in f``, innermost first."""
    return [f"{os.path.basename(frame.file)}:{frame.line} in {frame.function}" for frame in frames]


def source_of(frames: Sequence[Frame]) -> str:
    """The text of the innermost line."""
    return linecache.getline(frames[0].file, frames[0].line).strip() if frames else ""


_RECURSIONS, _MOST_FRAMES = 4, 16  # how often a chain of callers holds a function, and how long it is at most
_NO_BOXES = ("<module>", *COMPREHENSIONS)


def path_of(location: int) -> tuple[str, ...]:
    """The modules around a location, or else the functions, by where they were called."""
    scope = scope_name(location)
    if scope:
        return tuple(scope.split("."))
    chain = _functions_around(location)
    return tuple(
        name_of(code) if k == 0 else f"{name_of(code)} (line {chain[k - 1][1]})"
        for k, (code, _) in enumerate(chain)
    )


def _functions_around(location: int) -> list[tuple[CodeType, int]]:
    """The functions around a location with the lines of their calls: a recursive one is there once."""
    found: list[tuple[CodeType, int]] = []
    lines = [frame.line for frame in reversed(frames_of(location))]
    for site, line in zip(chain_of(location), lines):
        if site.code.co_name not in _NO_BOXES:
            first = next((k for k, (code, _) in enumerate(found) if code is site.code), len(found))
            found[first:] = [(site.code, line)]
    return found


def _is_cut(location: int) -> bool:
    """Whether the chain of callers may be incomplete: it ends at a recursive function, and is of bounded length."""
    codes = [site.code for site in chain_of(location)]
    return len(codes) >= _MOST_FRAMES or (bool(codes) and codes.count(codes[0]) >= _RECURSIONS)


def _repeated_name(location: int, path: tuple[str, ...], around: Collection[ast.AST]) -> str:
    """What repetitions are named: passes of a loop, or where there is no source calls of a module or function."""
    chain = chain_of(location)
    known = (site for site in chain if is_known(site) or site.code.co_name in COMPREHENSIONS)
    if not path or any(repeats(site, around) for site in known):
        return "pass"
    return path[-1] if scope_name(location) else name_of(chain[-1].code)


class Boxes:
    """The boxes that calls stand in: modules, else functions by where they were called; passes of loops are boxes."""

    def __init__(self) -> None:
        # one pass through a loop that is still running around the picture is no box
        here = chain_of(_core.capture_location())
        self._around = {loop for site in here for loop in repetitions_around(site)}
        self._seen: dict[tuple[str, ...], dict[int, str]] = {}  # the first operation at each location
        self._passes: dict[tuple[str, ...], int] = {}
        self._names: dict[tuple[str, ...], str] = {}

    def of(self, location: int, operation: str) -> tuple[tuple[str, ...], int]:
        """The boxes of a call, outermost first, and the number of its pass through the innermost: -1 in no loop."""
        path, chain = path_of(location), chain_of(location)
        codes = [site.code for site in chain]
        looping = [site.code for site in chain if repeats(site, self._around)]
        if not looping or any(codes.count(code) > 1 for code in looping):
            return path, -1
        seen = self._seen.setdefault(path, {})
        # a function of this package may call several operations at one line of the program
        if seen.get(location) == operation:
            seen.clear()
            self._passes[path] = self._passes.get(path, 0) + 1
            self._names.setdefault(path, _repeated_name(location, path, self._around))
        seen.setdefault(location, operation)
        return path, self._passes.get(path, 0)

    def with_passes(
        self, found: Sequence[tuple[tuple[str, ...], int]], recursive: Collection[tuple[str, ...]]
    ) -> list[tuple[str, ...]]:
        """The boxes of calls, with a box for each pass where there were several, in no recursive function."""
        passed = {path for path in self._passes if path and path not in recursive}
        return [
            (*path, f"{self._names[path]} {number + 1}") if path in passed and number >= 0 else path
            for path, number in found
        ]


def described_value(tensor: Any) -> tuple[str, float, bool]:
    """A few words on what a tensor holds, its mean magnitude, and whether something in it is not finite."""
    array = numpy.asarray(tensor.detach().numpy() if isinstance(tensor, Tensor) else tensor)
    if not array.size:
        return "empty", 0.0, False
    flat = array.reshape(-1)
    first = numpy.array2string(flat[:6], precision=4, separator=", ", threshold=8)
    if array.dtype.kind not in "fciub":
        return first, 0.0, False
    with numpy.errstate(all="ignore"):
        magnitude = float(
            numpy.abs(flat.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)).mean()
        )
    bad = array.dtype.kind in "fc" and not bool(numpy.isfinite(flat).all())
    ends = f", from {flat.min():.4g} to {flat.max():.4g}" if array.dtype.kind in "fiu" else ""
    return (
        f"{first}{' …' if flat.size > 6 else ''}{ends}",
        magnitude if numpy.isfinite(magnitude) else 0.0,
        bad,
    )


_CONTAINERS = ("ModuleList", "ModuleDict")


def join_scattered_boxes(steps: Sequence[Step], classes: dict[str, str]) -> None:
    """Let no list of modules be a box whose members are called between other modules, which it would tear apart.

    Its members stand in the box around it then, as ``convolutions.0``. ``classes`` are those of modules by their paths.
    """
    for path in sorted(one for one, name in classes.items() if name in _CONTAINERS):
        found = {number: end for number, step in enumerate(steps) if (end := _end_of(step, path))}
        if not _is_scattered(steps, found):
            continue
        for number, end in found.items():
            boxes = steps[number].boxes
            joined = ".".join(boxes[end - 1 : end + 1])
            steps[number].boxes = (*boxes[: end - 1], joined, *boxes[end + 1 :])


def _is_scattered(steps: Sequence[Step], found: dict[int, int]) -> bool:
    """Whether steps, given with the numbers of their boxes up to a list of modules, have others of that around between.

    The forward pass decides for both.
    """
    own = [number for number in found if not steps[number].backward]
    if not own:
        return False
    around = steps[own[0]].boxes[: found[own[0]] - 1]
    others = (steps[one] for one in range(own[0], own[-1]) if one not in found)
    return any(not one.backward and one.boxes[: len(around)] == around for one in others)


def _end_of(step: Step, path: str) -> int:
    """Up to which of its boxes a step stands in the module with a path; 0 if it does not."""
    start = int(step.boxes[:1] == ("backward",))
    names = [".".join(step.boxes[start : k + 1]) for k in range(start, len(step.boxes))]
    return start + names.index(path) + 1 if path in names else 0


class Recorded:
    """All calls above some tensors: of the trace that is being recorded and of those that it goes on from.

    Those of runs up to the one with the history order ``before`` are left out; what they made is an input. ``tape`` are
    runs since then, all of whose calls are included.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        names: dict[int, tuple[str, str]],
        before: int = 0,
        tape: Sequence[Any] = (),
    ) -> None:
        self._before = before
        self._calls: dict[Any, int] = {}  # results, by what computes them of which values
        self.view = View("recorded")
        self.names = names  # by value key: what a tensor is called, and its kind
        self.traces: list[tuple[Any, list[tuple[int, int]], list[Any]]] = []
        self._numbers: dict[int, int] = {}  # of values, by their keys
        self.values: dict[int, Any] = {}
        self.classes: dict[str, str] = {}  # of modules, by their paths
        self._boxed: list[tuple[tuple[str, ...], int]] = []
        self._boxes = Boxes()
        self.provenance: list[tuple[int, int]] = []
        self.keys: list[tuple[int, int, str]] = []
        self._add_tape(tape)
        self._collect([one for one in tensors if _core.value_key(one) not in self._numbers])
        self.begin_backward()
        recursive = self._complete_paths()
        outside = self._outside()
        boxes = self._boxes.with_passes(self._boxed, recursive)
        for step, path, where in zip(self.view.steps, boxes, self.provenance):
            start = int(step.backward)
            scoped = scope_name(where[1] or where[0])
            step.boxes = path if scoped else (*path[:start], *path[start + outside :])

    def begin_backward(self) -> None:
        """What is made from nothing for the backward pass alone, its first cotangent, is part of that."""
        readers: dict[int, list[Step]] = {}
        for step in self.view.steps:
            for number in step.inputs:
                readers.setdefault(number, []).append(step)
        for position, step in enumerate(self.view.steps):
            using = readers.get(step.outputs[0], [])
            if not step.backward and not step.inputs and using and all(one.backward for one in using):
                step.backward = True
                self._boxed[position] = (("backward",), 0)

    def _complete_paths(self) -> set[tuple[str, ...]]:
        """Put what incomplete chains of callers begin with inside of what calls that elsewhere.

        Returns:
            The paths of recursive functions: their calls are of several depths.
        """
        locations = [forward or location for location, forward in self.provenance]
        around: dict[CodeType, list[tuple[CodeType, str]]] = {}  # the longest path to each function
        for one in set(locations):
            codes = [] if scope_name(one) else [code for code, _ in _functions_around(one)]
            named = list(zip(codes, path_of(one)))
            for k, code in enumerate(codes):
                if k >= len(around.get(code, ())):
                    around[code] = named[: k + 1]
        depths: dict[tuple[str, ...], set[int]] = {}
        for position, one in enumerate(locations):
            path, number = self._boxed[position]
            start, functions = int(self.view.steps[position].backward), _functions_around(one)
            if scope_name(one) or not functions or len(path) == start:
                continue
            if _is_cut(one):
                codes = [code for code, _ in functions]
                path = (*path[:start], *_inside(list(zip(codes, path[start:])), around))
            self._boxed[position] = path, number
            called = sum(site.code.co_name not in _NO_BOXES for site in chain_of(one))
            depths.setdefault(path, set()).add(called - len(functions))
        return {path for path, found in depths.items() if len(found) > 1}

    def _outside(self) -> int:
        """How many functions around all calls there are, but for the innermost of them."""
        chains = {
            path[int(step.backward) :]
            for step, (path, _), (location, forward) in zip(self.view.steps, self._boxed, self.provenance)
            if not scope_name(forward or location)
        }
        shared = 0
        for beside in zip(*chains):
            if len(set(beside)) > 1:
                break
            shared += 1
        return max(shared - 1, 0)

    def _add_tape(self, tape: Sequence[Any]) -> None:
        """Add what ran, without the calls whose results nobody held; a number stands for a breakpoint."""
        for run in tape:
            if isinstance(run, int):
                continue
            leaves, entries, lines, results = run
            read = {position for position, _ in results}
            for k in reversed(range(len(entries))):
                if k in read:
                    read.update(entries[k][1])
            made = [k for k in sorted(read) if k >= 0]
            given = [~ref for ref in sorted(read, reverse=True) if ref < 0]
            numbers = {old: new for new, old in enumerate(made)} | {
                ~old: ~new for new, old in enumerate(given)
            }
            kept = [
                (one[0], [numbers[ref] for ref in one[1]], *one[2:]) for one in map(entries.__getitem__, made)
            ]
            types = {ref: type for one in kept for ref, type in zip(one[1], one[5])}
            outputs = [numbers[position] for position, _ in results]
            self.add(
                ([types[~k] for k in range(len(given))], kept, outputs),
                [lines[k] for k in made],
                [leaves[k] for k in given],
                [_core.value_key(tensor) for _, tensor in results],
            )

    def _collect(self, wanted: list[Tensor]) -> None:
        layers = []
        while wanted:
            wanted.sort(key=_core.history_order, reverse=True)
            found = _core.trace_above(wanted)
            if found is None:
                wanted = wanted[1:]
                continue
            numbers, description, lines, leaves = found
            layers.append((description, lines, leaves, [_core.value_key(wanted[k]) for k in numbers]))
            wanted = [one for k, one in enumerate(wanted) if k not in numbers]
            known = {_core.value_key(one) for one in wanted}
            self._find_kept([one for one in leaves if isinstance(one, Tensor)])
            for leaf in leaves:
                if (
                    isinstance(leaf, Tensor)
                    and _core.history_order(leaf) > self._before
                    and _core.value_key(leaf) not in self._numbers
                    and _core.value_key(leaf) not in known
                ):
                    known.add(_core.value_key(leaf))
                    wanted.append(leaf)
        for description, lines, leaves, outputs in reversed(layers):
            self.add(description, lines, leaves, outputs)

    def _call(self, entry: Any, inputs: Sequence[int]) -> Any:
        """What is equal for calls of one operation on the same values."""
        data = [self.view.data[one] for one in inputs]
        return entry[2], entry[3], tuple(one.name if one.kind == "constant" else one.id for one in data)

    def _find_kept(self, values: Sequence[Tensor]) -> None:
        """Find values among the results of calls that are here: what a gradient reads has been kept without a name."""
        wanted = [
            one
            for one in values
            if _core.value_key(one) not in self._numbers and _core.history_order(one) > self._before
        ]
        while wanted and self._calls:
            above = _core.trace_above(wanted)
            if above is None:
                wanted = wanted[1:]
                continue
            numbers, description, _, leaves = above
            tensors = [one for one in leaves if isinstance(one, Tensor)]
            self._find_kept([one for one in tensors if all(one is not other for other in wanted)])
            made: list[Any] = []
            given = [
                self._numbers.get(_core.value_key(one)) if isinstance(one, Tensor) else repr(one)
                for one in leaves
            ]
            for entry in description[1]:
                inputs = tuple(made[ref] if ref >= 0 else given[~ref] for ref in entry[1])
                made.append(self._calls.get((entry[2], entry[3], inputs)))
            for k, ref in zip(numbers, description[2]):
                if (found := made[ref] if ref >= 0 else given[~ref]) is not None:
                    self._numbers[_core.value_key(wanted[k])] = found
            wanted = [one for k, one in enumerate(wanted) if k not in numbers]

    def _leaf(self, leaf: Any, type: str, nbytes: int) -> int:
        if not isinstance(leaf, Tensor):
            return self.view.add_datum(type, nbytes, kind="constant", name=repr(leaf), shown=repr(leaf))
        key = _core.value_key(leaf)
        if key not in self._numbers:
            name, kind = self.names.get(
                key, ("", "parameter" if leaf.requires_grad and leaf.is_leaf else "input")
            )
            self._numbers[key] = self.view.add_datum(type, nbytes, kind=kind, name=name)
        number = self._numbers[key]
        self.values.setdefault(number, leaf)
        return number

    def add(
        self, description: Any, lines: list[tuple[int, int]], leaves: list[Any], outputs: list[int]
    ) -> None:
        """Add a trace as the core describes it, with the lines of its calls, its inputs and keys of its results."""
        self.traces.append((description, lines, leaves))
        self._find_kept([one for one in leaves if isinstance(one, Tensor)])
        costs = entry_costs(description)
        types: list[TensorType] = [type_from_code(*code) for code in description[0]]
        given = [self._leaf(leaf, str(type), type.nbytes) for leaf, type in zip(leaves, types)]
        made: list[int] = []
        for entry, cost, where in zip(description[1], costs, lines):
            inputs = [made[ref] if ref >= 0 else given[~ref] for ref in entry[1]]
            made.append(self._entry(entry, cost, where, inputs))
            self._calls[self._call(entry, inputs)] = made[-1]
        for key, ref in zip(outputs, description[2]):
            self._numbers[key] = made[ref] if ref >= 0 else given[~ref]
            if key in self.names:
                self.view.data[self._numbers[key]].name = self.names[key][0]

    def _entry(self, entry: Any, cost: EntryCost, where: tuple[int, int], inputs: list[int]) -> int:
        location, forward = where
        frames = frames_of(forward or location)
        backward = bool(forward) or cost.is_backward or self._adds_gradients(location, inputs)
        if backward:
            path, number = ("backward", *(path_of(forward) if forward else ())), 0
        else:
            path, number = self._boxes.of(location, cost.name)
        self._boxed.append((path, number))
        self.provenance.append(where)
        self.keys.append((location, forward, cost.name))
        (output,) = self.view.add_step(
            cost.name,
            inputs,
            [(str(cost.output), cost.output.nbytes)],
            attributes="" if cost.is_backward else _short(entry[3]),
            backward=backward,
            is_gradient=cost.is_backward,
            lines=lines_of(frames) + ([f"backward at {lines_of(frames_of(location))[0]}"] if forward else []),
            source=source_of(frames),
            flops=cost.flops,
            nbytes=cost.nbytes,
        )
        return output

    def _adds_gradients(self, location: int, inputs: Sequence[int]) -> bool:
        """Whether a call is part of the pass that made one of its inputs, as sums of gradients of one value are."""
        producers = [self.view.data[one].producer for one in inputs]
        return any(
            step >= 0 and self.view.steps[step].backward and self.provenance[step][0] == location
            for step in producers
        )

    def compute(self) -> None:
        """Find what every value holds, one operation after the other."""
        step = 0
        with no_grad():
            for description, _, leaves in self.traces:
                made: list[Any] = []
                for entry in description[1]:
                    operands = [made[ref] if ref >= 0 else leaves[~ref] for ref in entry[1]]
                    made.append(_core.record(entry[2], entry[3], tuple(operands)))
                    self.values[self.view.steps[step].outputs[0]] = made[-1]
                    step += 1
            for number, value in self.values.items():
                datum = self.view.data[number]
                datum.shown, datum.magnitude, datum.bad = described_value(value)


def _inside(
    path: list[tuple[CodeType, str]], around: dict[CodeType, list[tuple[CodeType, str]]]
) -> tuple[str, ...]:
    """An incomplete path inside of the paths ``around`` its first function, with no function twice."""
    met: set[CodeType] = set()
    while path[0][0] not in met:
        met.add(path[0][0])
        outer = around[path[0][0]]
        for one in path[1:]:
            first = next((k for k, (code, _) in enumerate(outer) if code is one[0]), None)
            outer = [*outer, one] if first is None else outer[: first + 1]
        path = outer
    return tuple(name for _, name in path)


def _short(value: Any) -> str:
    text = repr(value) if value else ""
    return text if len(text) <= 120 else text[:117] + "..."


def stage_view(stage: Stage, steps: Sequence[Step]) -> View:
    """The primitive graph of a stage; a node stands in the box of the first call that it computes."""
    view = View(stage.name)
    _add_nodes(view, stage.graph.nodes(), stage.origins, steps, {})
    return view


def kernel_view(found: Scheduled, steps: Sequence[Step]) -> View:
    """The graph as kernels compute it: each is a box, inside of those of the first call that it writes."""
    view = View("kernels")
    boxes: dict[int, tuple[str, ...]] = {}
    for number, instruction in enumerate(found.schedule.instructions):
        written = [found.origins.get(node.id, ()) for node in instruction.nodes]
        calls = [entry for entries in written for entry in entries if entry < len(steps)]
        around = steps[min(calls)].boxes if calls else ()
        for node in nodes_of(instruction):
            boxes.setdefault(node.id, (*around, f"kernel {number}: {instruction.name}"))
    _add_nodes(view, found.schedule.graph.nodes(), found.origins, steps, boxes)
    return view


def _add_nodes(
    view: View,
    nodes: Sequence[Node],
    origins: dict[int, frozenset[int]],
    steps: Sequence[Step],
    boxes: dict[int, tuple[str, ...]],
    inside: tuple[str, ...] = (),
) -> None:
    numbers: dict[int, int] = {}
    for node in nodes:
        type, nbytes = str(node.type), node.type.nbytes
        if node.op.kind == "source":
            kind = "input" if node.op.name == "input" else "constant"
            numbers[node.id] = view.add_datum(
                type, nbytes, kind=kind, name=f"{node.op.name} {_short(node.attrs)}"
            )
            continue
        own = [steps[entry] for entry in sorted(origins.get(node.id, ())) if entry < len(steps)]
        first = own[0] if own else None
        path = inside or boxes.get(node.id, () if first is None else first.boxes)
        (numbers[node.id],) = view.add_step(
            node.op.name,
            [numbers[value.id] for value in node.inputs],
            [(type, nbytes)],
            boxes=path,
            attributes="" if node.op.kind == "control_flow" else _short(node.attrs),
            backward=bool(own) and all(step.backward for step in own),
            lines=list(dict.fromkeys(step.lines[0] for step in own if step.lines)),
            source=first.source if first else "",
            flops=node_flops(node),
            nbytes=nbytes,
        )
        if node.op.kind == "control_flow":
            program: Any = node.op
            for number, body in enumerate(program.graphs(node.attrs)):
                box = (*path, f"{node.op.name} {len(view.steps)}: body {number}")
                _add_nodes(view, body.nodes(), {}, (), {}, box)
