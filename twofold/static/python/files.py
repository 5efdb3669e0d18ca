"""Files under the names of ``tensorflow.python.lib.io.file_io``."""

from __future__ import annotations

from typing import Any

from twofold.static.platform.file_io import GFile as FileIO
from twofold.static.platform.file_io import gfile

__all__ = ["FileIO"]

file_exists, is_directory, list_directory = gfile.Exists, gfile.IsDirectory, gfile.ListDirectory
create_dir, recursive_create_dir = gfile.MkDir, gfile.MakeDirs
delete_file, delete_recursively = gfile.Remove, gfile.DeleteRecursively
get_matching_files, walk, copy, rename = gfile.Glob, gfile.Walk, gfile.Copy, gfile.Rename


def read_file_to_string(filename: str, binary_mode: bool = False) -> Any:
    """The content of a file, as text or bytes."""
    with FileIO(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: str, file_content: Any) -> None:
    """Write a file."""
    with FileIO(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)
