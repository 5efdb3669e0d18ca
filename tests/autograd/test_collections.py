"""Garbage is collected at any time: what a program calls then may read values that a backward pass works on."""

from __future__ import annotations

import contextlib
import gc
import threading

import pytest

import twofold as torch


@pytest.mark.parametrize("hooked", [False, True])
def test_values_are_read_while_garbage_is_collected(hooked):
    waiting: list[torch.Tensor] = []
    left, seen, here = [0], [], threading.get_ident()

    def read(phase, info):
        if threading.get_ident() != here:
            return
        left[0] -= 1
        if left[0] == 0:
            with contextlib.suppress(RuntimeError):  # of a value that is being computed
                seen.append((waiting[0] * 2).sum().item())

    def gradient(size, skipped):
        w = torch.full((4, 4), 0.5, requires_grad=True)
        h = torch.arange(4.0 * size).reshape(size, 4).sin() @ w
        if hooked:
            h.register_hook(lambda gradient: gradient * 1.0)
        y = (h.tanh() * h).softmax(-1)[:2].sum() + h.exp().mean(size % 2)[:1].sum()
        torch.wait_for_compiler()  # collections of its thread are none of this one
        waiting[:], left[0] = [h, y], skipped
        y.backward()
        left[0] = 0
        return None if w.grad is None else w.grad.tolist()

    torch.compiler.reset()
    thresholds = gc.get_threshold()
    gc.callbacks.append(read)
    gc.set_threshold(1, 1, 1)
    try:
        found = [gradient(2 + skipped % 7, skipped) for skipped in range(1, 80)]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(read)
    assert found == [gradient(2 + skipped % 7, 0) for skipped in range(1, 80)] and seen
