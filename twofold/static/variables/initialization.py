"""Which variables have a value in the session that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import bool_, string
from twofold.errors import FailedPreconditionError
from twofold.static.control_flow.dependencies import group
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import START, example
from twofold.static.graph.graph import Operation, Tensor
from twofold.static.variables.variable import Variable, global_variables, local_variables, variable_of


def _asked(type: str, results: Any, variables: Sequence[Variable], answer: Any, name: str | None) -> Any:
    """An operation that looks at a session: ``answer`` gets of each variable whether it has a value there."""

    def look(run: Any) -> Any:
        return answer([variable in run.session._state for variable in variables])

    held = [variable_of(variable) for variable in variables]
    made = in_python(type, look, [], results, name, given_run=True, variables=held)
    return made[0]


@example("v = tf.Variable(7)", "tf.is_variable_initialized(v)", "False")
def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether the variable has a value in the session that runs."""
    return _asked(
        "IsVariableInitialized",
        [(bool_, ())],
        [variable_of(variable)],
        lambda found: numpy.bool_(found[0]),
        None,
    )


@example(
    'v, w = tf.Variable(7, name="v"), tf.Variable(8)',
    "session.run(w.initializer)",
    "tf.report_uninitialized_variables()",
    "[b'v']",
)
def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of those variables (all global and local ones unless given) that have no value, as strings."""
    chosen = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    names = [variable_of(variable).op.name.encode() for variable in chosen]

    def missing(found: Sequence[bool]) -> Any:
        return numpy.array([label for label, has_value in zip(names, found) if not has_value], object)

    return _asked("ReportUninitialized", [(string, (None,))], chosen, missing, name)


@example("v = tf.Variable(7)", START, "tf.assert_variables_initialized([v])", "None")
def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Operation:
    """An operation that raises FailedPreconditionError if a variable (of all unless given) has no value."""
    chosen = [*global_variables(), *local_variables()] if var_list is None else list(var_list)

    def check(found: Sequence[bool]) -> Any:
        for variable, has_value in zip(chosen, found):
            if not has_value:
                what = f"variable {variable_of(variable).describe()} has no value"
                raise FailedPreconditionError(what, "Run its initialiser first.")
        return numpy.bool_(True)

    return group(_asked("AssertInitialized", [(bool_, ())], chosen, check, None), name="assert_initialized")
