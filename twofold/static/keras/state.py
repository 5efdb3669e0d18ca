"""What models keep beside graphs: sessions, names of layers, and whether layers train."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold.static.arrays.shape_ops import placeholder_with_default
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, get_default_graph, get_default_session, reset_default_graph
from twofold.static.session.session import Session
from twofold.static.variables.variable import Variable, variables_initializer


class _Settings:
    """What Keras's functions and layers go by where a program says nothing else."""

    floatx = "float32"
    epsilon = 1e-7
    image_data_format = "channels_last"
    manual = False
    """Whether the program gives variables their first values."""


settings = _Settings()


class _OfGraph:
    """What belongs to a graph, which has it: how many layers have a name, whether the graph trains, and a session.

    ``states`` are variables of metrics, which are in no collection.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.phase: Any = None
        self.session: Session | None = None
        self.states: list[Variable] = []


_graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
_local = threading.local()


def _of(graph: Graph) -> _OfGraph:
    if graph.keras is None:
        graph.keras = _OfGraph()
        _graphs.add(graph)
    found: _OfGraph = graph.keras
    return found


def _here() -> _OfGraph:
    return _of(get_default_graph())


def keep_state(variable: Variable) -> None:
    """Let a variable that is in no collection have its first value in every session of ``get_session``."""
    _of(variable.graph).states.append(variable)


def learning_phase() -> Any:
    """Whether layers train: a bool tensor of the graph that ``fit`` feeds, or what ``set_learning_phase`` was given."""
    forced = getattr(_local, "phase", None)
    if forced is not None:
        return forced
    own = _here()
    if own.phase is None:
        if at_once():
            return False
        own.phase = placeholder_with_default(False, [], name="keras_learning_phase")
    return own.phase


def set_learning_phase(value: Any) -> None:
    """Let all layers that are called from now on train (1) or not (0)."""
    _here().phase = value if hasattr(value, "type_") else bool(value)


@contextmanager
def phase(value: Any) -> Iterator[None]:
    """Inside, layers train or not as ``value`` says; None changes nothing."""
    before = getattr(_local, "phase", None)
    _local.phase = before if value is None else value
    try:
        yield
    finally:
        _local.phase = before


def get_uid(prefix: str = "") -> int:
    """The next number of a name in this graph, from 1 on."""
    counts = _here().names
    counts[prefix] = counts.get(prefix, 0) + 1
    return counts[prefix]


def reset_uids() -> None:
    """Let the numbers of names in this graph begin again."""
    _here().names.clear()


def manual_variable_initialization(value: bool) -> None:
    """Whether the program gives variables their first values, which ``get_session`` does otherwise."""
    settings.manual = value


def unique_name(name: str, first: int = 0) -> str:
    """``name`` with the next number in this graph, which begin with ``first``; 0 is left out."""
    counts = _here().names
    number = counts.get(name, first)
    counts[name] = number + 1
    return f"{name}_{number}" if number else name


@example("count = tf.Variable(1.0)", "print(tf.keras.backend.get_session().run(count))", "1.0")
def get_session() -> Session:
    """The default session, or one kept for the graph; variables that have no value get their first one."""
    graph = get_default_graph()
    session = get_default_session()
    if session is None or session.graph is not graph:
        own = _of(graph)
        session = own.session = own.session or Session(graph=graph)
    declared = [*graph.get_collection(GraphKeys.GLOBAL_VARIABLES), *_of(graph).states]
    new = [one for one in declared if one not in session._state]
    if new and not settings.manual:
        session.run(variables_initializer(new))
    return session


def set_session(session: Session) -> None:
    """Let models of the session's graph run in it."""
    _of(session.graph).session = session


def clear_session() -> None:
    """Begin with a new default graph, without models and sessions."""
    for graph in list(_graphs):
        graph.keras = None
    _graphs.clear()
    reset_default_graph()
