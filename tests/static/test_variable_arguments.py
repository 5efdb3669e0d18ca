"""What variables are given works or raises: shapes that are validated, getters, constraints, partitioners."""

import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def started(session):
    session.run(tf.global_variables_initializer())


def test_a_value_of_another_shape_is_refused_in_the_run(session):
    v, p = tf.Variable([1.0, 2.0]), tf.placeholder(tf.float32, None)
    assigned, added = tf.assign(v, p), tf.assign_add(v, p)
    started(session)
    for update, values in ((assigned, [[1.0, 2.0, 3.0], 1.0]), (added, [[1.0], [[1.0, 2.0]]])):
        for value in values:
            with pytest.raises(ValueError, match="shape|does not fit variable"):
                session.run(update, {p: value})
    assert isinstance(session.run(assigned, {p: [3.0, 4.0]}), type(session.run(v)))
    assert (session.run(v).tolist(), assigned.shape.as_list()) == ([3.0, 4.0], [2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a value float32\[3\] does not fit variable"):
        session.run(assigned, {p: [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("value", [[1.0, 2.0, 3.0], 1.0, [[1.0, 2.0]]])
def test_a_value_of_another_shape_is_refused_when_declared(session, value):
    with pytest.raises(ValueError, match="does not fit variable"):
        tf.assign(tf.Variable([1.0, 2.0]), value)


def test_shapes_that_are_not_validated(session):
    v, p = tf.Variable([1.0, 2.0]), tf.placeholder(tf.float32, None)
    longer = tf.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    w = tf.Variable(p, validate_shape=False)
    square = tf.assign(w, tf.zeros([2, 2]), validate_shape=False)
    session.run([v.initializer, w.initializer], {p: [1.0]})
    assert w.shape.dims is None
    session.run([longer, square])
    assert session.run(v + 0.0).tolist() == [1.0, 2.0, 3.0]
    assert session.run(w * 2.0).shape == (2, 2)
    with pytest.raises(RuntimeError, match="unknown sizes"):
        tf.Variable(p)


def test_a_shape_that_says_less(session):
    v = tf.Variable([1.0, 2.0], shape=[None])
    longer = v.assign([1.0, 2.0, 3.0])
    started(session)
    session.run(longer)
    assert (session.run(v).tolist(), v.shape.as_list()) == ([1.0, 2.0, 3.0], [None])
    with pytest.raises(ValueError, match="is not of the shape"):
        tf.Variable([1.0, 2.0], shape=[3])


def test_updates_that_are_not_read_are_operations(session):
    v = tf.Variable(1.0)
    update = v.assign_add(2.0, read_value=False)
    started(session)
    assert isinstance(update, tf.Operation)
    assert (session.run(update), session.run(v)) == (None, 3.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: tf.Variable(1.0, nonsense=1), TypeError, "nonsense"),
        (lambda: tf.get_variable("v", [2], nonsense=1), TypeError, "nonsense"),
        (
            lambda: tf.get_variable("v", [2], partitioner=lambda **more: [3]),
            ValueError,
            "no more parts than rows",
        ),
        (
            lambda: tf.get_variable("v", [2, 2], partitioner=lambda **more: [2, 2]),
            ValueError,
            "Divide one axis",
        ),
        (
            lambda: tf.get_variable("v", [2], partitioner=tf.fixed_size_partitioner(2, 1)),
            ValueError,
            "axis 1",
        ),
        (lambda: tf.variable_axis_size_partitioner(0), ValueError, "positive"),
        (lambda: tf.Variable(1.0, caching_device="/bogus"), ValueError, "bogus"),
        (lambda: tf.Variable(1.0, variable_def=object()), ValueError, "variable_def is not offered"),
        (lambda: tf.Variable(1.0, import_scope="x"), ValueError, "import_scope is not offered"),
        (lambda: tf.get_variable("v", [1], initializer=tf.constant([1.0])), ValueError, "has a shape"),
    ],
)
def test_what_is_not_offered_raises(session, make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_parts_are_found_again_if_they_are_the_same_ones(session):
    halves, thirds = tf.fixed_size_partitioner(2), tf.fixed_size_partitioner(3)
    with tf.variable_scope("s", partitioner=halves):
        w = tf.get_variable("w", [5, 2])
        whole = tf.get_variable("scalar", [], initializer=tf.zeros_initializer())
    assert [part.shape.as_list() for part in w] == [[3, 2], [2, 2]] and isinstance(whole, tf.Variable)
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("w", [5, 2], partitioner=halves) is w is tf.get_variable("w")
        with pytest.raises(ValueError, match="Use its partitioner"):
            tf.get_variable("w", [5, 2], partitioner=thirds)
        with pytest.raises(ValueError, match="shared with another shape"):
            tf.get_variable("w", [6, 2])
    with pytest.raises(ValueError, match="already exists"), tf.variable_scope("s"):
        tf.get_variable("w", [5, 2], partitioner=halves)


def test_initializers_know_the_whole_of_a_part(session):
    given = []

    def first(shape, dtype=None, partition_info=None):
        given.append((list(shape), *map(list, partition_info)))
        return tf.zeros(shape, dtype)

    tf.get_variable("w", [5, 2], initializer=first, partitioner=tf.fixed_size_partitioner(2))
    assert given == [([3, 2], [5, 2], [0, 0]), ([2, 2], [5, 2], [3, 0])]
    large = tf.get_variable("g", [400, 4], partitioner=tf.fixed_size_partitioner(40))
    started(session)
    limit = (6 / 404) ** 0.5
    values = session.run(large.as_tensor())
    assert abs(values).max() <= limit and abs(values).max() > 0.9 * limit


def test_getters_are_called_from_the_inside_out(session):
    called = []

    def outer(getter, name, *rest, **options):
        called.append(f"outer {name}")
        return getter(f"{name}_x", *rest, **{**options, "initializer": tf.constant_initializer(5.0)})

    def inner(getter, name, *rest, **options):
        called.append(f"inner {name}")
        return getter(name, *rest, **options) * 2.0

    with tf.variable_scope("s", custom_getter=outer):
        v = tf.get_variable("v", [1])
        with tf.variable_scope("t", custom_getter=inner):
            w = tf.get_variable("w", [1])
        tf.get_variable("u", [1], custom_getter=inner)
    started(session)
    assert [variable.name for variable in tf.global_variables()] == ["s/v_x:0", "s/t/w_x:0", "s/u:0"]
    assert called == ["outer s/v", "inner s/t/w", "outer s/t/w", "inner s/u"]
    assert [value.tolist() for value in session.run([v, w])] == [[5.0], [10.0]]


def test_a_constraint_holds_after_each_step(session):
    with tf.variable_scope("s", constraint=lambda value: tf.clip_by_value(value, 0.0, 1.0)):
        v = tf.get_variable("v", initializer=0.5)
    step = tf.train.GradientDescentOptimizer(10.0).minimize(v * 1.0)
    started(session)
    session.run(step)
    assert session.run(v) == 0.0


def test_a_variable_starts_from_another_in_the_same_run(session):
    v = tf.Variable(2.0)
    w, u = tf.Variable(v * 3.0), tf.Variable(v.initialized_value() + 1.0)
    started(session)
    assert session.run([v, w, u]) == [2.0, 6.0, 3.0]
    session.run(v.assign(10.0))
    session.run(w.initializer)
    assert session.run(w) == 30.0


def test_a_shared_variable_of_another_dtype_raises(session):
    tf.get_variable("v", [1])
    with tf.variable_scope("", reuse=True), pytest.raises(ValueError, match="another dtype"):
        tf.get_variable("v", [1], tf.float64)


def test_checks_of_distributions_that_are_not_made_are_refused(session):
    normal = tf.distributions.Normal
    with pytest.raises(ValueError, match="validate_args is not offered"):
        normal(0.0, -1.0, validate_args=True)
    with pytest.raises(ValueError, match="allow_nan_stats=False is not offered"):
        normal(0.0, 1.0, allow_nan_stats=False)
    normal(0.0, 1.0, validate_args=False)


def test_sums_are_checked_against_what_is_said(session):
    values = [tf.constant([1.0]), tf.constant([2.0])]
    assert session.run(tf.accumulate_n(values, shape=[1], tensor_dtype=tf.float32)).tolist() == [3.0]
    with pytest.raises(ValueError, match="is not of shape"):
        tf.accumulate_n(values, shape=[2])
    with pytest.raises(TypeError, match="is not of"):
        tf.accumulate_n(values, tensor_dtype=tf.int32)


def test_options_that_would_change_numbers_are_refused(session):
    with pytest.raises(ValueError, match="is not offered"):
        tf.layers.batch_normalization(tf.zeros([2, 3]), virtual_batch_size=1)


def test_callables_and_conversions_take_their_options(session):
    x = tf.placeholder(tf.float32, [])
    call = session.make_callable(x * 2.0, [x], accept_options=True)
    assert call(3.0, options=tf.RunOptions()) == 6.0
    with pytest.raises(TypeError):
        session.make_callable(x * 2.0, [x])(3.0, options=tf.RunOptions())
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float64).dtype is tf.float64
    assert tf.convert_to_tensor(1.5, preferred_dtype=tf.int32).dtype is tf.float32


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("shape", [[6, 2], [3, 2], [4, 3], [4], []])
def test_a_partitioned_variable_takes_values_of_its_shape_alone(session, method, shape):
    w = tf.get_variable(
        "w", [4, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer()
    )
    sizes = ",".join(map(str, shape))
    with pytest.raises(
        ValueError, match=rf"float32\[{sizes}\].*'w' of parts of float32.*4, 2.*test_variable_arg"
    ):
        getattr(w, method)(tf.zeros(shape))
    fed = tf.placeholder(tf.float32, [None, 2])
    changed = getattr(w, method)(fed)
    started(session)
    for rows in (3, 6):
        with pytest.raises(ValueError, match="split|Split|parts"):
            session.run(changed, {fed: [[1.0, 1.0]] * rows})
    assert session.run(w).tolist() == [[1.0, 1.0]] * 4
    found = session.run(changed, {fed: [[2.0, 2.0]] * 4})
    expected = {"assign": 2.0, "assign_add": 3.0, "assign_sub": -1.0}[method]
    assert [part.tolist() for part in found] == [[[expected] * 2] * 2] * 2
