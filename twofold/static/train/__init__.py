"""Optimisers, savers, and sessions that train: ``tf.train``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.static.python.positions import enter as _enter
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.contrib.checkpoints import checkpoints_iterator
    from twofold.static.data.coordinator import Coordinator
    from twofold.static.data.epochs import (
        input_producer,
        limit_epochs,
        maybe_batch,
        maybe_batch_join,
        maybe_shuffle_batch,
        maybe_shuffle_batch_join,
    )
    from twofold.static.data.queues import (
        QueueRunner,
        add_queue_runner,
        batch,
        batch_join,
        range_input_producer,
        shuffle_batch,
        shuffle_batch_join,
        slice_input_producer,
        start_queue_runners,
    )
    from twofold.static.data.readers import match_filenames_once, string_input_producer
    from twofold.static.graph_def.meta_graph import SaverDef, export_meta_graph
    from twofold.static.graph_util import write_graph
    from twofold.static.optimizers.learning_rate_schedules import *  # noqa: F403
    from twofold.static.optimizers.moving_averages import ExponentialMovingAverage
    from twofold.static.optimizers.optimizer import Optimizer
    from twofold.static.optimizers.replicas import SyncReplicasOptimizer
    from twofold.static.optimizers.update_rules import *  # noqa: F403
    from twofold.static.protobuf.example import *  # noqa: F403
    from twofold.static.protobuf.summary import summary_iterator
    from twofold.static.saving.checkpoint_reader import *  # noqa: F403
    from twofold.static.saving.checkpoint_state import (
        generate_checkpoint_state_proto,
        get_checkpoint_mtimes,
        remove_checkpoint,
        update_checkpoint_state,
    )
    from twofold.static.saving.saver import (
        Saver,
        checkpoint_exists,
        get_checkpoint_state,
        import_meta_graph,
        latest_checkpoint,
    )
    from twofold.static.saving.warm_start import WarmStartSettings, init_from_checkpoint, warm_start
    from twofold.static.summary import FileWriter as SummaryWriter
    from twofold.static.train.monitored_session import (
        ChiefSessionCreator,
        MonitoredSession,
        MonitoredTrainingSession,
        Scaffold,
        SessionCreator,
        SessionManager,
        SingularMonitoredSession,
    )
    from twofold.static.train.server import ClusterSpec, Server, replica_device_setter
    from twofold.static.train.session_hooks import *  # noqa: F403
    from twofold.static.train.session_run_hook import (
        SecondOrStepTimer,
        SessionRunArgs,
        SessionRunContext,
        SessionRunHook,
        SessionRunValues,
    )
    from twofold.static.train.step_counter import *  # noqa: F403
    from twofold.static.train.supervisor import LooperThread, Supervisor, basic_train_loop

__getattr__, __dir__ = _attach(__name__, _prepared)
_enter(__name__, {"queue_runner": "train"})
