"""Hooks on the steps and on the states of optimisers: when they are called, and what they may change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import twofold as torch
from twofold.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def weight() -> Any:
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    return w


@pytest.mark.parametrize("name", ["SGD", "Adam", "LBFGS"])
def test_hooks_are_called_around_each_step_in_order(name: str) -> None:
    calls: list[str] = []
    w = weight()
    optimizer = getattr(torch.optim, name)([w], lr=0.5)

    def noting(what: str) -> Any:
        return lambda opt, args, kwargs: calls.append(f"{what} {opt is optimizer} {w[0].item() < 1}")

    handles = [
        register_optimizer_step_post_hook(noting("after any")),
        optimizer.register_step_post_hook(noting("after")),
        optimizer.register_step_pre_hook(noting("before")),
        register_optimizer_step_pre_hook(noting("before any")),
    ]
    closure = lambda: (w * w).sum()
    optimizer.step(closure)
    assert calls == ["before any True False", "before True False", "after True True", "after any True True"]
    for handle in handles:
        handle.remove()
    optimizer.step(closure)
    assert len(calls) == 4


def test_a_hook_before_a_step_may_change_its_arguments() -> None:
    optimizer = torch.optim.SGD([weight()])
    with optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((lambda: 7.0,), {})):
        assert optimizer.step() == 7.0
    assert optimizer.step() is None
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 1)
    with pytest.raises(RuntimeError, match="must return None or"):
        optimizer.step()


def test_a_step_of_a_subclass_has_hooks() -> None:
    class Mine(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> Any:
            return 3

    calls: list[int] = []
    optimizer = Mine([weight()], {})
    optimizer.register_step_post_hook(lambda opt, args, kwargs: calls.append(1))
    assert optimizer.step() == 3 and calls == [1]


def test_hooks_on_states() -> None:
    optimizer, calls = torch.optim.SGD([weight()], lr=0.5), []
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    optimizer.register_state_dict_post_hook(lambda opt, state: state.update(seen="more" in state))
    state = optimizer.state_dict()
    assert calls == ["first", "second"] and state["more"] == 1 and state["seen"]
    optimizer.register_load_state_dict_pre_hook(
        lambda opt, given: {**given, "param_groups": [{**given["param_groups"][0], "lr": 0.25}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda opt: calls.append(opt.param_groups[0]["lr"]))
    optimizer.load_state_dict(state)
    assert calls[2:] == [0.25] and state["param_groups"][0]["lr"] == 0.5


@pytest.mark.parametrize(
    "name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "Adadelta", "RMSprop", "Rprop"]
)
def test_there_are_no_graphs_of_a_device_to_capture(name: str) -> None:
    with pytest.raises(AssertionError, match="capturable=True"):
        getattr(torch.optim, name)([weight()], capturable=True)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_betas_are_of_one_kind(name: str) -> None:
    for betas in ((torch.tensor(0.9), 0.99), (0.9, torch.tensor(0.99))):
        with pytest.raises(ValueError, match="betas must be either both floats or both Tensors"):
            getattr(torch.optim, name)([weight()], betas=betas)
    getattr(torch.optim, name)([weight()], betas=(torch.tensor(0.9), torch.tensor(0.99))).step()


def test_a_class_keeps_numbers_for_all_parameters_and_completes_what_it_loads() -> None:
    class Counting(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.5})
            self.state["steps"] = 0

        def __setstate__(self, state: dict[str, Any]) -> None:
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("rate", 3)

        def step(self, closure: Any = None) -> None:
            self.state["steps"] += 1

    optimizer, loaded = Counting([weight()]), Counting([weight()])
    optimizer.step()
    state = optimizer.state_dict()
    assert state["state"] == {"steps": 1}
    loaded.load_state_dict(state)
    assert loaded.state["steps"] == 1 and loaded.param_groups[0]["rate"] == 3
    assert copy.deepcopy(loaded).state["steps"] == 1


def test_settings_that_groups_share_stay_shared_when_they_are_loaded() -> None:
    class Counting(torch.optim.Optimizer):
        def __init__(self, *params: Any) -> None:
            super().__init__([{"params": [param]} for param in params], {"calls": []})

        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                group["calls"].append(group["params"][0].numel())

    optimizer = Counting(weight(), weight())
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    optimizer.step()
    groups = optimizer.param_groups
    assert groups[0]["calls"] is groups[1]["calls"] and len(groups[0]["calls"]) == 2
    assert state["param_groups"][0]["calls"] == []


def test_a_wrapper_that_makes_no_groups_of_its_own_has_hooks_on_its_steps() -> None:
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            self._patch_step_function()
            self.inner = inner
            self.param_groups, self.defaults, self.state = inner.param_groups, inner.defaults, inner.state

        def step(self, closure: Any = None) -> None:
            self.inner.step()

    w, calls = weight(), []
    wrapper = Wrapper(torch.optim.SGD([w], lr=0.5))
    wrapper.register_step_post_hook(lambda optimizer, args, kwargs: calls.append(optimizer))
    wrapper.step()
    assert calls == [wrapper] and w.tolist() == [0.5, 0.5]


def test_loaded_tensors_have_the_dtype_of_their_parameter_but_steps() -> None:
    """PyTorch's rule: counts and masks of an optimizer of one's own become floats, what is called "step" does not."""
    param = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Optimizer([param], {})
    counts = torch.tensor([1, 2])
    state = {
        "step": torch.tensor(3.0),
        "count": counts,
        "list": [counts],
        "inner": {"step": counts, "mask": counts},
    }
    optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: state}})
    found = optimizer.state[param]
    assert found["step"].dtype is torch.float32 and found["inner"]["step"].dtype is torch.int64
    for one in (found["count"], *found["list"], found["inner"]["mask"]):
        assert one.dtype is torch.float64 and one.tolist() == [1.0, 2.0]
