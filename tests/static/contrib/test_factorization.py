"""Centers of clusters beside Lloyd's and Sculley's rules in NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf

KMeans = tf.contrib.factorization.KMeans
POINTS = numpy.random.default_rng(0).normal(size=(12, 3)).astype(numpy.float32)
POINTS[:6] += 4.0


def unit(rows: Any) -> Any:
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("cosine", [False, True])
def test_centers_move_to_the_means_of_their_points(batches: bool, cosine: bool) -> None:
    centers, counts = POINTS[[0, 7]], numpy.ones(2)
    points = unit(POINTS) if cosine else POINTS
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        metric = "cosine" if cosine else "squared_euclidean"
        model = KMeans(x, 2, tf.constant(centers), metric, use_mini_batch=batches)
        scores, nearest, closest, _, start, train = model.training_graph()
        session.run(tf.global_variables_initializer())
        session.run(start, {x: POINTS})
        centers = unit(centers) if cosine else centers
        for step in range(3):
            part = slice(step * 3, step * 3 + 6) if batches else slice(None)
            seen = unit(centers) if cosine else centers
            table = 1 - points @ seen.T if cosine else ((points[:, None] - seen) ** 2).sum(-1)
            found = session.run([scores[0], nearest[0], closest[0]], {x: POINTS})
            numpy.testing.assert_allclose(found[0], table, rtol=1e-4, atol=1e-5)
            numpy.testing.assert_array_equal(found[1], table.argmin(1))
            numpy.testing.assert_allclose(found[2], table.min(1), rtol=1e-4, atol=1e-5)
            session.run(train, {x: POINTS[part]})
            for k in range(2):
                own = points[part][table[part].argmin(1) == k]
                if batches:
                    centers[k] += (own.sum(0) - len(own) * centers[k]) / (counts[k] + len(own))
                    counts[k] += len(own)
                else:
                    centers[k] = own.mean(0)
            if cosine and not batches:
                centers = unit(centers)
        kept = next(v for v in tf.global_variables() if v.op.name == "clusters")
        numpy.testing.assert_allclose(session.run(kept), centers, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("first", ["random", "kmeans_plus_plus"])
def test_first_centers_are_points(first: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        graph = KMeans(tf.constant(POINTS), 4, first).training_graph()
        session.run(tf.global_variables_initializer())
        assert not session.run(graph[3])
        session.run(graph[4])
        made = session.run(tf.global_variables()[0])
        session.run(graph[4])  # once there are centers, they stay
        assert session.run(graph[3]) and numpy.array_equal(session.run(tf.global_variables()[0]), made)
    assert all(any(numpy.allclose(row, point) for point in POINTS) for row in made)
    assert first == "random" or len(numpy.unique(made, axis=0)) == 4
