"""Trainers: what changes parameters by their gradients."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from twofold import _core
from twofold.dynet.graph import state
from twofold.frontend.creation import CREATION
from twofold.frontend.install import PUBLIC
from twofold.optim.optimizer import rule

_where = PUBLIC["where"]
_zeros_like = CREATION["zeros_like"]
_clipped, _descended = rule("clipped_gradient"), rule("sgd_parameter")
_mean, _square, _adam = rule("adam_mean"), rule("adam_square"), rule("adam_parameter_late_epsilon")


def _rows_with_gradient(gradient: Any) -> Any:
    """For each row of a table whether any element of its gradient is not 0."""
    touched = gradient != 0
    return touched.any(tuple(range(1, gradient.ndim)), True) if gradient.ndim > 1 else touched


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
    array([0.5], dtype=float32)
    """

    _states = 0
    """How many tensors belong to a parameter."""

    def __init__(self, m: Any, learning_rate: float) -> None:
        self._collection = m
        self.learning_rate = learning_rate
        self._threshold = 5.0
        self._sparse = True
        self._steps = 0
        self._noted = [0, 0]
        self._state: dict[int, list[Any]] = {}

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        """Assign the new values of a parameter and of ``kept``; ``rows``: where a table changes, or None."""
        raise NotImplementedError(f"{type(self).__name__} must define _change")

    def update(self) -> None:
        """Change the parameters by their gradients, and forget these.

        Raises RuntimeError where the norm of the gradients is infinite or not a number.
        """
        self._update(self._collection._own)

    def update_subset(self, updated_params: Iterable[int], updated_lookups: Iterable[int]) -> None:
        """``update`` of some parameters and tables alone, by their places in the lists of the collection."""
        params, tables = self._collection.parameters_list(), self._collection.lookup_parameters_list()
        self._update([params[i] for i in updated_params] + [tables[i] for i in updated_lookups])

    def _update(self, owned: list[Any]) -> None:
        decay, norm = self._collection.get_weight_decay(), None
        with _core.GradientMode(False):
            if self._threshold > 0:
                norm = self._norm()
            scale = None if norm is None else self._threshold / norm
            for parameter in owned:
                if parameter._updated:
                    self._update_one(parameter, scale, decay)
        _core.flush()
        self._steps += 1
        self._noted[1] += 1
        state.updates += 1
        if norm is not None:
            found = norm.item()
            if not math.isfinite(found):
                raise RuntimeError(f"Magnitude of gradient is bad: {found}")
            self._noted[0] += found > self._threshold

    def _norm(self) -> Any:
        total = None
        for parameter in self._collection._own:
            gradient = parameter._tensor.grad
            if gradient is not None:
                part = (gradient * gradient).sum()
                total = part if total is None else total + part
        return None if total is None else total.sqrt()

    def _update_one(self, parameter: Any, scale: Any, decay: float) -> None:
        tensor = parameter._tensor
        gradient, kept = tensor.grad, self._state.get(id(parameter))
        table = self._sparse and parameter.kind == "LookupParameter"
        if gradient is None:
            if kept and not table:
                self._change(tensor, _zeros_like(tensor), kept, None)
        else:
            if kept is None:
                kept = self._state[id(parameter)] = [_zeros_like(tensor) for _ in range(self._states)]
            if scale is not None:
                gradient = _clipped(gradient, scale)
            self._change(tensor, gradient, kept, _rows_with_gradient(gradient) if table and kept else None)
            tensor.grad = None
        if decay:
            tensor._assign(tensor * (1 - decay))

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


def _assigned(target: Any, value: Any, rows: Any) -> Any:
    """Assign a new value, of a table where its rows change."""
    return target._assign(value if rows is None else _where(rows, value, target))


class SimpleSGDTrainer(Trainer):
    """Stochastic gradient descent: ``x - learning_rate * g``."""

    def __init__(self, m: Any, learning_rate: float = 0.1) -> None:
        super().__init__(m, learning_rate)

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        parameter._assign(_descended(parameter, gradient, self.learning_rate))


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
        self._place = 0

    def update(self) -> None:
        """Change the parameters, then the learning rate."""
        super().update()
        cycle = math.floor(1 + self._place / (2 * self._half))
        height = max(0.0, 1 - abs(self._place / self._half - 2 * cycle + 1))
        self.learning_rate = self._least + (self._most - self._least) * height * self._gamma**self._place
        self._place += 1


class MomentumSGDTrainer(Trainer):
    """Descent with momentum: ``v = mom * v - learning_rate * g`` and ``x + v``."""

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.01, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._momentum = mom

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        velocity = kept[0] * self._momentum - gradient * self.learning_rate
        _assigned(parameter, parameter + velocity, rows)
        _assigned(kept[0], velocity, rows)


class AdagradTrainer(Trainer):
    """``x - learning_rate * g / sqrt(sum of g ** 2 + eps)``.

    Source: Duchi, Hazan, Singer, Adaptive Subgradient Methods, 2011.
    """

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.1, eps: float = 1e-20) -> None:
        super().__init__(m, learning_rate)
        self._eps = eps

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        squares = kept[0] + gradient * gradient
        new = parameter - gradient / (squares + self._eps).sqrt() * self.learning_rate
        _assigned(parameter, new, rows)
        _assigned(kept[0], squares, rows)


class AdadeltaTrainer(Trainer):
    """Steps of the size of earlier ones over the root of the running mean of ``g ** 2``.

    Source: Zeiler, ADADELTA, 2012.
    """

    _states = 2

    def __init__(self, m: Any, eps: float = 1e-6, rho: float = 0.95) -> None:
        super().__init__(m, 1.0)
        self._eps, self._rho = eps, rho

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        eps, rho = self._eps, self._rho
        squares = kept[0] * rho + gradient * gradient * (1 - rho)
        step = -(gradient * (kept[1] + eps).sqrt()) / (squares + eps).sqrt()
        steps = kept[1] * rho + step * step * (1 - rho)
        _assigned(parameter, parameter + step, rows)
        _assigned(kept[0], squares, rows)
        _assigned(kept[1], steps, rows)


class RMSPropTrainer(Trainer):
    """``x - learning_rate * g / sqrt(running mean of g ** 2 + eps)``."""

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.001, eps: float = 1e-8, rho: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._eps, self._rho = eps, rho

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        squares = kept[0] * self._rho + gradient * gradient * (1 - self._rho)
        new = parameter - gradient / (squares + self._eps).sqrt() * self.learning_rate
        _assigned(parameter, new, rows)
        _assigned(kept[0], squares, rows)


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

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        one, two = self._betas
        means, squares = _mean(gradient, kept[0], one), _square(gradient, kept[1], two)
        most = self._largest(squares, kept, rows)
        step = self._steps + 1
        new = _adam(parameter, means, most, self.learning_rate, 1 - one**step, 1 - two**step, self._eps)
        _assigned(parameter, new, rows)
        _assigned(kept[0], means, rows)
        _assigned(kept[1], squares, rows)

    def _largest(self, squares: Any, kept: list[Any], rows: Any) -> Any:
        """What the step is divided by the root of."""
        return squares


class AmsgradTrainer(AdamTrainer):
    """Adam with the largest running mean of squares so far.

    Source: Reddi, Kale, Kumar, On the Convergence of Adam and Beyond, 2018.
    """

    _states = 3

    def _largest(self, squares: Any, kept: list[Any], rows: Any) -> Any:
        return _assigned(kept[2], kept[2].maximum(squares), rows)


class EGTrainer(Trainer):
    """Exponentiated gradient descent with momentum, for parameters whose values are probabilities.

    ``v = mom * v - learning_rate * g``; ``x`` is multiplied by ``exp(v)`` and divided by its sum.
    Source: Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997.
    """

    _states = 1

    def __init__(self, m: Any, learning_rate: float = 0.1, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._momentum = mom

    def _change(self, parameter: Any, gradient: Any, kept: list[Any], rows: Any) -> None:
        velocity = kept[0] * self._momentum - gradient * self.learning_rate
        logs = parameter.log() + velocity
        axes = list(range(1 if rows is not None else 0, logs.ndim))
        _assigned(parameter, (logs - logs.logsumexp(axes, keepdim=True)).exp(), rows)
        _assigned(kept[0], velocity, rows)
