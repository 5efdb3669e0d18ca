"""Names that TensorFlow has in several modules."""

import importlib

import numpy
import pytest

import twofold.static as tf
from twofold.static.api.namespaces import NAMESPACES

ROWS = [(module, *entry.partition("=")[::2]) for module, row in NAMESPACES.items() for entry in row.split()]


def found(name):
    module, _, last = name.rpartition(".")
    value = importlib.import_module(f"twofold.static.{module}") if module == "special" else tf
    for part in (last if module == "special" else name).split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("module, name, there", ROWS)
def test_a_name_is_that_of_the_function(module, name, there):
    assert found(f"{module}.{name}") is found(there or name)
    assert name in dir(getattr(tf, module))


@pytest.mark.parametrize("module", [*NAMESPACES, "python.ops.math_ops"])
def test_other_names_are_missing(module):
    with pytest.raises(AttributeError, match="no_such_name"):
        importlib.import_module(f"twofold.static.{module}").no_such_name  # noqa: B018


@pytest.mark.parametrize(
    "module, name, there",
    [
        ("ops.array_ops", "concat", "concat"),
        ("ops.nn_ops", "softmax", "nn.softmax"),
        ("ops.variable_scope", "get_variable", "get_variable"),
        ("ops.rnn_cell_impl", "LSTMStateTuple", "nn.rnn_cell.LSTMStateTuple"),
        ("layers.core", "Dense", "layers.Dense"),
        ("training.optimizer", "Optimizer", "train.Optimizer"),
        ("platform.flags", "FLAGS", "flags.FLAGS"),
        ("util.compat", "as_bytes", "compat.as_bytes"),
        ("framework.constant_op", "constant", "constant"),
        ("framework.errors_impl", "OutOfRangeError", "errors.OutOfRangeError"),
        ("saved_model.loader", "load", "saved_model.loader.load"),
        ("saved_model.tag_constants", "SERVING", "saved_model.tag_constants.SERVING"),
        ("ops.distributions.normal", "Normal", "distributions.Normal"),
        ("platform.tf_logging", "info", "logging.info"),
    ],
)
def test_files_inside_of_tensorflow(module, name, there):
    package, _, file = module.rpartition(".")
    parent = importlib.import_module(f"twofold.static.python.{package}")
    assert getattr(getattr(parent, file), name) is found(there)


@pytest.mark.parametrize(
    "module, name, there",
    [
        (
            "contrib.layers.python.layers.initializers",
            "xavier_initializer",
            "contrib.layers.xavier_initializer",
        ),
        ("contrib.rnn.python.ops.core_rnn_cell", "LSTMCell", "contrib.rnn.LSTMCell"),
        (
            "contrib.seq2seq.python.ops.beam_search_decoder",
            "BeamSearchDecoder",
            "contrib.seq2seq.BeamSearchDecoder",
        ),
        ("python.pywrap_tensorflow", "NewCheckpointReader", "train.NewCheckpointReader"),
        ("python.framework.tensor_shape", "TensorShape", "TensorShape"),
        ("compat.v1", "Session", "Session"),
        ("contrib.layers.python.layers.utils", "last_dimension", "contrib.slim.utils.last_dimension"),
        ("contrib.slim.python.slim.learning", "train", "contrib.slim.learning.train"),
        (
            "contrib.slim.python.slim.data.prefetch_queue",
            "prefetch_queue",
            "contrib.slim.prefetch_queue.prefetch_queue",
        ),
        ("train.queue_runner", "QueueRunner", "train.QueueRunner"),
        ("python.training.queue_runner", "QueueRunner", "train.QueueRunner"),
        ("python.training.queue_runner_impl", "add_queue_runner", "train.add_queue_runner"),
    ],
)
def test_deeper_files(module, name, there):
    assert getattr(importlib.import_module(f"twofold.static.{module}"), name) is found(there)


def test_a_manager_is_made_as_in_tensorflows_files():
    util = importlib.import_module("twofold.static.python.util")

    @util.tf_contextlib.contextmanager
    def doubled(x):
        yield 2 * x

    with doubled(3) as found:
        assert found == 6 and util.tf_inspect.isfunction(doubled)


def test_files_and_devices(tmp_path):
    files = importlib.import_module("twofold.static.python.lib.io.file_io")
    path = str(tmp_path / "text")
    files.write_string_to_file(path, "hello")
    assert files.file_exists(path) and files.read_file_to_string(path, binary_mode=True) == b"hello"
    devices = importlib.import_module("twofold.static.python.client.device_lib").list_local_devices()
    assert [device.device_type for device in devices] == ["CPU"]
    shape = importlib.import_module("twofold.static.python.framework.tensor_shape")
    assert [str(one) for one in (shape.scalar(), shape.vector(3), shape.matrix(2, None))] == [
        "()",
        "(3,)",
        "(2, ?)",
    ]
    assert shape.unknown_shape(2).as_list() == [None, None] and shape.unknown_shape().ndims is None


def run(value):
    with tf.Session() as session:
        return session.run(value)


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    "name, function",
    [
        ("bitwise_and", numpy.bitwise_and),
        ("bitwise_or", numpy.bitwise_or),
        ("bitwise_xor", numpy.bitwise_xor),
        ("left_shift", numpy.left_shift),
        ("right_shift", numpy.right_shift),
    ],
)
def test_bits(name, function):
    x, y = numpy.array([12, -7, 5], "int32"), numpy.array([10, 3, 1], "int32")
    assert run(getattr(tf.bitwise, name)(x, y)).tolist() == function(x, y).tolist()
    assert run(tf.bitwise.invert(x)).tolist() == (~x).tolist()


@pytest.mark.parametrize("shape, inputs", [([50, 7], 50), ([2, 3, 4, 5], 24), ([1000], 1), ([], 1)])
def test_uniform_unit_scaling_is_even(shape, inputs):
    limit = 1.5 * (3 / inputs) ** 0.5
    values = run(tf.uniform_unit_scaling_initializer(factor=1.5, seed=3)(shape))
    assert values.shape == tuple(shape) and (abs(values) <= limit).all()
    if values.size > 100:
        assert abs(values).max() > 0.95 * limit and abs(values.std() - limit / 3**0.5) < 0.1 * limit


@pytest.mark.parametrize("name, power", [("lecun_normal", 1), ("lecun_uniform", 1), ("he_normal", 2)])
def test_variances(name, power):
    values = run(getattr(tf.initializers, name)(seed=1)([100, 200]))
    assert abs(values.var() * 100 / power - 1) < 0.05


@pytest.mark.parametrize("name", ["constant", "random_normal", "random_uniform", "truncated_normal"])
def test_initializers_are_classes_under_both_names(name):
    assert getattr(tf.initializers, name) is getattr(tf, f"{name}_initializer")


def test_pooling_by_the_number_of_axes():
    x = numpy.random.default_rng(0).standard_normal((2, 6, 4, 3)).astype("f")
    for kind in ("max", "avg"):
        pooled = getattr(tf.nn, f"{kind}_pool2d")(x, ksize=2, strides=[1, 2, 2, 1], padding="SAME")
        old = getattr(tf.nn, f"{kind}_pool")(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        assert run(pooled).tolist() == run(old).tolist()
        rows = getattr(tf.nn, f"{kind}_pool1d")(x[:, :, 0], 2, 2, "VALID")
        expected = x[:, :, 0].reshape(2, 3, 2, 3)
        numpy.testing.assert_allclose(
            run(rows), expected.max(2) if kind == "max" else expected.mean(2), rtol=1e-6
        )


def test_blocks_around_declarations():
    v = tf.get_variable("v", initializer=1.0)
    with tf.control_dependencies([tf.assign(v, 2.0)]):
        with tf.init_scope():
            free = v + 0.0
        with tf.colocate_with(v):
            bound = v + 0.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(free) == 1.0 and session.run(bound) == 2.0


def test_local_variables_and_predicates():
    v = tf.get_local_variable("v", [2], collections=["mine"])
    assert tf.local_variables() == [v] == tf.get_collection("mine")
    assert not tf.global_variables() and not tf.trainable_variables()
    assert tf.is_tensor(tf.constant(1)) and tf.is_tensor(v) and not tf.is_tensor(1)
    assert run(tf.div_no_nan([1.0, 2.0], [0.0, 4.0])).tolist() == [0.0, 0.5]
    assert tf.gradients(v * v, v, aggregation_method=tf.AggregationMethod.ADD_N)[0] is not None
    assert tf.get_logger().name == "tensorflow"
