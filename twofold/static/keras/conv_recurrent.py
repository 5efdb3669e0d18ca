"""Recurrences whose steps are convolutions of images: ``tf.keras.layers.ConvLSTM2D``."""

from __future__ import annotations

from typing import Any

from twofold.signatures import parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.keras.backend_nn import bias_add, conv2d
from twofold.static.keras.masking import stepped
from twofold.static.keras.recurrent import Recurrent
from twofold.static.keras.stepping import keep_states, kept_states, split_inputs
from twofold.static.layers.convolutional import for_each_axis
from twofold.static.layers.graph_collections import with_loss


class ConvLSTM2D(Recurrent):
    """Long short-term memory of images (batch, time, rows, columns, channels), by convolutions (Shi et al. 2015).

    Those of the inputs have ``strides``, ``padding`` and ``dilation_rate``, those of the states keep their size.
    ``dropout`` and ``recurrent_dropout`` drop a share of the inputs and of the states while training.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     print(tf.keras.layers.ConvLSTM2D(8, 3)(tf.zeros([2, 4, 6, 6, 3])).shape)
    (2, 4, 4, 8)
    """

    options = parameters(
        "filters, kernel_size, strides=(1, 1), padding='valid', data_format=None, dilation_rate=(1, 1), "
        "activation='tanh', recurrent_activation='hard_sigmoid', use_bias=True, "
        "kernel_initializer='glorot_uniform', recurrent_initializer='orthogonal', bias_initializer='zeros', "
        "unit_forget_bias=True, kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None, "
        "activity_regularizer=None, kernel_constraint=None, recurrent_constraint=None, bias_constraint=None, "
        "return_sequences=False, go_backwards=False, stateful=False, dropout=0.0, recurrent_dropout=0.0, "
        "return_state=False"
    )
    row = Recurrent.row_of(4, 2)
    takes_training = takes_mask = True
    implementation, time_major = 1, False

    @property
    def units(self) -> int:
        """The channels of the states."""
        found: int = self.filters
        return found

    def build(self, input_shape: Any) -> None:
        """Kernels and bias of all gates, side by side."""
        first = input_shape[0] if isinstance(input_shape, list) else input_shape
        channels = int(first[2 if self.data_format == "channels_first" else -1])
        size, width = for_each_axis(self.kernel_size, 2), 4 * self.filters
        self.make_variables(
            {
                "kernel": [*size, channels, width],
                "recurrent_kernel": [*size, self.filters, width],
                "bias": [width],
            }
        )

    def _start(self, image: Any, kernel: Any) -> Any:
        """Zeros of the size of what the inputs are convolved to."""
        made = self._of_inputs(creation.zeros_like(image), kernel)
        return creation.zeros_like(made)

    def _of_inputs(self, value: Any, kernel: Any) -> Any:
        return conv2d(value, kernel, self.strides, self.padding, self.data_format, self.dilation_rate)

    def call(  # type: ignore[override]
        self, inputs: Any, initial_state: Any = None, mask: Any = None, training: Any = None
    ) -> Any:
        """The last output or all, with ``return_state`` also the last states."""
        inputs, initial_state, mask = split_inputs(inputs, initial_state, mask)
        kernels = shape_ops.split(self.kernel, 4, 3)
        recurrent = shape_ops.split(self.recurrent_kernel, 4, 3)
        biases = shape_ops.split(self.bias, 4, 0) if self.use_bias else [None] * 4
        first = inputs[:, 0]
        zeros = self._start(first, kernels[0])
        dropped = self.masks(self.dropout, first, training)
        lost = self.masks(self.recurrent_dropout, zeros, training)
        if self.stateful and self.states is None:
            sizes = zeros.get_shape().as_list()
            self.states = kept_states(self, sizes[0], [sizes[1:]] * 2)
        start = [zeros, zeros] if self.states is None else [one.value() for one in self.states]
        start = start if initial_state is None else list(initial_state)

        def step(value: Any, before: list[Any]) -> Any:
            h, c = before
            gates = []
            for k in range(4):
                x = self._of_inputs(value if dropped is None else value * dropped[k], kernels[k])
                x = x if biases[k] is None else bias_add(x, biases[k], self.data_format)
                state = h if lost is None else h * lost[k]
                gates.append(x + conv2d(state, recurrent[k], 1, "same", self.data_format))
            i, f, o = (self.recurrent_activation(gates[k]) for k in (0, 1, 3))
            c = f * c + i * self.activation(gates[2])
            h = o * self.activation(c)
            return h, [h, c]

        last, outputs, states = stepped(step, inputs, start, mask, self.go_backwards)
        keep_states(self, states)
        result = with_loss(outputs if self.return_sequences else last, self.activity_regularizer)
        return [result, *states] if self.return_state else result
