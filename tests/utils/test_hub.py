"""Weights by their addresses and models of local folders, and functions that would be scripted."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import twofold as torch
from twofold.errors import ArgumentError


def test_weights_are_read_by_their_address(tmp_path: Path) -> None:
    source, folder = tmp_path / "net.pth", tmp_path / "kept"
    torch.save({"w": torch.ones(2)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:8]
    named = source.rename(tmp_path / f"net-{digest}.pth")
    found = torch.hub.load_state_dict_from_url(named.as_uri(), folder, check_hash=True)
    assert found["w"].tolist() == [1.0, 1.0] and (folder / named.name).exists()
    named.unlink()
    assert torch.hub.load_state_dict_from_url(named.as_uri(), folder)["w"].tolist() == [1.0, 1.0]


def test_other_contents_than_the_name_says_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "net-01234567.pth"
    torch.save({}, source)
    with pytest.raises(RuntimeError, match="invalid hash"):
        torch.hub.load_state_dict_from_url(source.as_uri(), tmp_path / "kept", check_hash=True)
    assert not list((tmp_path / "kept").iterdir())


def test_models_of_a_local_folder(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text("def net(size):\n    'A net.'\n    return size + 1\n")
    assert torch.hub.load(tmp_path, "net", 4, source="local") == 5
    assert (
        torch.hub.list(tmp_path, "local") == ["net"] and torch.hub.help(tmp_path, "net", "local") == "A net."
    )
    with pytest.raises(ArgumentError, match="another machine"):
        torch.hub.load("someone/net", "net")


def test_scripted_functions_compute_the_same() -> None:
    @torch.jit.script
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x / 2 if x.sum() > 0 else x

    x = torch.tensor([2.0, 4.0])
    assert halved(x).tolist() == [1.0, 2.0] and halved(-x).tolist() == [-2.0, -4.0]
    with pytest.raises(ZeroDivisionError):
        torch.jit.trace(lambda x: 1 / 0, (x,))
    for fails in (lambda: torch.jit.save(halved, "f"), lambda: torch.jit.load("f")):
        with pytest.raises(NotImplementedError, match="state_dict"):
            fails()
