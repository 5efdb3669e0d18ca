"""What the variables of a function hold at a line, so that later changes do not reach it."""

from __future__ import annotations

import collections
import enum
import functools
import keyword
import sys
from collections.abc import Callable, Collection, Mapping
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    ModuleType,
    TracebackType,
)
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.debug.generators import ShownGenerator, Standing
from twofold.debug.names import Built, Given, Held
from twofold.dtypes import DType
from twofold.nn.parameter import Registry

Tensor = _core.Tensor
_CONSTANTS = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type, type(...), type(NotImplemented)),
    *(FunctionType, BuiltinFunctionType, ModuleType, TracebackType, BaseException, enum.Enum),
    *(DType, numpy.generic, numpy.dtype, numpy.ufunc),
)
_SIMPLE = (type(None), bool, int, float, str)
_MOST_PARTS = 4096  # of all that one variable holds
_LARGE = 16  # containers of an object that is looked at for changes first
_MOST_BYTES = 1 << 16  # of an array
MOST_SHARED_BYTES = 1 << 22  # of a tensor that shares memory with an array, which is compared at each line
_HEAP_TYPE = 1 << 9  # the flag of classes that are defined in Python


class _Unknown(Exception):
    """What a variable holds may change without notice."""


def _bytes_of(tensor: Any) -> Any:
    """The bytes of a tensor's memory, as an array of them."""
    return tensor.numpy().reshape(-1).view(numpy.uint8)


def is_symbolic(value: Any) -> bool:
    """Whether a value stands for one of a graph that is being declared."""
    return isinstance(value, Tensor) and value._is_symbolic


class Known:
    """What variables have held so far: ``handles`` of values by key, and large objects that may not have changed."""

    def __init__(self) -> None:
        self.handles: dict[int, Any] = {}
        self._copies: dict[int, Any] = {}  # by the keys of what shares memory with arrays: what it held last
        self._large: dict[int, tuple[Any, Any, _Walk]] = {}
        self._too_large: dict[int, Any] = {}

    def pin(self, pins: Collection[_Pin]) -> bool:
        """Have pins hold what no write reaches; False where a value of them could not be computed."""
        try:
            tensors = tuple(pin.handle for pin in pins)
            leaves: Any = _core.close((), tensors, _core.declaration_mark()).leaves
        except Exception:
            return False
        for (handle,) in leaves:
            self.handles.setdefault(_core.value_key(handle), handle)
        for pin in pins:
            pin.handle = self._kept(self.handles[_core.value_key(pin.handle)])
        return True

    def _kept(self, handle: Any) -> Any:
        """A handle of what another holds now, which an array may share and change; of very large ones the same."""
        if not _core.is_shared_outside(handle) or handle.requires_grad or handle.nbytes > MOST_SHARED_BYTES:
            return handle
        copy = self._copies.get(_core.value_key(handle))
        if copy is None or not numpy.array_equal(_bytes_of(copy), _bytes_of(handle)):
            copy = self._copies[_core.value_key(handle)] = _core.Tensor(handle.numpy().copy())
        return copy

    def unchanged(self, value: Any) -> Any:
        """The shape of an object that is what it was when it was looked at last, or None."""
        before = self._large.get(id(value))
        return before[1] if before is not None and before[0] is value and before[2].holds() else None

    def is_too_large(self, value: Any) -> bool:
        """Whether an object had too many parts when it was looked at."""
        return id(value) in self._too_large

    def leave_out(self, value: Any) -> None:
        """Look at an object no more, which stays alive, so that its ``id`` is used for no other."""
        self._too_large[id(value)] = value

    def keep(self, value: Any, shape: Any, walk: _Walk) -> None:
        """Keep the shape of an object if that is worth it."""
        if walk.is_complete and len(walk.containers) >= _LARGE:
            self._large[id(value)] = value, shape, walk


class _Walk:
    """The containers and tensors of an object, with what they held; ``is_complete`` if it has nothing else."""

    def __init__(self) -> None:
        self.containers: list[tuple[Any, tuple[Any, ...], tuple[int, ...]]] = []
        self.tensors: list[tuple[Any, int]] = []
        self.is_complete = True

    def add(self, container: Any) -> None:
        """Note what a list, set or dictionary holds."""
        self.containers.append((container, *_contents(container)))

    def holds(self) -> bool:
        """Whether all of them hold what they did; they keep it alive, so that no ``id`` is used again."""
        return all(_contents(one) == (keys, ids) for one, keys, ids in self.containers) and all(
            _core.value_key(one) == key for one, key in self.tensors
        )


def _contents(container: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    if isinstance(container, dict):
        return tuple(container), tuple(map(id, container.values()))
    return (tuple(container), ()) if isinstance(container, set) else ((), tuple(map(id, container)))


class Snapshot:
    """Variables by name, all that they hold pinned; ``resolved`` gives their parts the numbers of a recording.

    What may change unseen is left out.

    Args:
        names: The variables. Tensors in them are what they hold now, whatever is written to them later.
        known: What variables have held before; it grows.
    """

    __slots__ = ("names",)

    def __init__(self, names: Mapping[str, Any], known: Known) -> None:
        self.names: dict[str, Held] = {}
        shape = _Shape()
        for name, value in names.items():
            if not name or (name.isidentifier() and not keyword.iskeyword(name)):
                if known.is_too_large(value):
                    continue
                try:
                    found = known.unchanged(value)
                    if found is None:
                        found = shape.of_variable(value)
                        known.keep(value, found, shape.walk)
                    self.names[name] = found
                except Exception:  # _Unknown, or what a class of the program raises as it is looked at
                    if shape.left < 0:
                        known.leave_out(value)
        if shape.pins and not known.pin(shape.pins.values()):
            self.names = {}

    def resolved(self, number_of: NumberOf, done: dict[int, tuple[Any, Held]]) -> dict[str, Held]:
        """The variables with numbers instead of values, without those that hold what has none.

        ``done`` are shapes that have them, by ``id``. In a container a tensor of a graph that has none is itself.
        """
        found: dict[str, Held] = {}
        for name, shape in self.names.items():
            if id(shape) not in done:
                done[id(shape)] = shape, _resolved(shape, number_of)
            held = done[id(shape)][1]
            if type(shape) is not Declared or not isinstance(held, Given):
                found[name] = held
        return found


class Declared(NamedTuple):
    """Stands for a tensor of a declared graph: an output of an operation."""

    operation: Any
    output: int


NumberOf = Callable[[Any], "int | None"]
"""The number of a tensor, or of what is ``Declared``; None where it has none."""


class _Pin:
    """Stands for a tensor: it, and then a handle of what it held."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:
        self.handle = handle


def _resolved(held: Any, number_of: NumberOf) -> Held:
    """A value with numbers for its tensors."""
    kind = type(held)
    if kind is _Pin:
        return number_of(held.handle)
    if kind is Declared:
        number = number_of(held)
        return Given(held.operation.outputs[held.output]) if number is None else number
    if kind is Given:
        return held
    if kind is dict:
        return {key: _resolved(one, number_of) for key, one in held.items()} if held else held
    if kind is Built:
        return Built(held.kind, held.make, _resolved(held.content, number_of))
    return kind([_resolved(one, number_of) for one in held])


class _Shape:
    """The parts of values; ``pins`` are those of tensors by ``id``."""

    def __init__(self) -> None:
        self.pins: dict[int, _Pin] = {}
        self.walk = _Walk()  # through the present variable
        self.left = 0  # parts of it that may still be looked at
        self._inside: set[int] = set()

    def of_variable(self, value: Any) -> Any:
        """What a variable holds, as pins, what never changes, and containers of such; raises _Unknown for others."""
        self.walk, self.left = _Walk(), _MOST_PARTS
        return self.of(value)

    def of(self, value: Any) -> Any:
        """A value as pins, what never changes, and containers of such; raises _Unknown for others."""
        kind: Any = type(value)
        if kind in _SIMPLE:
            return Given(value)
        tensor = value if isinstance(value, Tensor) else _tensor_of(value)
        if tensor is not None:
            if tensor._is_symbolic:
                return _declared(tensor)
            self.walk.tensors.append((tensor, _core.value_key(tensor)))
            self.walk.is_complete &= tensor._base is None  # else a write to what it is a view of reaches it
            return self.pins.setdefault(id(tensor), _Pin(tensor))
        if isinstance(value, _CONSTANTS) or _is_of_graph(kind):
            return Given(value)
        self.left -= 1
        if self.left < 0 or id(value) in self._inside:
            raise _Unknown
        if isinstance(value, (list, dict, set, collections.deque)):
            self.walk.add(value)
        if kind in (tuple, list, dict) and not value:
            return kind()
        self._inside.add(id(value))
        try:
            return self._compound(value)
        finally:
            self._inside.discard(id(value))

    def _compound(self, value: Any) -> Any:
        kind = type(value)
        if kind in (tuple, list):
            return kind([self.of(one) for one in value])
        if isinstance(value, dict) and any(isinstance(key, Tensor) for key in value):
            return self._by_tensor(value, kind)
        if kind in (dict, Registry):
            return {self._key(key): self.of(one) for key, one in value.items()}
        if kind is functools.partial:
            given = [self.of(one) for one in (value.func, value.args, value.keywords)]
            return Built(kind, lambda parts: functools.partial(parts[0], *parts[1], **parts[2]), given)
        if isinstance(value, tuple):
            return Built(kind, functools.partial(tuple.__new__, kind), [self.of(one) for one in value])
        if kind in (set, frozenset):
            return Given(kind([self._key(one) for one in value]))
        if kind is collections.deque:
            make: Any = functools.partial(collections.deque, maxlen=value.maxlen)
            return Built((kind, value.maxlen), make, [self.of(one) for one in value])
        if kind in (collections.OrderedDict, collections.Counter):
            return Built(kind, kind, {self._key(key): self.of(one) for key, one in value.items()})
        if kind is collections.defaultdict:
            make = functools.partial(kind, value.default_factory)
            return Built(kind, make, {self._key(key): self.of(one) for key, one in value.items()})
        self.walk.is_complete &= kind not in (numpy.ndarray, GeneratorType)
        if kind is GeneratorType:
            standing, frame = Standing.of(value), value.gi_frame
            variables = {} if frame is None else self._parts(frame.f_locals)
            return Built(standing, functools.partial(ShownGenerator, standing), variables)
        if kind is numpy.ndarray and value.nbytes <= _MOST_BYTES and not value.dtype.hasobject:
            return Given(value.copy())
        return self._object(value, kind)

    def _parts(self, named: Mapping[str, Any], all_known: bool = False) -> dict[str, Any]:
        """Attributes or variables, without those that are not known; raises _Unknown for these with ``all_known``."""
        found: dict[str, Any] = {}
        for name, one in named.items():
            try:
                found[name] = self.of(one)
            except _Unknown:
                if self.left < 0 or all_known:
                    raise
        return found

    def _by_tensor(self, value: Any, kind: Any) -> Any:
        """A dictionary with tensors as keys, such as the state of an optimizer."""
        made = kind
        if kind is collections.defaultdict:
            made = functools.partial(kind, value.default_factory)
        elif kind not in (dict, collections.OrderedDict):
            raise _Unknown
        pairs = [
            [self.of(key) if isinstance(key, Tensor) else Given(self._key(key)), self.of(one)]
            for key, one in value.items()
        ]
        return Built((kind, "by tensor"), lambda parts: made([tuple(part) for part in parts]), pairs)

    def _key(self, key: Any) -> Any:
        """A key of a dictionary or an element of a set."""
        if isinstance(key, Tensor) or not isinstance(key, (*_CONSTANTS, tuple, frozenset)):
            raise _Unknown
        for one in key if isinstance(key, (tuple, frozenset)) else ():
            self._key(one)
        return key

    def _object(self, value: Any, kind: Any) -> Any:
        """An object of a class of Python's that is its attributes; what is not known of them is left out."""
        if not _is_plain(kind):
            raise _Unknown
        attributes: dict[str, Any] = getattr(value, "__dict__", {})
        self.walk.add(attributes)
        slots = _slots(kind)
        if slots:  # which are no container that could be looked at for changes
            self.walk.is_complete = False
            attributes = {
                **{name: one.__get__(value) for name, one in slots.items() if _has(value, one)},
                **attributes,
            }
        mirrored = [one for one in attributes.values() if type(one) is Registry and one]
        if mirrored:
            attributes = {
                name: one
                for name, one in attributes.items()
                if not any(name in registry for registry in mirrored)
            }
        found = self._parts(attributes, all_known=hasattr(kind, "__dataclass_fields__"))
        names = [name for name, one in attributes.items() if isinstance(one, Registry)]
        return Built(kind, functools.partial(_made, kind, names), found)


@functools.lru_cache(maxsize=1024)
def _is_of_graph(kind: Any) -> bool:
    """Whether the objects of a class are operations, or what declared graphs are made and run with."""
    return kind.__module__ == "twofold._core" or kind.__module__.startswith("twofold.static.")


@functools.lru_cache(maxsize=1024)
def _is_plain(kind: Any) -> bool:
    """Whether the objects of a class are their attributes alone."""
    is_made_by_attributes = kind.__new__ is object.__new__ and not hasattr(kind, "__del__")
    return bool(kind.__flags__ & _HEAP_TYPE) and is_made_by_attributes


@functools.lru_cache(maxsize=1024)
def _slots(kind: Any) -> dict[str, MemberDescriptorType]:
    """The slots of a class and of those that it inherits from."""
    return {
        name: one
        for base in reversed(kind.__mro__)
        for name, one in vars(base).items()
        if isinstance(one, MemberDescriptorType)
    }


def _has(value: Any, slot: MemberDescriptorType) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def _made(kind: Any, registries: list[str], attributes: dict[str, Any]) -> Any:
    """An object with attributes; parameters, buffers and children of a module are such, too."""
    made = object.__new__(kind)
    slots = _slots(kind)
    for name in slots.keys() & attributes.keys():
        slots[name].__set__(made, attributes[name])
    if len(slots) == 0 or hasattr(made, "__dict__"):
        made.__dict__.update({name: one for name, one in attributes.items() if name not in slots})
    for name in registries:
        made.__dict__.update(attributes.get(name, {}))
    return made


def _tensor_of(value: Any) -> Any:
    """The tensor that an expression of DyNet or a variable of a declared graph stands for, or None."""
    kind: Any = type(value)
    if _is_variable(kind):
        return value._as_graph_element()
    return value._tensor if isinstance(value, _core.Expression) else None


@functools.lru_cache(maxsize=1024)
def _is_variable(kind: Any) -> bool:
    return kind.__module__.startswith("twofold.static.") and hasattr(kind, "_as_graph_element")


def _declared(tensor: Any) -> Declared:
    graphs = sys.modules.get("twofold.static.graph.graph")  # which a program that declares none does without
    found = None if graphs is None else graphs.owner_of(tensor)
    if found is None:
        raise _Unknown
    return Declared(*found)
