"""Fusing of traces: at once, or in a thread of its own while operations run one by one."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.config import config
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.types import type_from_code
from twofold.runtime.background import Background
from twofold.runtime.compile import compile_graph
from twofold.runtime.tracing import graph_of_entry


def inline_trace(executable: Any) -> Graph:
    """All calls of a trace as one closed primitive graph."""
    written, entries, outputs = _core.describe_executable(executable)
    leaf_types = [type_from_code(*type) for type in written]
    leaves = [input_node(k, type) for k, type in enumerate(leaf_types)]
    values: list[Node] = []
    for entry in entries:
        arguments = [values[ref] if ref >= 0 else leaves[~ref] for ref in entry[1]]
        values.append(graph_of_entry(entry).inline(arguments)[0])
    return Graph(leaf_types, [values[ref] if ref >= 0 else leaves[~ref] for ref in outputs])


def _fuse(executable: Any) -> None:
    _core.set_fused(executable, compile_graph(inline_trace(executable)).program())


def _fuse_later(executable: Any) -> None:
    try:
        _fuse(executable)
    except MemoryError:
        _core.ask_again(executable)  # there may be memory later; until then operations run one by one
    except BaseException as error:
        if "compile" in config.log:
            print(f"twofold: fusing a trace failed: {error!r}")
        raise


_background = Background(_fuse_later, "twofold-compile")


def compile_trace(executable: Any, wait: bool) -> bool:
    """Fuse a trace and hand the program to the core; in the background unless ``wait``.

    False if that is not possible now.
    """
    if wait or not config.background_compile:
        _fuse(executable)
        return True
    return _background.submit(executable)


def wait_for_compiler() -> None:
    """Block until every trace that was handed to the background compiler is fused; raise what failed.

    >>> import twofold as torch
    >>> x = torch.ones(3) + 1
    >>> torch.wait_for_compiler()
    """
    _background.wait()
