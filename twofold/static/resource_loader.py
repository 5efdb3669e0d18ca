"""Files that lie beside a module: ``tf.resource_loader``."""

from __future__ import annotations

import os
import sys


def get_data_files_path() -> str:
    """The directory of the module that calls."""
    return os.path.dirname(sys._getframe(1).f_globals["__file__"])


def get_path_to_datafile(path: str) -> str:
    """The path of a file beside the module that calls."""
    return os.path.join(os.path.dirname(sys._getframe(1).f_globals["__file__"]), path)


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """The path as it is: how much is read ahead changes no content."""
    return path


def load_resource(path: str) -> bytes:
    """The content of a file beside the module that calls."""
    folder = os.path.dirname(sys._getframe(1).f_globals["__file__"])
    with open(os.path.join(folder, path), "rb") as file:
        return file.read()
