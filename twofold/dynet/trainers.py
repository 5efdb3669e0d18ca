"""Trainers: what changes parameters by their gradients."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold import _core, array_api
from twofold.dynet.graph import state
from twofold.dynet.parameter_collection import ParameterCollection
from twofold.frontend.creation import CREATION, from_numpy
from twofold.ops.base import FUNCTIONS
from twofold.optim.optimizer import rule

_zeros, _where = CREATION["zeros"], FUNCTIONS["where"]
_clipped = rule("clipped_gradient")
_mean, _square, _adam = rule("adam_mean"), rule("adam_square"), rule("adam_parameter_late_epsilon")

Values = tuple[Any, ...]
"""The new values of a parameter and of what belongs to it."""


class Trainer:
    """Base of all trainers: clips gradients, changes the parameters of a collection, and forgets the gradients.

    Gradients whose norm, over all parameters, is above the threshold (5 unless it is set) are scaled down to it. Of
    tables only rows with a gradient change, with what belongs to them, unless ``set_sparse_updates(False)``.

    >>> import twofold.dynet as dy
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(1, init=1)
    >>> trainer = dy.SimpleSGDTrainer(m, learning_rate=0.25)
    >>> dy.square(w).backward()
    >>> trainer.update()
    >>> w.as_array()
    array([0.5])
    """

    _states = 0
    """How many tensors belong to a parameter."""

    def __init__(self, m: ParameterCollection, learning_rate: float) -> None:
        if not isinstance(m, ParameterCollection):
            raise TypeError(f"{type(self).__name__}: {m!r} is no ParameterCollection")
        if isinstance(learning_rate, str) or not hasattr(learning_rate, "__float__"):
            raise TypeError(f"{type(self).__name__}: learning_rate={learning_rate!r} is no number")
        self._collection = m
        self.learning_rate = learning_rate
        self._threshold = 5.0
        self._sparse = True
        self._steps = 0
        self._fits: Any = None  # during an update, whether the norm of the gradients is finite
        self._noted = [0, 0]
        self._state: dict[int, list[Any]] = {}

    def __repr__(self) -> str:
        collection = self._collection
        return f"<dynet.{type(self).__name__} of {collection!r}, learning_rate={self.learning_rate}>"

    def _repr_html_(self) -> str:
        group = {
            "params": [one._stored() for one in self._collection._own],
            "learning_rate": self.learning_rate,
            "clip_threshold": self._threshold,
            "sparse_updates": self._sparse,
            "updates": self._steps,
        }
        return str(import_module("twofold.frontend.html").optimizer_html(type(self).__name__, [group]))

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        """The new values of all of a parameter, or of rows of a table."""
        raise NotImplementedError(f"{type(self).__name__} must define _rule")

    def update(self) -> None:
        """Change the parameters by their gradients, and forget these.

        Raises RuntimeError where the norm of the gradients is infinite or not a number; no parameter changes then.
        """
        self._update(self._collection._own)

    def update_subset(self, updated_params: Iterable[int], updated_lookups: Iterable[int]) -> None:
        """``update`` of some parameters and tables alone, by their positions in the lists of the collection."""
        params, tables = self._collection.parameters_list(), self._collection.lookup_parameters_list()
        self._update([params[i] for i in updated_params] + [tables[i] for i in updated_lookups])

    def _update(self, owned: list[Any]) -> None:
        norm = None
        rows: list[Any] = []
        whole: list[Any] = []
        with _core.GradientMode(False):
            found = {id(p): self._rows_of(p) for p in self._collection._own}
            if self._threshold > 0:
                norm = self._norm(found)
            scale = None if norm is None else self._threshold / norm
            self._fits = None if norm is None else norm.isfinite()
            for parameter in owned:
                if not parameter._updated:
                    continue
                positions, gradient = found[id(parameter)] or (None, self._whole_gradient(parameter))
                if gradient is not None and scale is not None:
                    gradient = _clipped(gradient, scale)
                if positions is not None:
                    rows.append((parameter, positions, self._new_rows(parameter, positions, gradient)))
                    gradient = None
                if found[id(parameter)] is None or not self._sparse:
                    whole.append((parameter, gradient))
            # how many rows there are differs from step to step, the rest does not
            (_core.flush if rows else _core.begin_update)()
            for parameter, gradient in whole:
                self._update_whole(parameter, gradient)
            for parameter, positions, values in rows:
                for target, value in zip((parameter._stored(), *self._kept(parameter)), values):
                    _core.write_rows(target, positions, value)
            self._finish([parameter for parameter in owned if parameter._updated])
        self._fits = None
        self._count(norm)

    def _finish(self, updated: list[Any]) -> None:
        decay = self._collection.get_weight_decay()
        for parameter in updated:
            parameter._clear()
            if decay:
                stored = parameter._stored()
                stored._assign(self._if_finite(stored * (1 - decay), stored))
        _core.end_update()

    def _count(self, norm: Any) -> None:
        found = 0.0 if norm is None else norm.item()
        if not math.isfinite(found):
            raise RuntimeError(f"Magnitude of gradient is bad: {found}")
        self._steps += 1
        self._noted[1] += 1
        state.updates += 1
        self._noted[0] += norm is not None and found > self._threshold

    def _rows_of(self, parameter: Any) -> Any:
        """Rows of a table and their gradients, None twice where there are none; None for what has a whole gradient."""
        if parameter.kind == "Parameter" or parameter._read_whole():
            return None
        return parameter._gradient_of_rows() or (None, None)

    def _norm(self, gradients_of_rows: dict[int, Any]) -> Any:
        total = None
        for parameter in self._collection._own:
            found = gradients_of_rows[id(parameter)]
            gradient = self._whole_gradient(parameter) if found is None else found[1]
            if gradient is not None:
                part = (gradient * gradient).sum()
                total = part if total is None else total + part
        return None if total is None else total.sqrt()

    def _whole_gradient(self, parameter: Any) -> Any:
        """The gradient of a parameter, or of a whole table; None where there is none."""
        if parameter.kind == "Parameter":
            return parameter._tensor.grad
        if parameter._leaf is None and not parameter._gathered():
            return None
        return parameter._gradient()

    def _kept(self, parameter: Any) -> list[Any]:
        kept = self._state.get(id(parameter))
        if kept is None:
            stored = parameter._stored()
            own = lambda: from_numpy(numpy.zeros(tuple(stored.shape), numpy.float32))
            kept = self._state[id(parameter)] = [own() for _ in range(self._states)]
        return kept

    def _update_whole(self, parameter: Any, gradient: Any) -> None:
        """Update all values by their gradient; without one, what earlier gradients left behind has its effect."""
        parameter._clear()
        if gradient is None and id(parameter) not in self._state:
            return
        stored, kept = parameter._stored(), self._kept(parameter)
        values = self._new_values(parameter, (stored, *kept), _zeros(()) if gradient is None else gradient)
        for target, value in zip((stored, *kept), values):
            target._assign(value)

    def _new_rows(self, parameter: Any, positions: Any, gradients: Any) -> Values:
        tables = (parameter._stored(), *self._kept(parameter))
        return self._new_values(
            parameter, [_core.rows_of(one, positions, False) for one in tables], gradients
        )

    def _new_values(self, parameter: Any, old: Sequence[Any], gradient: Any) -> Values:
        axes = tuple(range(int(parameter.kind != "Parameter"), old[0].ndim))
        new = self._rule(old[0], gradient, list(old[1:]), axes)
        return tuple(self._if_finite(value, before) for value, before in zip(new, old))

    def _if_finite(self, new: Any, old: Any) -> Any:
        """``new``, or ``old`` where the norm of the gradients, of which only a run tells, is not finite."""
        return new if self._fits is None else _where(self._fits, new, old)

    def update_epoch(self, r: float = 1.0) -> None:
        """Does nothing, as in DyNet: set ``learning_rate``. Says so on standard error."""
        print(f"update_epoch({r}) changes nothing: set trainer.learning_rate instead", file=sys.stderr)

    def restart(self, learning_rate: float | None = None) -> None:
        """Forget what earlier updates left behind, and set the learning rate if it is given."""
        self._state.clear()
        if learning_rate is not None:
            self.learning_rate = learning_rate

    def status(self) -> None:
        """Print the learning rate, and how many updates, and clipped ones, there were since the last call."""
        clips, updates = self._noted
        print(f"[lr={self.learning_rate:g} clips={clips} updates={updates}] ", end="", file=sys.stderr)
        self._noted = [0, 0]

    def set_sparse_updates(self, su: bool) -> None:
        """Set whether only those rows of tables change that have a gradient."""
        self._sparse = bool(su)

    def set_clip_threshold(self, thr: float) -> None:
        """Set the largest norm of the gradients; 0 and less is for none."""
        self._threshold = max(float(thr), 0.0)

    def get_clip_threshold(self) -> float:
        """The largest norm of the gradients, 0 for none."""
        return self._threshold

    def set_learning_rate(self, value: float) -> None:
        """Set the learning rate."""
        self.learning_rate = value

    def whoami(self) -> str:
        """The name of the class."""
        return type(self).__name__


class SimpleSGDTrainer(Trainer):
    """Stochastic gradient descent: ``x - learning_rate * g``."""

    def __init__(self, m: Any, learning_rate: float = 0.1) -> None:
        super().__init__(m, learning_rate)

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        return (x - g * self.learning_rate,)


class CyclicalSGDTrainer(SimpleSGDTrainer):
    """Stochastic gradient descent whose learning rate rises and falls.

    Source: Smith, Cyclical Learning Rates for Training Neural Networks, 2017.

    Args:
        m: The collection.
        learning_rate_min: The smallest rate, which it begins with.
        learning_rate_max: The largest.
        step_size: Half of a cycle in updates.
        gamma: The factor of the rise for each update.
    """

    def __init__(
        self,
        m: Any,
        learning_rate_min: float = 0.01,
        learning_rate_max: float = 0.1,
        step_size: float = 2000,
        gamma: float = 1.0,
    ) -> None:
        super().__init__(m, learning_rate_min)
        self._least, self._most, self._half, self._gamma = (
            learning_rate_min,
            learning_rate_max,
            step_size,
            gamma,
        )
        self._position = 0

    def update(self) -> None:
        """Change the parameters, then the learning rate."""
        super().update()
        cycle = math.floor(1 + self._position / (2 * self._half))
        height = max(0.0, 1 - abs(self._position / self._half - 2 * cycle + 1))
        self.learning_rate = self._least + (self._most - self._least) * height * self._gamma**self._position
        self._position += 1


class MomentumSGDTrainer(Trainer):
    """Descent with momentum: ``v = mom * v - learning_rate * g`` and ``x + v``."""

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.01, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._momentum = mom

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        velocity = kept[0] * self._momentum - g * self.learning_rate
        return x + velocity, velocity


class AdagradTrainer(Trainer):
    """``x - learning_rate * g / sqrt(sum of g ** 2 + eps)``.

    Source: Duchi, Hazan, Singer, Adaptive Subgradient Methods, 2011.
    """

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.1, eps: float = 1e-20) -> None:
        super().__init__(m, learning_rate)
        self._eps = eps

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        squares = kept[0] + g * g
        return x - g / array_api.sqrt(squares + self._eps) * self.learning_rate, squares


class AdadeltaTrainer(Trainer):
    """Steps of the size of earlier ones over the root of the running mean of ``g ** 2``.

    Source: Zeiler, ADADELTA, 2012.
    """

    _states = 2

    def __init__(self, m: Any, eps: float = 1e-6, rho: float = 0.95) -> None:
        super().__init__(m, 1.0)
        self._eps, self._rho = eps, rho

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        eps, rho = self._eps, self._rho
        squares = kept[0] * rho + g * g * (1 - rho)
        step = -(g * array_api.sqrt(kept[1] + eps)) / array_api.sqrt(squares + eps)
        return x + step, squares, kept[1] * rho + step * step * (1 - rho)


class RMSPropTrainer(Trainer):
    """``x - learning_rate * g / sqrt(running mean of g ** 2 + eps)``."""

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.001, eps: float = 1e-8, rho: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._eps, self._rho = eps, rho

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        squares = kept[0] * self._rho + g * g * (1 - self._rho)
        return x - g / array_api.sqrt(squares + self._eps) * self.learning_rate, squares


class AdamTrainer(Trainer):
    """Steps along the running mean of the gradient over the root of that of its squares.

    Source: Kingma, Ba, Adam, 2015, the form before section 2.1; the count of updates is that of the trainer.

    Args:
        m: The collection.
        alpha: The learning rate.
        beta_1: How much of the running mean stays.
        beta_2: How much of the running mean of squares stays.
        eps: Added to the root.
    """

    _states = 2

    def __init__(
        self, m: Any, alpha: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(m, alpha)
        self._betas, self._eps = (beta_1, beta_2), eps

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        one, two = self._betas
        corrections = 1 - one ** (self._steps + 1), 1 - two ** (self._steps + 1)
        means, squares = _mean(g, kept[0], one), _square(g, kept[1], two)
        largest = array_api.maximum(kept[2], squares) if self._states == 3 else squares
        new = _adam(x, means, largest, self.learning_rate, *corrections, self._eps)
        return (new, means, squares, largest)[: self._states + 1]


class AmsgradTrainer(AdamTrainer):
    """Adam with the largest running mean of squares so far.

    Source: Reddi, Kale, Kumar, On the Convergence of Adam and Beyond, 2018.
    """

    _states = 3


class EGTrainer(Trainer):
    """Exponentiated gradient descent with momentum, for parameters whose values are probabilities.

    ``v = mom * v - learning_rate * g``; ``x`` is multiplied by ``exp(v)`` and divided by its sum.
    Source: Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997.
    """

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.1, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._momentum = mom

    def _rule(self, x: Any, g: Any, kept: list[Any], axes: tuple[int, ...]) -> Values:
        velocity = kept[0] * self._momentum - g * self.learning_rate
        shares = x * array_api.exp(velocity)
        return shares / array_api.sum(shares, axis=axes, keepdims=True), velocity
