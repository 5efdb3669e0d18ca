"""Functions of arrays from models: ``tf.contrib.predictor``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import saved_model
from twofold.static.estimator.export import signatures
from twofold.static.estimator.spec import ModeKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, name_of
from twofold.static.session.session import Session
from twofold.static.train.monitored_session import ChiefSessionCreator, MonitoredSession

_DEFAULT = "serving_default"


@example(
    "import tempfile",
    'folder = tempfile.mkdtemp() + "/model"',
    "x = tf.placeholder(tf.float32, [])",
    'tf.saved_model.simple_save(session, folder, {"x": x}, {"y": x + 1})',
    "predict = tf.contrib.predictor.from_saved_model(folder)",
    'print(predict({"x": 2.0}))',
    "{'y': np.float32(3.0)}",
)
class Predictor:
    """A function from a dict of arrays to a dict of arrays.

    ``feed_tensors`` and ``fetch_tensors`` are the tensors by name, ``graph`` and ``session`` what computes them.
    """

    def __init__(
        self, session: Any, graph: Graph, feed_tensors: Mapping[str, Any], fetch_tensors: Mapping[str, Any]
    ) -> None:
        self.session, self.graph = session, graph
        self.feed_tensors, self.fetch_tensors = dict(feed_tensors), dict(fetch_tensors)

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for these inputs; raises ValueError for an input that there is not."""
        unknown = sorted(set(input_dict) - set(self.feed_tensors))
        if unknown:
            what = f"Got unexpected keys in input_dict: {', '.join(unknown)}, at {here()}"
            raise ArgumentError(what, f"The inputs are {', '.join(self.feed_tensors)}.")
        feeds = {self.feed_tensors[key]: value for key, value in input_dict.items()}
        found: dict[str, Any] = self.session.run(self.fetch_tensors, feeds)
        return found


def from_saved_model(
    export_dir: Any,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | Sequence[str] | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """The function of a saved model.

    Args:
        export_dir: The directory.
        signature_def_key: Which signature; the default one unless given.
        signature_def: The message of a signature instead.
        input_names, output_names: The names of tensors by key, instead of a signature.
        tags: The tags of the graph, joined by commas; "serve" unless given.
        graph: The graph to declare it in; a new one unless given.
        config: Of the session.
    """
    if (input_names is None) != (output_names is None):
        what = f"from_saved_model: one of input_names and output_names, at {here()}"
        raise ArgumentError(what, "Give both or none.")
    graph = graph or Graph()
    chosen = tags.split(",") if isinstance(tags, str) else list(tags or ["serve"])
    with graph.as_default():
        session = Session(graph=graph, config=config)
        found = saved_model.load(session, chosen, export_dir).signature_def
    if input_names is None or output_names is None:
        key = signature_def_key or _DEFAULT
        if signature_def is None and key not in found:
            what = f"from_saved_model: there is no signature {key!r}, at {here()}"
            raise ArgumentError(what, f"There are {', '.join(found)}.")
        signature = found[key] if signature_def is None else signature_def
        input_names, output_names = (
            {one: held[one].name for one in held} for held in (signature.inputs, signature.outputs)
        )
    feeds, fetches = (
        {key: graph.get_tensor_by_name(name) for key, name in names.items()}
        for names in (input_names, output_names)
    )
    return Predictor(session, graph, feeds, fetches)


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """The function of an estimator with its latest checkpoint.

    Args:
        estimator: The estimator.
        serving_input_receiver_fn: A function that declares a ``ServingInputReceiver``.
        output_key: Which of the model's outputs; the default one unless given.
        graph: The graph to declare it in; a new one unless given.
        config: Of the session.
    """
    graph = graph or Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        spec = estimator.modelled(receiver.features, None, ModeKeys.PREDICT)
        found = signatures(receiver, spec)[output_key or _DEFAULT]
        creator = ChiefSessionCreator(
            spec.scaffold,
            config=config,
            checkpoint_filename_with_path=estimator.checkpoint(None, "from_estimator"),
        )
        session = MonitoredSession(creator)
    given = receiver.receiver_tensors
    feeds = given if isinstance(given, Mapping) else {"input": given}
    outputs = {key: graph.get_tensor_by_name(found.outputs[key].name) for key in found.outputs}
    return Predictor(
        session, graph, {key: graph.get_tensor_by_name(name_of(one)) for key, one in feeds.items()}, outputs
    )
