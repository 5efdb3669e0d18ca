"""Programs of DyNet with one bug planted in a line each."""

from __future__ import annotations

from typing import Any

import numpy

import twofold as torch
import twofold.dynet as dy


def dynet_vocab_late() -> Any:
    m = dy.ParameterCollection()
    E = m.add_lookup_parameters((5, 3))
    es = [E[k] for k in (0, 1, 5)]  # bug
    dy.esum(es).value()


def dynet_vocab_train() -> Any:
    m = dy.ParameterCollection()
    E = m.add_lookup_parameters((5, 3))
    W = m.add_parameters((2, 3))
    t = dy.SimpleSGDTrainer(m)
    for words, y in [((0, 1), 0), ((2, 4), 1), ((1, 2), 2)]:
        dy.renew_cg()
        h = dy.esum([E[k] for k in words])
        loss = dy.pickneglogsoftmax(W * h, y)  # bug
        loss.backward()
        t.update()


def dynet_shape() -> Any:
    m = dy.ParameterCollection()
    W = m.add_parameters((4, 3))
    h = dy.tanh(W * dy.inputVector([1.0, 2.0]))  # bug
    h.value()


def dynet_residual() -> Any:
    m = dy.ParameterCollection()
    W = m.add_parameters((4, 3))
    x = dy.inputVector([1.0, 2.0, 3.0])
    h = x + dy.rectify(W * x)  # bug
    h.value()


def dynet_nan_fwd() -> Any:
    with torch.detect_anomaly():
        x = dy.inputVector([0.0, 1.0])
        p = dy.log(x)  # bug
        dy.sum_elems(p).value()


def dynet_nan_bwd() -> Any:
    with torch.detect_anomaly():
        m = dy.ParameterCollection()
        p = m.add_parameters(2, init=dy.ConstInitializer(0.0))
        d = dy.sqrt(dy.squared_norm(p))  # bug
        loss = d + 1.0
        loss.forward()
        loss.backward()
        p.grad_as_array()


def dynet_nan_div() -> Any:
    with torch.detect_anomaly():
        a = dy.inputVector([0.0, 0.0])
        n = dy.cdiv(a, dy.inputVector([0.0, 1.0]))  # bug
        n.npvalue()


def dynet_nan_lstm_cell() -> Any:
    with torch.detect_anomaly():
        m = dy.ParameterCollection()
        b = dy.LSTMBuilder(1, 2, 3, m)
        s = b.initial_state()
        for k in range(3):
            x = dy.inputVector([1.0, 2.0])
            if k == 2:
                x = x / dy.scalarInput(0.0)  # bug
            s = s.add_input(x)
        s.output().value()


def dynet_rnn_input_third() -> Any:
    m = dy.ParameterCollection()
    b = dy.GRUBuilder(1, 2, 3, m)
    s = b.initial_state()
    for v in ([1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]):
        s = s.add_input(dy.inputVector(v))  # bug
    s.output().value()


def dynet_tree() -> Any:
    m = dy.ParameterCollection()
    W = m.add_parameters((3, 6))
    E = m.add_lookup_parameters((4, 3))

    def enc(t: Any) -> Any:
        if isinstance(t, int):
            return E[t]  # bug
        return dy.tanh(W * dy.concatenate([enc(c) for c in t]))

    enc(((0, 1), (2, 4))).value()


def dynet_tree_arity() -> Any:
    m = dy.ParameterCollection()
    W = m.add_parameters((3, 6))
    E = m.add_lookup_parameters((4, 3))

    def enc(t: Any) -> Any:
        if isinstance(t, int):
            return E[t]
        kids = dy.concatenate([enc(c) for c in t])
        return dy.tanh(W * kids)  # bug

    enc(((0, 1), (2, 3, 1))).value()


def dynet_hinge_late() -> Any:
    s = dy.inputVector([1.0, 2.0])
    l = dy.hinge(s, 2)  # bug
    l.value()


def dynet_pick_neg() -> Any:
    v = dy.pick(dy.inputVector([1.0, 2.0]), 3)  # bug
    (v * 2).value()


def dynet_concat_cols() -> Any:
    dy.concatenate_cols([dy.inputVector([1.0, 2.0]), dy.inputVector([1.0])])  # bug


def dynet_strided() -> Any:
    x = dy.inputTensor(numpy.ones((3, 4)))
    y = x[:, 5]  # bug
    y.value()


def dynet_custom_function() -> Any:
    def scorer(h: Any, k: Any) -> Any:
        return dy.dot_product(h, dy.inputVector([1.0] * k))  # bug

    total = [scorer(dy.inputVector([1.0, 2.0]), k) for k in (2, 2, 3)]
    dy.esum(total).value()


def dynet_transpose() -> Any:
    x = dy.inputTensor(numpy.ones((3, 4)))
    y = dy.transpose(x) * x * x  # bug
    y.value()


def dynet_loss_vec_backward() -> Any:
    m = dy.ParameterCollection()
    W = m.add_parameters((2, 3))
    l = W * dy.inputVector([1.0, 2.0, 3.0])
    l.backward()  # bug


def dynet_batch() -> Any:
    x = dy.inputTensor(numpy.ones((3, 2)), batched=True)
    y = dy.inputTensor(numpy.ones((3, 3)), batched=True)
    z = x + y  # bug
    z.value()


def dynet_pick_batch() -> Any:
    x = dy.inputTensor(numpy.ones((3, 2)), batched=True)
    p = dy.pick_batch(x, [0, 3])  # bug
    dy.sum_batches(p).value()


def dynet_lookup_batch() -> Any:
    m = dy.ParameterCollection()
    E = m.add_lookup_parameters((4, 3))
    e = dy.lookup_batch(E, [0, 4])  # bug
    dy.sum_batches(dy.sum_elems(e)).value()


def dynet_conv() -> Any:
    x = dy.inputTensor(numpy.ones((4, 4, 2)))
    f = dy.inputTensor(numpy.ones((2, 2, 3, 5)))
    y = dy.conv2d(x, f, [1, 1])  # bug
    y.value()


def dynet_esum_mixed() -> Any:
    es = [dy.inputVector([1.0, 2.0]), dy.inputVector([1.0, 2.0, 3.0])]
    dy.esum(es).value()  # bug


def dynet_affine() -> Any:
    m = dy.ParameterCollection()
    b = m.add_parameters(3)
    W = m.add_parameters((2, 2))
    h = dy.affine_transform([b, W, dy.inputVector([1.0, 2.0])])  # bug
    h.value()


def dynet_class() -> Any:
    class Tagger:
        def __init__(self) -> None:
            self.m = dy.ParameterCollection()
            self.E = self.m.add_lookup_parameters((5, 3))
            self.f = dy.LSTMBuilder(1, 3, 4, self.m)
            self.W = self.m.add_parameters((2, 5))

        def __call__(self, ws: Any) -> Any:
            return [self.score(h) for h in self.f.initial_state().transduce([self.E[w] for w in ws])]

        def score(self, h: Any) -> Any:
            return self.W * h  # bug

    Tagger()([1, 2])


def dynet_load() -> Any:
    m = dy.ParameterCollection()
    m.add_parameters((2, 3))
    m.save("a.model")
    n = dy.ParameterCollection()
    n.add_parameters((3, 3))
    n.populate("a.model")  # bug


def dynet_reshape() -> Any:
    y = dy.reshape(dy.inputVector([1.0, 2.0, 3.0]), (2, 2))  # bug
    y.value()


def dynet_nan_softmax_mask() -> Any:
    with torch.detect_anomaly():
        s = dy.inputVector([1.0, 2.0]) + dy.inputVector([-numpy.inf, -numpy.inf])
        a = dy.softmax(s)  # bug
        a.value()


def dynet_nan_binary_log() -> Any:
    with torch.detect_anomaly():
        y = dy.scalarInput(1.0) * 2.0
        l = dy.binary_log_loss(dy.logistic(y * 200.0), dy.scalarInput(0.0))  # bug
        (l * 1).value()


def dynet_dropout() -> Any:
    dy.dropout(dy.inputVector([1.0]), 1.5).value()  # bug


def dynet_maxdim() -> Any:
    dy.max_dim(dy.inputVector([1.0, 2.0]), 2).value()  # bug


def dynet_bool() -> Any:
    x = dy.scalarInput(1.0)
    if x > 0:  # bug
        pass


def dynet_scalar() -> Any:
    dy.inputVector([1.0, 2.0]).scalar_value()  # bug


def dynet_hook_none() -> Any:
    dy.esum([]).value()  # bug


VECTORS: list[Any] = [
    dynet_vocab_late,
    dynet_vocab_train,
    dynet_shape,
    dynet_residual,
    dynet_nan_fwd,
    dynet_nan_bwd,
    dynet_nan_div,
    dynet_nan_lstm_cell,
    dynet_rnn_input_third,
    dynet_tree,
    dynet_tree_arity,
    dynet_hinge_late,
    dynet_pick_neg,
    dynet_concat_cols,
    dynet_strided,
    dynet_custom_function,
    dynet_transpose,
    dynet_loss_vec_backward,
    dynet_batch,
    dynet_pick_batch,
    dynet_lookup_batch,
    dynet_conv,
    dynet_esum_mixed,
    dynet_affine,
    dynet_class,
    dynet_load,
    dynet_reshape,
    dynet_nan_softmax_mask,
    dynet_nan_binary_log,
    dynet_dropout,
    dynet_maxdim,
    dynet_bool,
    dynet_scalar,
    dynet_hook_none,
]
