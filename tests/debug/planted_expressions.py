"""Expressions of dynet with one bug planted in a line each: builders, look-ups, batches, trainers."""

from __future__ import annotations

from typing import Any

import numpy

from twofold import dynet

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def vector(size: int) -> Any:
    return dynet.inputVector([1.0] * size)


def dynet_gru() -> Any:
    m = dynet.ParameterCollection()
    s = dynet.GRUBuilder(1, 3, 2, m).initial_state()
    return s.add_input(vector(4)).output().value()  # bug


def dynet_transduce() -> Any:
    m = dynet.ParameterCollection()
    s = dynet.VanillaLSTMBuilder(2, 3, 2, m).initial_state()
    return s.transduce([vector(3), vector(3), vector(2)])[-1].value()  # bug


def dynet_birnn() -> Any:
    m = dynet.ParameterCollection()
    b = dynet.BiRNNBuilder(1, 3, 4, m, dynet.LSTMBuilder)
    return b.transduce([vector(3), vector(5)])[0].value()  # bug


def dynet_birnn_odd() -> Any:
    m = dynet.ParameterCollection()
    dynet.BiRNNBuilder(1, 3, 5, m, dynet.LSTMBuilder)  # bug


def dynet_lookup_batch() -> Any:
    t = dynet.ParameterCollection().add_lookup_parameters((4, 2))
    e = dynet.lookup_batch(t, [0, 9])  # bug
    return dynet.sum_elems(e).npvalue()


def dynet_pick_loss_batch() -> Any:
    x = dynet.inputTensor([[1.0, 2.0], [3.0, 4.0]], batched=True)
    y = dynet.pickneglogsoftmax_batch(x, [0, 5])  # bug
    return dynet.sum_batches(y).value()


def dynet_batch_size() -> Any:
    a = dynet.inputTensor([[1.0, 2.0], [3.0, 4.0]], batched=True)
    b = dynet.inputTensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], batched=True)
    return (a + b).npvalue()  # bug


def dynet_conv() -> Any:
    x, f = dynet.inputTensor(numpy.ones((4, 4, 2))), dynet.inputTensor(numpy.ones((2, 2, 3, 5)))
    return dynet.conv2d(x, f, (1, 1)).npvalue()  # bug


def dynet_pool() -> Any:
    x = dynet.inputTensor(numpy.ones((4, 4, 2)))
    return dynet.maxpooling2d(x, (0, 2), (1, 1)).npvalue()  # bug


def dynet_cmult() -> Any:
    return dynet.cmult(vector(3), vector(2)).npvalue()  # bug


def dynet_cdiv() -> Any:
    return dynet.cdiv(vector(3), vector(2)).npvalue()  # bug


def dynet_colwise() -> Any:
    return dynet.colwise_add(dynet.inputTensor(X), vector(3)).npvalue()  # bug


def dynet_concatenate_none() -> Any:
    return dynet.concatenate([]).value()  # bug


def dynet_concatenate_shapes() -> Any:
    return dynet.concatenate([dynet.inputTensor(X), vector(3)]).value()  # bug


def dynet_average() -> Any:
    return dynet.average([vector(2), vector(4)]).value()  # bug


def dynet_dropout() -> Any:
    return dynet.dropout(vector(2), "half").value()  # bug


def dynet_reshape_batch() -> Any:
    return dynet.reshape(vector(6), (4, 2)).npvalue()  # bug


def dynet_scalar_only() -> Any:
    m = dynet.ParameterCollection()
    p = m.add_parameters((2,))
    (p * 2.0).backward()  # bug


def dynet_scalar_value() -> Any:
    return dynet.tanh(vector(3)).scalar_value()  # bug


def dynet_hinge() -> Any:
    return dynet.hinge(vector(3), 8).value()  # bug


def dynet_pick_dim() -> Any:
    return dynet.pick(dynet.inputTensor(X), 1, 2).value()  # bug


def dynet_pickrange_reversed() -> Any:
    return dynet.pickrange(vector(4), 3, 1).value()  # bug


def dynet_nested_helper() -> Any:
    m = dynet.ParameterCollection()
    w = m.add_parameters((3, 2))

    class Encoder:
        def __call__(self, words: Any) -> Any:
            h = vector(2)
            for one in words:
                h = dynet.tanh(w * (h + one))  # bug
            return h

    return Encoder()([vector(2), vector(2)]).value()


def dynet_tree() -> Any:
    m = dynet.ParameterCollection()
    w = m.add_parameters((2, 4))

    def compose(node: Any) -> Any:
        if isinstance(node, int):
            return vector(node)
        left, right = compose(node[0]), compose(node[1])
        return dynet.tanh(w * dynet.concatenate([left, right]))  # bug

    return compose(((2, 2), (2, 3))).value()


def dynet_trainer() -> Any:
    dynet.AdamTrainer(3)  # bug


def dynet_update_nothing() -> Any:
    m = dynet.ParameterCollection()
    p = m.add_parameters((2,))
    p.set_value([1.0, 2.0, 3.0])  # bug


def dynet_row_write() -> Any:
    t = dynet.ParameterCollection().add_lookup_parameters((3, 2))
    t.init_row(7, [1.0, 2.0])  # bug


def dynet_row_size() -> Any:
    t = dynet.ParameterCollection().add_lookup_parameters((3, 2))
    t.init_row(1, [1.0, 2.0, 3.0])  # bug


def dynet_from_numpy() -> Any:
    dynet.ParameterCollection().parameters_from_numpy("array")  # bug


def dynet_initializer() -> Any:
    dynet.ParameterCollection().add_parameters((2, 2), init="gaussian")  # bug


def dynet_save_load() -> Any:
    m = dynet.ParameterCollection()
    m.add_parameters((2,))
    m.save("small.model")
    n = dynet.ParameterCollection()
    n.add_parameters((3,))
    n.populate("small.model")  # bug


def dynet_softmax_builder() -> Any:
    m = dynet.ParameterCollection()
    sm = dynet.StandardSoftmaxBuilder(3, 5, m)
    sm.neg_log_softmax(vector(3), 9).value()  # bug


def dynet_sparse() -> Any:
    dynet.sparse_inputTensor([[0, 9]], [1.0, 2.0], (4,)).value()  # bug


def dynet_loss_training() -> Any:
    m = dynet.ParameterCollection()
    t, w = m.add_lookup_parameters((4, 2)), m.add_parameters((3, 2))
    trainer = dynet.SimpleSGDTrainer(m)
    for word, label in ((0, 1), (1, 2), (2, 3)):
        dynet.renew_cg()
        scores = w * t[word]
        loss = dynet.pickneglogsoftmax(scores, label)  # bug
        loss.forward()
        loss.backward()
        trainer.update()


def dynet_gradient() -> Any:
    x = vector(2)
    x.gradient()  # bug


def dynet_log_negative() -> Any:
    x = dynet.inputTensor(X)
    dynet.trace_of_product(x, dynet.inputTensor([[1.0, 2.0]])).value()  # bug


def dynet_logdet() -> Any:
    dynet.logdet(dynet.inputTensor(X)).value()  # bug


def dynet_inverse() -> Any:
    dynet.inverse(dynet.inputTensor([[0.0, 0.0], [0.0, 0.0]])).npvalue()  # bug


def dynet_layer_norm() -> Any:
    dynet.layer_norm(vector(3), vector(2), vector(3)).npvalue()  # bug


BUILDERS = [one for name, one in list(globals().items()) if name.startswith("dynet_")]
