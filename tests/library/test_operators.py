"""Operators of a program's own: ``torch.library`` and ``torch.ops``, against what PyTorch 2.13 does."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy
import pytest

import twofold as torch

_numbers = itertools.count()


@pytest.fixture
def space():
    """A namespace that no other test has."""
    return f"operators{next(_numbers)}"


def _sine(space: str) -> Any:
    @torch.library.custom_op(f"{space}::sine", mutates_args=())
    def sine(x: torch.Tensor, n: int = 2, *, scale: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(n * scale * numpy.sin(x.numpy()))

    return sine


def test_an_operator_computes_and_has_names(space):
    sine, x = _sine(space), torch.tensor([0.0, 1.0])
    wanted = 2 * numpy.sin([0.0, 1.0])
    for call in (
        sine,
        getattr(torch.ops, space).sine,
        getattr(torch.ops, space).sine.default,
        lambda x: sine(x=x, scale=1),
    ):
        assert numpy.allclose(call(x), wanted)
    assert numpy.allclose(sine(x, 3, scale=2.0), 3 * wanted)
    assert repr(sine) == f"<CustomOpDef({space}::sine)>" and sine.__name__ == "sine"
    assert str(getattr(torch.ops, space).sine.default) == f"{space}.sine.default"
    with pytest.raises(AttributeError, match="no attribute 'cosine'"):
        _ = getattr(torch.ops, space).cosine


def test_gradient_of_an_operator_is_what_is_registered(space):
    sine, seen = _sine(space), []

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.append((len(inputs), inputs[1], dict(keyword_only_inputs), output.requires_grad))
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1] * keyword_only_inputs["scale"]

    def backward(ctx: Any, cotangent: Any) -> Any:
        assert ctx.needs_input_grad == (True, False)
        (x,) = ctx.saved_tensors
        return cotangent * x.cos() * ctx.factor, None

    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = sine(x)
    assert y.requires_grad and y.grad_fn.name() == f"GeneratedBackwardFor_{space}_sine_defaultBackward"
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()
    sine.register_autograd(backward, setup_context=setup)
    sine(x, 3, scale=2.0).sum().backward()
    assert numpy.allclose(x.grad, 6 * numpy.cos([0.5, 1.0]))
    assert seen == [(2, 3, {"scale": 2.0}, False)]
    with torch.no_grad():
        assert not sine(x).requires_grad
    (slope,) = torch.autograd.grad(sine(x).sum(), x, create_graph=True)
    (curve,) = torch.autograd.grad(slope.sum(), x)
    assert numpy.allclose(curve, -2 * numpy.sin([0.5, 1.0]))
    assert torch.autograd.gradcheck(lambda x: sine(x, 5), (x,))


def test_gradients_of_lists_have_their_structure(space):
    @torch.library.custom_op(f"{space}::scaled", mutates_args=())
    def scaled(xs: list[torch.Tensor], y: torch.Tensor) -> list[torch.Tensor]:
        return [x * y for x in xs]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1], *inputs[0])

    def backward(ctx: Any, cotangents: Any) -> Any:
        assert ctx.needs_input_grad == ([True, False], True)
        y, *xs = ctx.saved_tensors
        assert cotangents[1].tolist() == [0.0, 0.0]
        return [c * y for c in cotangents], sum((c * x).sum() for c, x in zip(cotangents, xs, strict=True))

    scaled.register_autograd(backward, setup_context=setup)
    a, b = torch.ones(2, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    found = scaled([a, torch.ones(2)], b)
    assert isinstance(found, list) and found[0].tolist() == [3.0, 3.0]
    found[0].sum().backward()
    assert a.grad.tolist() == [3.0, 3.0] and b.grad == 2


def test_operators_that_write_and_return_nothing(space):
    @torch.library.custom_op(f"{space}::increment", mutates_args=("x",))
    def increment(x: torch.Tensor, by: float = 1.0) -> None:
        x += by

    x = torch.zeros(2)
    assert increment(x) is None and increment(x, 2.0) is None
    assert x.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="non-functional"):
        increment.register_autograd(lambda ctx: None)
    assert torch.library.opcheck(increment, (x,), test_utils="test_schema") == {"test_schema": "SUCCESS"}


def test_results_must_not_be_arguments(space):
    @torch.library.custom_op(f"{space}::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    @torch.library.custom_op(f"{space}::part", mutates_args=())
    def part(x: torch.Tensor) -> torch.Tensor:
        return x[:1]

    for op, x in itertools.product((same, part), (torch.ones(2), torch.ones(2, requires_grad=True))):
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            op(x)


def test_arguments_are_checked_by_the_schema(space):
    sine, x = _sine(space), torch.ones(2)
    for call, message in (
        (lambda: sine(x, "a"), "Expected a value of type 'SymInt' for argument 'n'"),
        (lambda: sine(x, True), "argument 'n'"),
        (lambda: sine([1.0]), "Expected a value of type 'Tensor' for argument 'x'"),
        (lambda: sine(), "missing value for argument 'x'"),
        (lambda: sine(x, 1, 2), "at most 2 argument"),
        (lambda: sine(x, m=1), "'m'"),
        (lambda: sine(x, x=x), "'x'"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


def test_schemas_are_inferred_from_annotations():
    infer = torch.library.infer_schema

    def several(
        xs: list[torch.Tensor],
        y: torch.Tensor | None,
        flag: bool = True,
        dtype: torch.dtype | None = None,
        *,
        s: str = "x",
    ) -> tuple[torch.Tensor, torch.Tensor]: ...

    text = '(Tensor(a0!)[] xs, Tensor? y, bool flag=True, ScalarType? dtype=None, *, str s="x") -> (Tensor, Tensor)'
    assert infer(several, mutates_args={"xs"}) == text

    def nothing(x: torch.Tensor, sizes: list[int], factor: float = 1.0) -> None: ...

    assert (
        infer(nothing, mutates_args="unknown", op_name="f")
        == "f(Tensor(a0!) x, SymInt[] sizes, float factor=1.0) -> ()"
    )
    for wrong in (lambda x: x, lambda *xs: xs):
        with pytest.raises(ValueError, match="infer_schema"):
            infer(wrong, mutates_args=())
    with pytest.raises(ValueError, match="no parameters"):
        infer(nothing, mutates_args=("z",))


def test_a_library_defines_and_implements(space):
    library = torch.library.Library(space, "DEF")
    assert library.define("scaled(Tensor x, int n=2) -> Tensor") == f"{space}::scaled"
    op, x = getattr(torch.ops, space).scaled, torch.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="Could not run"):
        op(x)
    library.impl("scaled", lambda x, n=2: x * n, "CompositeImplicitAutograd")
    y = op(x, 3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    library.impl("scaled", lambda x, n=2: x * n, "CPU")  # which comes first, without a gradient
    with pytest.raises(RuntimeError, match="already"):
        library.impl("scaled", lambda x, n=2: x, "CPU")
    torch.library.register_autograd(f"{space}::scaled", lambda ctx, cotangent: (cotangent * 7, None))
    op(x.detach().requires_grad_()).sum().backward()
    with pytest.raises(RuntimeError, match="multiple times"):
        library.define("scaled(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single"):
        torch.library.Library(space, "DEF")
    torch.library.Library(space, "FRAGMENT").define("other(Tensor x) -> Tensor")
    torch.library.impl(f"{space}::other", "cpu", lambda x: x + 1)
    assert getattr(torch.ops, space).other(x).tolist() == [2.0, 2.0]
    library._destroy()
    assert not hasattr(getattr(torch.ops, space), "scaled")


def test_functions_and_keys_of_libraries(space):
    torch.library.define(f"{space}::half", "(Tensor x) -> Tensor")

    @torch.library.impl(f"{space}::half", "default")
    def half(x: Any) -> Any:
        return x / 2

    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return getattr(torch.ops, space).half(x)

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            return cotangent * 5

    torch.library.impl(f"{space}::half", "Autograd", Half.apply)
    x = torch.ones(2, requires_grad=True)
    getattr(torch.ops, space).half(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    torch.library.impl(f"{space}::half", "cuda", lambda x: 1 / 0)  # never called
    assert getattr(torch.ops, space).half(torch.ones(1)).item() == 0.5
    for wrong in (
        lambda: torch.library.impl(f"{space}::half", "Sparse", len),
        lambda: torch.library.Library("random", "DEF"),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(RuntimeError, match="no operator"):
        torch.library.impl(f"{space}::none", "cpu", len)


def test_overloads_are_chosen_by_arguments(space):
    library = torch.library.Library(space, "FRAGMENT")
    library.define("add.Tensor(Tensor x, Tensor y) -> Tensor")
    library.define("add.Scalar(Tensor x, Scalar y) -> Tensor")
    library.impl("add.Tensor", lambda x, y: x + y, "CPU")
    library.impl("add.Scalar", lambda x, y: x + 10 * y, "CPU")
    add, x = getattr(torch.ops, space).add, torch.ones(1)
    assert add(x, x).item() == 2 and add(x, 2).item() == 21
    assert add.overloads() == ["Tensor", "Scalar"] and add.Scalar(x, 1.0).item() == 11


def test_opcheck_compares_the_fake_function(space):
    sine, x = _sine(space), torch.ones(2)
    with pytest.raises(Exception, match="no fake impl"):
        torch.library.opcheck(sine, (x,))
    sine.register_fake(lambda x, n=2, *, scale=1.0: x.new_empty(3))
    with pytest.raises(Exception, match="the fake function gives"):
        torch.library.opcheck(sine, (x,))
    sine.register_fake(lambda x, n=2, *, scale=1.0: torch.empty_like(x))
    assert set(torch.library.opcheck(sine, (x,)).values()) == {"SUCCESS"}
    found = torch.library.opcheck(sine, (x.requires_grad_(),), raise_exception=False)
    assert "no gradient" in str(found["test_autograd_registration"])

    @torch.library.custom_op(f"{space}::sneaky", mutates_args=())
    def sneaky(x: torch.Tensor) -> torch.Tensor:
        x += 1
        return x * 2

    with pytest.raises(Exception, match="writes to 'x'"):
        torch.library.opcheck(sneaky, (torch.ones(1),), test_utils="test_schema")


def test_operators_of_tensor_operations_work_in_transforms(space):
    @torch.library.custom_op(f"{space}::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    square.register_autograd(
        lambda ctx, cotangent: 2 * ctx.saved_tensors[0] * cotangent,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(square)(x).tolist() == (x * x).tolist()
    assert torch.func.grad(lambda x: square(x).sum())(x).tolist() == (2 * x).tolist()
    assert torch.compile(square)(x).tolist() == (x * x).tolist()


def test_names_need_a_namespace():
    for wrong in ("plain", "::x", "x::"):
        with pytest.raises(ValueError, match="namespace"):
            torch.library.custom_op(wrong, mutates_args=())


def test_a_thread_inside_of_the_autograd_function_leaves_it_to_others(space: str) -> None:
    library = torch.library.Library(space, "FRAGMENT")
    library.define("doubled(Tensor x) -> Tensor")
    library.impl("doubled", lambda x: x * 2, "CPU")
    doubled = getattr(torch.ops, space).doubled
    inside, others_done = threading.Event(), threading.Event()
    calls = []

    def above(x: Any) -> Any:
        calls.append(threading.current_thread().name)
        if threading.current_thread().name == "first":
            inside.set()
            assert others_done.wait(30)
        return doubled(x)

    library.impl("doubled", above, "Autograd")
    first = threading.Thread(target=doubled, args=(torch.ones(2),), name="first")
    first.start()
    assert inside.wait(30)
    try:
        doubled(torch.ones(2))
    finally:
        others_done.set()
        first.join()
    assert calls == ["first", threading.current_thread().name]
