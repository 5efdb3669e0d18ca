"""Optimisers and savers: ``tf.train``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.static.checkpoint_reader import NewCheckpointReader as NewCheckpointReader
from twofold.static.checkpoint_reader import list_variables as list_variables
from twofold.static.checkpoint_reader import load_checkpoint as load_checkpoint
from twofold.static.checkpoint_reader import load_variable as load_variable
from twofold.static.coordination import Coordinator as Coordinator
from twofold.static.example import BytesList as BytesList
from twofold.static.example import Example as Example
from twofold.static.example import Feature as Feature
from twofold.static.example import FeatureList as FeatureList
from twofold.static.example import FeatureLists as FeatureLists
from twofold.static.example import Features as Features
from twofold.static.example import FloatList as FloatList
from twofold.static.example import Int64List as Int64List
from twofold.static.example import SequenceExample as SequenceExample
from twofold.static.global_step import create_global_step as create_global_step
from twofold.static.global_step import get_global_step as get_global_step
from twofold.static.global_step import get_or_create_global_step as get_or_create_global_step
from twofold.static.global_step import global_step as global_step
from twofold.static.graph_util import write_graph as write_graph
from twofold.static.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from twofold.static.optimizer import Optimizer as Optimizer
from twofold.static.optimizer_rules import AdadeltaOptimizer as AdadeltaOptimizer
from twofold.static.optimizer_rules import AdagradDAOptimizer as AdagradDAOptimizer
from twofold.static.optimizer_rules import AdagradOptimizer as AdagradOptimizer
from twofold.static.optimizer_rules import AdamOptimizer as AdamOptimizer
from twofold.static.optimizer_rules import FtrlOptimizer as FtrlOptimizer
from twofold.static.optimizer_rules import GradientDescentOptimizer as GradientDescentOptimizer
from twofold.static.optimizer_rules import MomentumOptimizer as MomentumOptimizer
from twofold.static.optimizer_rules import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from twofold.static.optimizer_rules import (
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
)
from twofold.static.optimizer_rules import RMSPropOptimizer as RMSPropOptimizer
from twofold.static.queues import QueueRunner as QueueRunner
from twofold.static.queues import add_queue_runner as add_queue_runner
from twofold.static.queues import batch as batch
from twofold.static.queues import range_input_producer as range_input_producer
from twofold.static.queues import shuffle_batch as shuffle_batch
from twofold.static.queues import slice_input_producer as slice_input_producer
from twofold.static.queues import start_queue_runners as start_queue_runners
from twofold.static.readers import string_input_producer as string_input_producer
from twofold.static.saver import Saver as Saver
from twofold.static.saver import checkpoint_exists as checkpoint_exists
from twofold.static.saver import get_checkpoint_state as get_checkpoint_state
from twofold.static.saver import import_meta_graph as import_meta_graph
from twofold.static.saver import latest_checkpoint as latest_checkpoint
from twofold.static.schedules import cosine_decay as cosine_decay
from twofold.static.schedules import cosine_decay_restarts as cosine_decay_restarts
from twofold.static.schedules import exponential_decay as exponential_decay
from twofold.static.schedules import inverse_time_decay as inverse_time_decay
from twofold.static.schedules import linear_cosine_decay as linear_cosine_decay
from twofold.static.schedules import natural_exp_decay as natural_exp_decay
from twofold.static.schedules import noisy_linear_cosine_decay as noisy_linear_cosine_decay
from twofold.static.schedules import piecewise_constant as piecewise_constant
from twofold.static.schedules import piecewise_constant_decay as piecewise_constant_decay
from twofold.static.schedules import polynomial_decay as polynomial_decay
from twofold.static.summary_messages import summary_iterator as summary_iterator
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.meta_graph import export_meta_graph as export_meta_graph
    from twofold.static.monitored_session import ChiefSessionCreator as ChiefSessionCreator
    from twofold.static.monitored_session import MonitoredSession as MonitoredSession
    from twofold.static.monitored_session import MonitoredTrainingSession as MonitoredTrainingSession
    from twofold.static.monitored_session import Scaffold as Scaffold
    from twofold.static.monitored_session import SessionCreator as SessionCreator
    from twofold.static.monitored_session import SessionManager as SessionManager
    from twofold.static.monitored_session import SingularMonitoredSession as SingularMonitoredSession
    from twofold.static.server import ClusterSpec as ClusterSpec
    from twofold.static.server import Server as Server
    from twofold.static.server import replica_device_setter as replica_device_setter
    from twofold.static.session_hooks import CheckpointSaverHook as CheckpointSaverHook
    from twofold.static.session_hooks import CheckpointSaverListener as CheckpointSaverListener
    from twofold.static.session_hooks import FeedFnHook as FeedFnHook
    from twofold.static.session_hooks import FinalOpsHook as FinalOpsHook
    from twofold.static.session_hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
    from twofold.static.session_hooks import LoggingTensorHook as LoggingTensorHook
    from twofold.static.session_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
    from twofold.static.session_hooks import NanTensorHook as NanTensorHook
    from twofold.static.session_hooks import StepCounterHook as StepCounterHook
    from twofold.static.session_hooks import StopAtStepHook as StopAtStepHook
    from twofold.static.session_hooks import SummarySaverHook as SummarySaverHook
    from twofold.static.session_run_hook import SecondOrStepTimer as SecondOrStepTimer
    from twofold.static.session_run_hook import SessionRunArgs as SessionRunArgs
    from twofold.static.session_run_hook import SessionRunContext as SessionRunContext
    from twofold.static.session_run_hook import SessionRunHook as SessionRunHook
    from twofold.static.session_run_hook import SessionRunValues as SessionRunValues
    from twofold.static.summary import FileWriter as SummaryWriter  # noqa: F401
    from twofold.static.supervisor import Supervisor as Supervisor
    from twofold.static.warm_start import init_from_checkpoint as init_from_checkpoint

__getattr__, __dir__ = _attach(__name__, _prepared)
