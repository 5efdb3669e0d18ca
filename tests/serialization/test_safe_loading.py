"""What a hostile or damaged file meets in ``load``: an error, and nothing of it is called."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.serialization.archive import ArchiveWriter

DATA = Path(__file__).resolve().parent / "data"
REFUSED = (RuntimeError, pickle.UnpicklingError)


def archive(pickled: bytes, **records: bytes) -> io.BytesIO:
    """A checkpoint with a pickle and storages of one's own."""
    file = io.BytesIO()
    writer = ArchiveWriter(file, "archive")
    writer.add("data.pkl", pickled)
    for name, data in records.items():
        writer.add("data/" + name.removeprefix("s"), data)
    writer.add("version", b"3\n")
    writer.close()
    file.seek(0)
    return file


def refused(pickled: bytes, match: str | None = None, **records: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match=match) as told:
        torch.load(archive(pickled, **records))
    assert str(told.value).startswith("Weights only load failed")


class Trap:
    """An object whose pickle calls a function; ``caught`` tells that it was."""

    caught: list[Any] = []

    def __init__(self, function: Any, *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> Any:
        return self.function, self.args


def spring(*args: Any) -> list[Any]:
    Trap.caught.append(args)
    return []


def test_functions_of_a_file_are_not_called() -> None:
    for function, args in (
        (spring, ()),
        (os.system, ("true",)),
        (eval, ("1",)),
        (getattr, (1, "real")),
        (numpy.ndarray, ((2,), "O", b"x" * 16)),
        (numpy.load, ("x",)),
        (print, ()),
        (__import__, ("os",)),
    ):
        for wrap in (lambda trap: trap, lambda trap: [trap], lambda trap: {"a": (1, trap)}):
            for protocol in (2, 4, 5):
                try:
                    content = pickle.dumps(wrap(Trap(function, *args)), protocol)
                except pickle.PicklingError:
                    continue
                refused(content)
    assert not Trap.caught


def test_arrays_do_not_take_pointers() -> None:
    """An array of objects, whose bytes would be addresses, was taken as it is: reading it crashed."""
    objects = numpy.array([1, 2], dtype=object)
    for protocol in (2, 4, 5):
        refused(pickle.dumps(objects, protocol))
    for code in (b"O8", b"V8", b"S8", b"U2", b"M8", b"m8", b"f8,O8"):
        for protocol in (2, 4):
            content = pickle.dumps(numpy.arange(2.0), protocol)
            changed = content.replace(b"f8", code)
            if len(code) != 2:
                changed = content.replace(b"\x02\x00\x00\x00f8", struct.pack("<i", len(code)) + code)
                changed = changed.replace(b"\x8c\x02f8", b"\x8c" + bytes([len(code)]) + code)
            assert changed != content
            refused(changed)


def instructions(*parts: Any) -> bytes:
    """A pickle from instructions, and Python values as instructions that push them."""
    out = b"\x80\x02"
    for part in parts:
        out += part if isinstance(part, bytes) else pickle.dumps(part, 2)[2:-1].replace(b"q\x00", b"")
    return out + b"."


TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
FLOAT = b"ctorch\nFloatStorage\n"
ORDERED = b"ccollections\nOrderedDict\n"


def storage(count: Any = 4, key: Any = "0", location: Any = "cpu", kind: bytes = FLOAT) -> list[Any]:
    return [b"(", "storage", kind, key, location, count, b"tQ"]


def tensor(size: Any, stride: Any, offset: Any = 0, grad: Any = False, store: Any = None) -> bytes:
    store = storage() if store is None else store
    return instructions(TENSOR, b"(", *store, offset, size, stride, grad, ORDERED, b")R", b"tR")


FOUR = numpy.arange(4, dtype=numpy.float32).tobytes()


def test_the_instructions_of_these_tests_make_a_tensor() -> None:
    found = torch.load(archive(tensor((2, 2), (1, 2)), s0=FOUR))
    assert found.tolist() == [[0.0, 2.0], [1.0, 3.0]]


@pytest.mark.parametrize(
    "size, stride, offset",
    [
        ((5,), (1,), 0),
        ((4,), (1,), 1),
        ((2, 2), (3, 1), 1),
        ((2,), (-1,), 1),
        ((-2,), (1,), 0),
        ((2,), (1,), -1),
        ((2,), (1, 1), 0),
        ((2**62, 2**62), (0, 0), 0),
        ((2**63,), (0,), 0),
        ((10**40,), (0,), 0),
        ((0, 2**62, 2**62), (1, 1, 1), 0),
        ((2,), (2**63,), 0),
        ((2,), (10**30,), 0),
        ((1,) * 40, (1,) * 40, 0),
        ((2.0,), (1,), 0),
        ((True,), (1,), 0),
        ([2], [1], 0),
        ("ab", "cd", 0),
        (None, None, 0),
        ((2,), (1,), 1.0),
        ((2,), (1,), None),
    ],
)
def test_layouts_stay_within_their_storage(size: Any, stride: Any, offset: Any) -> None:
    refused(tensor(size, stride, offset), s0=FOUR)


def test_storages_are_as_long_as_they_say() -> None:
    for count in (5, 2**40, 2**70, -1, 2.5, None, "4"):
        refused(tensor((2,), (1,), store=storage(count)), s0=FOUR)
    for key in ("1", "../data.pkl", "", 0, None):
        with pytest.raises(REFUSED):
            torch.load(archive(tensor((2,), (1,), store=storage(key=key)), s0=FOUR))
    for kind in (b"ctorch\nFloatTensor\n", b"ccollections\nOrderedDict\n", b"]", b"ctorch\nfloat32\n", b"N"):
        refused(tensor((2,), (1,), store=storage(kind=kind)), s0=FOUR)
    two = [TENSOR, b"(", *storage(), 0, (2,), (1,), False, ORDERED, b")RtR"]
    other = [
        TENSOR,
        b"(",
        *storage(2, kind=b"ctorch\nDoubleStorage\n"),
        0,
        (2,),
        (1,),
        False,
        ORDERED,
        b")RtR",
    ]
    refused(instructions(b"(", *two, *other, b"l"), "two dtypes", s0=FOUR)


RESULTS = (
    *(torch.Tensor, torch.device, dict, set, frozenset, complex, slice, bytes, bytearray, tuple),
    *(numpy.generic, numpy.ndarray),
)
NAMES = [
    "collections OrderedDict",
    "collections Counter",
    "collections defaultdict",
    "builtins set",
    "builtins frozenset",
    "builtins complex",
    "builtins slice",
    "builtins bytearray",
    "builtins list",
    "_codecs encode",
    "torch Size",
    "torch device",
    "torch Tensor",
    "torch FloatStorage",
    "torch float32",
    "torch.nn.parameter Parameter",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._tensor _rebuild_from_type_v2",
    "numpy ndarray",
    "numpy dtype",
    "numpy._core.multiarray _reconstruct",
    "numpy._core.multiarray scalar",
    "numpy._core.numeric _frombuffer",
]


def test_constructors_check_their_arguments() -> None:
    values = [
        None,
        True,
        -1,
        2**80,
        1.5,
        "x",
        b"x",
        (),
        (1,),
        [],
        [1],
        {},
        {"a": 1},
        (None, None),
        ("a", "b", "c"),
    ]
    chance = random.Random(0)
    accepted = 0
    for name in NAMES:
        known = b"c" + name.replace(" ", "\n").encode() + b"\n"
        for _ in range(60):
            given = [chance.choice([*values, known, ORDERED]) for _ in range(chance.randrange(6))]
            after = chance.choice([b"", b"}b", b"(I", b"\x93", instructions({"x": 1})[2:-1] + b"b", b")b"])
            how = chance.choice([b"R", b"\x81"])
            try:
                found = torch.load(archive(instructions(known, b"(", *given, b"t", how, after), s0=FOUR))
            except pickle.UnpicklingError:
                continue
            accepted += 1
            assert isinstance(found, RESULTS)
    assert accepted > 10


def test_names_are_only_names() -> None:
    """None of these constructors can be changed, stored or looked into by a file."""
    refused(instructions(TENSOR, {"__defaults__": (1,)}, b"b"), "a state is given")
    refused(instructions(ORDERED, {"__init__": 1}, b"b"), "a state is given")
    refused(instructions(ORDERED, b")R", {"items": 1}, b"b"), "gets an attribute 'items'")
    refused(instructions(ORDERED, b")R", {"__class__": 1}, b"b"), "gets an attribute")
    refused(instructions(ORDERED, b")R", (None, {"__dict__": 1}), b"b"))
    refused(instructions(b"]", TENSOR, b"a"), "stands where a value is expected")
    refused(instructions(TENSOR), "stands where a value is expected")
    refused(instructions(b"ctorch\nfloat32\n", {"itemsize": 1}, b"b"), "a state is given")
    refused(instructions(b"ccollections\nOrderedDict.__init__\n"), "no part of a state")
    refused(instructions(b"ctwofold.serialization.constructors\nrebuild_tensor\n"), "no part of a state")
    refused(instructions("os", "system", b"\x93"), "no part of a state")
    refused(instructions(1, 2, b"\x93"), "a name is no string")


def test_instructions_that_no_checkpoint_has() -> None:
    extensions = (b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00")
    for code in (*extensions, b"(ios\nsystem\n", b"(o", b"P0\n", b"\x97", b"\x98", b"2"):
        refused(instructions(b"N", code), "is none that a checkpoint has")
    for content in (b"", b"\x80", b"\x80\x09.", b".", b"0.", b"R.", b"b.", b"a.", b"u.", b"(."):
        refused(content)
    for content in (b"h\x05.", b"j\xff\xff\xff\xff.", b"}NNs"):
        refused(content)
    for content in (b"T\xff\xff\xff\x7f", b"X\xff\xff\xff\xff", b"\x8b\xff\xff\xff\x7f"):
        refused(b"\x80\x05" + content + b".", "truncated")
    for content in (b"\x8d", b"\x8e", b"\x96", b"\x95"):
        refused(b"\x80\x05" + content + b"\xff" * 8 + b".", "truncated")
    refused(b"\x80\x02X\x01\x00\x00\x00\xff.", "damaged")


def test_depth() -> None:
    """Deep containers load; deep keys, whose hash would run out of stack, do not."""
    count = 200_000
    found = torch.load(archive(instructions(b"]" * count, b"a" * (count - 1))))
    depth = 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == count - 1
    refused(instructions(b"}N", b"\x85" * count, b"Ns"), "nested too deep")
    refused(instructions(b"(N", b"\x85" * count, b"\x91"), "nested too deep")
    wide = b"N" + b"q\x00h\x00\x86" * 15
    refused(instructions(b"}", wide, b"Ns"), "nested too deep")
    refused(instructions(b"}]Ns"), "a key of type list")
    refused(instructions(b"(" * count))


def test_files_cut_off_anywhere() -> None:
    content = (DATA / "zip.pt").read_bytes()
    for end in [*range(0, len(content) - 1, 97), len(content) - 1]:
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(content[:end]))
    content = (DATA / "stream.pt").read_bytes()
    for end in range(0, len(content) - 1, 61):
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(content[:end]))


def touch(found: Any) -> None:
    """Look at everything, as a program would."""
    pending = [found]
    while pending:
        one = pending.pop()
        if isinstance(one, torch.Tensor):
            assert one.numel() < 1000
            one.tolist()
        elif isinstance(one, dict):
            pending += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            pending += one


@pytest.mark.parametrize("name", ["zip.pt", "stream.pt"])
def test_flipped_bits_of_a_file(name: str) -> None:
    content = (DATA / name).read_bytes()
    chance, refusals = random.Random(1), 0
    for _ in range(400):
        changed = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 8])):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        try:
            touch(torch.load(io.BytesIO(bytes(changed))))
        except REFUSED:
            refusals += 1
    assert refusals > 100


def test_flipped_and_shuffled_bytes_of_a_pickle() -> None:
    """Behind the checksum, too: a file whose maker knows the format."""
    with zipfile.ZipFile(DATA / "zip.pt") as source:
        content = source.read("zip/data.pkl")
        records = {
            "s" + name[9:]: source.read(name) for name in source.namelist() if name.startswith("zip/data/")
        }
    chance, loaded = random.Random(2), 0
    for _ in range(600):
        changed = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 4])):
            at = chance.randrange(len(changed))
            kind = chance.randrange(4)
            if kind == 0:
                changed[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                changed[at] = chance.choice(b"cRbQ\x81\x93a\x85h(t.0]}su")
            elif kind == 2:
                del changed[at : at + chance.randrange(1, 12)]
            else:
                start = chance.randrange(len(changed))
                changed[at:at] = changed[start : start + chance.randrange(1, 40)]
        try:
            touch(torch.load(archive(bytes(changed), **records)))
            loaded += 1
        except REFUSED:
            pass
    assert 0 < loaded < 600


def test_other_files() -> None:
    start = b"PK\x03\x04"
    for content in (b"", start, b"something else", start + bytes(200), b"\x80\x02}q\x00.", b"\x1f\x8b"):
        with pytest.raises(RuntimeError, match="no checkpoint|truncated or corrupt"):
            torch.load(io.BytesIO(content))
    for name, compression, content, match in (
        ("a/b.txt", zipfile.ZIP_STORED, b"text", "no record data.pkl"),
        ("a/data.pkl", zipfile.ZIP_DEFLATED, bytes(10**6), "records are longer than the file"),
        ("a/data.pkl", zipfile.ZIP_DEFLATED, b"text", "is compressed"),
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression) as other:
            other.writestr(name, content)
        with pytest.raises(RuntimeError, match=match):
            torch.load(io.BytesIO(file.getvalue()))


def test_damage_is_told() -> None:
    content = bytearray((DATA / "zip.pt").read_bytes())
    position = content.index(numpy.arange(6, dtype=numpy.float32).tobytes())
    content[position] ^= 1
    with pytest.raises(RuntimeError, match="is corrupt: its checksum does not fit"):
        torch.load(io.BytesIO(content))
    with pytest.raises(RuntimeError, match="is truncated or corrupt"):
        torch.load(io.BytesIO(content[:-1]))


class Settings:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and other.rate == self.rate


def test_classes_that_were_declared_safe() -> None:
    file = io.BytesIO()
    torch.save({"settings": Settings(0.5)}, file)
    for _ in range(2):
        with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[Settings\]\)"):
            torch.load(io.BytesIO(file.getvalue()))
        with torch.serialization.safe_globals([Settings]):
            assert torch.load(io.BytesIO(file.getvalue())) == {"settings": Settings(0.5)}
    torch.serialization.add_safe_globals([(Settings, f"{__name__}.Settings"), os.system])
    try:
        assert torch.load(io.BytesIO(file.getvalue())) == {"settings": Settings(0.5)}
        refused(pickle.dumps(Trap(os.system, "true"), 2))
    finally:
        torch.serialization.clear_safe_globals()
    with pytest.raises(TypeError, match="full name"):
        torch.serialization.add_safe_globals([(Settings, 1)])
