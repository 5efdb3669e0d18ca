"""What functions of the program are called with in a frame that stands for one of them."""

from __future__ import annotations

import ast
import builtins
from types import CodeType
from typing import TYPE_CHECKING, Any

from twofold.debug.activations import Activation, Item
from twofold.debug.frame_writer import FrameWriter, Stop
from twofold.debug.handed import GENERATOR, completed, given_back, handed, handing, maker_of, name_of
from twofold.debug.names import Held, Scope, arguments_of
from twofold.debug.source import (
    function_of,
    is_method,
    parameters_of,
    position_of,
    root_of,
    takes_context,
)
from twofold.ops.control_flow.programs import LoopSpec

if TYPE_CHECKING:
    from twofold.debug.frames import Frames


class CallWriter(FrameWriter):
    """Writes calls of functions of the program."""

    def __init__(
        self, frames: Frames, activation: Activation, scope: Scope, above: Stop | None, backward: bool
    ) -> None:
        super().__init__(frames, activation, scope, above, backward)
        self.generators: dict[Any, Any] = {}  # what was written last of each, by the call that made it
        self.suspends = False  # a generator that may go on
        self.changed: dict[str, Held] = {}  # variables that a function in this one has assigned to
        self.returned: dict[
            Any, list[Held]
        ] = {}  # what a function returned to the call of Python's that called it
        self.iterated: dict[Any, Any] = {}  # loops, with the calls that made the generators that they go over
        self.standing: Any = None  # the expression that calls the function that is written
        self.inside: list[ast.With] = []  # statements that were entered
        self.eager: list[Any] = []  # generators and the like that a statement goes through

    def function(
        self,
        child: Activation,
        given: dict[str, Held],
        above: Stop | None,
        generator: Any = None,
        owner: Any = None,
    ) -> tuple[str, list[Held], Held]:
        """Write another activation; its name, what it is given, and what it returns.

        ``generator`` is what made the generator that goes on, a call in ``owner``; its variables are as it left them.
        """
        raise NotImplementedError

    def name(self, name: str, held: Held) -> None:
        """Bind a name."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Have variables hold what has taken the place of what they held."""
        raise NotImplementedError

    def is_backward(self, item: Item) -> bool:
        """Whether an item is a call of a backward pass, shown on a line of the forward pass."""
        call = item.call
        return call is not None and (
            call.forward is not None or call.result in self.frames.cotangents.forward
        )

    def call_function(self, item: Item, expression: Any) -> None:
        """A call of a function of the program."""
        assert item.child is not None and item.child.code is not None
        code, here = item.child.code, self.code
        above = Stop(self.above, here, item.site, self.scope.known())
        root = root_of(expression, position_of(item.site).statement if item.site is not None else None)
        known = here is not None and root is not None
        call = handing(root, code, here) if known else None
        owner, generator = self._maker(root, code) if known and code.co_flags & GENERATOR else (self, None)
        self.standing = expression
        self._begin_over(expression, root, call or generator)
        if call is not None:
            given = self._handed(call, code)
        elif generator is not None:
            given = arguments_of(completed(generator, owner.code), parameters_of(code), owner.scope)
        else:
            given = self._arguments(item, expression)
        name, taken, returned = self.function(item.child, given, above, generator, owner)
        values = [self.do("held", held) for held in taken]
        self.put(ast.Expr(ast.Call(ast.Name(name, ast.Load()), values, [])))
        for variable, held in self.changed.items():
            if variable in self.scope.names:
                for one, now in self.scope.bind(ast.Name(variable, ast.Store()), held):
                    self.name(one, now)
        self.changed = {}
        self.refresh()
        returned = self.frames.storage.now(returned)
        if call is not None:
            self.returned.setdefault(call, []).append(returned)
            found = given_back(call, self.returned[call])
            if isinstance(expression, (ast.For, ast.AsyncFor)):
                self.scope.made[expression] = None if found is None else returned
            else:
                self.scope.made[call] = found
        elif generator is None or (_takes_next(expression) and owner.generators[generator].suspends):
            self.scope.made[expression] = returned
        if isinstance(expression, ast.With):
            self._entered(expression, code, returned)

    def _entered(self, statement: ast.With, code: CodeType, returned: Held) -> None:
        """What a ``with`` statement does with what a context manager returns."""
        if code.co_name != "__enter__":
            self.inside.remove(statement)
            return
        self.inside.append(statement)
        if len(statement.items) == 1:
            for variable, held in self.scope.bind(statement.items[0].optional_vars, returned):
                self.name(variable, held)

    def _maker(self, root: Any, code: CodeType) -> tuple[Any, Any]:
        """Who made a generator, this function or one whose ``with`` statement goes on with it, and the expression."""
        found = maker_of(root, code, self.code)
        owner = self.outer
        if found is None and isinstance(owner, type(self)) and isinstance(owner.standing, ast.With):
            return owner, maker_of(owner.standing, code, owner.code)
        return self, found

    def is_fresh(self, source: Any, item: Item) -> bool:
        """Whether a generator that is called has begun anew: it reads nothing of what the one before knew."""
        before = self.generators.get(source)
        call = next(item.child.calls(), None) if item.child is not None else None
        if before is None or call is None or not call.operands:
            return False
        known = {one.result for one in before.activation.calls()} | set(before.scope.values().values())
        return not known & set(call.operands)

    def _begin_over(self, expression: Any, root: Any, source: Any) -> None:
        """Forget what a generator or function of Python did before, where a loop over it or a statement begins."""
        if isinstance(expression, ast.With) and expression not in self.inside:
            for one in [inner for item in expression.items for inner in ast.walk(item)]:
                self.generators.pop(one, None)
        elif isinstance(expression, (ast.For, ast.AsyncFor)):
            if self.rounds.number.get(expression) == 0:
                self.generators.pop(source, None)
                self.returned.pop(source, None)
            self.iterated[expression] = source
        elif source is not None and not isinstance(expression, (ast.With, ast.AsyncWith, ast.YieldFrom)):
            inside = any(one is source for one in ast.walk(root))
            if inside and source not in self.eager:
                self.generators.pop(source, None)
                self.returned.pop(source, None)
                self.eager.append(source)

    def _handed(self, call: ast.Call, code: CodeType) -> dict[str, Held]:
        """What a function of Python gives to a function of the program that it calls."""
        returned = self.returned.setdefault(call, [])
        parameters = parameters_of(code).positional
        found = dict(zip(parameters, handed(call, len(returned), returned, self.scope)))
        return {name: held for name, held in found.items() if held is not None}

    def _arguments(self, item: Item, expression: Any) -> dict[str, Held]:
        assert item.child is not None and item.child.code is not None
        code = item.child.code
        parameters = parameters_of(code)
        if self.code is not None:
            expression = completed(expression, self.code)
        called = expression.func if isinstance(expression, ast.Call) else None
        name = getattr(called, "id", getattr(called, "attr", ""))
        if (carried := self._carried(item)) is not None and len(carried) == len(parameters.positional):
            return dict(zip(parameters.positional, carried))
        before = self.scope.made.get(expression)
        if is_method(code) and before is not None and parameters.positional:
            return {parameters.positional[0]: before}  # a module that a container hands its last result to
        if isinstance(expression, (ast.For, ast.AsyncFor)):
            expression = expression.iter  # a generator
            name = name_of(getattr(expression, "func", None))
        stranger = name != code.co_name and not is_method(code)
        if function_of(code) is None or (stranger and (self.is_library(name) or hasattr(builtins, name))):
            return {}
        if name == "apply" and name != code.co_name and takes_context(code):
            parameters = parameters._replace(positional=parameters.positional[1:])
        return arguments_of(expression, parameters, self.scope)

    def is_library(self, name: str) -> bool:
        """Whether a name of the program belongs to this library, which calls the program's functions in turn."""
        found = self.frames.space(self.code.co_filename).get(name)
        return str(getattr(found, "__module__", getattr(found, "__name__", ""))).startswith("twofold")

    def _carried(self, item: Item) -> list[int] | None:
        """What a loop hands to the function that it calls here."""
        for one in self.activation.items:
            if one.parts and one.site == item.site and isinstance(one.call.content, LoopSpec):  # type: ignore[union-attr]
                call: Any = one.call
                spec = call.content
                first = spec.first + 1
                return list(call.operands[first : first + spec.carry - 1])
        return None


def _takes_next(expression: Any) -> bool:
    """Whether an expression gives what a generator yields next."""
    return name_of(getattr(expression, "func", None)) in ("", "next")
