"""Define-then-run: the same network as a TensorFlow 1 program is written, with only the import changed."""

from __future__ import annotations

import numpy

import twofold.static as tf
from twofold.demo.graphs import graph_nodes
from twofold.demo.task import Result, Stopwatch, Task, accuracy


def train(task: Task) -> Result:
    """Trains the network of ``task`` and returns losses, times, accuracy, the final weights and the graph."""
    watch = Stopwatch("define-then-run", task.steps)
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [None, task.sizes[0]], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        arrays = task.initial_weights()
        weights = [tf.Variable(array, name=f"weight_{i}") for i, array in enumerate(arrays[0::2], 1)]
        biases = [tf.Variable(array, name=f"bias_{i}") for i, array in enumerate(arrays[1::2], 1)]

        hidden = tf.nn.relu(tf.matmul(images, weights[0], transpose_b=True) + biases[0])
        hidden = tf.nn.relu(tf.matmul(hidden, weights[1], transpose_b=True) + biases[1])
        logits = tf.matmul(hidden, weights[2], transpose_b=True) + biases[2]
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        # TensorFlow's Adam puts epsilon elsewhere; the two programs are to do the same arithmetic.
        update = tf.train.AdamOptimizer(task.learning_rate, formulation="pytorch").minimize(loss)

        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for batch_images, batch_labels in task.batches():
                feeds = {images: batch_images, labels: batch_labels}
                loss_value, _ = session.run([loss, update], feed_dict=feeds)
                watch.step(float(loss_value))
            watch.stop()
            test_logits = session.run(logits, feed_dict={images: task.test[0]})
            final = session.run([variable for pair in zip(weights, biases) for variable in pair])
    return Result(
        title="define-then-run",
        losses=watch.losses,
        step_seconds=watch.step_seconds,
        first_step_seconds=watch.first_step_seconds,
        accuracy=accuracy(test_logits, task.test[1]),
        weights=[numpy.array(array) for array in final],
        graph=graph_nodes(loss),
    )
