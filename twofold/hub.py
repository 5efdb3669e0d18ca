"""Files of weights by their addresses, and models of local folders, under ``torch.hub``'s names."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlparse as urlparse

from twofold.errors import ArgumentError
from twofold.serialization import load as load_file

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_HASH = re.compile(r"-([a-f0-9]{8,})\.")
_chosen: list[str] = []


class _Bar:
    """A progress bar that shows nothing."""

    def __init__(self, iterable: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, n: float = 1) -> None:
        """Nothing; ``n`` more are done."""

    def close(self) -> None:
        """Nothing."""


def tqdm(iterable: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The progress bar of the package tqdm; one that shows nothing where that is not installed.

    >>> import twofold as torch
    >>> [*torch.hub.tqdm(range(3), disable=True)]
    [0, 1, 2]
    """
    if importlib.util.find_spec("tqdm") is None:
        return _Bar(iterable)
    return importlib.import_module("tqdm").tqdm(iterable, *args, **kwargs)


def _get_torch_home() -> str:
    """The folder of ``TORCH_HOME``, or one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder that files are kept in: that of ``set_dir``, or ``hub`` in that of ``TORCH_HOME`` or a cache."""
    return _chosen[-1] if _chosen else os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Set the folder that files are kept in."""
    _chosen[:] = [os.path.expanduser(os.fspath(d))]


def download_url_to_file(url: str, dst: Any, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Copy what stands at an address into a file; ``progress`` shows nothing.

    Raises RuntimeError where the file's SHA-256 does not begin with ``hash_prefix``.
    """
    path = os.path.expanduser(os.fspath(dst))
    seen = hashlib.sha256()
    made, part = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), suffix=".partial")
    try:
        with os.fdopen(made, "wb") as out, urllib.request.urlopen(url) as source:
            while block := source.read(1 << 20):
                seen.update(block)
                out.write(block)
        found = seen.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(
    url: str,
    model_dir: Any = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Mapping[str, Any]:
    """What ``torch.load`` reads from the file at an address, which is kept in ``model_dir``.

    With ``check_hash`` its name must hold the beginning of its SHA-256, as in ``resnet18-f37072fd.pth``.
    """
    folder = os.fspath(model_dir) if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        hashed = _HASH.search(name) if check_hash else None
        download_url_to_file(url, path, hashed.group(1) if hashed else None, progress)
    return load_file(path, map_location=map_location, weights_only=weights_only)


def _entries(repo_or_dir: Any, source: str) -> Any:
    if source != "local":
        fix = "Fetch the repository, and give its folder with source='local'."
        raise ArgumentError(f"hub: source {source!r} is another machine's repository", fix)
    path = os.path.join(os.path.expanduser(os.fspath(repo_or_dir)), "hubconf.py")
    found = importlib.util.spec_from_file_location("hubconf", path)
    if found is None or found.loader is None or not os.path.exists(path):
        raise FileNotFoundError(f"hub: there is no {path}")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, os.path.dirname(path))
    try:
        found.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.dirname(path))
    return module


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """What ``model`` of ``hubconf.py`` in a local folder returns; raises ArgumentError for another ``source``."""
    return getattr(_entries(repo_or_dir, source), model)(*args, **kwargs)


def list(github: Any, source: str = "github") -> Any:
    """The functions of ``hubconf.py`` in a local folder."""
    module = _entries(github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github: Any, model: str, source: str = "github") -> Any:
    """What a function of ``hubconf.py`` in a local folder says of itself."""
    return getattr(_entries(github, source), model).__doc__
