"""Optimisers beside those of ``tf.train``: ``tf.contrib.opt``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.autodiff.gradients import gradients
from twofold.static.contrib.decayed import AdamWOptimizer as AdamWOptimizer
from twofold.static.contrib.decayed import DecoupledWeightDecayExtension as DecoupledWeightDecayExtension
from twofold.static.contrib.decayed import LazyAdamOptimizer as LazyAdamOptimizer
from twofold.static.contrib.decayed import MomentumWOptimizer as MomentumWOptimizer
from twofold.static.contrib.decayed import NadamOptimizer as NadamOptimizer
from twofold.static.contrib.decayed import (
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
)
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import need_session
from twofold.static.variables.variable import Variable, trainable_variables


@example(
    "w = tf.Variable([7.0, -2.0])",
    "session.run(w.initializer)",
    "tf.contrib.opt.ScipyOptimizerInterface(tf.reduce_sum(tf.square(w - 3.0))).minimize(session)",
    "w).round(2",
    "[3. 3.]",
)
class ScipyOptimizerInterface:
    """Makes a loss small with ``scipy.optimize.minimize``, which gets the values of all variables as one vector.

    Args:
        loss: a tensor without axes.
        var_list: the variables; all trainable ones unless given.
        equalities, inequalities: not offered; they raise unless None.
        var_to_bounds: for some variables the pair of bounds of their elements, numbers or arrays.
        method, options: those of ``scipy.optimize.minimize``; the method is "L-BFGS-B" unless given.

    Raises:
        ImportError: without SciPy, when it is to find values.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Variable] | None = None,
        equalities: Any = None,
        inequalities: Any = None,
        var_to_bounds: Any = None,
        method: str = "L-BFGS-B",
        options: dict[str, Any] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        refuse(type(self).__name__, equalities=equalities, inequalities=inequalities)
        self._loss, self._variables = loss, list(trainable_variables() if var_list is None else var_list)
        found = gradients(loss, self._variables)
        if None in found:
            names = [one.name for one, slope in zip(self._variables, found) if slope is None]
            raise ValueError(f"ScipyOptimizerInterface: the loss depends on none of {names}, at {here()}.")
        self._slopes = found
        self._options = {"method": method, "options": options or {}, **optimizer_kwargs}
        if var_to_bounds is not None:
            self._options["bounds"] = self._bounds(var_to_bounds)

    def _bounds(self, given: Any) -> list[tuple[float, float]]:
        """Bounds of the elements of all variables."""
        rows = []
        for variable in self._variables:
            ends = given.get(variable, (-numpy.inf, numpy.inf))
            low, high = (numpy.broadcast_to(end, variable.type_.shape).ravel() for end in ends)
            rows += list(zip(low.tolist(), high.tolist()))
        return rows

    def minimize(
        self,
        session: Any = None,
        feed_dict: Any = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Find the values and set the variables to them.

        Args:
            session: the default session unless given.
            feed_dict: what is fed in each run.
            fetches: what ``loss_callback`` is given.
            step_callback: called with the vector after each step.
            loss_callback: called with the values of ``fetches`` whenever the loss is computed.
            run_kwargs: options of ``Session.run``.
        """
        try:
            minimize = import_module("scipy.optimize").minimize
        except ImportError:
            raise ImportError(f"ScipyOptimizerInterface needs SciPy, at {here()}. Install it.") from None
        run = session or need_session("minimize")
        more = list(fetches or ())

        def measured(vector: Any) -> tuple[float, Any]:
            self._set(vector, run)
            loss, slopes, values = run.run([self._loss, self._slopes, more], feed_dict, **run_kwargs)
            if loss_callback is not None:
                loss_callback(*values)
            return float(loss), numpy.concatenate([numpy.ravel(one) for one in slopes]).astype(float)

        first = numpy.concatenate([numpy.ravel(one) for one in run.run(self._variables)]).astype(float)
        found = minimize(measured, first, jac=True, callback=step_callback, **self._options)
        self._set(found.x, run)

    def _set(self, vector: Any, session: Any) -> None:
        start = 0
        for variable in self._variables:
            shape = variable.type_.shape
            count = int(numpy.prod(shape))
            variable.load(numpy.reshape(vector[start : start + count], shape), session)
            start += count
