"""Adam and its relatives."""

from __future__ import annotations

from typing import Any, ClassVar

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.optim.optimizer import (
    Optimizer,
    check_adam_settings,
    check_ways,
    gradients,
    not_negative,
    rule,
)

Tensor = _core.Tensor
_mean = rule("adam_mean")
_square = rule("adam_square")
_parameter = rule("adam_parameter")
_sparse_mean = rule("sparse_adam_mean")
_sparse_square = rule("sparse_adam_square")
_sparse_parameter = rule("sparse_adam_parameter")
_infinity_norm = rule("adamax_norm")
_adamax = rule("adamax_parameter")
_nadam = rule("nadam_parameter")
_direction = rule("rmsprop_direction")
_step = rule("sgd_parameter")
_maximum = rule("maximum")
_zeros_like = CREATION["zeros_like"]


class Adam(Optimizer):
    """Steps along the running mean of the gradient over the root of its running mean square.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1; ``amsgrad``: Reddi,
    Kale, Kumar, On the Convergence of Adam and Beyond, 2018. ``foreach`` and ``fused`` name ways to compute the
    same and have no effect; ``capturable`` must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.75
    """

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, fused, differentiable, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay or self._decoupled,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        return {"step": 0, **{name: _zeros_like(param) for name in names}}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        last, correction1, correction2 = 0, 1.0, 1.0
        for param, gradient, state in self._steps(group):
            step = state["step"]
            if step != last:
                last, correction1, correction2 = step, 1 - beta1**step, 1 - beta2**step
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean._assign(_mean(gradient, mean, beta1))
            square._assign(_square(gradient, square, beta2))
            if group["amsgrad"]:
                square = state["max_exp_avg_sq"]._assign(_maximum(state["max_exp_avg_sq"], square))
            param._assign(_parameter(param, mean, square, lr, correction1, correction2, eps))


class AdamW(Adam):
    """Adam with decoupled weight decay: the parameter is first multiplied by ``1 - lr * weight_decay``.

    Source: Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.AdamW([w], lr=0.25, weight_decay=0.2)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.7
    """

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
        )


class SparseAdam(Optimizer):
    """Adam that changes only rows with a gradient: the means of the others stay as they are, too.

    A row counts as one with a gradient where any of its elements is not 0. For tables that few rows of are looked
    up in a step, with ``sparse=True``. Raises RuntimeError at a step for a parameter that was not.
    Source: Kingma, Ba, Adam, 2015, the form before section 2.1 ("epsilon hat"), in the rows at hand.

    >>> import twofold as torch
    >>> table = torch.nn.Embedding(4, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([1, 1])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight != before).any(1).tolist()
    [False, True, False, False]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": _zeros_like(param), "exp_avg_sq": _zeros_like(param)}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        for param, gradient in gradients(group, decay=False):
            if not param._sparse_grad:
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead. "
                    "Gradients count as sparse where a table is looked up with sparse=True."
                )
            state = self._state_of(param, group)
            state["step"] = step = state["step"] + 1
            mean = state["exp_avg"]._assign(_sparse_mean(gradient, state["exp_avg"], beta1))
            square = state["exp_avg_sq"]._assign(_sparse_square(gradient, state["exp_avg_sq"], beta2))
            corrections = 1 - beta1**step, 1 - beta2**step
            param._assign(_sparse_parameter(param, gradient, mean, square, lr, *corrections, eps))


class Adamax(Optimizer):
    """Adam with the decaying maximum of the gradient in place of the root of its mean square.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 2.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        betas: Decay of the running mean of the gradient and of the maximum.
        eps: Added to the absolute gradient.
        weight_decay: Square penalty.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        differentiable: Must be False.
        capturable: Must be False; there are no graphs of a device to capture.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.Adamax([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.75
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, None, differentiable, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": _zeros_like(param), "exp_inf": _zeros_like(param)}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        (beta1, beta2), eps = group["betas"], group["eps"]
        for param, gradient, state in self._steps(group):
            mean = state["exp_avg"]._assign(_mean(gradient, state["exp_avg"], beta1))
            norm = state["exp_inf"]._assign(_infinity_norm(gradient, state["exp_inf"], beta2, eps))
            param._assign(_adamax(param, mean, norm, group["lr"] / (1 - beta1 ** state["step"])))


class NAdam(Optimizer):
    """Adam with Nesterov's look ahead, whose momentum grows from step to step.

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016, algorithm 2.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        betas: Decay of the running means of the gradient and of its square.
        eps: Added to the root.
        weight_decay: Square penalty.
        momentum_decay: How fast the momentum grows towards ``betas[0]``.
        decoupled_weight_decay: Whether the parameter is shrunk instead, as in ``AdamW``.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        capturable: Must be False; there are no graphs of a device to capture.
        differentiable: Must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.NAdam([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> 0.5 < w.item() < 1
    True
    """

    state_numbers: ClassVar[dict[str, Any]] = {"step": int, "mu_product": float}

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        not_negative(weight_decay=weight_decay)
        if not momentum_decay >= 0.0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        check_ways(foreach, None, differentiable, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": 0,
            "mu_product": 1.0,
            "exp_avg": _zeros_like(param),
            "exp_avg_sq": _zeros_like(param),
        }

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        slowing = group["momentum_decay"]
        for param, gradient, state in self._steps(group):
            step = state["step"]
            momentum = beta1 * (1.0 - 0.5 * 0.96 ** (step * slowing))
            following = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * slowing))
            state["mu_product"] = product = state["mu_product"] * momentum
            mean = state["exp_avg"]._assign(_mean(gradient, state["exp_avg"], beta1))
            square = state["exp_avg_sq"]._assign(_square(gradient, state["exp_avg_sq"], beta2))
            rates = lr * (1.0 - momentum) / (1.0 - product), lr * following / (1.0 - product * following)
            param._assign(_nadam(param, gradient, mean, square, *rates, 1 - beta2**step, eps))


class RAdam(Optimizer):
    """Adam whose first steps, while the running mean square is uncertain, follow the mean alone.

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2020, algorithm 2; epsilon is added
    to the uncorrected root, as in PyTorch.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        betas: Decay of the running means of the gradient and of its square.
        eps: Added to the root.
        weight_decay: Square penalty.
        decoupled_weight_decay: Whether the parameter is shrunk instead, as in ``AdamW``.
        foreach: Accepted; speed does not depend on it.
        maximize: Whether to climb.
        capturable: Must be False; there are no graphs of a device to capture.
        differentiable: Must be False.

    >>> import twofold as torch
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = torch.optim.RAdam([w], lr=0.25)
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam_settings(lr, eps, betas)
        not_negative(weight_decay=weight_decay)
        check_ways(foreach, None, differentiable, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": _zeros_like(param), "exp_avg_sq": _zeros_like(param)}

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
        longest = 2 / (1 - beta2) - 1
        for param, gradient, state in self._steps(group):
            step = state["step"]
            mean = state["exp_avg"]._assign(_mean(gradient, state["exp_avg"], beta1))
            square = state["exp_avg_sq"]._assign(_square(gradient, state["exp_avg_sq"], beta2))
            correction1, correction2 = 1 - beta1**step, 1 - beta2**step
            length = longest - 2 * step * beta2**step / correction2
            rate = lr / correction1
            if length > 5.0:
                certainty = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
                param._assign(
                    _step(param, _direction(mean, square, eps), rate * (correction2 * certainty) ** 0.5)
                )
            else:
                param._assign(_step(param, mean, rate))
