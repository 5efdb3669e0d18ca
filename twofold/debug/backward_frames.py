"""The frames of a backward pass: those of the forward pass, from the end to the beginning."""

from __future__ import annotations

import ast
import heapq
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from twofold.debug.activations import Activation
from twofold.debug.backward_loops import differentiated
from twofold.debug.frame_writer import NOWHERE, FrameWriter, Stop
from twofold.debug.names import Scope
from twofold.debug.recording import Call
from twofold.debug.source import Position, comprehension_around, loops_around, position_of
from twofold.ops.control_flow.programs import LoopSpec


class _Step(NamedTuple):
    """A step of a backward pass: what the frame asks for, and the call of the forward pass that it belongs to."""

    kind: str  # call, pull
    call: Call
    forward: int


def _mirrored(steps: Sequence[_Step]) -> list[_Step]:
    """The steps in the order of the calls of the forward pass from the last to the first, as far as they can be.

    What a run computes late, as it sums over uses of one value, goes with what it reads last.
    """
    position = {step.call.result: k for k, step in enumerate(steps)}
    waits = [
        {position[one] for one in step.call.operands if position.get(one, k) < k}
        for k, step in enumerate(steps)
    ]
    readers: dict[int, list[int]] = {}
    for k, reads in enumerate(waits):
        for one in reads:
            readers.setdefault(one, []).append(k)
    missing = [len(reads) for reads in waits]
    ready = [(-step.forward, k) for k, step in enumerate(steps) if not waits[k]]
    heapq.heapify(ready)
    found: list[_Step] = []
    while ready:
        _, k = heapq.heappop(ready)
        step = steps[k]
        if found and not 0 <= step.forward <= found[-1].forward:
            step = step._replace(forward=found[-1].forward)
        found.append(step)
        for reader in readers.get(k, ()):
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (-steps[reader].forward, reader))
    return found


class BackwardFrames:
    """Writes the frames of a backward pass: those of the forward pass, from the end to the beginning."""

    def __init__(self, writer: FrameWriter, calls: Sequence[Call]) -> None:
        self.writer, self.calls = writer, list(calls)
        self.frames = writer.frames
        self._begun: set[int] = set()  # loops and branches that were gone through

    def write(self) -> None:
        """Write them, and the calls of the outermost into the statement that runs the pass."""
        forward = self.frames.cotangents.forward
        steps = [_Step("call", call, forward.get(call.result, -1)) for call in self.calls]
        self._level(self.writer, [(step, self._path(step.forward)) for step in _mirrored(steps)], 0)

    def _path(self, result: int) -> list[Stop]:
        """The stops that lead to a call of the forward pass."""
        stop = self.frames.stops.get(result)
        path: list[Stop] = []
        while stop is not None:
            path.append(stop)
            stop = stop.above
        return path[::-1]

    def _level(self, writer: FrameWriter, steps: Sequence[tuple[_Step, list[Stop]]], depth: int) -> None:
        k = 0
        while k < len(steps):
            step, path = steps[k]
            if depth >= len(path):
                if path:
                    writer.position = _position_of(path[-1])
                inside = step.kind == "pull"  # of a loop or branch in the body of another
                loop = step.call.loop if inside else self.frames.cotangents.loops.get(step.forward)
                if loop is not None and loop.result not in self._begun:
                    self._begun.add(loop.result)
                    self._through(writer, loop, step.forward, depth)
                writer.put(ast.Expr(writer.do(step.kind, step.call)))
                k += 1
                continue
            end = k + 1
            while end < len(steps) and _same_activation(steps[end][1], path, depth):
                end += 1
            self._frame(writer, steps[k:end], depth)
            k = end

    def _through(self, writer: FrameWriter, loop: Call, result: int, depth: int) -> None:
        """The bodies of a loop or branch, backward; ``result`` is what the gradient comes from."""
        position, bodies = writer.position, []
        for part in loop.parts:
            steps = [_Step("pull", call, call.result) for call in differentiated(part)]
            outside, writer.body = writer.body, []
            self._level(writer, [(step, self._path(step.forward)) for step in steps], depth)
            writer.position = position
            bodies.append(writer.body or [writer.at(ast.Pass())])
            writer.body = outside
        if isinstance(loop.content, LoopSpec):
            writer.put(ast.While(writer.do("more_backward", (loop, result)), bodies[0], []))
            return
        rest: list[ast.stmt] = []
        for number in reversed(range(len(bodies))):
            chosen = writer.do("chosen_backward", (loop, result, number))
            rest = [writer.at(ast.If(chosen, bodies[number], rest))]
        writer.body += rest
        writer.put(ast.Expr(writer.do("left_backward", loop)))

    def _frame(self, outer: FrameWriter, steps: Sequence[tuple[_Step, list[Stop]]], depth: int) -> None:
        first = steps[0][1][depth]
        writer = FrameWriter(self.frames, Activation(first.code), Scope(first.names), None, True)
        writer.position = _position_of(first)
        if first.site is not None and comprehension_around(first.site) is not None:
            writer.put(ast.Pass())
            writer.once_more(writer.position.line)
        k, before = 0, first
        while k < len(steps):
            stop = steps[k][1][depth]
            if stop is not before:
                self._turn(writer, before, stop)
            writer.position = _position_of(stop)
            group = list(takewhile(lambda one, stop=stop: one[1][depth] is stop, steps[k:]))  # type: ignore[misc]
            k += len(group)
            before = stop
            writer.begin()
            self._level(writer, group, depth + 1)
        names = list(first.names)
        name = writer.define(names)
        values = [outer.do("held", first.names[one]) for one in names]
        outer.put(ast.Expr(ast.Call(ast.Name(name, ast.Load()), values, [])))

    @staticmethod
    def _turn(writer: FrameWriter, before: Stop, stop: Stop) -> None:
        """Between two statements: the headers of the loops that were repeated; the variables as they were then."""
        around = [] if stop.site is None else loops_around(stop.site)
        number = dict(before.passes)
        earlier = [loop for loop, k in stop.passes if loop in around and number.get(loop, k) != k]
        is_later = (
            before.site is not None and stop.site is not None and stop.site.offset >= before.site.offset
        )
        # another iteration of a loop has come to the ends of the loops inside
        repeated = around[: max(map(around.index, earlier)) + 1] if earlier else around[:is_later]
        for name in [one for one in writer.scope.names if one not in stop.names]:
            del writer.scope.names[name]
            writer.bound.pop(name, None)
            writer.put(ast.Delete([ast.Name(name, ast.Del())]))
        for name, held in stop.names.items():
            if writer.scope.names.get(name) != held:
                writer.scope.names[name] = held
                writer.assign(name, held)
        if repeated:
            for loop in reversed(repeated):
                writer.header(loop)
        elif stop.site is not None and comprehension_around(stop.site) is not None:
            writer.once_more(_position_of(stop).line)


def _same_activation(a: Sequence[Stop], b: Sequence[Stop], depth: int) -> bool:
    """Whether two paths go through one activation at a depth."""
    return len(a) > depth and a[depth].code is b[depth].code and a[depth].above is b[depth].above


def _position_of(stop: Stop) -> Position:
    return NOWHERE if stop.site is None else position_of(stop.site)
