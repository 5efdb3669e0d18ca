"""A checkpoint measured: ``slim.evaluation``."""

from __future__ import annotations

from typing import Any

from twofold.static.api.op_functions import refuse
from twofold.static.api.signatures import takes
from twofold.static.saving.saver import Saver
from twofold.static.summary import FileWriter, merge_all
from twofold.static.train import get_or_create_global_step
from twofold.static.train.monitored_session import Scaffold, SingularMonitoredSession

_DEFAULT: Any = object()


@takes(
    summary_op=_DEFAULT, summary_op_feed_dict=None, variables_to_restore=None, session_config=None, hooks=None
)
def evaluate_once(
    master: str,
    checkpoint_path: Any,
    logdir: Any,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    **options: Any,
) -> Any:
    """Restore a checkpoint, run ``eval_op`` ``num_evals`` times, and write a summary; the value of ``final_op``."""
    refuse("slim.evaluation.evaluate_once", hooks=options["hooks"])
    step = get_or_create_global_step()
    shown = merge_all() if options["summary_op"] is _DEFAULT else options["summary_op"]
    scaffold = Scaffold(saver=Saver(options["variables_to_restore"]))
    with SingularMonitoredSession(
        None, scaffold, master, options["session_config"], checkpoint_filename_with_path=checkpoint_path
    ) as session:
        if initial_op is not None:
            session.run(initial_op, initial_op_feed_dict)
        if eval_op is not None:
            for _ in range(num_evals):
                session.run(eval_op, eval_op_feed_dict)
        found = None if final_op is None else session.run(final_op, final_op_feed_dict)
        if shown is not None and logdir is not None:
            writer = FileWriter(logdir)
            writer.add_summary(session.run(shown, options["summary_op_feed_dict"]), session.run(step))
            writer.close()
    return found
