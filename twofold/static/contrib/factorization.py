"""Clusters of points by their nearest centers: ``tf.contrib.factorization``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.arrays import creation, segments, shape_ops
from twofold.static.control_flow.dependencies import group
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import control_dependencies
from twofold.static.random import next_key
from twofold.static.variables.variable import Variable, assign, assign_add

RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"


def _chosen(points: Any, count: int, spread: bool, tries: int, random: Any) -> Any:
    """Points as first centers: any, or with ``spread`` those far from each other (Arthur and Vassilvitskii, 2007)."""
    if not spread:
        return points[random.integers(0, len(points), count)]
    found = [points[random.integers(0, len(points))]]
    nearest = ((points - found[0]) ** 2).sum(1)
    while len(found) < count:
        total = nearest.sum()
        shares = None if total == 0 else nearest / total
        candidates = random.choice(len(points), tries, p=shares)
        distances = [numpy.minimum(nearest, ((points - points[one]) ** 2).sum(1)) for one in candidates]
        best = int(numpy.argmin([one.sum() for one in distances]))
        found.append(points[candidates[best]])
        nearest = distances[best]
    return numpy.stack(found)


@example(
    "x = tf.constant([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])",
    "first = tf.constant([[0.0, 0.0], [9.0, 9.0]])",
    "found = tf.contrib.factorization.KMeans(x, 2, initial_clusters=first).training_graph()",
    "session.run(tf.global_variables_initializer())",
    "session.run(found[4])",
    "found[1][0]",
    "[0 0 1 1]",
)
class KMeans:
    """The graph that moves centers to the means of the points nearest to them (Lloyd, 1982; Sculley, 2010).

    Args:
        inputs: The points [points, features], or a list of such tensors.
        num_clusters: The number of centers.
        initial_clusters: The first centers, a function of the inputs and a number of centers, ``"random"`` for any
            points, or ``"kmeans_plus_plus"`` for points far from each other.
        distance_metric: ``"squared_euclidean"``, or ``"cosine"`` for directions alone.
        use_mini_batch: Whether each run moves centers by a part of all points; otherwise by all.
        mini_batch_steps_per_iteration: Not offered; raises unless 1.
        random_seed: Of the choice of the first centers.
        kmeans_plus_plus_num_retries: How many candidates each further center is chosen from.
        kmc2_chain_length: Without effect: there is no initialization by chains.
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: int,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        several = mini_batch_steps_per_iteration != 1
        refuse("KMeans", mini_batch_steps_per_iteration=several and use_mini_batch)
        if isinstance(initial_clusters, str) and initial_clusters not in (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT):
            fix = f"Use {RANDOM_INIT!r} or {KMEANS_PLUS_PLUS_INIT!r}."
            raise failed("KMeans", ArgumentError(f"initial_clusters {initial_clusters!r}", fix))
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            fix = f"Use {SQUARED_EUCLIDEAN_DISTANCE!r} or {COSINE_DISTANCE!r}."
            raise failed("KMeans", ArgumentError(f"distance_metric {distance_metric!r}", fix))
        given = inputs if isinstance(inputs, list) else [inputs]
        self._inputs = [convert_to_tensor(one) for one in given]
        self._count, self._first, self._batches = num_clusters, initial_clusters, use_mini_batch
        self._cosine = distance_metric == COSINE_DISTANCE
        self._seed, self._tries = random_seed, max(int(kmeans_plus_plus_num_retries), 1)

    def training_graph(self) -> tuple[Any, ...]:
        """What runs fetch.

        Returns:
            For each tensor of inputs the distances of its points to all centers, the nearest center and the distance
            to that; whether there are centers; the operation that makes the first ones; the one that moves them.
        """
        count = self._count
        if not isinstance(self._first, str) and not callable(self._first):
            count = convert_to_tensor(self._first).get_shape()[0].value
        features = self._inputs[0].get_shape()[1].value
        dtype = self._inputs[0].dtype
        centers = Variable(creation.zeros([count, features], dtype), name="clusters")
        ready = Variable(False, name="initialized")
        start = self._initialized(centers, ready, count)
        points = [nn.l2_normalize(one, 1) for one in self._inputs] if self._cosine else self._inputs
        seen = centers.value()
        if self._cosine and self._batches:
            seen = nn.l2_normalize(seen, 1)
        scores = [self._distances(one, seen) for one in points]
        nearest = [math.argmin(one, 1) for one in scores]
        closest = [math.reduce_min(one, 1) for one in scores]
        moved = self._moved_by_part if self._batches else self._moved
        return scores, nearest, closest, ready, start, moved(points, nearest, centers, count)

    def _distances(self, points: Any, centers: Any) -> Any:
        products = math.matmul(points, centers, transpose_b=True)
        if self._cosine:
            return 1 - products
        squares = [math.reduce_sum(math.square(one), 1, keepdims=True) for one in (points, centers)]
        return math.maximum(squares[0] - 2 * products + shape_ops.transpose(squares[1]), 0.0)

    def _initialized(self, centers: Variable, ready: Variable, count: int) -> Any:
        random, first, cosine = numpy.random.default_rng(next_key(self._seed)), self._first, self._cosine
        more: Sequence[Any] = self._inputs
        if callable(first):
            more = [convert_to_tensor(first(self._inputs, count))]
        elif not isinstance(first, str):
            more = [convert_to_tensor(first)]

        def choose(old: Any, done: Any, *arrays: Any) -> Any:
            if done:
                return old
            found = numpy.concatenate(arrays)
            unit = lambda rows: rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
            points = unit(found) if cosine else found
            if isinstance(first, str):
                if count > len(points):
                    what = f"KMeans: {count} centers of {len(points)} points"
                    raise InvalidArgumentError(what, "Give more points.")
                points = _chosen(points, count, first != RANDOM_INIT, self._tries, random)
            return points.astype(old.dtype)

        shape = centers.get_shape().as_list()
        made = in_python(
            "KMeansInitialization", choose, [centers, ready, *more], [(centers.dtype, shape)], None
        )
        with control_dependencies([assign(centers, made[0])]):
            return assign(ready, True).op

    def _sums(self, points: Any, nearest: Any, count: int) -> tuple[Any, Any]:
        """For each center the sum and the number of its points."""
        rows, ids = shape_ops.concat(points, 0), shape_ops.concat(nearest, 0)
        ones = creation.ones_like(rows[:, :1])
        return segments.unsorted_segment_sum(rows, ids, count), segments.unsorted_segment_sum(
            ones, ids, count
        )

    def _moved(self, points: Any, nearest: Any, centers: Variable, count: int) -> Any:
        sums, numbers = self._sums(points, nearest, count)
        new = sums / (numbers + 1e-6)
        return assign(centers, nn.l2_normalize(new, 1) if self._cosine else new).op

    def _moved_by_part(self, points: Any, nearest: Any, centers: Variable, count: int) -> Any:
        total = Variable(creation.ones([count, 1], centers.dtype), name="counts")
        sums, numbers = self._sums(points, nearest, count)
        step = (sums - centers.value() * numbers) / (total.value() + numbers)
        return group(assign_add(centers, step), assign_add(total, numbers))
