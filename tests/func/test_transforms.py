"""Transforms of functions: their values, how they stand inside each other, and what they leave behind."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
from twofold import _core, func
from twofold.compiler.linking import Trace


def arrays(*shapes):
    generator = numpy.random.default_rng(0)
    return [torch.tensor(generator.normal(size=shape), dtype=torch.float64) for shape in shapes]


def close(found, wanted, near=1e-10):
    numpy.testing.assert_allclose(found.detach().numpy(), numpy.asarray(wanted), rtol=near, atol=near)


def cubes(x):
    return (x**3).sum()


# Gradients


def test_grad_of_grad_of_grad():
    (x,) = arrays((4,))
    third = func.grad(lambda x: func.grad(lambda x: func.grad(cubes)(x).sum())(x).sum())(x)
    close(third, numpy.full(4, 6.0))
    assert not third.requires_grad


def test_grad_runs_plain_python_that_branches():
    def f(x):
        return (x * 2).sum() if x.sum() > 0 else (x * 3).sum()

    close(func.grad(f)(torch.ones(2)), [2, 2])
    close(func.grad(f)(-torch.ones(2)), [3, 3])
    close(func.jvp(f, (-torch.ones(2),), (torch.ones(2),))[1], 6)


def test_argnums_and_trees():
    x, y = arrays((3,), (3,))
    parameters = {"w": x, "b": (y,)}

    def f(p, scale, q):
        return (p["w"] * p["b"][0] * q).sum() * scale

    found = func.grad(f)(parameters, 2.0, y)
    close(found["w"], 2 * y.numpy() ** 2)
    close(found["b"][0], 2 * (x * y).numpy())
    both = func.grad(f, argnums=(0, -1))(parameters, 2.0, y)
    close(both[1], 2 * (x * y).numpy())


def test_aux():
    x, _ = arrays((3,), (3,))
    found, aux = func.grad(lambda x: (cubes(x), {"twice": 2 * x, "name": "f"}), has_aux=True)(x)
    close(found, 3 * x.numpy() ** 2)
    assert aux["name"] == "f" and not aux["twice"].requires_grad
    _gradient, (value, aux) = func.grad_and_value(lambda x: (cubes(x), x), has_aux=True)(x)
    close(value, (x.numpy() ** 3).sum())
    _output, pull, aux = func.vjp(lambda x: (x * 2, x), x, has_aux=True)
    close(pull(torch.ones(3, dtype=torch.float64))[0], [2, 2, 2])
    close(func.jvp(lambda x: (x * 2, x), (x,), (x,), has_aux=True)[1], 2 * x.numpy())


def test_a_gradient_leaves_nothing_behind():
    x, w = arrays((3,), (3,))
    w.requires_grad_()
    assert not func.grad(cubes)(x).requires_grad
    found = func.grad(lambda x: (x * x * w).sum())(x)
    assert found.requires_grad
    found.sum().backward()
    close(w.grad, 2 * x.numpy())
    with torch.no_grad():
        assert not func.grad(lambda x: (x * x * w).sum())(x).requires_grad
    assert x.grad is None and not x.requires_grad


def test_gradients_flow_to_an_argument_that_requires_them():
    (x,) = arrays((3,))
    x.requires_grad_()
    func.grad(cubes)(x).sum().backward()
    close(x.grad, 6 * x.detach().numpy())
    assert not func.grad(cubes)(x.detach()).requires_grad


def test_detach_stops_the_inner_gradient():
    (x,) = arrays((3,))
    close(func.grad(lambda x: (x * x.detach()).sum())(x), x.numpy())

    def frozen(x):
        with torch.no_grad():
            scale = x * 2
        return (x * scale).sum()

    close(func.grad(frozen)(x), 2 * x.numpy())


def test_pullback_can_be_called_again_and_takes_trees():
    x, y = arrays((3,), (2, 3))
    output, pull = func.vjp(lambda x, y: {"s": x.sin(), "m": (y @ x,)}, x, y)
    ones = {"s": torch.ones_like(x), "m": (torch.ones(2, dtype=torch.float64),)}
    for _ in range(2):
        gx, gy = pull(ones)
        close(gx, numpy.cos(x.numpy()) + y.numpy().sum(0))
        close(gy, numpy.tile(x.numpy(), (2, 1)))
    close(output["m"][0], y.numpy() @ x.numpy())


def test_a_path_that_does_not_lead_anywhere_is_zero():
    x, y = arrays((3,), (2,))
    _, pull = func.vjp(lambda x, y: x * 2, x, y)
    close(pull(torch.ones_like(x))[1], [0, 0])
    _output, pushed = func.jvp(lambda x: (x * 2, torch.ones(2)), (x,), (x,))
    close(pushed[1], [0, 0])


# Forward mode


def test_jvp_of_jvp():
    x, v = arrays((3,), (3,))
    one = lambda x: func.jvp(lambda x: x**3, (x,), (v,))[1]
    close(func.jvp(one, (x,), (v,))[1], 6 * x.numpy() * v.numpy() ** 2)


def test_hessian_vector_products_agree():
    x, v = arrays((4,), (4,))
    f = lambda x: (x.sin() * x.prod()).sum()
    forward = func.jvp(func.grad(f), (x,), (v,))[1]
    _, pull = func.vjp(func.grad(f), x)
    close(forward, func.hessian(f)(x).numpy() @ v.numpy())
    close(pull(v)[0], forward.numpy())


def test_linearize():
    x, v = arrays((3,), (3,))
    calls = []

    def f(x):
        calls.append(1)
        return x.sin(), x.sum()

    _output, push = func.linearize(f, x)
    close(push(v)[0], numpy.cos(x.numpy()) * v.numpy())
    close(push(2 * v)[1], 2 * v.numpy().sum())
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("f", "count", "wanted"),
    [
        (torch.exp, 1, ["exp", "multiply"]),
        (lambda x: (x.sin() * x).sin(), 1, ["add", "cos", "cos", *["multiply"] * 5, "sin"]),
        (torch.matmul, 2, ["add", "matmul", "matmul"]),
    ],
    ids=["exp", "chain", "matmul"],
)
def test_forward_mode_costs_what_a_forward_rule_would(f, count, wanted):
    """What only the pullback computes is dead: nothing is left of it in the graph of the tangent alone."""
    values = [torch.rand(3, 3) + 1 for _ in range(2 * count)]
    for value in values:
        value.numpy()
    pushed = func.jvp(f, tuple(values[:count]), tuple(values[count:]))[1]
    pushed.numpy()
    graph = Trace.of(_core.describe_executable(_core.last_executable())).inlined()
    names = sorted(node.op.name for node in graph.nodes() if node.op.kind not in ("source", "view"))
    assert names == wanted


# Every sample


def test_vmap_where_axes_stand():
    x, y = arrays((2, 3, 4), (4, 3))
    f = lambda a, b: (a * b).sum()
    close(func.vmap(f, (2, 0))(x[:, :, :], y), numpy.einsum("ijk,kj->k", x.numpy(), y.numpy()))
    close(func.vmap(f, (-1, None))(x, y[0]), numpy.einsum("ijk,j->k", x.numpy(), y[0].numpy()))
    close(func.vmap(lambda a: a * 2, 1, -1)(x), 2 * x.numpy().transpose(0, 2, 1))
    nested = func.vmap(lambda p: p["a"] + p["b"][0], ({"a": 0, "b": (None,)},))({"a": y, "b": (y[0],)})
    close(nested, y.numpy() + y[0].numpy())


def test_vmap_results_that_all_samples_share():
    (x,) = arrays((3, 2))
    one, other = func.vmap(lambda a: (torch.ones(2), a), out_dims=(None, 0))(x)
    assert one.shape == (2,) and other.shape == (3, 2)
    assert func.vmap(lambda a: torch.ones(2))(x).shape == (3, 2)
    close(func.vmap(lambda a: a)(x), x.numpy())


def test_vmap_of_vmap():
    x, y = arrays((3, 4), (5, 4))
    distances = func.vmap(func.vmap(lambda a, b: ((a - b) ** 2).sum(), (None, 0)), (0, None))(x, y)
    close(distances, ((x.numpy()[:, None] - y.numpy()) ** 2).sum(-1))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 8])
def test_chunks_have_the_same_bits(chunk):
    x, y = arrays((7, 5), (5, 5))
    f = lambda a: torch.softmax(a @ y, -1)
    whole = func.vmap(f)(x).numpy()
    assert (func.vmap(f, chunk_size=chunk)(x).numpy() == whole).all()
    assert (whole == func.vmap(f, out_dims=1, chunk_size=chunk)(x).numpy().T).all()


def test_a_sample_has_the_bits_it_has_alone():
    generator = torch.Generator().manual_seed(1)
    w = torch.randn(17, 9, generator=generator)
    x = torch.randn(6, 17, generator=generator)
    f = lambda x, w: torch.log_softmax(torch.tanh(x @ w), -1)[2]
    gradients = func.vmap(func.grad(f, argnums=(0, 1)), (0, None))(x, w)
    for k in range(6):
        for got, wanted in zip(gradients, func.grad(f, argnums=(0, 1))(x[k], w), strict=True):
            assert (got[k].numpy() == wanted.numpy()).all()


def test_gradients_through_vmap():
    x, w = arrays((5, 3), (3,))
    w.requires_grad_()
    func.vmap(lambda a: (a * w).sin().sum())(x).sum().backward()
    close(w.grad, (numpy.cos(x.numpy() * w.detach().numpy()) * x.numpy()).sum(0))
    close(func.grad(lambda w: func.vmap(lambda a: (a * w).sum())(x).sum())(w.detach()), x.numpy().sum(0))


def test_per_sample_gradients_leave_nothing_behind():
    x, w = arrays((5, 3), (4, 3))
    per_sample = func.vmap(func.grad(lambda w, a: ((a @ w.T) ** 2).sum()), (None, 0))
    found = per_sample(w, x)
    assert not found.requires_grad
    w.requires_grad_()
    found = per_sample(w, x)
    assert found.requires_grad
    found.sum().backward()
    close(w.grad, 2 * numpy.tile(x.numpy().sum(0) ** 0, (4, 1)) * (x.numpy().T @ x.numpy()).sum(0))


def test_vmap_of_a_pullback():
    (x,) = arrays((3,))
    _, pull = func.vjp(torch.sin, x)
    (rows,) = func.vmap(pull)(torch.eye(3, dtype=torch.float64))
    close(rows, numpy.diag(numpy.cos(x.numpy())))
    assert not rows.requires_grad


def test_vmap_with_branches_written_as_where():
    (x,) = arrays((6,))
    close(func.vmap(lambda a: torch.where(a > 0, a, -2 * a))(x), numpy.where(x > 0, x, -2 * x))


def test_in_place_inside_vmap():
    (x,) = arrays((4, 3))

    def f(a):
        b = a * 1
        b += 2
        b[0] = 7.0
        return b

    wanted = x.numpy() + 2
    wanted[:, 0] = 7
    close(func.vmap(f)(x), wanted)


def test_randomness():
    x = torch.zeros(4, 5)
    noisy = lambda a: a + torch.randn(5)
    different = func.vmap(noisy, randomness="different")(x).numpy()
    assert len({row.tobytes() for row in different}) == 4
    same = func.vmap(noisy, randomness="same")(x).numpy()
    assert len({row.tobytes() for row in same}) == 1
    dropped = func.vmap(lambda a: torch.nn.functional.dropout(a + 1, 0.5), randomness="different")(
        torch.zeros(8, 64)
    )
    assert len({row.tobytes() for row in dropped.numpy()}) == 8
    grid = func.vmap(func.vmap(noisy, randomness="different"), randomness="different")(torch.zeros(3, 4, 5))
    assert len({row.tobytes() for row in grid.numpy().reshape(12, 5)}) == 12


def test_indexing_by_a_value_of_the_sample():
    (x,) = arrays((4, 5))
    index = torch.tensor([0, 4, 2, 1])
    close(func.vmap(lambda a, i: a[i])(x, index), x.numpy()[numpy.arange(4), index.numpy()])
    (table,) = arrays((7, 3))
    close(func.vmap(lambda i: table[i])(index), table.numpy()[index.numpy()])


def test_no_samples_and_one_sample():
    f = lambda a: torch.softmax(a, 0).sum()
    assert func.vmap(f)(torch.zeros(0, 3)).shape == (0,)
    assert func.vmap(f)(torch.zeros(1, 3)).shape == (1,)
    assert func.vmap(func.grad(f))(torch.zeros(0, 3)).shape == (0, 3)


# All partial derivatives


def test_jacobians_agree():
    x, y = arrays((3,), (2,))

    def f(a, b):
        return {"outer": a.exp()[:, None] * b, "sum": a.sum() * b.sum()}

    reverse = func.jacrev(f, argnums=(0, 1))(x, y)
    forward = func.jacfwd(f, argnums=(0, 1))(x, y)
    for key, shape in (("outer", (3, 2)), ("sum", ())):
        for k, given in enumerate((x, y)):
            assert reverse[key][k].shape == (*shape, *given.shape)
            close(reverse[key][k], forward[key][k].numpy())
    close(func.jacrev(f, chunk_size=2)(x, y)["outer"], reverse["outer"][0].numpy())
    close(func.jacfwd(f, chunk_size=2)(x, y)["outer"], forward["outer"][0].numpy())


def test_hessian_every_way():
    (x,) = arrays((4,))
    f = lambda x: (x.sin() * x.flip(0)).prod() + (x**3).sum()
    wanted = func.hessian(f)(x)
    assert not wanted.requires_grad
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            close(outer(inner(f))(x), wanted.numpy(), 1e-9)


def test_hessian_of_trees():
    x, y = arrays((2,), (3,))
    found = func.hessian(lambda p: p["x"].sum() * p["y"].prod())({"x": x, "y": y})
    assert found["x"]["y"].shape == (2, 3)
    close(found["x"]["x"], numpy.zeros((2, 2)))


def test_batched_hessian():
    (x,) = arrays((5, 3))
    found = func.vmap(func.hessian(cubes))(x)
    close(found, numpy.stack([numpy.diag(6 * row) for row in x.numpy()]))


# Modules


def test_functional_call_puts_everything_back():
    layer = torch.nn.Linear(2, 1)
    before = dict(layer.named_parameters())
    given = {"weight": torch.ones(1, 2)}
    close(func.functional_call(layer, given, torch.tensor([[1.0, 2.0]])) - layer.bias, [[3.0]], 1e-6)
    assert all(layer.get_parameter(name) is value for name, value in before.items())
    with pytest.raises(ZeroDivisionError):
        func.functional_call(_Failing(), {"w": torch.ones(2)}, ())


class _Failing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(2))

    def forward(self):
        assert (self.w == 1).all()
        return 1 // 0


class _Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 2, bias=False)
        self.second = torch.nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def test_tied_weights():
    module, x = _Tied(), torch.ones(1, 2)
    given = {"first.weight": 2 * torch.eye(2)}
    close(func.functional_call(module, given, x), [[4, 4]])
    loose = func.functional_call(module, given, x, tie_weights=False)
    close(loose, (2 * x @ module.second.weight.T).detach().numpy())


def test_ensembles():
    models = [
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)) for _ in range(3)
    ]
    parameters, buffers = func.stack_module_state(models)
    x = torch.randn(5, 3)
    found = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    for k, model in enumerate(models):
        assert (found[k].detach().numpy() == model(x).detach().numpy()).all()
    found.sum().backward()
    assert parameters["0.weight"].grad.shape == (3, 4, 3)


# Declared before running


def test_a_compiled_transform_runs_no_python_again():
    def f(x):
        return (x.sin() ** 2).sum()

    compiled = torch.compile(func.vmap(func.grad(f)))
    x = torch.randn(4, 3)
    first = compiled(x).numpy()
    assert (compiled(x).numpy() == first).all() and len(compiled.graphs) == 1
    assert (func.vmap(func.grad(f))(x).numpy() == first).all()


def test_functions_with_mutations_are_functions_without():
    def written(x):
        y = x.clone()
        y[0].mul_(3)
        x.add_(1)
        return y

    for remove in ("mutations", "mutations_and_views"):
        x = torch.ones(2)
        assert torch.func.functionalize(written, remove=remove)(x).tolist() == [3.0, 1.0]
        assert x.tolist() == [2.0, 2.0]
    found = torch.func.grad(torch.func.functionalize(lambda x: (x * 2).mul_(x).sum()))(torch.ones(2))
    assert found.tolist() == [4.0, 4.0]
    with pytest.raises(ValueError, match="remove"):
        torch.func.functionalize(written, remove="views")
