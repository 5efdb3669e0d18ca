"""What functions of the program are called with in a frame that stands for one of them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from twofold import _core
from twofold.debug.activations import Activation, Item
from twofold.debug.frame_writer import FrameWriter, Stop
from twofold.debug.handed import GENERATOR, completed, given_back, handed, handing, makers_of, name_of
from twofold.debug.names import Held, Scope, arguments_of
from twofold.debug.source import (
    COMPREHENSIONS,
    ELEMENTWISE,
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

Tensor = _core.Tensor


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
        self.iterated: dict[
            Any, list[tuple[Any, Any]]
        ] = {}  # loops, with the calls that made the generators that they go over, and who did
        self.times = 0  # that a generator has gone on
        self.rows: list[Held] = []  # what generators gave to the header of a loop
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
        sent: Held = None,
    ) -> tuple[str, list[Held], Held]:
        """Write another activation; its name, what it is given, and what it returns.

        ``generator`` is what made the generator that goes on, a call in ``owner``, with what was ``sent`` to it; its
        variables are as it left them.
        """
        raise NotImplementedError

    def name(self, name: str, held: Held) -> None:
        """Bind a name."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Have variables hold the current versions of their values."""
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
        above = self.stop_at(item.site)
        root = root_of(expression, position_of(item.site).statement if item.site is not None else None)
        known = here is not None and root is not None
        call = handing(root, code, here) if known else None
        owner, generator = self._maker(item, root) if known and code.co_flags & GENERATOR else (self, None)
        self.standing = expression
        self._begin_over(expression, root, owner, call or generator)
        if call is not None:
            given = self._handed(call, code)
        elif generator is not None:
            given = arguments_of(completed(generator, owner.code), parameters_of(code), owner.scope)
        else:
            given = self._arguments(item, expression)
        is_sent = generator is not None and name_of(getattr(expression, "func", None)) == "send"
        sent = self.scope.held(expression.args[0]) if is_sent else None
        name, taken, returned = self.function(item.child, given, above, generator, owner, sent)
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
        elif generator is not None and generator in self.eager:
            self.returned.setdefault(generator, []).append(returned)
            self.scope.made[generator] = list(self.returned[generator])
            if _takes_next(expression):
                self.scope.made[expression] = returned
        elif generator is None or (_takes_next(expression) and owner.generators[generator].suspends):
            self.scope.made[expression] = returned
        if isinstance(expression, (ast.For, ast.AsyncFor, *ELEMENTWISE)) and generator is not None:
            self.rows.append(returned)
            made = self.iterated.setdefault(expression, [])
            made += [(owner, generator)] if (owner, generator) not in made else []
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

    def _maker(self, item: Item, root: Any) -> tuple[Any, Any]:
        """Who made a generator, this function or one that runs around it, and the expression.

        Of several it is one that knows what the generator reads, and has gone on the fewest times.
        """
        code: Any = item.child.code  # type: ignore[union-attr]
        found: list[tuple[Any, Any]] = [(self, one) for one in makers_of(root, code, self.code)]
        owner = self.outer
        if self.code.co_name in COMPREHENSIONS and owner is not None and len(getattr(root, "generators", ())):
            outside = list(ast.walk(root.generators[0].iter))
            found = [(owner if one in outside else self, one) for _, one in found]
        if not found and isinstance(owner, type(self)) and isinstance(owner.standing, ast.With):
            found = [(owner, one) for one in makers_of(owner.standing, code, owner.code)]
        if not found:
            found = list(self._makers_around(item, code))
        if len(found) > 1:
            found = [one for one in found if self._knows(*one, item)] or found
        return min(found, key=lambda one: self._times(*one)) if found else (self, None)

    def _makers_around(self, item: Item, code: CodeType) -> Iterator[tuple[Any, Any]]:
        """Calls of a generator's function anywhere in this function and those around it, which know what it reads."""
        owner: Any = self
        while isinstance(owner, CallWriter) and owner.code is not None:
            definition = function_of(owner.code)
            for one in ast.walk(definition) if definition is not None and code.co_name != "<genexpr>" else ():
                is_call = isinstance(one, ast.Call) and name_of(one.func) == code.co_name
                if is_call and self._knows(owner, one, item):
                    yield owner, one
            owner = owner.outer

    @staticmethod
    def _times(owner: Any, call: Any) -> int:
        before = owner.generators.get(call)
        return 0 if before is None else before.times

    @staticmethod
    def _knows(owner: Any, call: Any, item: Item) -> bool:
        """Whether a generator that a call made knows what is read as one goes on."""
        first = next(item.child.calls(), None) if item.child is not None else None
        before = owner.generators.get(call)
        if first is None or item.child is None or item.child.code is None:
            return False
        if before is not None:
            known = before.known()
        else:
            made = arguments_of(completed(call, owner.code), parameters_of(item.child.code), owner.scope)
            known = {one for one in made.values() if isinstance(one, int)}
        return bool(known & set(first.operands))

    def known(self) -> set[int]:
        """The values that a function has come by."""
        return {one.result for one in self.activation.calls()} | set(self.scope.values().values())

    def is_fresh(self, loop: Any, item: Item) -> bool:
        """Whether the generators that a loop goes over have begun anew: what is called reads nothing that they know."""
        before = [
            owner.generators[one] for owner, one in self.iterated.get(loop, ()) if one in owner.generators
        ]
        call = next(item.child.calls(), None) if item.child is not None else None
        if not before or call is None or not call.operands:
            return False
        return not any(one.known() & set(call.operands) for one in before)

    def _begin_over(self, expression: Any, root: Any, owner: Any, source: Any) -> None:
        """Forget what a generator or function of Python did before, where a loop over it or a statement begins."""
        if isinstance(expression, ast.With) and expression not in self.inside:
            for one in [inner for item in expression.items for inner in ast.walk(item)]:
                self.generators.pop(one, None)
        elif isinstance(expression, (ast.For, ast.AsyncFor)):
            made = self.iterated.setdefault(expression, [])
            if self.iterations.number.get(expression) == 0 and (owner, source) not in made:
                owner.generators.pop(source, None)
                self.returned.pop(source, None)
            made += [(owner, source)] if (owner, source) not in made else []
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

    def is_module(self, function: Any) -> bool:
        """Whether what is called may be a module: no method of a tensor, and no function of this library."""
        if function is None or self.code is None or hasattr(Tensor, getattr(function, "attr", "")):
            return False
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        name = getattr(root, "id", "")
        found = self.frames.space(self.code.co_filename).get(name)
        return hasattr(found, "forward") or not self.is_library(name)

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
    return name_of(getattr(expression, "func", None)) in ("", "next", "send")
