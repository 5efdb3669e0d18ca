"""The frameworks that are measured, and how each runs the workloads."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timing import Case
from workloads import eager_style, session_style

Loader = Callable[[], Callable[[str], "Case | None"]]


@dataclass(frozen=True)
class Framework:
    """One column of the table."""

    title: str
    module: str
    package: str
    load: Loader


def _threads() -> int:
    return int(os.environ["BENCH_THREADS"])


def _twofold() -> Callable[[str], Case | None]:
    torch = importlib.import_module("twofold")
    return lambda workload: eager_style.case(workload, torch, None)


def _twofold_compile() -> Callable[[str], Case | None]:
    torch = importlib.import_module("twofold")
    return lambda workload: (
        eager_style.case(workload, torch, torch.compile) if workload == "call_six" else None
    )


def _twofold_static() -> Callable[[str], Case | None]:
    tf = importlib.import_module("twofold.static")
    return lambda workload: session_style.case(workload, tf)


def _torch(compiled: bool, **adam: Any) -> Callable[[str], Case | None]:
    torch = importlib.import_module("torch")
    torch.set_num_threads(_threads())
    compile = torch.compile if compiled else None

    def case(workload: str) -> Case | None:
        if adam and not compiled and not workload.startswith("train"):
            return None
        return eager_style.case(workload, torch, compile, **adam)

    return case


def _jax() -> Callable[[str], Case | None]:
    return importlib.import_module("workloads.jax_style").case


def _tensorflow() -> Callable[[str], Case | None]:
    tf = importlib.import_module("tensorflow").compat.v1
    tf.disable_eager_execution()
    return lambda workload: session_style.case(workload, tf)


FRAMEWORKS = {
    "twofold": Framework("Twofold, define-by-run", "twofold", "twofold", _twofold),
    "twofold_static": Framework("Twofold, define-then-run", "twofold.static", "twofold", _twofold_static),
    "twofold_compile": Framework("Twofold, compiled function", "twofold", "twofold", _twofold_compile),
    "torch": Framework("torch eager", "torch", "torch", lambda: _torch(False)),
    "torch_fused": Framework("torch eager, fused Adam", "torch", "torch", lambda: _torch(False, fused=True)),
    "torch_compile": Framework("torch.compile", "torch", "torch", lambda: _torch(True, fused=True)),
    "jax": Framework("jax.jit", "jax", "jax", _jax),
    "tensorflow": Framework("TensorFlow 1 session", "tensorflow", "tensorflow-cpu", _tensorflow),
}


def installed(framework: Framework) -> bool:
    """Whether the framework's top module can be found."""
    return importlib.util.find_spec(framework.module.split(".")[0]) is not None
