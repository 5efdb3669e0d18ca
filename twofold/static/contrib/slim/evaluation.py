"""Checkpoints measured, once or as long as a training goes on: ``slim.evaluation``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from twofold.static.api.op_functions import refuse
from twofold.static.api.signatures import takes
from twofold.static.contrib.checkpoints import checkpoints_iterator as checkpoints_iterator
from twofold.static.contrib.checkpoints import wait_for_new_checkpoint as wait_for_new_checkpoint
from twofold.static.saving.saver import Saver
from twofold.static.summary import FileWriter, merge_all
from twofold.static.train import get_or_create_global_step
from twofold.static.train.monitored_session import Scaffold, SingularMonitoredSession

_DEFAULT: Any = object()


_STEPS = dict.fromkeys(
    ("initial_op", "initial_op_feed_dict", "eval_op", "eval_op_feed_dict", "final_op", "final_op_feed_dict")
)
_SUMMARY = {"summary_op": _DEFAULT, "summary_op_feed_dict": None, "variables_to_restore": None}


@takes(**_STEPS, **_SUMMARY, session_config=None, hooks=None)
def evaluate_once(master: str, checkpoint_path: Any, logdir: Any, num_evals: int = 1, **options: Any) -> Any:
    """Restore a checkpoint, run ``eval_op`` ``num_evals`` times, and write a summary; the value of ``final_op``."""
    refuse("slim.evaluation.evaluate_once", hooks=options.pop("hooks"))
    return _evaluation(master, logdir, num_evals, **options)(checkpoint_path)


@takes(
    **_STEPS,
    **_SUMMARY,
    eval_interval_secs=60,
    max_number_of_evaluations=None,
    session_config=None,
    timeout=None,
    timeout_fn=None,
    hooks=None,
)
def evaluation_loop(master: str, checkpoint_dir: Any, logdir: Any, num_evals: int = 1, **options: Any) -> Any:
    """``evaluate_once`` of each new checkpoint of a directory; the last value of ``final_op``.

    It ends after ``max_number_of_evaluations``, or once none is found for ``timeout`` seconds and ``timeout_fn``, if
    given, returns true. ``eval_interval_secs`` is the least time between the beginnings of two evaluations.
    """
    refuse("slim.evaluation.evaluation_loop", hooks=options.pop("hooks"))
    waits = [options.pop(key) for key in ("eval_interval_secs", "timeout", "timeout_fn")]
    most = options.pop("max_number_of_evaluations")
    evaluate = _evaluation(master, logdir, num_evals, **options)
    found = None
    for path in itertools.islice(checkpoints_iterator(checkpoint_dir, *waits), most):
        found = evaluate(path)
    return found


def _evaluation(
    master: str,
    logdir: Any,
    count: int,
    summary_op: Any,
    summary_op_feed_dict: Any,
    variables_to_restore: Any,
    session_config: Any,
    **steps: Any,
) -> Callable[[str], Any]:
    """The function that evaluates a checkpoint; what it needs of the graph is declared once."""
    initial, initial_feeds, each, each_feeds, final, final_feeds = (steps[key] for key in _STEPS)
    step = get_or_create_global_step()
    shown = merge_all() if summary_op is _DEFAULT else summary_op
    scaffold = Scaffold(saver=Saver(variables_to_restore))

    def evaluate(path: str) -> Any:
        with SingularMonitoredSession(
            None, scaffold, master, session_config, checkpoint_filename_with_path=path
        ) as session:
            if initial is not None:
                session.run(initial, initial_feeds)
            if each is not None:
                for _ in range(count):
                    session.run(each, each_feeds)
            found = None if final is None else session.run(final, final_feeds)
            if shown is not None and logdir is not None:
                writer = FileWriter(logdir)
                writer.add_summary(session.run(shown, summary_op_feed_dict), session.run(step))
                writer.close()
        return found

    return evaluate
