"""What ``compile`` was given, of each output: losses, their factors, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.keras import losses
from twofold.static.keras.base_layer import mask_of
from twofold.static.keras.batches import by_name
from twofold.static.keras.loss_objects import Loss, aligned, matched
from twofold.static.keras.metric_functions import FUNCTIONS
from twofold.static.keras.metric_objects import MeanOfFunction, Metric
from twofold.static.keras.metrics import as_metric

_KINDS = {"accuracy": "accuracy", "acc": "accuracy", "crossentropy": "crossentropy", "ce": "crossentropy"}


class Measured:
    """The losses and metrics of a model with some outputs.

    Args:
        model: The model, for messages.
        names: Of its outputs.
        loss: A name, function or object for all outputs, a list with one for each, or a dict by names.
        factors: Those of the losses, a list or a dict by names.
        metrics: Names, functions and objects for each output, a list of lists, or a dict by names.
        weighted: The same for those that the weights of elements weight.
    """

    def __init__(
        self, model: str, names: Sequence[str], loss: Any, factors: Any, metrics: Any, weighted: Any
    ) -> None:
        self._model, self._names = model, list(names)
        self.losses: list[Loss | None] = [
            None if one is None else losses.as_loss(one) for one in self._each_loss(loss)
        ]
        self.factors = [1.0] * len(names) if factors is None else self._each_factor(factors)
        self._given = [self._each(metrics, k) for k in range(len(names))]
        self._weighted = [self._each(weighted, k) for k in range(len(names))]
        self.metrics: list[tuple[str, Metric, int, bool]] = []
        """Their names, themselves, the index of their output, and whether they are weighted."""
        self.parts: list[int] = [k for k, one in enumerate(self.losses) if one is not None]
        """The indices of the outputs that have a loss, and labels."""

    def _each_loss(self, loss: Any) -> list[Any]:
        count = len(self._names)
        if isinstance(loss, Mapping) and not {"class_name", "config"} <= loss.keys():
            unknown = set(loss) - set(self._names)
            if unknown:
                raise ValueError(
                    f"{self._model}: losses for {', '.join(sorted(unknown))}, at {here()}. Outputs are "
                    f"{', '.join(self._names)}."
                )
            return [loss.get(name) for name in self._names]
        given = list(loss) if isinstance(loss, (list, tuple)) else [loss] * count
        if len(given) != count:
            raise ValueError(
                f"{self._model}: {len(given)} losses for {count} outputs, at {here()}. Give one for each."
            )
        return given

    def _each_factor(self, factors: Any) -> list[float]:
        if isinstance(factors, Mapping):
            unknown = set(factors) - set(self._names)
            if unknown:
                raise ValueError(
                    f"{self._model}: loss_weights for {', '.join(sorted(unknown))}, at {here()}. Outputs are "
                    f"{', '.join(self._names)}."
                )
            return [factors.get(name, 1.0) for name in self._names]
        found = by_name(factors, self._names, "loss_weights")
        if len(found) != len(self._names):
            raise ValueError(
                f"{self._model}: {len(found)} loss_weights for {len(self._names)} outputs, at {here()}."
            )
        return found

    def _each(self, metrics: Any, index: int) -> list[Any]:
        """The metrics of an output; objects for several outputs become one object each."""
        if not metrics:
            return []
        if isinstance(metrics, Mapping):
            found = metrics.get(self._names[index], [])
            return list(found) if isinstance(found, (list, tuple)) else [found]
        if any(isinstance(one, (list, tuple)) for one in metrics):
            found = metrics[index]
            return list(found) if isinstance(found, (list, tuple)) else [found]
        if len(self._names) == 1:
            return list(metrics)
        return [
            type(one).from_config(one.get_config()) if isinstance(one, Metric) else one for one in metrics
        ]

    @property
    def labelled(self) -> list[str]:
        """The names of the outputs that have labels."""
        return [self._names[k] for k in self.parts]

    def label_types(self, outputs: Sequence[Any]) -> list[Any]:
        """The dtypes of labels: integers where they are class numbers, else those of the outputs."""
        kinds = [(self.losses[k], outputs[k].dtype) for k in self.parts]
        return [
            as_dtype("int64") if loss and losses.takes_class_numbers(loss) else kind for loss, kind in kinds
        ]

    def names_of(self) -> list[str]:
        """The names of the loss, those of several outputs, and of the metrics."""
        several = len(self._names) > 1
        parts = [f"{self._names[k]}_loss" for k in self.parts] if several else []
        return ["loss", *parts, *[name for name, *_ in self.metric_names()]]

    def metric_names(self) -> list[tuple[str, Any, int, bool]]:
        """The names of metrics, what was given for them, their output, and whether they are weighted."""
        found: list[tuple[str, Any, int, bool]] = []
        taken: set[str] = set()
        for index, output in enumerate(self._names):
            prefix = f"{output}_" if len(self._names) > 1 else ""
            for weighted, given in ((False, self._given), (True, self._weighted)):
                for one in given[index]:
                    name = base = f"{prefix}{'weighted_' if weighted else ''}{_name_of(one)}"
                    number = 1
                    while name in taken:
                        name, number = f"{base}_{number}", number + 1
                    taken.add(name)
                    found.append((name, one, index, weighted))
        return found

    def __call__(
        self, labels: Sequence[Any], outputs: Sequence[Any], weights: Sequence[Any], added: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """The loss of a batch; those of several outputs, and what the metrics say after it."""
        if len(labels) != len(self.parts):
            raise ValueError(
                f"{self._model}: {len(labels)} labels for {len(self.parts)} outputs, at {here()}. Give one for each."
            )
        parts, masks = [], [mask_of(one) for one in outputs]
        of = {k: (label, weight) for k, label, weight in zip(self.parts, labels, weights, strict=True)}
        for k, (label, weight) in of.items():
            loss, shares = self.losses[k], _masked(weight, masks[k])
            assert loss is not None
            found = loss(label, outputs[k], shares)
            parts.append(math.reduce_mean(found) if loss.reduction == "none" else found)
        scaled = [part * self.factors[k] for part, k in zip(parts, self.parts)]
        if not scaled and not added:
            raise ValueError(
                f"{self._model}: there is no loss, at {here()}. Give compile one, or use add_loss."
            )
        total = math.add_n([*scaled, *[math.reduce_sum(one) for one in added]])
        if not self.metrics:
            self.metrics = [
                (name, self._metric(given, index, outputs[index]), index, weighted)
                for name, given, index, weighted in self.metric_names()
                if index in of
            ]
        measured = [
            metric(of[k][0], outputs[k], sample_weight=_masked(of[k][1] if weighted else None, masks[k]))
            for _, metric, k, weighted in self.metrics
        ]
        return total, [*(parts if len(self._names) > 1 else ()), *measured]

    def _metric(self, given: Any, index: int, output: Any) -> Metric:
        if not isinstance(given, str) or given not in _KINDS:
            return as_metric(given)
        loss = self.losses[index]
        kind = "categorical"
        if output.type_.shape[-1:] == (1,) or (loss is not None and losses.takes_bools(loss)):
            kind = "binary"
        elif loss is not None and losses.takes_class_numbers(loss):
            kind = "sparse_categorical"
        return MeanOfFunction(FUNCTIONS[f"{kind}_{_KINDS[given]}"], _name_of(given))

    def reset(self) -> None:
        """Let the metrics begin again."""
        for _, metric, _, _ in self.metrics:
            metric.reset_states()


def _masked(weights: Any, mask: Any) -> Any:
    if mask is None:
        return weights
    kept = math.cast(mask, "float32")
    if weights is None:
        return kept
    shares, kept = matched(convert_to_tensor(weights), kept)
    return aligned(shares, kept) * kept


def _name_of(metric: Any) -> str:
    if isinstance(metric, str) and metric in _KINDS:
        return "acc" if _KINDS[metric] == "accuracy" else "ce"
    if isinstance(metric, str):
        found = as_metric_function(metric)
        return str(getattr(found, "__name__", metric))
    return str(getattr(metric, "__name__", None) or metric.name)


def as_metric_function(name: str) -> Any:
    """What a name stands for among the functions, or the name."""
    return FUNCTIONS.get(name, name)
