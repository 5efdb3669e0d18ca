"""``Optimizer``: parameter groups, state, and the frame around every step."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

from twofold import _core
from twofold.errors import described
from twofold.ir.op import REGISTRY
from twofold.ops.base import ops
from twofold.optim.hooks import (
    Hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_hooks,
)
from twofold.optim.step_functions import (  # what optimizers of other packages import from here
    _capturable_doc,  # noqa: F401
    _default_to_fused_or_foreach,  # noqa: F401
    _device_dtype_check_for_fused,  # noqa: F401
    _differentiable_doc,  # noqa: F401
    _disable_dynamo_if_unsupported,  # noqa: F401
    _foreach_doc,  # noqa: F401
    _fused_doc,  # noqa: F401
    _get_capturable_supported_devices,  # noqa: F401
    _get_scalar_dtype,  # noqa: F401
    _get_value,  # noqa: F401
    _maximize_doc,  # noqa: F401
    _params_doc,  # noqa: F401
    _stack_if_compiling,  # noqa: F401
    _to_scalar,  # noqa: F401
    _use_grad_for_differentiable,  # noqa: F401
    _view_as_real,  # noqa: F401
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

Tensor = _core.Tensor
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[Any, Tensor]
DeviceDtypeDict: TypeAlias = dict[Any, Tensor]
Steps: TypeAlias = Iterable[tuple[Tensor, Tensor, dict[str, Any]]]
"""Parameters, each with its gradient and its state, whose ``step`` counts this step."""


class _RequiredParameter:
    """The type of ``required``."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()  # the default of a setting that each group must give


def rule(name: str) -> Callable[..., Tensor]:
    """The update rule called ``name``, as a fast callable of tensors and numbers."""
    op: Any = REGISTRY[name]
    return _core.operation_callable(op, len(op.parameter_names()), op.call)


_decayed_gradient = rule("decayed_gradient")
_decayed_parameter = rule("decayed_parameter")
_negative = rule("negative")


def check_rate(lr: Any) -> None:
    """Raise ValueError, with PyTorch's message, for a learning rate that is several, below 0 or not a number."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    _check_number("lr", lr)
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def _check_number(name: str, value: Any) -> None:
    """Raise TypeError for a setting that is no number."""
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}. Give a number.")


def check_eps(eps: Any) -> None:
    """Raise ValueError, with PyTorch's message, for an epsilon below 0 or not a number."""
    if not eps >= 0.0:
        raise ValueError(f"Invalid epsilon value: {eps}")


def not_negative(**values: Any) -> None:
    """Raise ValueError, with PyTorch's message, for a setting below 0 or not a number."""
    for name, value in values.items():
        _check_number(name, value)
        if not value >= 0.0:
            raise ValueError(
                f"Invalid {name.replace('_', ' ') if name != 'weight_decay' else name} value: {value}"
            )


def check_adam_settings(lr: float, eps: float, betas: tuple[float, float]) -> None:
    """Raise ValueError, with PyTorch's message, for settings of Adam and its relatives that make no sense."""
    check_rate(lr)
    check_eps(eps)
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def settings_of(names: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among ``locals()`` of an ``__init__`` that has no further variables: all behind ``params``."""
    return {name: value for name, value in names.items() if name not in ("self", "params", "__class__")}


def gradients(
    group: dict[str, Any], decay: bool = True, only_dense: str = "", given: Sequence[Tensor] | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The parameters of a group that have a gradient, and what a step takes as their gradients.

    Args:
        group: With ``maximize`` gradients are negated. ``weight_decay`` is added to them, or with
            ``decoupled_weight_decay`` shrinks the parameters.
        decay: Whether to apply the weight decay.
        only_dense: The name of an optimiser that takes no gradients of tables by their rows.
        given: Gradients, one for each parameter, if they are not those that parameters have.

    Raises:
        RuntimeError: For such a gradient, with ``only_dense`` or a weight decay, which moves all rows.
    """
    maximize, weight_decay = group.get("maximize"), group["weight_decay"] if decay else 0
    decoupled = group.get("decoupled_weight_decay")
    for index, param in enumerate(group["params"]):
        gradient = param._dense_grad if given is None else given[index]
        if gradient is None:
            continue
        if given is None and param._sparse_grad and (only_dense or weight_decay):
            raise RuntimeError(
                f"{only_dense} does not support sparse gradients. Look the table up without sparse=True, or use "
                "SparseAdam, SGD or Adagrad."
                if only_dense
                else "weight_decay option is not compatible with sparse gradients. Leave it out for the table."
            )
        if maximize:
            gradient = _negative(gradient)
        if weight_decay:
            if decoupled:
                param._assign(_decayed_parameter(param, group["lr"], weight_decay))
            else:
                gradient = _decayed_gradient(gradient, param, weight_decay)
        yield param, gradient


def by_parts(param: Tensor, gradient: Tensor, state: dict[str, Any]) -> Steps:
    """One step of a complex parameter: its real and imaginary parts are parameters of their own, as are its states."""
    parts = {name: parts_of(value) if isinstance(value, Tensor) else value for name, value in state.items()}
    yield parts_of(param), parts_of(gradient), parts
    state.update({name: value for name, value in parts.items() if not isinstance(value, Tensor)})


def parts_of(value: Tensor) -> Tensor:
    """The real and imaginary parts of a complex tensor, as a view along a new last axis; a real one itself."""
    made: Tensor = ops.view_as_real(value) if value.dtype.is_complex else value
    return made


def in_both_parts(param: Tensor, number: float) -> complex | float:
    """A number that a state starts with, for the real and for the imaginary part of a parameter."""
    return complex(float(number), float(number)) if param.dtype.is_complex else number


class Optimizer(Hooked):
    """Base of all optimisers: ``update(group)`` changes the parameters of one group.

    ``params`` is an iterable of leaf tensors or of dictionaries ``{"params": ..., setting: value}``. A step
    is an observation point: whatever was recorded before it runs at its end.

    >>> import twofold as torch
    >>> class Descent(torch.optim.Optimizer):
    ...     def update(self, group):
    ...         for parameter in group["params"]:
    ...             parameter.data -= group["lr"] * parameter.grad
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> optimizer = Descent([w], {"lr": 0.25})
    >>> (w * w).backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    defaults: dict[str, Any]
    state_numbers: ClassVar[dict[str, Callable[[Any], Any]]] = {"step": int}
    """Parts of the first state that are numbers here, which PyTorch keeps as tensors."""
    takes_sparse_gradients: ClassVar[bool] = False
    """Whether ``_steps`` takes gradients of tables that were looked up with ``sparse=True``."""
    decays_weights: ClassVar[bool] = True
    """Whether ``_steps`` applies the weight decay of a group."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if not isinstance(params, Iterable):
            called = ". Call it" if callable(params) else ""
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"a {type(params).__name__}{called}"
            )
        groups = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list. Give a model's parameters(), which can be read only once."
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def _patch_step_function(self) -> None:
        """What wrappers that do not call ``__init__`` ask for; hooks of ``step`` are there since the class was made."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; the dictionary itself is the group, and gets the defaults of further settings.

        A tensor that comes twice is warned of, and changed twice by each step. Raises TypeError for something that is
        no tensor, ValueError for a tensor that is no leaf or is in another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        names, params = _names_and_tensors(group["params"])
        if names:
            group["param_names"] = names
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}. "
                    "Give tensors, or dicts with tensors as 'params'."
                )
            if not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(set(params)) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters: each step changes them as often as "
                "they are in it. Leave each in once.",
                stacklevel=3,
            )
        own = "param_names" in group
        if any(("param_names" in other) != own for other in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if own else 'without'} names to the optimizer"
            )
        before = {param: k for k, other in enumerate(self.param_groups) for param in other["params"]}
        for param in params:
            if param in before:
                raise ValueError(
                    f"some parameters appear in more than one parameter group: {described(param)} is in "
                    f"group {before[param]} and in group {len(self.param_groups)}. Leave it out of one."
                )
        group["params"] = params
        for name, default in self.defaults.items():
            if group.setdefault(name, default) is required:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
        param_group.update(group)
        self.param_groups.append(param_group)
        # A parameter whose first values are still to be computed would end the trace that reads it: the first step
        # would be two, and keep for its backward pass what one trace frees.
        _core.flush()

    @staticmethod
    def _change(steps: Steps, group: dict[str, Any]) -> None:
        """Change parameters, of their gradients and states."""
        raise NotImplementedError

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group; runs without recording gradients."""
        if self._change is Optimizer._change:
            raise NotImplementedError(f"{type(self).__name__} must define update(group), or step()")
        self._change(self._steps(group), group)

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """What is kept of a parameter before its first step."""
        raise NotImplementedError

    def _state_of(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = self.state[param]
        if not state:
            state.update(self._first_state(param, group))
        return state

    def _steps(self, group: dict[str, Any]) -> Steps:
        """``gradients``, with the state of each parameter, whose ``step`` counts this one."""
        only_dense = "" if self.takes_sparse_gradients else type(self).__name__
        for param, gradient in gradients(group, self.decays_weights, only_dense):
            state = self._state_of(param, group)
            state["step"] += 1
            if param.dtype.is_complex:
                yield from by_parts(param, gradient, state)
            else:
                yield param, gradient, state

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all parameters that have a gradient; ``closure`` computes the loss again and returns it."""
        loss = None
        if closure is not None:
            with _core.GradientMode(True):
                loss = closure()
        _core.begin_update()
        with _core.GradientMode(False):
            for group in self.param_groups:
                try:
                    self.update(group)
                except TypeError:
                    self._check_settings(group)
                    raise
        _core.end_update()
        return loss

    def _check_settings(self, group: dict[str, Any]) -> None:
        """Raise TypeError for a setting of a group that was a number and is none."""
        for name, default in self.defaults.items():
            if isinstance(default, (int, float)):
                _check_number(name, group[name])

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or make them 0."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param._dense_grad is not None:
                    param._dense_grad.detach_().zero_()

    def state_dict(self) -> dict[str, Any]:
        """State and settings, with parameters as numbers in the order of the groups."""
        self._call_hooks("state before")
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            positions = [numbers.setdefault(id(param), len(numbers)) for param in group["params"]]
            groups.append(
                {**{key: value for key, value in group.items() if key != "params"}, "params": positions}
            )
        state: dict[Any, Any] = {}
        for key, values in self.state.items():
            if not isinstance(key, Tensor):  # what a program keeps for the whole optimiser
                state[key] = values
            elif id(key) in numbers:
                state[numbers[id(key)]] = dict(values)
        return dict(self._call_hooks("state after", {"state": state, "param_groups": groups}))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and settings; raises ValueError where the groups do not fit."""
        state_dict = self._call_hooks("load before", dict(state_dict))
        given = deepcopy(state_dict["param_groups"])  # at once: settings that groups share stay shared
        if len(given) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: {len(given)}, and the optimizer "
                f"{len(self.param_groups)}. Make the optimizer with the groups that it was saved with."
            )
        if any(
            len(new["params"]) != len(own["params"])
            for new, own in zip(given, self.param_groups, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        params = {
            number: param
            for new, own in zip(given, self.param_groups, strict=True)
            for number, param in zip(new["params"], own["params"], strict=True)
        }
        state: defaultdict[Any, Any] = defaultdict(dict)
        kept = {} if type(self)._first_state is Optimizer._first_state else self.state_numbers
        for number, values in state_dict["state"].items():
            param = params.get(number)
            if param is None:
                state[number] = deepcopy(values)
            else:
                state[param] = {
                    key: _fitting(kept.get(key), value, param, key) for key, value in values.items()
                }
        for new, own in zip(given, self.param_groups, strict=True):
            own.update({key: value for key, value in new.items() if key != "params"})
        self.__setstate__({"state": state, "param_groups": self.param_groups})
        self._call_hooks("load after")

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
    ) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
        lists = import_module("twofold.utils._foreach_utils")
        found: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]
        found = lists._group_tensors_by_device_and_dtype(tensorlistlist, with_indices)
        return found

    def _cuda_graph_capture_health_check(self) -> None:
        """Nothing: no step is captured."""

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take ``state`` as attributes; classes override it to complete what older versions have saved."""
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    def _repr_html_(self) -> str:
        html = import_module("twofold.frontend.html")
        return str(html.optimizer_html(type(self).__name__, self.param_groups))


def _names_and_tensors(given: Any) -> tuple[list[str], list[Any]]:
    """The names, of all or none, and the tensors that are the parameters of a group."""
    if isinstance(given, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = [given] if isinstance(given, Tensor) else list(given)
    named = [param for param in params if isinstance(param, tuple)]
    if not named:
        return [], params
    if len(named) < len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [name for name, _ in named], [param for _, param in named]


def _fitting(number: Callable[[Any], Any] | None, value: Any, param: Tensor, key: Any) -> Any:
    """A loaded value: counts and rates as numbers, tensors but a "step" as copies in the parameter's float dtype."""
    if isinstance(value, dict):
        return {inner: _fitting(None, item, param, inner) for inner, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitting(number, item, param, key) for item in value)
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if number is not None:
        return number(value.item())
    copied = value.detach().clone()
    return copied.to(param.dtype) if param.dtype.kind == "f" and key != "step" else copied


def check_ways(
    foreach: bool | None, fused: bool | None, differentiable: bool, capturable: bool = False
) -> None:
    """Raise for two ways at once, for a step through which gradients should flow, and for one to be captured."""
    if foreach and fused:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if differentiable:
        raise NotImplementedError(
            "differentiable: steps are not recorded for gradients. Write the update out of place."
        )
    if capturable:  # the type is that of PyTorch's error for parameters on the CPU, in the first step
        raise AssertionError(
            "If capturable=True, params must be on a device that captures graphs, and there is only the CPU. "
            "Leave it out."
        )
