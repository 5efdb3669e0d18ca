"""A machine for the pickles of checkpoints, in which nothing of the file can be called.

It knows the instructions that write containers, numbers and strings. A name in the file is only a key of the tables
in ``constructors``, and of the classes that the program itself declared safe.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from twofold.serialization.constructors import (
    CLASSES,
    CONSTANTS,
    CONSTRUCTORS,
    KEYS,
    MODULES,
    Pending,
    checked_key,
)
from twofold.serialization.storages import Storage, StorageKind

_MARK = object()
_DONE = object()


class Name:
    """A name that a file refers to, with the constructor that takes its arguments."""

    __slots__ = ("build", "made", "text")

    def __init__(self, text: str, build: Callable[..., Any] | None, made: Any = None) -> None:
        self.text = text
        self.build = build
        self.made = made

    def __repr__(self) -> str:
        return f"<the name {self.text} of a file>"


class Machine:
    """Runs one pickle of ``content`` from ``start`` on.

    Args:
        content: The bytes.
        storage: Makes a storage from what the file says of it.
        safe: Classes and functions that the program allows, by full name.
        encoding: Of the strings that Python 2 wrote.
        start: Where the pickle starts; after ``run``, ``position`` is where it ended.
    """

    def __init__(
        self,
        content: bytes,
        storage: Callable[[Any], Any],
        safe: dict[str, Any],
        encoding: str = "utf-8",
        start: int = 0,
    ) -> None:
        self._content = content
        self.encoding = encoding
        self.position = start
        self._storage = storage
        self._safe = safe
        self._keys = (*KEYS, *(one for one in safe.values() if isinstance(one, type)))
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._pending = 0
        self._names: dict[tuple[str, str], Any] = {}

    def run(self) -> Any:
        """The object in the pickle; raises UnpicklingError for anything that is not one of a checkpoint."""
        try:
            while True:
                code = self._take(1)[0]
                step = _STEPS.get(code)
                if step is None:
                    raise UnpicklingError(f"instruction {code:#04x} is none that a checkpoint has")
                if step(self) is _DONE:
                    if self._pending:
                        raise UnpicklingError("an array never gets its elements")
                    return _finished([self._pop()])[0]
        except UnpicklingError as error:
            text = str(error)
            if not text.startswith("Weights only load failed"):
                text = f"Weights only load failed: {text}, before byte {self.position}."
            raise UnpicklingError(text) from None
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            struct.error,
        ) as error:
            if self._safe:
                raise
            raise UnpicklingError(
                f"Weights only load failed: the pickle is damaged before byte {self.position}: {error}."
            ) from None

    # Reading

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._content):
            raise UnpicklingError(f"the pickle is truncated: {count} bytes are announced that are not there")
        found = self._content[self.position : end]
        self.position = end
        return found

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _line(self) -> str:
        end = self._content.find(b"\n", self.position)
        if end < 0:
            raise UnpicklingError("the pickle is truncated in a name")
        found = self._content[self.position : end].decode()
        self.position = end + 1
        return found

    # The stack

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise UnpicklingError("the stack of the pickle is empty")
        return self._stack.pop()

    def _top(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise UnpicklingError("the stack of the pickle is empty")
        return self._stack[-1]

    def _after_mark(self) -> list[Any]:
        stack = self._stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index] is _MARK:
                found = stack[index + 1 :]
                del stack[index:]
                return found
        raise UnpicklingError("a group of the pickle has no start")

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self._stack.append(value)

    # Containers

    def append(self, items: list[Any]) -> None:
        """Append to the list on top."""
        target = self._top()
        if type(target) is not list:
            raise UnpicklingError(f"elements are appended to a {type(target).__name__}")
        target.extend(_finished(items))

    def set_items(self, items: list[Any]) -> None:
        """Enter keys and values into the dictionary on top."""
        target = self._top()
        if not isinstance(target, dict) or len(items) % 2:
            raise UnpicklingError(f"keys are entered into a {type(target).__name__}")
        _finished(items)
        for index in range(0, len(items), 2):
            target[checked_key(items[index], self._keys)] = items[index + 1]

    def add_items(self, items: list[Any]) -> None:
        """Add to the set on top."""
        target = self._top()
        if type(target) is not set:
            raise UnpicklingError(f"elements are added to a {type(target).__name__}")
        target.update(checked_key(item, self._keys) for item in items)

    # Names

    def name(self, module: str, name: str) -> None:
        """Push what stands for a name."""
        key = (MODULES.get(module, module), name)
        if key not in self._names:
            self._names[key] = self._resolved(key)
        self.push(self._names[key])

    def _resolved(self, key: tuple[str, str]) -> Any:
        full = ".".join(key)
        if key in CONSTANTS:
            return CONSTANTS[key]
        if key in CONSTRUCTORS or key in CLASSES:
            return Name(full, CONSTRUCTORS.get(key), CLASSES.get(key))
        if full in self._safe:
            return self._safe[full]
        raise UnpicklingError(
            f"Weights only load failed: the file refers to {full}, which is no part of a state. If you trust it, "
            f"declare it with serialization.add_safe_globals([{key[1]}]), or pass weights_only=False if you trust the "
            "file: loading it can then run code."
        )

    def _is_safe(self, value: Any) -> bool:
        return any(value is one for one in self._safe.values())

    def reduce(self) -> None:
        """Build an object from a name and arguments."""
        args, func = self._pop(), self._pop()
        if type(args) is not tuple:
            raise UnpicklingError(f"arguments are a {type(args).__name__}")
        if type(func) is Name and func.build is not None:
            found = func.build(*args)
            self._pending += type(found) is Pending
            self.push(found)
        elif self._is_safe(func):
            self.push(func(*args))
        else:
            raise UnpicklingError(f"{type(func).__name__} {func!r:.100} would be called")

    def new_object(self, options: bool) -> None:
        """Make an instance of a class that the program declared safe."""
        given = self._pop() if options else {}
        args, kind = self._pop(), self._pop()
        if type(args) is not tuple or type(given) is not dict:
            raise UnpicklingError("arguments of a class are no tuple")
        if isinstance(kind, type) and self._is_safe(kind):
            self.push(kind.__new__(kind, *args, **given))
        else:
            raise UnpicklingError(f"{kind!r:.100} would be called")

    def build(self) -> None:
        """Give the object on top its state."""
        state, target = self._pop(), self._pop()
        if type(target) is Pending:
            index, target = target.index, target.finish(state)
            self._pending -= 1
            if index is not None:
                self._memo[index] = target
        elif type(target) is OrderedDict:
            _give_attributes(target, state)
        elif self._is_safe(type(target)):
            _set_state(target, state)
        else:
            raise UnpicklingError(f"a state is given to a {type(target).__name__}")
        self.push(target)

    def persistent(self) -> None:
        """Push a storage."""
        self.push(self._storage(self._pop()))

    def remember(self, index: int) -> None:
        """Keep the top of the stack."""
        found = self._memo[index] = self._top()
        if type(found) is Pending:
            found.index = index

    def recall(self, index: int) -> None:
        """Push what was kept."""
        if index not in self._memo:
            raise UnpicklingError(f"object {index} is used before it is there")
        self.push(self._memo[index])


_INTERNAL = (Name, Pending, Storage, StorageKind)


def _finished(items: list[Any]) -> list[Any]:
    """``items``, which may be part of the result: no names and storages, which only constructors take."""
    for item in items:
        for one in item if type(item) is tuple else (item,):
            if type(one) in _INTERNAL:
                raise UnpicklingError(f"{one!r:.100} stands where a value is expected")
    return items


def _give_attributes(target: Any, state: Any) -> None:
    """Attributes beside the entries of an ordered dictionary; none that would hide a method."""
    if type(state) is not dict:
        raise UnpicklingError(f"the state of an OrderedDict is a {type(state).__name__}")
    for name, value in state.items():
        if type(name) is not str or hasattr(OrderedDict, name):
            raise UnpicklingError(f"an OrderedDict gets an attribute {name!r:.100}")
        target.__dict__[name] = value


def _set_state(target: Any, state: Any) -> None:
    """What pickle does for an object of a class that was declared safe."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    for name, value in (state or {}).items():
        target.__dict__[name] = value
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _protocol(machine: Machine) -> None:
    if machine._number(1) > pickle.HIGHEST_PROTOCOL:
        raise UnpicklingError("the protocol of the pickle is newer than this Python's")


def _frame(machine: Machine) -> None:
    if machine._number(8) > len(machine._content) - machine.position:
        raise UnpicklingError("the pickle is truncated in a frame")


def _float(machine: Machine) -> None:
    machine.push(struct.unpack(">d", machine._take(8))[0])


def _signed(count: int) -> Callable[[Machine], None]:
    return lambda machine: machine.push(int.from_bytes(machine._take(count), "little", signed=True))


def _long(prefix: int) -> Callable[[Machine], None]:
    def step(machine: Machine) -> None:
        machine.push(int.from_bytes(machine._take(machine._number(prefix)), "little", signed=True))

    return step


def _text(prefix: int) -> Callable[[Machine], None]:
    def step(machine: Machine) -> None:
        machine.push(str(machine._take(machine._number(prefix)), "utf-8", "surrogatepass"))

    return step


def _old_text(prefix: int) -> Callable[[Machine], None]:
    return lambda machine: machine.push(machine._take(machine._number(prefix)).decode(machine.encoding))


def _bytes(prefix: int, kind: Any = bytes) -> Callable[[Machine], None]:
    return lambda machine: machine.push(kind(machine._take(machine._number(prefix))))


def _stack_global(machine: Machine) -> None:
    name, module = machine._pop(), machine._pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("a name is no string")
    machine.name(module, name)


def _last(count: int) -> Callable[[Machine], None]:
    def step(machine: Machine) -> None:
        items = [machine._pop() for _ in range(count)]
        machine.push(tuple(reversed(items)))

    return step


def _global(machine: Machine) -> None:
    machine.name(machine._line(), machine._line())


def _last_pair(machine: Machine) -> None:
    value, key = machine._pop(), machine._pop()
    machine.set_items([key, value])


def _last_item(machine: Machine) -> None:
    item = machine._pop()
    machine.append([item])


def _dictionary(machine: Machine) -> None:
    items = machine._after_mark()
    machine.push({})
    machine.set_items(items)


def _frozen(machine: Machine) -> None:
    machine.push(frozenset(checked_key(item) for item in machine._after_mark()))


def _pop_one(machine: Machine) -> None:
    if not machine._stack:
        raise UnpicklingError("the stack of the pickle is empty")
    machine._stack.pop()


_STEPS: dict[int, Callable[[Machine], Any]] = {
    code[0]: step
    for code, step in (
        (pickle.PROTO, _protocol),
        (pickle.FRAME, _frame),
        (pickle.STOP, lambda machine: _DONE),
        (pickle.MARK, lambda machine: machine.push(_MARK)),
        (pickle.POP, _pop_one),
        (pickle.POP_MARK, lambda machine: machine._after_mark() and None),
        (pickle.NONE, lambda machine: machine.push(None)),
        (pickle.NEWTRUE, lambda machine: machine.push(True)),
        (pickle.NEWFALSE, lambda machine: machine.push(False)),
        (pickle.BININT, _signed(4)),
        (pickle.BININT1, lambda machine: machine.push(machine._number(1))),
        (pickle.BININT2, lambda machine: machine.push(machine._number(2))),
        (pickle.LONG1, _long(1)),
        (pickle.LONG4, _long(4)),
        (pickle.BINFLOAT, _float),
        (pickle.SHORT_BINUNICODE, _text(1)),
        (pickle.BINUNICODE, _text(4)),
        (pickle.BINUNICODE8, _text(8)),
        (pickle.SHORT_BINSTRING, _old_text(1)),
        (pickle.BINSTRING, _old_text(4)),
        (pickle.SHORT_BINBYTES, _bytes(1)),
        (pickle.BINBYTES, _bytes(4)),
        (pickle.BINBYTES8, _bytes(8)),
        (pickle.BYTEARRAY8, _bytes(8, bytearray)),
        (pickle.EMPTY_LIST, lambda machine: machine.push([])),
        (pickle.EMPTY_TUPLE, lambda machine: machine.push(())),
        (pickle.EMPTY_DICT, lambda machine: machine.push({})),
        (pickle.EMPTY_SET, lambda machine: machine.push(set())),
        (pickle.LIST, lambda machine: machine.push(machine._after_mark())),
        (pickle.TUPLE, lambda machine: machine.push(tuple(machine._after_mark()))),
        (pickle.DICT, _dictionary),
        (pickle.TUPLE1, _last(1)),
        (pickle.TUPLE2, _last(2)),
        (pickle.TUPLE3, _last(3)),
        (pickle.APPEND, _last_item),
        (pickle.APPENDS, lambda machine: machine.append(machine._after_mark())),
        (pickle.SETITEM, _last_pair),
        (pickle.SETITEMS, lambda machine: machine.set_items(machine._after_mark())),
        (pickle.ADDITEMS, lambda machine: machine.add_items(machine._after_mark())),
        (pickle.FROZENSET, _frozen),
        (pickle.GLOBAL, _global),
        (pickle.STACK_GLOBAL, _stack_global),
        (pickle.REDUCE, lambda machine: machine.reduce()),
        (pickle.NEWOBJ, lambda machine: machine.new_object(False)),
        (pickle.NEWOBJ_EX, lambda machine: machine.new_object(True)),
        (pickle.BUILD, lambda machine: machine.build()),
        (pickle.BINPERSID, lambda machine: machine.persistent()),
        (pickle.BINPUT, lambda machine: machine.remember(machine._number(1))),
        (pickle.LONG_BINPUT, lambda machine: machine.remember(machine._number(4))),
        (pickle.MEMOIZE, lambda machine: machine.remember(len(machine._memo))),
        (pickle.BINGET, lambda machine: machine.recall(machine._number(1))),
        (pickle.LONG_BINGET, lambda machine: machine.recall(machine._number(4))),
    )
}
"""What each instruction does. Left out are those that import, extend or call in other ways."""
