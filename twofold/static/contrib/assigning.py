"""Variables found by their names, and values given to them: parts of ``tf.contrib.framework``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.arrays.shape_ops import placeholder
from twofold.static.control_flow.dependencies import group
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.collections import add_to_collection
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.platform import logs
from twofold.static.saving.checkpoint_reader import load_checkpoint
from twofold.static.saving.saver import Saver
from twofold.static.variables.variable import Variable

_Feeds = dict[Any, numpy.ndarray]


def add_model_variable(var: Variable) -> None:
    """Enter a variable in ``MODEL_VARIABLES``, once."""
    if all(var is not one for one in get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES)):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Variable:
    """A variable of ``LOCAL_VARIABLES``, which is not trained."""
    keys = [GraphKeys.LOCAL_VARIABLES]
    return Variable(initial_value, False, keys, validate_shape, name=name, use_resource=use_resource)


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Variable:
    """A variable of ``GLOBAL_VARIABLES``, which is not trained."""
    keys = [GraphKeys.GLOBAL_VARIABLES]
    return Variable(initial_value, False, keys, validate_shape, name=name, use_resource=use_resource)


def get_variable_full_name(var: Variable) -> str:
    """The name of a variable in checkpoints."""
    return var.op.name


@example(
    "v = tf.Variable(1.0, name='a/v')", "print(tf.contrib.framework.get_unique_variable('a/v') is v)", "True"
)
def get_unique_variable(var_op_name: str) -> Variable:
    """The variable of this name, or the only one whose name begins with it; raises ValueError for none or several."""
    found = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, var_op_name)
    exact = [one for one in found if one.op.name == var_op_name] or found
    if len(exact) == 1:
        return exact[0]
    what = "is not unique" if found else "is not found"
    raise ValueError(f"Variable {var_op_name} {what}, at {here()}.")


@example(
    "names = tf.Variable(1.0, name='conv/w'), tf.Variable(1.0, name='conv/b')",
    "print([v.name for v in tf.contrib.framework.filter_variables(names, ['conv'], ['b$'])])",
    "['conv/w:0']",
)
def filter_variables(
    var_list: Iterable[Any],
    include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """Variables whose names match one of ``include_patterns`` and none of ``exclude_patterns``.

    Args:
        var_list: The variables.
        include_patterns: Regular expressions; all names match None.
        exclude_patterns: Regular expressions; no name matches None.
        reg_search: Whether they are searched for anywhere in a name; otherwise at its begin.
    """
    match = re.search if reg_search else re.match
    hits = lambda patterns, one: any(match(pattern, one.op.name) for pattern in patterns)
    return [
        one
        for one in var_list
        if (include_patterns is None or hits(include_patterns, one)) and not hits(exclude_patterns or (), one)
    ]


def _assigned(pairs: Iterable[tuple[Variable, Any]]) -> tuple[Any, _Feeds]:
    """An operation that assigns what its dictionary feeds."""
    feeds, steps = {}, []
    for variable, value in pairs:
        shape: Any = variable.get_shape().as_list()
        if numpy.size(value) != numpy.prod(shape):
            what = f"{variable.describe()} and a value of shape {list(numpy.shape(value))}, at {here()}"
            raise ArgumentError(what, "Give a value of its shape.")
        fed = placeholder(variable.dtype, shape, name=f"placeholder/{variable.op.name}")
        feeds[fed] = numpy.reshape(value, shape)
        steps.append(variable.assign(fed))
    return group(*steps), feeds


@example(
    "v = tf.Variable([0.0, 0.0], name='v')",
    "assign, feeds = tf.contrib.framework.assign_from_values({'v': numpy.array([1.0, 2.0])})",
    "session.run(assign, feeds)",
    "v",
    "[1. 2.]",
)
def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Any, _Feeds]:
    """An operation that gives variables, by their names, values, and the dictionary to feed it with."""
    return _assigned((get_unique_variable(name), value) for name, value in var_names_to_values.items())


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function of a session that gives variables, by their names, values."""
    assign, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign, feeds)


def _by_name(var_list: Any) -> dict[str, list[Variable]]:
    if not isinstance(var_list, Mapping):
        return {one.op.name: [one] for one in var_list}
    return {name: list(one) if isinstance(one, (list, tuple)) else [one] for name, one in var_list.items()}


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, _Feeds]:
    """An operation that gives variables their values in a checkpoint, and the dictionary to feed it with.

    Args:
        model_path: The checkpoint.
        var_list: Variables, or a dictionary of them, or of lists of them, by their names in the checkpoint.
        ignore_missing_vars: Whether to leave out variables that the checkpoint does not have, with a warning.

    Raises:
        ValueError: A variable is missing or has another number of elements.
    """
    reader, pairs = load_checkpoint(model_path), []
    for name, variables in _by_name(var_list).items():
        if not reader.has_tensor(name):
            if not ignore_missing_vars:
                raise ValueError(f"Checkpoint is missing variable [{name}], at {here()}.")
            logs.warning("Checkpoint is missing variable [%s]", name)
            continue
        pairs += [(variable, reader.get_tensor(name)) for variable in variables]
    return _assigned(pairs)


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """A function of a session that restores variables from a checkpoint; None where there are none to restore.

    Args:
        model_path: The checkpoint.
        var_list: Variables, or a dictionary of them by their names in the checkpoint.
        ignore_missing_vars: Whether to leave out variables that the checkpoint does not have, with a warning.
        reshape_variables: Whether values of another shape with as many elements are taken.
    """
    if not var_list:
        raise ValueError(f"var_list cannot be empty, at {here()}.")
    found = dict(var_list) if isinstance(var_list, Mapping) else {one.op.name: one for one in var_list}
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        for name in [name for name in found if not reader.has_tensor(name)]:
            logs.warning("Variable %s missing in checkpoint %s", name, model_path)
            del found[name]
    if not found:
        logs.warning("No Variables to restore")
        return None
    saver = Saver(found, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)
