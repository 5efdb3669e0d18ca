"""Define-by-run with TensorFlow's names: ``enable_eager_execution``, ``GradientTape`` and ``tf.function``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from twofold import _core
from twofold.errors import ShapeError
from twofold.frontend.gradients import grad
from twofold.ops.base import ops
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, as_tensor, convert_to_tensor, refuse
from twofold.static.arrays.creation import zeros_like
from twofold.static.arrays.shape_ops import stack
from twofold.static.autodiff.gradients import UnconnectedGradients, gradients
from twofold.static.graph.context import at_once, local, mode
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor, get_default_graph
from twofold.static.graph.tensor_shape import TensorShape, shape_text
from twofold.static.variables.variable import Variable


@example("print(tf.executing_eagerly())", "False")
def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Compute every operation at once from now on, except inside ``Graph.as_default()``.

    Call it before anything is declared: ValueError otherwise. Nothing is offered but the defaults.
    """
    refuse(
        "enable_eager_execution", config=config, device_policy=device_policy, execution_mode=execution_mode
    )
    if not mode.eager and get_default_graph().version:
        raise ValueError(f"tf.enable_eager_execution must be called at program startup, at {here()}.")
    mode.start()


def disable_eager_execution() -> None:
    """Declare operations, which a session runs, from now on: as it is from the start.

    >>> import twofold.static as tf
    >>> tf.disable_eager_execution()
    >>> tf.executing_eagerly()
    False
    """
    mode.stop()


def executing_eagerly() -> bool:
    """Whether operations are computed at once here.

    >>> import twofold.static as tf
    >>> tf.executing_eagerly()
    False
    """
    return at_once()


@example(
    "x = tf.constant(3.0)",
    "with tf.GradientTape() as tape:",
    "    tape.watch(x)",
    "    y = x * x",
    "tape.gradient(y, x)",
    "6.0",
)
class GradientTape:
    """Records operations inside its block, so that ``gradient`` can differentiate them.

    Trainable variables are watched by themselves, unless ``watch_accessed_variables`` is false; other values with
    ``watch``. A tape that is not ``persistent`` gives one gradient. On declared tensors it is ``tf.gradients``.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent, self._automatic = persistent, watch_accessed_variables
        self._watched: list[Any] = []
        self._read: dict[Variable, list[Any]] = {}  # the values read: another one after each assignment
        self._mode: Any = None
        self._used = False

    def __enter__(self) -> GradientTape:
        self._mode = _core.GradientMode(True)
        self._mode.__enter__()
        local.tapes.append(self._read)
        return self

    def __exit__(self, *error: object) -> None:
        local.tapes[:] = [read for read in local.tapes if read is not self._read]
        self._mode.__exit__(*error)
        self._mode = None

    def watch(self, tensor: Any) -> None:
        """Let derivatives be taken by a value, by several, or by variables."""
        for item in flatten(tensor, "tensor")[0]:
            self._watched.append(item)
            if at_once():
                if isinstance(item, Variable):
                    self._read.setdefault(item, [])
                value = as_tensor(item)
                if value.dtype.is_differentiable and not value.requires_grad:
                    value.requires_grad_(True)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables that are watched: those given to ``watch``, and the trainable ones read in the block."""
        given = [item for item in self._watched if isinstance(item, Variable)]
        return tuple(dict.fromkeys([*given, *(self._read if self._automatic else ())]))

    def stop_recording(self) -> Any:
        """A block in which nothing is recorded."""
        return _core.GradientMode(False)

    def reset(self) -> None:
        """Forget what is watched."""
        self._watched, self._used = [], False
        self._read.clear()

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: str = "none"
    ) -> Any:
        """The derivatives of ``target`` (their sum) by ``sources``, in their structure.

        ``output_gradients`` weights the elements of ``target``. Raises RuntimeError for a second use of a tape that is
        not persistent.
        """
        self._use()
        return self._gradient(target, sources, output_gradients, unconnected_gradients)

    def _use(self) -> None:
        if self._used and not self._persistent:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians), at "
                f"{here()}. Make it with persistent=True."
            )
        self._used = True

    def _gradient(self, target: Any, sources: Any, output_gradients: Any, unconnected_gradients: str) -> Any:
        values, _, structure = flatten(sources, "sources")
        ys = [as_tensor(item) for item in flatten(target, "target")[0]]
        seeds = None if output_gradients is None else flatten(output_gradients, "output_gradients")[0]
        found = self._at_once(ys, values, seeds) if at_once() else self._declared(ys, values, seeds)
        if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
            found = [zeros_like(as_tensor(x)) if part is None else part for x, part in zip(values, found)]
        return unflatten(structure, found)

    def _watches(self, source: Any) -> bool:
        if any(source is item for item in self._watched):
            return True
        if isinstance(source, Variable):
            return self._automatic and source.trainable
        return not source.is_leaf if at_once() else True

    def _at_once(self, ys: Sequence[Any], sources: Sequence[Any], seeds: Any) -> list[Any]:
        values = [self._values_of(item) if self._watches(item) else [] for item in sources]
        watched = list({id(one): one for of_one in values for one in of_one if one.requires_grad}.values())
        roots = [k for k, y in enumerate(ys) if y.requires_grad]
        if not watched or not roots:
            return [None] * len(sources)
        given = [ops.ones_like(ys[k]) if seeds is None else as_tensor(seeds[k]) for k in roots]
        again = bool(_core.grad_enabled())
        found = grad(
            [ys[k] for k in roots], watched, given, retain_graph=True, create_graph=again, allow_unused=True
        )
        by_value = {id(value): part for value, part in zip(watched, found) if part is not None}
        parts = [[by_value[id(one)] for one in of_one if id(one) in by_value] for of_one in values]
        return [sum(of_one[1:], of_one[0]) if of_one else None for of_one in parts]

    def _values_of(self, source: Any) -> list[Any]:
        """The value of a source; of a variable all that were read."""
        return (isinstance(source, Variable) and self._read.get(source)) or [as_tensor(source)]

    def _declared(self, ys: Sequence[Any], sources: Sequence[Any], seeds: Any) -> list[Any]:
        if all(not self._watches(item) for item in sources):
            return [None] * len(sources)
        found = gradients(ys, sources, seeds)
        return [part if self._watches(item) else None for part, item in zip(found, sources)]

    def _rows(self, what: str, y: Tensor, sources: Sequence[Any], across: int, unconnected: str) -> list[Any]:
        """For each index behind the first ``across`` axes of ``y`` the derivatives of the sum over these axes."""
        if not at_once():
            raise RuntimeError(
                f"{what}: of declared tensors it is not offered, at {here()}. Use tf.hessians."
            )
        self._use()
        sizes = y.type_.shape
        elements = numpy.broadcast_to(numpy.arange(prod(sizes[across:])).reshape(sizes[across:]), sizes)
        found = []
        # without elements one pass says what there is a path to
        for k in range(max(1, prod(sizes[across:]))):
            seed = ops.cast(_core.from_array(elements == k, False), y.dtype)
            found.append(self._gradient(y, sources, seed, unconnected))
        return found

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivatives of each element of one ``target`` by ``sources``: shapes behind each other.

        The last two parameters change nothing that is computed.
        """
        values, _, structure = flatten(sources, "sources")
        y = as_tensor(target)
        rows = self._rows("jacobian", y, values, 0, unconnected_gradients)
        found = []
        for k, value in enumerate(values):
            parts = [row[k] for row in rows]
            shape = (*y.shape, *as_tensor(value).shape)
            found.append(
                None if parts[0] is None else ops.reshape(stack(parts)[: prod(y.type_.shape)], shape)
            )
        return unflatten(structure, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivatives of each row of ``target`` by the row of ``source`` that it is computed from.

        Args:
            target: A tensor ``[batch, ...]``.
            source: A watched tensor ``[batch, ...]``.
            unconnected_gradients: "none" or "zero"; both give zeros where there is no path, as by TensorFlow.
            parallel_iterations: Changes nothing that is computed.
            experimental_use_pfor: Changes nothing that is computed.

        Returns:
            A tensor ``[batch, *target.shape[1:], *source.shape[1:]]``.

        Raises:
            ValueError: If the first sizes differ, or ``unconnected_gradients`` is another text.
        """
        UnconnectedGradients(unconnected_gradients)
        y = as_tensor(target)
        sizes, inner = y.type_.shape, as_tensor(source).type_.shape
        if not sizes or sizes[:1] != inner[:1]:
            raise ValueError(
                f"batch_jacobian: target {shape_text(sizes)} and source {shape_text(inner)}, at {here()}. Give both "
                "the same first size."
            )
        rows = self._rows("batch_jacobian", y, [source], 1, "zero")
        return ops.reshape(
            stack([row for (row,) in rows], axis=1)[:, : prod(sizes[1:])], (*sizes, *inner[1:])
        )


class TensorSpec:
    """The shape and dtype of an argument of a ``tf.function``.

    >>> import twofold.static as tf
    >>> tf.TensorSpec([None, 2], tf.float32)
    TensorSpec(shape=(?, 2), dtype=float32)
    """

    def __init__(self, shape: Any, dtype: Any = "float32", name: str | None = None) -> None:
        self.shape, self.dtype, self.name = TensorShape(shape), as_dtype(dtype), name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype.name})"


@example("tf.function(lambda x: x * 2)(tf.constant(3.0))", "6.0")
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_follow_type_hints: Any = None,
    experimental_relax_shapes: Any = None,
    experimental_compile: Any = None,
    experimental_attributes: Any = None,
) -> Any:
    """``func`` with its arguments as tensors of ``input_signature``; ValueError where they do not fit.

    Recurring traces are compiled with and without it, and Python runs in every call: a ``print`` inside prints each
    time, and ``if`` and ``while`` decide by values. On declared tensors the operations are declared in their graph.
    The other options change nothing that is computed.
    """
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if input_signature is None:
        return func

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(input_signature):
            raise ValueError(
                f"Python inputs incompatible with input_signature: {len(args)} arguments by position and {len(kwargs)} "
                f"by name for {len(input_signature)}, at {here()}."
            )
        return func(*[_fitting(value, spec) for value, spec in zip(args, input_signature)])

    return checked


def _fitting(value: Any, spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: _fitting(value[key], item) for key, item in spec.items()}
    if isinstance(spec, (list, tuple)):
        return type(spec)(_fitting(one, item) for one, item in zip(value, spec, strict=True))
    found = as_tensor(value)
    if not isinstance(found, Tensor):
        found = convert_to_tensor(value, spec.dtype)
    sizes = [None if size < 0 else size for size in found.type_.shape]
    if found.dtype is not spec.dtype or not spec.shape.is_compatible_with(sizes):
        what = f"Python inputs incompatible with input_signature: {found.type_} for {spec}"
        raise ShapeError(f"{what}, at {here()}", "Give arguments of these shapes and dtypes.")
    return found
