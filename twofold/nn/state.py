"""The state of a module as a dictionary, and back."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from twofold import _core
from twofold.frontend.options import sparse_coo
from twofold.nn.parameter import Parameter

Tensor = _core.Tensor


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` did not find, and what it did not use."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix from the names of a state, in place, such as the "module." that a wrapping module puts there.

    >>> from twofold.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name[len(prefix) :]] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", {})
    for name in [name for name in metadata if name]:
        if name == prefix.replace(".", "") or name.startswith(prefix):
            metadata[name[len(prefix) :]] = metadata.pop(name)


def state_of(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """The state of ``module`` and all below it."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in _hooks(module, "_state_dict_pre_hooks"):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in _hooks(module, "_state_dict_hooks"):
        found = hook(module, destination, prefix, metadata)
        destination = destination if found is None else found
    return destination


def _hooks(module: Any, kind: str) -> list[Any]:
    return [hook for hook, *_ in module.__dict__.get(kind, {}).values()]


_EXTRA = "_extra_state"


def get_extra_state(module: Any) -> Any:
    """What the state of a module has beside its tensors; modules that define it define ``set_extra_state``, too.

    >>> import twofold as torch
    >>> class Counter(torch.nn.Module):
    ...     count = 3
    ...     def get_extra_state(self):
    ...         return self.count
    ...     def set_extra_state(self, state):
    ...         self.count = state
    >>> Counter().state_dict()
    OrderedDict([('_extra_state', 3)])
    """
    raise RuntimeError(
        f"get_extra_state: {type(module).__name__} has no state beside its tensors. Define get_extra_state and "
        "set_extra_state in its class."
    )


def set_extra_state(module: Any, state: Any) -> None:
    """Take what ``get_extra_state`` gave; called by ``load_state_dict``."""
    raise RuntimeError(
        f"set_extra_state: {type(module).__name__} has no state beside its tensors. Define get_extra_state and "
        "set_extra_state in its class."
    )


def is_kept(value: Any) -> bool:
    """Whether a value can be a buffer: a tensor, a sparse one too."""
    return isinstance(value, Tensor) or getattr(value, "layout", None) is sparse_coo


def own_members(module: Any) -> dict[str, Tensor]:
    """Parameters and persistent buffers of the module itself."""
    hidden = module._non_persistent_buffers_set
    members = {**module._parameters, **{name: b for name, b in module._buffers.items() if name not in hidden}}
    return {name: member for name, member in members.items() if member is not None}


def save_own_state(module: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Enter the module's own members."""
    for name, member in own_members(module).items():
        destination[prefix + name] = member if keep_vars else member.detach()
    if type(module).get_extra_state is not get_extra_state:
        destination[prefix + _EXTRA] = module.get_extra_state()


def load_own_state(
    module: Any,
    state_dict: Mapping[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Copy the module's own members; what is wrong is added to the lists."""
    for hook in _hooks(module, "_load_state_dict_pre_hooks"):
        hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    members = own_members(module)
    assigned = local_metadata.get("assign_to_params_buffers", False)
    for name, member in members.items():
        key = prefix + name
        if key in state_dict:
            problem = _load_member(module, name, member, state_dict[key], key, assigned)
            if problem:
                error_msgs.append(problem)
        elif strict:
            missing_keys.append(key)
    extra, takes_extra = prefix + _EXTRA, type(module).set_extra_state is not set_extra_state
    if takes_extra and extra in state_dict:
        module.set_extra_state(state_dict[extra])
    elif takes_extra and strict:
        missing_keys.append(extra)
    if not strict:
        return
    for key in state_dict:
        if key.startswith(prefix) and not (takes_extra and key == extra):
            first, *rest = key[len(prefix) :].split(".", 1)
            if first not in (module._modules if rest else members):
                unexpected_keys.append(key)


def _load_member(module: Any, name: str, member: Tensor, given: Any, key: str, assigned: bool) -> str | None:
    if not is_kept(given):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint "
            f"but received {type(given)}"
        )
    if member.ndim == 0 and given.ndim == 1 and len(given):
        given = given[0]  # a number that versions before 0.4 saved with one axis
    if tuple(given.shape) != tuple(member.shape):
        return (
            f"size mismatch for {key}: copying a param with shape {_size(given)} from checkpoint, "
            f"the shape in current model is {_size(member)}."
        )
    if assigned:
        if isinstance(member, Parameter):
            if isinstance(given, Parameter):
                given.requires_grad_(member.requires_grad)
            else:
                given = Parameter(given, member.requires_grad)
        setattr(module, name, given)
        return None
    with _core.GradientMode(False):
        member.copy_(given)
    return None


def _size(tensor: Tensor) -> str:
    return f"torch.Size({list(tensor.shape)})"


def _advice(missing: list[str], unexpected: list[str]) -> str:
    """What to change where a state does not fit."""
    prefix = (
        next((key.removesuffix(missing[0]) for key in unexpected if key.endswith(missing[0])), "")
        if missing
        else ""
    )
    if prefix and sorted(unexpected) == sorted(prefix + key for key in missing):
        take_off = "nn.modules.utils.consume_prefix_in_state_dict_if_present"
        return f"All keys begin with {prefix!r}: take it off with {take_off}(state_dict, {prefix!r})."
    if missing or unexpected:
        return "Make the model as it was when its state was saved, or pass strict=False to load what fits."
    return "Make the model with the sizes that it had when its state was saved."


def load_state(module: Any, state_dict: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Copy a state into ``module`` and all below it."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    metadata = getattr(state_dict, "_metadata", {})
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []

    def load(part: Any, found: Mapping[str, Any], prefix: str) -> None:
        local = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        part._load_from_state_dict(found, prefix, local, True, missing, unexpected, errors)
        for name, child in part._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                load(child, {key: value for key, value in found.items() if key.startswith(below)}, below)
        for hook in _hooks(part, "_load_state_dict_post_hooks"):
            if hook(part, IncompatibleKeys(missing, unexpected)) is not None:
                raise RuntimeError(
                    "load_state_dict post-hook must return None: it changes the lists it is given"
                )

    load(module, OrderedDict(state_dict), "")
    if strict:
        if unexpected:
            errors.insert(
                0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{key}"' for key in unexpected))
            )
        if missing:
            errors.insert(
                0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{key}"' for key in missing))
            )
    if errors:
        listed = "\n\t".join([*errors, _advice(missing, unexpected)])
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}")
    return IncompatibleKeys(missing, unexpected)
