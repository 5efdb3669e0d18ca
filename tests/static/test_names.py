"""Names, scopes, collections and what tensors show."""

import pytest

import twofold.static as tf
from twofold.errors import ArgumentError
from twofold.static.python.framework import ops


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_names_are_those_of_tensorflow(graph):
    a, b = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.float32, [2, 2], name="b")
    made = [a, b, tf.placeholder(tf.float32), tf.matmul(a, b), tf.matmul(a, b), a + b, a - b, a * b, a / b]
    made += [
        tf.reduce_mean(a),
        tf.nn.relu(a),
        tf.argmax(a, 1),
        tf.cast(a, tf.int32),
        tf.constant(1.0),
        tf.concat([a, b], 0),
    ]
    assert [tensor.name for tensor in made] == [
        "Placeholder:0",
        "b:0",
        "Placeholder_1:0",
        "MatMul:0",
        "MatMul_1:0",
        "add:0",
        "sub:0",
        "mul:0",
        "truediv:0",
        "Mean:0",
        "Relu:0",
        "ArgMax:0",
        "Cast:0",
        "Const:0",
        "concat:0",
    ]
    assert (
        a.op.type == "Placeholder"
        and a.graph is graph
        and made[3].op.inputs == (a.op.outputs[0], b.op.outputs[0])
    )
    assert graph.get_tensor_by_name("MatMul_1:0") is made[4].op.outputs[0]
    assert tf.split(tf.zeros([4, 2]), 2)[1].name == "split:1"


def test_scopes_are_unique_and_can_be_entered_again():
    with tf.name_scope("layer") as scope:
        assert scope == "layer/" and tf.constant(1.0).name == "layer/Const:0"
        with tf.name_scope("inner"):
            assert tf.constant(1.0, name="x").name == "layer/inner/x:0"
    with tf.name_scope("layer"):
        assert tf.constant(1.0).name == "layer_1/Const:0"
    with tf.name_scope(scope):
        assert tf.constant(1.0).name == "layer/Const_1:0"


def test_training_operations_and_variables_have_tensorflows_names():
    w = tf.Variable(1.0, name="w")
    assert (w.name, w.initializer.name, tf.Variable(2.0).name, tf.Variable(2.0).name) == (
        "w:0",
        "w/Assign",
        "Variable:0",
        "Variable_1:0",
    )
    assert tf.train.AdamOptimizer().minimize(w * w).name == "Adam"
    assert tf.train.GradientDescentOptimizer(0.1).minimize(w * w).name == "GradientDescent"
    assert tf.global_variables_initializer().name == "init"


def test_variable_scopes_share_by_name():
    with tf.variable_scope("a"):
        with tf.variable_scope("b"):
            v = tf.get_variable("v", [2])
        assert v.name == "a/b/v:0"
    with tf.variable_scope("a/b", reuse=True):
        assert tf.get_variable("v") is v
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        new = tf.get_variable("new", [1])
        assert tf.get_variable("new", [1]) is new
    x = tf.placeholder(tf.float32, [None, 3])
    tf.layers.dense(x, 2)
    tf.layers.dense(x, 2)
    assert [v.name for v in tf.trainable_variables()][-4:] == [
        "dense/kernel:0",
        "dense/bias:0",
        "dense_1/kernel:0",
        "dense_1/bias:0",
    ]
    with pytest.raises(ValueError, match="already exists"), tf.variable_scope("a/b"):
        tf.get_variable("v", [2])
    with pytest.raises(ValueError, match="does not exist"), tf.variable_scope("a", reuse=True):
        tf.get_variable("missing", [2])
    with pytest.raises(ValueError, match="another shape"), tf.variable_scope("a/b", reuse=True):
        tf.get_variable("v", [3])


def test_collections(graph):
    v = tf.Variable(1.0, trainable=False, name="counter")
    w = tf.Variable(1.0, name="weight")
    assert tf.global_variables() == [v, w] and tf.trainable_variables() == [w]
    assert tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="wei") == [w]
    tf.add_to_collection("mine", 3)
    assert tf.get_collection("mine") == [3] and "mine" in graph.get_all_collection_keys()


def test_shapes_show_what_is_known():
    x = tf.placeholder(tf.float32, [None, 4])
    shapes = {
        "reshape": tf.reshape(x, [-1, 2]),
        "transpose": tf.transpose(x),
        "concat": tf.concat([x, x], 1),
        "mean": tf.reduce_mean(x, 0),
        "product": tf.matmul(x, tf.zeros([4, 3])),
        "row": x[0],
        "column": x[:, 1],
        "part": x[1:3],
        "zeros": tf.zeros([tf.shape(x)[0], 3]),
        "expand": tf.expand_dims(x, 1),
        "one_hot": tf.one_hot(tf.argmax(x, 1), 5),
        "keep": tf.reduce_sum(x, 1, keepdims=True),
    }
    assert {name: tensor.shape.as_list() for name, tensor in shapes.items()} == {
        "reshape": [None, 2],
        "transpose": [4, None],
        "concat": [None, 8],
        "mean": [4],
        "product": [None, 3],
        "row": [4],
        "column": [None],
        "part": [None, 4],
        "zeros": [None, 3],
        "expand": [None, 1, 4],
        "one_hot": [None, 5],
        "keep": [None, 1],
    }
    assert int(x.get_shape()[1]) == 4 and x.shape[0].value is None and str(x.shape) == "(?, 4)"
    assert x.dtype == tf.float32 and x.dtype.as_numpy_dtype(1) == 1.0


def test_a_scope_entered_again_names_its_layers_alike():
    x = tf.ones([2, 3])
    for reuse in (None, True):
        with tf.variable_scope("net", reuse=reuse):
            tf.layers.dense(x, 2)
            tf.layers.dense(x, 2)
    assert [v.name for v in tf.global_variables()] == [
        f"net/dense{k}/{kind}:0" for k in ("", "_1") for kind in ("kernel", "bias")
    ]


def test_older_positions_of_names():
    assert ops.reset_default_graph is tf.reset_default_graph
    x = tf.contrib.layers.flatten(tf.ones([2, 3, 4]))
    y = tf.contrib.layers.fully_connected(x, 2, weights_regularizer=tf.contrib.layers.l2_regularizer(0.5))
    assert y.op.type == "Relu" and tf.trainable_variables()[0].name == "fully_connected/weights:0"
    penalty = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kernel, found = session.run([tf.trainable_variables()[0], penalty])
    assert found == pytest.approx((kernel**2).sum() * 0.25, rel=1e-6)


def test_tensors_print_as_in_tensorflow():
    x = tf.placeholder(tf.float32, [None], name="x")
    assert str(x) == 'Tensor("x:0", shape=(?,), dtype=float32)'
    assert f"{tf.zeros([2, 3])}" == 'Tensor("zeros:0", shape=(2, 3), dtype=float32)'
    assert str(tf.placeholder(tf.int64)) == 'Tensor("Placeholder:0", dtype=int64)'


def test_updates_of_a_variable_have_the_given_name():
    v = tf.Variable([1.0, 2.0])
    names = []
    for method in (v.assign, v.assign_add, v.assign_sub):
        names.append(method([1.0, 1.0], name="update").name)
        names.append(method([1.0, 1.0], name="update", read_value=False).name)
    assert [name.split(":")[0] for name in names] == ["update", *[f"update_{k}" for k in range(1, 6)]]


def test_an_image_that_has_the_dtype_has_the_given_name():
    image = tf.zeros([2, 2, 3])
    assert tf.image.convert_image_dtype(image, tf.float32, name="same").name == "same:0"
    assert tf.image.convert_image_dtype(image, tf.float32).name == "Identity:0"
    assert tf.image.convert_image_dtype(image, tf.uint8, name="other").name.startswith("other")


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.shape(x, "mine"),
        lambda x: tf.transpose(x, [1, 0], "mine"),
        lambda x: tf.expand_dims(x, 0, "mine"),
        lambda x: tf.cast(x, tf.int32, "mine"),
        lambda x: tf.argmax(x, 1, "mine"),
        lambda x: tf.reduce_sum(x, 1, True, "mine"),
        lambda x: tf.nn.softmax(x, 1, "mine"),
        lambda x: tf.nn.relu(x, "mine"),
        lambda x: tf.norm(x, "euclidean", 1, None, "mine"),
    ],
)  # fmt: skip
def test_a_name_stands_where_tensorflow_has_it(make):
    assert make(tf.zeros([2, 3])).name == "mine:0"


def test_former_names_of_parameters():
    x = tf.constant([[1.0, 3.0], [2.0, 5.0]])
    with tf.Session() as session:
        assert session.run(tf.reduce_max(x, reduction_indices=1, keep_dims=True)).tolist() == [[3.0], [5.0]]
        assert session.run(tf.argmax(x, dimension=0)).tolist() == [1, 1]
        assert session.run(tf.expand_dims(x, dim=0)).shape == (1, 2, 2)
        assert session.run(tf.nn.l2_normalize([[3.0], [4.0]], dim=0)).ravel().tolist() == pytest.approx(
            [0.6, 0.8]
        )
        assert session.run(tf.squeeze([[[1]], [[2]]], squeeze_dims=2)).shape == (2, 1)
    with pytest.raises(TypeError, match="dims"):
        tf.reduce_max(x, dims=1)
    with pytest.raises(ArgumentError, match="axis and squeeze_dims were both given"):
        tf.squeeze([[[1]], [[2]]], axis=1, squeeze_dims=2)
