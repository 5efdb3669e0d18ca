"""Loops and branches whose sizes are parameters: one body for all sizes, which are integers in attributes of its calls.

A body that is declared while sizes are symbols is a graph over these. Its calls have the graph, and beside it the sizes
that it depends on; so calls for other sizes are of one family, for which there are plans for symbolic sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from twofold.ir.graph import Content, Graph, interned
from twofold.ir.recording import Recording
from twofold.ir.sizes import Symbol
from twofold.ops.control_flow.programs import WrittenContent, has_symbols


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


class Parametric(Content):
    """A loop or branch over symbols of ``recording``: inputs of it, at ``positions``, are the parameters."""

    __slots__ = ("content", "positions", "recording")

    def __init__(self, content: WrittenContent, recording: Recording, positions: tuple[int, ...]) -> None:
        self.content, self.recording, self.positions = content, recording, positions

    def key(self) -> tuple[Any, ...]:
        return (self.positions, _words(self.content))

    def digest(self) -> str:
        return hashlib.sha256(repr(self.key()).encode()).hexdigest()

    def at(self, numbers: tuple[Any, ...]) -> WrittenContent:
        """The content for these parameters: integers, or symbols of another recording."""
        return self.content.resized(self.sizes_at(numbers))

    def sizes_at(self, numbers: tuple[Any, ...]) -> Callable[[Any], Any]:
        """What gives each size for these parameters, and anything else as it is."""
        inputs = dict(zip(self.positions, numbers, strict=True))
        return lambda size: self.recording.at(size, inputs)


def with_parameters(content: WrittenContent) -> tuple[Any, tuple[Any, ...]]:
    """What calls have in place of ``content``, and its parameters: none where it has no symbols."""
    if not has_symbols(content):
        return content, ()
    inputs = _Inputs()
    content.resized(inputs.note)
    return interned(Parametric(content, inputs.recording, tuple(inputs))), tuple(inputs.values())


def _words(value: Any) -> str:
    """A text that tells graphs, attributes and expressions of parameters from all others."""
    if isinstance(value, tuple):
        return f"({','.join(map(_words, value))})"
    if isinstance(value, Graph):
        return _words_of_graph(value)
    if isinstance(value, WrittenContent):
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
