"""The texts of errors, frozen: what, both sides, the lines, and what to change."""

import inspect
import pickle

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def line(offset=0):
    return inspect.currentframe().f_back.f_lineno + offset


def text_of(call, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_missing_feed(session):
    made = line(1)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    used = line(1)
    y = tf.reduce_sum(x)
    run = line(1)
    assert text_of(lambda: session.run(y)) == (
        f"placeholder 'x:0' float32[?,3] (test_errors.py:{made}) is not fed, but Sum (test_errors.py:{used}) needs it, "
        f"at test_errors.py:{run}. Add it to feed_dict: run(..., feed_dict={{x: value}})."
    )


def test_feed_of_another_shape(session):
    made = line(1)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    run = line(1)
    assert text_of(lambda: session.run(x + 1.0, {x: numpy.zeros((2, 4))})) == (
        f"feed: a value float32[2,4] does not fit 'x:0' float32[?,3] (test_errors.py:{made}), at test_errors.py:{run}. "
        "Feed an array of its shape, or declare it with None where sizes vary."
    )
    run = line(1)
    assert text_of(lambda: session.run([x * 2.0, x], {x: [1.0, 2.0]})) == (
        f"feed: a value float32[2] does not fit 'x:0' float32[?,3] (test_errors.py:{made}), at test_errors.py:{run}. "
        "Feed an array of its shape, or declare it with None where sizes vary."
    )


def test_feeds_that_lose_something(session):
    made = line(1)
    n = tf.placeholder(tf.int32, [None], name="n")
    assert session.run(n + 1, {n: [1.0, 2.0]}).tolist() == [2, 3]
    run = line(1)
    assert text_of(lambda: session.run(n, {n: [1.5]})) == (
        f"feed: values float64[1] have fractions that 'n:0' int32[?] (test_errors.py:{made}) would lose, "
        f"at test_errors.py:{run}. Convert them yourself, or declare the placeholder with a floating dtype."
    )
    run = line(1)
    assert text_of(lambda: session.run(n, {n: "text"})) == (
        f"feed: a value of type str (<U4) does not become numbers for 'n:0' int32[?] (test_errors.py:{made}), "
        f"at test_errors.py:{run}. Feed numbers that fit int32[?]; lists must have rows of equal length."
    )
    assert "does not become numbers" in text_of(lambda: session.run(n, {n: [[1], [2, 3]]}))


def test_feeds_and_fetches_of_names_that_are_not_there(session):
    tf.constant(1.0, name="here")
    run = line(1)
    assert text_of(lambda: session.run("there:0")) == (
        f"fetch: The name 'there' refers to an operation that is not in the graph. At test_errors.py:{run}. "
        "Use a name that the graph has."
    )
    assert text_of(lambda: session.run("here:0", {"there:0": 1.0})).startswith("feed: The name 'there'")
    assert text_of(lambda: session.run("here:3")).startswith(
        "fetch: The name 'here:3' refers to output 3 of an operation with 1."
    )
    run = line(1)
    assert text_of(lambda: session.run(3), TypeError) == (
        "fetch: a value of type int is neither a tensor nor an operation. Fetch one of those, or its name. "
        f"At test_errors.py:{run}."
    )


def test_another_graph(session):
    with tf.Graph().as_default():
        made = line(1)
        x = tf.constant(1.0, name="x")
    run = line(1)
    assert text_of(lambda: session.run(x)) == (
        f"fetch: 'x' (test_errors.py:{made}) is not in the graph of this session, at test_errors.py:{run}. "
        "Make the session with tf.Session(graph=...) of its graph, or inside that graph's as_default()."
    )
    run = line(1)
    assert text_of(lambda: tf.constant(1.0) + x) == (
        f"AddV2: an input, x (test_errors.py:{made}), belongs to another graph, "
        f"at test_errors.py:{run}. Declare both in one graph."
    )


def test_closed_session():
    x = tf.constant(1.0)
    with tf.Session() as session:
        session.run(x)
    run = line(1)
    assert text_of(lambda: session.run(x)) == (
        f"run: the session is closed, at test_errors.py:{run}. Make a new one, or move the run into its 'with' block."
    )


def test_variable_without_value(session):
    made = line(1)
    v = tf.Variable(tf.zeros([2, 3]), name="v")
    run = line(1)
    assert text_of(lambda: session.run(v * 2.0)) == (
        f"variable 'v' float32[2,3] (test_errors.py:{made}) has no value in this session, at test_errors.py:{run}. "
        "Run tf.global_variables_initializer() first, or restore it with a Saver."
    )
    run = line(1)
    assert text_of(lambda: v.assign([1.0])) == (
        f"Assign: 'Const:0' float32[1] (test_errors.py:{run}) "
        f"does not fit variable 'v' float32[2,3] (test_errors.py:{made}), "
        f"at test_errors.py:{run}. Make dtype and shape equal; tf.cast and tf.reshape convert."
    )


def test_finalised_graph():
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0)
        graph.finalize()
        run = line(1)
        assert text_of(lambda: x + 1.0) == (
            f"add cannot be added to the graph, as it was finalised, "
            f"at test_errors.py:{run}. Declare it before finalize()."
        )
        assert text_of(lambda: tf.nn.relu(x)).startswith(
            "Relu cannot be added to the graph, as it was finalised"
        )
        with tf.Session(graph=graph) as session:
            assert session.run(x) == 1.0


def test_shapes_are_checked_where_they_are_declared(session):
    a = tf.placeholder(tf.float32, [None, 3], name="a")
    made = line(1)
    b = tf.placeholder(tf.float32, [4, 4], name="b")
    run = line(1)
    assert text_of(lambda: tf.matmul(a, b)) == (
        f"MatMul: inner sizes differ, 3 against 4: 'a:0' float32[?,3] (test_errors.py:{made - 2}), "
        f"'b:0' float32[4,4] (test_errors.py:{made}), at test_errors.py:{run}. "
        "Make the first axis of other 3."
    )


def test_sizes_that_do_not_meet_name_the_declaration(session):
    a, b = tf.placeholder(tf.float32, [None], name="a"), tf.placeholder(tf.float32, [None], name="b")
    made = line(1)
    c = tf.add(a, b)
    found = text_of(lambda: session.run(c, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0]}))
    assert found.startswith(
        f"Add, declared at test_errors.py:{made}: add: sizes on axis -1 differ, 2 against 3"
    )


def test_values_are_not_there_before_a_run(session):
    x = tf.placeholder(tf.float32, [], name="x")
    assert "is not computed yet, as it depends on a placeholder" in text_of(lambda: bool(x > 0))
    with pytest.raises(ValueError, match=r"eval\(\) needs a session"), tf.Graph().as_default():
        constant = tf.constant(1.0)
        tf.get_default_session().close()
        from_stack = tf.Session()
        del from_stack
        _without_default(constant)


def _without_default(tensor):
    from twofold.static.graph.context import local

    before, local.sessions = local.sessions, []
    try:
        tensor.eval()
    finally:
        local.sessions = before


def test_a_placeholder_without_a_value_is_an_invalid_argument():
    with tf.Graph().as_default(), tf.Session() as session:
        doubled = tf.placeholder(tf.float32, []) * 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not fed"):
            session.run(doubled)


def picked(x, index):
    return tf.gather(x, index)


def picked_elsewhere(x, index):
    return tf.gather(x, index)  # elsewhere


def line_in(function, text):
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + k for k, line in enumerate(lines) if text in line)
    return f"test_errors.py:{number}"


def test_equal_graphs_name_their_own_lines(session):
    x, index = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [1])
    for pick, text in ((picked, "gather"), (picked_elsewhere, "# elsewhere")):
        y = pick(x, index)
        for _ in range(3):
            assert session.run(y, {x: [1, 2, 3], index: [1]}).tolist() == [2]
        assert f", at {line_in(pick, text)}. " in text_of(
            lambda y=y: session.run(y, {x: [1, 2, 3], index: [3]})
        )


def test_gradients_name_the_forward_line_too(session):
    def slope(y, x):
        return tf.gradients(tf.reduce_sum(y), [x])[0]

    x, index = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [1])
    text = text_of(lambda: session.run(slope(picked(tf.exp(x), index), x), {x: [1, 2, 3], index: [3]}))
    assert f", at {line_in(picked, 'gather')}" in text
    assert f", in the backward pass at {line_in(slope, 'tf.gradients')}. " in text


def test_a_line_in_the_body_of_a_loop(session):
    x, index = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [1])

    def body(k, total):
        more = tf.gather(x, index)
        total = total + more
        return k + 1, total

    y = tf.while_loop(lambda k, total: k < 2, body, [tf.constant(0), tf.zeros([1])])[1]
    assert f", at {line_in(body, 'gather')}. " in text_of(lambda: session.run(y, {x: [1, 2, 3], index: [3]}))


KINDS = [
    kind
    for name in dir(tf.errors)
    if isinstance(kind := getattr(tf.errors, name), type) and issubclass(kind, tf.errors.OpError)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_are_made_as_in_tensorflow(kind):
    operation = tf.no_op()
    for error in (kind(None, operation, "the end"), kind(node_def=None, op=operation, message="the end")):
        assert (str(error), error.message, error.node_def) == ("the end", "the end", None)
        assert error.op is operation
    again = pickle.loads(pickle.dumps(kind(None, None, "the end")))
    assert type(again) is kind and again.message.startswith("the end") and again.op is None
    assert kind("what", "Fix it.").message == "what. Fix it."


def test_labels_of_another_shape_than_logits():
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="sizes on axis -2 differ, 4 against 2"):
            tf.nn.softmax_cross_entropy_with_logits(labels=tf.ones([4, 2]), logits=tf.ones([2, 4]))
        shared = tf.nn.softmax_cross_entropy_with_logits(
            labels=tf.constant([[0.25, 0.75]]), logits=tf.zeros([3, 2])
        )
        assert session.run(shared) == pytest.approx([0.6931472] * 3)


def test_a_loop_variable_that_grows_in_a_run():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        start = [tf.constant(0), tf.zeros([2])]
        grown = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.concat([h, x], 0)), start)[1]
        for debug in (False, True):
            with pytest.raises(ValueError, match=r"iteration 0 leaves the body with \[3\]"):
                session.run(grown, {x: [1.0]}, debug=debug)


def test_the_base_of_errors_has_a_name_of_its_own():
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.OpError):
        session.run(tf.placeholder(tf.float32) + 1.0)
    assert tf.OpError is tf.errors.OpError
