"""What tensors, lists and dictionaries of the program have become where it wrote to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold.debug.names import Held
from twofold.debug.recording import Call, Recording
from twofold.ir.layout import Layout, row_major


class _View(NamedTuple):
    """What a view shows: the value that it is a part of, and how."""

    base: int
    name: str
    attrs: tuple[Any, ...]
    rest: tuple[Any, ...]  # the other operands, Python numbers as they are


class Storage:
    """Values by number and containers, with what writes have made of each; ``version`` counts the writes."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.version = recording, 0
        self.derived: dict[int, Call] = {}
        """Views of tensors that were written to, which the recording does not read, or later."""
        self.read_again: dict[int, int] = {}
        """Calls that a run makes to read a view again, with what the variables have held since the write."""
        self._now: dict[int, int | None] = {}
        self._views: dict[int, _View] = {}
        self._calls: dict[_View, Call] = {}  # that made a view
        self._layouts: dict[int, Layout | None] = {}
        self._containers: dict[int, tuple[Held, Held]] = {}

    def now(self, held: Held) -> Held:
        """The current version of something, itself if nothing was written to."""
        if isinstance(held, (tuple, list, dict)):
            return self._container_now(held)
        if not isinstance(held, int):
            return held
        while held in self._now:
            held = self._now[held]
        view = self._views.get(held)
        if view is None:
            return held
        base = self.now(view.base)
        return held if base == view.base else base and self._view_of(view, base)

    def _container_now(self, held: Any) -> Held:
        while id(held) in self._containers:
            _, held = self._containers[id(held)]
        if isinstance(held, dict):
            parts: Any = {key: self.now(one) for key, one in held.items()}
            return held if all(parts[key] is held[key] or parts[key] == held[key] for key in held) else parts
        if not isinstance(held, (tuple, list)):
            return held
        parts = [self.now(one) for one in held]
        return held if parts == list(held) else type(held)(parts)

    def write(self, before: Held, held: Held) -> None:
        """Replace a value or a container by a later version; None: what it holds is not known any more."""
        if before is None or before is held:
            return
        if isinstance(before, (list, dict)):
            self._containers[id(before)] = before, held
        elif isinstance(before, int) and self.now(before) == before:
            while held is None and before in self._views:
                before = self._views[before].base
            self._now[before] = held
        else:
            return
        self.version += 1

    def note(self, calls: Sequence[Call]) -> None:
        """Note the views that calls of one statement made, and what they wrote through views."""
        fresh: set[int] = set()
        written: set[int] = set()
        for call in calls:
            if call.op.is_written_view:
                self._write_view(call, call.operands[1] in fresh)
                written.add(call.result)
            elif call.op.is_copy and call.operands[0] in written:
                self._copied(call.operands[0], call.result)
            elif call.op.is_view and call.operands and self._shares(call):
                self._read_view(call)
                continue
            fresh.add(call.result)

    def _view(self, base: int, name: str, attrs: tuple[Any, ...], rest: Sequence[int]) -> _View:
        given = [self.recording.given.get(one, one) for one in rest]
        return _View(
            base, name, attrs, tuple(rest[k] if hasattr(one, "type_") else one for k, one in enumerate(given))
        )

    def _read_view(self, call: Call) -> None:
        view = self._view(call.operands[0], call.op.name, call.attrs, call.operands[1:])
        self._views[call.result] = view
        made = self._calls.setdefault(view, call)
        if made.result in self.derived:
            self.read_again[call.result] = self._now[call.result] = made.result

    def _write_view(self, call: Call, is_fresh: bool) -> None:
        """A view's write: the base becomes the result, of which the value written is the same view if it fits."""
        name, attrs = call.attrs
        base, value, *rest = call.operands
        self._now[base] = call.result
        self.version += 1
        before = self._calls.get(self._view(base, name, attrs, rest))
        type = call.types[1] if len(call.types) > 1 else None
        if before is not None and is_fresh and type == before.result_type:
            view = self._view(call.result, name, attrs, rest)
            self._views[value] = view
            self._calls[view] = before.on((call.result, *rest), value)

    def _copied(self, before: int, held: int) -> None:
        """What was written through a view has become a copy of itself, in the memory that it had."""
        self._now[before] = held
        for number, view in self._views.items():
            if view.base == before:
                made = self._calls[view]
                self._views[number] = moved = view._replace(base=held)
                self._calls[moved] = made.on((held, *made.operands[1:]), made.result)

    def _view_of(self, view: _View, base: int) -> int:
        """The number of a view of what was written to."""
        moved = view._replace(base=base)
        before = self._calls.get(moved)
        if before is None:
            made = self._calls[view]
            before = made.on((base, *made.operands[1:]), self.recording.new_number())
            self._calls[moved] = self.derived[before.result] = before
            self._views[before.result] = moved
        return before.result

    def known_view(self, call: Call) -> int:
        """What variables hold of the view that a call makes; what the call gives where it is the first to make it."""
        if not (call.op.is_view and call.operands and self._shares(call)):
            return call.result
        made = self._calls.get(self._view(call.operands[0], call.op.name, call.attrs, call.operands[1:]))
        return call.result if made is None else made.result

    def _shares(self, call: Call) -> bool:
        """Whether a call's result shows the storage of its operand: strides may not express it."""
        if not call.types or call.types[0].weak:
            return False
        if not call.op.may_copy:
            return True
        base = self._layout_of(call.operands[0], call.types[0])
        return base is not None and self._laid_out(call, base) is not None

    def _layout_of(self, number: int, type: Any) -> Layout | None:
        view = self._views.get(number)
        if view is None:
            return Layout(type.dtype, type.shape, row_major(type.shape))
        if number not in self._layouts:
            made = self._calls[view]
            below = self._layout_of(view.base, made.types[0])
            self._layouts[number] = below and self._laid_out(made, below)
        return self._layouts[number]

    def _laid_out(self, call: Call, base: Layout) -> Layout | None:
        starts = [self.recording.given.get(one, 0) for one in call.operands[1:]]
        found: Layout | None = call.op.layout(
            call.attrs, base, [one if isinstance(one, int) else 0 for one in starts]
        )
        return found
