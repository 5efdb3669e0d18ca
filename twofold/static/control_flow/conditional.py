"""Choices among functions: ``cond``, ``case`` and ``switch_case``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import bool_
from twofold.ops.axes import given_once
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor, define
from twofold.static.arrays.shape_ops import stack
from twofold.static.control_flow.choice import choose
from twofold.static.functions.host_calls import Assert
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import describe
from twofold.static.graph.scopes import control_dependencies


@example("x = tf.constant(3.0)", "tf.cond(x > 2.0, lambda: x * 10, lambda: x)", "30.0")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Any = None,
    fn2: Any = None,
) -> Any:
    """What ``true_fn`` or ``false_fn`` declares, whichever ``pred`` chooses in a run; only that one is computed.

    Both functions return the same structure of tensors of the same dtypes; operations count as a number. If one
    writes variables or calls Python, ``pred`` is computed first, in a run of its own.
    """
    true_fn, false_fn = given_once(true_fn=true_fn, fn1=fn1), given_once(false_fn=false_fn, fn2=fn2)
    if true_fn is None or false_fn is None:
        raise TypeError(f"cond: true_fn or false_fn is missing, at {here()}. Give both functions.")
    predicate = convert_to_tensor(pred)
    if predicate.dtype is not bool_:
        raise TypeError(
            f"cond: the predicate {describe(predicate)} is not of bool, at {here()}. Compare it with something."
        )
    result = choose("cond", predicate, (false_fn, true_fn), ("false_fn", "true_fn"), name or "cond")
    return result[0] if isinstance(result, list) and len(result) == 1 and not strict else result


@example(
    "x = tf.constant(3.0)",
    "tf.case([(x > 5.0, lambda: x), (x > 2.0, lambda: x * 10)], default=lambda: x * 0)",
    "30.0",
)
def case(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """What the function of the first true predicate declares, else ``default``.

    A run raises InvalidArgumentError if no predicate is true and there is no ``default``, with ``exclusive`` also if
    several are true.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        if default is None:
            raise ValueError(f"case: no functions, at {here()}. Give pairs of predicate and function.")
        return default()
    controls = []
    if default is None or (exclusive and len(pairs) > 1):
        truths = stack([convert_to_tensor(predicate) for predicate, _ in pairs])
    if default is None:
        some = define("Any", lambda t: ops.any(t), (truths,), {}, None).outputs[0]
        controls.append(Assert(some, ["case: none of the predicates is true:", truths], len(pairs)))
    if exclusive and len(pairs) > 1:
        alone = define("All", lambda t: ops.sum(t) <= 1, (truths,), {}, None).outputs[0]
        controls.append(Assert(alone, ["case: more than one predicate is true:", truths], len(pairs)))
    with control_dependencies(controls):
        return _first_true(pairs, default, strict, name)


def _first_true(pairs: list[Any], default: Any, strict: bool, name: str) -> Any:
    (predicate, function), rest = pairs[0], pairs[1:]
    if not rest and default is None:
        found = function()
        return found[0] if isinstance(found, list) and len(found) == 1 and not strict else found
    return cond(
        predicate,
        function,
        lambda: _first_true(rest, default, True, name) if rest else default(),
        strict,
        name,
    )


@example("tf.switch_case(tf.constant(1), [lambda: tf.constant(10), lambda: tf.constant(20)])", "20")
def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case") -> Any:
    """What function number ``branch_index`` declares, ``default`` (else the last) for any other number.

    ``branch_fns`` is a list of functions, of pairs ``(number, function)``, or a dict of them.
    """
    index = convert_to_tensor(branch_index)
    items = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    pairs = items if items and isinstance(items[0], tuple) else list(enumerate(items))
    pairs.sort(key=lambda pair: pair[0])
    numbers = [int(number) for number, _ in pairs]
    if not pairs or len(set(numbers)) != len(numbers) or index.dtype.kind not in "iu":
        what = f"switch_case: branches {numbers} for an index {describe(index)}"
        raise ValueError(f"{what}, at {here()}. Give an integer and functions with different numbers.")
    functions: list[Any] = [function for _, function in pairs]
    functions += [] if default is None else [default]
    if numbers != list(range(len(numbers))):

        def position(value: Any) -> Any:
            found = ops.full_like(value, len(numbers))
            for k, number in enumerate(numbers):
                found = ops.where(ops.equal(value, number), k, found)
            return found

        index = define("switch_case", position, (index,), {}, None).outputs[0]
    return choose("switch_case", index, functions, [f"branch {k}" for k in range(len(functions))], name)
