"""What every test begins with and leaves behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    """Each collection of garbage would go through the tests themselves, of which there are millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def random_numbers_are_the_same_in_every_run() -> None:
    """Without a seed, a test of what training reaches fails once in some hundred runs."""
    module = sys.modules.get("twofold")
    if module is not None:
        module.manual_seed(0)


@pytest.fixture(autouse=True)
def no_default_graph_is_left() -> Iterator[None]:
    """Whether the default graph has operations decides what later calls mean: declared, or computed at once."""
    yield
    module = sys.modules.get("twofold.static.graph.graph")
    if module is not None and module.get_default_graph().version:
        module.reset_default_graph()


@pytest.fixture(autouse=True, scope="module")
def the_compiler_does_not_work_for_earlier_files() -> Iterator[None]:
    """Whoever waits for the compiler would wait until it has fused what tests of other files left behind."""
    yield
    module = sys.modules.get("twofold.compiler.requests")
    if module is not None:
        for _, retry, _ in module.background.drop():
            retry()
