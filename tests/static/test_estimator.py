"""Estimators: the numbers are those of the same steps in a session, and of NumPy."""

import numpy
import pytest

import twofold.static as tf

X = numpy.random.default_rng(0).standard_normal((10, 3)).astype("f")
Y = (X @ numpy.array([[1.0], [-2.0], [0.5]], "f") + 0.1).astype("f")
MODES = tf.estimator.ModeKeys


def declared(features, labels):
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    made = tf.matmul(features, w)
    loss = None if labels is None else tf.reduce_mean(tf.square(made - labels))
    return made, loss


def model(features, labels, mode, params):
    made, loss = declared(features["x"], labels)
    if mode == MODES.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": made, "twice": made * 2})
    step = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    error = tf.metrics.mean_absolute_error(labels, made)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops={"error": error})


def rows(**options):
    given = {"batch_size": 4, "shuffle": False, **options}
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, **given)


@pytest.fixture
def estimator(tmp_path):
    return tf.estimator.Estimator(model, tmp_path / "model", params={"rate": 0.1})


def expected(steps):
    """The weights after so many steps on batches of four rows, which go on across epochs."""
    with tf.Graph().as_default(), tf.Session() as session:
        features, labels = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
        loss = declared(features, labels)[1]
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        for k in range(steps):
            chosen = numpy.arange(4 * k, 4 * k + 4) % len(X)
            session.run(step, {features: X[chosen], labels: Y[chosen]})
        return session.run("w:0")


def test_training_evaluating_and_predicting(estimator):
    assert estimator.train(rows(num_epochs=None), steps=5) is estimator
    w = estimator.get_variable_value("w")
    numpy.testing.assert_array_equal(w, expected(5))
    assert estimator.get_variable_names() == ["global_step", "w"]
    found = estimator.evaluate(rows())
    made = X @ w
    losses = [((made - Y)[k : k + 4] ** 2).mean() for k in (0, 4, 8)]
    assert found["global_step"] == 5
    numpy.testing.assert_allclose(found["loss"], numpy.mean(losses), rtol=1e-5)
    numpy.testing.assert_allclose(found["error"], numpy.abs(made - Y).mean(), rtol=1e-5)
    numpy.testing.assert_allclose(estimator.evaluate(rows(), steps=1)["loss"], losses[0], rtol=1e-5)
    each = list(estimator.predict(rows()))
    numpy.testing.assert_allclose([one["y"] for one in each], made, rtol=1e-5)
    assert [len(one["twice"]) for one in estimator.predict(rows(), "twice", yield_single_examples=False)] == [
        4,
        4,
        2,
    ]


def test_training_goes_on_from_the_latest_checkpoint(estimator, tmp_path):
    estimator.train(rows(), max_steps=2)
    again = tf.estimator.Estimator(model, str(tmp_path / "model"), params={"rate": 0.1})
    again.train(rows(), max_steps=2)  # which it has done
    numpy.testing.assert_array_equal(again.get_variable_value("w"), expected(2))
    again.train(rows())  # to the end of the input
    assert again.get_variable_value("global_step") == 5
    config = tf.estimator.RunConfig(save_checkpoints_steps=2, keep_checkpoint_max=2)
    third = tf.estimator.Estimator(model, tmp_path / "third", config, {"rate": 0.1})
    third.train(rows(num_epochs=None), steps=5)
    kept = sorted(path.name for path in (tmp_path / "third").glob("*.index"))
    assert kept == ["model.ckpt-4.index", "model.ckpt-5.index"]


def test_datasets_and_shuffled_arrays(estimator):
    estimator.train(lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(4).repeat(), steps=2)
    numpy.testing.assert_array_equal(estimator.get_variable_value("w"), expected(2))
    with tf.Graph().as_default(), tf.Session() as session:
        features, labels = rows(shuffle=True, num_epochs=2, batch_size=20)()
        found, given = session.run([features["x"], labels])
        assert given.shape == (20, 1) and not numpy.array_equal(given[:10], Y)
        numpy.testing.assert_array_equal(numpy.sort(given[:10], 0), numpy.sort(Y, 0))
        numpy.testing.assert_allclose(
            found @ numpy.array([[1.0], [-2.0], [0.5]], "f") + 0.1, given, rtol=1e-4
        )
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(labels)


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda e: e.get_variable_names(), "Could not find trained model"),
        (lambda e: e.train(rows(), steps=1, max_steps=2), "both steps and max_steps"),
        (lambda e: e.train(rows(), steps=0), "steps is 0"),
        (lambda e: tf.estimator.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1), "both save_"),
        (lambda e: e.train(lambda: (1, 2, 3), steps=1), "input_fn returned 3 values"),
        (lambda e: tf.estimator.inputs.numpy_input_fn(X), "shuffle is None"),
        (lambda e: tf.estimator.inputs.numpy_input_fn(X, Y[:3], shuffle=True), "lengths"),
        (lambda e: tf.estimator.EstimatorSpec(MODES.TRAIN, loss=1), "train_op is missing"),
        (lambda e: tf.estimator.EstimatorSpec("test", loss=1), "mode is 'test'"),
        (lambda e: tf.estimator.Estimator(lambda features, labels: None).train(rows(), steps=1), "NoneType"),
        (lambda e: tf.estimator.Estimator(lambda features: None).train(rows(), steps=1), "takes no labels"),
    ],
)
def test_mistakes_are_told(estimator, wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong(estimator)


def test_a_global_step_that_stays_is_told(tmp_path):
    def still(features, labels):
        loss = declared(features["x"], labels)[1]
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return tf.estimator.EstimatorSpec(MODES.TRAIN, loss=loss, train_op=step)

    with pytest.raises(ValueError, match="the global step stays 0"):
        tf.estimator.Estimator(still, tmp_path).train(rows(), steps=2)


def test_hooks_take_part(tmp_path):
    class Counting(tf.train.SessionRunHook):
        runs = ends = 0

        def after_run(self, run_context, run_values):
            self.runs += 1

        def end(self, session):
            self.ends += 1

    own, others = Counting(), Counting()

    def hooked(features, labels, mode, params):
        spec = model(features, labels, mode, params)
        return spec._replace(training_hooks=(own,), evaluation_hooks=(own,), prediction_hooks=(own,))

    estimator = tf.estimator.Estimator(hooked, tmp_path, params={"rate": 0.1})
    estimator.train(rows(num_epochs=None), [others], steps=5)
    estimator.evaluate(rows(), hooks=[others])
    assert len(list(estimator.predict(rows(), hooks=[others]))) == 10
    assert (own.runs, own.ends, others.runs, others.ends) == (11, 3, 11, 3)


def test_training_and_evaluating_in_turn(tmp_path):
    config = tf.estimator.RunConfig(tmp_path, save_checkpoints_steps=2)
    estimator = tf.estimator.Estimator(model, config=config, params={"rate": 0.1})
    seen = []
    evaluate = estimator.evaluate
    estimator.evaluate = lambda *given, **named: seen.append(evaluate(*given, **named)) or seen[-1]
    spec = tf.estimator.TrainSpec(rows(num_epochs=None), max_steps=5)
    found, exports = tf.estimator.train_and_evaluate(
        estimator, spec, tf.estimator.EvalSpec(rows(), throttle_secs=0)
    )
    assert [int(each["global_step"]) for each in seen] == [2, 4, 5] and found is seen[-1] and exports == []
    numpy.testing.assert_array_equal(estimator.get_variable_value("w"), expected(5))
    assert estimator.train(rows(num_epochs=None), max_steps=5) is estimator  # which is reached


def test_old_checkpoints_go_over_calls_of_train(tmp_path):
    config = tf.estimator.RunConfig(save_checkpoints_steps=1, keep_checkpoint_max=3)
    made = tf.estimator.Estimator(model, tmp_path, config, params={"rate": 0.1})
    for _ in range(2):
        made.train(rows(num_epochs=None), steps=3)
    kept = sorted(path.name for path in tmp_path.glob("*.index"))
    assert kept == [f"model.ckpt-{k}.index" for k in (4, 5, 6)]


@pytest.mark.parametrize(
    "given, replaced, expected",
    [
        ({}, {}, (None, 600)),
        ({"save_checkpoints_secs": 30}, {}, (None, 30)),
        ({"save_checkpoints_steps": 7}, {}, (7, None)),
        ({"save_checkpoints_steps": None}, {}, (None, None)),
        ({}, {"save_checkpoints_secs": 30}, (None, 30)),
        ({}, {"save_checkpoints_steps": 7}, (7, None)),
        ({}, {"save_checkpoints_steps": None}, (None, 600)),
        ({"save_checkpoints_steps": 7}, {"save_checkpoints_secs": 30}, (None, 30)),
        ({"save_checkpoints_steps": 7}, {"save_summary_steps": 3}, (7, None)),
        ({}, {"save_checkpoints_steps": None, "save_checkpoints_secs": None}, (None, None)),
    ],
)
def test_intervals_of_checkpoints(given, replaced, expected):
    config = tf.estimator.RunConfig(**given).replace(**replaced)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == expected


def test_training_without_checkpoints(tmp_path):
    config = tf.estimator.RunConfig(save_checkpoints_steps=None, save_checkpoints_secs=None)
    made = tf.estimator.Estimator(model, tmp_path, config, params={"rate": 0.1})
    assert made.train(rows(num_epochs=None), steps=2).latest_checkpoint() is None
    with pytest.raises(ValueError, match="saving_listeners without checkpoints"):
        made.train(rows(), saving_listeners=[tf.train.CheckpointSaverListener()])


@pytest.mark.parametrize(
    "hook, arguments, last",
    [
        ("stop_if_no_increase_hook", ("quality", 4), 8),
        ("stop_if_no_decrease_hook", ("quality", 4), 6),
        ("stop_if_higher_hook", ("quality", 2.5), 4),
        ("stop_if_lower_hook", ("quality", 0.5), 12),
    ],
)
def test_training_ends_by_what_was_evaluated(tmp_path, hook, arguments, last):
    """The metric is 1, 3, 2, 2, 1, 1 after 2, 4, 6, ... steps."""

    def judged(features, labels, mode, params):
        spec = model(features, labels, mode, params)
        quality = tf.gather([1.0, 3.0, 2.0, 2.0, 1.0, 1.0], tf.train.get_global_step() // 2 - 1)
        return (
            spec._replace(eval_metric_ops={"quality": tf.metrics.mean(quality)})
            if mode == MODES.EVAL
            else spec
        )

    config = tf.estimator.RunConfig(save_checkpoints_steps=2)
    made = tf.estimator.Estimator(judged, tmp_path, config, {"rate": 0.01})
    stop = getattr(tf.contrib.estimator, hook)(made, *arguments, run_every_secs=None, run_every_steps=1)
    train = tf.estimator.TrainSpec(rows(num_epochs=None), max_steps=12, hooks=[stop])
    tf.estimator.train_and_evaluate(made, train, tf.estimator.EvalSpec(rows(), steps=1, throttle_secs=0))
    assert last <= made.get_variable_value("global_step") <= min(last + 2, 12)


def test_a_model_that_was_not_trained_has_its_first_values(estimator):
    """As those of BERT, which come from another checkpoint by ``init_from_checkpoint``."""
    assert [one["y"].tolist() for one in estimator.predict(rows())] == [[0.0]] * len(X)
    found = estimator.evaluate(rows())
    assert found["global_step"] == 0
    assert found["error"] == pytest.approx(numpy.abs(Y).mean(), rel=1e-5)
    assert estimator.latest_checkpoint() is None
