"""Messages in protocol buffers' wire and text formats, described by the fields of their classes.

A class says its fields as the published schema does; this module gives it attributes, maps, repeated fields,
``SerializeToString``, ``FromString`` and the text form, with protocol buffers' names.
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from twofold.protobuf import BYTES, FIXED32, FIXED64, VARINT, entries, read_varint, varint


class Field(NamedTuple):
    """One field: its number, its kind (``int``, ``bool``, ``float``, ``double``, ``string``, ``bytes`` or the names
    of an enumeration), or the class of its messages; whether it is repeated, a map by strings, or one of several of
    which only one is set."""

    number: int
    kind: Any
    repeated: bool = False
    map: bool = False
    oneof: bool = False


KINDS: dict[str, Any] = {name: name for name in ("int", "bool", "float", "double", "string", "bytes")}
"""What a field may hold, by the names in ``fields``: the classes of messages among it."""


def fields(text: str) -> dict[str, Field]:
    """Fields as the published schema has them: ``"string name = 1; repeated Dim dim = 2"``.

    Before the kind of a field may stand ``repeated``, ``map`` (by strings) or ``oneof``.
    """
    found = {}
    for entry in text.split(";"):
        *label, kind, name, _, number = entry.split()
        found[name] = Field(int(number), KINDS[kind], **dict.fromkeys(label, True))
    return found


def message(name: str, text: str, schema: str) -> Any:
    """The class of messages that have a documentation and fields, and nothing else."""
    members = {
        "__doc__": text,
        "__module__": sys._getframe(1).f_globals["__name__"],
        "FIELDS": fields(schema),
    }
    return type(name, (Message,), members)


class Repeated(list[Any]):
    """A repeated field of messages."""

    def __init__(self, kind: Any, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._kind = kind

    def add(self, **values: Any) -> Any:
        """A new message at the end."""
        self.append(self._kind(**values))
        return self[-1]


class Map(dict[str, Any]):
    """A map to messages; looking up a name that is not there enters an empty message."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, name: str) -> Any:
        self[name] = self._kind()
        return self[name]


_WIRES = {"float": FIXED32, "double": FIXED64, "string": BYTES, "bytes": BYTES}
_EMPTY = {"int": 0, "bool": False, "float": 0.0, "double": 0.0, "string": "", "bytes": b""}


class Message:
    """The base of messages; see the module."""

    FIELDS: ClassVar[dict[str, Field]] = {}

    def __init_subclass__(cls) -> None:
        if KINDS.setdefault(cls.__name__, cls) is not cls:
            raise TypeError(f"there are two messages of the name {cls.__name__}")

    def __init__(self, **values: Any) -> None:
        self.__dict__["_values"] = {}
        for name, value in values.items():
            if name not in self.FIELDS:
                raise ValueError(f"{type(self).__name__} has no field {name!r}")
            self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        field = self.FIELDS[name]
        if field.map:
            for key, item in value.items():
                getattr(self, name)[key].CopyFrom(item)
        elif field.repeated:
            getattr(self, name).extend(
                value if _is_message(field) else [_checked(field, item) for item in value]
            )
        elif _is_message(field):
            getattr(self, name).CopyFrom(value)
        else:
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        values = self.__dict__["_values"]
        if name in values:
            return values[name]
        if field.map:
            values[name] = Map(field.kind)
        elif field.repeated:
            values[name] = Repeated(field.kind) if _is_message(field) else []
        elif _is_message(field):
            values[name] = field.kind()
            values[name].__dict__["_parent"] = (self, name)
        else:
            return _EMPTY.get(field.kind, 0) if isinstance(field.kind, str) else 0
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        if field.repeated or field.map or _is_message(field):
            raise AttributeError(
                f"{type(self).__name__}: {name!r} cannot be assigned. Use CopyFrom or extend."
            )
        self._choose(name)
        self._values[name] = _checked(field, value)

    def _choose(self, name: str) -> None:
        """Of several fields of which one is set take the others out."""
        parent, own = self.__dict__.get("_parent", (None, ""))
        if parent is not None:
            parent._choose(own)
        if self.FIELDS[name].oneof:
            for other in [key for key in self._values if self.FIELDS[key].oneof and key != name]:
                del self._values[other]

    def _is_set(self) -> bool:
        return bool(self.__dict__.get("_there")) or any(self.HasField(name) for name in self._values)

    def HasField(self, name: str) -> bool:
        """Whether a field was set."""
        value, field = self._values.get(name), self.FIELDS[name]
        if field.map or field.repeated:
            return bool(value)
        return value is not None and (not _is_message(field) or value._is_set())

    def WhichOneof(self, group: str) -> str | None:
        """The one field that is set of those of which only one is."""
        return next((name for name in self._values if self.FIELDS[name].oneof and self.HasField(name)), None)

    def CopyFrom(self, other: Any) -> None:
        """Become equal to ``other``."""
        if other is self:
            return
        if type(other) is not type(self):
            raise TypeError(f"CopyFrom: {type(other).__name__} is no {type(self).__name__}")
        self.Clear()
        self.SetInParent()
        self._take(other)

    def _take(self, other: Any) -> None:
        """Copy what is set in ``other``; nothing is set here."""
        for name, value in other._values.items():
            field = self.FIELDS[name]
            if not other.HasField(name):
                continue
            if field.map:
                found = getattr(self, name)
                for key, item in value.items():
                    found[key]._take(item)
            elif not _is_message(field):
                self._values[name] = list(value) if field.repeated else value
            elif field.repeated:
                getattr(self, name).extend(_copied(item) for item in value)
            else:
                found = getattr(self, name)
                found.SetInParent()
                found._take(value)

    def MergeFrom(self, other: Any) -> None:
        """Take over what is set in ``other``; repeated fields become longer."""
        self.MergeFromString(other.SerializeToString())

    def Clear(self) -> None:
        """Set no field."""
        self._values.clear()
        self.__dict__.pop("_there", None)

    def SetInParent(self) -> None:
        """Be there, if empty."""
        parent, own = self.__dict__.get("_parent", (None, ""))
        if parent is not None:
            parent._choose(own)
        self.__dict__["_there"] = True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.SerializeToString() == self.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    # Wire format

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """The message in the wire format, in the order of the numbers of the fields; maps are sorted."""
        out = bytearray()
        for _, name in sorted((self.FIELDS[name].number, name) for name in self._values):
            if self.HasField(name):
                _write(out, self.FIELDS[name], self._values[name])
        return bytes(out)

    @classmethod
    def FromString(cls, content: bytes) -> Any:
        """The message that some bytes are; raises ValueError for what is none."""
        made = cls()
        made.MergeFromString(content)
        return made

    def ParseFromString(self, content: bytes) -> int:
        """Become the message that some bytes are."""
        self.Clear()
        return self.MergeFromString(content)

    def MergeFromString(self, content: bytes) -> int:
        """Take over what some bytes set; returns how many they are."""
        by_number = {field.number: (name, field) for name, field in self.FIELDS.items()}
        for number, wire, value in entries(content):
            if number in by_number:
                name, field = by_number[number]
                self._read(name, field, wire, value)
        return len(content)

    def _read(self, name: str, field: Field, wire: int, value: Any) -> None:
        if field.map:
            entry = {number: item for number, _, item in entries(value)}
            key = entry.get(1, b"").decode()
            getattr(self, name)[key].MergeFromString(entry.get(2, b""))
        elif _is_message(field) and field.repeated:
            getattr(self, name).append(field.kind.FromString(value))
        elif _is_message(field):
            found = getattr(self, name)
            found.SetInParent()
            found.MergeFromString(value)
        elif field.repeated and wire == BYTES and _WIRES.get(_kind_name(field)) != BYTES:
            getattr(self, name).extend(_unpacked(field, value))
        elif field.repeated:
            getattr(self, name).append(_scalar(field, value))
        else:
            self._choose(name)
            self._values[name] = _scalar(field, value)

    # Text format

    def __str__(self) -> str:
        return "".join(f"{row}\n" for row in self._rows())

    __repr__ = __str__

    def _rows(self) -> Iterator[str]:
        for name, field in sorted(self.FIELDS.items(), key=lambda item: item[1].number):
            if not self.HasField(name):
                continue
            value = self._values[name]
            if field.map:
                for key in sorted(value):
                    inner = [f"key: {_quoted(key.encode())}", *_nested_rows("value", value[key])]
                    yield from [f"{name} {{", *[f"  {row}" for row in inner], "}"]
                continue
            for item in value if field.repeated else [value]:
                if _is_message(field):
                    yield from _nested_rows(name, item)
                elif field.repeated or field.oneof or item != _EMPTY.get(_kind_name(field), 0):
                    yield f"{name}: {_text(field, item)}"


def _copied(message: Any) -> Any:
    made = type(message)()
    made._take(message)
    return made


def _is_message(field: Field) -> bool:
    return isinstance(field.kind, type)


def _kind_name(field: Field) -> str:
    return field.kind if isinstance(field.kind, str) else "int"


def _nested_rows(name: str, message: Message) -> list[str]:
    return [f"{name} {{", *[f"  {row}" for row in message._rows()], "}"]


def _checked(field: Field, value: Any) -> Any:
    kind = _kind_name(field)
    if kind == "string" and isinstance(value, bytes):
        return value.decode()
    wanted = {"string": str, "bytes": bytes}.get(kind)
    if wanted is not None and not isinstance(value, wanted):
        raise TypeError(f"{value!r} of type {type(value).__name__} is not {wanted.__name__}")
    if kind in ("float", "double"):
        return _rounded(kind, float(value))
    return value if wanted is not None else bool(value) if kind == "bool" else operator.index(value)


def _rounded(kind: str, value: float) -> float:
    """The nearest number that a field of a kind can hold."""
    if kind == "double":
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _write(out: bytearray, field: Field, value: Any) -> None:
    if field.map:
        for key in sorted(value):
            encoded = key.encode()
            content = value[key].SerializeToString()
            entry = b"\x0a" + varint(len(encoded)) + encoded + b"\x12" + varint(len(content)) + content
            _write_bytes(out, field, entry)
    elif _is_message(field):
        for item in value if field.repeated else [value]:
            _write_bytes(out, field, item.SerializeToString())
    elif field.repeated and _WIRES.get(_kind_name(field)) == BYTES:
        for item in value:
            _write_bytes(out, field, item.encode() if isinstance(item, str) else item)
    elif field.repeated:
        if value:
            _write_bytes(out, field, b"".join(_encoded(field, item) for item in value))
    elif field.oneof or value != _EMPTY.get(_kind_name(field), 0):
        wire = _WIRES.get(_kind_name(field), VARINT)
        if wire == BYTES:
            _write_bytes(out, field, value.encode() if isinstance(value, str) else value)
        else:
            out += varint(field.number << 3 | wire) + _encoded(field, value)


def _write_bytes(out: bytearray, field: Field, content: bytes) -> None:
    out += varint(field.number << 3 | BYTES) + varint(len(content))
    out += content


def _encoded(field: Field, value: Any) -> bytes:
    kind = _kind_name(field)
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", value)
    return varint(int(value) & (1 << 64) - 1)


def _scalar(field: Field, value: Any) -> Any:
    kind = _kind_name(field)
    if kind in ("float", "double"):
        return struct.unpack("<f" if kind == "float" else "<d", value)[0]
    if kind == "string":
        return value.decode()
    if kind == "bytes":
        return bytes(value)
    if kind == "bool":
        return bool(value)
    return value - (1 << 64) if value >= 1 << 63 else value


def _unpacked(field: Field, content: bytes) -> list[Any]:
    kind = _kind_name(field)
    if kind in ("float", "double"):
        return [item[0] for item in struct.iter_unpack("<f" if kind == "float" else "<d", content)]
    found, position = [], 0
    while position < len(content):
        value, position = read_varint(content, position)
        found.append(_scalar(field, value))
    return found


def _text(field: Field, value: Any) -> str:
    kind = _kind_name(field)
    if kind in ("string", "bytes"):
        return _quoted(value.encode() if isinstance(value, str) else value)
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("float", "double"):
        short, exact = (".6g", ".9g") if kind == "float" else (".15g", ".17g")
        text = format(value, short)
        return text if _rounded(kind, float(text)) == value else format(value, exact)
    names = field.kind if isinstance(field.kind, dict) else {}
    return str(names.get(value, value))


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def _quoted(content: bytes) -> str:
    return (
        '"'
        + "".join(
            _ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in content
        )
        + '"'
    )
