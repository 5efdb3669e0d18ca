"""Variables that begin with the values of a checkpoint: ``tf.train.init_from_checkpoint``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import constant, refuse
from twofold.static.graph.graph import get_default_graph
from twofold.static.saving.checkpoint_reader import load_checkpoint
from twofold.static.variables.variable import (
    Variable,
    assign,
    global_variables,
    local_variables,
    trainable_variables,
    variable_of,
)
from twofold.static.variables.variable_scope import get_variable_scope


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Mapping[str, Any]) -> None:
    """Have the initialisers of variables give them the values that a checkpoint holds now.

    Args:
        ckpt_dir_or_file: A checkpoint, or a directory, whose newest one is read.
        assignment_map: From names in the checkpoint to variables or their names in the present variable scope; from
            scopes (``"old/"``, or ``"/"`` for all) to scopes, whose variables are found by the rest of their names.

    Raises:
        ValueError: A variable that the graph or the checkpoint does not have, or of another shape.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.Graph().as_default(), tf.Session() as session:
    ...         v = tf.Variable([1.0, 2.0], name="old/v")
    ...         session.run(v.initializer)
    ...         path = tf.train.Saver().save(session, folder + "/model")
    ...     with tf.Graph().as_default(), tf.Session() as session:
    ...         v = tf.Variable([0.0, 0.0], name="new/v")
    ...         tf.train.init_from_checkpoint(folder, {"old/": "new/"})
    ...         session.run(tf.global_variables_initializer())
    ...         print(session.run(v))
    [1. 2.]
    """
    reader = load_checkpoint(ckpt_dir_or_file)
    known = {variable.op.name: variable for variable in [*global_variables(), *local_variables()]}
    for source, target in assignment_map.items():
        for name, variable in _pairs(source, target, known):
            if not reader.has_tensor(name):
                what = f"init_from_checkpoint: tensor {name} is not found in {ckpt_dir_or_file}, at {here()}"
                raise ArgumentError(what, "Look at tf.train.list_variables.")
            value = reader.get_tensor(name)
            if not variable.get_shape().is_compatible_with(value.shape):
                what = (
                    f"init_from_checkpoint: the shape of {variable.describe()} does not match {list(value.shape)} of "
                    f"tensor {name} in {ckpt_dir_or_file}, at {here()}"
                )
                raise ArgumentError(what, "Leave it out.")
            with get_default_graph().name_scope("init_from_checkpoint"):
                variable._initializer = assign(variable, constant(value, variable.dtype)).op


def _pairs(source: str, target: Any, known: Mapping[str, Variable]) -> Iterator[tuple[str, Variable]]:
    """The variables that an entry of the map means, each with its name in the checkpoint."""
    if not isinstance(target, str):
        yield source, variable_of(target)
        return
    scope = get_variable_scope().name
    start = f"{scope}/{target}" if scope else target
    if not target.endswith("/"):
        if start not in known:
            what = f"init_from_checkpoint: variable {start} is not found in the graph, at {here()}"
            raise ArgumentError(what, f"It has {', '.join(known)}.")
        yield source, known[start]
        return
    if not source.endswith("/"):
        what = f"init_from_checkpoint: a variable, {source}, for a scope, {target}, at {here()}"
        raise ArgumentError(what, "End both with '/'.")
    inner = f"{scope}/" if target == "/" and scope else "" if target == "/" else start
    found = [name for name in known if name.startswith(inner)]
    if not found:
        what = f"init_from_checkpoint: there is no variable in {target}, at {here()}"
        raise ArgumentError(what, f"There are {', '.join(known)}.")
    for name in found:
        yield ("" if source == "/" else source) + name[len(inner) :], known[name]


class WarmStartSettings(NamedTuple):
    """What variables begin with: the arguments of ``tf.train.warm_start``."""

    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Any = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: str | Sequence[Any] | None = ".*",
    var_name_to_vocab_info: Any = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Have the initialisers of variables give them the values of a checkpoint, see ``init_from_checkpoint``.

    Args:
        ckpt_to_initialize_from: A checkpoint, or a directory, whose newest one is read.
        vars_to_warm_start: A pattern of names of trainable variables, a list of patterns of names of any variables, or
            a list of variables; None for none.
        var_name_to_vocab_info: Not offered; raises unless None.
        var_name_to_prev_var_name: Other names in the checkpoint, by the names of variables.

    >>> import tempfile
    >>> import twofold.static as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.Graph().as_default(), tf.Session() as session:
    ...         v = tf.Variable([1.0, 2.0], name="old")
    ...         session.run(v.initializer)
    ...         path = tf.train.Saver().save(session, folder + "/model")
    ...     with tf.Graph().as_default(), tf.Session() as session:
    ...         v = tf.Variable([0.0, 0.0], name="new")
    ...         tf.train.warm_start(folder, var_name_to_prev_var_name={"new": "old"})
    ...         session.run(tf.global_variables_initializer())
    ...         print(session.run(v))
    [1. 2.]
    """
    refuse("warm_start", var_name_to_vocab_info=var_name_to_vocab_info or None)
    given = vars_to_warm_start
    if isinstance(given, str):
        chosen = [one for one in trainable_variables() if re.match(given, one.op.name)]
    elif given is None or all(isinstance(one, str) for one in given):
        chosen = [
            one for one in global_variables() if any(re.match(text, one.op.name) for text in given or ())
        ]
    else:
        chosen = [variable_of(one) for one in given]
    names = dict(var_name_to_prev_var_name or {})
    init_from_checkpoint(
        ckpt_to_initialize_from, {names.pop(one.op.name, one.op.name): one for one in chosen}
    )
    if names:
        what = f"warm_start: var_name_to_prev_var_name names {', '.join(names)}, at {here()}"
        raise ArgumentError(what, "Name variables that are warm-started.")


def warm_started(given: Any) -> None:
    """``warm_start`` by what an estimator is given: settings, or a checkpoint."""
    warm_start(*(given if isinstance(given, WarmStartSettings) else [given]))
