"""Programs in which one allocation fails: a MemoryError, and afterwards each gives what it gives without failure.

    python tests/core/failing_allocations.py core LIBRARY | python MOST

``core`` lets each C++ allocation fail in turn, by LIBRARY, which is preloaded; ``python`` every one of the first MOST
allocations of CPython's, by its own test module.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy

import twofold as torch
from twofold import dynet as dy
from twofold import static as tf
from twofold.nn import functional as F

Arrays = list[Any]


def arrays(*tensors: Any) -> Arrays:
    return [tensor.detach().numpy().copy() for tensor in tensors]


def convolution(k: int) -> Arrays:
    torch.manual_seed(k)
    x = torch.randn(2, 3, 6 + k % 5, 7, requires_grad=True)
    w = torch.randn(4, 3, 3, 3, requires_grad=True)
    y = F.max_pool2d(torch.relu(F.conv2d(x, w, padding=1)), 2)
    y.mean().backward()
    return arrays(y, x.grad, w.grad)


def written_in_place(k: int) -> Arrays:
    x = torch.arange(12.0 + k)
    y = x[2:10]
    y.mul_(2)
    y[1::2] += 1
    x[0] = 7
    z = y.clone()
    z[y > 5] = 0
    return arrays(x, y, z)


def second_derivative(k: int) -> Arrays:
    x = torch.linspace(0.1, 1, 5 + k, requires_grad=True)
    (first,) = torch.autograd.grad((x.exp() * x.sin()).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    return arrays(first, second)


def hooks(k: int) -> Arrays:
    x = torch.ones(3 + k, 2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda gradient: gradient * 2)
    a = y.tanh()
    (a * y.sin() + a).sum().backward()
    return arrays(x.grad, y.grad)


def compiled(k: int) -> Arrays:
    function = torch.compile(lambda x, y: (x @ y).softmax(-1).cumsum(0))
    x = torch.ones(3 + k % 6, 4) * 0.3
    return arrays(function(x, torch.ones(4, 5)), function(x * 2, torch.ones(4, 5)))


def transforms(k: int) -> Arrays:
    x = torch.arange(20.0).reshape(5, 4) + k % 3
    each = torch.func.vmap(lambda row: (row * row).sum() + row.max())(x)
    return arrays(each, torch.func.grad(lambda x: (x**3).sum())(x))


def unrolled(k: int) -> Arrays:
    torch.manual_seed(k)
    cell = torch.nn.LSTMCell(4, 5)
    h = c = torch.zeros(1, 5)
    for t in range(3 + k % 5):
        h, c = cell(torch.full((1, 4), 0.1 * t), (h, c))
    (h * c).sum().backward()
    return arrays(h, cell.weight_hh.grad)


def session(k: int) -> Arrays:
    with tf.Graph().as_default(), tf.Session() as running:
        x = tf.placeholder(tf.float32, [None, 4])
        w = tf.Variable(numpy.ones((4, 3), numpy.float32))
        loss = tf.reduce_sum(tf.nn.relu(tf.matmul(x, w)) ** 2)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        start = [tf.constant(0), tf.constant(0.0)]
        loop = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + tf.reduce_sum(x)), start)
        running.run(tf.global_variables_initializer())
        given = {x: numpy.ones((2 + k % 5, 4), numpy.float32)}
        return [running.run([loss, train], given)[0], running.run(w), running.run(loop[1], given)]


def expressions(k: int) -> Arrays:
    dy.renew_cg()
    torch.manual_seed(0)
    model = dy.ParameterCollection()
    weight = model.add_parameters((4, 4), init=0.3)
    table = model.add_lookup_parameters((10, 4), init=dy.ConstInitializer(0.2))
    losses = [
        dy.pickneglogsoftmax(dy.tanh(weight * table[(i + k) % 10]), (i + k) % 4) for i in range(3 + k % 5)
    ]
    loss = dy.esum(losses)
    value = loss.value()
    loss.backward()
    dy.SimpleSGDTrainer(model, 0.1).update()
    return [value, weight.as_array()]


def looked_up(k: int) -> Arrays:
    x = torch.arange(30.0).reshape(5, 6).requires_grad_()
    index = torch.tensor([0, 2, 4, k % 4])
    taken = x[index].gather(1, torch.tensor([[1], [2], [0], [5]]))
    added = x.index_select(1, index)
    added = added.scatter_add(0, torch.zeros(1, 4, dtype=torch.int64), torch.ones(1, 4))
    largest, where = x.topk(2 + k % 2)
    (taken.sum() + added.sum() + largest.sum()).backward()
    return arrays(taken, added, largest, where, x.grad)


def trained(k: int) -> Arrays:
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.3), torch.nn.Linear(6, 2)
    net = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(net.parameters(), 0.1)
    labels = torch.tensor([0, 1, 1, 0, 0, 1, 1])[: 3 + k % 5]
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.ones(3 + k % 5, 4)), labels).backward()
        optimizer.step()
    return arrays(*net.parameters())


PROGRAMS: list[Callable[[int], Arrays]] = [
    convolution, written_in_place, second_derivative, hooks, compiled, transforms, unrolled, session, expressions,
    looked_up, trained,
]  # fmt: skip


def same(some: Arrays, others: Arrays) -> bool:
    return all(numpy.array_equal(a, b, equal_nan=True) for a, b in zip(some, others, strict=True))


def check(
    program: Callable[[int], Arrays], start: Callable[[int], None], stop: Callable[[], int], most: int
) -> None:
    """Let allocation after allocation fail, until ``most`` of them did or a run reached none that fails."""
    program(0)
    run = failed = fine = 0
    while run < most and fine < 3:
        found = None
        start(run)
        try:
            found = program(run)
        except MemoryError:
            failed += 1
        except SystemError as error:  # CPython 3.11 says so of a frame of Python that it has no memory for
            assert "without exception set" in str(error) or "without setting an exception" in str(error)
        finally:
            left = stop()
        fine += left >= 0
        again = program(run)
        assert found is None or same(found, again), (program.__name__, run, "with a failed allocation")
        with torch.no_batching():
            assert same(program(run), again), (program.__name__, run, "after it")
        run += 1 + run // 20  # later ones seldom differ from their neighbours
    assert failed
    print(program.__name__, run, failed)


def main(mode: str, given: str) -> None:
    if mode == "core":
        library = ctypes.CDLL(given)
        library.fail_after.argtypes, library.allocations_left.restype = [ctypes.c_long], ctypes.c_long

        def stop() -> int:
            left: int = library.allocations_left()
            library.fail_after(-1)
            return left

        for program in PROGRAMS:
            check(program, library.fail_after, stop, 10_000)
        return
    failing: Any = importlib.import_module("_testcapi")

    def stop_failing() -> int:
        failing.remove_mem_hooks()
        return -1

    for program in PROGRAMS:
        check(program, lambda run: failing.set_nomemory(run, run + 1), stop_failing, int(given))


if __name__ == "__main__":
    main(*sys.argv[1:])
