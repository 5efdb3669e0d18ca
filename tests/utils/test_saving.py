"""Saving and loading, older constructors, and gradients under their module name."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch


def test_round_trip(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "state.pt"
    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    torch.save(kept, path)
    found = torch.load(path)
    assert found["epoch"] == 3
    other = torch.nn.Linear(3, 2)
    other.load_state_dict(found["model"])
    assert torch.equal(other.weight, model.weight)
    torch.optim.Adam(other.parameters()).load_state_dict(found["optimizer"])
    dtypes = (torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.bool)
    values = [torch.tensor([0.0, 1.0]).to(dtype) for dtype in dtypes]
    torch.save(values, path)
    for one, two in zip(values, torch.load(path)):
        assert one.dtype is two.dtype and torch.equal(one, two)
    assert os.listdir(tmp_path) == ["state.pt"]


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    torch.save({"w": torch.ones(100)}, path)
    content = path.read_bytes()
    for length in (len(content) - 1, 30, 10):
        path.write_bytes(content[:length])
        with pytest.raises(RuntimeError, match="is truncated"):
            torch.load(path)
    path.write_bytes(content[:80] + bytes([content[80] ^ 1]) + content[81:])
    with pytest.raises(RuntimeError, match="is corrupt: its checksum does not fit"):
        torch.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(RuntimeError, match=r"was not written by twofold.save"):
        torch.load(path)


def test_a_failing_save_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    torch.save(1, path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save(lambda: None, path)
    assert torch.load(path) == 1 and os.listdir(tmp_path) == ["state.pt"]


def test_other_classes_need_trust(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(torch.nn.ReLU(), path)
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False if you trust the file"):
        torch.load(path)
    assert repr(torch.load(path, weights_only=False)) == "ReLU()"


def test_older_constructors() -> None:
    assert torch.FloatTensor([1, 2]).dtype is torch.float32
    assert torch.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.ByteTensor([1]).type() == "twofold.ByteTensor"


def test_comparisons_of_whole_tensors() -> None:
    a = torch.tensor([1.0, float("nan"), float("inf")])
    assert not torch.equal(a, a) and torch.equal(a[:1], a[:1]) and not torch.equal(a, a[:1])
    assert not torch.allclose(a, a) and torch.allclose(a, a, equal_nan=True)
    assert torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.000001, 2.1])).tolist() == [True, False]
    assert torch.is_floating_point(a) and torch.numel(a) == 3 and not torch.cuda.is_available()


def test_autograd_functions() -> None:
    x = torch.autograd.Variable(torch.tensor([1.0, 2.0]), requires_grad=True)
    assert isinstance(x, torch.autograd.Variable) and x.requires_grad
    torch.autograd.backward([x.sum(), (x * x).sum()], retain_graph=False)
    assert x.grad.tolist() == [3.0, 5.0]
    (found,) = torch.autograd.grad((x**3).sum(), x)
    assert found.tolist() == [3.0, 12.0]
    with pytest.raises(NotImplementedError, match="detect_anomaly"):
        torch.autograd.set_detect_anomaly(True)


def test_gradcheck() -> None:
    random = numpy.random.default_rng(0)
    x, w = (torch.tensor(random.normal(size=shape), requires_grad=True) for shape in ((2, 3), (3, 2)))
    assert torch.autograd.gradcheck(lambda x, w: torch.tanh(x @ w), (x, w))

    def wrong(x: Any) -> Any:
        return x * x.detach()

    assert not torch.autograd.gradcheck(wrong, (x,), raise_exception=False)
    with pytest.raises(
        torch.autograd.GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        torch.autograd.gradcheck(wrong, (x,))
