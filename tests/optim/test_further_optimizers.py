"""RAdam, NAdam, Adamax, ASGD, Rprop, Adafactor, Muon and LBFGS against numbers of PyTorch 2.13, and PyTorch itself."""

from __future__ import annotations

import io
from typing import Any

import numpy
import pytest

import twofold as torch

# name, settings, and PyTorch's loss before each of three steps and after eight
CASES: list[tuple[str, dict[str, Any], list[float]]] = [
    ("RAdam", {}, [30.465714, 30.235146, 30.006773, 29.330662]),
    (
        "RAdam",
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1},
        [30.465714, 13.926559, 8.7430449, 3.8565259],
    ),
    (
        "RAdam",
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.5, 0.6), "eps": 0.001},
        [30.465714, 13.926558, 8.7135916, 3.0637801],
    ),
    ("RAdam", {"lr": 0.01, "maximize": True}, [30.465714, 32.851532, 35.474701, 45.162174]),
    ("NAdam", {}, [30.465714, 30.373402, 30.305172, 29.911037]),
    (
        "NAdam",
        {
            "lr": 0.1,
            "betas": (0.8, 0.9),
            "weight_decay": 0.1,
            "momentum_decay": 0.1,
            "maximize": True,
            "eps": 0.001,
        },
        [30.465714, 35.611778, 40.458267, 86.803482],
    ),
    (
        "NAdam",
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        [30.465714, 25.891232, 22.959497, 11.925964],
    ),
    ("Adamax", {}, [30.465714, 30.378326, 30.291201, 29.774038]),
    (
        "Adamax",
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True, "eps": 0.001},
        [30.465714, 35.131611, 40.079178, 77.302231],
    ),
    ("ASGD", {}, [30.465714, 28.224485, 26.247034, 18.076023]),
    (
        "ASGD",
        {"lr": 0.02, "lambd": 0.1, "alpha": 0.5, "t0": 2, "weight_decay": 0.1},
        [30.465714, 26.01548, 22.580139, 11.998837],
    ),
    ("ASGD", {"lr": 0.001, "maximize": True}, [30.465714, 30.697721, 30.93265, 32.406433]),
    ("Rprop", {}, [30.465714, 30.031088, 29.517174, 23.949497]),
    (
        "Rprop",
        {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.2)},
        [30.465714, 26.378183, 21.078358, 4.3120561],
    ),
    ("Rprop", {"maximize": True}, [30.465714, 30.906139, 31.442327, 38.486031]),
    ("Adafactor", {}, [30.465714, 30.166208, 29.870947, 28.184132]),
    (
        "Adafactor",
        {
            "lr": 0.1,
            "beta2_decay": -0.5,
            "eps": (0.0001, 0.01),
            "d": 1.5,
            "weight_decay": 0.1,
            "maximize": True,
        },
        [30.465714, 33.619503, 37.350311, 84.234207],
    ),
    ("Muon", {}, [30.465714, 30.438334, 30.410995, 30.24679]),
    (
        "Muon",
        {
            "lr": 0.1,
            "weight_decay": 0.2,
            "momentum": 0.8,
            "nesterov": False,
            "adjust_lr_fn": "match_rms_adamw",
        },
        [30.465714, 29.106628, 27.818594, 21.419987],
    ),
    (
        "Muon",
        {"lr": 0.1, "ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 8, "eps": 0.001},
        [30.465714, 27.255175, 24.378967, 13.075921],
    ),
    ("LBFGS", {"lr": 0.1}, [30.465714, 3.4003708, 2.9108167, 2.9040327]),
    (
        "LBFGS",
        {"max_iter": 4, "history_size": 3, "line_search_fn": "strong_wolfe"},
        [30.465714, 2.9477513, 2.9043498, 2.9040325],
    ),
    (
        "LBFGS",
        {"lr": 0.5, "max_iter": 6, "max_eval": 9, "history_size": 2},
        [30.465714, 2.942112, 2.9040582, 2.9040327],
    ),
]


class Problem:
    """A quartic of two matrices, minimised with one library."""

    def __init__(self, library: Any, name: str, settings: dict[str, Any]) -> None:
        self.library = library
        random = numpy.random.default_rng(0)
        draws = [
            random.normal(size=(3, 2, 4)).astype(numpy.float32),
            random.normal(size=(3, 3, 2)).astype(numpy.float32),
        ]
        self.targets = [library.tensor(draw[1].copy()) for draw in draws]
        self.weights = [library.tensor(numpy.abs(draw[2]) + 0.5) for draw in draws]
        self.params = [library.tensor(draw[0].copy(), requires_grad=True) for draw in draws]
        self.optimizer = getattr(library.optim, name)(self.params, **settings)

    def loss(self) -> Any:
        """The loss, with gradients."""
        self.optimizer.zero_grad()
        parts = zip(self.params, self.weights, self.targets)
        total = sum(((p * a - b) ** 2 + 0.1 * p**4).sum() for p, a, b in parts)
        total.backward()
        return total

    def step(self) -> float:
        """The loss before one step."""
        return float(self.optimizer.step(self.loss).item())

    def run(self) -> list[float]:
        """The losses that are recorded."""
        found = [self.step() for _ in range(8)]
        return [*found[:3], float(self.loss().item())]


def tolerance(name: str) -> float:
    return 1e-4 if name == "LBFGS" else 1e-5


@pytest.mark.parametrize("name, settings, losses", CASES, ids=lambda one: str(one)[:40])
def test_losses_are_those_of_pytorch(name: str, settings: dict[str, Any], losses: list[float]) -> None:
    assert Problem(torch, name, settings).run() == pytest.approx(losses, rel=tolerance(name))


@pytest.mark.parametrize("name, settings, losses", CASES, ids=lambda one: str(one)[:40])
def test_pytorch_goes_on_from_our_state_and_back(
    name: str, settings: dict[str, Any], losses: list[float]
) -> None:
    peer = pytest.importorskip("torch")
    assert Problem(peer, name, settings).run() == pytest.approx(losses, rel=tolerance(name))
    for source, target in ((torch, peer), (peer, torch)):
        first, second = Problem(source, name, settings), Problem(target, name, settings)
        for _ in range(4):
            first.step()
        file = io.BytesIO()
        source.save([first.optimizer.state_dict(), [p.detach() for p in first.params]], file)
        state, values = target.load(io.BytesIO(file.getvalue()))
        for param, value in zip(second.params, values):
            param.data.copy_(value)
        second.optimizer.load_state_dict(state)
        for _ in range(4):
            assert first.step() == pytest.approx(second.step(), rel=tolerance(name))


@pytest.mark.parametrize("name", sorted({case[0] for case in CASES}))
def test_a_step_goes_on_from_a_loaded_state(name: str) -> None:
    first, second = Problem(torch, name, {}), Problem(torch, name, {})
    for _ in range(3):
        first.step()
    file = io.BytesIO()
    torch.save(first.optimizer.state_dict(), file)
    for param, value in zip(second.params, first.params):
        param.data.copy_(value.detach())
    second.optimizer.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
    for _ in range(2):
        assert first.step() == second.step()


def test_settings_that_make_no_sense() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    for name in {case[0] for case in CASES}:
        for rate in (-1.0, float("nan")):
            with pytest.raises(ValueError, match=r"Invalid learning rate|Learning rate should be >= 0"):
                getattr(torch.optim, name)([w], lr=rate)
    for name in ("RAdam", "NAdam", "Adamax"):
        with pytest.raises(ValueError, match="Invalid beta parameter at index 1: 1.0"):
            getattr(torch.optim, name)([w], betas=(0.9, 1.0))
        with pytest.raises(NotImplementedError, match="differentiable"):
            getattr(torch.optim, name)([w], differentiable=True)
    for make, message in (
        (lambda: torch.optim.Rprop([w], etas=(1.0, 1.2)), "Invalid eta values: 1.0, 1.2"),
        (lambda: torch.optim.Adafactor([w], beta2_decay=0.1), "beta2_decay should be <= 0 but is: 0.1"),
        (lambda: torch.optim.Adafactor([w], d=0.5), "Clipping threshold d should be >= 1 but is: 0.5"),
        (lambda: torch.optim.Muon([torch.ones(2, requires_grad=True)]), "Muon only supports 2D parameters"),
        (lambda: torch.optim.Muon([w], adjust_lr_fn="other"), "function other is not supported"),
        (lambda: torch.optim.Muon([w], ns_steps=100), "must be less than 100"),
        (
            lambda: torch.optim.LBFGS([{"params": [w]}, {"params": [torch.ones(1, requires_grad=True)]}]),
            "groups",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        torch.optim.LBFGS([w], line_search_fn="other")
    with pytest.raises(TypeError, match="closure"):
        torch.optim.LBFGS([w]).step()


def test_rosenbrock() -> None:
    """The valley that first-order methods crawl through."""
    x = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)
    assert optimizer.state[x]["func_evals"] < 100


def test_the_average_of_asgd() -> None:
    w = torch.tensor([4.0], requires_grad=True)
    optimizer = torch.optim.ASGD([w], lr=0.1, t0=0)
    seen = []
    for _ in range(4):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        seen.append(w.item())
    assert optimizer.state[w]["ax"].item() == pytest.approx(sum(seen[1:]) / 3)


def test_the_tolerance_of_changes_does_not_end_the_line_search() -> None:
    x = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = torch.optim.LBFGS(
        [x], lr=50.0, max_iter=3, tolerance_change=50.0, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x - torch.tensor([1.0, 5.0])) ** 4).sum() + x.sin().sum() * 3
        loss.backward()
        return loss

    optimizer.step(closure)
    numpy.testing.assert_allclose(x.detach().numpy(), [2.7898, 7.9433], rtol=1e-4)  # of PyTorch 2.13


def test_an_optimizer_that_is_written_with_helpers_of_pytorch() -> None:
    """Adam as packages write it, with a step that is a tensor, beside Adam; also after its state was loaded."""
    from twofold.optim import optimizer as helpers

    class Own(torch.optim.Optimizer):
        def __init__(self, params) -> None:
            super().__init__(params, {"lr": 0.1, "differentiable": False})

        @helpers._use_grad_for_differentiable
        def step(self, closure=None) -> None:
            self._cuda_graph_capture_health_check()
            for group in self.param_groups:
                lists = [group["params"], [param.grad for param in group["params"]]]
                grouped = self._group_tensors_by_device_and_dtype(lists, with_indices=True)
                for (params, grads), _ in grouped.values():
                    for param, grad in zip(params, grads, strict=True):
                        self.change(param, grad, group["lr"])

        def change(self, param, grad, lr) -> None:
            state = self.state[param]
            if not state:
                state["step"] = torch.tensor(0.0, dtype=helpers._get_scalar_dtype())
                state["mean"], state["square"] = torch.zeros_like(param), torch.zeros_like(param)
            state["step"] += 1
            step = helpers._get_value(state["step"])
            state["mean"].lerp_(grad, 0.1)
            state["square"].mul_(0.999).addcmul_(grad, grad, value=0.001)
            denominator = (state["square"] / (1 - 0.999**step)).sqrt() + 1e-8
            param.addcdiv_(state["mean"], denominator, value=-lr / (1 - 0.9**step))

    assert helpers._default_to_fused_or_foreach([torch.zeros(1)], False, True) == (True, False)
    assert helpers._default_to_fused_or_foreach([torch.zeros(1)], True, True) == (False, False)
    own, adam = (torch.tensor([1.0, -2.0, 3.0], requires_grad=True) for _ in range(2))
    optimizers = [Own([own]), torch.optim.Adam([adam], lr=0.1)]
    for k in range(4):
        if k == 2:
            state = optimizers[0].state_dict()
            optimizers[0] = Own([own])
            optimizers[0].load_state_dict(state)
        for param, optimizer in zip((own, adam), optimizers, strict=True):
            optimizer.zero_grad()
            (param**4).sum().backward()
            optimizer.step()
    torch.testing.assert_close(own, adam)


def test_complex_lists_become_views_of_real_numbers() -> None:
    from twofold.optim.optimizer import _view_as_real

    params, grads = (
        [torch.ones(2, dtype=torch.complex64), torch.ones(2)],
        [torch.zeros(2, dtype=torch.complex64), None],
    )
    first = params[0]
    _view_as_real(params, grads)
    params[0][0, 1] = 5
    assert first.tolist() == [1 + 5j, 1 + 0j] and grads[0].shape == (2, 2) and grads[1] is None
