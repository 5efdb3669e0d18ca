"""``draw()``: a picture of a tensor's trace, a function, a module, a declared graph or an expression."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from html import escape
from typing import Any

from twofold import _core
from twofold.debug.exports import model_explorer, overlays, to_dot, write_json
from twofold.debug.module_scopes import ModuleScopes
from twofold.debug.nesting import tensors_in
from twofold.debug.page import page
from twofold.debug.picture import (
    Picture,
    Recorded,
    View,
    join_scattered_boxes,
    kernel_view,
    lines_of,
    source_of,
    stage_view,
)
from twofold.debug.recording import kept_runs
from twofold.debug.stepping import uncompiled
from twofold.errors import ArgumentError
from twofold.files import atomic_write
from twofold.frontend.gradients import enable_grad
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.types import TensorType
from twofold.nn.module import Module
from twofold.runtime.attribution import planned_as, scheduled, stages_of, traced_graph
from twofold.runtime.profiling import Frame, Recorder
from twofold.runtime.tracing import here

Tensor = _core.Tensor


class Drawing:
    """A picture: shown in notebooks, saved as a page, exported for other viewers."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    def html(self) -> str:
        """One page that needs no network."""
        return page(self.picture)

    def save(self, path: Any) -> None:
        """Write the page, or what the end of ``path`` asks for: ``.html``, ``.dot`` or ``.gv``, ``.json``."""
        text = str(path)
        if text.endswith((".dot", ".gv")):
            data = to_dot(self.picture).encode()
        elif text.endswith(".json"):
            data = write_json(model_explorer(self.picture))
        elif text.endswith((".html", ".htm")):
            data = self.html().encode()
        else:
            raise ArgumentError(
                f"draw: what to write to {text!r}, at {here()}", "Let it end in .html, .dot, .gv or .json."
            )
        with atomic_write(path) as file:
            file.write(data)

    def to_dot(self) -> str:
        """The first stage for Graphviz, which Netron reads, too."""
        return to_dot(self.picture)

    def to_model_explorer(self) -> dict[str, Any]:
        """All stages for Model Explorer."""
        return model_explorer(self.picture)

    def to_overlays(self) -> dict[str, Any]:
        """Times, bytes and floating-point operations as data over the nodes, for Model Explorer, by what they are."""
        return overlays(self.picture)

    def _repr_html_(self) -> str:
        return f'<iframe style="width:100%;height:600px;border:1px solid #ccc" srcdoc="{escape(self.html())}"></iframe>'

    def __repr__(self) -> str:
        views = ", ".join(f"{view.name} {len(view.steps)}" for view in self.picture.views)
        return f"<drawing of {self.picture.title}; operations: {views}>"


def draw(
    thing: Any,
    *inputs: Any,
    backward: bool = False,
    values: bool = False,
    times: bool = False,
    stages: bool = True,
    path: Any = None,
) -> Drawing:
    """A picture of what ``thing`` computes, in boxes that open and close.

    Args:
        thing: A tensor or expression (what stands above it), a list of them, a module or function (with its inputs), or
            a declared graph, session, operation or tensor, or a ``debug.record`` block.
        inputs: What a module or function is called with.
        backward: Whether to draw the gradients of the sum of the result, too.
        values: Whether to compute what every value holds.
        times: Whether to run what is drawn, and measure it.
        stages: Whether to draw what the compiler makes of it, too: after each pass, and as kernels.
        path: Where to write a page, or one of the formats of ``Drawing.save``.

    Raises ArgumentError for what nothing stands above, and what cannot be drawn.

    >>> import twofold as torch
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> drawing = torch.draw((x * 2.0).sum())
    >>> [step.name for step in drawing.picture.views[0].steps]
    ['multiply', 'sum']
    """
    declared = _declared(thing)
    if declared is not None:
        if inputs or backward or values or times:
            raise ArgumentError(
                f"draw: inputs, backward, values and times are of what runs, at {here()}",
                "Draw the declared graph without them.",
            )
        made = Drawing(Picture(declared.name, [declared]))
    else:
        made = Drawing(_drawn(thing, inputs, backward, values, times, stages))
    if path is not None:
        made.save(path)
    return made


_DONE = {"draw": "drawn", "explain": "explained", "story": "told"}


def recorded(
    thing: Any, inputs: Sequence[Any], backward: bool, what: str = "draw"
) -> tuple[str, Recorded, Callable[[], list[Tensor]]]:
    """What to call a thing, all calls above what it computes, and what computes it again; ``what`` asks for that.

    Raises ArgumentError for what nothing stands above, and what is no tensor, module or function.
    """
    if (block := _record_block(thing)) is not None:
        return _of_block(block, inputs, backward, what)
    title, run, calls = _runnable(thing, inputs, backward, what)
    names = _names(thing, inputs)
    if calls:
        _core.flush()  # what the program has left to do, such as the initial values of parameters
    before = _core.traced_runs() if calls else 0
    tape: list[Any] = []
    with ModuleScopes(each_call=True) as scopes, kept_runs(tape) if calls else nullcontext():
        outputs = run()
        if calls:
            _finish(outputs)
    if not tape and (not outputs or all(_core.trace_above([one]) is None for one in outputs)):
        raise ArgumentError(
            f"{what}: nothing stands above {title}, at {here()}",
            "Take a tensor before it is observed, one that needs a gradient, or a function with its inputs; of a step "
            "that updates parameters, the function of its loss, and backward=True.",
        )
    for number, output in enumerate(outputs):
        names.setdefault(_core.value_key(output), (f"output {number}" if number else "output", "value"))
    found = Recorded(outputs, names, before, tape)
    found.classes = scopes.classes()
    join_scattered_boxes(found.view.steps, found.classes)
    return title, found, run


def _record_block(thing: Any) -> Any:
    """A ``debug.record`` block; None for anything else."""
    module = sys.modules.get("twofold.debug.values")
    return thing if module is not None and isinstance(thing, module.record) else None


def _of_block(
    block: Any, inputs: Sequence[Any], backward: bool, what: str
) -> tuple[str, Recorded, Callable[[], list[Tensor]]]:
    """As ``recorded``, of what ran in a block."""
    if inputs or backward:
        raise ArgumentError(
            f"{what}: inputs or backward of a record block, which has run, at {here()}", "Leave them out."
        )
    if not block.tape:
        raise ArgumentError(
            f"{what}: nothing ran in the record block, at {here()}", "Compute something in it."
        )

    def again() -> list[Tensor]:
        raise ArgumentError(
            f"{what}: times of a record block, which has run, at {here()}", "Give a function."
        )

    return "record", Recorded([], {}, tape=block.tape), again


def _finish(outputs: Sequence[Tensor]) -> None:
    """Compute what is recorded if somebody holds more of it than the outputs of a function, such as new parameters."""
    above = _core.trace_above(list(outputs)) if outputs else None
    found = 0 if above is None else len({ref for ref in above[1][2] if ref >= 0})
    if _core.pending_held() > found:
        _core.flush()


def _drawn(
    thing: Any, inputs: Sequence[Any], backward: bool, values: bool, times: bool, stages: bool
) -> Picture:
    title, found, run = recorded(thing, inputs, backward)
    views = [found.view]
    if stages:
        views += _stage_views(found)
    if times:
        _measure(found, run)
    if values:
        found.compute()
    return Picture(title, views, found.classes)


def _runnable(
    thing: Any, inputs: Sequence[Any], backward: bool, what: str
) -> tuple[str, Callable[[], list[Tensor]], bool]:
    """What to call a thing, what gives the tensors to draw, and whether that calls the thing."""
    calls = callable(thing) and not isinstance(thing, Tensor) and not hasattr(thing, "_tensor")
    if calls:
        thing = uncompiled(thing)

        def call() -> list[Tensor]:
            with enable_grad():
                return list(tensors_in(thing(*inputs)))

        forward: Callable[[], list[Tensor]] = call
        title = type(thing).__name__ if isinstance(thing, Module) else getattr(thing, "__name__", "function")
    else:
        if inputs:
            raise ArgumentError(
                f"{what}: inputs of {type(thing).__name__}, which is not called, at {here()}",
                "Leave them out.",
            )
        forward = lambda: list(tensors_in(thing))
        title = type(thing).__name__
        if any(one._is_symbolic for one in forward()):
            raise ArgumentError(
                f"{what}: {title} of a declared graph, which runs in a session, at {here()}",
                "Draw the graph, or give a function that computes the same at once.",
            )
        if not forward():
            raise ArgumentError(
                f"{what}: {type(thing).__name__} cannot be {_DONE[what]}, at {here()}",
                "Give a tensor, a module or function with its inputs, a graph, session or expression.",
            )
    return title, ((lambda: _with_gradients(forward(), what)) if backward else forward), calls


def _with_gradients(outputs: list[Tensor], what: str) -> list[Tensor]:
    """The outputs, and the gradients of their sums with respect to what they were made of."""
    roots = [one for one in outputs if one.requires_grad]
    if not roots:
        raise ArgumentError(
            f"{what}: no gradient flows to what is {_DONE[what]}, at {here()}", "Let something require one."
        )
    targets: dict[int, Tensor] = {}
    seen, waiting = {_core.value_key(root) for root in roots}, list(roots)
    while waiting:
        found = _core.trace_above([waiting.pop()])
        for leaf in found[3] if found else ():
            if isinstance(leaf, Tensor) and leaf.requires_grad and _core.value_key(leaf) not in seen:
                seen.add(_core.value_key(leaf))
                waiting.append(leaf)
                if leaf.is_leaf:
                    targets[_core.value_key(leaf)] = leaf
    sums = tuple(root.sum() if root.ndim else root for root in roots)
    given = _core.gradients_of(sums, (None,) * len(sums), tuple(targets.values()), True, False, False)
    return [*outputs, *[one for one in given if one is not None]]


def _names(thing: Any, inputs: Sequence[Any]) -> dict[int, tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    for number, one in enumerate(tensors_in(list(inputs))):
        found[_core.value_key(one)] = (f"input {number}", "input")
    if isinstance(thing, Module):
        for name, one in thing.named_parameters():
            found[_core.value_key(one)] = (name, "parameter")
        for name, one in thing.named_buffers():
            found[_core.value_key(one)] = (name, "buffer")
    return found


def _stage_views(found: Recorded) -> list[View]:
    """What the compiler makes of the trace, of the longest where the program looked at values on the way."""
    lengths = [len(description[1]) for description, _, _ in found.traces]
    longest = lengths.index(max(lengths))
    description = found.traces[longest][0]
    first = sum(lengths[:longest])
    steps = found.view.steps[first : first + lengths[longest]]
    stages = stages_of(traced_graph(description))
    with planned_as(description):
        kernels = kernel_view(scheduled(stages[-1]), steps)
    return [*(stage_view(one, steps) for one in stages), kernels]


def _measure(found: Recorded, run: Callable[[], list[Tensor]]) -> None:
    """Run what is drawn once more, after it has run once; a step has the mean time of its calls."""
    for one in run():
        one._realise()
    recorder = Recorder()
    with ModuleScopes():
        recorder.start()
        try:
            start = time.perf_counter()
            for one in run():
                one._realise()
            took = time.perf_counter() - start
        finally:
            recording = recorder.stop()
    waiting: dict[tuple[str, bool, tuple[str, ...]], list[float]] = {}
    for call in recording.recorded_calls():
        waiting.setdefault((call.name, call.is_backward, tuple(lines_of(call.frames))), []).append(
            call.seconds
        )
    for step in found.view.steps:
        lines = tuple(line for line in step.lines if not line.startswith("backward at"))
        own = waiting.get((step.name, step.backward, lines))
        step.seconds = min(sum(own) / len(own), took) if own else 0.0


def _declared(thing: Any) -> View | None:
    """The operations of a declared graph, by the names that they were given; None for anything else."""
    if hasattr(thing, "get_operations"):
        return _declared_view("graph", thing.get_operations())
    if (session := session_of(thing)) is not None:
        return _declared_view("session", session.graph.get_operations())
    fetches = list(thing) if isinstance(thing, (tuple, list)) else [thing]
    operations = [operation_of(one) for one in fetches]
    if not operations or None in operations:
        return None
    title = operations[0].name if len(operations) == 1 else "fetches"
    return _declared_view(title, operations_above(operations))


def session_of(thing: Any) -> Any:
    """A session, itself or the one that a monitored session runs; None for anything else."""
    module = sys.modules.get("twofold.static.session.session")
    if module is None:
        return None
    held = thing if isinstance(thing, module.BaseSession) else getattr(thing, "_session", None)
    return held if isinstance(held, module.BaseSession) else None


def operation_of(thing: Any) -> Any:
    """A declared operation, itself or the one of a tensor; None for anything else."""
    if hasattr(thing, "control_inputs"):
        return thing
    return getattr(thing, "op", None) if isinstance(thing, Tensor) and thing._is_symbolic else None


def operations_above(operations: Sequence[Any]) -> list[Any]:
    """Operations and all that they need, in the order of their declaration."""
    found, waiting = {one.name: one for one in operations}, list(operations)
    while waiting:
        one = waiting.pop()
        for other in (*[tensor.op for tensor in one.inputs], *one.control_inputs):
            if other.name not in found:
                found[other.name] = other
                waiting.append(other)
    return sorted(found.values(), key=lambda one: one.number)


def _declared_view(title: str, operations: Sequence[Any]) -> View:
    view = View(title)
    numbers: dict[int, int] = {}
    steps = {operation.name: number for number, operation in enumerate(operations)}
    for operation in operations:
        inputs = [
            numbers[_core.value_key(one)] for one in operation.inputs if _core.value_key(one) in numbers
        ]
        frames = [Frame(*frame) for frame in operation.outputs[0]._location] if operation.outputs else []
        *boxes, name = operation.name.split("/")
        results = [(_declared_type(one.type_), max(one.type_.nbytes, 0)) for one in operation.outputs]
        # what comes from outside is known by its name: all variables are of one type
        shown = (operation.type, name) if operation.inputs else (name, operation.type)
        outputs = view.add_step(
            shown[0],
            inputs,
            results,
            boxes=tuple(boxes),
            attributes=shown[1],
            backward=boxes[:1] == ["gradients"],
            lines=lines_of(frames),
            source=source_of(frames),
            after=[steps[one.name] for one in operation.control_inputs if one.name in steps],
        )
        for number, one in zip(outputs, operation.outputs):
            numbers[_core.value_key(one)] = number
            view.data[number].name = one.name
    return view


def _declared_type(type: TensorType) -> str:
    """A type as text, with a question mark for each size that is not known."""
    if type.shape == UNKNOWN_RANK:
        return f"{type.dtype.name}[...]"
    return f"{type.dtype.name}[{','.join('?' if size < 0 else str(size) for size in type.shape)}]"
