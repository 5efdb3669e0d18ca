"""Operations computed at once; the expected values were recorded from TensorFlow 2.21, ``tf.compat.v1``."""

import gc
import weakref

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def _eager():
    tf.reset_default_graph()
    tf.enable_eager_execution()
    yield
    tf.disable_eager_execution()
    tf.reset_default_graph()


def lists(value):
    if isinstance(value, (list, tuple)):
        return [lists(item) for item in value]
    if value is None:
        return None
    return numpy.asarray(value.numpy() if hasattr(value, "numpy") else value).tolist()


def close(found, expected):
    numpy.testing.assert_allclose(numpy.asarray(lists(found), float), expected, rtol=1e-5, atol=1e-5)


def test_values():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert tf.executing_eagerly()
    assert lists([x * 2 + 1, tf.reduce_sum(x), tf.matmul([[1.0, 2.0]], [[3.0], [4.0]])]) == [
        [[3, 5], [7, 9]],
        10,
        [[11]],
    ]
    assert (x.shape.as_list(), lists(tf.shape(x)), float(x[0, 0]), x[..., None].shape.as_list()) == (
        [2, 2],
        [2, 2],
        1.0,
        [2, 2, 1],
    )
    assert lists([tf.where(x > 2.0, x, -x), tf.concat([x, x], 0)[3], x @ x]) == [
        [[-1, -2], [3, 4]],
        [3, 4],
        [[7, 10], [15, 22]],
    ]
    assert lists([tf.add(1, 2), tf.constant(3) / tf.constant(2), tf.fill([2], 7), tf.rank([[1]])]) == [
        3,
        1.5,
        [7, 7],
        2,
    ]
    assert (tf.constant("ab").numpy(), tf.constant(["a", "b"]).numpy().tolist()) == (b"ab", [b"a", b"b"])
    y = tf.constant([1.0, 2.0])
    same = y
    y += 1.0
    assert lists([same, y]) == [[1, 2], [2, 3]]
    images = tf.constant(numpy.arange(16, dtype="f").reshape(1, 4, 4, 1))
    found = tf.nn.conv2d(images, tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "VALID")
    assert numpy.ravel(lists(found)).tolist() == [10, 14, 18, 26, 30, 34, 42, 46, 50]
    assert [lists(row) for row in x] == [[1, 2], [3, 4]]
    assert (tf.random_uniform([9]).numpy() != tf.random_uniform([9]).numpy()).any()


def test_variables():
    v = tf.Variable(1.0, name="v")
    v.assign_add(2.0)
    v.assign(v * 2)
    tf.assign_sub(v, 1.0)
    assert (v.name, lists([v, v + 1, v.read_value()])) == ("v:0", [5, 6, 5])
    rows = tf.Variable(numpy.zeros([3, 2], "f"))
    tf.scatter_add(rows, [0, 2], [[1.0, 1.0], [2.0, 2.0]])
    assert lists(rows) == [[1, 1], [0, 0], [2, 2]]
    with tf.name_scope("a"), tf.variable_scope("b"):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    assert (w.name, lists(w[1])) == ("b/w:0", 1)
    with pytest.raises(ValueError, match="does not fit"):
        v.assign([1.0, 2.0])
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="made outside of graphs"):
        v + 1


def test_gradients():
    w, b = tf.Variable([1.0, 2.0]), tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as tape:
        y, z = tf.reduce_sum(w * w) * b, tf.reduce_sum(w)
    assert lists(tape.gradient(y, [w, b])) == [[1, 2], 5]
    found = tape.gradient(z, {"a": w, "b": b})
    assert (lists(found["a"]), found["b"]) == ([1, 1], None)
    assert lists(tape.gradient(z, b, unconnected_gradients=tf.UnconnectedGradients.ZERO)) == 0
    assert lists(tape.gradient(y, b, output_gradients=tf.constant(3.0))) == 15


def test_gradients_of_gradients():
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert lists([first, outer.gradient(first, x)]) == [27, 18]


def test_what_is_recorded():
    x = tf.constant(2.0)
    before = x * x
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = before * 3.0
    assert tape.gradient(y, x) is None
    with tf.GradientTape() as other:
        z = x * x
    assert other.gradient(z, x) is None
    with pytest.raises(RuntimeError, match="non-persistent"):
        other.gradient(z, x)
    fixed, v = tf.Variable(2.0, trainable=False), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = fixed * v * v
    assert lists(tape.gradient(y, [fixed, v])) == [None, 12]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(fixed)
        y = fixed * v
    assert lists(tape.gradient(y, [fixed, v])) == [3, None]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.stop_gradient(x) * x
        with tape.stop_recording():
            z = x * 5.0
    assert lists([tape.gradient(y, x), tape.gradient(z, x)]) == [2, None]


def test_jacobian():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert lists(tape.jacobian(y, x)) == [[2, 0], [0, 4]]


def test_training():
    w = tf.Variable(tf.zeros([2, 1]))
    x, y = numpy.float32([[1, 2], [3, 4], [5, 7]]), numpy.float32([[1], [2], [3]])
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    close(w, [[0.20523999631404877], [0.2900699973106384]])
    v, step = tf.Variable([1.0, -1.0]), tf.train.get_or_create_global_step()
    adam = tf.train.AdamOptimizer(0.1)
    for _ in range(3):
        adam.minimize(lambda: tf.reduce_sum(v * v), global_step=step)
    close(v, [0.70159, -0.70159])
    assert lists(step) == 3
    m, momentum = tf.Variable(tf.ones([2, 3])), tf.train.MomentumOptimizer(0.1, 0.9)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.nn.l2_loss(m)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, [m]), 1.0)
        momentum.apply_gradients(zip(gradients, [m]))
    close(m, numpy.full([2, 3], 0.88161))
    with pytest.raises(RuntimeError, match="should be a function"):
        adam.minimize(loss)


def test_layers_and_losses():
    dense = tf.layers.Dense(3, kernel_initializer=tf.ones_initializer())
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(dense(tf.ones([2, 4])))
    assert lists(y) == 24
    assert lists(tape.gradient(y, dense.trainable_variables)) == [[[2] * 3] * 4, [2] * 3]
    assert lists(tf.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0])) == 2


def test_control():
    i = tf.constant(0)
    x = tf.constant([1.0, 2.0])
    chosen = tf.cond(i < 1, lambda: tf.constant(5.0), lambda: tf.constant(6.0))
    k, grown = tf.while_loop(lambda k, x: k < 3, lambda k, x: [k + 1, tf.concat([x, x[-1:] * 2], 0)], [0, x])
    assert lists([chosen, k, grown]) == [5, 3, [1, 2, 4, 8, 16]]
    assert lists(tf.case([(i > 1, lambda: tf.constant(1))], default=lambda: tf.constant(2))) == 2
    assert lists(
        [tf.map_fn(lambda v: v * v, x), tf.scan(lambda a, v: a + v, x), tf.foldl(lambda a, v: a + v, x)]
    ) == [
        [1, 4],
        [1, 3],
        3,
    ]
    array = tf.TensorArray(tf.float32, 2)
    for position in range(2):
        array = array.write(position, float(position))
    assert lists(array.stack()) == [0, 1]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), (0, x))[1]
    assert lists(tape.gradient(y, x)) == [4, 32]
    with tf.control_dependencies([y]):
        assert lists(tf.py_func(lambda a: a * 2, [x], tf.float32)) == [2, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        tf.Assert(tf.reduce_all(x > 1.0), [x])


def test_functions():
    w, calls = tf.Variable(2.0), []

    @tf.function
    def squared(x):
        return w * x * x

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def more(x):
        calls.append(x.shape.as_list())
        return x + 1

    with tf.GradientTape() as tape:
        y = squared(tf.constant(3.0))
    assert lists(tape.gradient(y, w)) == 9
    assert (lists(more([1.0, 2.0])), calls) == ([2, 3], [[2]])
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        more(tf.constant([[1.0]]))
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        more()


def test_custom_gradients():
    function = tf.custom_gradient(lambda x: (x * 2.0, lambda gradient: gradient * 7.0))
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x) * 3.0
    assert lists([y, tape.gradient(y, x)]) == [6, 21]


def test_values_stay_values_and_become_constants_of_graphs():
    x = tf.constant([1.0, 2.0])
    assert tf.convert_to_tensor(x) is x
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.convert_to_tensor(x)
        assert made.op.type == "Const"
        assert session.run(made * 2.0).tolist() == [2.0, 4.0]


def test_graphs_beside():
    with tf.Graph().as_default(), tf.Session() as session:
        assert not tf.executing_eagerly()
        x = tf.placeholder(tf.float32, [])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert session.run([y, tape.gradient(y, x)], {x: 4.0}) == [16, 8]
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        tf.placeholder(tf.float32)
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(RuntimeError, match="not offered where operations are computed at once"):
        tf.FIFOQueue(3, tf.float32).dequeue()


def test_it_is_enabled_before_anything_is_declared():
    tf.disable_eager_execution()
    tf.constant(1.0)
    with pytest.raises(ValueError, match="must be called at program startup"):
        tf.enable_eager_execution()


def test_datasets():
    pairs = tf.data.Dataset.from_tensor_slices((tf.constant([1.0, 2.0, 3.0]), numpy.array([1, 2, 3], "i4")))
    found = [lists(item) for item in pairs.map(lambda x, n: (x * 2, n + 1)).batch(2)]
    assert found == [[[2, 4], [2, 3]], [[6], [4]]]
    iterator = tf.data.Dataset.range(2).make_one_shot_iterator()
    assert lists([iterator.get_next(), iterator.get_next()]) == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    words = tf.data.Dataset.from_tensor_slices(["a", "b"])
    assert [word.numpy() for word in words] == [b"a", b"b"]
    with (
        tf.Graph().as_default(),
        pytest.raises(RuntimeError, match="only supported when eager execution is enabled"),
    ):
        iter(words)


def test_a_tape_knows_the_variables_that_were_read():
    kept, other = tf.Variable(2.0), tf.Variable(3.0)
    fixed = tf.Variable(1.0, trainable=False)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            value = kept * kept + fixed
        later = other * 1.0
    assert tape.watched_variables() == (kept,)
    assert outer.watched_variables() == (kept, other)
    assert [float(value), float(later)] == [5, 3]


def test_implicit_gradients_descend():
    tfe = tf.contrib.eager
    w, b = tfe.Variable([[1.0], [2.0]]), tfe.Variable([0.5])
    x, y = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([[1.0], [2.0]])
    step = tfe.implicit_value_and_gradients(lambda x, y: tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y)))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    losses = []
    for _ in range(3):
        loss, pairs = step(x, y)
        assert [variable for _, variable in pairs] == [w, b]
        optimizer.apply_gradients(pairs)
        losses.append(loss)
    close(losses, [10.25, 2.1662498, 0.47596243])
    with pytest.raises(ValueError, match="No trainable variables"):
        tfe.implicit_gradients(lambda: tf.constant(1.0))()
    with pytest.raises(ValueError, match="returns None"):
        tfe.implicit_gradients(lambda: None)()
    value, found = tfe.value_and_gradients_function(lambda a, b: a * b, params=[1])(
        tf.constant([2.0, 3.0]), 4.0
    )
    close(value, [8, 12])
    close(found, [5.0])
    close(tfe.gradients_function(lambda a: a * a)([2.0, 3.0], dy=[1.0, 10.0]), [[4, 60]])


def test_layers_whose_names_start_alike_keep_their_own_variables():
    first, second = tf.layers.Dense(2), tf.layers.Dense(3)
    second(first(tf.zeros([1, 4])))
    assert [one.shape.as_list() for one in first.variables] == [[4, 2], [2]]
    assert [one.shape.as_list() for one in second.trainable_variables] == [[2, 3], [3]]


def test_lists_and_arrays_beside_operators_take_the_dtype_of_the_tensor():
    v, x, k = tf.Variable(2.0), tf.constant([1.0, 2.0]), tf.constant([1, 2])
    for found, values, dtype in (
        ([1.0, 2.0] * v, [2, 4], "float32"),
        (v * (1.0, 2.0), [2, 4], "float32"),
        ([1, 2] * x, [1, 4], "float32"),
        ([1.0, 2.0] + x, [2, 4], "float32"),
        ([3.0, 5.0] - x, [2, 3], "float32"),
        (x - [1.0, 2.0], [0, 0], "float32"),
        ([1.0, 2.0] / v, [0.5, 1], "float32"),
        (k * [3, 4], [3, 8], "int32"),
        (k // [2, 2], [0, 1], "int32"),
        (x * numpy.array([1.0, 2.0]), [1, 4], "float32"),
        (numpy.array([1.0, 2.0]) * x, [1, 4], "float32"),
        (k * numpy.array([1, 2]), [1, 4], "int32"),
        (x > [0.0, 3.0], [True, False], "bool"),
    ):
        assert (lists(found), found.dtype.name) == (values, dtype)
    with pytest.raises(TypeError, match="Cast the tensor"):
        k * [1.5, 2.0]
    tf.disable_eager_execution()
    with pytest.raises(TypeError):
        tf.Tensor([1.0]) * [1.0]


def test_output_gradients_are_cast_or_refused():
    x = tf.constant([1.0, 2.0])
    for seed, wanted in ((tf.ones([2], tf.float64), [2.0, 4.0]), (tf.constant([1, 2]), [2.0, 8.0])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient(y, x, output_gradients=seed).numpy().tolist() == wanted
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(RuntimeError, match="is given as bool"):
        tape.gradient(y, x, output_gradients=True)


def test_training_that_a_tensor_tells():
    x = tf.ones([20, 30])
    assert (tf.layers.dropout(x, 0.5, training=tf.constant(False)).numpy() == 1).all()
    assert (tf.layers.dropout(x, 0.5, training=tf.constant(True)).numpy() == 0).any()


def test_what_python_computes_is_computed_at_once(tmp_path):
    path = tmp_path / "words"
    path.write_text("x\ny\n")
    x = tf.constant([0.0, 2.0, 0.0, 3.0])
    assert tf.where(x > 0).numpy().tolist() == [[1], [3]]
    assert tf.boolean_mask(x, x > 0).numpy().tolist() == [2.0, 3.0]
    assert tf.unique(tf.constant([4, 4, 5])).idx.numpy().tolist() == [0, 0, 1]
    assert tf.string_join(["a", tf.as_string(tf.constant([1, 2]))]).numpy().tolist() == [b"a1", b"a2"]
    table = tf.contrib.lookup.index_table_from_file(str(path))
    assert table.lookup(tf.constant(["y", "none"])).numpy().tolist() == [1, -1] and int(table.size()) == 2
    filled, empty = tf.sparse_fill_empty_rows(tf.SparseTensor([[1, 0]], [5], [3, 1]), 7)
    assert filled.values.numpy().tolist() == [7, 5, 7] and empty.numpy().tolist() == [True, False, True]


def test_jacobians_of_rows():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    close(tape.batch_jacobian(y, x), [[[3, 0], [0, 12]], [[27, 0], [0, 48]]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack([x[:, 0] * x[:, 1], x[:, 1], x[:, 0] ** 2], 1)
    close(tape.batch_jacobian(y, x), [[[2, 1], [0, 1], [2, 0]], [[4, 3], [0, 1], [6, 0]]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.ones([2, 3]) * 2
    assert lists(tape.batch_jacobian(y, x)) == [[[0, 0]] * 3] * 2
    with pytest.raises(ValueError, match="first size"):
        tape.batch_jacobian(tf.ones([3, 2]), x)


def test_a_jacobian_that_fails_leaves_the_tape_for_one_use():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(ValueError, match="nothing"):
        tape.jacobian(y, x, unconnected_gradients="nothing")
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(y, x)


@pytest.mark.parametrize("first", ["jacobian", "batch_jacobian", "gradient"])
@pytest.mark.parametrize("second", ["jacobian", "batch_jacobian", "gradient"])
def test_a_tape_that_is_not_persistent_has_one_use(first, second):
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    getattr(tape, first)(y, x)
    with pytest.raises(RuntimeError, match="non-persistent"):
        getattr(tape, second)(y, x)


def test_jacobians_of_no_elements():
    """The shapes are those of TensorFlow 2.21."""
    x = tf.ones([2, 3])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        rows, columns = y[:0], y[:, :0]
    assert tape.jacobian(rows, x).shape.as_list() == [0, 3, 2, 3]
    assert tape.jacobian(columns, x).shape.as_list() == [2, 0, 2, 3]
    assert tape.batch_jacobian(columns, x).shape.as_list() == [2, 0, 3]


def test_arrays_of_values_without_axes():
    value = tf.constant(1.5)
    assert numpy.asarray(value).shape == () and numpy.array(value, numpy.float64) == 1.5
    assert numpy.float32(value) == 1.5 and numpy.stack([value, value]).tolist() == [1.5, 1.5]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])),
        lambda: tf.reshape(tf.ones([3]), [2, 2]),
        lambda: tf.add(tf.constant(1), tf.constant(1.0)),
        lambda: tf.gather(tf.ones([3]), [5]).numpy(),
    ],
)
def test_errors_are_of_arguments(wrong):
    with pytest.raises(tf.errors.InvalidArgumentError):
        wrong()


def test_variables_are_freed():
    graph = tf.get_default_graph()
    variable = tf.Variable([1.0, 2.0])
    freed = weakref.ref(variable)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(variable * variable)
    close(tape.gradient(loss, variable), [2, 4])
    del variable, tape, loss
    gc.collect()
    assert freed() is None and tf.global_variables() == [] and graph.get_operations() == []


def test_steps_collect_nothing():
    graph = tf.get_default_graph()
    layer, variable = tf.layers.BatchNormalization(), tf.Variable([1.0, 2.0])
    optimizer = tf.train.AdamOptimizer(0.1)

    def loss():
        rows = layer(tf.ones([3, 2]) * variable, training=True)
        found = tf.losses.mean_squared_error(tf.zeros([3, 2]), rows * variable)
        tf.losses.add_loss(found)
        return found

    counts = []
    for _ in range(3):
        optimizer.minimize(loss)
        counts.append(sum(len(graph.get_collection(key)) for key in graph.get_all_collection_keys()))
    assert counts[1] == counts[2] and not tf.losses.get_losses()


def test_minimize_changes_the_variables_that_the_loss_reads():
    read, other = tf.Variable(1.0), tf.Variable(1.0)
    tf.train.GradientDescentOptimizer(0.25).minimize(lambda: read * read)
    assert lists([read, other]) == [0.5, 1]


def test_checkpoints_without_a_session(tmp_path):
    variable, step = tf.Variable([1.0, 2.0]), tf.train.get_or_create_global_step()
    saver = tf.train.Saver({"v": variable})
    path = saver.save(None, str(tmp_path / "model"), global_step=step)
    variable.assign([5.0, 6.0])
    saver.restore(None, path)
    assert lists(variable) == [1, 2] and path.endswith("model-0")


def test_variables_are_numbers_and_conditions():
    zero, half = tf.Variable(0.0), tf.Variable(1.5)
    assert (bool(zero), bool(half), int(half), float(half), f"{half.numpy():.1f}") == (
        False,
        True,
        1,
        1.5,
        "1.5",
    )
    with tf.Graph().as_default():
        declared = tf.get_variable("v", [])
        assert declared
        with pytest.raises(tf.errors.OpError):
            float(declared)


def test_derivatives_by_variables_that_are_assigned_inside():
    variable, watched = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = variable * variable
        variable.assign(10.0)
        z = y * variable
    close([z, tape.gradient(z, variable)], [40, 44])
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = watched * watched
        watched.assign(5.0)
        z = y * watched
    close([z, tape.gradient(z, watched)], [45, 39])
    with tf.GradientTape() as outer:
        outer.watch(watched)
        with tf.GradientTape() as inner:
            inner.watch(watched)
            y = watched**3
        z = inner.gradient(y, watched) + watched
    close(outer.gradient(z, watched), 31)


def test_derivatives_pass_through_functions_of_python():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, z = tf.py_function(lambda a: [a * a, a + 1], [x], [tf.float32, tf.float32])
        total = y + 2 * z
    close([y, z, tape.gradient(total, x)], [9, 4, 8])


def test_writing_to_the_array_of_a_tensor_changes_nothing():
    ones = numpy.ones(100, numpy.float32)
    constant, variable = tf.constant(ones), tf.Variable(ones)
    for value in (constant, variable, variable.read_value(), tf.identity(variable)):
        value.numpy()[:] = 5
    tf.py_func(lambda x: x.fill(7) or x, [variable], tf.float32)
    close([constant, variable, variable + 0], [ones] * 3)
