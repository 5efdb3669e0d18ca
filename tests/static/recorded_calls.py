"""Calls of functions of TensorFlow 1, and what TensorFlow makes of them: names, types, shapes and values.

The calls stand in ``calls/*.txt``, one a line. Each is made as it stands, with its arrays fed to placeholders of
unknown sizes, and with ``name="mine"`` if the function takes one. What TensorFlow returned is recorded in
``calls/*.json`` by running this file where it is installed.

Marks before a call: ``~`` for values that are not compared, as they are random; ``?`` for names and static shapes that
are not, as TensorFlow's come from what its function happens to use inside; ``!`` for sizes that must be known.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CALLS = Path(__file__).with_name("calls")
FAMILIES = sorted(path.stem for path in CALLS.glob("*.txt"))
MARKS = "~?!"
WAYS = ("constants", "unknown sizes", "named")


def calls_of(family: str) -> list[str]:
    """The calls of a file."""
    lines = (CALLS / f"{family}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def marks(call: str) -> str:
    """The marks before a call."""
    return call[: len(call) - len(call.lstrip(MARKS))]


@functools.cache
def drawn(kind: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A generator takes longer to seed than most calls take."""
    generator = np.random.default_rng(seed)
    made = generator.standard_normal(shape) if kind == "real" else generator.uniform(0.1, 0.9, shape)
    return made.round(2).astype(np.float32)


def real(*shape: int, seed: int = 0) -> np.ndarray:
    return drawn("real", shape, seed).copy()


def unit(*shape: int) -> np.ndarray:
    return drawn("unit", shape, 3).copy()


HALF = real(3, 3)
POSITIONS = np.array([[0, 0], [0, 2], [1, 1]], np.int64)
OTHER_POSITIONS = np.array([[0, 0], [0, 1], [1, 0]], np.int64)
SIZES = np.array([2, 3], np.int64)
NAMES: dict[str, Callable[[Any], Any]] = {
    "np": lambda tf: np,
    "real": lambda tf: real,
    "X": lambda tf: real(2, 3),
    "Y": lambda tf: real(2, 3, seed=1),
    "UNIT": lambda tf: unit(2, 3),
    "CUBE": lambda tf: real(2, 2, 3),
    "COMPLEX": lambda tf: (real(2, 2) + 1j * real(2, 2, seed=1)).astype(np.complex64),
    "COMPLEX_CUBE": lambda tf: (real(2, 2, 2) + 1j * real(2, 2, 2, seed=1)).astype(np.complex64),
    "LINE": lambda tf: real(4).astype(np.complex64),
    "SYMMETRIC": lambda tf: HALF @ HALF.T + np.eye(3, dtype=np.float32),
    "WHOLE": lambda tf: np.array([[0, 1, 2], [1, 0, 3]], np.int32),
    "BOOLS": lambda tf: np.array([[True, False, True], [False, False, True]]),
    "IMAGE": lambda tf: unit(4, 4, 3),
    "BYTES": lambda tf: (unit(4, 4, 3) * 255).astype(np.uint8),
    "C": lambda tf: tf.constant(real(2, 3)),
    "FILLED": lambda tf: tf.constant_initializer(0.5),
    "SPARSE": lambda tf: tf.SparseTensor(POSITIONS, np.array([0.5, 2.0, 3.0], np.float32), SIZES),
    "SPARSE_IDS": lambda tf: tf.SparseTensor(POSITIONS, np.array([3, 0, 1], np.int64), SIZES),
    "OTHER_IDS": lambda tf: tf.SparseTensor(OTHER_POSITIONS, np.array([3, 2, 0], np.int64), SIZES),
    "SPARSE_LABELS": lambda tf: tf.SparseTensor(
        OTHER_POSITIONS, np.array([0, 1, 1], np.int32), SIZES[[0, 0]]
    ),
}
"""What the calls may mention; made only where it is, so that no other name is taken."""


_ARRAY = r"(?:X|Y|UNIT|CUBE|COMPLEX(?:_CUBE)?|LINE|SYMMETRIC|WHOLE|BOOLS|IMAGE|BYTES|real\([^()]*\))"
ARRAYS = re.compile(rf'(?<![\w."]){_ARRAY}(?!\w)')
CONSTANTS = re.compile(rf"tf\.constant\(({_ARRAY})\)")


def made(tf: Any, call: str, way: str) -> tuple[Any, dict[Any, np.ndarray]]:
    """What a call returns, and what placeholders are fed."""
    text, feeds = call.lstrip(MARKS), {}
    names = {"tf": tf} | {name: make(tf) for name, make in NAMES.items() if re.search(rf"\b{name}\b", call)}
    if way == "unknown sizes":

        def fed(array: np.ndarray) -> Any:
            placeholder = tf.placeholder(array.dtype, [None] * array.ndim)
            feeds[placeholder] = array
            return placeholder

        names["fed"] = fed
        text = ARRAYS.sub(lambda found: f"fed({found.group()})", CONSTANTS.sub(r"\1", text))
    if way == "named":
        text = f'{text[:-1]}{"" if text.endswith("()") else ", "}name="mine")'
    return eval(text, names), feeds


def is_possible(tf: Any, call: str, way: str) -> bool:
    """Whether there is such a way: a call has arrays, or takes a name."""
    if way == "unknown sizes":
        return "!" not in marks(call) and ARRAYS.search(call) is not None
    if way == "named":
        called = ast.parse(call.lstrip(MARKS), mode="eval").body
        if not isinstance(called, ast.Call) or re.fullmatch(r"tf(\.\w+)+", ast.unparse(called.func)) is None:
            return False
        function = eval(ast.unparse(called.func), {"tf": tf})
        given = {keyword.arg for keyword in called.keywords} | {"name"} & set(
            _first(function, len(called.args))
        )
        takes_name = "name" in inspect.signature(function).parameters
        return takes_name and not inspect.isclass(function) and not given & {"name", "scope"}
    return True


def _first(function: Callable[..., Any], count: int) -> list[str]:
    return list(inspect.signature(function).parameters)[:count]


def flat(value: Any, tf: Any) -> Iterator[Any]:
    """Tensors, operations and numbers of a nested result."""
    if type(value).__name__ == "IndexedSlices":
        value = tf.convert_to_tensor(value)
    if isinstance(value, dict):
        value = list(value.values())
    if hasattr(value, "dense_shape"):
        parts = [getattr(value, part) for part in ("indices", "values", "dense_shape")]
        value = [part for part in parts if part is not None]
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from flat(part, tf)
    else:
        yield value


def plain(value: Any) -> Any:
    """An array as JSON has it."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return [plain(array.real), plain(array.imag)]
    if array.dtype.kind in "OSU":
        return [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel()]
    if array.dtype.kind in "fV":
        array = array.astype(np.float64)
        return [str(item) if not np.isfinite(item) else float(f"{item:.7g}") for item in array.ravel()]
    return array.ravel().tolist()


def outermost(value: Any) -> str:
    return value.name.split("/")[0].split(":")[0]


def outcome(tf: Any, call: str, way: str) -> list[Any]:
    """For every result ``[name, dtype, static shape, shape, values]``, and the variables that were made.

    Of a name the outermost scope counts: functions may use other operations inside.
    """
    with tf.Graph().as_default() as graph, tf.Session() as session:
        result, feeds = made(tf, call, way)
        variables = [
            [v.name, v.dtype.base_dtype.name, v.shape.as_list(), v in tf.trainable_variables()]
            for v in tf.global_variables()
        ]
        penalties = [outermost(tensor) for tensor in graph.get_collection("regularization_losses")]
        found: list[Any] = [["variables", variables], ["penalties", penalties]] if variables else []
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for one in flat(result, tf):
            if not hasattr(one, "name"):
                found.append(str(one))
            elif not hasattr(one, "dtype"):
                session.run(one, feeds)
                found.append(["operation", outermost(one)])
            else:
                value = session.run(one, feeds)
                shape = one.shape.as_list() if one.shape.dims is not None else None
                values = [] if "~" in marks(call) else plain(value)
                found.append(
                    [outermost(one), one.dtype.base_dtype.name, shape, list(np.shape(value)), values]
                )
        return found


def record(tf: Any) -> None:
    for family in FAMILIES:
        recorded: dict[str, dict[str, Any]] = {}
        for call in calls_of(family):
            for way in WAYS:
                try:
                    if is_possible(tf, call, way):
                        recorded.setdefault(call, {})[way] = outcome(tf, call, way)
                except Exception as error:
                    print(f"{call} [{way}]: {type(error).__name__}: {str(error)[:150]}", file=sys.stderr)
        lines = [
            f"{json.dumps(call)}: {json.dumps(ways, separators=(',', ':'))}"
            for call, ways in recorded.items()
        ]
        (CALLS / f"{family}.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"}
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    record(tensorflow)
