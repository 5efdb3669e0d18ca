"""Checkpoints: what ``save`` writes ``load`` reads, PyTorch's files, shared memory, devices, damage."""

from __future__ import annotations

import copy
import io
import os
import pickle
import sys
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from torch_checkpoint import DATA, DTYPES, content, first_result


def saved(obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return file.getvalue()


def again(obj: Any, **options: Any) -> Any:
    return torch.load(io.BytesIO(saved(obj)), **options)


def check_content(found: dict[str, Any]) -> None:
    """``found`` is the state of ``torch_checkpoint``."""
    wanted = content(torch)
    for name in DTYPES:
        assert found["dtypes"][name].dtype.name == name
        assert found["dtypes"][name].tolist() == wanted["dtypes"][name].tolist()
    for name in ("table", "transposed", "part", "column", "weight", "frozen", "empty", "number"):
        assert type(found[name]) is type(wanted[name])
        assert found[name].requires_grad is wanted[name].requires_grad and found[name].is_leaf
        assert found[name].shape == wanted[name].shape and found[name].tolist() == wanted[name].tolist()
    for name in ("nested", "ordered", "set", "complex"):
        assert found[name] == wanted[name] and type(found[name]) is type(wanted[name])
    assert found["optimizer"]["param_groups"][0]["momentum"] == 0.9
    assert found["optimizer"]["state"][0]["momentum_buffer"].tolist() == [[0.25, 4.0]]


@pytest.mark.parametrize("name", ["zip.pt", "stream.pt"])
def test_files_of_pytorch(name: str) -> None:
    found = torch.load(DATA / name)
    check_content(found)
    assert found["conjugated"].tolist() == [1 - 2j] and found["expanded"].tolist() == [7.0] * 4
    found["table"][1, 1] = 100.0
    assert found["transposed"][1, 1] == 100.0 and found["part"][0] == 100.0 and found["column"][1] == 100.0
    found["part"].zero_()
    assert found["table"].tolist() == [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]


def test_whole_modules_of_pytorch() -> None:
    found = torch.load(DATA / "modules.pt", weights_only=False)
    assert isinstance(found["modules"]["layers"], torch.nn.Sequential)
    for name, module in found["modules"].items():
        result = first_result(copy.deepcopy(module), found["x"])
        numpy.testing.assert_allclose(result.detach(), found["results"][name], atol=1e-6)
        assert again(module, weights_only=False).state_dict().keys() == module.state_dict().keys()
    layers, before = found["modules"]["layers"], found["modules"]["layers"][0].weight.detach().clone()
    layers(found["x"]).sum().backward()
    found["optimizer"].step()
    assert not torch.equal(layers[0].weight, before)
    with pytest.raises(pickle.UnpicklingError, match="Sequential"):
        torch.load(DATA / "modules.pt")


def test_files_of_pytorch_that_are_trusted() -> None:
    check_content(torch.load(DATA / "zip.pt", weights_only=False))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_round_trip(protocol: int) -> None:
    file = saved(content(torch), pickle_protocol=protocol)
    check_content(torch.load(io.BytesIO(file)))
    check_content(torch.load(io.BytesIO(file), weights_only=False))


def test_pytorch_reads_our_files(tmp_path: Path) -> None:
    peer = pytest.importorskip("torch")
    torch.save(content(torch), tmp_path / "ours.pt")
    for options in ({"weights_only": True}, {"weights_only": False}, {"mmap": True}):
        found = peer.load(tmp_path / "ours.pt", **options)
        wanted = content(peer)
        for name in DTYPES:
            assert found["dtypes"][name].dtype is getattr(peer, name)
            assert found["dtypes"][name].tolist() == wanted["dtypes"][name].tolist()
        for name in ("table", "transposed", "part", "column", "weight", "frozen", "empty", "number"):
            assert type(found[name]) is type(wanted[name])
            assert found[name].requires_grad is wanted[name].requires_grad
            assert found[name].shape == wanted[name].shape and found[name].tolist() == wanted[name].tolist()
        for name in ("nested", "ordered", "set", "complex"):
            assert found[name] == wanted[name] and type(found[name]) is type(wanted[name])


def test_states_of_modules_and_optimisers_go_both_ways(tmp_path: Path) -> None:
    peer = pytest.importorskip("torch")
    for source, target in ((torch, peer), (peer, torch)):
        first = source.nn.Sequential(source.nn.Linear(3, 4), source.nn.BatchNorm1d(4), source.nn.Linear(4, 1))
        optimizer = source.optim.Adam(first.parameters(), lr=0.05)
        second = target.nn.Sequential(
            target.nn.Linear(3, 4), target.nn.BatchNorm1d(4), target.nn.Linear(4, 1)
        )
        other = target.optim.Adam(second.parameters())
        data = numpy.random.default_rng(0).normal(size=(8, 3)).astype(numpy.float32)

        def step(library: Any, model: Any, optimizer: Any, data: Any = data) -> float:
            optimizer.zero_grad()
            loss = (model(library.from_numpy(data)) ** 2).mean()
            loss.backward()
            optimizer.step()
            return float(loss.item())

        step(source, first, optimizer)
        source.save([first.state_dict(), optimizer.state_dict()], tmp_path / "states.pt")
        model_state, optimizer_state = target.load(tmp_path / "states.pt")
        second.load_state_dict(model_state)
        other.load_state_dict(optimizer_state)
        for _ in range(3):
            assert step(source, first, optimizer) == pytest.approx(step(target, second, other), rel=1e-5)


def test_other_containers_and_numpy_numbers() -> None:
    counts = defaultdict(list, {"a": [1]})
    kept = {
        "counter": Counter("abca"),
        "default": counts,
        "frozen": frozenset({(1, "a")}),
        "slice": slice(1, None, 2),
        "bytes": bytearray(b"xy"),
        "size": torch.ones(2, 3).shape,
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "float": numpy.float64(1.5),
        "array": numpy.arange(6, dtype=numpy.int16).reshape(2, 3).T,
        "big": numpy.arange(3, dtype=">f4"),
    }
    for protocol in (2, 4, 5):
        found = torch.load(io.BytesIO(saved(kept, pickle_protocol=protocol)))
        for name in ("counter", "default", "frozen", "slice", "bytes", "size", "device", "float"):
            assert found[name] == kept[name] and type(found[name]) is type(kept[name]), name
        assert found["dtype"] is torch.bfloat16 and found["default"]["new"] == []
        assert numpy.array_equal(found["array"], kept["array"]) and found["array"].dtype == numpy.int16
        assert found["big"].tolist() == [0.0, 1.0, 2.0] and found["big"].flags.writeable


def test_the_state_of_a_module_is_an_ordered_dictionary_with_versions() -> None:
    state = torch.nn.BatchNorm1d(2).state_dict()
    found = again(state)
    assert type(state) is type(found) is OrderedDict
    assert found._metadata == state._metadata == {"": {"version": 2}}


def test_states_of_batch_normalisation_from_before_batches_were_counted() -> None:
    layer = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    state = {key: value + 1 for key, value in layer.state_dict().items() if "tracked" not in key}
    assert not layer.load_state_dict(state).missing_keys and layer[0].weight.tolist() == [2.0, 2.0]
    counted = layer.state_dict()
    del counted["0.num_batches_tracked"]
    with pytest.raises(RuntimeError, match="Missing key.*num_batches_tracked"):
        layer.load_state_dict(counted)


def test_one_tensor_twice_is_one_tensor_again() -> None:
    x = torch.ones(3)
    one, two, three = again([x, x, x.detach()])
    assert one is two and three is not one
    three.add_(1)
    assert one.tolist() == [2.0, 2.0, 2.0]


def test_views_share_memory_again() -> None:
    x = torch.arange(4.0)
    kept = [x, x.view(2, 2), x.view(2, 2).t(), x[1:3], x[::2]]
    file = saved(kept)
    found = torch.load(io.BytesIO(file))
    assert [one.tolist() for one in found] == [one.tolist() for one in kept]
    assert [one.stride() for one in found] == [one.stride() for one in kept]
    found[2][0, 1] = 10.0
    assert found[0].tolist() == [0.0, 1.0, 10.0, 3.0] and found[3].tolist() == [1.0, 10.0]
    part = again(torch.arange(6.0)[2:4])
    assert part.tolist() == [2.0, 3.0] and part.storage_offset() == 2
    found = again([x[1:], torch.nn.Parameter(x), x.view(2, 2)])
    found[1].data.zero_()
    assert not found[0].any() and not found[2].any()
    with pytest.raises(RuntimeError, match="float32 and of int32 share their memory"):
        saved([x, x.view(torch.int32)])


def test_tied_weights_stay_tied() -> None:
    model = torch.nn.Module()
    model.first, model.second = torch.nn.Embedding(3, 2), torch.nn.Linear(2, 3, bias=False)
    model.second.weight = model.first.weight
    file = saved(model.state_dict())
    assert len(file) < len(saved([torch.ones(3, 2), torch.ones(3, 2)]))
    found = torch.load(io.BytesIO(file))
    found["first.weight"].zero_()
    assert not found["second.weight"].any()


def test_devices() -> None:
    file = (DATA / "zip.pt").read_bytes().replace(b"\x00\x00\x00cpuq", b"\x00\x00\x00gpuq")
    file = rezipped(file)
    with pytest.raises(RuntimeError, match=r"device 'gpu', which go to 'gpu', and that is not available"):
        torch.load(io.BytesIO(file))
    seen = []
    for location in (
        "cpu",
        torch.device("cpu"),
        {"gpu": "cpu"},
        lambda storage, where: seen.append(where) or storage,
    ):
        check_content(torch.load(io.BytesIO(file), map_location=location))
    assert set(seen) == {"gpu"}
    with pytest.raises(RuntimeError, match="go to 'cuda:1'"):
        torch.load(DATA / "zip.pt", map_location={"cpu": "cuda:1"})


def rezipped(file: bytes) -> bytes:
    """A zip file with its checksums made right again."""
    import zipfile
    from zlib import crc32

    for info in zipfile.ZipFile(io.BytesIO(file)).infolist():
        if info.filename.endswith("data.pkl"):
            start = info.header_offset + 30 + len(info.filename) + len(info.extra)
            start = file.index(b"\x80\x02", start)
            right = crc32(file[start : start + info.file_size]).to_bytes(4, "little")
            file = file.replace(info.CRC.to_bytes(4, "little"), right)
    return file


def test_a_path_keeps_its_old_content_when_a_save_fails(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    torch.save(1, path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save([torch.ones(2), lambda: None], path)
    assert torch.load(path) == 1 and os.listdir(tmp_path) == ["state.pt"]
    with open(path, "rb") as file:
        assert torch.load(file) == 1


def test_a_file_may_start_anywhere_in_a_stream() -> None:
    file = io.BytesIO(b"before" + saved({"a": torch.ones(2)}))
    file.seek(6)
    assert torch.load(file)["a"].tolist() == [1.0, 1.0]

    class Pipe:
        def __init__(self, content: bytes) -> None:
            self.content = content

        def read(self) -> bytes:
            return self.content

    assert torch.load(Pipe(saved(3))) == 3


def test_data_of_tensors_is_aligned() -> None:
    file = saved([torch.arange(5.0), torch.ones(3, dtype=torch.int8), torch.full((2,), 7.0)])
    for values in (torch.arange(5.0), torch.full((2,), 7.0)):
        assert file.index(values.numpy().tobytes()) % 64 == 0


def test_arguments_that_would_be_ignored() -> None:
    with pytest.raises(ValueError, match=r"format before PyTorch 1\.6"):
        torch.save(1, io.BytesIO(), _use_new_zipfile_serialization=False)
    with pytest.raises(TypeError, match="options"):
        torch.load(io.BytesIO(saved(1)), fix_imports=True)
    with pytest.raises(RuntimeError, match="Leave pickle_module out"):
        torch.load(io.BytesIO(saved(1)), pickle_module=pickle, weights_only=True)
    with pytest.raises(ValueError, match="Give its path"):
        torch.load(io.BytesIO(saved(1)), mmap=True)


def test_whole_modules_load_where_the_file_is_trusted(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    torch.save(model, path)
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False if you trust the file"):
        torch.load(path)
    found = torch.load(path, weights_only=False)
    assert repr(found) == repr(model) and torch.equal(found[0].weight, model[0].weight)
