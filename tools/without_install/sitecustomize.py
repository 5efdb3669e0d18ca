"""Put this folder on PYTHONPATH before a tree, and Python imports the tree's package, not an installed one.

The finder of an editable install stands before everything on the path, so a copy of the package would never be met.
"""

from __future__ import annotations

import sys


def is_of_editable_install(finder: object) -> bool:
    """Whether pip put a finder there: scikit-build-core's are instances, setuptools' are classes."""
    return "editable" in (finder if isinstance(finder, type) else type(finder)).__module__


sys.meta_path[:] = [finder for finder in sys.meta_path if not is_of_editable_install(finder)]
