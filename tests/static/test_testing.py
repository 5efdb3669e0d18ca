"""``tf.test``: which assertions hold, with TensorFlow's limits."""

import unittest

import numpy
import pytest

import twofold.static as tf


class Case(tf.test.TestCase):
    def runTest(self):
        pass


@pytest.fixture
def case():
    made = Case()
    made.setUp()
    yield made
    made.tearDown()


def test_values_of_tensors_are_those_in_the_session(case):
    with case.session() as session:
        x = tf.Variable([1.0, 2.0])
        session.run(tf.global_variables_initializer())
        case.assertAllEqual(x, [1, 2])
        case.assertAllEqual({"a": x * 2, "b": [x, x]}, {"a": [2, 4], "b": [[1, 2], [1, 2]]})
        case.assertAllEqual([[1], [2, 3]], [[1], [2, 3]])
        case.assertAllClose(x, [1.0 + 1e-6, 2.0])
        case.assertNotAllClose(x, [1.0 + 1e-5, 2.0])
        case.assertNotAllEqual(x, [1, 3])
        case.assertAllCloseAccordingToType(tf.cast(x, tf.float16), numpy.array([1.001, 2], "float16"))
        case.assertAllInRange(x, 1, 2)
        case.assertAllGreater(x, 0)
        case.assertAllInSet(x, {1, 2})
        case.assertShapeEqual(numpy.ones((2,)), x)
        case.assertNDArrayNear(x, [1, 2], 1e-3)
        assert case.evaluate({"a": (x, 3)})["a"][1] == 3


def test_nested_values_are_of_one_run_with_a_session_or_without(case):
    x = tf.random_uniform([4])
    found = case.evaluate({"a": x, "b": (x * 2, [x])})
    assert (
        found["b"][0].tolist() == (found["a"] * 2).tolist()
        and found["b"][1][0].tolist() == found["a"].tolist()
    )


@pytest.mark.parametrize(
    "check",
    [
        lambda case: case.assertAllEqual([1, 2], [1, 3]),
        lambda case: case.assertAllEqual([1, 1], 1),
        lambda case: case.assertAllEqual({"a": 1}, {"b": 1}),
        lambda case: case.assertAllEqual([[1], [2, 3]], [[1], [2, 4]]),
        lambda case: case.assertAllClose(1.0, 1.00001),
        lambda case: case.assertAllLess([1, 2], 2),
        lambda case: case.assertAllInRange([1, 2], 1, 2, open_upper_bound=True),
        lambda case: case.assertNear(1.0, 2.0, 0.5),
        lambda case: case.assertArrayNear([1.0], [2.0], 0.5),
        lambda case: case.assertShapeEqual(numpy.ones(3), tf.zeros([2])),
        lambda case: case.assertDTypeEqual(numpy.ones(3), "float32"),
        lambda case: case.assertStartsWith("abc", "b"),
    ],
)
def test_what_does_not_hold_fails(case, check):
    with case.session(), pytest.raises(AssertionError):
        check(case)


def test_errors_of_runs(case):
    with case.session() as session:
        wrong = tf.gather([1, 2], tf.placeholder(tf.int32, [], "k"))
        with case.assertRaisesOpError("outside an axis"):
            session.run(wrong, {"k:0": 5})
        with pytest.raises(AssertionError, match="another error"), case.assertRaisesOpError("nothing"):
            session.run(wrong, {"k:0": 5})
        with pytest.raises(AssertionError, match="was raised"), case.assertRaisesOpError("nothing"):
            pass


def test_one_session_is_kept_and_seeds_are_set(case):
    with case.test_session() as first:
        drawn = first.run(tf.random_normal([3]))
    with case.cached_session() as second:
        assert second is first
    with pytest.raises(ValueError, match="another graph"), case.cached_session(graph=tf.Graph()):
        pass
    case.tearDown()
    case.setUp()
    with case.test_session() as other:
        assert other is not first
        numpy.testing.assert_array_equal(other.run(tf.random_normal([3])), drawn)


def test_session_is_no_test_of_a_program():
    class Two(tf.test.TestCase):
        def test_one(self):
            self.assertAllEqual(self.evaluate(3), 3)

        def test_two(self):
            self.fail("as it is meant to")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Two).run(result)
    assert (result.testsRun, len(result.failures), result.errors) == (2, 1, [])


def test_sessions_of_tests_place_what_is_for_other_devices():
    case = tf.test.TestCase()
    with tf.Graph().as_default(), case.session() as session, tf.device("/gpu:0"):
        assert session.run(tf.constant(2.0)) == 2.0
    assert tf.test.get_temp_dir() == tf.test.get_temp_dir()
