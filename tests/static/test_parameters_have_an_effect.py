"""Another value for a parameter of a function of ``tf`` changes what it declares, or raises: none is ignored.

The sample calls are those of ``calls/*.txt``.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import recorded_calls as recorded

import twofold.static as tf

SAMPLES_TRIED = 4
ONE_PLACE = "there is one process and one device"
ONLY_SPEED = "chooses among ways to compute the same"
CHECKED = "numbers of rows are always checked"
IN_ERRORS = "is read where a run fails or prints"
ORDERED = "results are sorted, whether it is asked for or not"
AS_TENSORFLOW = "TensorFlow keeps it without effect, too"
NONE_THERE = "the sample call has nothing to gather"
STRUCTURE = "shapes are always known as far as they can be"
SHARED: dict[str, str] = {
    "use_locking": ONE_PLACE,
    "parallel_iterations": ONLY_SPEED,
    "swap_memory": ONLY_SPEED,
    "aggregation_method": ONLY_SPEED,
    "colocate_gradients_with_ops": ONE_PLACE,
    "gate_gradients": ONLY_SPEED,
    "use_cudnn_on_gpu": ONE_PLACE,
    "validate_indices": CHECKED,
    "optimize": ONLY_SPEED,
    "summarize": IN_ERRORS,
    "message": IN_ERRORS,
    "data": IN_ERRORS,
    "first_n": IN_ERRORS,
    "aggregation": ONE_PLACE,
    "synchronization": ONE_PLACE,
    "infer_shape": STRUCTURE,
    "fused": ONLY_SPEED,
    "a_is_sparse": ONLY_SPEED,
    "b_is_sparse": ONLY_SPEED,
}
"""Why parameters of these names have no effect in any function."""
REASONS: dict[tuple[str, str], str] = {
    ("argsort", "stable"): ORDERED,
    ("nn.top_k", "sorted"): ORDERED,
    ("nn.moments", "shift"): AS_TENSORFLOW,
    ("py_func", "stateful"): "the function runs in every run",
    ("assert_scalar", "name"): "what is checked at once declares nothing",
    ("split", "num"): "is checked against the parts",
    ("nn.all_candidate_sampler", "seed"): "all classes are taken",
    ("nn.compute_accidental_hits", "seed"): AS_TENSORFLOW,
    ("nn.conv_transpose", "strides"): "others do not fit the shape",
    ("count_nonzero", "input_tensor"): "other values of the sample call have as many zeros",
    **dict.fromkeys([("summary.merge_all", key) for key in ("name", "scope")], NONE_THERE),
    **dict.fromkeys([("losses.get_regularization_loss", key) for key in ("name", "scope")], NONE_THERE),
}
REFUSABLE = ("reuse", "padding", "data_format")
"""Parameters whose other values may all be refused, as they belong to other arguments."""
MORE = """
tf.assert_near(X, X * 1.0001, rtol=0.01, atol=0.0)
tf.assert_near(X, X + 0.001, rtol=0.0, atol=0.01)
tf.assign(tf.get_variable("v", [2]), [1.0, 2.0, 3.0], False)
tf.cond(tf.constant(True), lambda: [C], lambda: [C])
tf.case([(tf.constant(True), lambda: [C]), (tf.constant(False), lambda: [C + 1])], lambda: [C])
tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])
tf.svd(real(3, 2))
tf.summary.image("image", real(5, 4, 4, 1))
tf.nn.embedding_lookup_sparse([real(3, 2), real(3, 2, seed=1)], SPARSE_IDS, None)
tf.nn.safe_embedding_lookup_sparse([real(3, 2), real(3, 2, seed=1)], SPARSE_IDS)
tf.nn.ctc_greedy_decoder(np.eye(3, dtype=np.float32)[[0, 0, 2, 1]][:, None] * 5, [4])
tf.nn.ctc_loss(SPARSE_LABELS, real(1, 2, 4), [1, 1], ignore_longer_outputs_than_inputs=True)
tf.nn.ctc_loss(tf.SparseTensor([[0, 0], [0, 1]], [1, 1], [1, 2]), real(4, 1, 4), [4])
tf.nn.pool(real(1, 5, 2), [2], "MAX", "VALID", dilations=[2])
tf.nn.pool(real(1, 5, 2), [2], "MAX", "VALID", dilation_rate=[2])
tf.layers.separable_conv2d(real(1, 6, 6, 2), 3, 2)
tf.layers.average_pooling1d(real(1, 5, 2), 2, 2)
tf.image.crop_and_resize(IMAGE[None], [[0.1, 0.9, 0.8, 0.2], [-0.2, 0.0, 1.0, 1.0]], [0, 0], [3, 2])
tf.map_fn(lambda x: x + 1, X)
tf.clip_by_norm(X, 0.3)
tf.case([(tf.constant(True), lambda: C), (tf.constant(True), lambda: C + 1)], lambda: C)
tf.nn.bias_add(real(3, 3, 3), real(3))
tf.layers.batch_normalization(real(4, 3), training=True, renorm=True)
tf.nn.convolution(real(1, 4, 4, 4), real(2, 2, 4, 4), "SAME")
tf.nn.depthwise_conv2d(real(1, 4, 4, 4), real(2, 2, 4, 1), [1, 1, 1, 1], "SAME")
tf.nn.separable_conv2d(real(1, 4, 4, 4), real(2, 2, 4, 1), real(1, 1, 4, 4), [1, 1, 1, 1], "SAME")
""".strip().splitlines()
"""Calls in which parameters matter that do not in those of ``calls/*.txt``."""
CONSTRAINTS = """constraint gamma_constraint beta_constraint kernel_constraint bias_constraint depthwise_constraint
    pointwise_constraint"""
ELSE: dict[str, list[Any]] = {
    "dtype": [tf.float64, tf.int32, tf.float16],
    "out_type": [tf.int64, tf.int32],
    "name": ["another"],
    "scope": ["another"],
    "padding": ["VALID", "SAME", "same", "valid"],
    "data_format": ["NCHW", "NHWC", "channels_first", "NCW"],
    "axis": [0, 1, -1, [0, 1]],
    "perm": [[1, 0]],
    "mode": ["REFLECT", "SYMMETRIC", "CONSTANT"],
    "direction": ["DESCENDING"],
    "side": ["right"],
    "indexing": ["ij"],
    "combiner": ["sum", "mean", "sqrtn"],
    "partition_strategy": ["div", "mod"],
    "ord": [1, 2, numpy.inf, "fro"],
    "activation": [tf.nn.tanh],
    "initializer": [tf.ones_initializer()],
    "kernel_initializer": [tf.ones_initializer()],
    "bias_initializer": [tf.ones_initializer()],
    "collections": [["other"]],
    "beta_initializer": [tf.ones_initializer()],
    "gamma_initializer": [tf.zeros_initializer()],
    **{key: [lambda w: tf.reduce_sum(w)] for key in ("bias_regularizer", "beta_regularizer")},
    **{key: [tf.abs] for key in CONSTRAINTS.split()},
    "dim": [0, 1],
    "axes": [0, 1, [0]],
    "width": [12],
    **{key: [tf.float64, tf.int64] for key in ("preferred_dtype", "dtype_hint")},
    "renorm_clipping": [{"rmax": 0.5}],
    "rtol": [0.0],
    "atol": [0.0],
}
"""Other values for parameters of these names."""


class Call:
    """A sample call: the function's text, and its arguments, made anew in each graph."""

    def __init__(self, text: str) -> None:
        self.text = text.lstrip(recorded.MARKS)
        node = ast.parse(self.text, mode="eval").body
        assert isinstance(node, ast.Call)
        self.function = ast.unparse(node.func)
        self._args = [ast.unparse(one) for one in node.args]
        self._options = {one.arg: ast.unparse(one.value) for one in node.keywords if one.arg}

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        names: dict[str, Any] = {"tf": tf}
        names |= {n: make(tf) for n, make in recorded.NAMES.items() if re.search(rf"\b{n}\b", self.text)}
        value = lambda text: eval(text, names)
        return [value(one) for one in self._args], {key: value(one) for key, one in self._options.items()}


@functools.cache
def samples() -> dict[str, list[Call]]:
    """The sample calls of each function."""
    found: dict[str, list[Call]] = {}
    for texts in [MORE, *map(recorded.calls_of, recorded.FAMILIES)]:
        for text in texts:
            node = ast.parse(text.lstrip(recorded.MARKS), mode="eval").body
            if isinstance(node, ast.Call) and re.fullmatch(r"tf(\.\w+)+", ast.unparse(node.func)):
                found.setdefault(ast.unparse(node.func), []).append(Call(text))
    return found


def others(key: str, given: Any, arrays: list[Any]) -> Iterator[Any]:
    """Values that a parameter could have in place of ``given``, of its kind or of its name."""
    yield from ELSE.get(key, ())
    if isinstance(given, (bool, numpy.bool_)):
        yield not given
    elif isinstance(given, int):
        yield from (given + 1, given - 1, given * 2 + 3)
    elif isinstance(given, float):
        yield from (given * 1.7 + 0.3, given * 0.5, given * 1e3)
    elif isinstance(given, numpy.ndarray):
        yield (
            ~given
            if given.dtype == bool
            else given * 0.75 + 0.125
            if given.dtype.kind == "f"
            else given[::-1]
        )
    elif isinstance(given, (list, tuple)) and given:
        yield from (type(given)(given[::-1]), given[:-1])
        if all(isinstance(one, int) for one in given):
            yield [one + 1 for one in given]
    elif given is None:
        yield from (True, 1, 0.25, 7, 2)
        for array in arrays[:1]:
            yield from (
                numpy.linspace(0.2, 0.9, array.size, dtype="f").reshape(array.shape),
                array.shape[::-1],
            )
            yield from (numpy.linspace(0.2, 0.9, size, dtype="f") for size in array.shape)
            yield numpy.zeros(array.shape, bool)


def content(value: Any) -> Any:
    array = numpy.asarray(value)
    return array.dtype.str, array.shape, array.tolist() if array.dtype == object else array.tobytes()


def outcome(call: Call, changed: dict[str, Any]) -> Any:
    """Names, static shapes and values of what a call returns, the variables that it makes, and what it collects."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        args, options = call.arguments()
        function = eval(call.function, {"tf": tf})
        bound = inspect.signature(function).bind(*args, **options)
        bound.arguments.update(changed)
        result = function(*bound.args, **bound.kwargs)
        written = tf.global_variables() + tf.local_variables()
        variables = [
            (v.name, v.dtype.name, str(v.shape), v.trainable, v.use_resource, bool(v.constraint))
            for v in written
        ]
        held = {str(key): len(graph.get_collection(key)) for key in graph.get_all_collection_keys()}
        found: list[Any] = [type(result).__name__, variables, held]
        results = list(recorded.flat(result, tf))
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        updates = graph.get_collection(tf.GraphKeys.UPDATE_OPS)
        for one in [*results, *updates, *results]:  # again, after what they write
            if not hasattr(one, "name"):
                found.append(str(one))
            elif not hasattr(one, "dtype"):
                session.run(one)
                found.append(one.name)
            else:
                found.append([one.name, str(one.shape), content(session.run(one))])
        found.append([content(value) for value in session.run(written)])
        return found + gradients(result, session)


def gradients(result: Any, session: Any) -> list[Any]:
    """Those of the result by what the call makes of constants, and by variables."""
    ends = [
        one for one in recorded.flat(result, tf) if getattr(one, "dtype", None) in (tf.float32, tf.float64)
    ]
    starts = [
        op.outputs[0]
        for op in tf.get_default_graph().get_operations()
        if op.type == "Const" and op.outputs[0].dtype in (tf.float32, tf.float64)
    ]
    if not ends or not starts:
        return []
    try:
        found = [one for one in tf.gradients(ends, starts) if one is not None]
        return [content(session.run(tf.convert_to_tensor(one))) for one in found]
    except (tf.errors.OpError, RuntimeError, TypeError, ValueError, NotImplementedError):
        return []


def attempt(call: Call, changed: dict[str, Any]) -> Any:
    try:
        return outcome(call, changed)
    except Exception:
        return None


def has_effect(calls: list[Call], key: str) -> bool:
    """Whether another value for a parameter changes any sample call, or all other values raise."""
    worked = False
    for call in calls[:SAMPLES_TRIED]:
        usual = attempt(call, {})
        if usual is None:
            continue
        with tf.Graph().as_default():
            args, options = call.arguments()
            bound = inspect.signature(eval(call.function, {"tf": tf})).bind(*args, **options)
            bound.apply_defaults()
            given = bound.arguments[key]
            arrays = [one for one in bound.arguments.values() if isinstance(one, numpy.ndarray)]
        for other in others(key, given, arrays):
            if type(other) is type(given) and not isinstance(other, numpy.ndarray) and other == given:
                continue
            found = attempt(call, {key: other})
            if found is None and isinstance(given, (bool, int, float)) and type(other) is type(given):
                return True
            if found is None and key in REFUSABLE:
                return True
            if found is not None and found != usual:
                return True
            worked = worked or found is not None
    return not worked


def parameters(function: Any) -> list[str]:
    """Those with a default, and those without that the comparison with TensorFlow cannot tell."""
    given = inspect.signature(function).parameters
    return [key for key, one in given.items() if one.default is not inspect.Parameter.empty]


@functools.cache
def ignored() -> set[tuple[str, str]]:
    found = set()
    for name, calls in samples().items():
        function = eval(name, {"tf": tf})
        for key in parameters(function):
            if key not in SHARED and not has_effect(calls, key):
                found.add((name.removeprefix("tf."), key))
    return found


@pytest.mark.filterwarnings("ignore")
def test_no_parameter_is_ignored() -> None:
    assert sorted(ignored() - set(REASONS)) == []


@pytest.mark.filterwarnings("ignore")
def test_no_reason_is_left_over() -> None:
    assert sorted(set(REASONS) - ignored()) == []


@pytest.mark.parametrize("key", SHARED)
def test_a_shared_reason_belongs_to_some_function(key: str) -> None:
    assert any(key in inspect.signature(eval(name, {"tf": tf})).parameters for name in samples())


def test_an_ignored_parameter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Any, scale: float = 2.0, offset: float = 0.0) -> Any:
        return tf.multiply(x, scale)

    monkeypatch.setattr(tf, "scaled", scaled, raising=False)
    assert has_effect([Call("tf.scaled(X)")], "scale")
    assert not has_effect([Call("tf.scaled(X)")], "offset")
