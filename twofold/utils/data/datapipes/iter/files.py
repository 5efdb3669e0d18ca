"""Pipes of files."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from twofold.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from twofold.utils.data.datapipes.iter.mapping import IterableWrapper, length_of


@functional_datapipe("list_files")
class FileLister(IterDataPipe):
    """The paths of files in folders.

    Args:
        root: A folder, several, or a pipe of them.
        masks: Patterns of names, of which one must fit; all files without any.
        recursive: Whether to list folders inside, too.
        abspath: Whether paths are absolute.
        non_deterministic: Whether the order is that of the file system.
        length: What ``len`` gives, if not below 0.
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapper(roots)
        self.masks = [masks] if isinstance(masks, str) else masks
        self.recursive, self.abspath, self.length = recursive, abspath, length
        self.non_deterministic = non_deterministic

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            if not os.path.isdir(root):
                raise FileNotFoundError(f"{root} is no folder. Give one.")
            for folder, folders, names in os.walk(os.path.abspath(root) if self.abspath else root):
                if not self.recursive:
                    folders.clear()
                if not self.non_deterministic:
                    folders.sort()
                    names.sort()
                for name in names:
                    if not any(self.masks) or any(fnmatch.fnmatch(name, mask) for mask in self.masks):
                        yield os.path.join(folder, name)

    def __len__(self) -> int:
        return length_of(self, self.length)


@functional_datapipe("open_files")
class FileOpener(IterDataPipe):
    """Pairs of a path and the open file.

    Args:
        datapipe: Paths.
        mode: As in ``open``; ``"b"`` and ``"t"`` alone are to read.
        encoding: Of text.
        length: What ``len`` gives, if not below 0.
    """

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}. Use 'r', 'rt', 'rb', 't' or 'b'.")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        mode = self.mode if self.mode.startswith("r") else f"r{self.mode}"
        for path in self.datapipe:
            yield path, open(path, mode, encoding=self.encoding)  # noqa: SIM115

    def __len__(self) -> int:
        return length_of(self, self.length)
