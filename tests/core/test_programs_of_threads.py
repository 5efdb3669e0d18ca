"""Threads record and run at once, in sizes that change, while the compiler works: bits are those of one thread."""

from tests.core.in_child import run

PROGRAM = """
import random, sys, threading
import numpy
import twofold as torch
import twofold.static as tf
from twofold import _core

F = torch.nn.functional
torch.set_num_threads(2)
sys.setswitchinterval(1e-5)

def numbers(seed, *shape):
    return numpy.random.default_rng(seed).normal(size=shape).astype(numpy.float32)

weights = [torch.tensor(numbers(k, 96, 96) / 10) for k in range(2)]

def training(n):
    own = [w.clone().requires_grad_(True) for w in weights]
    optimizer = torch.optim.SGD(own, lr=0.1)
    losses = []
    for step in range(3):
        h = torch.tensor(numbers(n + step, n, 96))
        for w in own:
            h = torch.tanh(h @ w)
        losses.append(F.cross_entropy(h, torch.arange(n) % 96))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    return [loss.item() for loss in losses] + [w.sum().item() for w in own]

def shared(n):
    y = (torch.tensor(numbers(n, n, 96)) @ weights[0]).relu() @ weights[1]
    return [y.sum().item(), (y * 2 + 1).softmax(1).max().item()]

def views(n):
    x = torch.zeros(n, 96)
    for k in range(4):
        x[k % n].add_(weights[0][k])
        x[:, :48].mul_(1.5)
    return [x.sum().item(), x.transpose(0, 1)[1:][3].sum().item()]

graph = tf.Graph()
with graph.as_default():
    given = tf.placeholder(tf.float32, [None, 96])
    loss = tf.reduce_sum(tf.square(tf.nn.relu(tf.matmul(given, tf.constant(numbers(0, 96, 96))))))
    gradient = tf.gradients(loss, [given])[0]
session = tf.Session(graph=graph)

def declared(n):
    found = session.run([loss, gradient], {given: numbers(n, n, 96)})
    return [float(found[0]), float(found[1].sum())]

programs = [training, shared, views, declared]
found, errors = {}, []

def work(seed):
    choose = random.Random(seed)
    try:
        for _ in range(100):
            key = choose.choice(programs), choose.choice([1, 2, 5, 13, 97])
            made = key[0](key[1])
            if found.setdefault(key, made) != made:
                errors.append((key, made, found[key]))
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors[:3]
assert len(found) > 15
torch.set_num_threads(1)
_core.set_tier("unfused")
for (program, n), made in found.items():
    assert program(n) == made, (program, n)
print("done")
"""


def test_programs_of_several_threads_have_the_bits_of_one() -> None:
    assert "done" in run(PROGRAM)
