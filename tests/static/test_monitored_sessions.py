"""Monitored sessions: what hooks are told and when, and what is written."""

import glob
import os
import threading

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield
    tf.summary.FileWriterCache.clear()


class Recording(tf.train.SessionRunHook):
    def __init__(self, fetches=None, feeds=None, stop_after=None):
        self.told, self.fetches, self.feeds, self.stop_after = [], fetches, feeds, stop_after

    def begin(self):
        assert not tf.get_default_graph().finalized
        self.told.append("begin")

    def after_create_session(self, session, coord):
        assert session.graph.finalized and not coord.should_stop()
        self.told.append("created")

    def before_run(self, run_context):
        self.told.append(run_context.original_args.fetches)
        return tf.train.SessionRunArgs(self.fetches, self.feeds)

    def after_run(self, run_context, run_values):
        self.told.append(run_values.results)
        if run_values.results == self.stop_after:
            run_context.request_stop()

    def end(self, session):
        self.told.append("end")


def test_hooks_are_told_in_order():
    x = tf.placeholder_with_default(2.0, [])
    doubled, squared = x * 2, x * x
    hook = Recording(squared, {x: 3.0})
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.run({"y": doubled}) == {"y": 6.0}
        assert session.graph is x.graph
    assert hook.told == ["begin", "created", {"y": doubled}, 9.0, "end"]
    assert session.should_stop()
    with pytest.raises(RuntimeError, match="closed session"):
        session.run(doubled)


def test_one_tensor_is_fed_once():
    x = tf.placeholder(tf.float32, [])
    with tf.train.MonitoredSession(hooks=[Recording(feeds={x: 1.0})]) as session:
        with pytest.raises(RuntimeError, match="fed by a SessionRunHook and user"):
            session.run(x, {x: 2.0})
        assert session.run(x) == 1.0


def test_an_end_that_a_hook_asks_for():
    x = tf.constant(1.0)
    with tf.train.MonitoredSession(hooks=[Recording(x, stop_after=1.0)]) as session:
        assert not session.should_stop()
        session.run(x)
        assert session.should_stop()
        with pytest.raises(RuntimeError, match="after should_stop"):
            session.run(x)


@pytest.mark.parametrize("kind, ends", [(tf.errors.OutOfRangeError, True), (KeyError, False)])
def test_which_errors_end_a_block_well(kind, ends):
    hook = Recording()
    try:
        with tf.train.MonitoredSession(hooks=[hook]):
            raise kind("x", "y") if ends else kind("x")
    except KeyError:
        assert not ends
    assert ("end" in hook.told) == ends


def test_the_end_of_data_ends_the_block():
    row = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    found = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(int(session.run(row)))
    assert found == [0, 1, 2]


def test_queue_runners_run_and_their_errors_arrive():
    def fails(k):
        if k >= 2:
            raise KeyError("no more")
        return numpy.float32(k)

    queue, k = tf.FIFOQueue(2, [tf.float32], [[]]), tf.get_variable("k", initializer=0)
    value = tf.reshape(tf.py_func(fails, [tf.assign_add(k, 1)], tf.float32), [])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(value)]))
    taken = queue.dequeue()
    with pytest.raises(Exception, match="no more"), tf.train.MonitoredSession() as session:
        assert session.run(taken) == 1.0
        session.run(taken)


def train(folder, steps, **options):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_sum(tf.square(w - [1.0, 2.0]))
    tf.summary.scalar("loss", loss)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    hooks = [tf.train.StopAtStepHook(last_step=steps), *options.pop("hooks", [])]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks, **options) as session:
        runs = 0
        while not session.should_stop():
            session.run(update)
            runs += 1
    return runs


def steps_of(folder):
    return sorted(int(path.split("-")[-1].split(".")[0]) for path in glob.glob(f"{folder}/*.index"))


def test_training_goes_on_from_its_checkpoint(tmp_path):
    folder = str(tmp_path)
    assert train(folder, 5, save_checkpoint_steps=2) == 5
    assert steps_of(folder) == [0, 2, 4, 5]
    assert os.path.exists(f"{folder}/graph.pbtxt")
    with tf.Graph().as_default():
        assert train(folder, 7, save_checkpoint_steps=100) == 2
    w = tf.train.load_variable(folder, "w")
    expected = numpy.zeros(2, "f")
    for _ in range(7):
        expected -= numpy.float32(0.1) * (2 * (expected - numpy.array([1, 2], "f")))
    numpy.testing.assert_allclose(w, expected, rtol=1e-6)


def test_summaries_are_written_at_their_steps(tmp_path):
    train(str(tmp_path), 5, save_summaries_steps=2, log_step_count_steps=None)
    tf.summary.FileWriterCache.clear()
    (path,) = glob.glob(f"{tmp_path}/events*")
    found = [event.step for event in tf.train.summary_iterator(path) if event.summary.value]
    assert found == [1, 3, 5]


@pytest.mark.parametrize("every, rates", [(2, [3, 5, 7, 9, 11]), (3, [4, 7, 10]), (5, [6, 11])])
def test_the_steps_at_which_hooks_write(tmp_path, every, rates):
    def steps(name):
        tf.summary.FileWriterCache.clear()
        (path,) = glob.glob(f"{tmp_path}/{name}/events*")
        return [event.step for event in tf.train.summary_iterator(path) if event.summary.value]

    step, still = tf.train.create_global_step(), tf.constant(1.0)
    summary, count = tf.summary.scalar("still", still), tf.assign_add(step, 1)
    hooks = [
        tf.train.StepCounterHook(every, output_dir=tmp_path / "rates"),
        tf.train.SummarySaverHook(every, output_dir=tmp_path / "values", summary_op=summary),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        for _ in range(12):
            session.run(count)
        for _ in range(every):
            session.run(still)  # the step stays: there is no rate
    assert steps("rates") == rates
    assert steps("values")[:4] == [1, *rates][:4]


def test_a_variable_called_global_step_counts_steps(tmp_path):
    step = tf.Variable(0, name="global_step", trainable=False)
    assert tf.train.get_or_create_global_step().name == step.name
    with pytest.raises(ValueError, match="already exists"):
        tf.train.create_global_step()
    w = tf.Variable(0.0)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(w), tf.train.get_global_step())
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=[tf.train.StopAtStepHook(3)]
    ) as session:
        while not session.should_stop():
            session.run(update)
    assert steps_of(tmp_path) == [0, 3]
    with tf.Graph().as_default():
        tf.constant([1.0], name="global_step")
        with pytest.raises(TypeError, match="no scalar of integers"):
            tf.train.get_global_step()


def test_checkpoints_are_written_by_the_saver_of_the_graph(tmp_path):
    count = tf.assign_add(tf.train.create_global_step(), 1)
    with tf.train.MonitoredSession(hooks=[tf.train.CheckpointSaverHook(tmp_path, save_steps=1)]) as session:
        session.run(count)
    assert steps_of(tmp_path) == [0, 1]
    with tf.Graph().as_default():
        tf.train.create_global_step()
        for _ in range(2):
            tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
        hook = tf.train.CheckpointSaverHook(tmp_path, save_steps=1)
        scaffold = tf.train.Scaffold(saver=tf.train.Saver())
        with pytest.raises(RuntimeError, match="the graph has 2 savers"):
            tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold), [hook])


def test_hooks_ask_for_options_of_runs():
    class Tracing(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))

        def after_run(self, run_context, run_values):
            self.values = run_values

    hook, asked = Tracing(), tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
    x = tf.placeholder_with_default(2.0, []) * 3.0
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for options, metadata in [(None, None), (asked, tf.RunMetadata())]:
            assert session.run(x, options=options, run_metadata=metadata) == 6.0
            assert hook.values.options.trace_level == tf.RunOptions.FULL_TRACE
            assert hook.values.run_metadata.step_stats.dev_stats
            assert metadata is None or hook.values.run_metadata is metadata
    assert asked.trace_level == tf.RunOptions.SOFTWARE_TRACE


@pytest.mark.parametrize("finalized", [False, True])
def test_a_graph_is_as_finalised_after_a_session_as_before(finalized):
    x = tf.constant(1.0)
    with tf.train.MonitoredSession() as session:
        assert session.graph.finalized
    assert not x.graph.finalized
    if finalized:
        x.graph.finalize()
    with pytest.raises(KeyError), tf.train.MonitoredSession():
        raise KeyError("x")
    assert x.graph.finalized == finalized


def test_a_session_is_closed_once():
    session = tf.train.MonitoredSession()
    session.close()
    with pytest.raises(RuntimeError, match="Session is already closed"):
        session.close()


def test_intervals_below_1_are_none(tmp_path):
    options = {"save_checkpoint_steps": -1, "save_summaries_steps": -1, "log_step_count_steps": None}
    assert train(str(tmp_path), 3, **options) == 3
    assert not os.listdir(tmp_path)


def test_old_checkpoints_go_after_a_restart(tmp_path):
    def trained(steps):
        with tf.Graph().as_default():
            tf.train.create_global_step()
            saver = tf.train.Saver(max_to_keep=2, defer_build=True)
            train(str(tmp_path), steps, save_checkpoint_steps=1, scaffold=tf.train.Scaffold(saver=saver))

    trained(3)
    assert steps_of(tmp_path) == [2, 3]
    trained(4)
    assert steps_of(tmp_path) == [3, 4]


def test_a_newest_checkpoint_that_is_missing_is_told(tmp_path):
    train(str(tmp_path), 2)
    for path in glob.glob(f"{tmp_path}/model.ckpt-2.*"):
        os.unlink(path)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="model.ckpt-2 is not a valid checkpoint"):
        train(str(tmp_path), 3)


def test_logging_shows_values(caplog):
    x = tf.placeholder_with_default(0.5, [], name="x")
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        hook = tf.train.LoggingTensorHook({"a": x}, every_n_iter=2, at_end=True)
        named = tf.train.LoggingTensorHook(["x:0"], at_end=True, formatter=lambda found: f"is {found['x:0']}")
        with caplog.at_level("INFO", "tensorflow"), tf.train.MonitoredSession(hooks=[hook, named]) as session:
            for _ in range(3):
                session.run(x)
    finally:
        tf.logging.set_verbosity(tf.logging.WARN)
    found = [record.message.split(" (")[0] for record in caplog.records]
    assert found == ["a = 0.5", "a = 0.5", "a = 0.5", "is 0.5"]


def test_logging_takes_names_of_operations():
    tf.constant(0.5, name="x")
    shown = []
    with tf.train.MonitoredSession(
        hooks=[tf.train.LoggingTensorHook(["x"], every_n_iter=1, formatter=shown.append)]
    ) as session:
        session.run("x:0")
    assert shown == [{"x": 0.5}]


@pytest.mark.parametrize("name, kind", [("two", ValueError), ("missing", KeyError)])
def test_names_that_logging_refuses(name, kind):
    tf.unstack(tf.constant([1.0, 2.0]), name="two")
    hook = tf.train.LoggingTensorHook([name], every_n_iter=1)
    with pytest.raises(kind, match=name):
        tf.train.MonitoredSession(hooks=[hook])


def test_a_loss_that_is_no_number_ends_training():
    x = tf.placeholder_with_default(float("nan"), [])
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError),
        tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(x)]) as session,
    ):
        session.run(x)
    with tf.Graph().as_default():
        x = tf.placeholder_with_default(float("nan"), [])
        with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(x, fail_on_nan_loss=False)]) as session:
            session.run(x)
            assert session.should_stop()


def test_a_listener_may_end_training(tmp_path):
    class Listener(tf.train.CheckpointSaverListener):
        told = ()

        def before_save(self, session, global_step_value):
            self.told += (("before", int(global_step_value)),)

        def after_save(self, session, global_step_value):
            self.told += (("after", int(global_step_value)),)
            return global_step_value == 2

    listener = Listener()
    step = tf.train.create_global_step()
    saver = tf.train.CheckpointSaverHook(tmp_path, save_steps=2, saver=tf.train.Saver(), listeners=[listener])
    count = tf.assign_add(step, 1)
    with tf.train.MonitoredSession(hooks=[saver]) as session:
        while not session.should_stop():
            session.run(count)
    assert listener.told == (("before", 0), ("after", 0), ("before", 2), ("after", 2))


def test_hooks_at_the_end_and_for_feeds():
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    update = tf.assign_add(v, x)
    last = tf.train.FinalOpsHook(v + 1)
    with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 2.0}), last]) as session:
        session.run(update)
        session.run(update)
    assert last.final_ops_values == 6.0


def test_a_scaffold_initialises(tmp_path):
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    x = tf.placeholder(tf.float32, [])
    more = v.assign_add(1.0)
    scaffold = tf.train.Scaffold(
        init_op=tf.assign(v, x), init_feed_dict={x: 3.0}, init_fn=lambda made, session: session.run(more)
    )
    with tf.train.SingularMonitoredSession(scaffold=scaffold, checkpoint_dir=str(tmp_path)) as session:
        assert session.run(v) == 4.0
        assert session.raw_session().graph is v.graph
    with tf.Graph().as_default():
        tf.get_variable("v", [])
        with pytest.raises(RuntimeError, match="ready for local_init_op: v have no value"):
            tf.train.MonitoredSession(tf.train.ChiefSessionCreator(tf.train.Scaffold(init_op=tf.no_op())))


def test_timers():
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    assert timer.should_trigger_for_step(0)
    assert timer.update_last_triggered_step(0) == (None, None)
    assert [timer.should_trigger_for_step(step) for step in range(5)] == [False, False, False, True, True]
    assert timer.update_last_triggered_step(4)[1] == 4
    assert timer.last_triggered_step() == 4
    with pytest.raises(ValueError, match="exactly one"):
        tf.train.SecondOrStepTimer(1.0, 2)


def test_a_supervisor_writes_and_goes_on(tmp_path):
    folder = str(tmp_path)
    for expected in (3.0, 6.0):
        with tf.Graph().as_default():
            v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
            step = tf.train.create_global_step()
            tf.summary.scalar("v", v)
            update = tf.group(tf.assign_add(v, 1.0), tf.assign_add(step, 1))
            supervisor = tf.train.Supervisor(logdir=folder, save_summaries_secs=1000, save_model_secs=0)
            with supervisor.managed_session() as session:
                assert session.graph.finalized
                for _ in range(3):
                    session.run(update)
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
                assert session.run(v) == expected
    assert glob.glob(f"{folder}/events*") and steps_of(folder)[-1] == 6


def test_a_supervisor_ends_well_at_the_end_of_data_and_tells_errors():
    row = tf.data.Dataset.range(2).make_one_shot_iterator().get_next()
    supervisor = tf.train.Supervisor()
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            session.run(row)
    with tf.Graph().as_default(), pytest.raises(KeyError), tf.train.Supervisor().managed_session():
        raise KeyError("x")


def test_a_supervisor_calls_functions_in_turn():
    called = threading.Event()
    supervisor = tf.train.Supervisor()
    with supervisor.managed_session():
        supervisor.loop(0.001, called.set)
        assert called.wait(10)


@pytest.mark.parametrize(
    "mapping",
    [{"old/": "new/"}, {"old/w": "new/w"}, {"old/": "/"}],
)
def test_variables_begin_with_a_checkpoint(tmp_path, mapping):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old/w", initializer=[1.0, 2.0])
        tf.get_variable("old/new/w", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, f"{tmp_path}/model")
    w = tf.get_variable("new/w", [2])
    tf.train.init_from_checkpoint(str(tmp_path), mapping)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(w).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "mapping, words",
    [
        ({"none": "w"}, "is not found in"),
        ({"w": "none"}, "none is not found in the graph"),
        ({"w": "new/"}, "for a scope"),
        ({"w": "v"}, "does not match"),
    ],
)
def test_what_a_checkpoint_does_not_have(tmp_path, mapping, words):
    w = tf.get_variable("w", initializer=[1.0, 2.0])
    with tf.Session() as session:
        session.run(w.initializer)
        tf.train.Saver([w]).save(session, f"{tmp_path}/model")
    tf.get_variable("v", [3])
    tf.get_variable("new/w", [2])
    with pytest.raises(ValueError, match=words):
        tf.train.init_from_checkpoint(f"{tmp_path}/model", mapping)
