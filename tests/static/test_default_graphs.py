"""Which graph and session are the default ones, by what TensorFlow 1 says of blocks inside of blocks."""

import gc
import threading

import pytest

import twofold.static as tf


def test_a_graph_is_entered_inside_of_itself():
    outer, inner = tf.Graph(), tf.Graph()
    with outer.as_default(), inner.as_default():
        with outer.as_default():
            assert tf.get_default_graph() is outer
        assert tf.get_default_graph() is inner
        assert tf.constant(1.0).graph is inner


def test_a_session_is_the_default_one_inside_of_itself():
    first, second = tf.Session(), tf.Session()
    with first, second:
        with first.as_default():
            assert tf.get_default_session() is first
        assert tf.get_default_session() is second
        with pytest.raises(RuntimeError, match="entered inside of itself"), first:
            pass
        assert tf.get_default_session() is second


def test_a_block_is_left_in_another_thread():
    graph = tf.Graph()

    def generator():
        with graph.as_default():
            yield

    made = generator()
    next(made)
    assert tf.get_default_graph() is graph
    thread = threading.Thread(target=made.close)
    thread.start()
    thread.join()
    assert tf.get_default_graph() is not graph


def test_a_generator_is_forgotten_while_a_function_of_the_host_runs():
    """Such as ``Estimator.predict``, whose generator a program need not exhaust."""
    graph, held = tf.Graph(), []

    def generator():
        with graph.as_default():
            yield

    held.append(generator())
    next(held[0])

    def forget(value):
        held.clear()
        gc.collect()
        return value

    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.py_func(forget, [1.0], tf.float32)) == 1.0
    assert tf.get_default_graph() is not graph
