"""Options of sessions and runs have an effect, warn once that they have none, or raise."""

import json

import numpy
import pytest

import twofold
import twofold.static as tf
from twofold.static.session import config


@pytest.fixture(autouse=True)
def anew():
    before = set(config._warned)
    config._warned.clear()
    yield
    config._warned.clear()
    config._warned.update(before)


def test_fields_that_are_not_there_raise():
    with pytest.raises(ValueError, match='ConfigProto has no "nonsense" field'):
        tf.ConfigProto(nonsense=1)
    with pytest.raises(AttributeError, match="no field 'nonsense'"):
        tf.ConfigProto().nonsense = 1
    with pytest.raises(AttributeError, match="no field 'alow_growth'"):
        tf.ConfigProto().gpu_options.alow_growth = True


def test_what_has_no_effect_warns_once():
    made = tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.5))
    made.gpu_options.allow_growth = True
    made.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    with pytest.warns(UserWarning) as caught:
        tf.Session(config=made).close()
        tf.Session(config=made).close()
    assert sorted(str(warning.message).split(" ")[0] for warning in caught) == [
        "ConfigProto.gpu_options.allow_growth",
        "ConfigProto.gpu_options.per_process_gpu_memory_fraction",
        "ConfigProto.graph_options.optimizer_options.global_jit_level",
    ]


def test_what_is_as_it_was_does_not_warn(recwarn):
    tf.Session(config=tf.ConfigProto(device_count={"GPU": 0}, log_device_placement=False)).close()
    tf.Session(config=tf.ConfigProto(allow_soft_placement=True)).close()
    assert not recwarn.list


def test_threads_are_set():
    before = twofold.get_num_threads()
    try:
        tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)).close()
        assert twofold.get_num_threads() == 1
    finally:
        twofold.set_num_threads(before)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=5)),
        lambda: tf.Session("grpc://localhost:9999"),
        lambda: tf.Session().run(tf.constant(1), options=tf.RunOptions(timeout_in_ms=5)),
    ],
)
def test_what_would_change_a_run_raises(make):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Leave"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.Session(config={"allow_soft_placement": True}),
        lambda: tf.Session().run(tf.constant(1), options=5),
        lambda: tf.Session().run(tf.constant(1), run_metadata=5),
    ],
)
def test_options_of_another_type_raise(make):
    with tf.Graph().as_default(), pytest.raises(TypeError, match="Give tf|must be a tf"):
        make()


def test_operations_that_one_line_declares_have_their_own_names_in_a_trace():
    with tf.Graph().as_default(), tf.Session() as session:
        h = x = tf.placeholder(tf.float32, [4, 3])
        for k in range(2):
            h = tf.layers.dense(h, 5, activation=tf.nn.relu, name=f"d{k}")
        step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(h))
        session.run(tf.global_variables_initializer())
        traced, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
        session.run(step, {x: numpy.ones((4, 3))}, options=traced, run_metadata=metadata)
    names = {one.node_name for one in metadata.step_stats.dev_stats[0].node_stats}
    declared = {f"d{k}/{name}" for k in range(2) for name in ("MatMul", "BiasAdd", "Relu")}
    assert declared | {f"gradients/{name}" for name in declared} <= names
    assert {f"Adam/update_d{k}/{name}/ApplyAdam" for k in range(2) for name in ("kernel", "bias")} <= names


def test_a_run_is_traced_into_its_metadata():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [64, 64], name="x")
        product = tf.matmul(x, x, name="product")
        total = tf.reduce_sum(tf.tanh(product, name="bent"), name="total")
        feed, metadata = {x: numpy.ones((64, 64), numpy.float32)}, tf.RunMetadata()
        plain = session.run(total, feed)
        assert not metadata.step_stats.dev_stats
        assert session.run(total, feed, options=tf.RunOptions(trace_level=0), run_metadata=metadata) == plain
        assert not metadata.step_stats.dev_stats
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert session.run(total, feed, options=traced, run_metadata=metadata) == plain
    (device,) = metadata.step_stats.dev_stats
    assert device.device.endswith("CPU:0")
    stats = {one.node_name: one for one in device.node_stats}
    assert {"product", "bent", "total"} <= set(stats)
    assert all(one.all_end_rel_micros > 0 and one.all_start_micros > 0 for one in device.node_stats)
    assert "matmul(float32[64,64], float32[64,64])" in stats["product"].timeline_label


def test_a_timeline_shows_what_a_traced_run_did():
    from twofold.static.python.client import timeline

    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        y = tf.matmul(tf.exp(x, name="e"), x, name="m")
        metadata, options = tf.RunMetadata(), tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {x: numpy.ones((2, 2))}, options, metadata)
        text = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
    events = json.loads(text)["traceEvents"]
    assert events[0]["args"]["name"].endswith("CPU:0 Compute")
    ran = {one["args"]["name"]: one for one in events if one["ph"] == "X"}
    assert ran["m"]["name"] == "MatMul" and ran["m"]["dur"] > 0
    assert [ran["m"]["args"][key] for key in ("input0", "input1")] == ["e", "x"]
    assert [one["ph"] for one in events if one["name"] == "e"] == ["s", "t"]
    bare = timeline.Timeline(metadata.step_stats, graph).generate_chrome_trace_format(show_dataflow=False)
    assert {one["ph"] for one in json.loads(bare)["traceEvents"]} == {"M", "X"}


def test_options_of_rewriting_graphs_are_messages():
    from twofold.static.core.protobuf import rewriter_config_pb2

    options = tf.ConfigProto()
    options.graph_options.rewrite_options.layout_optimizer = rewriter_config_pb2.RewriterConfig.OFF
    given = rewriter_config_pb2.RewriterConfig(
        memory_optimization=rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    )
    tf.GraphOptions(rewrite_options=given)
    with (
        tf.Graph().as_default(),
        pytest.warns(UserWarning, match="rewrite_options.layout_optimizer has no effect"),
    ):
        tf.Session(config=options)


def test_a_trace_has_one_entry_for_an_operation():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 8, 8, 3])
        made = tf.layers.batch_normalization(x, training=True, name="b")
        gradient = tf.gradients(tf.reduce_sum(tf.square(made)), x)
        session.run(tf.global_variables_initializer())
        traced, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
        session.run(gradient, {x: numpy.ones((2, 8, 8, 3))}, options=traced, run_metadata=metadata)
    names = [one.node_name for one in metadata.step_stats.dev_stats[0].node_stats]
    assert len(names) == len(set(names)) > 2
