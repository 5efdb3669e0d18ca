"""``import_graph_def``: operations declared from a ``GraphDef``; what each node means, ``node_functions`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twofold.dtypes import float32
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.types import tensor_type
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor, is_tensor_like, refuse
from twofold.static.errors import UnimplementedError
from twofold.static.functions.bodies import source_of
from twofold.static.graph.graph import Graph, Operation, get_default_graph
from twofold.static.graph_def import table_functions  # noqa: F401  its rows are in the table
from twofold.static.graph_def.node_functions import IMPORTERS, Node, several_named
from twofold.static.graph_def.own_nodes import Restorer, is_known
from twofold.static.protobuf.graph_def import OWN, GraphDef, NodeDef, message_of, nodes_named


class Importer:
    """Declares the nodes of one message in a graph, each after its inputs.

    With ``stands`` nodes that cannot be imported, and those that read them, stand for themselves by name, and raise
    when they are run.
    """

    def __init__(
        self, graph: Graph, message: GraphDef, prefix: str, input_map: Mapping[str, Any], stands: bool = False
    ) -> None:
        self.graph, self.prefix, self._stands = graph, prefix, stands
        self.nodes: dict[str, NodeDef] = {node.name: node for node in message.node}
        self.given = dict(input_map)
        self.used: set[str] = set()
        self._standing_nodes: set[str] = set()
        self.operations: dict[str, Operation] = {}
        self.outputs: dict[str, list[Any]] = {}
        self._own = Restorer(graph, self._output, self.operations.__getitem__)

    def declare_all(self) -> None:
        """Declare all nodes; raises ValueError for given inputs that no node has."""
        for name in self.nodes:
            self._declare_with_inputs(name)
        if unused := [key for key in self.given if key not in self.used]:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: {unused}, at {here()}. Name inputs of "
                "nodes."
            )

    def _declare_with_inputs(self, name: str) -> None:
        stack = [(name, False)]
        entered: set[str] = set()
        while stack:
            current, ready = stack.pop()
            if current in self.outputs:
                continue
            if ready:
                self._declare(self.nodes[current])
                continue
            if current in entered:
                raise ValueError(
                    f"graph_def is invalid at node '{current}': its inputs depend on itself, at {here()}. "
                    "Loops of TensorFlow 1 (Enter, NextIteration) are not imported."
                )
            entered.add(current)
            stack.append((current, True))
            for text in [*self.nodes[current].input, *nodes_named(self.nodes[current])]:
                above = text.lstrip("^").split(":")[0]
                if self._mapped(text) is None and above not in self.outputs:
                    if above not in self.nodes:
                        raise ValueError(
                            f"graph_def is invalid at node '{current}': Input tensor '{text}' not found in graph_def, "
                            f"at {here()}."
                        )
                    stack.append((above, False))

    def _mapped(self, text: str) -> Any:
        """The tensor that the caller gave for an input."""
        for key in (text, text.removesuffix(":0"), f"{text}:0"):
            if key in self.given:
                self.used.add(key)
                return self.given[key]
        return None

    def _output(self, text: str) -> Any:
        name, _, index = text.partition(":")
        return self.outputs[name][int(index or 0)]

    def _input(self, node: NodeDef, text: str) -> Any:
        mapped = self._mapped(text)
        if mapped is not None:
            return mapped
        name, _, index = text.partition(":")
        outputs = self.outputs[name]
        position = int(index or 0)
        if position >= len(outputs):
            raise ValueError(
                f"graph_def is invalid at node '{node.name}': '{text}' is not an output of {self.nodes[name].op}, at "
                f"{here()}."
            )
        return outputs[position]

    def _declare(self, node: NodeDef) -> None:
        said = _said(node)
        importer = IMPORTERS.get(node.op)
        if said is not None:
            importer = self._restorer(said) if is_known(said) else None
        reads = {text.partition(":")[0] for text in node.input if self._mapped(text) is None}
        if self._stands and (importer is None or reads & self._standing_nodes):
            importer = self._standing
            self._standing_nodes.add(node.name)
        if importer is None:
            raise _unknown(node.name, node.op)
        inputs = [self._input(node, text) for text in node.input if not text.startswith("^")]
        controls = [self._control(text) for text in node.input if text.startswith("^")]
        wanted = f"{self.prefix}/{node.name}" if self.prefix else node.name
        if wanted in self.graph._by_name:
            raise ValueError(
                f"import_graph_def: Node name '{wanted}' already exists in the Graph, at {here()}. Give another name."
            )
        with self.graph.control_dependencies(controls), self.graph.device(node.device or None):
            scope = f"{self.prefix}/" if self.prefix else None
            with self.graph.name_scope(scope):
                found = importer(Node(node, inputs, f"{wanted}/"))
                self._keep(node, wanted, found)

    def _restorer(self, said: str) -> Any:
        """What declares a node by what it says of itself."""
        return lambda node: self._own.restore(node.op, node.name, node.inputs, said)

    def _standing(self, node: Node) -> Operation:
        """An operation that has a name, inputs and as many results as the message reads, and cannot be run."""

        def refuse_run(*values: Any) -> Any:
            raise _unknown(node.name, node.op)

        read = [text.partition(":") for other in self.nodes.values() for text in other.input]
        last = max((int(index or 0) for name, _, index in read if name == node.name), default=0)
        dtype = node.attr("T") or node.attr("dtype") or float32
        types = [tensor_type(dtype, UNKNOWN_RANK)] * (last + 1)
        sources = [source_of(value) for value in node.inputs if is_tensor_like(value)]
        made = self.graph.add(node.op, node.name, types, sources)
        made.python = refuse_run
        return made

    def _control(self, text: str) -> Operation:
        mapped = self._mapped(text)
        return self.operations[text[1:]] if mapped is None else mapped

    def _keep(self, node: NodeDef, wanted: str, found: Any) -> None:
        if isinstance(found, Operation):
            self.operations[node.name], self.outputs[node.name] = found, list(found.outputs)
            return
        outputs = list(found) if isinstance(found, (list, tuple)) else [found]
        owner = source_of(outputs[0])[0]
        if owner.name != wanted:
            outputs = several_named(outputs, node.name)
            owner = source_of(outputs[0])[0]
        self.operations[node.name], self.outputs[node.name] = owner, outputs

    def element(self, text: str) -> Any:
        """The operation or tensor of a name in the message."""
        name, colon, index = text.partition(":")
        if name not in self.operations:
            raise ValueError(
                f"import_graph_def: Requested return_element '{text}' not found in graph_def, at {here()}."
            )
        if not colon:
            return self.operations[name]
        if int(index) >= len(self.outputs[name]):
            raise ValueError(f"import_graph_def: '{text}' is no output of '{name}', at {here()}.")
        return self.outputs[name][int(index)]


def _said(node: NodeDef) -> str | None:
    return node.attr[OWN].s.decode() if OWN in node.attr else None


def _unknown(name: str, op: str) -> UnimplementedError:
    return UnimplementedError(
        f"import_graph_def: node '{name}' is a {op}, which cannot be imported, at {here()}",
        "Freeze the graph, or leave out what only training needs.",
    )


def import_graph_def(
    graph_def: Any,
    input_map: Any = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> Any:
    """Declare the nodes of a message in the default graph, under ``name`` ("import" unless given).

    ``producer_op_list`` changes nothing: attributes that are not known are left alone.

    Args:
        graph_def: A ``tf.GraphDef``, one of TensorFlow's own, or the bytes of one.
        input_map: Tensors that replace inputs, by their names in the message.
        return_elements: Names of operations (``name``) and tensors (``name:index``).
        name: The scope of the names; "" for none.
        op_dict: Nothing else is accepted.
        producer_op_list: See above.

    Returns:
        What ``return_elements`` names, in order; None without it.

    Raises:
        ValueError: A name that the message does not have, or that the graph has.
        UnimplementedError: A kind of node that cannot be imported.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as first:
    ...     y = tf.square(tf.placeholder(tf.float32, name="x"), name="y")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     (y,) = tf.import_graph_def(first.as_graph_def(), {"x": tf.constant(3.0)}, ["y:0"])
    ...     print(y.name, session.run(y))
    import/y:0 9.0
    """
    refuse("import_graph_def", op_dict=op_dict)
    message = message_of(graph_def)
    given = {
        key: convert_to_tensor(value) for key, value in (input_map or {}).items() if not key.startswith("^")
    }
    graph = get_default_graph()
    if any(is_tensor_like(value) for value in given.values()):
        graph = source_of(next(iter(given.values())))[0].graph
    with graph.as_default(), graph.name_scope("import" if name is None else name or None):
        prefix = graph.get_name_scope() if name != "" else ""
        importer = Importer(graph, message, prefix, given)
        importer.declare_all()
    return None if return_elements is None else [importer.element(text) for text in return_elements]
