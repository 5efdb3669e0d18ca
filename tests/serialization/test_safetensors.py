"""Files in the safetensors format: both ways with the package, and what damaged or hostile files meet."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import safetensors
from twofold.safetensors import SafetensorError

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
)


def tensors(library: Any) -> dict[str, Any]:
    found = {name: library.tensor([[0, 1], [3, 4]]).to(getattr(library, name)) for name in DTYPES}
    return {**found, "empty": library.zeros(0, 3), "number": library.tensor(2.5), "äöü": library.arange(3)}


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert set(found) == set(wanted)
    for name, tensor in wanted.items():
        assert found[name].dtype is tensor.dtype and tuple(found[name].shape) == tuple(tensor.shape)
        assert found[name].tolist() == tensor.tolist()


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file(tensors(torch), path, {"made": "here"})
    assert_same(safetensors.load_file(path), tensors(torch))
    assert_same(safetensors.load(path.read_bytes()), tensors(torch))
    assert safetensors.save(tensors(torch), {"made": "here"}) == path.read_bytes()
    with safetensors.safe_open(path, framework="pt", device="cpu") as file:
        assert file.metadata() == {"made": "here"} and set(file.keys()) == set(tensors(torch))
        assert file.get_tensor("number").item() == 2.5
        with pytest.raises(SafetensorError, match="no tensor 'other'"):
            file.get_tensor("other")
    assert [one.name for one in tmp_path.iterdir()] == ["x.safetensors"]


def test_the_package_reads_our_files_and_we_read_its(tmp_path: Path) -> None:
    peer = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    safetensors.save_file(tensors(torch), tmp_path / "ours", {"a": "b"})
    assert_same(package.load_file(tmp_path / "ours"), tensors(peer))
    package.save_file(tensors(peer), tmp_path / "theirs", {"a": "b"})
    assert_same(safetensors.load_file(tmp_path / "theirs"), tensors(torch))
    with safetensors.safe_open(tmp_path / "theirs") as file:
        assert file.metadata() == {"a": "b"}
    assert_same(safetensors.load(package.save(tensors(peer))), tensors(torch))
    model = torch.nn.Linear(3, 2)
    safetensors.save_model(model, tmp_path / "model")
    other = peer.nn.Linear(3, 2)
    package.load_model(other, tmp_path / "model")
    assert other.weight.tolist() == model.weight.tolist()


def test_the_published_layout() -> None:
    content = safetensors.save({"b": torch.tensor([1.0, 2.0]), "a": torch.tensor([3], dtype=torch.int64)})
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0 and json.loads(content[8 : 8 + length]) == {
        "a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
    }
    assert content[8 + length :] == numpy.int64(3).tobytes() + numpy.float32([1, 2]).tobytes()


def test_views_are_written_as_their_elements() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    found = safetensors.load(safetensors.save({"t": x.t(), "column": x[:, 1], "wide": x[:1].expand(2, 3)}))
    assert found["t"].tolist() == x.t().tolist() and found["column"].tolist() == [1.0, 4.0]
    assert found["wide"].tolist() == [[0.0, 1.0, 2.0]] * 2


def test_models_with_tied_weights(tmp_path: Path) -> None:
    model = torch.nn.Module()
    model.first, model.second = torch.nn.Embedding(3, 2), torch.nn.Linear(2, 3, bias=False)
    model.second.weight = model.first.weight
    safetensors.save_model(model, tmp_path / "x")
    assert list(safetensors.load_file(tmp_path / "x")) == ["first.weight"]
    before = model.first.weight.detach().clone()
    model.first.weight.data.zero_()
    assert safetensors.load_model(model, tmp_path / "x") == ([], [])
    assert torch.equal(model.first.weight, before) and torch.equal(model.second.weight, before)
    with pytest.raises(RuntimeError, match="missing"):
        safetensors.load_model(torch.nn.Linear(2, 1), tmp_path / "x")
    assert safetensors.load_model(torch.nn.Linear(2, 1), tmp_path / "x", strict=False)[1] == ["first.weight"]


def test_what_is_not_written() -> None:
    for wrong in ({"a": 1}, {1: torch.ones(1)}, {"a": torch.ones(1, dtype=torch.complex128)}):
        with pytest.raises(ValueError):
            safetensors.save(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no strings"):
        safetensors.save({}, {"a": 1})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="framework 'np'"):
        safetensors.safe_open("x", framework="np")


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "header, size",
    [
        (b"", 0),
        (b"[]", 0),
        (b"{", 0),
        (b" {}", 0),
        (b"\xff\xff", 0),
        (b'{"a":' * 100_000, 0),
        (b'{"a":1,"a":2}', 0),
        ({"a": ONE}, 0),
        ({"a": ONE}, 5),
        ({"a": ONE, "b": ONE}, 4),
        ({"a": {**ONE, "dtype": "O8"}}, 4),
        ({"a": {**ONE, "dtype": ["F32"]}}, 4),
        ({"a": {**ONE, "shape": [-1]}}, 4),
        ({"a": {**ONE, "shape": [True]}}, 4),
        ({"a": {**ONE, "shape": [2**62, 4]}}, 4),
        ({"a": {**ONE, "shape": [0, 2**70], "data_offsets": [0, 0]}}, 0),
        ({"a": {**ONE, "data_offsets": [4, 8]}}, 8),
        ({"a": {**ONE, "data_offsets": [0, 4.0]}}, 4),
        ({"a": {**ONE, "data_offsets": [4, 0]}}, 4),
        ({"a": {**ONE, "data_offsets": [0]}}, 4),
        ({"a": {**ONE, "more": 1}}, 4),
        ({"a": 1}, 0),
        ({"__metadata__": {"a": 1}}, 0),
        ({"__metadata__": 1}, 0),
    ],
)
def test_headers_that_lie(header: Any, size: int) -> None:
    with pytest.raises(SafetensorError):
        safetensors.load(file_of(header, bytes(size)))


def test_lengths_that_lie() -> None:
    for content in (
        b"",
        b"\x01",
        b"\xff" * 8,
        (2**62).to_bytes(8, "little") + b"{}",
        (3).to_bytes(8, "little") + b"{}",
    ):
        with pytest.raises(SafetensorError, match="truncated"):
            safetensors.load(content)


def test_flipped_bits() -> None:
    content = safetensors.save(tensors(torch))
    chance, refusals = random.Random(0), 0
    for _ in range(400):
        changed = bytearray(content)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        end = chance.choice([len(changed), len(changed), chance.randrange(len(changed))])
        try:
            for tensor in safetensors.load(bytes(changed[:end])).values():
                tensor.tolist()
        except SafetensorError:
            refusals += 1
    assert refusals > 100
