"""Tests of graphs: ``tf.test``."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import random
import re
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from twofold.errors import GraphError
from twofold.static.api.op_functions import refuse
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import (
    Graph,
    Operation,
    Tensor,
    get_default_graph,
    get_default_session,
    reset_default_graph,
)
from twofold.static.platform.gradient_checking import compute_gradient as compute_gradient
from twofold.static.platform.gradient_checking import compute_gradient_error as compute_gradient_error
from twofold.static.random import set_random_seed
from twofold.static.session.config import ConfigProto
from twofold.static.session.session import Session
from twofold.static.sparse import SparseTensor
from twofold.static.train.server import ClusterSpec, Server

_SEED = 87654321


def main(argv: Any = None) -> None:
    """Run the tests of the program, as ``unittest.main`` does."""
    unittest.main(argv=argv)


def is_built_with_cuda() -> bool:
    """False.

    >>> is_built_with_cuda()
    False
    """
    return False


def is_gpu_available(cuda_only: Any = False, min_cuda_compute_capability: Any = None) -> bool:
    """False: there is one device, the CPU.

    >>> is_gpu_available()
    False
    """
    return False


def gpu_device_name() -> str:
    """An empty string: there is no such device.

    >>> gpu_device_name()
    ''
    """
    return ""


@functools.cache
def get_temp_dir() -> str:
    """A directory for files of the tests of this process, which is removed when it ends."""
    path = tempfile.mkdtemp(prefix="twofold_tests_")
    atexit.register(shutil.rmtree, path, True)
    return path


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None
) -> tuple[list[Any], list[Any]]:
    """Servers of a new cluster in this process: those of the workers, and those of the parameters.

    >>> import twofold.static as tf
    >>> (worker,), _ = tf.test.create_local_cluster(1, 0)
    >>> with tf.Graph().as_default(), tf.Session(worker.target) as session:
    ...     print(session.run(tf.constant(1) + 2))
    3
    """
    counts = {"worker": num_workers, "ps": num_ps}
    first = next(_addresses)
    spec = {
        job: [f"{job}-{first}-{number}:0" for number in range(count)]
        for job, count in counts.items()
        if count
    }
    configs = {"worker": worker_config, "ps": ps_config}
    made = {
        job: [Server(ClusterSpec(spec), job, number, protocol, configs[job]) for number in range(count)]
        for job, count in counts.items()
    }
    return made["worker"], made["ps"]


_addresses = itertools.count()


def _soft() -> ConfigProto:
    return ConfigProto(allow_soft_placement=True)


class _Alias:
    """Another name of a method, which is no function of the class, so that loaders of tests pass it over."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else getattr(instance, self._name)


class TestCase(unittest.TestCase):
    """A test with a graph of its own, whose assertions take tensors, arrays, lists and dicts of them.

    A tensor's value is that in the session of the test, or computed at once. Seeds of ``random``, ``numpy.random``
    and the graph are set before each test.

    >>> import unittest
    >>> import twofold.static as tf
    >>> class Squares(tf.test.TestCase):
    ...     def test_square(self):
    ...         with self.session():
    ...             self.assertAllEqual(tf.square([2, 3]), [4, 9])
    >>> tests = unittest.defaultTestLoader.loadTestsFromTestCase(Squares)
    >>> tests.run(unittest.TestResult()).wasSuccessful()
    True
    """

    __test__ = False  # the base is no test itself

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__test__ = True

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._folder: str | None = None
        self._cached: Session | None = None

    def setUp(self) -> None:
        """Set all seeds, and begin with an empty default graph."""
        random.seed(_SEED)
        numpy.random.seed(_SEED)  # noqa: NPY002 (the generator that a test's functions may use)
        if not at_once():
            reset_default_graph()
        set_random_seed(_SEED)

    def tearDown(self) -> None:
        """Close the session of ``cached_session``, and remove the directory of the test."""
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def get_temp_dir(self) -> str:
        """A directory for this test alone, which is removed after it."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(dir=get_temp_dir())
        return self._folder

    @contextlib.contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A block with a session, its graph the default one; ``use_gpu`` changes nothing, ``force_gpu`` is refused.

        Unless ``config`` says otherwise, the processor stands for devices that are not there.
        """
        refuse("session", force_gpu=force_gpu)
        if at_once():
            yield None
            return
        with Session(graph=graph or get_default_graph(), config=config or _soft()) as found:
            yield found

    @contextlib.contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """As ``session``, with one session for all such blocks of a test; raises ValueError for another graph."""
        refuse("cached_session", force_gpu=force_gpu)
        if at_once():
            yield None
            return
        if self._cached is None:
            self._cached = Session(graph=graph, config=config or _soft())
        elif graph is not None and graph is not self._cached.graph:
            raise ValueError("cached_session: the session of the test has another graph. Use session().")
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    test_session = _Alias("cached_session")

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in nested lists, tuples and dicts, in their structure, all of one run."""
        leaves: list[Any] = []
        rebuild = self._structure(tensors, leaves)
        if at_once() or not leaves:
            return rebuild([leaf.numpy() for leaf in leaves])
        session = get_default_session()
        with contextlib.nullcontext(session) if session is not None else self.cached_session() as found:
            return rebuild(found.run(leaves))

    def _structure(self, item: Any, leaves: list[Any]) -> Callable[[list[Any]], Any]:
        """Collects the tensors; a function of their values that gives the structure with these."""
        if isinstance(item, Mapping):
            rows = {key: self._structure(value, leaves) for key, value in item.items()}
            return lambda values: {key: row(values) for key, row in rows.items()}
        if isinstance(item, (list, tuple)):
            parts = [self._structure(value, leaves) for value in item]
            kind: Any = type(item)
            made = kind._make if hasattr(item, "_fields") else list if isinstance(item, list) else tuple
            return lambda values: made(part(values) for part in parts)
        if isinstance(item, (Tensor, Operation, SparseTensor)) or hasattr(item, "_as_graph_element"):
            leaves.append(item)
            position = len(leaves) - 1
            return lambda values: values[position]
        return lambda values: item

    def _array(self, value: Any) -> numpy.ndarray:
        return numpy.asarray(self.evaluate(value))

    def _pairs(self, a: Any, b: Any, check: Callable[[Any, Any], None]) -> None:
        a, b = self.evaluate(a), self.evaluate(b)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            self.assertEqual(set(a), set(b))
            for key in a:
                self._pairs(a[key], b[key], check)
            return
        try:
            one, other = numpy.asarray(a), numpy.asarray(b)
        except ValueError:  # rows of different lengths
            self.assertEqual(len(a), len(b))
            for first, second in zip(a, b):
                self._pairs(first, second, check)
            return
        self.assertEqual(one.shape, other.shape, "the shapes differ")
        check(one, other)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail unless all elements are equal; NaN equals NaN."""
        self._pairs(a, b, lambda one, other: numpy.testing.assert_array_equal(one, other, msg or ""))

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail if all elements are equal."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(self._formatMessage(msg, "all elements are equal"))

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fail unless ``|a - b| <= atol + rtol * |b|`` everywhere; of float16 both are at least 1e-3."""

        def check(one: Any, other: Any) -> None:
            half = numpy.float16 in (one.dtype, other.dtype)
            least = 1e-3 if half else 0.0
            numpy.testing.assert_allclose(one, other, max(rtol, least), max(atol, least), err_msg=msg or "")

        self._pairs(a, b, check)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """``assertAllClose`` with the largest limits of the dtypes of both."""
        kinds = {self._array(a).dtype.name, self._array(b).dtype.name}
        for name, more in (
            ("float32", (float_rtol, float_atol)),
            ("float16", (half_rtol, half_atol)),
            ("bfloat16", (bfloat16_rtol, bfloat16_atol)),
        ):
            if name in kinds:
                rtol, atol = max(rtol, more[0]), max(atol, more[1])
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fail if ``assertAllClose`` does not."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(self._formatMessage(msg, "all elements are close"))

    def _every(self, a: Any, holds: Callable[[Any], Any], words: str) -> None:
        array = self._array(a)
        wrong = array[~numpy.asarray(holds(array))]
        if wrong.size:
            self.fail(f"{wrong.size} of {array.size} elements are not {words}, the first {wrong.ravel()[0]}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is greater."""
        self._every(a, lambda array: array > comparison_target, f"greater than {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is less."""
        self._every(a, lambda array: array < comparison_target, f"less than {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is greater or equal."""
        self._every(a, lambda array: array >= comparison_target, f"at least {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless every element is less or equal."""
        self._every(a, lambda array: array <= comparison_target, f"at most {comparison_target}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fail unless every element is one of some."""
        allowed = list(expected_set)
        self._every(target, lambda array: numpy.isin(array, allowed), f"among {allowed}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fail unless every element lies between two bounds, of which open ones are left out."""

        def inside(array: Any) -> Any:
            low = array > lower_bound if open_lower_bound else array >= lower_bound
            return low & (array < upper_bound if open_upper_bound else array <= upper_bound)

        self._every(target, inside, f"between {lower_bound} and {upper_bound}")

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Fail unless two numbers, or infinities, differ by at most ``err``."""
        close = f1 == f2 or abs(f1 - f2) <= err
        self.assertTrue(close, self._formatMessage(msg, f"{f1} and {f2} differ by more than {err}"))

    def assertArrayNear(self, farray1: Sequence[Any], farray2: Sequence[Any], err: float) -> None:
        """Fail unless numbers differ by at most ``err`` each."""
        self.assertEqual(len(farray1), len(farray2))
        for one, other in zip(farray1, farray2):
            self.assertNear(float(one), float(other), err)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """Fail unless the distance of two arrays is less than ``err``."""
        distance = float(numpy.linalg.norm(self._array(ndarray1) - self._array(ndarray2)))
        self.assertLess(distance, err, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """Fail unless a tensor has the shape of an array."""
        self.assertIsInstance(np_array, (numpy.ndarray, numpy.generic))
        self.assertAllEqual(list(np_array.shape), tf_tensor.get_shape().as_list(), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fail unless a tensor or array has a dtype."""
        found = target if isinstance(target, numpy.ndarray) else self._array(target)
        self.assertEqual(found.dtype, numpy.dtype(expected_dtype))

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """Fail unless a string begins with another."""
        if not actual.startswith(expected_start):
            self.fail(self._formatMessage(msg, f"{actual!r} does not start with {expected_start!r}"))

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Fail unless the block raises an error for which a function is true, or which a pattern is found in."""
        wanted = expected_err_re_or_predicate
        try:
            yield
        except exception_type as error:
            found = wanted(error) if callable(wanted) else re.search(wanted, str(error))
            if not found:
                self.fail(f"another error was raised: {error}")
            return
        self.fail(f"no {exception_type} was raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """``assertRaisesWithPredicateMatch`` for errors of ``tf.errors``."""
        return self.assertRaisesWithPredicateMatch(GraphError, expected_err_re_or_predicate)


TensorFlowTestCase = TestCase
