"""Hooks of all modules, of registrations, of states: their order and what their answers change, as in PyTorch."""

import warnings
from collections import OrderedDict

import pytest

import twofold as torch
from twofold import nn
from twofold.nn.modules import module as hooks


class Doubled(nn.Module):
    def forward(self, x, scale=2.0):
        return x * scale


def test_hooks_of_all_modules_come_before_those_of_a_module():
    log = []
    model = nn.Sequential(Doubled(), nn.ReLU())
    for name, part in (("all", model), ("first", model[0])):
        part.register_forward_pre_hook(lambda *_, name=name: log.append(f"before {name}"))
        part.register_forward_hook(lambda *_, name=name: log.append(f"after {name}"))
        part.register_full_backward_pre_hook(lambda *_, name=name: log.append(f"gradients before {name}"))
        part.register_full_backward_hook(lambda *_, name=name: log.append(f"gradients after {name}"))
    kind = lambda module: type(module).__name__
    handles = [
        hooks.register_module_forward_pre_hook(lambda m, args: log.append(f"before every {kind(m)}")),
        hooks.register_module_forward_hook(lambda m, args, y: log.append(f"after every {kind(m)}")),
        hooks.register_module_full_backward_pre_hook(
            lambda m, g: log.append(f"gradients before every {kind(m)}")
        ),
        hooks.register_module_full_backward_hook(
            lambda m, g, h: log.append(f"gradients after every {kind(m)}")
        ),
    ]
    model(torch.ones(2, requires_grad=True)).sum().backward()
    assert log == [
        "before every Sequential",
        "before all",
        "before every Doubled",
        "before first",
        "after every Doubled",
        "after first",
        "before every ReLU",
        "after every ReLU",
        "after every Sequential",
        "after all",
        "gradients before every Sequential",
        "gradients before all",
        "gradients before every ReLU",
        "gradients after every ReLU",
        "gradients before every Doubled",
        "gradients before first",
        "gradients after every Doubled",
        "gradients after first",
        "gradients after every Sequential",
        "gradients after all",
    ]
    for handle in handles:
        handle.remove()
        handle.remove()
    log.clear()
    Doubled()(torch.ones(2))
    assert log == [] and not nn.Module._hooked


def test_answers_of_hooks_of_all_modules_replace_what_they_see():
    with hooks.register_module_forward_pre_hook(lambda m, args: args[0] + 1):
        assert Doubled()(torch.zeros(2)).tolist() == [2.0, 2.0]
    seen = []

    def hook(module, args, kwargs, output):
        seen.append((args[0].tolist(), kwargs))
        return output + 5

    with hooks.register_module_forward_hook(hook, with_kwargs=True):
        assert Doubled()(torch.ones(1), scale=3.0).tolist() == [8.0]
    assert seen == [([1.0], {"scale": 3.0})]
    x = torch.ones(1, requires_grad=True)
    with hooks.register_module_full_backward_hook(lambda m, into, out: (into[0] * 10,)):
        Doubled()(x).sum().backward()
    assert x.grad.tolist() == [20.0]


def test_always_call_sees_errors_of_forward_and_of_other_hooks():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    seen = []
    handle = hooks.register_module_forward_hook(lambda m, args, y: seen.append(y), always_call=True)
    with handle, pytest.raises(ValueError, match="broken"):
        Broken()(torch.ones(1))
    assert seen == [None]
    module = Doubled()
    module.register_forward_hook(lambda m, args, y: seen.append("after"), always_call=True)
    module.register_forward_pre_hook(lambda m, args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module(torch.ones(1))
    assert seen == [None, "after"]


def test_an_error_of_a_hook_that_is_always_called_hides_no_other():
    module = Doubled()
    module.register_forward_hook(lambda m, args, y: None.missing, always_call=True)
    module.register_forward_pre_hook(lambda m, args: 1 / 0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with pytest.raises(ZeroDivisionError):
            module(torch.ones(1))
    assert "missing" in str(found[0].message)


def test_hooks_of_registrations():
    log = []
    made = nn.Parameter(torch.zeros(1))
    with (
        hooks.register_module_parameter_registration_hook(
            lambda m, name, value: log.append(("parameter", name)) or made
        ),
        hooks.register_module_buffer_registration_hook(lambda m, name, value: log.append(("buffer", name))),
        hooks.register_module_module_registration_hook(lambda m, name, value: log.append(("module", name))),
    ):
        module = nn.Module()
        module.weight = nn.Parameter(torch.ones(1))
        module.register_buffer("count", torch.ones(1))
        module.count = torch.zeros(1)
        module.child = Doubled()
        module.add_module("other", Doubled())
        module.register_parameter("bias", None)
    assert module.weight is made and module.bias is None
    assert log == [
        ("parameter", "weight"),
        ("buffer", "count"),
        ("buffer", "count"),
        ("module", "child"),
        ("module", "other"),
    ]
    module.child2 = Doubled()
    assert len(log) == 5


def test_hooks_of_states():
    log = []
    model = nn.Sequential(nn.Linear(1, 1))
    model[0].register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("before", prefix, keep)))
    model[0].register_state_dict_post_hook(
        lambda m, state, prefix, metadata: state.update({prefix + "scale": torch.ones(1)})
    )
    model._register_state_dict_hook(lambda m, state, prefix, metadata: OrderedDict(sorted(state.items())))
    state = model.state_dict()
    assert log == [("before", "0.", False)] and list(state) == ["0.bias", "0.scale", "0.weight"]

    def drop(module, state, prefix, metadata, strict, missing, unexpected, errors):
        log.append(("load", type(module).__name__, prefix, strict))
        state.pop(prefix + "bias")

    model[0].register_load_state_dict_pre_hook(drop)
    model._register_load_state_dict_pre_hook(lambda state, prefix, *_: state.pop("0.scale"))
    model.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    assert model.load_state_dict(state).missing_keys == []
    assert log[1:] == [("load", "Linear", "0.", True)]
    model.register_state_dict_post_hook(lambda m, state, prefix, metadata: state)
    with pytest.raises(RuntimeError, match="must return None"):
        model.state_dict()


def test_extra_states():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    first, second = nn.Sequential(Counter()), nn.Sequential(Counter())
    first[0].count = 7
    state = first.state_dict()
    assert state == {"0._extra_state": {"count": 7}}
    second.load_state_dict(state)
    assert second[0].count == 7
    with pytest.raises(RuntimeError, match=r'Missing key\(s\).*"0._extra_state"'):
        second.load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\).*"_extra_state"'):
        nn.Sequential().load_state_dict({"_extra_state": 1})


@pytest.mark.parametrize("count", [1, 2])
def test_hooks_of_a_result_change_what_hooks_of_the_module_see(count):
    class Several(nn.Module):
        def forward(self, x):
            y = tuple(x * (2 + k) for k in range(count))
            return y if count > 1 else y[0]

    module, x, seen = Several(), torch.ones(2, requires_grad=True), []
    module.register_full_backward_hook(lambda m, into, out: seen.append((into[0].tolist(), out[0].tolist())))
    y = module(x) if count > 1 else (module(x),)
    y[0].register_hook(lambda gradient: gradient * 10)
    sum(one.sum() for one in y).backward()
    assert seen == [([20.0 + 3 * (count - 1)] * 2, [10.0] * 2)]
    assert x.grad.tolist() == seen[0][0]
