"""Exports of a model while it is trained and evaluated: ``tf.estimator.FinalExporter`` and its kin."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse


class Exporter:
    """Base of what ``train_and_evaluate`` gives each new checkpoint to; ``wants`` says which ones are exported.

    Args:
        name: The directory of its exports, inside of ``export`` in that of the model.
        serving_input_receiver_fn: A function that declares a ``ServingInputReceiver``.
        assets_extra, as_text: Not offered; they raise unless empty.
        exports_to_keep: How many exports stay; all with None.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = None,
    ) -> None:
        refuse(type(self).__name__, assets_extra=assets_extra, as_text=as_text)
        if exports_to_keep is not None and exports_to_keep <= 0:
            what = f"{type(self).__name__}: exports_to_keep is {exports_to_keep}, at {here()}"
            raise ArgumentError(what, "Give a number above 0, or None.")
        self.name, self._receive, self._keep = name, serving_input_receiver_fn, exports_to_keep

    def wants(self, eval_result: Mapping[str, Any] | None, is_the_final_export: bool) -> bool:
        """Whether a checkpoint is exported."""
        return True

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Export a checkpoint; the path of its directory, or None where it is not wanted."""
        if not self.wants(eval_result, is_the_final_export):
            return None
        made: bytes = estimator.export_saved_model(
            export_path, self._receive, checkpoint_path=checkpoint_path
        )
        if self._keep is not None:
            for old in sorted(filter(str.isdigit, os.listdir(export_path)), key=int)[: -self._keep]:
                shutil.rmtree(os.path.join(export_path, old))
        return made


class FinalExporter(Exporter):
    """Exports the model when the training is over."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Any = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def wants(self, eval_result: Mapping[str, Any] | None, is_the_final_export: bool) -> bool:
        """Whether it is the last one."""
        return is_the_final_export


class LatestExporter(Exporter):
    """Exports every checkpoint that is evaluated, and keeps the latest five exports, or as many as it is told."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)


def _has_smaller_loss(best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]) -> bool:
    return bool(current_eval_result["loss"] < best_eval_result["loss"])


class BestExporter(Exporter):
    """Exports a checkpoint that is better than all before it in this process.

    Args:
        name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep: See ``Exporter``.
        event_file_pattern: Not offered; raises unless None.
        compare_fn: Whether ``current_eval_result`` is better than ``best_eval_result``; a smaller loss unless given.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = None,
        compare_fn: Callable[..., bool] = _has_smaller_loss,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        refuse("BestExporter", event_file_pattern=event_file_pattern)
        if serving_input_receiver_fn is None:
            what = f"BestExporter: serving_input_receiver_fn is missing, at {here()}"
            raise ArgumentError(what, "Give a function that declares a ServingInputReceiver.")
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self._better, self._best = compare_fn, None

    _best: Mapping[str, Any] | None

    def wants(self, eval_result: Mapping[str, Any] | None, is_the_final_export: bool) -> bool:
        """Whether it is the best one so far."""
        if not eval_result:
            return False
        better = self._best is None or self._better(
            best_eval_result=self._best, current_eval_result=eval_result
        )
        if better:
            self._best = eval_result
        return better
