"""Programs of DyNet with one bug planted in a line each: parsers, taggers, decoders, losses and trainers."""

from __future__ import annotations

from typing import Any

import numpy

import twofold as torch
from twofold import dynet as dy


def model() -> Any:
    dy.renew_cg()
    return dy.ParameterCollection()


def dynet_stack_parser() -> Any:
    m = model()
    words, w = m.add_lookup_parameters((10, 4)), m.add_parameters((4, 8))
    stack: list[Any] = []
    for action, word in [("shift", 1), ("shift", 2), ("reduce", 0), ("reduce", 0)]:
        if action == "shift":
            stack.append(words[word])
        else:
            right, left = stack.pop(), stack.pop()  # bug
            stack.append(dy.tanh(w * dy.concatenate([left, right])))
    stack[0].value()


def dynet_composition_of_children() -> Any:
    m = model()
    w = m.add_parameters((4, 8))

    def compose(tree: Any) -> Any:
        if isinstance(tree, float):
            return dy.inputVector([tree] * 4)
        children = [compose(child) for child in tree]
        return dy.tanh(w * dy.concatenate(children))  # bug

    compose(((1.0, 2.0), (3.0, 4.0, 5.0))).value()


def dynet_tagger() -> Any:
    m = model()
    words, tags = m.add_lookup_parameters((10, 4)), m.add_parameters((3, 6))
    forward = dy.LSTMBuilder(1, 4, 3, m)
    backward = dy.LSTMBuilder(1, 4, 3, m)
    sentence = [words[k] for k in (1, 2, 3)]
    there = forward.initial_state().transduce(sentence)
    back = backward.initial_state().transduce(sentence[::-1])
    losses = [
        dy.pickneglogsoftmax(tags * dy.concatenate([a, b]), tag)  # bug
        for a, b, tag in zip(there, reversed(back), (0, 2, 3))
    ]
    dy.esum(losses).value()


def dynet_decoder_of_an_encoder() -> Any:
    m = model()
    encoder, decoder = dy.LSTMBuilder(1, 4, 6, m), dy.LSTMBuilder(1, 4, 5, m)
    state = encoder.initial_state()
    for _ in range(3):
        state = state.add_input(dy.inputVector([1.0] * 4))
    start = decoder.initial_state().set_h([state.output()])  # bug
    start.add_input(dy.inputVector([1.0] * 4)).output().value()


def dynet_attention_weights() -> Any:
    m = model()
    states = dy.concatenate_cols([dy.inputVector([float(k)] * 4) for k in range(3)])
    query = dy.inputVector([1.0] * 3)
    w = m.add_parameters((3, 3))
    scores = dy.transpose(states) * (w * query)  # bug
    (states * dy.softmax(scores)).value()


def dynet_margin_of_pairs() -> Any:
    m = model()
    w = m.add_parameters((1, 3))
    good, bad = dy.inputVector([1.0, 2.0, 3.0]), dy.inputVector([1.0, 2.0])
    margin = dy.rectify(1.0 - w * good + w * bad)  # bug
    margin.value()


def dynet_sum_of_other_dimensions() -> Any:
    parts = [dy.inputVector([1.0] * size) for size in (2, 2, 3)]
    dy.average(parts).value()  # bug


def dynet_loss_of_a_helper() -> Any:
    m = model()
    w = m.add_parameters((3, 2))

    def score(features: Any) -> Any:
        return w * dy.vecInput(3) if features is None else w * features  # bug

    sum(score(one) for one in [dy.inputVector([1.0, 2.0]), None]).value()


def dynet_nan_of_a_probability() -> Any:
    model()
    scores = dy.inputVector([1.0, 2.0])
    with torch.detect_anomaly():
        chance = dy.pick(scores, 0) - 1.0
        entropy = -chance * dy.log(chance)  # bug
        entropy.value()


def dynet_nan_backward_of_a_distance() -> Any:
    m = model()
    w = m.add_parameters(2, init=numpy.zeros(2))
    with torch.detect_anomaly():
        distance = dy.sqrt(dy.squared_distance(w, dy.zeros(2)))  # bug
        distance.backward()
        w.grad_as_array()


def dynet_batched_labels() -> Any:
    m = model()
    w = m.add_parameters((3, 2))
    x = dy.inputTensor(numpy.ones((2, 4)), batched=True)
    dy.pickneglogsoftmax_batch(w * x, [0, 1, 2]).value()  # bug


def dynet_batched_labels_late() -> Any:
    m = model()
    w = m.add_parameters((3, 2))
    x = dy.inputTensor(numpy.ones((2, 3)), batched=True)
    dy.sum_batches(dy.pickneglogsoftmax_batch(w * x, [0, 1, 3])).value()  # bug


def dynet_filter_of_an_image() -> Any:
    m = model()
    image = dy.inputTensor(numpy.ones((5, 5, 1)))
    kernel = m.add_parameters((3, 3, 2, 4))
    dy.conv2d(image, kernel, [1, 1]).value()  # bug


def dynet_max_over_words() -> Any:
    m = model()
    words = m.add_lookup_parameters((10, 4))
    columns = dy.concatenate_cols([words[k] for k in (1, 2)])
    dy.max_dim(columns, 2).value()  # bug


def dynet_trainer_of_an_epoch() -> Any:
    m = model()
    words, w = m.add_lookup_parameters((6, 3)), m.add_parameters((2, 3))
    trainer = dy.AdamTrainer(m)
    for sentence, label in [([1, 2], 0), ([3, 4], 1), ([5, 6], 0)]:
        dy.renew_cg()
        average = dy.average([words[k] for k in sentence])  # bug
        loss = dy.pickneglogsoftmax(w * average, label)
        loss.value()
        loss.backward()
        trainer.update()


def dynet_range_of_a_vector() -> Any:
    model()
    gates = dy.inputVector([1.0] * 8)
    parts = [dy.pickrange(gates, 4 * k, 4 * k + 4) for k in range(3)]  # bug
    dy.esum(parts).value()


def dynet_lambda_of_layers() -> Any:
    m = model()
    layers = [m.add_parameters((n, k)) for k, n in ((3, 4), (5, 2))]
    x = dy.inputVector([1.0, 2.0, 3.0])
    for apply in [lambda v, w=w: dy.tanh(w * v) for w in layers]:  # bug
        x = apply(x)
    x.value()


WORDS: list[Any] = [found for name, found in dict(globals()).items() if name.startswith("dynet_")]
