"""A loss that is read before its backward pass has the gradients of one that is not, repeated and after changes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy
import pytest

import twofold as torch

STEPS = 9
Params = dict[str, torch.Tensor]


def parameters() -> Params:
    random = numpy.random.default_rng(0)
    shapes = {"a": (6, 6), "b": (6, 6), "bias": (6,), "table": (11, 6)}
    made = {
        name: torch.tensor(random.standard_normal(shape).astype("float32")) for name, shape in shapes.items()
    }
    return {name: value.requires_grad_() for name, value in made.items()}


class Program:
    """Some steps of training, of which step ``at`` is another one."""

    def __init__(self, reads: bool, change: str, at: int) -> None:
        self.reads, self.change, self.at = reads, change, at
        self.p, self.seen = parameters(), []
        self.hooks: list[object] = []

    def forward(self, x: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        p = self.p
        hidden = torch.tanh(x @ p["a"] + p["bias"]) + p["table"][words]
        if self.is_now("retained"):
            hidden.retain_grad()
            self.hooks.append(hidden)
        if self.is_now("hooked value"):
            hidden.register_hook(lambda gradient: gradient * 3)
        if self.is_now("read in the middle") and self.reads:
            hidden.sum().item()
        if self.is_now("detached"):
            hidden = hidden.detach()
        for _ in range(3):
            hidden = torch.sigmoid(hidden @ p["b"]) * hidden
        return (hidden * hidden).mean()

    def is_now(self, change: str) -> bool:
        return self.change == change and self.step == self.at

    def before(self) -> None:
        if self.change == "frozen" and self.step in (self.at, self.at + 2):
            self.p["a"].requires_grad_(self.step != self.at)
        if self.is_now("tied"):
            self.p["b"] = self.p["a"]
        if self.is_now("hooked leaf"):
            self.p["a"].register_hook(lambda gradient: gradient * 2)
        if self.is_now("hooked after"):
            self.p["a"].register_post_accumulate_grad_hook(
                lambda leaf: self.seen.append(leaf.grad.numpy().copy())
            )

    def backward(self, loss: torch.Tensor) -> None:
        if self.is_now("retain"):
            loss.backward(retain_graph=True)
        if self.is_now("seeded"):
            loss.backward(torch.tensor(2.0))
        elif self.is_now("grad"):
            self.seen += [g.numpy().copy() for g in torch.autograd.grad(loss, [self.p["a"], self.p["b"]])]
        elif self.is_now("overwritten") or self.is_now("overwritten and read"):
            with torch.no_grad():
                self.p["b"].mul_(0.5)
                if self.change != "overwritten":
                    self.p["b"].sum().item()
            with pytest.raises(RuntimeError, match="written"):
                loss.backward()
        else:
            loss.backward()
            if self.is_now("twice"):
                with pytest.raises(RuntimeError, match="second time|freed"):
                    loss.backward()

    def run(self) -> list[bytes]:
        random = numpy.random.default_rng(1)
        for self.step in range(STEPS):
            self.before()
            x = torch.tensor(random.standard_normal((4, 6)).astype("float32"))
            words = torch.tensor(random.integers(0, 11, 4))
            if self.change == "input":
                x.requires_grad_(self.step % 3 != 2)
            loss = self.forward(x, words)
            if self.reads:
                loss.item()
            self.backward(loss)
            leaves = [*self.p.values(), x]
            self.seen += [leaf.grad.numpy().copy() for leaf in leaves if leaf.grad is not None]
            with torch.no_grad():
                for leaf in dict.fromkeys(self.p.values()):
                    if leaf.grad is not None:
                        leaf -= 0.1 * leaf.grad
                        leaf.grad = leaf.grad if self.is_now("accumulated") else None
        self.seen += [hidden.grad.numpy() for hidden in self.hooks]
        return [array.tobytes() for array in self.seen]


@contextlib.contextmanager
def counted() -> Iterator[Callable[[], int]]:
    before = torch.stats().replayed_passes
    yield lambda: torch.stats().replayed_passes - before


CHANGES = [
    "none",
    "frozen",
    "tied",
    "input",
    "retain",
    "seeded",
    "grad",
    "overwritten",
    "overwritten and read",
    "twice",
    "accumulated",
    "detached",
    "retained",
    "hooked value",
    "hooked leaf",
    "hooked after",
    "read in the middle",
]


@pytest.mark.parametrize("at", [1, 5])
@pytest.mark.parametrize("change", CHANGES)
def test_reading_the_loss_changes_no_gradient(change: str, at: int) -> None:
    with counted() as replayed:
        read = Program(True, change, at).run()
        assert change != "none" or replayed() >= STEPS - 4
    assert read == Program(False, change, at).run()
    assert read == Program(True, change, at).run()


def test_models_in_turn_keep_apart() -> None:
    def run(reads: bool) -> list[bytes]:
        programs = [Program(reads, "none", 0) for _ in range(2)]
        programs[1].p["a"] = (programs[1].p["a"].detach() * 2).requires_grad_()
        seen = []
        for step in range(8):
            for program in programs:
                program.step = step
                loss = program.forward(torch.ones(2, 6) * step, torch.tensor([step, 3]))
                if reads:
                    loss.item()
                loss.backward()
                seen += [leaf.grad.numpy().tobytes() for leaf in program.p.values()]
                for leaf in program.p.values():
                    leaf.grad = None
        return seen

    assert run(True) == run(False)


@pytest.mark.parametrize("kind", ["leaf", "intermediate", "input"])
def test_memory_that_is_set_before_a_pass_that_would_be_replayed(kind: str) -> None:
    w, x = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([1.0, 4.0])
    slopes, expected = [], []
    for step in range(12):
        w.grad = None
        w.data, x.data = torch.tensor([2.0, 3.0]), torch.tensor([1.0, 4.0])
        replaced = torch.tensor([5.0, step])
        replaced.tolist()
        y = w * x
        loss = (y * y * w).sum()
        loss.item()
        factors = {"leaf": w, "intermediate": y, "input": x}
        read = {name: factor.detach().numpy().copy() for name, factor in factors.items()}
        read["square"] = read["intermediate"] ** 2
        if step in (5, 9):
            factors[kind].data = replaced  # nothing is recorded for that
            read[kind] = replaced.numpy().copy()
        loss.backward()
        slopes.append(w.grad.tolist())
        expected.append((read["square"] + 2 * read["intermediate"] * read["leaf"] * read["input"]).tolist())
    assert slopes == expected
    assert slopes[4] == slopes[8] != slopes[5]


def identity(value: torch.Tensor) -> torch.Tensor:
    return value


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("how", ["plain", "packed", "shared with an array", "written to"])
def test_a_leaf_that_is_frozen_before_the_pass_has_no_gradient(how: str, reads: bool) -> None:
    frozen, free = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    if how == "shared with an array":
        frozen = torch.from_numpy(numpy.ones(3, numpy.float32)).requires_grad_()
    packs = torch.autograd.graph.saved_tensors_hooks(identity, identity)
    seen = []
    for step in range(9):
        frozen.requires_grad_(True)
        with packs if how == "packed" else contextlib.nullcontext():
            loss = (frozen * free).sum()
        if how == "written to":
            loss = frozen.sum() * 2 + free.sum()
        if reads:
            loss.item()
        if how == "written to":
            with torch.no_grad():
                frozen.add_(1)
        frozen.requires_grad_(step not in (4, 8))
        loss.backward()
        seen.append((None if frozen.grad is None else frozen.grad.tolist(), free.grad.tolist()))
        frozen.grad = free.grad = None
    ones, twos = [1.0] * 3, [2.0] * 3
    assert seen == [(None if step in (4, 8) else twos, ones) for step in range(9)]
