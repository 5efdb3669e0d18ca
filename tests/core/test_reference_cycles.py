"""What refers to itself through objects of the core is garbage once a program has let go of it."""

import gc
import linecache
import weakref

import pytest

import twofold as torch
import twofold.static as tf
from twofold import nn
from twofold.static.graph.context import RECENT


class Marker:
    """An object whose end is watched."""


def is_freed(build):
    marker = Marker()
    watched = weakref.ref(marker)
    build(marker)
    del marker
    RECENT.clear()
    gc.collect()
    return watched() is None


def attribute(marker):
    x = torch.ones(2)
    x.itself, x.marker = x, marker


def attribute_of_a_parameter(marker):
    layer = nn.Linear(2, 2)
    layer.weight.owner, layer.marker = layer, marker


def dictionary(marker):
    x = torch.ones(2)
    vars(x).update(itself=x, marker=marker)


def hook(marker):
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda gradient: gradient * len([x, marker]))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [4, 4]


def step_in_a_backward_pass(marker):
    """The optimizer of each parameter steps where its gradient is complete, as a tutorial of PyTorch does it."""
    layer = nn.Linear(2, 2)
    optimizers = {one: torch.optim.SGD([one], 0.1) for one in layer.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for one in layer.parameters():
        one.register_post_accumulate_grad_hook(step)
    layer(torch.ones(1, 2)).sum().backward()
    optimizers["marker"] = marker


def retained_gradient(marker):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    y.parts = (y, y.grad, marker)


def compiled_function(marker):
    made = torch.compile(lambda x: x + 1)
    assert made(torch.ones(2)).tolist() == [2, 2]
    made.marker = marker


def session(marker):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None])
        y = x * tf.get_variable("v", initializer=3.0)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run([y, tf.gradients(y, x)], {x: [2.0]})[0].tolist() == [6]
    graph.marker = marker


def printing_loop(marker):
    with tf.Graph().as_default() as graph:
        loop = tf.while_loop(lambda i: i < 3, lambda i: tf.Print(i, [i], first_n=0) + 1, [0])
        with tf.Session() as session:
            assert session.run(loop) == 3
    graph.marker = marker


def keras_model(marker):
    with tf.Graph().as_default() as graph:
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse")
        model.fit([[1.0, 2.0]], [[1.0]], verbose=0)
    graph.marker = marker


@pytest.mark.parametrize(
    "build",
    [
        attribute,
        attribute_of_a_parameter,
        dictionary,
        hook,
        step_in_a_backward_pass,
        retained_gradient,
        compiled_function,
        session,
        printing_loop,
        keras_model,
    ],
)
def test_cycles_are_freed(build):
    assert is_freed(build)


def test_what_is_alive_is_kept():
    x = torch.ones(2, requires_grad=True)
    x.itself, x.marker = x, Marker()
    x.register_hook(lambda gradient: gradient * len([x]))
    gc.collect()
    (x * 2).sum().backward()
    gc.collect()
    assert x.grad.tolist() == [2, 2] and x.itself is x and isinstance(x.marker, Marker)


def test_the_text_of_a_traced_function_goes_with_it():
    def lines():
        return [name for name in linecache.cache if name.startswith("<eval_with_key>")]

    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    assert traced(torch.ones(2)).tolist() == [2, 2] and lines()
    del traced
    torch.ones(2).sum().item()
    gc.collect()
    assert not lines()


def test_few_graphs_of_large_constants_are_kept():
    graphs = []
    with torch.config.scoped(cache_bytes=1 << 20):
        for k in range(8):
            with tf.Graph().as_default() as graph:
                graphs.append(weakref.ref(graph))
                tf.constant(float(k), shape=[1 << 15])
            del graph
        gc.collect()
        assert sum(one() is not None for one in graphs) <= 3
        tensor = tf.constant(1.0) + 2.0
        with tf.Session(graph=tensor.graph) as session:
            assert session.run(tensor) == 3
