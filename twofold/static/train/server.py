"""Clusters whose tasks are all in this process: ``tf.train.ClusterSpec`` and ``tf.train.Server``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.errors import UnimplementedError
from twofold.static.graph.devices import DeviceSpec, parse
from twofold.static.graph.docstrings import example

_clusters: dict[str, _Cluster] = {}
"""By the target of a server the cluster whose tasks are here."""


@example(
    'cluster = tf.train.ClusterSpec({"worker": ["localhost:2222", "localhost:2223"]})',
    'print(cluster.jobs, cluster.num_tasks("worker"), cluster.task_address("worker", 1))',
    "['worker'] 2 localhost:2223",
)
class ClusterSpec:
    """Addresses of tasks, by the names of jobs: in lists, or in dictionaries by numbers."""

    def __init__(self, cluster: Any) -> None:
        found = cluster.as_dict() if isinstance(cluster, ClusterSpec) else cluster
        if not isinstance(found, Mapping):
            raise TypeError(
                f"ClusterSpec: {type(cluster).__name__} is no cluster, at {here()}. Give a dictionary."
            )
        self._jobs = {
            job: dict(tasks if isinstance(tasks, Mapping) else enumerate(tasks))
            for job, tasks in found.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """The addresses by jobs; in a list where the tasks are counted from 0 without gaps."""
        return {
            job: [tasks[k] for k in sorted(tasks)]
            if sorted(tasks) == list(range(len(tasks)))
            else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(
                f"ClusterSpec: no job {job_name!r}, at {here()}. There are {', '.join(self._jobs)}."
            )
        return self._jobs[job_name]

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of the tasks of a job."""
        return sorted(self._tasks(job_name))

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of the tasks of a job; None for a number without a task."""
        tasks = self._tasks(job_name)
        return [tasks.get(k) for k in range(max(tasks, default=-1) + 1)]

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""
        if task_index not in self._tasks(job_name):
            raise ValueError(f"ClusterSpec: job {job_name!r} has no task {task_index}, at {here()}.")
        return self._tasks(job_name)[task_index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __bool__(self) -> bool:
        return bool(self._jobs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


class _Cluster:
    """The tasks of a cluster that have servers in this process, and what its variables hold, by graph."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.tasks: set[tuple[str, int]] = set()
        self.states: weakref.WeakKeyDictionary[Any, tuple[dict[Any, Any], dict[Any, Any]]] = (
            weakref.WeakKeyDictionary()
        )


class Server:
    """A task of a cluster in this process; sessions of its ``target`` share the values of variables.

    Operations may be placed on the tasks of a cluster that have servers in this process. There are no others: an
    operation that is placed on one raises when it runs, and ``join`` raises UnimplementedError, as nobody can ask.

    >>> import twofold.static as tf
    >>> server = tf.train.Server.create_local_server()
    >>> with tf.Graph().as_default(), tf.device("/job:local/task:0"), tf.Session(server.target) as session:
    ...     print(session.run(tf.constant(1) + 2))
    3
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        if protocol not in (None, "grpc"):
            raise ArgumentError(f"Server: protocol is {protocol!r}, at {here()}", "Leave it out.")
        refuse("Server", config=config)
        given = server_or_cluster_def
        spec: ClusterSpec = given._spec if isinstance(given, Server) else ClusterSpec(given)
        self._spec: ClusterSpec = spec
        self._job = self._only("job_name", job_name, spec.jobs)
        self._task = self._only("task_index", task_index, spec.task_indices(self._job))
        self._target = f"grpc://{spec.task_address(self._job, self._task)}"
        if start:
            self.start()

    @staticmethod
    def _only(label: str, value: Any, choices: Sequence[Any]) -> Any:
        if value is None and len(choices) == 1:
            return choices[0]
        if value is None:
            raise ValueError(f"Server: {label} is not given, at {here()}. Choose one of {list(choices)}.")
        return value

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """The server of a cluster that has no other task."""
        address = f"localhost:{len(_clusters)}"
        return Server(ClusterSpec({"local": [address]}), config=config, start=start)

    def start(self) -> None:
        """Let sessions use this task."""
        same = (cluster for cluster in _clusters.values() if cluster.spec == self._spec)
        cluster = next(same, None) or _Cluster(self._spec)
        cluster.tasks.add((self._job, self._task))
        _clusters[self._target] = cluster

    def join(self) -> None:
        """Raises UnimplementedError: nothing outside of this process can ask this task."""
        raise UnimplementedError(
            f"Server.join: there are no remote sessions to wait for, at {here()}. Run the work in this process."
        )

    @property
    def target(self) -> str:
        """What sessions are made with."""
        return self._target

    @property
    def server_def(self) -> Any:
        """Raises UnimplementedError: there is no message of a server."""
        raise UnimplementedError(f"Server.server_def: not offered, at {here()}. Use the ClusterSpec.")


def state_and_tasks(target: str, graph: Any) -> tuple[dict[Any, Any], dict[Any, Any], set[tuple[str, int]]]:
    """A graph's variables and resources on a server's cluster, and the tasks that are here; raises ArgumentError."""
    if target not in _clusters:
        what = f"Session: no server of this process has the target {target!r}, at {here()}"
        raise ArgumentError(what, "Leave it out, or use the target of a tf.train.Server.")
    cluster = _clusters[target]
    states, resources = cluster.states.setdefault(graph, ({}, {}))
    return states, resources, cluster.tasks


_PARAMETERS = ("Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "VarHandleOp")


@example("print(tf.train.replica_device_setter(ps_tasks=0))", "None")
def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A function for ``tf.device`` that places variables on tasks of ``ps_device`` in turn, the rest on workers.

    Args:
        ps_tasks: The number of tasks of parameters; without any there is no function.
        ps_device: Where parameters are.
        worker_device: Where the rest is.
        merge_devices: Whether a device that an operation has already keeps what it says; else it is kept as it is.
        cluster: A cluster, which says the number of tasks.
        ps_ops: The types of operations that hold parameters.
        ps_strategy: A function of an operation that chooses its task.
    """
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        ps_tasks = len(jobs.get(parse(ps_device).job or "", ()))
    if not ps_tasks:
        return None
    kinds = _PARAMETERS if ps_ops is None else tuple(ps_ops)
    placed: list[Any] = []

    def in_turn(operation: Any) -> int:
        placed.append(operation)
        return (len(placed) - 1) % ps_tasks

    choose = ps_strategy or in_turn

    def device(operation: Any) -> str:
        own = parse(operation.device or "")
        if not merge_devices and operation.device:
            return str(own)
        if operation.type not in kinds:
            return str(own.inside(parse(worker_device)))
        task = DeviceSpec(task=choose(operation)) if own.task is None else DeviceSpec()
        return str(own.inside(task.inside(parse(ps_device))))

    return device
