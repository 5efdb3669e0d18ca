"""Law 1 for choices and loops: values, gradients and gradients of gradients have the same bits both ways."""

import numpy
import pytest

import twofold as torch
import twofold.static as tf


def counted(x, w):
    return torch.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, torch.sin(y * w) + x), (0, x))[1]


def until(x, w):
    return torch.while_loop(lambda y: y.sum() < 20, lambda y: (y * 1.5 + w * w,), (x * x,))[0]


def never(x, w):
    return torch.while_loop(lambda y: y.sum() < -1000, lambda y: (y * w,), (x * w,))[0] * x


def scanned(x, w):
    last, ys = torch.scan(lambda h, row: (torch.tanh(h * row + w), h * w), x, torch.stack([x, w, x * w]))
    return last * ys.sum(0)


def backwards(x, w):
    return torch.scan(lambda h, row: (h * row + w, h), w, torch.stack([x, w]), reverse=True)[1].sum(0)


def nothing(x, w):
    return torch.scan(lambda h, row: (h * row, h * x), w, torch.stack([x, w])[:0])[0] * x * x


def chosen(x, w):
    return torch.cond(x.sum() > 0, lambda x: torch.exp(x * w), lambda x: x * w, (x,))


def switched(x, w):
    return torch.switch((x.sum() > 0).long(), [lambda: x, lambda: x * w * w])


def mapped(x, w):
    return torch.map(lambda row: torch.sin(row) * w, torch.stack([x, x * w])).sum(0)


def nested(x, w):
    def inner(y):
        return torch.scan(lambda c, v: (c * torch.cos(v), c), y, torch.stack([y, w * y]))[0]

    def body(k, y):
        return k + 1, torch.cond(y.sum() > 0, lambda: inner(y) + w, lambda: y * w)

    return torch.while_loop(lambda k, y: k < 3, body, (0, x))[1]


PROGRAMS = (counted, until, never, scanned, backwards, nothing, chosen, switched, mapped, nested)
X, W = numpy.array([0.5, -0.25, 1.25], "f"), numpy.array([1.5, 0.75, -0.5], "f")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_two_gradients(program):
    x, w = (torch.tensor(value, requires_grad=True) for value in (X, W))
    y = program(x, w)
    first = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    second = torch.autograd.grad((first[0] * first[1]).sum(), (x, w))
    with tf.Graph().as_default(), tf.Session() as session:
        holders = [tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])]
        declared = program(*holders)
        once = tf.gradients(tf.reduce_sum(declared), holders)
        twice = tf.gradients(tf.reduce_sum(once[0] * once[1]), holders)
        found = session.run([declared, *once, *twice], dict(zip(holders, (X, W))))
    for mine, theirs in zip((y, *first, *second), found, strict=True):
        assert mine.detach().numpy().tobytes() == theirs.tobytes()
