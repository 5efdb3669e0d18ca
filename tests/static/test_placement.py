"""``tf.device`` reads and checks its strings; what is for a device that is not there raises, or is placed softly."""

import numpy
import pytest

import twofold.static as tf


def on(device, **options):
    with tf.Graph().as_default(), tf.device(device):
        x = tf.constant(1.0) + 2.0
        with tf.Session(config=tf.ConfigProto(**options)) as session:
            return session.run(x)


@pytest.mark.parametrize(
    "device",
    ["/cpu:0", "cpu:0", "/CPU:0", "/device:CPU:0", "/cpu", "", None, "/job:localhost/replica:0/task:0/cpu:0"],
)
def test_the_processor_by_all_its_names(device):
    assert on(device) == 3.0


@pytest.mark.parametrize("device", ["/gpu:0", "/device:GPU:1", "gpu", "/cpu:1", "/device:TPU:0"])
def test_other_devices_raise_unless_placed_softly(device):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation add"):
        on(device)
    assert on(device, allow_soft_placement=True) == 3.0


@pytest.mark.parametrize("device", ["/job:ps", "/task:3", "/job:worker/task:1/cpu:0"])
@pytest.mark.parametrize("soft", [False, True])
def test_other_processes_raise_always(device, soft):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
        on(device, allow_soft_placement=soft)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("/bogus", "Unknown attribute 'bogus'"),
        ("/cpu:x", "'x' is not a number"),
        ("/task:a", "'a' is not a number"),
        ("/gpu:0/cpu:0", "Multiple device types"),
    ],
)
def test_what_is_no_device_raises_at_the_users_line(device, words):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=f"{words}.*test_placement.py"):
        tf.device(device)


def test_what_is_no_string_raises():
    with tf.Graph().as_default(), pytest.raises(TypeError, match="a device of type int"):
        tf.device(3)


def test_devices_are_merged_and_functions_asked():
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        with tf.device("/job:ps"):
            assert tf.constant(1.0).op.device == "/job:ps/device:CPU:0"
        with tf.device("/gpu:1"):
            assert tf.constant(1.0).op.device == "/device:GPU:1"
        with tf.device(None):
            assert tf.constant(1.0).op.device == ""
        with tf.device(lambda operation: "/task:2" if operation.type == "Const" else None):
            assert tf.constant(1.0).op.device == "/task:2/device:CPU:0"
            assert tf.no_op().device == "/device:CPU:0"


def test_only_what_runs_is_checked_also_before_python():
    with tf.Graph().as_default(), tf.Session() as session:
        called = []
        with tf.device("/gpu:0"):
            x = tf.constant(1.0)
            y = tf.py_func(lambda v: called.append(1) or v, [x], tf.float32)
        assert session.run(tf.constant(2.0)) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="device"):
            session.run(y)
        assert called == []


def test_the_processor_is_shown(capsys):
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(tf.constant(numpy.float32(1.0), name="x"))
    assert "x: (Const): /job:localhost/replica:0/task:0/device:CPU:0" in capsys.readouterr().err


def test_functions_that_choose_a_device_see_the_whole_operation():
    seen = []

    def device(operation):
        message = operation.node_def
        seen.append((message.op, list(message.input)))
        return "/cpu:0"

    with tf.Graph().as_default(), tf.device(device):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        rows = tf.identity(x[0:2], name="rows")
        row = tf.reduce_sum(rows, 1, name="row")
        tf.concat([row, row], 0)
        w = tf.Variable(tf.zeros([4, 3]), name="w")
        product = tf.matmul(rows, w, name="product")
        tf.gradients(product, w)
        w.assign_add(tf.ones([4, 3]))
        tf.cond(row[0] > 0, lambda: row, lambda: -row)
        tf.py_func(numpy.sum, [row], tf.float32)
        tf.hessians(tf.reduce_sum(product * product), w)
        tf.split(rows, 2, 1)
    kinds: dict = {}
    for kind, inputs in seen:
        kinds.setdefault(kind, inputs)
    assert kinds["StridedSlice"][0] == "x" and kinds["Identity"] == ["strided_slice"]
    assert kinds["Sum"][0] == "rows" and kinds["MatMul"] == ["rows", "w"]
