"""Traces as what can be sent to another process and read there."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.linking import Trace
from twofold.compiler.lower.memory import MODE
from twofold.compiler.saved_plans import saved_plans
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY
from twofold.ir.types import type_from_code
from twofold.transforms.derived import stable_graph
from twofold.transforms.outline import Entry


class PortableTrace(NamedTuple):
    """A trace by the names of its operations; entries of one op instance share one list of types.

    ``tells_finite`` where its kernels are to tell what is not finite.
    """

    leaves: list[Any]
    entries: list[tuple[list[int], str, tuple[Any, ...], list[Any]]]
    outputs: list[int]
    steps: list[int]
    tells_finite: bool

    @classmethod
    def of(cls, executable: Any) -> PortableTrace:
        """What the core keeps of a trace."""
        leaves, entries, outputs, steps = _core.describe_executable(executable)
        own = [(refs, op.name, attrs, types) for _, refs, op, attrs, _, types in entries]
        return cls(leaves, own, outputs, steps, MODE.on)

    def request(self) -> bytes | None:
        """What another process reads; None where an operation has a function or a graph among its attributes."""
        try:
            return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever an object raises that cannot be pickled
            return None

    def key(self, request: bytes | None) -> bytes | None:
        """The key of its program on disk."""
        if request is None:
            return None
        operations = {id(types): (name, attrs) for _, name, attrs, types in self.entries}
        return saved_plans().key("trace", tuple(operations.values()), hashlib.sha256(request).digest())

    def trace(self) -> Trace:
        """It with its graphs."""
        kinds: dict[int, int] = {}
        graphs: list[Graph] = []
        entries: list[Entry] = []
        for refs, name, attrs, types in self.entries:
            kind = kinds.setdefault(id(types), len(graphs))
            if kind == len(graphs):
                graphs.append(stable_graph(REGISTRY[name], attrs, [type_from_code(*type) for type in types]))
            entries.append(Entry(kind, refs))
        types = [type_from_code(*type) for type in self.leaves]
        return Trace(types, graphs, entries, self.outputs, steps=self.steps)
