"""Law 6: another size, another number, and no machine code is made."""

import twofold as torch
from twofold.compiler import jit


def test_new_sizes_and_scalars_reuse_machine_code(monkeypatch):
    w = torch.randn(12, 30, requires_grad=True)

    def step(batch, rate):
        x = torch.randn(batch, 30)
        loss = torch.cross_entropy(torch.relu(x @ w.t()), torch.zeros(batch, dtype=torch.int64))
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad * rate)
        w.grad = None
        return loss.item()

    for batch in (20, 33, 47):  # several ragged sizes bring out every variant of the kernels
        for rate in (0.1, 0.2, 0.3):
            step(batch, rate)
            torch.wait_for_compiler()

    def refuse(texts):
        raise AssertionError(f"machine code for a new size: {list(texts)}")

    monkeypatch.setattr(jit, "compile_kernels", refuse)
    monkeypatch.setattr("twofold.compiler.compile.compile_kernels", refuse)
    for batch in (35, 40, 61):
        for rate in (0.5, 0.25):
            step(batch, rate)
            torch.wait_for_compiler()
