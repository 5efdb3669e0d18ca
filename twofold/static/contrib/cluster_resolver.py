"""Where the machines of a cluster are: ``tf.contrib.cluster_resolver``."""

from __future__ import annotations

from typing import Any

from twofold.runtime.tracing import here
from twofold.static.errors import UnimplementedError
from twofold.static.graph.docstrings import example
from twofold.static.python.positions import enter
from twofold.static.train.server import ClusterSpec


class TPUClusterResolver:
    """Finds tensor processing units, of which there are none: it raises UnimplementedError."""

    def __init__(self, tpu: Any = None, zone: Any = None, project: Any = None, **options: Any) -> None:
        what = f"TPUClusterResolver: there is no tensor processing unit, at {here()}"
        raise UnimplementedError(f"{what}. Run with use_tpu=False, which needs no resolver.")


@example(
    'spec = tf.train.ClusterSpec({"worker": ["localhost:2222"]})',
    "print(tf.contrib.cluster_resolver.SimpleClusterResolver(spec).cluster_spec().jobs)",
    "['worker']",
)
class SimpleClusterResolver:
    """A cluster that is given.

    Args:
        cluster_spec: The cluster.
        master: The address of the server that sessions are made at.
        task_type, task_id: Which task of the cluster this is.
        environment: A word for where it is.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
    ) -> None:
        self._spec, self._master = cluster_spec, master
        self.task_type, self.task_id, self.environment = task_type, task_id, environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None) -> str:
        """The address of the task given, else of the server that sessions are made at."""
        if task_type is None or task_id is None:
            return self._master
        return self._spec.task_address(task_type, task_id)


enter(
    __name__,
    {"python.training.tpu_cluster_resolver python.training.cluster_resolver": "contrib.cluster_resolver"},
)
