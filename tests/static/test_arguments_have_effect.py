"""Arguments of ``twofold.static`` change the result, or are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError, InvalidArgumentError


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(value: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(value, feeds)


def test_as_graph_element_takes_only_the_kind_allowed() -> None:
    graph, x = tf.get_default_graph(), tf.constant(1.0, name="x")
    assert graph.as_graph_element(x, allow_operation=False) is x
    for item, options, error in [
        (x, {"allow_tensor": False}, TypeError),
        (x.op, {"allow_operation": False}, TypeError),
        ("x:0", {"allow_tensor": False}, ValueError),
        ("x", {"allow_operation": False}, ValueError),
        (x, {"allow_tensor": False, "allow_operation": False}, ValueError),
    ]:
        with pytest.raises(error, match="as_graph_element"):
            graph.as_graph_element(item, **options)


def test_name_scope_enters_the_graph_of_its_values() -> None:
    other = tf.Graph()
    with other.as_default():
        x = tf.constant(1.0)
    with tf.name_scope("layer", values=[x]):
        assert tf.constant(2.0).graph is other
    with tf.op_scope([x], "layer"):
        assert tf.constant(2.0).graph is other
    with pytest.raises(ValueError, match="different graphs"), tf.name_scope("s", None, [x, tf.constant(1)]):
        pass
    with pytest.raises(ValueError, match="without a name"), tf.name_scope(None, None, [x]):
        pass


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.tuple([x], name="mine")[0],
        lambda x: tf.clip_by_global_norm([x], 1.0, name="mine")[0][0],
        lambda x: tf.nn.weighted_moments(x, [0], 1.0, name="mine")[0],
        lambda x: tf.nn.normalize_moments(2.0, x, x, None, name="mine")[0],
        lambda x: tf.image.rgb_to_grayscale(x, name="mine"),
        lambda x: tf.image.grayscale_to_rgb(x, name="mine"),
        lambda x: tf.image.adjust_hue(x, 0.1, name="mine"),
        lambda x: tf.image.adjust_saturation(x, 0.1, name="mine"),
        lambda x: tf.assert_rank(x, 3, name="mine"),
        lambda x: tf.assert_rank_at_least(x, 3, name="mine"),
        lambda x: tf.assert_type(x, tf.float32, name="mine"),
        lambda x: tf.assert_integer(tf.constant(1), name="mine"),
        lambda x: tf.distributions.kl_divergence(*[tf.distributions.Normal(0.0, 1.0)] * 2, name="mine"),
    ],
)  # fmt: skip
def test_the_name_names_the_operation_or_its_scope(make: Callable[[Any], Any]) -> None:
    assert make(tf.zeros([2, 2, 3])).name.startswith("mine")


@pytest.mark.parametrize(
    "method", ["log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival_function", "quantile",
               "mean", "mode", "variance", "stddev", "entropy"],
)  # fmt: skip
def test_methods_of_distributions_take_names(method: str) -> None:
    made = tf.distributions.Normal(0.0, 1.0, name="prior")
    values = () if method in ("mean", "mode", "variance", "stddev", "entropy") else (0.5,)
    before = run(getattr(made, method)(*values))
    named = getattr(made, method)(*values, name="mine")
    assert named.name.startswith("prior/mine")
    assert run(named) == before


def test_assert_rank_shows_its_data_where_a_run_checks() -> None:
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([tf.assert_rank(x, 2, data=[tf.constant([7, 8, 9])], summarize=2)]):
        y = tf.identity(x)
    with pytest.raises(InvalidArgumentError, match=r"\[7 8\.\.\.\]"):
        run(y, {x: [1.0]})


def test_the_number_of_parts_is_checked() -> None:
    assert len(tf.split([1, 2, 3, 4], [1, 3], num=2)) == 2
    for parts in (2, [1, 3], numpy.array([1, 3]), tf.constant([1, 3])):
        with pytest.raises(ValueError, match="num is 3"):
            tf.split([1, 2, 3, 4], parts, num=3)


@pytest.mark.parametrize("shape", [[None], None])
def test_num_counts_parts_that_are_fed(shape: Any) -> None:
    sizes = tf.placeholder(tf.int32, shape)
    parts = tf.split([1, 2, 3, 4], sizes, num=2)
    assert [part.tolist() for part in run(parts, {sizes: [1, 3]})] == [[1], [2, 3, 4]]
    with pytest.raises(ValueError, match="Give num"):
        tf.split([1, 2, 3, 4], sizes)


def test_a_constant_initializer_verifies_the_shape() -> None:
    assert run(tf.constant_initializer([1.0, 2.0])([2, 2])).tolist() == [[1.0, 2.0], [2.0, 2.0]]
    with pytest.raises(TypeError, match="shape"):
        tf.constant_initializer([1.0, 2.0], verify_shape=True)([2, 2])
    with pytest.raises(TypeError, match="shape"):
        tf.constant_initializer([1.0, 2.0])([2, 2], verify_shape=True)


def test_least_squares_without_full_rank() -> None:
    matrix = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    found = run(tf.matrix_solve_ls(matrix, [[2.0], [2.0], [2.0]], l2_regularizer=100.0, fast=False))
    numpy.testing.assert_allclose(found, [[1.0], [1.0]], rtol=1e-5)


def test_a_seed_repeats_the_sampled_classes() -> None:
    random = numpy.random.default_rng(0)
    weights, biases = random.standard_normal((50, 3)).astype("f"), numpy.zeros(50, "f")
    given = weights, biases, [[1], [2]], numpy.ones((2, 3), "f"), 5, 50
    losses = [run(tf.nn.sampled_softmax_loss(*given, seed=seed)).tolist() for seed in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]
    for loss in (tf.nn.sampled_softmax_loss, tf.nn.nce_loss):
        with pytest.raises(ValueError, match="partition_strategy"):
            loss(*given, partition_strategy="odd")


@pytest.mark.parametrize("indices", [[[1], [0]], [[1], [1]]])
def test_sparse_indices_are_validated(indices: list[list[int]]) -> None:
    with pytest.raises(InvalidArgumentError, match="out of order or repeated"):
        run(tf.sparse_to_dense(indices, [3], [5, 6]))
    sparse = tf.SparseTensor(indices, [5, 6], [3])
    with pytest.raises(InvalidArgumentError, match="out of order or repeated"):
        run(tf.sparse_tensor_to_dense(sparse))
    assert run(tf.sparse_tensor_to_dense(sparse, validate_indices=False)).shape == (3,)


def test_a_template_makes_its_scope_when_told() -> None:
    make = lambda: tf.get_variable("w", initializer=2.0)
    late, early = tf.make_template("t", make), tf.make_template("t", make, create_scope_now_=True)
    assert late().name == "t_1/w:0"
    assert early().name == "t/w:0"
    assert early() is early()
    assert tf.make_template("t", make, unique_name_="own")().name == "own/w:0"


def test_ftrl_names_what_it_keeps() -> None:
    w = tf.Variable(1.0, name="w")
    optimizer = tf.train.FtrlOptimizer(0.1, accum_name="a", linear_name="l")
    optimizer.minimize(w * w)
    assert [optimizer.get_slot(w, slot).name for slot in ("accum", "linear")] == ["w/a:0", "w/l:0"]
    with pytest.raises(ValueError, match="gate_gradients"):
        optimizer.minimize(w * w, gate_gradients=7)
    assert optimizer.get_slot_names() == ["accum", "linear"]


def test_layers_of_contrib_fill_collections() -> None:
    x = tf.zeros([2, 3])
    given = {"weights": ["W"], "biases": ["B"]}
    y = tf.contrib.layers.fully_connected(x, 4, variables_collections=given, outputs_collections="out")
    z = tf.contrib.layers.flatten(y, outputs_collections=["out"])
    assert [len(tf.get_collection(key)) for key in ("W", "B")] == [1, 1]
    assert tf.get_collection("out") == [y, z] or [v.name for v in tf.get_collection("out")] == [
        y.name,
        z.name,
    ]


def test_summaries_go_into_collections() -> None:
    made = tf.summary.scalar("loss", 1.0, collections=["mine"], family="group")
    assert made.name == "group/loss:0"
    assert tf.summary.merge_all() is None
    assert tf.summary.merge_all("mine", scope="other") is None
    assert tf.summary.merge_all("mine", name="all").name == "all:0"


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.strided_slice([1, 2], [0], [1], var=tf.Variable([1, 2])),
        lambda: tf.data.Dataset.range(3).cache("file"),
        lambda: tf.Session.reset("grpc://host:1"),
        lambda: tf.nn.rnn_cell.LSTMCell(3, num_unit_shards=2),
        lambda: tf.train.QueueRunner(tf.FIFOQueue(3, [tf.int32]), [], close_op=tf.no_op()),
        lambda: tf.distributions.kl_divergence(
            *[tf.distributions.Normal(0.0, 1.0)] * 2, allow_nan_stats=False
        ),
    ],
)  # fmt: skip
def test_what_is_not_offered_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match="not offered"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.nn.rnn_cell.LSTMCell(3, num_unit=2),
        lambda: tf.app.flags.DEFINE_integer("count_of_arguments", 3, "help", upper=4),
        lambda: tf.app.flags.DEFINE_bool("switch_of_arguments", True, "help", upper=4),
        lambda: tf.train.QueueRunner(tf.FIFOQueue(3, [tf.int32]), [], closing=1),
    ],
)  # fmt: skip
def test_an_unknown_argument_is_an_error(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        call()


def test_numbers_beyond_a_floating_dtype_are_infinite() -> None:
    """As in TensorFlow, which makes a tensor of the number first."""
    infinite = float("inf")
    assert run(tf.fill([2], 1e40)).tolist() == [infinite, infinite]
    assert run(tf.pad([1.0], [[1, 1]], constant_values=-1e40)).tolist() == [-infinite, 1.0, -infinite]
    assert run(tf.constant(1e40)) == infinite


@pytest.mark.parametrize(
    ("function", "given", "named"),
    [
        (tf.layers.dense, (), {"units": 3}),
        (tf.layers.conv2d, (1, 2, 3), {"unit": 3}),
        (tf.losses.huber_loss, (1.0, 2.0), {"labels": 3.0}),
        (tf.metrics.accuracy, (1,) * 9, {}),
        (tf.train.exponential_decay, (0.1, 1), {}),
    ],
)
def test_a_call_that_does_not_fit_is_named(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=rf"^{function.__name__}: "):
        function(*given, **named)
