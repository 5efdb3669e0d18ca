"""Training loops, queues and named results of ``tf.contrib.slim``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

slim = tf.contrib.slim
utils = slim.utils


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_results_have_names_in_collections() -> None:
    x = tf.zeros([2, 8, 8, 3])
    with tf.variable_scope("net"), slim.arg_scope([slim.conv2d, slim.max_pool2d], outputs_collections="ends"):
        y = slim.conv2d(x, 4, 3, scope="conv1")
        z = slim.max_pool2d(slim.repeat(y, 2, slim.conv2d, 4, 3, scope="conv2"), 2, scope="pool")
    assert utils.collect_named_outputs("ends", "net/again/", z) is z
    assert utils.gather_tensors_aliases([y, x]) == ["net/conv1", *utils.get_tensor_aliases(x)]
    found = utils.convert_collection_to_dict("ends", clear_collection=True)
    assert list(found) == ["net/conv1", "net/conv2/conv2_1", "net/conv2/conv2_2", "net/pool", "net/again"]
    assert found["net/conv1"] is y and found["net/again"] is found["net/pool"] is z
    assert tf.get_collection("ends") == []


def test_sizes_that_layers_are_given() -> None:
    shape = tf.placeholder(tf.float32, [None, 5, 7]).shape
    assert (utils.last_dimension(shape, min_rank=3), utils.channel_dimension(shape, "NCHW")) == (7, 5)
    assert (utils.two_element_tuple(3), utils.two_element_tuple(shape[1:])) == ((3, 3), (5, 7))
    assert utils.n_positive_integers(2, [1, 2]) == (1, 2)
    for wrong in (
        lambda: utils.first_dimension(shape),
        lambda: utils.last_dimension(shape, min_rank=4),
        lambda: utils.last_dimension([2, 3]),
        lambda: utils.two_element_tuple([1, 2, 3]),
        lambda: utils.n_positive_integers(2, [1, 0]),
        lambda: utils.n_positive_integers(2, 1.5),
        lambda: utils.constant_value(None),
        lambda: utils.constant_value(tf.constant(1), tf.float32),
    ):
        with pytest.raises(ValueError, match="Give|Cast"):
            wrong()
    assert (utils.constant_value(3), utils.constant_value(tf.constant(4))) == (3, 4)
    assert utils.constant_value(tf.placeholder(tf.int32)) is utils.constant_value(tf.Variable(1)) is None
    assert (utils.static_cond(0, lambda: 1, lambda: 2), utils.smart_cond(True, lambda: 1, lambda: 2)) == (
        2,
        1,
    )


def test_a_step_multiplies_and_clips_each_gradient() -> None:
    v, w, free = tf.Variable([3.0, 4.0]), tf.Variable([6.0]), tf.Variable(1.0)
    update = free.assign_add(1.0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    loss = tf.reduce_sum(v * v) / 2 + tf.reduce_sum(w)
    options = {"clip_gradient_norm": 2.5, "gradient_multipliers": {w: 2.0}, "summarize_gradients": True}
    step = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(1.0), **options)
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 4 and step in tf.get_collection("train_op")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(step) == 18.5
        found = session.run([v, w, free, tf.train.get_global_step()])
    numpy.testing.assert_allclose(numpy.hstack(found), [1.5, 2.0, 4.0, 2.0, 1.0], rtol=1e-6)
    with pytest.raises(ValueError, match="no gradient"):
        slim.learning.multiply_gradients([(None, v)], {v: 2.0})


def test_rows_that_are_clipped_stay_rows() -> None:
    table = tf.Variable([[1.0, 1.0], [2.0, 2.0]])
    rows = tf.gradients(tf.gather(table, [1]) * [[3.0, 4.0]], table)[0]
    (found, variable), none = slim.learning.clip_gradient_norms([(rows, table), (None, table)], 1.0)
    assert none == (None, table) and variable is table and isinstance(found, tf.IndexedSlices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values, indices = session.run([found.values, found.indices])
    numpy.testing.assert_allclose(values, [[0.6, 0.8]], rtol=1e-6)
    assert indices.tolist() == [1]


def test_training_until_a_number_of_steps_and_the_checkpoint_measured(tmp_path: Any) -> None:
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    tf.summary.scalar("w", w)
    step = slim.learning.create_train_op(tf.square(w - 1.0), tf.train.GradientDescentOptimizer(0.25))
    begun: list[Any] = []
    last = slim.learning.train(
        step,
        str(tmp_path),
        number_of_steps=3,
        log_every_n_steps=2,
        save_summaries_secs=60,
        init_fn=lambda session: begun.append(session.run(w)),
        session_config=tf.ConfigProto(),
    )
    assert (begun, last) == ([0.0], 0.0625)
    with tf.Graph().as_default():
        w, total = (
            tf.get_variable("w", []),
            tf.get_local_variable("total", [], initializer=tf.zeros_initializer()),
        )
        checkpoint = tf.train.latest_checkpoint(str(tmp_path))
        found = slim.evaluation.evaluate_once(
            "", checkpoint, str(tmp_path / "eval"), 4, eval_op=total.assign_add(w), final_op=total.value()
        )
        assert checkpoint.endswith("-3") and found == 4 * 0.875
    with pytest.raises(TypeError, match="sync_optimizer"):
        slim.learning.train(step, None, sync_optimizer=object())
    with pytest.raises(ValueError, match="logdir"):
        slim.learning.train(step, None, saver=object())


def test_training_ends_with_the_data() -> None:
    count = tf.train.get_or_create_global_step()
    numbers = tf.train.slice_input_producer([[1.0, 2.0, 3.0]], num_epochs=1, shuffle=False)
    queue = slim.prefetch_queue.prefetch_queue(numbers, capacity=4)
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = w * 0.0 + queue.dequeue()
    step = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    assert slim.learning.train(step, None) == 3.0 and count is tf.train.get_global_step()
    with pytest.raises(ArgumentError, match="dict"):
        slim.prefetch_queue.prefetch_queue({"a": w})


def test_initializers_regularizers_and_variables_have_modules() -> None:
    weights = tf.get_variable("weights", [2, 2], initializer=slim.initializers.xavier_initializer())
    assert slim.variables.get_variables_by_name("weights") == [weights]
    assert slim.regularizers.l2_regularizer is slim.l2_regularizer


def test_each_new_checkpoint_is_measured(tmp_path: Any) -> None:
    w = tf.get_variable("w", [])
    tf.train.get_or_create_global_step()
    saver, waited, measured = tf.train.Saver(), [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def save(value: float) -> None:
            w.load(value, session)
            saver.save(session, str(tmp_path / "model"), len(waited))

        save(1.0)

        def timed_out() -> bool:
            waited.append(None)
            if len(waited) < 3:
                save(1.0 + len(waited))
            return len(waited) == 3

        with tf.Graph().as_default() as graph:
            other = tf.get_variable("w", [])
            seen = tf.py_func(lambda x: measured.append(float(x)) or x, [other], tf.float32)
            options = {"eval_op": seen, "final_op": other * 2.0, "eval_interval_secs": 0, "timeout": 0}
            last = slim.evaluation.evaluation_loop(
                "", str(tmp_path), str(tmp_path / "eval"), timeout_fn=timed_out, **options
            )
            count = len(graph.get_operations())
            assert (last, measured, len(waited)) == (6.0, [1.0, 2.0, 3.0], 3)
            options |= {"final_op": other, "max_number_of_evaluations": 1}
            assert slim.evaluation.evaluation_loop("", str(tmp_path), None, **options) == 3.0
            assert count < 60


def test_items_of_records(tmp_path: Any) -> None:
    decoding = slim.tfexample_decoder
    pixels = numpy.arange(24, dtype=numpy.uint8).reshape(2, 4, 3)
    feature = lambda **kind: tf.train.Feature(**kind)
    for number in range(2):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"{number}.tfrecord")) as writer:
            for label in (2 * number, 2 * number + 1):
                values = {
                    "image/encoded": feature(
                        bytes_list=tf.train.BytesList(value=[(pixels + label).tobytes()])
                    ),
                    "image/format": feature(bytes_list=tf.train.BytesList(value=[b"raw"])),
                    "label": feature(int64_list=tf.train.Int64List(value=[label])),
                    "some": feature(float_list=tf.train.FloatList(value=[0.5] * label)),
                    **{
                        f"box/{side}": feature(float_list=tf.train.FloatList(value=[k, k + 0.5]))
                        for k, side in enumerate(("ymin", "xmin", "ymax", "xmax"))
                    },
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString())
    features = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value="raw"),
        "label": tf.FixedLenFeature([1], tf.int64),
        "some": tf.VarLenFeature(tf.float32),
        **{f"box/{side}": tf.VarLenFeature(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")},
    }
    items = {
        "image": decoding.Image(shape=[2, 4, 3]),
        "label": decoding.Tensor("label", shape=[]),
        "some": decoding.Tensor("some", default_value=-1.0),
        "boxes": decoding.BoundingBox(prefix="box/"),
        "twice": decoding.ItemHandlerCallback(["label"], lambda found: found["label"] * 2),
    }
    decoder = decoding.TFExampleDecoder(features, items)
    data = slim.dataset.Dataset(str(tmp_path / "*"), tf.TFRecordReader, decoder, 4, {}, num_classes=4)
    provider = slim.dataset_data_provider.DatasetDataProvider(data, shuffle=False, num_epochs=1)
    assert provider.list_items() == [*items, "record_key"] and provider.num_samples() == 4
    fetched = provider.get(["image", "label", "some", "boxes", "twice", "record_key"])
    labels = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            for _ in range(4):
                image, label, some, boxes, twice, key = session.run(fetched)
                labels.append(int(label))
                numpy.testing.assert_array_equal(image, pixels + label)
                assert some.tolist() == [0.5] * label and twice.tolist() == [2 * label]
                assert boxes.tolist() == [[0.0, 1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 3.5]]
                assert key.startswith(str(tmp_path).encode())
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(fetched)
    assert labels == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="there is no depth"):
        provider.get(["depth"])
    with pytest.raises(ValueError, match="no data files"):
        slim.dataset_data_provider.parallel_read(str(tmp_path / "none*"), tf.TFRecordReader)


def test_images_of_files_in_records(tmp_path: Any) -> None:
    pytest.importorskip("PIL")
    pixels = numpy.random.default_rng(0).integers(0, 256, (2, 5, 4, 3)).astype(numpy.uint8)
    with tf.Session() as session:
        files = session.run([tf.image.encode_png(one) for one in pixels])
        decoding = slim.tfexample_decoder
        form = tf.constant("png")
        handler = decoding.Image(repeated=True)
        several = handler.tensors_to_item({"image/encoded": tf.constant(files), "image/format": form})
        numpy.testing.assert_array_equal(session.run(several), pixels)
        one = decoding.Image().tensors_to_item({"image/encoded": tf.constant(files[0]), "image/format": form})
        numpy.testing.assert_array_equal(session.run(one), pixels[0])
        assert one.shape.as_list() == [None, None, 3]
