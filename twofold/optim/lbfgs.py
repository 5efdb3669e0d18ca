"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.ops.base import FUNCTIONS
from twofold.optim.line_search import Conditions, Point, cubic_minimum, strong_wolfe
from twofold.optim.optimizer import Optimizer, parts_of, settings_of

Tensor = _core.Tensor
_cat = FUNCTIONS["cat"]
_zeros = CREATION["zeros"]
_SHORTEST = 1e-9  # of an interval that the line search divides further, times the largest change


class LBFGS(Optimizer):
    """Steps of a quasi-Newton method that knows the curvature from the last ``history_size`` steps.

    ``step`` needs a closure that computes loss and gradients again. Source: Liu, Nocedal, On the Limited Memory BFGS
    Method for Large Scale Optimization, 1989; the first step is limited by the sum of the absolute gradient.

    Args:
        params: Parameters, one group.
        lr: Size of a step, or where the line search begins.
        max_iter: Iterations in one ``step``.
        max_eval: Calls of the closure in one ``step``, by default ``max_iter * 5 // 4``.
        tolerance_grad: Largest absolute gradient at which to stop.
        tolerance_change: Largest change of a parameter, or of the loss, at which to stop.
        history_size: How many steps are known.
        line_search_fn: None, or "strong_wolfe".

    Raises:
        ValueError: There are several groups, or the rate is negative.

    >>> import twofold as torch
    >>> w = torch.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - torch.tensor([1.0, 5.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    53.0
    >>> w.round(decimals=3).tolist()
    [1.0, 5.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, settings_of(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters until it is time to stop; returns the loss before.

        Args:
            closure: Clears the gradients, computes the loss and its gradients, and returns it.
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with _core.GradientMode(False):
            loss = self._iterate(closure)
        _core.flush()
        return loss

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = _with_gradients(closure)
        loss, gradient, calls = float(first), self._gradient(), 1
        state["func_evals"] += 1
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        for round in range(1, group["max_iter"] + 1):
            direction = self._direction(state, gradient, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            slope, step = float(gradient.dot(direction)), group["lr"]
            if state["n_iter"] == 1:
                step = min(1.0, 1.0 / float(gradient.abs().sum())) * step
            state["d"], state["t"] = direction, step
            if slope > -group["tolerance_change"]:
                break
            used, previous = 0, loss
            if group["line_search_fn"] is not None:
                start = Point(0.0, loss, gradient, slope)
                found, used = self._search(closure, start, direction, step, group, calls)
                loss, gradient, state["t"] = found.loss, found.gradient, found.step
                self._move(direction, found.step)
            else:
                self._move(direction, step)
                # after the last iteration nobody would use the new loss
                if round != group["max_iter"]:
                    loss, used = float(_with_gradients(closure)), 1
                    gradient = self._gradient()
            calls += used
            state["func_evals"] += used
            if calls >= group["max_eval"] or float(gradient.abs().max()) <= group["tolerance_grad"]:
                break
            moved = float(direction.abs().max()) * state["t"]
            if moved <= group["tolerance_change"] or abs(loss - previous) < group["tolerance_change"]:
                break
        return first

    def _search(
        self, closure: Callable[[], Any], start: Point, direction: Tensor, step: float, group: Any, calls: int
    ) -> tuple[Point, int]:
        origin = [param.detach().clone() for param in self._params]

        def evaluate(step: float) -> Point:
            self._move(direction, step)
            loss, gradient = float(_with_gradients(closure)), self._gradient()
            for param, values in zip(self._params, origin, strict=True):
                param.copy_(values)
            return Point(step, loss, gradient, float(gradient.dot(direction)))

        largest = float(direction.abs().max())
        return strong_wolfe(evaluate, step, start, largest, _SHORTEST, group["max_eval"] - calls)

    def _direction(self, state: dict[str, Any], gradient: Tensor, size: int) -> Tensor:
        """Minus the gradient times the inverse of the curvature, as far as the stored differences tell it."""
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        changes, steps, weights = state["old_dirs"], state["old_stps"], state["ro"]
        change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        product = change.dot(moved)
        if float(product) > 1e-10:
            if len(changes) == size:
                for kept in (changes, steps, weights):
                    kept.pop(0)
            changes.append(change)
            steps.append(moved)
            weights.append(1.0 / product)
            state["H_diag"] = product / change.dot(change)
        direction, parts = -gradient, []
        for change, moved, weight in zip(reversed(changes), reversed(steps), reversed(weights), strict=True):
            parts.append(moved.dot(direction) * weight)
            direction = direction - change * parts[-1]
        direction = direction * state["H_diag"]
        for change, moved, weight, part in zip(changes, steps, weights, reversed(parts), strict=True):
            direction = direction + moved * (part - change.dot(direction) * weight)
        return direction

    def _gradient(self) -> Tensor:
        """All gradients as one vector."""
        return _cat(
            [
                parts_of(
                    _zeros((param.numel(),), dtype=param.dtype)
                    if param._dense_grad is None
                    else param._dense_grad.detach()
                ).reshape(-1)
                for param in self._params
            ]
        )

    def _move(self, direction: Tensor, step: float) -> None:
        """Add ``step * direction`` to the parameters."""
        offset = 0
        for param in map(parts_of, self._params):
            part = direction[offset : offset + param.numel()].reshape(tuple(param.shape))
            param._assign(param.detach() + part * step)
            offset += param.numel()


def _with_gradients(closure: Callable[[], Any]) -> Any:
    with _core.GradientMode(True):
        return closure()


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> float:
    """Where the cubic through two points, of the given losses and slopes, is smallest, within ``bounds``.

    >>> import twofold as torch
    >>> torch.optim.lbfgs._cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0)
    1.0
    """
    one, other = Point(float(x1), float(f1), None, float(g1)), Point(float(x2), float(f2), None, float(g2))
    low, high = sorted((one.step, other.step)) if bounds is None else map(float, bounds)
    return cubic_minimum(one, other, low, high)


def _strong_wolfe(
    obj_func: Callable[..., Any],
    x: Any,
    t: Any,
    d: Tensor,
    f: Any,
    g: Tensor,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """The line search of ``LBFGS`` for optimizers of a program's own.

    Args:
        obj_func: Called as ``obj_func(x, t, d)``; returns the loss and the flat gradient at ``x + t * d``.
        x: What is moved, in whatever form ``obj_func`` takes it.
        t: The step to begin with.
        d: The flat direction.
        f: The loss at ``x``.
        g: The flat gradient at ``x``.
        gtd: The product of gradient and direction at ``x``.
        c1: How much of the slope the loss must fall by.
        c2: How much of the slope may be left.
        tolerance_change: Length below which an interval is not divided further.
        max_ls: How often the interval may be changed.

    Returns:
        Loss, flat gradient and step of the point found, and how often ``obj_func`` was called.

    >>> import twofold as torch
    >>> x, d = torch.tensor([3.0]), torch.tensor([-6.0])
    >>> square = lambda x, t, d: (float((x + t * d) ** 2), 2 * (x + t * d))
    >>> torch.optim.lbfgs._strong_wolfe(square, x, 1.0, d, 9.0, 2 * x, -36.0)
    (0.0, tensor([0.]), 0.5, 2)
    """

    def evaluate(step: float) -> Point:
        loss, gradient = obj_func(x, step, d)
        return Point(step, float(loss), gradient.clone(), float(gradient.dot(d)))

    start, largest = Point(0.0, float(f), g, float(gtd)), float(d.abs().max())
    found, calls = strong_wolfe(
        evaluate, float(t), start, largest, tolerance_change, max_ls, Conditions(c1, c2)
    )
    return found.loss, found.gradient, found.step, calls
