"""Summaries of many tensors at once, as ``tf.contrib.layers`` has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twofold.static import nn, summary
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph


def _plain(name: str) -> str:
    return name.split(":")[0]


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A summary of a tensor: a number, or a distribution."""
    value = convert_to_tensor(tensor)
    name = tag or _plain(tensor.name)
    return summary.histogram(name, value) if value.type_.ndim else summary.scalar(name, value)


def summarize_activation(op: Any) -> Any:
    """Summaries of a layer's result: its distribution, and the share of zeros behind relu."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        summary.scalar(f"{_plain(op.name)}/zeros", nn.zero_fraction(op))
    return summary.histogram(f"{_plain(op.name)}/activation", op)


def summarize_tensors(
    tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each tensor."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each tensor in a collection."""
    return summarize_tensors(get_default_graph().get_collection(collection, name_filter), summarizer)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """A summary of each result of a layer."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)


def summarize_variables(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each variable that is trained."""
    return summarize_collection(GraphKeys.TRAINABLE_VARIABLES, name_filter, summarizer)


def summarize_weights(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each variable of the collection of weights."""
    return summarize_collection(GraphKeys.WEIGHTS, name_filter, summarizer)


def summarize_biases(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each variable of the collection of biases."""
    return summarize_collection(GraphKeys.BIASES, name_filter, summarizer)
