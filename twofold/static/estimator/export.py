"""Models for serving: what they receive and return, ``tf.estimator.export``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from twofold.dtypes import string
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import saved_model
from twofold.static.arrays.shape_ops import placeholder
from twofold.static.data.example_parsing import parse_example
from twofold.static.estimator.spec import EstimatorSpec
from twofold.static.session.session import Session

_DEFAULT = "serving_default"


class ServingInputReceiver(NamedTuple):
    """The features of a model, and the tensors that a request feeds: one, or a dict by name.

    ``receiver_tensors_alternatives`` are further such dicts by name, each a signature of its own.
    """

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None


TensorServingInputReceiver = ServingInputReceiver


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that declares placeholders like the tensors given, which requests feed.

    Args:
        features: Tensors by name.
        default_batch_size: How many rows they have; open unless given.

    >>> import twofold.static as tf
    >>> made = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([4, 2])})()
    >>> made.features["x"].shape
    TensorShape([Dimension(None), Dimension(2)])
    """
    types = {key: (one.dtype, one.get_shape().as_list(), one.op.name) for key, one in features.items()}

    def receive() -> ServingInputReceiver:
        made = {
            key: placeholder(dtype, [default_batch_size, *sizes[1:]], name=name)
            for key, (dtype, sizes, name) in types.items()
        }
        return ServingInputReceiver(made, made)

    return receive


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that declares a placeholder of serialised examples and the features that are parsed from them.

    Args:
        feature_spec: Instances of ``FixedLenFeature`` and its kin by name.
        default_batch_size: How many examples a request has; open unless given.
    """

    def receive() -> ServingInputReceiver:
        examples = placeholder(string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parse_example(examples, feature_spec), {"examples": examples})

    return receive


class PredictOutput:
    """Tensors by name (one alone is ``output``) that a signature returns."""

    def __init__(self, outputs: Any) -> None:
        self.outputs = dict(outputs) if isinstance(outputs, Mapping) else {"output": outputs}

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The message of the signature."""
        return saved_model.predict_signature_def(receiver_tensors, self.outputs)


class ClassificationOutput:
    """Scores of classes, their names, or both, of serialised examples."""

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise ArgumentError(f"ClassificationOutput: neither scores nor classes, at {here()}", "Give one.")
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The message of the signature."""
        return saved_model.classification_signature_def(_only(receiver_tensors), self.classes, self.scores)


class RegressionOutput:
    """Values of serialised examples."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The message of the signature."""
        return saved_model.regression_signature_def(_only(receiver_tensors), self.value)


def _only(tensors: Mapping[str, Any]) -> Any:
    if len(tensors) != 1:
        what = f"a signature of examples with the inputs {', '.join(tensors)}, at {here()}"
        raise ArgumentError(what, "Receive one tensor, or return a PredictOutput.")
    return next(iter(tensors.values()))


def signatures(receiver: ServingInputReceiver, spec: EstimatorSpec) -> dict[str, Any]:
    """The signatures of a model by name; one alone is the default one, too.

    A classification or regression of what is fed as it is has none, as in TensorFlow.
    """
    given = receiver.receiver_tensors
    inputs: dict[str | None, Any] = {None: given if isinstance(given, Mapping) else {"input": given}}
    inputs.update(receiver.receiver_tensors_alternatives or {})
    outputs = dict(spec.export_outputs or {_DEFAULT: PredictOutput(spec.predictions)})
    if len(outputs) == 1:
        outputs.setdefault(_DEFAULT, next(iter(outputs.values())))
    elif _DEFAULT not in outputs:
        what = f"export_outputs: none of {', '.join(outputs)} is the default one, at {here()}"
        raise ArgumentError(what, f"Call one {_DEFAULT!r}.")
    found = {}
    for other, tensors in inputs.items():
        for name, output in outputs.items():
            strings = all(one.dtype is string for one in tensors.values())
            if isinstance(output, PredictOutput) or (strings and len(tensors) == 1):
                found[name if other is None else f"{other}:{name}"] = output.as_signature_def(tensors)
    return found


def written(base: Any, receiver: ServingInputReceiver, spec: EstimatorSpec, path: str, config: Any) -> bytes:
    """Write the default graph with the values of a checkpoint to a new directory of ``base``; its path."""
    found = signatures(receiver, spec)
    with Session(config=config) as session:
        scaffold = spec.scaffold.finalize()
        scaffold.saver.restore(session, path)
        session.run(scaffold.local_init_op)
        folder = _new_folder(os.fsdecode(base))
        builder = saved_model.SavedModelBuilder(folder)
        parts = {"main_op": scaffold.local_init_op, "saver": scaffold.saver}
        builder.add_meta_graph_and_variables(session, ["serve"], found, **parts)
        builder.save()
    return folder.encode()


def _new_folder(base: str) -> str:
    """A directory named after the time in seconds that is not there yet."""
    stamp = int(time.time())
    while os.path.exists(found := os.path.join(base, str(stamp))):
        stamp += 1
    return found
