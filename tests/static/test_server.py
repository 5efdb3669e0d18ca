"""Clusters of tasks in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

CLUSTER = {"local": ["localhost:2222", "localhost:2223", "localhost:2224"]}


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_tasks_of_a_process_share_variables() -> None:
    first, second = (tf.train.Server(CLUSTER, "local", k) for k in range(2))
    with tf.device("/job:local/task:0"):
        v = tf.Variable(1.0)
    with tf.device("/job:local/task:1"):
        double = v * 2
    with tf.Session(first.target) as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(4.0))
    with tf.Session(second.target) as session:
        assert session.run(double) == 8.0
    with tf.device("/job:local/task:2"):
        elsewhere = v + 1
    with (
        tf.Session(second.target) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"),
    ):
        session.run(elsewhere)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="/job:local/task:0"):
        session.run(v.initializer)


def test_a_server_alone() -> None:
    server = tf.train.Server.create_local_server()
    two = tf.constant(2)
    with tf.train.MonitoredTrainingSession(master=server.target) as session:
        assert session.run(two) == 2
    with pytest.raises(tf.errors.UnimplementedError, match="no remote sessions"):
        server.join()
    with pytest.raises(ArgumentError, match="no server of this process"):
        tf.Session("grpc://elsewhere:1")
    with pytest.raises(ValueError, match="task_index is not given"):
        tf.train.Server(CLUSTER, "local")
    with pytest.raises(ArgumentError, match="protocol"):
        tf.train.Server(CLUSTER, "local", 0, protocol="other")


def test_addresses() -> None:
    spec = tf.train.ClusterSpec({"ps": {3: "a:1"}, "worker": ["b:1", "c:1"]})
    assert spec.as_dict() == {"ps": {3: "a:1"}, "worker": ["b:1", "c:1"]}
    assert spec == tf.train.ClusterSpec(spec) and spec != tf.train.ClusterSpec({"ps": ["a:1"]})
    assert spec.task_indices("ps") == [3] and spec.job_tasks("ps") == [None, None, None, "a:1"]
    with pytest.raises(ValueError, match="no job 'other'"):
        spec.num_tasks("other")
    with pytest.raises(ValueError, match="no task 0"):
        spec.task_address("ps", 0)


def test_parameters_are_placed_in_turn() -> None:
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
        devices = [tf.Variable(1.0, name=name).device for name in "abc"]
        total = tf.constant(1.0) + 2.0
    assert devices == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert total.op.device == "/job:worker/task:0"
    assert tf.train.replica_device_setter(cluster={"worker": ["c:1"]}) is None
    chosen = tf.train.replica_device_setter(2, ps_ops=["Const"], ps_strategy=lambda op: 1)
    with tf.device(chosen):
        assert tf.constant(1.0).op.device == "/job:ps/task:1"


def test_a_cluster_for_tests_shares_its_variables() -> None:
    (one, two), (ps,) = tf.test.create_local_cluster(2, 1)
    (other,), _ = tf.test.create_local_cluster(1, 0)
    v = tf.Variable(1.0)
    with tf.Session(one.target) as first, tf.Session(two.target) as second, tf.Session(ps.target) as third:
        first.run(v.initializer)
        second.run(tf.assign_add(v, 2.0))
        assert third.run(v) == 3.0
    with tf.Session(other.target) as session, pytest.raises(tf.errors.FailedPreconditionError):
        session.run(v)
