"""Files appear whole or not at all, and a killed writer leaves nothing for ever."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import twofold as torch
import twofold.static as tf
from twofold.files import atomic_write, remove_stale

ROOT = Path(torch.__file__).parents[1]

KILLED_DURING_SAVE = """
import os, signal, sys
import twofold as torch
import twofold.static as tf
# Killed when the content is written and only the rename is missing.
replace = os.replace
os.replace = lambda a, b: os.kill(os.getpid(), signal.SIGKILL) if b.startswith(sys.argv[2]) else replace(a, b)
if sys.argv[1] == "torch":
    torch.save({"w": torch.ones(1000)}, sys.argv[2])
else:
    with tf.Session() as session:
        w = tf.Variable([1.0, 2.0])
        session.run(w.initializer)
        tf.train.Saver().save(session, sys.argv[2])
"""


def killed_save(face: str, path: Path) -> None:
    command = [sys.executable, "-c", KILLED_DURING_SAVE, face, str(path)]
    done = subprocess.run(command, cwd=ROOT, timeout=120, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert len(os.listdir(path.parent)) == 1 and not path.exists()


def test_the_next_save_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    killed_save("torch", path)
    torch.save({"w": torch.ones(3)}, path)
    assert os.listdir(tmp_path) == ["state.pt"]


def test_the_next_load_removes_what_a_killed_save_left(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    killed_save("torch", path)
    with pytest.raises(FileNotFoundError):
        torch.load(path)
    assert os.listdir(tmp_path) == []


def test_looking_for_a_checkpoint_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    killed_save("static", tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.Saver([tf.Variable(1.0)])
        with pytest.raises(ValueError, match="there is no checkpoint"):
            saver.restore(session, str(tmp_path / "model"))
    assert os.listdir(tmp_path) == []


def test_the_next_checkpoint_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    killed_save("static", tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([1.0, 2.0])
        session.run(w.initializer)
        tf.train.Saver().save(session, str(tmp_path / "model"))
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_a_file_that_is_still_written_to_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with atomic_write(path) as file:
        file.write(b"slow")
        with atomic_write(path) as other:
            other.write(b"quick")
        remove_stale(path)
        assert path.read_bytes() == b"quick"
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["state"]


def test_only_files_of_the_target_are_removed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with atomic_write(tmp_path / name):
            pass
    killed_save_name = {}
    for name in ("a", "b"):
        writer = atomic_write(tmp_path / name)
        writer.__enter__()
        killed_save_name[name] = set(os.listdir(tmp_path)) - {"a", "b"} - set(killed_save_name.values())
        killed_save_name[name] = killed_save_name[name].pop()  # type: ignore[assignment]
        writer._file.close()  # as the end of its process closes it
    remove_stale(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == sorted([str(killed_save_name["b"]), "a", "b"])


def test_an_error_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["state"]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        torch.save(1, tmp_path / "new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o600)
    (tmp_path / "link").symlink_to("new")
    torch.save(2, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and torch.load(tmp_path / "new") == 2
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    torch.save(3, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    draws = iter([b"\0" * 8, b"\1" * 8])
    monkeypatch.setattr(os, "urandom", lambda count: next(draws))
    with atomic_write(tmp_path / "probe") as file:
        name = Path(str(file.name)).name if isinstance(file.name, str) else None
        planted = next(p for p in tmp_path.iterdir() if p.name.endswith("00" * 8))
    assert name is None and not planted.exists()
    planted.symlink_to(victim)
    monkeypatch.setattr(os, "urandom", lambda count: b"\0" * 8)
    with pytest.raises(FileExistsError), atomic_write(tmp_path / "probe", clean=False):
        pass
    assert victim.read_bytes() == b"precious"


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with atomic_write(tmp_path / "state") as file:
        file.write(b"content")
        remove_stale(tmp_path / "state")  # too young to be taken for one that was left
    assert (tmp_path / "state").read_bytes() == b"content"
