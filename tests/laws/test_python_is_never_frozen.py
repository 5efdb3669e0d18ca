"""Law 9: define-by-run records on every call, so nothing of the Python program is ever frozen."""

import random

import twofold as torch


def test_branches_constants_and_closures_follow_the_program():
    x = torch.arange(4.0)
    choose = random.Random(0)
    state = {"scale": 1.0}

    def program():
        y = x * state["scale"]
        if y.sum() > 20:
            return (y - 1).max().item()
        for _ in range(choose_now):
            y = y + 1
        return y.max().item()

    for _ in range(50):
        choose_now = choose.randrange(4)
        state["scale"] = float(choose.randrange(1, 6))
        top = 3 * state["scale"]
        expected = top - 1 if 6 * state["scale"] > 20 else top + choose_now
        assert program() == expected
