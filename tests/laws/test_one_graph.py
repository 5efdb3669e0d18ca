"""Law 1: the same program, declared by running it or before running it, is one graph with one key."""

import numpy

import twofold as torch
import twofold.static as tf
from twofold import _core


def arrays():
    random = numpy.random.default_rng(0)
    shapes = {"x": (8, 5), "w": (3, 5), "b": (3,)}
    values = {name: random.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}
    return values | {"labels": random.integers(0, 3, 8)}


def program(x, w, b, labels):
    return torch.nn.functional.cross_entropy(torch.tanh(x @ w.t() + b) * 2.0, labels)


def by_run(values):
    tensors = {name: torch.tensor(value) for name, value in values.items()}
    tensors["w"].requires_grad_()
    tensors["b"].requires_grad_()
    loss = program(**tensors)
    loss.backward()
    _core.flush()
    key = _core.portable_key(_core.last_executable())
    return key, [loss.detach().numpy(), tensors["w"].grad.numpy(), tensors["b"].grad.numpy()]


def then_run(values, unknown):
    with tf.Graph().as_default(), tf.Session() as session:
        holders = {
            name: tf.placeholder(value.dtype.name, [None if unknown and k == 0 and name in "x labels" else n
                                                    for k, n in enumerate(value.shape)])
            for name, value in values.items()
        }  # fmt: skip
        loss = program(**holders)
        fetches = [loss, *tf.gradients(loss, [holders["w"], holders["b"]])]
        return session.run(fetches, {holders[name]: value for name, value in values.items()})


def test_both_ways_make_one_executable_and_return_the_same_bits():
    values = arrays()
    key, first = by_run(values)
    executables = _core.statistics()["executables"]
    second = then_run(values, unknown=False)
    assert _core.statistics()["executables"] == executables
    assert key == by_run(values)[0]
    for mine, theirs in zip(first, second, strict=True):
        assert numpy.asarray(mine).tobytes() == numpy.asarray(theirs).tobytes()


def test_unknown_sizes_become_the_same_graph_once_they_are_known():
    values = arrays()
    _, first = by_run(values)
    executables = _core.statistics()["executables"]
    second = then_run(values, unknown=True)
    assert _core.statistics()["executables"] == executables
    for mine, theirs in zip(first, second, strict=True):
        assert numpy.asarray(mine).tobytes() == numpy.asarray(theirs).tobytes()


def test_another_program_has_another_key():
    values = arrays()
    key, _ = by_run(values)
    values["x"] = values["x"][:4]
    values["labels"] = values["labels"][:4]
    assert by_run(values)[0] != key


def recurrent(h, xs, w):
    last, ys = torch.scan(lambda h, x: ((new := torch.tanh(w @ h + x)), new * 2.0), h, xs)
    count, y = torch.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, torch.sin(y) + last), (0.0, last))
    return torch.cond(y.sum() > count, lambda: y * 2.0, lambda: ys.sum(0))


def test_loops_and_choices_return_the_same_bits_both_ways():
    random = numpy.random.default_rng(3)
    values = [random.standard_normal(shape).astype(numpy.float32) for shape in ((4,), (6, 4), (4, 4))]
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    result = recurrent(*tensors)
    found = [result, *torch.autograd.grad(result.sum(), tensors)]
    with tf.Graph().as_default(), tf.Session() as session:
        holders = [tf.placeholder(tf.float32, value.shape) for value in values]
        declared = recurrent(*holders)
        fetches = [declared, *tf.gradients(tf.reduce_sum(declared), holders)]
        other = session.run(fetches, dict(zip(holders, values)))
    for mine, theirs in zip(found, other, strict=True):
        assert mine.detach().numpy().tobytes() == theirs.tobytes()
