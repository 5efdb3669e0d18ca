"""What optimisers keep: TensorFlow's names; classes of a program's own, written with TensorFlow's methods."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_adam_keeps_the_variables_of_tensorflow(session):
    with tf.variable_scope("model"):
        kernel = tf.get_variable("kernel", initializer=numpy.float32([1, -2]))
        optimizer = tf.train.AdamOptimizer(0.1)
        first = optimizer.minimize(tf.reduce_sum(kernel**3))
    tf.train.AdamOptimizer(0.1, name="Other").minimize(tf.reduce_sum(kernel))
    assert [one.name for one in tf.global_variables()] == [
        "model/kernel:0",
        "model/beta1_power:0",
        "model/beta2_power:0",
        "model/model/kernel/Adam:0",
        "model/model/kernel/Adam_1:0",
        "beta1_power:0",
        "beta2_power:0",
        "model/kernel/Other:0",
        "model/kernel/Other_1:0",
    ]
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(first)
    # what TensorFlow 2.21 holds after the same steps
    expected = [
        [0.7041547894477844, -2.300492525100708],
        0.6560999155044556,
        0.9960060715675354,
        [0.654224157333374, 3.6148784160614014],
        [0.01858731545507908, 0.5294451713562012],
    ]
    for one, value in zip(tf.global_variables()[:5], expected, strict=True):
        numpy.testing.assert_allclose(
            session.run(one), value, rtol=2e-5
        )  # 1 - 0.999 of float32 has five digits there
    assert optimizer._get_beta_accumulators() == tuple(tf.global_variables()[1:3])
    assert {one.name for one in optimizer.variables()} == {one.name for one in tf.global_variables()[1:5]}
    assert optimizer.get_slot_names() == ["m", "v"]


class _Own(tf.train.Optimizer):
    """Moves by a running sum of gradients, ever less."""

    def __init__(self, rate):
        super().__init__(False, "Own")
        self._rate = rate

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda one: one.name)
        self._create_non_slot_variable(initial_value=1.0, name="factor", colocate_with=first)
        for one in var_list:
            self._zeros_slot(one, "total", self._name)
            self._get_or_make_slot(one, tf.ones(one.shape) * 2, "count", "Count")

    def _prepare(self):
        self._rate_now = tf.convert_to_tensor(self._call_if_callable(self._rate))

    def _factor(self):
        return self._get_non_slot_variable("factor", graph=tf.get_default_graph())

    def _apply_dense(self, grad, var):
        total = self.get_slot(var, "total")
        new = total.assign(total + grad)
        count = self.get_slot(var, "count")
        return tf.group(tf.assign_sub(var, self._rate_now * new * self._factor() / count), new)

    def _apply_sparse(self, grad, var):
        return tf.scatter_sub(var, grad.indices, grad.values * self._rate_now)

    def _finish(self, update_ops, name_scope):
        with tf.control_dependencies(update_ops):
            less = self._factor().assign(self._factor() * 0.5)
        return tf.group(*update_ops, less, name=name_scope)


@pytest.mark.parametrize("resource", [False, True])
def test_an_optimiser_of_the_program_is_asked_by_tensorflows_methods(session, resource):
    w = tf.get_variable("w", initializer=numpy.float32([1, 2]), use_resource=resource)
    table = tf.get_variable("t", initializer=numpy.float32([[1], [2], [3]]), use_resource=resource)
    loss = tf.reduce_sum(3.0 * w) + tf.reduce_sum(tf.gather(table, [2, 0, 2]))
    optimizer = _Own(lambda: 0.5)
    step = optimizer.minimize(loss, global_step=tf.train.create_global_step())
    assert step.name == "Own" and optimizer.get_slot_names() == ["count", "total"]
    names = {"factor:0", "w/Own:0", "t/Own:0", "w/Count:0", "t/Count:0"}
    assert {one.name for one in optimizer.variables()} == names
    session.run(tf.global_variables_initializer())
    session.run(step)
    session.run(step)
    # w: 1 - 0.5 * 3 * 1 / 2, then - 0.5 * 6 * 0.5 / 2; rows that are looked up twice move twice as far
    assert session.run(w).tolist() == [-0.5, 0.5]
    assert session.run(table).tolist() == [[0.0], [2.0], [1.0]]
    assert session.run(optimizer._factor()) == 0.25 and session.run(tf.train.get_global_step()) == 2


def test_an_optimiser_without_methods_says_what_is_missing():
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="_apply_dense"):
        tf.train.Optimizer(False, "Own").minimize(tf.Variable(1.0) * 2.0)


def test_parameters_may_be_functions(session):
    w = tf.Variable([1.0, 2.0])
    step = tf.train.MomentumOptimizer(lambda: 0.25, lambda: 0.5).minimize(tf.reduce_sum(w))
    session.run(tf.global_variables_initializer())
    session.run(step)
    session.run(step)
    assert session.run(w).tolist() == [0.375, 1.375]


def test_the_global_step_is_a_variable_of_the_present_scope(session):
    with tf.variable_scope("model"):
        assert tf.train.get_or_create_global_step().name == "model/global_step:0"  # as TensorFlow calls it


def test_parameters_have_tensorflows_names(session):
    optimizer = tf.train.AdamOptimizer(0.5, beta1=0.25)
    assert (optimizer._lr, optimizer._beta1, optimizer._use_locking) == (0.5, 0.25, False)
    assert session.run([optimizer._lr_t, optimizer._beta1_t]) == [0.5, 0.25]
    w = tf.Variable(1.0)
    descent = tf.train.GradientDescentOptimizer(0.5)
    descent._learning_rate = 0.25  # changed before the step is declared
    step = descent.minimize(w * 1.0)
    session.run(w.initializer)
    session.run(step)
    assert session.run(w) == 0.75
    with pytest.raises(AttributeError, match="_momentum"):
        _ = descent._momentum


def test_what_a_class_of_the_program_inherits(session):
    class Clipped(tf.train.AdamOptimizer):
        def _apply_dense(self, grad, var):
            return super()._apply_dense(tf.clip_by_value(grad, -1.0, 1.0), var)

        _resource_apply_dense = _apply_dense

    w, v = tf.Variable([1.0, -2.0]), tf.Variable([1.0, -2.0])
    rate = {"learning_rate": 0.1, "epsilon": 1.0}  # with which the size of a gradient matters
    clipped = Clipped(**rate).minimize(tf.reduce_sum(50.0 * w))
    plain = tf.train.AdamOptimizer(**rate).minimize(tf.reduce_sum(v))
    session.run(tf.global_variables_initializer())
    session.run([clipped, plain])
    assert session.run(w).tolist() == session.run(v).tolist()


_LIMITS = [
    ("Adagrad", {"initial_accumulator_value": 0.0}),
    ("Ftrl", {"learning_rate_power": 0.5}),
    ("Ftrl", {"initial_accumulator_value": -0.1}),
    ("Ftrl", {"l1_regularization_strength": -0.1}),
    ("Ftrl", {"l2_regularization_strength": -0.1}),
    ("Ftrl", {"l2_shrinkage_regularization_strength": -0.1}),
    ("ProximalAdagrad", {"initial_accumulator_value": 0.0}),
]


@pytest.mark.parametrize(("name", "numbers"), _LIMITS)
def test_numbers_that_make_no_rule_are_refused(name, numbers):
    ((parameter, number),) = numbers.items()
    with pytest.raises(ValueError, match=f"{parameter} must be .*: {number}, at .*test_optimizers.py"):
        getattr(tf.train, f"{name}Optimizer")(0.1, **numbers)
    assert tf.keras.optimizers.Adagrad(initial_accumulator_value=0.0)
