"""What feeds a program for some epochs, and batches of what a condition lets through: ``tf.train``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ShapeError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, refuse
from twofold.static.api.signatures import parameters, takes, with_parameters
from twofold.static.arrays import shape_ops
from twofold.static.arrays.selection import boolean_mask
from twofold.static.control_flow.conditional import cond
from twofold.static.data.queues import (
    FIFOQueue,
    batch,
    batch_join,
    filled_in_epochs,
    shuffle_batch,
    shuffle_batch_join,
)
from twofold.static.errors import OutOfRangeError
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.scopes import control_dependencies, name_scope
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.variables.variable import Variable, assign_add


@takes(
    "element_shape=None, num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None, summary_name=None, "
    "name=None, cancel_op=None"
)
def input_producer(input_tensor: Any, **options: Any) -> FIFOQueue:
    """A queue of the rows of a tensor, in another order in each of ``num_epochs`` epochs (None: for ever).

    Args:
        input_tensor: The rows.
        element_shape: The shape of a row; needed where that of ``input_tensor`` is not known.
        num_epochs: How often each row comes.
        shuffle: Whether each epoch has an order of its own.
        seed: Of the orders.
        capacity: Of the queue.
        shared_name: Changes nothing: there is one process.
        summary_name: Not offered; raises unless None.
        name: That of the queue.
        cancel_op: Not offered; raises unless None.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     row = tf.train.input_producer(tf.constant([[1, 2], [3, 4]]), shuffle=False).dequeue()
    ...     with tf.train.MonitoredSession() as session:
    ...         print(session.run(row))
    [1 2]
    """
    refuse("input_producer", summary_name=options["summary_name"], cancel_op=options["cancel_op"])
    rows = convert_to_tensor(input_tensor)
    whole, given = rows.get_shape(), TensorShape(options["element_shape"])
    shape = given if whole.dims is None else whole[1:].merge_with(given)
    if not shape.is_fully_defined():
        what = f"rows of shape {shape}"
        raise failed("input_producer", ShapeError(what, "Give a fully defined element_shape."))
    return filled_in_epochs(rows, lambda values: values, rows.dtype, options, shape)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Any:
    """The value of a variable, which 1 is added to then; a run raises OutOfRangeError where it is ``limit``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     counter = tf.Variable(0)
    ...     session.run(counter.initializer)
    ...     print(*[session.run(tf.count_up_to(counter, 3)) for _ in range(3)])
    0 1 2
    """

    def check(value: Any) -> Any:
        if value >= limit:
            raise OutOfRangeError(f"Reached limit of {limit}", "Catch this error to end.")
        return numpy.array(value)

    with name_scope(name, "CountUpTo"):
        old = in_python("CountUpTo", check, [ref], [(ref.dtype, ())], None)[0]
        with control_dependencies([old, assign_add(ref, 1)]):
            return shape_ops.identity(old)


@example(
    "x = tf.train.limit_epochs(tf.constant([1, 2]), 2)",
    "session.run(tf.local_variables_initializer())",
    "print(session.run(x), session.run(x))",
    "[1 2] [1 2]",
)
def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """The tensor, which can be run ``num_epochs`` times before OutOfRangeError; a local variable counts them."""
    if num_epochs is None:
        return convert_to_tensor(tensor)
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs"):
        value = convert_to_tensor(tensor)
        epochs = Variable(
            numpy.int64(0), name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )
        with control_dependencies([count_up_to(epochs, num_epochs)]):
            return shape_ops.identity(value)


_MAYBE = {
    "maybe_batch": "tensors, keep_input, batch_size, num_threads=1, capacity=32, enqueue_many=False, shapes=None, "
    "dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None",
    "maybe_batch_join": "tensors_list, keep_input, batch_size, capacity=32, enqueue_many=False, shapes=None, "
    "dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None",
    "maybe_shuffle_batch": "tensors, batch_size, capacity, min_after_dequeue, keep_input, num_threads=1, seed=None, "
    "enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None, name=None",
    "maybe_shuffle_batch_join": "tensors_list, batch_size, capacity, min_after_dequeue, keep_input, seed=None, "
    "enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None, name=None",
}


_EXAMPLES = {
    "maybe_batch": "[tf.constant(1)], tf.constant(True), 4",
    "maybe_batch_join": "[[tf.constant(1)], [tf.constant(2)]], tf.constant(True), 4",
    "maybe_shuffle_batch": "[tf.constant(1)], 4, 20, 8, tf.constant(True)",
    "maybe_shuffle_batch_join": "[[tf.constant(1)], [tf.constant(2)]], 4, 20, 8, tf.constant(True)",
}


def _kept(tensors: Any, keep: Any, many: bool) -> Any:
    """Tensors as rows: none where they are not kept."""
    chosen = convert_to_tensor(keep)
    named = isinstance(tensors, dict)
    values = [convert_to_tensor(one) for one in (tensors.values() if named else tensors)]
    if chosen.type_.ndim:
        found = [boolean_mask(one, chosen) for one in values]
    else:
        rows = values if many else [shape_ops.expand_dims(one, 0) for one in values]
        found = cond(chosen, lambda: rows, lambda: [one[:0] for one in rows])
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        for one, row in zip(found, rows):
            one.set_shape([None, *row.get_shape().as_list()[1:]])
    return dict(zip(tensors, found)) if named else found


def _conditional(plain: Callable[..., Any]) -> Callable[..., Any]:
    own = f"maybe_{plain.__name__}"
    several = own.endswith("_join")

    def made(keep_input: Any, **options: Any) -> Any:
        first = "tensors_list" if several else "tensors"
        given, many = options.pop(first), options.pop("enqueue_many")
        alone = not several and not isinstance(given, (list, tuple, dict))
        lists = given if several else [[given] if alone else given]
        if isinstance(keep_input, bool):
            return plain(given, enqueue_many=many, **options) if keep_input else None
        kept = [_kept(tensors, keep_input, many) for tensors in lists]
        value = kept if several else kept[0][0] if alone else kept[0]
        return plain(value, enqueue_many=True, **options)

    text = f"``{own.removeprefix('maybe_')}`` of those elements for which ``keep_input`` is true."
    call = _EXAMPLES[own]
    shown = (f"made = tf.train.{own}({call})", "print(made.shape)", "(4,)")
    return described(with_parameters(made, {**parameters(_MAYBE[own])}), own, text, *shown)


maybe_batch, maybe_batch_join, maybe_shuffle_batch, maybe_shuffle_batch_join = (
    _conditional(one) for one in (batch, batch_join, shuffle_batch, shuffle_batch_join)
)


@example(
    "queue = tf.PriorityQueue(4, [tf.string], [[]])",
    "session.run(queue.enqueue_many([[3, 1], ['late', 'early']]))",
    "queue.dequeue()[1]",
    "b'early'",
)
class PriorityQueue(FIFOQueue):
    """A queue whose elements begin with an int64, the smallest of which leaves first."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        own = [as_dtype(one) for one in (types if isinstance(types, (list, tuple)) else [types])]
        each = None if shapes is None else [[], *shapes]
        super().__init__(capacity, [int64, *own], each, names, shared_name, name)

    def _position(self, elements: list[list[Any]]) -> int:
        return min(range(len(elements)), key=lambda index: int(elements[index][0]))
