"""Optimisers and savers: ``tf.train``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from twofold.dtypes import int64
from twofold.static import modes
from twofold.static.checkpoint_reader import NewCheckpointReader as NewCheckpointReader
from twofold.static.checkpoint_reader import list_variables as list_variables
from twofold.static.checkpoint_reader import load_checkpoint as load_checkpoint
from twofold.static.checkpoint_reader import load_variable as load_variable
from twofold.static.coordination import Coordinator as Coordinator
from twofold.static.define import constant
from twofold.static.docstrings import example
from twofold.static.example import BytesList as BytesList
from twofold.static.example import Example as Example
from twofold.static.example import Feature as Feature
from twofold.static.example import FeatureList as FeatureList
from twofold.static.example import FeatureLists as FeatureLists
from twofold.static.example import Features as Features
from twofold.static.example import FloatList as FloatList
from twofold.static.example import Int64List as Int64List
from twofold.static.example import SequenceExample as SequenceExample
from twofold.static.graph import get_default_graph
from twofold.static.graph_util import write_graph as write_graph
from twofold.static.keys import GraphKeys
from twofold.static.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from twofold.static.optimizer import Optimizer as Optimizer
from twofold.static.optimizer_rules import AdadeltaOptimizer as AdadeltaOptimizer
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
from twofold.static.saver import (
    Saver,
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
)
from twofold.static.schedules import cosine_decay as cosine_decay
from twofold.static.schedules import cosine_decay_restarts as cosine_decay_restarts
from twofold.static.schedules import exponential_decay as exponential_decay
from twofold.static.schedules import inverse_time_decay as inverse_time_decay
from twofold.static.schedules import linear_cosine_decay as linear_cosine_decay
from twofold.static.schedules import natural_exp_decay as natural_exp_decay
from twofold.static.schedules import piecewise_constant as piecewise_constant
from twofold.static.schedules import piecewise_constant_decay as piecewise_constant_decay
from twofold.static.schedules import polynomial_decay as polynomial_decay
from twofold.static.summary_messages import summary_iterator as summary_iterator
from twofold.static.variables import Variable

__all__ = ["Saver", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint"]


@example("print(tf.train.create_global_step().name)", "global_step:0")
def create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps; raises ValueError if there is one."""
    found = graph or get_default_graph()
    if found.get_collection(GraphKeys.GLOBAL_STEP):
        raise ValueError('"global_step" already exists.')
    with nullcontext() if modes.at_once() else found.as_default(), found.name_scope(None):
        made = Variable(constant(0, int64), False, name="global_step")
    found.add_to_collection(GraphKeys.GLOBAL_STEP, made)
    return made


@example("print(tf.train.get_global_step())", "None")
def get_global_step(graph: Any = None) -> Variable | None:
    """The variable that counts steps, or None."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


@example("print(tf.train.get_or_create_global_step() is tf.train.get_or_create_global_step())", "True")
def get_or_create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps."""
    return get_global_step(graph) or create_global_step(graph)


@example(
    "step = tf.train.create_global_step()",
    "session.run(tf.global_variables_initializer())",
    "print(tf.train.global_step(session, step))",
    "0",
)
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far."""
    return int(sess.run(global_step_tensor))
