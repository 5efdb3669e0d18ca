"""``summary()``: the layers of a model with shapes, parameters, floating-point operations and what a backward keeps."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from twofold import _core
from twofold.autograd.graph import saved_tensors_hooks
from twofold.debug.module_scopes import ModuleScopes
from twofold.debug.nesting import tensors_in
from twofold.errors import ArgumentError
from twofold.frontend.gradients import enable_grad, no_grad
from twofold.frontend.sampling import get_rng_state, set_rng_state
from twofold.nn.module import Module
from twofold.runtime.profiling import Recorder
from twofold.runtime.scopes import scope_name
from twofold.runtime.tracing import here

Tensor = _core.Tensor


class Layer(NamedTuple):
    """A module of a model; sums are over all that stands in it.

    ``name`` is what the layer around it calls it. ``parameters`` counts elements; ``saved`` are the bytes of
    values that the backward pass reads, beside parameters.
    """

    path: str
    name: str
    kind: str
    depth: int
    output: tuple[tuple[int, ...], ...]
    parameters: int
    flops: int
    saved: int


class Summary:
    """The layers of a model in the order of their first calls, and its totals."""

    def __init__(self, layers: list[Layer], parameters: int, trainable: int) -> None:
        self.layers = layers
        self.parameters = parameters
        self.trainable = trainable
        self.flops = layers[0].flops
        self.saved = layers[0].saved

    def _cells(self) -> Iterator[tuple[str, str, str, str, str]]:
        for layer in self.layers:
            shown = f"{'  ' * layer.depth}{layer.name} ({layer.kind})" if layer.depth else layer.kind
            shapes = ", ".join(str(list(shape)) for shape in layer.output)
            yield shown, shapes, f"{layer.parameters:,}", f"{layer.flops:,}", f"{layer.saved:,}"

    def __str__(self) -> str:
        rows = [("layer", "output", "parameters", "flops", "saved bytes"), *self._cells()]
        sizes = [max(len(row[k]) for row in rows) for k in range(5)]
        written = [
            "  ".join(
                f"{text:<{size}}" if k < 2 else f"{text:>{size}}"
                for k, (text, size) in enumerate(zip(row, sizes))
            ).rstrip()
            for row in rows
        ]
        rule = "-" * (sum(sizes) + 8)
        total = (
            f"{self.parameters:,} parameters, {self.trainable:,} of them trainable; {self.flops:,} flops forward; "
            f"{self.saved:,} bytes saved for the backward pass"
        )
        return "\n".join([written[0], rule, *written[1:], rule, total])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class _Calls:
    """What the modules of a model returned, and the values kept while it ran."""

    def __init__(self, model: Module) -> None:
        self.first: dict[str, tuple[Module, tuple[tuple[int, ...], ...]]] = {}
        self.saved: dict[str, int] = {}
        self._known = {one.data_ptr() for one in (*model.parameters(), *model.buffers())}

    def on_call(self, module: Module, path: str, result: Any) -> None:
        shapes = tuple(tuple(one.shape) for one in tensors_in(result))
        self.first.setdefault(path, (module, shapes))

    def pack(self, tensor: Tensor) -> Tensor:
        with no_grad():
            address = tensor.data_ptr()
        if address not in self._known:
            self._known.add(address)
            name = scope_name(_core.location_of(tensor))
            self.saved[name] = self.saved.get(name, 0) + tensor.type_.nbytes
        return tensor


def summary(model: Module, *inputs: Any, **keywords: Any) -> Summary:
    """The layers of a model with output shapes, parameters, floating-point operations and bytes saved for the backward.

    The model is called once, in the mode that it is in; buffers and the state of the random numbers are put back.

    Args:
        model: A module.
        inputs: What it is called with.
        keywords: Its arguments by name.

    Raises ArgumentError for what is no module.

    >>> import twofold as torch
    >>> from twofold import nn
    >>> print(torch.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.ones(2, 4)))
    layer         output  parameters  flops  saved bytes
    ----------------------------------------------------
    Sequential    [2, 8]          40    160           64
      0 (Linear)  [2, 8]          40    144            0
      1 (ReLU)    [2, 8]           0     16           64
    ----------------------------------------------------
    40 parameters, 40 of them trainable; 160 flops forward; 64 bytes saved for the backward pass
    """
    if not isinstance(model, Module):
        raise ArgumentError(
            f"summary: {type(model).__name__} is no module, at {here()}", "Give an nn.Module."
        )
    with no_grad():
        state = {name: one.detach().clone() for name, one in model.named_buffers()}
    random, calls, recorder = get_rng_state(), _Calls(model), Recorder()
    recorder.start()
    try:
        with ModuleScopes(calls.on_call), enable_grad(), saved_tensors_hooks(calls.pack, lambda kept: kept):
            result = model(*inputs, **keywords)
            for one in tensors_in(result):
                one._realise()
    finally:
        recording = recorder.stop()
        set_rng_state(random)
        with no_grad():
            for name, one in model.named_buffers():
                if name in state:
                    one.copy_(state[name])
    flops: dict[str, int] = {}
    for call in recording.calls():
        flops[call.module] = flops.get(call.module, 0) + int(call.flops)
    return _made(model, calls, flops)


def _made(model: Module, calls: _Calls, flops: dict[str, int]) -> Summary:
    layers = []
    for path in sorted(calls.first, key=_order(list(calls.first))):
        module, shapes = calls.first[path]
        parts = path.split(".")
        above = [one for k in range(1, len(parts)) if (one := ".".join(parts[:k])) in calls.first]
        inside = [name for name in {*flops, *calls.saved} if name == path or name.startswith(path + ".")]
        layers.append(
            Layer(
                path,
                path.removeprefix(above[-1] + ".") if above else path,
                type(module).__name__,
                len(above),
                shapes,
                sum(one.numel() for one in module.parameters()),
                sum(flops.get(name, 0) for name in inside),
                sum(calls.saved.get(name, 0) for name in inside),
            )
        )
    every = list(model.parameters())
    return Summary(
        layers, sum(one.numel() for one in every), sum(one.numel() for one in every if one.requires_grad)
    )


def _order(paths: list[str]) -> Any:
    """Calls end inside first; parents stand before their children, and these in the order of their calls."""
    position = {path: number for number, path in enumerate(paths)}

    def key(path: str) -> tuple[int, ...]:
        parts = path.split(".")
        above = [".".join(parts[: k + 1]) for k in range(len(parts))]
        return tuple(position.get(one, 0) for one in above)

    return key
