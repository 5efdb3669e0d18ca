"""A second backward pass through values that the first one used up is refused, however the trace was run before."""

from __future__ import annotations

import random

import pytest

import twofold as torch

USED_UP = "Trying to backward through the graph a second time"


def leaf():
    return torch.tensor([0.5, 1.5], requires_grad=True)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_gradients_are_asked_for_twice(rounds):
    x = leaf()
    for _ in range(rounds):
        y = (x * x).sum()
        assert torch.autograd.grad(y, x)[0].tolist() == [1.0, 3.0]
        with pytest.raises(RuntimeError, match=USED_UP):
            torch.autograd.grad(y, x)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_gradients_and_then_a_pass_to_the_leaves(rounds):
    x = leaf()
    for _ in range(rounds):
        y = (x * x).sum()
        torch.autograd.grad(y, x)
        with pytest.raises(RuntimeError, match=USED_UP):
            y.backward()
        assert x.grad is None


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("look", [False, True])
def test_two_passes_through_a_shared_part(rounds, look):
    x = leaf()
    for _ in range(rounds):
        x.grad = None
        shared = x.exp()
        a, b = shared.sum(), (shared * 2).sum()
        if look:
            assert a.item() > 0
        a.backward(retain_graph=True)
        b.backward()
        with pytest.raises(RuntimeError, match=USED_UP):
            a.backward()


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("look", [False, True])
def test_a_graph_that_keeps_no_values_is_passed_again(rounds, look):
    x = leaf()
    for _ in range(rounds):
        x.grad = None
        y = (-(x + 1).reshape(2, 1)).sum()
        if look:
            assert y.item() == -4.0
        y.backward()
        y.backward()
        assert x.grad.tolist() == [-2.0, -2.0]


def test_a_pass_for_one_input_leaves_the_way_to_another():
    x, w = leaf(), leaf()
    for _ in range(3):
        y = x.exp() + w.exp()
        total = y.sum()
        (first,) = torch.autograd.grad(total, x)
        (second,) = torch.autograd.grad(total, w)
        assert first.tolist() == second.tolist()
        with pytest.raises(RuntimeError, match=USED_UP):
            total.backward()


def test_a_pass_that_ends_at_a_value_leaves_what_is_above_it():
    x = leaf()
    for _ in range(3):
        x.grad = None
        h = x.exp()
        total = (h * 3).sum()
        assert torch.autograd.grad(total, h)[0].tolist() == [3.0, 3.0]
        h.sum().backward()
        assert x.grad.tolist() == x.exp().tolist()


def test_one_pass_from_several_roots():
    x = leaf()
    for _ in range(3):
        x.grad, seen = None, []
        h = x.exp()
        h.register_hook(lambda gradient: seen.append(gradient.tolist()))  # noqa: B023
        torch.autograd.backward([h.sum(), (h * 2).sum()])
        assert seen == [[3.0, 3.0]] and x.grad.tolist() == (3 * x.exp()).tolist()
        torch.autograd.grad([x.sum(), (x + 1).sum()], x)


def test_the_graph_of_a_pass_that_makes_a_graph_may_be_given_up():
    x = leaf()
    y = x.exp().sum()
    y.backward(create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=USED_UP):
        y.backward()


def test_inputs_of_a_pass_may_be_values_on_the_way():
    x, w = leaf(), leaf()
    h = x * w
    h.sum().backward(inputs=[h, x])
    assert h.grad.tolist() == [1.0, 1.0] and x.grad.tolist() == [0.5, 1.5] and w.grad is None
    with pytest.raises(RuntimeError, match="cannot be empty"):
        h.sum().backward(inputs=[])


def test_only_inputs_is_accepted_and_its_opposite_warned_of():
    x = leaf()
    assert torch.autograd.grad((x * x).sum(), x, only_inputs=True)[0].tolist() == [1.0, 3.0]
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        torch.autograd.grad((x * x).sum(), x, only_inputs=False)


class Model:
    """Nodes of a graph that may keep values, which a pass without ``retain_graph`` lets go of."""

    def __init__(self, leaves):
        self.inputs, self.keeps, self.freed = [()] * leaves, [False] * leaves, [False] * leaves

    def node(self, inputs, keeps):
        """The number of a new node."""
        self.inputs.append(inputs)
        self.keeps.append(keeps)
        self.freed.append(False)
        return len(self.inputs) - 1

    def passed(self, roots, targets):
        """The nodes that a pass from the roots runs."""
        above, stack = set(), list(roots)
        while stack:
            node = stack.pop()
            if node not in above:
                above.add(node)
                stack.extend(self.inputs[node])
        if targets is None:
            return above
        leads = set()
        for node in sorted(above):
            if any(one in leads or one in targets for one in self.inputs[node]):
                leads.add(node)
        return leads

    def backward(self, roots, targets, retain):
        """Whether the pass is refused."""
        passed = self.passed(roots, targets)
        if any(self.keeps[node] and self.freed[node] for node in passed):
            return True
        if not retain:
            for node in passed:
                self.freed[node] = True
        return False


UNARY = [
    (lambda x: x.exp(), True),
    (lambda x: x.tanh(), True),
    (lambda x: -x, False),
    (lambda x: x * 2, True),
    (lambda x: x + 1, False),
    (lambda x: x.clone(), False),
]
BINARY = [(lambda x, y: x + y, False), (lambda x, y: x * y, True), (lambda x, y: x - y, False)]


def run_program(seed: int, rounds: int) -> None:
    """A random program, again and again, beside the model."""
    leaves = [leaf() for _ in range(3)]
    for _ in range(rounds):
        choose, values, model, numbers = random.Random(seed), list(leaves), Model(3), [0, 1, 2]

        def add(value, inputs, keeps):
            values.append(value)  # noqa: B023
            numbers.append(model.node(inputs, keeps))  # noqa: B023

        for _ in range(choose.randint(5, 15)):
            kind, i, j = choose.random(), choose.randrange(len(values)), choose.randrange(len(values))
            if kind < 0.4:
                function, keeps = choose.choice(UNARY)
                add(function(values[i]), (numbers[i],), keeps)
            elif kind < 0.6:
                function, keeps = choose.choice(BINARY)
                add(function(values[i], values[j]), (numbers[i], numbers[j]), keeps)
            elif kind < 0.7:
                values[i].detach().tolist()
            else:
                root = model.node((numbers[i],), False)
                targets = {numbers[j]} if choose.random() < 0.5 else None
                retain = choose.random() < 0.3
                if targets and not targets & model.passed([root], None):
                    continue
                refused = model.backward([root], targets, retain)
                total = values[i].sum()
                try:
                    if targets:
                        torch.autograd.grad(total, values[j], retain_graph=retain)
                    else:
                        total.backward(retain_graph=retain)
                except RuntimeError as error:
                    assert refused and USED_UP in str(error)
                    break  # what of the graph a refused pass has given up is not laid down
                assert not refused


@pytest.mark.parametrize("seed", range(60))
def test_passes_are_refused_where_values_are_gone(seed):
    for rounds in (1, 3, 5):
        run_program(seed, rounds)


@pytest.mark.parametrize("observed_before", [False, True])
@pytest.mark.parametrize("observed_after", [False, True])
def test_nothing_recorded_after_a_used_up_root_has_a_gradient_of_it(observed_before, observed_after):
    x = leaf()
    y = x.exp()
    root = y.sum()
    if observed_before:
        root.item()
    root.backward()
    later, sibling = (y * 3).sum(), x * 2
    if observed_after:
        later.item()
    for target in (later, sibling):
        assert torch.autograd.grad(root, target, allow_unused=True) == (None,)
        with pytest.raises(RuntimeError, match="no path leads"):
            torch.autograd.grad(root, target)
    assert torch.autograd.grad(root, root)[0].item() == 1.0
    with pytest.raises(RuntimeError, match=USED_UP):
        torch.autograd.grad(root, x)
    with pytest.raises(RuntimeError, match=USED_UP):
        torch.autograd.grad(root, (root, x))


def test_a_gradient_stops_at_a_value_whose_graph_is_used_up():
    x = leaf()
    y = x.exp()
    y.sum().backward()
    y.tolist()
    z = (y * 3).sum()
    z.item()
    assert torch.autograd.grad(z, y, retain_graph=True)[0].tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match=USED_UP):
        torch.autograd.grad(z, x)


@pytest.mark.parametrize("observed_before", [False, True])
@pytest.mark.parametrize("observed_after", [False, True])
def test_a_gradient_is_not_without_the_part_that_was_used_up(observed_before, observed_after):
    x = leaf()
    y = x.sin()
    if observed_before:
        y.tolist()
    torch.autograd.grad(y.sum(), x)
    if observed_after:
        y.tolist()
    z = (y * x).sum()
    with pytest.raises(RuntimeError, match=USED_UP):
        torch.autograd.grad(z, x)
    with pytest.raises(RuntimeError, match=USED_UP):
        torch.autograd.grad(z, (x, y))
    with pytest.raises(RuntimeError, match=USED_UP):
        z.backward(inputs=[x])
    assert x.grad is None


@pytest.mark.parametrize("observed", [False, True])
def test_a_gradient_beside_the_part_that_was_used_up(observed):
    x, w, v, unused = leaf(), leaf(), leaf(), leaf()
    features = (x * w).exp()
    if observed:
        features.tolist()
    (features * v).sum().backward()
    features.tolist()
    total = (features * v).sum()
    found = torch.autograd.grad(total, (v, unused, features), allow_unused=True)
    assert found[0].tolist() == features.tolist() and found[1] is None and found[2].tolist() == v.tolist()


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("slice", lambda x: x[1:3]),
        ("select", lambda x: x.select(0, 1)),
        ("split", lambda x: x.split(2)[1]),
        ("unbind", lambda x: x.unbind(0)[1]),
        ("expand", lambda x: x[0].expand(3, 4)),
        ("pad", lambda x: torch.nn.functional.pad(x, (1, 1))),
        ("tril", lambda x: x.tril(-1)),
        ("addmm", lambda x: torch.addmm(x, torch.ones(4, 4), torch.ones(4, 4), beta=2.0)),
        ("lerp", lambda x: torch.lerp(x, x, 0.25)),
        ("times a number", lambda x: x * 2),
        ("add with alpha", lambda x: torch.add(x, x, alpha=2)),
    ],
)
def test_what_reads_numbers_only_is_passed_again(look, name, function):
    # PyTorch 2.13 allows the second pass for each of these but the product, whose number it lets go of, too
    x = torch.arange(16.0).reshape(4, 4).requires_grad_()
    for _ in range(3):
        x.grad = None
        y = function(x).sum()
        if look:
            y.item()
        y.backward()
        once = x.grad.clone()
        y.backward()
        assert torch.equal(x.grad, 2 * once) and once.abs().sum() > 0
